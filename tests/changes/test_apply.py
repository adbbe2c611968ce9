"""What a run changed comes back to the person's directory: over MCP, by the verb, at the end of a command or a call."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

import massgen_mcp as massgen
from tests.changes.conftest import Repository
from tests.commands import run_command
from tests.harness import COMMAND_MODULE, SERVER_MODULE, TempHome, agent, call, expect_error, home
from tests.page.test_report import data_of
from tests.server.reply_check import check_reply
from tests.terminal import Terminal, terminal

__all__ = ["home"]

CODE = "".join(f"line {number}\n" for number in range(1, 21))
WANTED = CODE.replace("line 10\n", "line ten\n")
DIRTY = CODE.replace("line 3\n", "line three, not committed\n")
BOTH = WANTED.replace("line 3\n", "line three, not committed\n")
CONFLICT = CODE.replace("line 10\n", "my line ten\n")


def write(path: str, content: str) -> dict[str, Any]:
    return {"call": "write_file", "arguments": {"path": path, "content": content}}


def config_of(home: TempHome, repository: Repository, *steps: dict[str, Any], **orchestrator: Any) -> str:
    """A team of one that makes these steps, in a config that gives it the directory with `write`."""
    paths = [{"path": str(repository.path), "permission": "write"}]
    solo = agent("solo", *steps, {"answer": "done"})
    return home.config("solo", solo, orchestrator={"context_paths": paths, **orchestrator})


async def changed_by_a_run(
    client: Client, home: TempHome, repository: Repository, *steps: dict[str, Any], permission: str = "write"
) -> str:
    """The id of a run that has ended."""
    config = home.config("team", agent("solo", *steps, {"answer": "done"}))
    paths = [{"path": str(repository.path), "permission": permission}]
    started = await call(
        client, "start_run", question="Count in words", config=config, context_paths=paths, wait_seconds=50
    )
    return started["run_id"]


def verb(home: TempHome, *arguments: str) -> tuple[int, dict[str, Any]]:
    done = run_command(home, SERVER_MODULE, "apply", *arguments, "--json")
    return done.returncode, json.loads(done.stdout) if done.stdout else {"error": done.stderr}


# -- over MCP ---------------------------------------------------------------------------------------------------------


async def test_a_parent_applies_a_result_after_a_look_at_it_and_a_person_takes_it_back(
    home: TempHome, repository: Repository
) -> None:
    repository.commit(code=CODE)
    repository.put(code=DIRTY)
    before = repository.fingerprint()
    async with home.client() as client:
        run_id = await changed_by_a_run(
            client, home, repository, write("project/code", BOTH), write("project/new", "n\n")
        )
        repository.put(code=DIRTY, mine="mine\n")
        looked = check_reply(await client.call_tool("apply_result", {"run_id": run_id}))
        (repository.path / "mine").unlink()
        assert repository.fingerprint() == before, "a look changes nothing"
        applied = check_reply(await client.call_tool("apply_result", {"run_id": run_id, "dry_run": False}))
        again = await call(client, "apply_result", run_id=run_id, dry_run=False)
        then = (await call(client, "get_result", run_id=run_id))["next_step"]
    assert re.search(r"Applied at [\d-]+ [\d:]+; apply_result with undo=true reverts the changes\.", then)
    report = home.run_directory(run_id) / "report.html"
    assert data_of(report)["applied_at"] is not None
    files = [
        {"path": "project/code", "change": "modified", "added": 1, "removed": 1},
        {"path": "project/new", "change": "added", "added": 1, "removed": 0},
    ]
    assert (looked["status"], looked["files"]) == ("clean", files)
    assert (applied["status"], applied["files"]) == ("applied", files)
    assert again["status"] == "unchanged"
    assert (repository.path / "code").read_text() == BOTH
    assert (repository.path / "new").read_text() == "n\n"
    assert repository.git("diff", "--cached") == ""

    code, undone = verb(home, "--undo", run_id)
    assert (code, undone["status"]) == (0, "undone")
    assert repository.fingerprint() == before
    assert data_of(report)["applied_at"] is None
    code, again = verb(home, "--undo", run_id)
    assert (code, again["status"]) == (0, "unchanged"), "there is nothing more to take back"
    assert repository.fingerprint() == before


async def test_a_parent_takes_back_what_it_applied_after_a_look_at_it(home: TempHome, repository: Repository) -> None:
    repository.commit(code=CODE)
    async with home.client() as client:
        run_id = await changed_by_a_run(client, home, repository, write("project/code", WANTED))
        applied = await call(client, "apply_result", run_id=run_id, dry_run=False)
        assert applied["next_step"].endswith("To undo this, call apply_result with undo=true and dry_run=false.")
        looked = await call(client, "apply_result", run_id=run_id, undo=True)
        assert (looked["status"], (repository.path / "code").read_text()) == ("clean", WANTED)
        assert "dry_run=false" in looked["next_step"]
        undone = await call(client, "apply_result", run_id=run_id, undo=True, dry_run=False)
    assert (undone["status"], (repository.path / "code").read_text()) == ("undone", CODE)


async def test_conflicts_are_named_and_nothing_is_changed(home: TempHome, repository: Repository) -> None:
    repository.commit(code=CODE, other="o\n")
    async with home.client() as client:
        run_id = await changed_by_a_run(
            client, home, repository, write("project/code", WANTED), write("project/other", "p\n")
        )
        repository.put(code=CONFLICT)
        before = repository.fingerprint()
        reply = check_reply(await client.call_tool("apply_result", {"run_id": run_id, "dry_run": False}))
        assert reply["status"] == "conflicts"
        assert reply["conflicts"] == [{"path": "project/code", "reason": "you and the run changed the same lines"}]
        assert repository.fingerprint() == before
        part = await call(client, "apply_result", run_id=run_id, dry_run=False, paths=["project/other"])
        assert [file["path"] for file in part["files"]] == ["project/other"]
        assert (repository.path / "code").read_text() == CONFLICT
        code, told = await expect_error(client, "apply_result", run_id=run_id, paths=["project/absent"])
        assert code == "invalid_arguments"
        assert "project/code" in told, "it says what there is"
    assert verb(home, run_id)[0] == 1


async def test_nothing_is_applied_to_what_was_given_to_read_only(home: TempHome, repository: Repository) -> None:
    repository.commit(code=CODE)
    before = repository.fingerprint()
    async with home.client() as client:
        run_id = await changed_by_a_run(client, home, repository, write("project/code", WANTED), permission="read")
        code, told = await expect_error(client, "apply_result", run_id=run_id, dry_run=False)
    assert (code, "no write permission" in told) == ("invalid_action", True)
    assert repository.fingerprint() == before


async def test_a_run_that_goes_on_or_changed_nothing_has_nothing_to_apply(
    home: TempHome, repository: Repository
) -> None:
    repository.commit(code=CODE)
    async with home.client() as client:
        run_id = await changed_by_a_run(client, home, repository, write("own.txt", "x"))
        assert (await expect_error(client, "apply_result", run_id=run_id))[0] == "invalid_action"
        config = home.config("hanging", agent("solo", {"hang": True}))
        going_on = (await call(client, "start_run", question="q", config=config))["run_id"]
        assert (await expect_error(client, "apply_result", run_id=going_on))[0] == "not_finished"


async def test_a_reply_about_very_many_files_has_room_for_the_next_step(home: TempHome, repository: Repository) -> None:
    repository.commit(code=CODE)
    steps = [write(f"project/a-directory-with-a-long-name/{'x' * 200}-{number}.txt", "x\n") for number in range(45)]
    async with home.client() as client:
        run_id = await changed_by_a_run(client, home, repository, *steps)
        reply = check_reply(await client.call_tool("apply_result", {"run_id": run_id}))
    assert len(reply["files"]) + reply["more_files"] == 45
    assert "dry_run=false" in reply["next_step"]


# -- by the verb ------------------------------------------------------------------------------------------------------


async def test_a_patch_goes_to_a_new_branch_and_nothing_of_the_repositorys_own_programs_runs(
    home: TempHome, repository: Repository, tmp_path: Path
) -> None:
    canary = tmp_path / "canary"
    repository.commit(code=CODE, other="o\n")
    for hook in ("reference-transaction", "post-checkout", "post-index-change", "pre-commit", "post-commit"):
        file = repository.path / ".git" / "hooks" / hook
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"#!/bin/sh\necho {hook} >> {canary}\n")
        file.chmod(0o755)
    repository.git("config", "core.fsmonitor", f"echo fsmonitor >> {canary}")
    repository.put(mine="mine\n")
    canary.unlink(missing_ok=True)
    before = {path: path.read_bytes() for path in repository.path.rglob("*") if path.is_file()}
    async with home.client() as client:
        run_id = await changed_by_a_run(client, home, repository, write("project/code", WANTED))
    code, applied = verb(home, run_id, "--branch", "team/ten")
    assert (code, applied["status"], applied["branch"]) == (0, "applied", "team/ten")
    assert not canary.exists()
    after = {path: path.read_bytes() for path in repository.path.rglob("*") if path.is_file()}
    assert {path: after.get(path) for path in before} == before
    for name in ("hooks", "fsmonitor"):
        repository.git(
            "config", f"core.{'hooksPath' if name == 'hooks' else name}", "/dev/null" if name == "hooks" else "false"
        )
    assert repository.git("show", "team/ten:code") == WANTED
    assert repository.git("diff", "--name-only", "main", "team/ten") == "code\n"
    assert repository.git("log", "-1", "--format=%s", "team/ten") == "Count in words\n"
    assert repository.git("fsck", "--strict") == ""
    assert repository.git("symbolic-ref", "HEAD") == "refs/heads/main\n"
    assert verb(home, run_id, "--branch", "team/ten")[0] == 1, "a branch that is there is left alone"
    assert verb(home, run_id, "--branch", "--upload-pack=x")[0] != 0


async def test_a_branch_stands_on_what_is_committed_or_is_refused(home: TempHome, repository: Repository) -> None:
    repository.commit(code=CODE)
    repository.put(fresh="a\n")
    before = repository.fingerprint()
    async with home.client() as client:
        run_id = await changed_by_a_run(client, home, repository, write("project/fresh", "a\nb\n"))
    code, refused = verb(home, run_id, "--branch", "team")
    assert (code, [one["path"] for one in refused["conflicts"]]) == (1, ["project/fresh"])
    repository.put(**{".gitattributes": "*.bin filter=lfs\n"})
    assert repository.git("branch", "--list", "team") == ""
    (repository.path / ".gitattributes").unlink()
    assert repository.fingerprint() == before


async def test_what_git_would_convert_is_on_no_branch(home: TempHome, repository: Repository) -> None:
    repository.commit(**{".gitattributes": "*.psd filter=lfs\n", "code": CODE})
    (repository.path / "code").write_bytes(CODE.replace("\n", "\r\n").encode())  # as with core.autocrlf
    steps = write("project/x.psd", "x\n"), write("project/code", WANTED.replace("\n", "\r\n"))
    async with home.client() as client:
        run_id = await changed_by_a_run(client, home, repository, *steps)
    code, refused = verb(home, run_id, "--branch", "team")
    assert code == 1
    assert "git converts its line endings on commit" in refused["conflicts"][0]["reason"]
    code, refused = verb(home, run_id, "--branch", "team", "--paths", "project/x.psd")
    assert code == 1
    assert "filter=lfs" in refused["conflicts"][0]["reason"]
    assert verb(home, run_id)[1]["status"] == "applied", "the working tree takes it as it is"


async def test_what_was_changed_since_is_kept_when_a_patch_is_taken_back(
    home: TempHome, repository: Repository
) -> None:
    repository.commit(code=CODE)
    async with home.client() as client:
        run_id = await changed_by_a_run(client, home, repository, write("project/code", WANTED))
    assert verb(home, run_id)[0] == 0
    repository.put(code=WANTED.replace("line 19\n", "mine\n"))
    assert verb(home, run_id, "--undo")[1]["status"] == "undone"
    assert (repository.path / "code").read_text() == CODE.replace("line 19\n", "mine\n")

    assert verb(home, run_id)[0] == 0
    repository.put(code=CONFLICT.replace("line 19\n", "mine\n"))
    before = repository.fingerprint()
    assert verb(home, run_id, "--undo")[1]["status"] == "conflicts"
    assert repository.fingerprint() == before


async def test_a_person_reads_what_is_done(home: TempHome, repository: Repository) -> None:
    repository.commit(code=CODE)
    async with home.client() as client:
        run_id = await changed_by_a_run(client, home, repository, write("project/code", WANTED))
    told = run_command(home, SERVER_MODULE, "apply", run_id[:12], "--dry-run")
    assert "modified project/code +1 -1" in told.stdout
    assert "repeat the command without --dry-run" in told.stdout
    assert run_command(home, SERVER_MODULE, "apply", "run-none").returncode == 3


# -- at the end of a run ----------------------------------------------------------------------------------------------


def start(home: TempHome, place: Path, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    """Run `massgen` in a directory, with a text on standard input."""
    command = [home.python, "-m", COMMAND_MODULE, *arguments]
    return subprocess.run(
        command, cwd=place, env=home.environ, input=given, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize(
    "options",
    [["--automation"], ["--apply"], ["--apply", "--quiet"], ["--apply", "--json"], ["--apply", "--automation"]],
    ids=" ".join,
)
def test_with_consent_a_command_without_a_terminal_applies_at_its_end(
    home: TempHome, repository: Repository, options: list[str]
) -> None:
    repository.commit(code=CODE)
    repository.put(code=DIRTY)
    config = config_of(home, repository, write("project/code", BOTH))
    done = run_command(home, COMMAND_MODULE, "--config", config, *options, "q")
    assert done.returncode == 0
    assert ("APPLIED: 1 file" in done.stdout + done.stderr) == ("--quiet" not in options)
    assert (repository.path / "code").read_text() == BOTH


@pytest.mark.parametrize("options", [[], ["--quiet"], ["--json"], ["--plain"], ["--no-logs"]], ids=" ".join)
def test_without_consent_a_command_without_a_terminal_changes_nothing_and_names_the_command_to_apply(
    home: TempHome, repository: Repository, options: list[str]
) -> None:
    repository.commit(code=CODE)
    before = repository.fingerprint()
    config = config_of(home, repository, write("project/code", WANTED))
    done = run_command(home, COMMAND_MODULE, "--config", config, *options, "q")
    assert done.returncode == 0
    assert repository.fingerprint() == before
    if "--no-logs" in options:
        assert "NOT_APPLIED: 1 file; --no-logs would lose the changes; leave it out, or pass --apply" in done.stderr
        return
    (line,) = (line for line in done.stderr.splitlines() if line.startswith("NOT_APPLIED"))
    offered = re.fullmatch(r"NOT_APPLIED: 1 file; apply them with `massgen (apply run-\w+)`", line)
    assert offered is not None, line
    assert run_command(home, SERVER_MODULE, *offered[1].split()).returncode == 0
    assert (repository.path / "code").read_text() == WANTED


def test_a_conversation_in_a_pipe_applies_nothing_unasked(home: TempHome, repository: Repository) -> None:
    repository.commit(code=CODE)
    before = repository.fingerprint()
    config = config_of(home, repository, write("project/code", WANTED))
    told = start(home, home.work, "--config", config, given="Change it\n/quit\n")
    assert (told.returncode, "NOT_APPLIED: 1 file; apply them with" in told.stdout) == (0, True)
    assert repository.fingerprint() == before
    (repository.path / "code").chmod(0o444)
    refused = start(home, home.work, "--config", config, "--apply", given="Change it\n/quit\n")
    assert (refused.returncode, "code: is read-only" in refused.stdout) == (2, True)


def test_a_config_that_came_with_the_directory_applies_unasked_only_after_a_person_accepted_that(
    home: TempHome, repository: Repository
) -> None:
    repository.commit(code=CODE)
    team = json.loads(Path(config_of(home, repository, write("project/code", WANTED))).read_text())
    place = repository.path / ".massgen" / "config.yaml"
    place.parent.mkdir()
    place.write_text(json.dumps({**team, "apply": "always"}))
    before = repository.fingerprint()
    refused = start(home, repository.path, "q")
    assert refused.returncode == 1
    assert "! applies: its changes to these files, without asking" in refused.stderr
    assert repository.fingerprint() == before
    done = start(home, repository.path, "--trust", "q")
    assert "APPLIED: 1 file" in done.stderr, done.stderr
    assert (repository.path / "code").read_text() == WANTED


def test_a_command_tells_a_conflict_and_leaves_the_files_alone(home: TempHome, repository: Repository) -> None:
    repository.commit(code=CODE)
    (repository.path / "code").chmod(0o444)
    before = repository.fingerprint()
    config = config_of(home, repository, write("project/code", WANTED))
    for options in (["--automation"], ["--apply"], []):
        done = run_command(home, COMMAND_MODULE, "--config", config, *options, "q")
        assert done.returncode == 2, options
        assert "NOT_APPLIED: your files are unchanged; project/code: is read-only" in done.stdout + done.stderr
        assert repository.fingerprint() == before


async def test_files_that_fail_required_checks_are_not_applied_unasked(
    home: TempHome, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in home.environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(home.work)
    repository.commit(code=CODE)
    before = repository.fingerprint()
    config = config_of(home, repository, write("project/code", WANTED), checks_policy="required")
    check = f"test $(wc -c < code) = {len(CODE)}"
    done = run_command(home, COMMAND_MODULE, "--config", config, "--check", check, "--automation", "q")
    assert f"NOT_APPLIED: the final files fail {check}; apply them with `massgen apply run-" in done.stdout
    assert done.returncode == 2
    applied = (await massgen.run("q", config=config, checks=[check]))["applied"]
    assert (applied["status"], applied["files"]) == ("clean", ["project/code"])
    assert applied["note"] == f"The final files fail {check}, so massgen didn't apply the changes."
    assert repository.fingerprint() == before


def colour_of(window: Terminal, text: str) -> str:
    """Of a line of the window that begins so."""
    (row,) = (y for y, line in enumerate(window.rows) if line.startswith(text))
    return window.screen.buffer[row][0].fg


def test_a_person_sees_the_diff_in_colours_and_decides(home: TempHome, repository: Repository) -> None:
    repository.commit(code=CODE)
    before = repository.fingerprint()
    config = config_of(home, repository, write("project/code", WANTED))
    with terminal(home, "--config", config, "Count in words", size=(100, 60)) as window:
        window.wait_for("Apply 1 changed file (y/n) [y]:")
        assert colour_of(window, "+line ten") == "green"
        assert colour_of(window, "-line 10") == "red"
        assert repository.fingerprint() == before, "nobody has said yes yet"
        window.type("n\r")
        window.wait_for("NOT_APPLIED: you said no; apply them with `massgen apply run-")
        assert window.leave() == 0
    assert repository.fingerprint() == before
    with terminal(home, "--config", config, "Count in words", size=(100, 60)) as window:
        window.wait_for("Apply 1 changed file (y/n) [y]:")
        window.type("\r")
        window.wait_for("APPLIED: 1 file; `massgen apply --undo run-")
        assert window.leave() == 0
    assert (repository.path / "code").read_text() == WANTED


async def test_python_applies_at_the_end_and_tells(
    home: TempHome, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in home.environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(home.work)
    repository.commit(code=CODE)
    config = config_of(home, repository, write("project/code", WANTED))
    result = await massgen.run("q", config=config, enable_logging=True)
    assert result["applied"] == {"status": "applied", "files": ["project/code"], "conflicts": []}
    assert (repository.path / "code").read_text() == WANTED
    (repository.path / "code").write_text(CODE)
    (repository.path / "code").chmod(0o444)
    result = await massgen.run("q", config=config)
    assert result["applied"]["status"] == "conflicts"
    assert (repository.path / "code").read_text() == CODE
    assert result["final_answer"] == "done"


def test_whose_terminal_is_closed_at_the_question_is_told_later_how_to_apply(
    home: TempHome, repository: Repository
) -> None:
    repository.commit(code=CODE)
    config = config_of(home, repository, write("project/code", WANTED))
    with terminal(home, "--config", config, "Count in words", size=(100, 60)) as window:
        window.wait_for("Apply 1 changed file (y/n) [y]:")
    with terminal(home, "--config", config, size=(200, 60)) as window:
        told = window.wait_for("You: ")
    left = re.search(r"has since ended \(completed; .*\); show it with: massgen result (run-\w+)", told)
    assert left, told
    for bringing in ("To apply it: `massgen apply run-", "Applied at "):
        assert f"\n{bringing}" in run_command(home, SERVER_MODULE, "result", left[1]).stdout
        assert run_command(home, SERVER_MODULE, "apply", left[1]).returncode == 0
