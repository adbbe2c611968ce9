"""What every door tells of an apply: what was cut off before, what is left out, what was refused, and who decides."""

import os
import pty
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

import massgen_mcp as massgen
from massgen_mcp.changes.apply_records import ApplyPhase, Intent, IntentPart, write_intent
from massgen_mcp.changes.obstacles import Obstacle
from massgen_mcp.changes.transaction import Settled
from massgen_mcp.runs.patches.application import Application
from massgen_mcp.server import results
from tests.changes.conftest import Repository
from tests.changes.test_apply import CODE, CONFLICT, WANTED, changed_by_a_run, config_of, verb, write
from tests.commands import run_command
from tests.harness import COMMAND_MODULE, SERVER_MODULE, TempHome, agent, call, expect_error, home
from tests.terminal import terminal

__all__ = ["home"]

CUT_OFF = "An earlier apply of run-earlier was interrupted midway; massgen has undone it."


def cut_off(home: TempHome, directory: Path, phase: ApplyPhase = "staging", **told: Any) -> None:
    """What an apply of another run leaves that was killed before it changed anything, or later."""
    (home.path / "applying").mkdir(mode=0o700, parents=True, exist_ok=True)
    part = IntentPart("other", str(directory), (), staging=".massgen-apply-x")
    write_intent(home.path / "applying" / "x.json", Intent((part,), {"run_id": "run-earlier", **told}, phase))


