"""A team that works on a person's repository: each agent on its own copy, each answer with its patch."""

import json
from pathlib import Path
from typing import Any

import pytest

from massgen_mcp.backends.scripted import ScriptedBackend
from massgen_mcp.config.models.backends import ScriptedBackendConfig
from massgen_mcp.config.models.config import Config
from massgen_mcp.events.agent_work import ModelCallStarted, ToolFinished
from massgen_mcp.events.coordination import AnswerPresented, AnswerSubmitted
from massgen_mcp.events.parts import Changes
from massgen_mcp.events.record import LogRecord
from massgen_mcp.events.run import BaseTaken, RunCompleted, RunFailed
from massgen_mcp.orchestration.conduct import Conductor
from massgen_mcp.runs.engine import FrozenRequest, RunFiles
from massgen_mcp.runs.host.assembly import ModelAccess, RunResources, assemble
from massgen_mcp.runs.host.execute import RunContext, execute_run
from massgen_mcp.runs.host.working_copies import prepare_copies
from tests.changes.conftest import Repository
from tests.in_memory import EventList
from tests.stage import Listener, text_of
from tests.teams import Act, Ended, Script, run_team, team

CODE = "".join(f"line {number}\n" for number in range(1, 21))


def write(path: str, content: str) -> dict[str, Any]:
    return {"call": "write_file", "arguments": {"path": path, "content": content}}


def read(path: str) -> dict[str, Any]:
    return {"call": "read_file", "arguments": {"path": path}}


def config_of(repository: Repository, *scripts: Script, permission: str = "read", **orchestrator: Any) -> Config:
    paths = [{"path": str(repository.path), "permission": permission}]
    return team(*scripts, orchestrator={"context_paths": paths, **orchestrator})


def listed(changes: Changes | None) -> list[tuple[str, str, int | None, int | None]]:
    assert changes is not None
    return [(file.path, file.kind, file.added, file.removed) for file in changes.files]


async def test_every_answer_carries_its_patch_and_the_winners_is_that_of_the_run(
    tmp_path: Path, repository: Repository
) -> None:
    repository.commit(code=CODE, other="o\n")
    repository.put(code=CODE.replace("line 3\n", "line three, not committed\n"))
    before = repository.fingerprint()
    changed = (repository.path / "code").read_text().replace("line 10\n", "line ten\n")
    first: Script = [write("project/code", changed), {"answer": "ten in words"}, {"vote": "own"}]
    second: Script = [write("project/new", "n\n"), {"answer": "a new file"}, {"vote": "ten in words"}]

    ended = await run_team(tmp_path, config_of(repository, first, second, permission="write"))

    assert ended.snapshot.state == "completed"
    (taken,) = ended.of(BaseTaken)
    assert [(one.name, one.path, one.writable, one.files) for one in taken.directories] == [
        ("project", str(repository.path), True, 2)
    ]
    answers = {answer.agent: answer.changes for answer in ended.of(AnswerSubmitted)}
    assert listed(answers["agent_a"]) == [("project/code", "modified", 1, 1)]
    assert listed(answers["agent_b"]) == [("project/new", "added", 1, 0)]
    (completed,) = ended.of(RunCompleted)
    assert listed(completed.changes) == [("project/code", "modified", 1, 1)]
    patch = ended.directory.path / "final" / "agent_a" / "changes.patch"
    assert completed.changes is not None
    assert (completed.changes.patch, completed.changes.patch_bytes) == (
        "final/agent_a/changes.patch",
        patch.stat().st_size,
    )
    assert repository.fingerprint() == before, "no agent, and no run by itself, changes what the caller named"
    repository.git("apply", "-p2", str(patch))
    assert (repository.path / "code").read_text() == changed


async def test_readers_of_an_answer_find_its_patch_and_its_changed_files_and_no_others(
    tmp_path: Path, repository: Repository
) -> None:
    repository.commit(**{"src/code": CODE, "src/other": "o\n"})
    maker: Script = [
        write("project/src/code", "all new\n"),
        write("notes.md", "beside\n"),
        {"answer": "made"},
        {"vote": "own"},
    ]
    reader: Script = [
        {"answer": "?"},
        {"call": "list_files", "arguments": {"path": "peers", "recursive": True}},
        {"call": "search_files", "arguments": {"pattern": "all new", "path": "peers"}},
        {"vote": "made"},
    ]
    ended = await run_team(tmp_path, config_of(repository, maker, reader))
    (listing, search) = ended.of(ToolFinished, "agent_b")
    of_maker = [
        line.split()[0].split("/", 2)[2]
        for line in listing.result.splitlines()
        if "peers/" in line and line.count("/") > 1
    ]
    assert {"changes.patch", "notes.md", "project/src/code"} <= set(of_maker)
    assert "other" not in listing.result
    assert "changes.patch" in search.result


