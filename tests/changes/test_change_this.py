"""A turn of a session goes on with what an earlier one changed and nobody applied; its question comments on lines."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

import massgen_mcp as massgen
from massgen_mcp.config.adjusted import given_path, with_context_paths
from massgen_mcp.config.loader import load_config
from massgen_mcp.errors import MassgenError
from massgen_mcp.home import find_home
from massgen_mcp.request.team import Team
from massgen_mcp.runs.service import RunService
from massgen_mcp.runs.store.opening import local_engine
from tests.changes.conftest import Repository
from tests.changes.test_apply import CODE, verb, write
from tests.changes.test_apply_part import BOTH, FIRST
from tests.commands import run_command
from tests.harness import COMMAND_MODULE, SERVER_MODULE, TempHome, agent, call, events_of, expect_error, home
from tests.raw_double import Seen, answering, reply
from tests.run_requests import run_request
from tests.system_messages import Model

__all__ = ["home"]

LAST = "line 18\n"
EDIT: dict[str, Any] = {
    "call": "edit_file",
    "arguments": {"path": "project/code", "old": LAST, "new": "line eighteen\n"},
}


def two(home: TempHome) -> str:
    """bo wins with the second line changed; ada is dropped after it changed the same, and made a file."""
    return home.config(
        "two",
        agent("ada", write("project/code", FIRST), write("project/new", "a\nb\n"), model="m-1"),
        agent("bo", write("project/code", FIRST), {"answer": "done"}, model="m-1"),
        orchestrator={"max_steps_per_round": 2},
    )


def solo(home: TempHome, *steps: dict[str, Any]) -> str:
    return home.config("solo", agent("cy", *steps, {"answer": "changed"}))


def turn(repository: Repository, config: str, **arguments: Any) -> dict[str, Any]:
    """The arguments of a turn."""
    paths = [{"path": str(repository.path), "permission": "write"}]
    given = {"question": "Go on", "config": config, "context_paths": paths, "session_id": "s", "wait_seconds": 50}
    return given | arguments


async def begun(client: Client, home: TempHome, repository: Repository) -> str:
    """The id of the first turn, which has ended."""
    repository.commit(code=CODE)
    return (await call(client, "start_run", **turn(repository, two(home))))["run_id"]


async def test_the_next_turn_changes_an_unapplied_patch_and_its_own_patch_holds_both(
    home: TempHome, repository: Repository
) -> None:
    async with home.client() as client:
        first = await begun(client, home, repository)
        before = repository.fingerprint()
        started = await call(client, "start_run", **turn(repository, solo(home, EDIT), changes_of="winner"))
        assert f"The run starts from what bo changed in {first} (1 file)" in started["next_step"]
        second = started["run_id"]
        (taken,) = (one for one in events_of(home.run_directory(second)) if one["type"] == "base_taken")
        assert taken["begins_with"] == {"run_id": first, "agent": "bo", "files": 1}
        diff = (await call(client, "get_result", run_id=second, view="diff"))["answer"]
        assert [line for line in diff.splitlines() if line.startswith("+") and "+++" not in line] == [
            "+line two",
            "+line eighteen",
        ]
        third = (await call(client, "start_run", **turn(repository, solo(home), changes_of="cy")))["run_id"]
    assert repository.fingerprint() == before
    run_command(home, SERVER_MODULE, "prune", first, second)
    assert verb(home, third)[1]["status"] == "applied", "what a patch needs is kept with its own run"
    assert (repository.path / "code").read_text() == BOTH
    assert verb(home, third, "--undo")[1]["status"] == "undone"
    assert repository.fingerprint() == before


async def test_a_turn_is_refused_if_another_one_has_ended_since_its_changes_were_found(
    home: TempHome, repository: Repository
) -> None:
    async with home.client() as client:
        first = await begun(client, home, repository)
        service = RunService(local_engine(find_home(home.environ)), home.environ)
        try:
            given = [given_path(str(repository.path), "write")]
            config = with_context_paths(load_config(solo(home, EDIT), environ={}), given)
            request = run_request("Go on", Team(config, "test", home.environ), session_id="s", changes_of="winner")
            prepared = await service.prepare(request)
            await call(client, "start_run", **turn(repository, solo(home)))
            with pytest.raises(MassgenError, match="another turn of this session has just ended") as refused:
                await service.start(prepared)
            assert refused.value.code == "session_busy"
            again, _ = await service.start(await service.prepare(request))
            begins_with = again.directory.read_request().begins_with
            assert begins_with is not None
            assert begins_with.run_id == first
        finally:
            service.close()


async def test_it_can_go_on_with_any_agents_changes_also_of_one_that_was_dropped(
    home: TempHome, repository: Repository
) -> None:
    async with home.client() as client:
        await begun(client, home, repository)
        given = turn(repository, solo(home, write("project/more", "m\n")), changes_of="ada")
        run_id = (await call(client, "start_run", **given))["run_id"]
        files = (await call(client, "get_result", run_id=run_id))["files"]["listed"]
        assert [one["path"] for one in files] == ["project/code", "project/more", "project/new"]
        code, told = await expect_error(client, "start_run", **turn(repository, solo(home), changes_of="ada"))
        assert (code, told) == ("invalid_arguments", "`agent` must be one of: cy"), "the newest turn counts"


async def test_what_the_person_changed_in_between_is_kept_or_is_named(home: TempHome, repository: Repository) -> None:
    async with home.client() as client:
        await begun(client, home, repository)
        mine = CODE.replace("line 10\n", "my line\n")
        repository.put(code=mine)
        given = turn(repository, solo(home, EDIT), changes_of="winner")
        run_id = (await call(client, "start_run", **given))["run_id"]
        assert (await call(client, "apply_result", run_id=run_id, dry_run=False))["status"] == "applied"
        assert (repository.path / "code").read_text() == BOTH.replace("line 10\n", "my line\n")
        repository.put(code=mine.replace("line 2\n", "my line 2\n"))
        before = repository.fingerprint()
        runs = [one["run_id"] for one in (await call(client, "list_runs"))["runs"]]
        code, told = await expect_error(client, "start_run", **given)
        assert code == "invalid_arguments"
        assert "no longer apply: project/code: you and the run changed the same lines" in told
        assert [one["run_id"] for one in (await call(client, "list_runs"))["runs"]] == runs, "no run has begun"
    assert repository.fingerprint() == before


async def test_a_turn_whose_directory_changed_while_it_waited_fails_by_name(
    home: TempHome, repository: Repository
) -> None:
    home.extra["MASSGEN_MCP_MAX_RUNNING"] = "1"
    async with home.client() as client:
        await begun(client, home, repository)
        hangs = home.config("hangs", agent("z", {"hang": True}))
        first = (await call(client, "start_run", question="q", config=hangs))["run_id"]
        given = turn(repository, solo(home, EDIT), changes_of="winner", wait_seconds=0)
        second = (await call(client, "start_run", **given))["run_id"]
        repository.put(code=CODE.replace("line 2\n", "my line 2\n"))
        await call(client, "control_run", run_id=first, action="cancel")
        await call(client, "wait_run", run_id=second)
    end = events_of(home.run_directory(second))[-1]
    assert (end["type"], end["reason"]) == ("run_failed", "config_invalid")
    assert end["message"] == "your files conflict with the earlier changes that this run builds on: project/code"


async def test_a_dry_run_says_what_a_turn_would_begin_with_or_why_it_cannot(
    home: TempHome, repository: Repository
) -> None:
    async with home.client() as client:
        first = await begun(client, home, repository)
        given = turn(repository, solo(home), changes_of=f"{first}/ada", dry_run=True)
        planned = await call(client, "start_run", **given)
        assert f"The run starts from what ada changed in {first} (2 files)" in planned["note"]
        for wanted, told in (
            ("eve", "`agent` must be one of"),
            ("run-x/ada", "no finished turn of this session has changed your files"),
        ):
            _, message = await expect_error(client, "start_run", **{**given, "changes_of": wanted})
            assert told in message, message
        assert len((await call(client, "list_runs"))["runs"]) == 1


async def test_what_cannot_be_gone_on_with_is_refused_before_the_run(
    home: TempHome, repository: Repository, tmp_path: Path
) -> None:
    async with home.client() as client:
        run_id = await begun(client, home, repository)
        config = solo(home)
        other = [{"path": str(tmp_path / "other"), "permission": "write"}]
        (tmp_path / "other").mkdir()
        for wanted, told in (
            ({"changes_of": "winner", "session_id": None}, "pass its session_id"),
            (
                {"changes_of": "winner", "session_id": "another"},
                "no finished turn of this session has changed your files",
            ),
            ({"changes_of": "eve"}, "`agent` must be one of: ada, bo"),
            ({"changes_of": "winner", "context_paths": other}, f"context_paths lacks {repository.path}, which"),
        ):
            _, message = await expect_error(client, "start_run", **turn(repository, config, **wanted))
            assert told in message, message
        run_command(home, SERVER_MODULE, "prune", run_id)
        code, message = await expect_error(client, "start_run", **turn(repository, config, changes_of="winner"))
        assert (code, "massgen has since removed its results" in message) == ("invalid_arguments", True), message


# -- comments ---------------------------------------------------------------------------------------------------------


class Heard(Model):
    """Keeps all that it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.told = ""

    def respond(self, seen: Seen, number: int) -> bytes:
        self.told += "\n".join(str(message["content"]) for message in seen.body["messages"])
        return super().respond(seen, number)