async def test_what_was_cut_off_before_is_told_whatever_this_call_comes_to(
    home: TempHome, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit(code=CODE)
    async with home.client() as client:
        run_id = await changed_by_a_run(client, home, repository, write("project/code", WANTED))
        cut_off(home, repository.path)
        assert CUT_OFF in (await expect_error(client, "apply_result", run_id=run_id, paths=["absent"]))[1]
        cut_off(home, repository.path)
        assert (await call(client, "apply_result", run_id=run_id))["note"] == CUT_OFF
        assert "note" not in await call(client, "apply_result", run_id=run_id), "once is enough"
    repository.put(code=CONFLICT)
    cut_off(home, repository.path)
    assert CUT_OFF in run_command(home, SERVER_MODULE, "apply", run_id).stderr

    repository.put(code=CODE)
    config = config_of(home, repository, write("project/code", CONFLICT))
    cut_off(home, repository.path)
    assert CUT_OFF in run_command(home, COMMAND_MODULE, "--config", config, "--apply", "--quiet", "q").stderr
    repository.put(code=CODE)
    (repository.path / "code").chmod(0o444)
    cut_off(home, repository.path)
    done = run_command(home, COMMAND_MODULE, "--config", config, "--automation", "q")
    assert re.search(
        rf"^NOT_APPLIED: your files are unchanged; .*apply them with `.*`\. {CUT_OFF}$", done.stdout, re.MULTILINE
    )

    for name, value in home.environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(home.work)
    cut_off(home, repository.path)
    assert (await massgen.run("q", config=config))["applied"]["note"] == CUT_OFF


async def test_nothing_is_changed_where_it_cannot_be_written_down(home: TempHome, repository: Repository) -> None:
    repository.commit(code=CODE)
    async with home.client() as client:
        run_id = await changed_by_a_run(client, home, repository, write("project/code", WANTED))
        record = home.run_directory(run_id) / "changes" / "applied.json"
        record.write_text("{")
        before = repository.fingerprint()
        for dry_run in (True, False):
            assert (await expect_error(client, "apply_result", run_id=run_id, dry_run=dry_run))[0] == "run_damaged"
            assert repository.fingerprint() == before
        done = {"id": "x", "time": 0.0, "before": "", "after": ""}
        cut_off(home, repository.path, "done", changes=str(record.parent), record=done, undo=False)
        told = (await expect_error(client, "apply_result", run_id=run_id))[1]
        assert "An earlier apply of run-earlier was interrupted after its last change; massgen has cleaned up." in told
        record.unlink()
        assert (await call(client, "apply_result", run_id=run_id, dry_run=False))["status"] == "applied"


async def test_what_cannot_be_settled_is_told_and_keeps_nobody_from_applying_elsewhere(
    home: TempHome, repository: Repository, tmp_path: Path
) -> None:
    repository.commit(code=CODE)
    busy = tmp_path / ("x" * 300)  # no directory can be opened under this name
    async with home.client() as client:
        run_id = await changed_by_a_run(client, home, repository, write("project/code", WANTED))
        record = home.path / "applying" / "x.json"
        for damage in ("{", "[]", '{"v": 1, "phase": "x", "parts": [], "told": {}}', '{"v": 1, "phase": "done"}'):
            cut_off(home, busy)
            record.write_text(damage)
            note = (await call(client, "apply_result", run_id=run_id))["note"]
            assert f"cannot read {record}, the record of an interrupted apply." in note, damage
        part = IntentPart("other", str(busy), (), staging=".massgen-apply-x")
        write_intent(record, Intent((part,), {"run_id": "run-earlier"}, "done"))
        applied = await call(client, "apply_result", run_id=run_id, dry_run=False)
        assert applied["status"] == "applied"
        assert (
            "massgen couldn't finish or undo an earlier apply: the files were changed, but massgen couldn't"
            in applied["note"]
        )
        assert "File name too long" in applied["note"]
        part = IntentPart("project", str(repository.path / busy.name), (), staging=".massgen-apply-x")
        write_intent(record, Intent((part,), {"run_id": "run-earlier"}, "done"))
        assert (await expect_error(client, "apply_result", run_id=run_id))[0] == "store_unavailable"
    record.unlink()


async def test_directories_that_a_run_may_change_lie_apart_or_are_refused_by_name(
    home: TempHome, repository: Repository, tmp_path: Path
) -> None:
    repository.commit(**{"sub/code": CODE})
    inner, link = repository.path / "sub", tmp_path / "link"
    link.symlink_to(repository.path)

    def given(*paths: Path, permission: str = "write") -> list[dict[str, str]]:
        return [{"path": str(path), "permission": permission} for path in paths]

    team = home.config("team", agent("solo", {"answer": "done"}))
    both = home.config("both", agent("solo"), orchestrator={"context_paths": given(inner, repository.path)})
    within = f"{inner} is inside {repository.path}, but both have permission: write; list only {repository.path}"
    async with home.client() as client:
        for paths, told in (
            ((repository.path, inner), within),
            ((repository.path, repository.path), f"{repository.path} is the same as {repository.path}"),
            ((repository.path, link / "sub"), f"{link / 'sub'} is inside {repository.path}"),
            ((link, inner), f"{inner} is inside {link}"),
        ):
            code, message = await expect_error(
                client, "start_run", question="q", config=team, context_paths=given(*paths), dry_run=True
            )
            assert (code, told in message) == ("invalid_arguments", True), message
        readable = [*given(repository.path), *given(inner, permission="read")]
        await call(client, "start_run", question="q", config=team, context_paths=readable, dry_run=True)
    for arguments in (["--config", both, "q"], ["--validate", both]):
        refused = run_command(home, COMMAND_MODULE, *arguments)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert within in refused.stderr
    with pytest.raises(massgen.MassgenError, match="is inside"):
        await massgen.run("q", config=team, context_paths=given(repository.path, inner))


def test_a_reply_has_room_for_whatever_there_is_to_tell() -> None:
    path = "p/" + "x" * 4000
    settled = Settled(
        Intent((), {"run_id": "run-earlier"}, "done"), Path("record"), tuple(f"{path}{n}" for n in range(1000))
    )
    reply = results.applied(
        "run-x", Application("clean", left_out=(Obstacle("x" * 300, "why"),) * 100_000, settled=(settled,) * 1000)
    )
    assert reply.size <= results.MAX_BYTES
    assert reply.left_out
    assert len(reply.left_out) + (reply.more_left_out or 0) == 100_000
    assert reply.note
    assert "and 995 more" in reply.note
    assert "997 more applies were interrupted" in reply.note
    assert "dry_run=false" in reply.next_step


async def test_names_that_are_no_text_are_escaped_in_reasons(home: TempHome, repository: Repository) -> None:
    repository.commit(**{".gitignore": "new\n"})
    async with home.client() as client:
        run_id = await changed_by_a_run(
            client, home, repository, write("project/.gitignore", "\n"), write("project/new", "n\n")
        )
        repository.put(**{"new/a\udcff\x1b[2J": "mine\n"})
        reason = "a directory with this name contains new/a\\xff\\x1b[2J"
        reply = await call(client, "apply_result", run_id=run_id)
    assert reply["conflicts"] == [{"path": "project/new", "reason": reason}]
    assert f"project/new: {reason}" in run_command(home, SERVER_MODULE, "apply", run_id).stdout


async def test_the_verb_speaks_of_its_own_options(home: TempHome, repository: Repository) -> None:
    repository.commit(code=CODE)
    async with home.client() as client:
        run_id = await changed_by_a_run(client, home, repository, write("project/code", WANTED))
    repository.put(code=CONFLICT)
    told = run_command(home, SERVER_MODULE, "apply", run_id)
    assert told.stdout.splitlines()[-1] == (
        "conflicts: Nothing was changed. Merge the diff from `massgen result --view diff` by hand, remove the "
        "files in the way, or use --paths to apply only other files."
    )
    repository.put(code=CODE)
    assert verb(home, run_id)[0] == 0
    repository.put(code=CONFLICT)
    assert "--paths" not in run_command(home, SERVER_MODULE, "apply", "--undo", run_id).stdout


def changing_both(home: TempHome, repository: Repository, only_read: Path) -> str:
    """A team of one that changes a file of a directory that it may change, and one of another."""
    only_read.mkdir()
    (only_read / "manual").write_text("m\n")
    steps = [write("project/code", WANTED), write("docs/manual", "changed by the team\n"), {"answer": "done"}]
    paths = [{"path": str(repository.path), "permission": "write"}, {"path": str(only_read)}]
    return home.config("solo", agent("solo", *steps), orchestrator={"context_paths": paths})


def test_at_a_terminal_that_can_do_nothing_a_person_sees_what_would_be_applied_and_is_asked(
    home: TempHome, repository: Repository, tmp_path: Path
) -> None:
    repository.commit(code=CODE)
    config = changing_both(home, repository, tmp_path / "docs")
    before = repository.fingerprint()
    with terminal(home, "--config", config, "--plain", "q", size=(200, 60), TERM="dumb") as window:
        shown = window.wait_for("Apply 1 changed file (y/n) [y]:")
        assert "+line ten" in shown
        assert "changed by the team" not in shown, "it is given to read only"
        assert not re.search(rb"\x1b\[[0-9;]*m", window.bytes)
        assert repository.fingerprint() == before
        window.type("y\r")
        window.wait_for("APPLIED: 1 file; ", "left out: docs/manual")
        assert window.leave() == 0
    assert (repository.path / "code").read_text() == WANTED
    assert (tmp_path / "docs" / "manual").read_text() == "m\n"


def test_at_a_terminal_where_nobody_can_be_asked_nothing_is_applied(home: TempHome, repository: Repository) -> None:
    repository.commit(code=CODE)
    before = repository.fingerprint()
    config = config_of(home, repository, write("project/code", WANTED))
    ours, theirs = pty.openpty()
    environ = {name: value for name, value in home.environ.items() if name != "CI"}
    done = subprocess.run(
        [home.python, "-m", COMMAND_MODULE, "--config", config, "-"],
        cwd=home.work,
        env={**environ, "TERM": "dumb"},
        input=b"q",
        stdout=theirs,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(theirs)
    os.close(ours)
    assert done.returncode == 0
    assert b"NOT_APPLIED: 1 file; apply them with `massgen apply run-" in done.stderr
    assert b"--view diff` shows the changes, `--view full` every answer and vote" in done.stderr
    assert repository.fingerprint() == before