async def test_a_ballot_shows_what_each_answer_changes_bounded_and_says_where_the_whole_is(
    tmp_path: Path, repository: Repository
) -> None:
    repository.commit(code=CODE)
    huge = "".join(f"a line of a very long file, number {number}\n" for number in range(5_000))
    scripts: list[Script] = [
        [write("project/code", CODE.replace("line 4\n", "line four\n")), {"answer": "small"}],
        [write("project/huge", huge), {"answer": "huge"}],
        [{"answer": "nothing to change"}],
    ]
    config = config_of(repository, *scripts)
    backends = [agent.backend for agent in config.agents]
    listeners = [Listener(ScriptedBackend(one)) for one in backends if isinstance(one, ScriptedBackendConfig)]
    directory = RunFiles.create(tmp_path / "run", FrozenRequest("?", config))
    copies, _ = prepare_copies(directory, directory.read_request(), {}, begun=False)
    resources = RunResources(tuple(map(ModelAccess, listeners)), copies=copies)
    run_spec = assemble(directory, "r", directory.read_request(), resources)
    await Conductor(run_spec, EventList()).conduct()

    first, *_, voting = (text_of(request) for request in listeners[0].requests if request.tools)
    assert "Your own copy of context/project is project/" in first
    assert "-line 4\n+line four\n" in voting
    assert "1 file changed, +1 -1 lines:" in voting
    assert "No file is changed." in voting
    assert "+5000 -0" in voting
    assert len(voting) < 40_000
    assert "/changes.patch]" in voting


async def test_the_winner_presents_from_the_files_of_its_answer_and_may_change_them(
    tmp_path: Path, repository: Repository
) -> None:
    repository.commit(code=CODE)
    winner: Script = [
        write("project/code", "as voted for\n"),
        {"answer": "chosen"},
        write("project/code", "changed after the answer\n"),
        write("project/stray", "made after the answer\n"),
        {"vote": "own"},
        read("project/code"),
        write("project/last", "made while presenting\n"),
        {"say": "The final text."},
    ]
    config = config_of(
        repository, winner, [{"answer": "other"}, {"vote": "chosen"}], final_answer_strategy="winner_present"
    )
    ended = await run_team(tmp_path, config)
    (presented,) = ended.of(AnswerPresented)
    assert presented.answer == "The final text."
    assert ended.of(ToolFinished, "agent_a")[-2].result == "as voted for\n"
    assert listed(presented.changes) == [("project/code", "modified", 1, 20), ("project/last", "added", 1, 0)]
    assert listed(ended.of(RunCompleted)[0].changes) == listed(presented.changes)


async def test_an_answer_that_is_reused_keeps_its_own_patch_whatever_its_author_did_later(
    tmp_path: Path, repository: Repository
) -> None:
    repository.commit(code=CODE)
    winner: Script = [
        write("project/code", "as voted for\n"),
        {"answer": "chosen"},
        write("project/code", "changed after the answer\n"),
        {"vote": "own"},
    ]
    config = config_of(
        repository, winner, [{"answer": "other"}, {"vote": "chosen"}], final_answer_strategy="winner_reuse"
    )
    ended = await run_team(tmp_path, config)
    patch = (ended.directory.path / "final" / "agent_a" / "changes.patch").read_text()
    assert "+as voted for" in patch
    assert "changed after" not in patch
    assert (ended.directory.path / "final/agent_a/workspace/project/code").read_text() == "as voted for\n"