def lists_nothing(seen: Seen) -> bytes | None:
    return None if seen.body else reply(b"{}", status="404 Not Found")


COMMENTS = """\
Two things:
code:3: say what for
project/code:19: why not this one, too?
  absent:7: is no comment, as it is indented
"""


async def test_agents_are_shown_the_lines_that_the_question_comments_on(home: TempHome, repository: Repository) -> None:
    model = Heard()
    async with answering(model.respond, lists_nothing) as double, home.client() as client:
        await begun(client, home, repository)
        backend = {"type": "chatcompletion", "model": "m", "base_url": f"{double.url}/v1"}
        config = home.config("heard", {"id": "cy", "backend": backend})
        given = turn(repository, config, question=COMMENTS, changes_of="winner")
        run_id = (await call(client, "start_run", **given))["run_id"]
        result = await call(client, "get_result", run_id=run_id)
    assert [one["path"] for one in result["files"]["listed"]] == ["project/code"], "it changed nothing more"
    assert "Your copy begins with what an earlier turn changed (1 file)" in model.told
    shown = "project/code:3\n       1 line 1\n-        line 2\n+      2 line two\n       3 line 3\n       4 line 4\n"
    assert shown in model.told
    assert "project/code:19\n      16 line 16\n" in model.told


@pytest.mark.parametrize(
    ("comment", "told"),
    [
        ("code:21: beyond", "code:21: the file has 20 lines"),
        ("code:0: before", "code:0: the file has 20 lines"),
        ("project/absent:1: nothing", "project/absent:1: these changes don't include this file"),
        ("../project/code:1: out", "../project/code:1: these changes don't include this file"),
        ("project/../../../etc/passwd:1: out", "etc/passwd:1: these changes don't include this file"),
        ("/etc/passwd:1: out", "/etc/passwd:1: these changes don't include this file"),
        ("\n".join(["code:1: again"] * 101), "you commented on 101 lines"),
    ],
)
async def test_a_line_that_is_not_there_is_refused_by_name(
    home: TempHome, repository: Repository, comment: str, told: str
) -> None:
    async with home.client() as client:
        await begun(client, home, repository)
        given = turn(repository, solo(home), question=f"Please:\n{comment}\nDo it.", changes_of="winner")
        code, message = await expect_error(client, "start_run", **given)
        assert (code, told in message) == ("invalid_arguments", True), message
        assert len((await call(client, "list_runs"))["runs"]) == 1
        given["changes_of"] = None
        await call(client, "start_run", **given)


# -- the other doors --------------------------------------------------------------------------------------------------


def test_the_command_line_goes_on_with_a_patch_that_was_not_applied(home: TempHome, repository: Repository) -> None:
    repository.commit(code=CODE)
    first = two_to_read(home, repository)
    chat = talk(home, first, "Change it", "/change eve", "Again")
    assert "`agent` must be one of: ada, bo" in chat
    session = next((home.work / ".massgen" / "sessions").iterdir()).name
    config = home.config(
        "one",
        agent("cy", EDIT, {"answer": "changed"}),
        orchestrator={"context_paths": [{"path": str(repository.path), "permission": "write"}]},
    )
    asked = ("--config", config, "--session-id", session, "--automation", "Go on")
    done = run_command(home, COMMAND_MODULE, *asked, "--changes-of", "winner")
    assert "NOTE: The run starts from what bo changed in" in done.stdout
    assert "APPLIED: 1 file" in done.stdout
    assert (repository.path / "code").read_text() == BOTH
    refused = run_command(home, COMMAND_MODULE, "--config", config, "--changes-of", "winner", "Go on")
    assert (refused.returncode, "changes_of" in refused.stderr) == (1, True)


def test_a_conversation_goes_on_with_the_changes_for_one_turn(home: TempHome, repository: Repository) -> None:
    repository.commit(code=CODE)
    config = two_to_read(home, repository)
    chat = talk(home, config, "Change it", "/change", "Again", "More")
    assert "The next turn starts from the winner's changes." in chat
    runs = json.loads(run_command(home, SERVER_MODULE, "runs", "--json").stdout)["runs"]
    logs = sorted((home.work / ".massgen" / "massgen_logs").iterdir())
    begins = [one["begins_with"] for run in logs for one in events_of(run) if one["type"] == "base_taken"]
    assert [one and one["run_id"] for one in begins] == [None, runs[2]["run_id"], None]