@pytest.mark.parametrize("cut", ["answer_submitted", "vote_cast", "presentation_started", "answer_presented"])
async def test_a_resumed_run_keeps_the_base_and_the_patches(tmp_path: Path, repository: Repository, cut: str) -> None:
    repository.commit(code=CODE)
    scripts: list[Script] = [
        [write("project/code", "mine\n"), {"answer": "mine"}, {"vote": "own"}, {"say": "Mine."}],
        [{"answer": "other"}, {"vote": "mine"}],
    ]
    config = config_of(repository, *scripts, final_answer_strategy="winner_present")
    whole = await run_team(tmp_path, config)
    journal = whole.directory.path / "events.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    last = max(at for at, line in enumerate(lines) if json.loads(line.split(b"\t")[-1])["event"]["type"] == cut)
    journal.write_bytes(b"".join(lines[: last + 1]))
    repository.put(code="changed by its owner since\n")

    state = await execute_run(whole.directory, "run-test", RunContext({}))

    records: list[LogRecord] = whole.directory.event_log.read()
    again = Ended(state, records, whole.directory)
    assert state.state == "completed"
    assert len(again.of(BaseTaken)) == 1
    assert again.of(RunCompleted)[0].changes == whole.of(RunCompleted)[0].changes
    patch = (whole.directory.path / "final" / "agent_a" / "changes.patch").read_text()
    assert "+mine" in patch
    assert "since" not in patch


async def test_a_run_that_is_cut_short_names_the_patch_of_its_best_answer(
    tmp_path: Path, repository: Repository
) -> None:
    repository.commit(code=CODE)
    config = config_of(
        repository, [write("project/code", "mine\n"), {"answer": "mine"}, {"hang": True}], [{"hang": True}]
    )
    ended = await run_team(tmp_path, config, act=Act(AnswerSubmitted, "cancel"))
    assert ended.snapshot.state == "cancelled"
    best = ended.snapshot.best_changes
    assert listed(best) == [("project/code", "modified", 1, 20)]
    assert best is not None
    assert best.patch is not None
    assert "+mine" in (ended.directory.path / best.patch).read_text()


async def test_a_run_that_ends_after_the_final_answer_was_written_has_its_patch(
    tmp_path: Path, repository: Repository
) -> None:
    repository.commit(code=CODE)
    winner: Script = [
        write("project/code", "drafted\n"),
        {"answer": "mine"},
        {"vote": "own"},
        write("project/code", "final\n"),
        {"say": "Mine."},
        {"hang": True},
    ]
    judged: dict[str, Any] = {"coordination": {"max_orchestration_restarts": 1}}
    other: Script = [{"answer": "other"}, {"vote": "mine"}]
    config = config_of(repository, winner, other, final_answer_strategy="winner_present", **judged)
    ended = await run_team(tmp_path, config, act=Act(AnswerPresented, "cancel"))
    assert ended.snapshot.state == "cancelled"
    best = ended.snapshot.best_changes
    assert best is not None
    assert best.patch is not None
    assert "+final" in (ended.directory.path / best.patch).read_text()


async def test_the_state_directory_and_the_runs_own_are_in_no_base(repository: Repository) -> None:
    repository.commit(code=CODE, **{"state/tracked": "token"})
    repository.put(**{"state/untracked": "token"})
    listing: Script = [{"call": "list_files", "arguments": {"path": "project", "recursive": True}}, {"answer": "seen"}]
    environ = {"MASSGEN_MCP_HOME": str(repository.path / "state")}
    ended = await run_team(repository.path, config_of(repository, listing), environ=environ)
    assert [line.split()[0] for line in ended.of(ToolFinished)[0].result.splitlines()] == ["project/code"]
    assert ended.of(BaseTaken)[0].directories[0].files == 1


async def test_what_cannot_have_a_base_can_be_read_as_before_and_the_record_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "notes").write_text("n\n")
    (tmp_path / "alone.txt").write_text("alone\n")
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    script: Script = [read("context/folder/notes"), read("context/alone.txt"), {"answer": "read"}]
    paths = [{"path": str(folder), "permission": "read"}, {"path": str(tmp_path / "alone.txt"), "permission": "write"}]
    ended = await run_team(tmp_path, team(script, orchestrator={"context_paths": paths}))
    (taken,) = ended.of(BaseTaken)
    assert taken.tree is None
    assert taken.refused == (
        "context/folder is read-only: git is not installed; version 2.38 or newer is needed to work on files",
        "context/alone.txt is read-only: it is a single file; to let agents change it, pass its directory",
    )
    assert [one.result for one in ended.of(ToolFinished)] == ["n\n", "alone\n"]


async def test_a_directory_to_change_that_cannot_be_copied_ends_the_run_before_a_model_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    paths = [{"path": str(folder), "permission": "write"}]
    ended = await run_team(tmp_path, team([{"answer": "done"}], orchestrator={"context_paths": paths}))
    (failed,) = ended.of(RunFailed)
    assert failed.reason == "config_invalid"
    assert f"cannot copy {folder}, so agents couldn't change anything there: git is not installed" in failed.message
    assert not ended.of(ModelCallStarted)