async def test_python_goes_on_with_a_patch_that_was_not_applied(
    home: TempHome, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in home.environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(home.work)
    repository.commit(code=CODE)
    first = await massgen.run("q", config=two_to_read(home, repository), enable_logging=True)
    paths = [{"path": str(repository.path), "permission": "write"}]
    session = first["session_id"]
    given: dict[str, Any] = {"context_paths": paths, "changes_of": "winner", "enable_logging": True}
    second = await massgen.run("q", config=solo(home, EDIT), session_id=session, **given)
    assert second["applied"]["files"] == ["project/code"]
    assert (repository.path / "code").read_text() == BOTH
    with pytest.raises(MassgenError, match="no finished turn of this session has changed your files"):
        await massgen.run("q", config=solo(home), **given)


def talk(home: TempHome, config: str, *lines: str) -> str:
    """What a conversation prints that is fed these lines."""
    command = [home.python, "-m", COMMAND_MODULE, "--config", config, "--plain"]
    given = "".join(f"{line}\n" for line in lines)
    done = subprocess.run(
        command, cwd=home.work, env=home.environ, input=given, capture_output=True, text=True, timeout=60, check=False
    )
    return done.stdout


def two_to_read(home: TempHome, repository: Repository) -> str:
    """A team like `two`, whose changes are not applied at the end."""
    return home.config(
        "read",
        agent("ada", {"answer": "nothing"}, {"vote": "done"}),
        agent("bo", write("project/code", FIRST), {"answer": "done"}, {"vote": "own"}),
        orchestrator={"context_paths": [{"path": str(repository.path), "permission": "read"}]},
    )
