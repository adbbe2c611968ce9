"""One agent's fault is one agent's: each seam breaks in turn, and the others bring the run home."""

import json
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest

import massgen_mcp
from massgen_mcp.backends.base import ModelRequest, Part
from massgen_mcp.backends.chatcompletion import ChatCompletionBackend
from massgen_mcp.backends.claude import ClaudeBackend
from massgen_mcp.backends.frameworks.ag2_agent import Ag2Agent
from massgen_mcp.backends.frameworks.claude_code import ClaudeCodeAgent
from massgen_mcp.backends.openai_responses import ResponsesBackend
from massgen_mcp.backends.scripted import ScriptedBackend
from massgen_mcp.config.loader import config_from_data
from massgen_mcp.config.models.config import Config
from massgen_mcp.errors import RunNotCompleted
from massgen_mcp.events.agent_work import ModelCallFailed, ModelCallStarted, ToolFinished
from massgen_mcp.events.coordination import AgentDropped, AnswerSubmitted, PresentationFailed, VoteCast, WinnerChosen
from massgen_mcp.events.record import LogRecord
from massgen_mcp.events.run import RunCompleted, RunFailed
from massgen_mcp.money.tariff import Tariff
from massgen_mcp.orchestration import conduct, final_answer
from massgen_mcp.run_state.resume_point import ResumePoint
from massgen_mcp.runs.engine import RunFiles
from massgen_mcp.runs.host import answers, execute, publishing
from massgen_mcp.runs.host.answers import AnswerGallery
from massgen_mcp.runs.view import status_file
from massgen_mcp.tools.base import CheckedTool
from massgen_mcp.tools.memory import MemoryBoard
from massgen_mcp.workspace.directory import Workspace
from tests.teams import Act, Ended, run_team

SECRET = "planted-value-0123456789"
ENVIRON = {"THE_KEY": SECRET, "ANTHROPIC_API_KEY": SECRET}


class Broken(Exception):
    """A fault of ours, with a secret in its message."""

    def __init__(self) -> None:
        super().__init__(f"broken while it held {SECRET}")


def breaks(*_: Any, **__: Any) -> Any:
    raise Broken


async def breaks_later(*_: Any, **__: Any) -> Any:
    raise ExceptionGroup("of a task group", [ExceptionGroup("inner", [Broken()])])


async def breaks_streaming(self: object, request: ModelRequest) -> AsyncGenerator[Part]:
    del self, request
    raise Broken
    yield


def first_object(original: Any, broken: Any = breaks) -> Any:
    """A method that breaks for the first object that it is called on, and works for all others."""
    seen: list[object] = []

    def method(self: object, *given: Any, **named: Any) -> Any:
        seen.append(self)
        return (broken if self is seen[0] else original)(self, *given, **named)

    return method


def of_agent_a(original: Any, broken: Any = breaks) -> Any:
    """A method that breaks when it is told of agent_a."""

    def method(self: object, *given: Any) -> Any:
        return (broken if "agent_a" in given else original)(self, *given)

    return method


def agents(*script: dict[str, Any], backend: dict[str, Any] | None = None, **settings: Any) -> Config:
    """agent_a with this script or backend, and two whose work must not be lost."""
    first = backend or {"type": "scripted", "script": [*script, {"answer": "41"}, {"vote": "42"}]}
    others = [
        {"type": "scripted", "script": [{"answer": "42"}, {"vote": "own"}]},
        {"type": "scripted", "script": [{"answer": "43"}, {"vote": "42"}]},
    ]
    coordination: dict[str, Any] = {
        "enable_memory_filesystem_mode": True,
        "enable_agent_task_planning": True,
        "use_skills": True,
        "massgen_skills": ["file_search"],
    }
    given: dict[str, Any] = {
        "agents": [{"backend": each} for each in (first, *others)],
        "orchestrator": {"allow_questions": True, "coordination": coordination, **settings},
    }
    return config_from_data(given, "test", environ=ENVIRON)


def check_told(run: Ended, message: str) -> None:
    """The message names a place in the log; there the trace stands, and nowhere the secret."""
    log = (run.directory.path / "massgen.log").read_text()
    place = message.rpartition("massgen.log has the trace: ")[2].rstrip(")")
    assert place.startswith("fault ")
    _, _, trace = log.partition(f"{place}\n")
    assert "Traceback" in trace
    assert "Broken" in trace
    for path in run.directory.path.rglob("*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path


def check_others(run: Ended) -> None:
    for name in ("agent_b", "agent_c"):
        assert run.of(AnswerSubmitted, name)
        assert run.of(VoteCast, name)
        assert not run.of(AgentDropped, name)
    (winner,) = run.of(WinnerChosen)
    assert winner.agent == "agent_b"
    assert run.snapshot.state == "completed"
    assert run.snapshot.final_answer == "42"


# -- an agent's own work ----------------------------------------------------------------------------------------------

TOOLS: list[tuple[str, dict[str, Any]]] = [
    ("read_file", {"path": "a"}),
    ("write_file", {"path": "a", "content": "b"}),
    ("edit_file", {"path": "a", "old": "b", "new": "c"}),
    ("list_files", {}),
    ("search_files", {"pattern": "a"}),
    ("save_memory", {"name": "a", "content": "b"}),
    ("load_memory", {"name": "a"}),
    ("remove_memory", {"name": "a"}),
    ("create_task_plan", {"tasks": []}),
    ("add_task", {"description": "a"}),
    ("update_task", {"id": "a"}),
    ("get_task_plan", {}),
    ("read_skill", {"name": "file_search"}),
    ("ask_the_asker", {"question": "why?"}),
]


@pytest.mark.parametrize(("name", "arguments"), TOOLS, ids=[name for name, _ in TOOLS])
async def test_a_tool_that_breaks_costs_the_team_the_agent_that_called_it(
    name: str, arguments: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CheckedTool, "run", breaks_later)
    run = await run_team(tmp_path, agents({"call": name, "arguments": arguments}), environ=ENVIRON)
    (dropped,) = run.of(AgentDropped)
    assert (dropped.agent, dropped.reason) == ("agent_a", "internal")
    check_told(run, dropped.message)
    check_others(run)


AG2 = {"type": "assistant", "name": "a", "system_message": "s", "llm_config": {"api_type": "openai", "model": "m"}}
WIRES: list[tuple[type[Any], dict[str, Any]]] = [
    (ChatCompletionBackend, {"type": "chatcompletion", "base_url": "http://127.0.0.1:9/v1", "api_key_env": "THE_KEY"}),
    (ResponsesBackend, {"type": "openai", "base_url": "http://127.0.0.1:9/v1", "api_key_env": "THE_KEY"}),
    (ClaudeBackend, {"type": "claude", "base_url": "http://127.0.0.1:9", "api_key_env": "THE_KEY"}),
    (ClaudeCodeAgent, {"type": "claude_code"}),
    (Ag2Agent, {"type": "ag2", "agent_config": AG2}),
    (ScriptedBackend, {"type": "scripted"}),
]


@pytest.mark.parametrize(("kind", "section"), WIRES, ids=[kind.__name__ for kind, _ in WIRES])
async def test_a_wire_that_breaks_costs_the_team_the_agent_behind_it(
    kind: type[Any], section: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if hasattr(kind, "work"):
        monkeypatch.setattr(kind, "work", first_object(kind.work, breaks_later))
    else:
        monkeypatch.setattr(kind, "stream", first_object(kind.stream, breaks_streaming))
    backend = section if kind is Ag2Agent else {"model": "m", **section}
    run = await run_team(tmp_path, agents(backend=backend), environ={**ENVIRON, "OPENAI_API_KEY": SECRET})
    (dropped,) = run.of(AgentDropped)
    assert (dropped.agent, dropped.reason) == ("agent_a", "internal")
    assert [failed.reason for failed in run.of(ModelCallFailed)] == ["internal"]
    check_told(run, dropped.message)
    check_others(run)


async def test_a_backend_that_cannot_be_made_costs_the_team_its_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = execute.make_backend
    calls: list[object] = []

    def make(*given: Any) -> Any:
        calls.append(given)
        return made(*given) if len(calls) > 1 else breaks()

    monkeypatch.setattr(execute, "make_backend", make)
    run = await run_team(tmp_path, agents(), environ=ENVIRON)
    (dropped,) = run.of(AgentDropped)
    assert (dropped.agent, dropped.reason) == ("agent_a", "internal")
    check_told(run, dropped.message)
    check_others(run)


WORK: list[tuple[str, Callable[[pytest.MonkeyPatch], None], bool]] = [
    ("keeping an answer", lambda m: m.setattr(AnswerGallery, "keep", of_agent_a(AnswerGallery.keep)), True),
    ("the snapshot of its files", lambda m: m.setattr(answers, "take_snapshot", once(answers.take_snapshot)), True),
    ("showing it others' files", lambda m: m.setattr(Workspace, "set_peers", first_object(Workspace.set_peers)), True),
    ("finding others' files", lambda m: m.setattr(AnswerGallery, "files", once(AnswerGallery.files)), True),
    ("shared memories", lambda m: m.setattr(MemoryBoard, "text", once(MemoryBoard.text)), False),
    ("the price of its call", lambda m: m.setattr(Tariff, "cost", first_object(Tariff.cost)), False),
]
"""What breaks, how, and whether the agent's answer stands by then."""


def once(original: Any) -> Any:
    """A method that breaks at its first call."""
    calls: list[object] = []

    def method(*given: Any, **named: Any) -> Any:
        calls.append(given)
        return breaks() if len(calls) == 1 else original(*given, **named)

    return method


@pytest.mark.parametrize(("break_it", "answered"), [row[1:] for row in WORK], ids=[title for title, *_ in WORK])
async def test_an_agent_whose_work_breaks_falls_out_alone_and_its_answers_stay(
    break_it: Callable[[pytest.MonkeyPatch], None], answered: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_it(monkeypatch)
    run = await run_team(tmp_path, agents(), environ=ENVIRON)
    (dropped,) = run.of(AgentDropped)
    assert dropped.reason == "internal"
    check_told(run, dropped.message)
    assert bool(run.of(AnswerSubmitted, dropped.agent)) == answered
    others = {"agent_a", "agent_b", "agent_c"} - {dropped.agent}
    assert {vote.agent for vote in run.of(VoteCast)} >= others
    assert run.snapshot.state == "completed"
    assert len(run.snapshot.current_answers) == 2 + answered


async def test_an_answer_that_cannot_be_kept_on_disk_is_still_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even of a lone agent: its text was paid for."""
    monkeypatch.setattr(AnswerGallery, "keep", breaks)
    lone = config_from_data(
        {"agents": [{"backend": {"type": "scripted", "script": [{"answer": "42"}]}}]}, "test", environ={}
    )
    run = await run_team(tmp_path, lone, environ=ENVIRON)
    assert run.snapshot.final_answer == "42"
    assert [(agent, reason) for agent, reason, _ in run.snapshot.degraded] == [("agent_a", "internal")]


# -- the final answer -------------------------------------------------------------------------------------------------

PRESENTING: list[tuple[str, Callable[[pytest.MonkeyPatch], None]]] = [
    ("its prompt", lambda m: m.setattr(final_answer, "_record", breaks)),
    ("its files", lambda m: m.setattr(final_answer, "shown_changes", breaks)),
    ("its text", lambda m: m.setattr(final_answer, "_complete", breaks)),
]


@pytest.mark.parametrize("break_it", [row[1] for row in PRESENTING], ids=[title for title, _ in PRESENTING])
async def test_a_presentation_that_breaks_gives_way_to_the_winners_answer(
    break_it: Callable[[pytest.MonkeyPatch], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_it(monkeypatch)
    run = await run_team(tmp_path, agents(), environ=ENVIRON)
    (failed,) = run.of(PresentationFailed)
    assert failed.reason == "internal"
    check_told(run, failed.message)
    check_others(run)
    assert not run.of(AgentDropped)


async def test_a_judgement_that_breaks_leaves_the_final_answer_standing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(final_answer, "verdict", breaks)
    run = await run_team(tmp_path, agents(coordination={"max_orchestration_restarts": 1}), environ=ENVIRON)
    check_others(run)


async def test_final_files_that_cannot_be_kept_do_not_cost_the_answer_and_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AnswerGallery, "keep_final", breaks)
    run = await run_team(tmp_path, agents(), environ=ENVIRON)
    check_others(run)
    (end,) = run.of(RunCompleted)
    check_told(run, end.unkept)
    assert "the answer's files weren't saved" in run.snapshot.degraded[0][2]


# -- views ------------------------------------------------------------------------------------------------------------


class Curious(Act):
    """A listener, as a display is one, that breaks at every event."""

    def __init__(self) -> None:
        super().__init__(ModelCallStarted, "cancel")

    def heard(self, record: LogRecord) -> None:
        del record
        breaks()


def nothing(_: pytest.MonkeyPatch) -> None:
    """The listener is enough."""


VIEWS: list[tuple[str, Callable[[pytest.MonkeyPatch], None], Act | None]] = [
    ("a listener", nothing, Curious()),
    ("the log", lambda m: m.setattr(publishing, "log_line", breaks), None),
    ("status.json", lambda m: m.setattr(status_file, "status_json", breaks), None),
    ("coordination_events.json", lambda m: m.setattr(execute, "coordination_events", breaks), None),
    ("coordination_table.txt", lambda m: m.setattr(execute, "coordination_table", breaks), None),
    ("execution_metadata.yaml", lambda m: m.setattr(RunFiles, "write_metadata", breaks), None),
    ("spans", lambda m: m.setattr(execute, "trace_of", breaks_later), None),
    ("closing a backend", lambda m: m.setattr(ScriptedBackend, "aclose", breaks_later), None),
]


@pytest.mark.parametrize(("break_it", "act"), [row[1:] for row in VIEWS], ids=[title for title, *_ in VIEWS])
async def test_a_view_that_breaks_is_told_in_the_log_and_costs_the_run_nothing(
    break_it: Callable[[pytest.MonkeyPatch], None], act: Act | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_it(monkeypatch)
    run = await run_team(tmp_path, agents(), environ=ENVIRON, act=act)
    check_others_by_events(run)
    assert run.snapshot.state == "completed"
    assert run.snapshot.final_answer == "42"
    assert "Broken" in (run.directory.path / "massgen.log").read_text()


def check_others_by_events(run: Ended) -> None:
    assert {event.agent for event in run.of(VoteCast)} == {"agent_a", "agent_b", "agent_c"}
    assert not run.of(AgentDropped)


# -- what nobody could foresee ----------------------------------------------------------------------------------------


async def test_a_run_that_breaks_as_a_whole_still_carries_its_best_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part of the run's state breaks, its resume point, once the first vote is cast."""
    fold = ResumePoint.apply

    def break_at_a_vote(self: ResumePoint, event: Any) -> None:
        return breaks() if isinstance(event, VoteCast | AgentDropped) else fold(self, event)

    monkeypatch.setattr(ResumePoint, "apply", break_at_a_vote)
    run = await run_team(tmp_path, agents(), environ=ENVIRON)
    (failed,) = run.of(RunFailed)
    assert (failed.reason, failed.winner is not None) == ("internal", True)
    assert failed.answer in ("41", "42", "43")
    check_told(run, failed.message)
    assert run.snapshot.state == "failed"
    assert run.snapshot.final_answer is None
    assert (run.snapshot.best_answer, run.snapshot.outcome) == (failed.answer, "best_so_far")
    status = json.loads((run.directory.path / "status.json").read_text())
    assert (status["results"]["winner"], status["results"]["failure"]) == (failed.winner, "not_completed")


async def test_a_caller_in_python_gets_the_best_answer_of_a_run_that_broke(monkeypatch: pytest.MonkeyPatch) -> None:
    fold = ResumePoint.apply

    def break_at_a_vote(self: ResumePoint, event: Any) -> None:
        return breaks() if isinstance(event, VoteCast | AgentDropped) else fold(self, event)

    monkeypatch.setattr(ResumePoint, "apply", break_at_a_vote)
    config = {"agents": [{"backend": {"type": "scripted", "script": [{"answer": "42"}]}} for _ in range(2)]}
    with pytest.raises(RunNotCompleted) as caught:
        await massgen_mcp.run("six times seven?", config_dict=config)
    assert (caught.value.state, caught.value.reason) == ("failed", "internal")
    assert caught.value.result["final_answer"] == "42"
    assert caught.value.result["outcome"] == "best_so_far"


async def test_a_run_that_breaks_after_its_end_was_decided_ends_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conduct.Conductor, "conduct", once_done(conduct.Conductor.conduct))
    run = await run_team(tmp_path, agents(), environ=ENVIRON)
    assert run.snapshot.state == "completed"
    assert not run.of(RunFailed)


def once_done(original: Any) -> Any:
    async def method(self: object) -> None:
        await original(self)
        breaks()

    return method


# -- a model's mistake is no fault of ours ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "number"),
    [("limit", 0), *((field, number) for field in ("limit", "offset") for number in (1e20, 10**30, -1, 1.5))],
)
async def test_a_number_that_no_file_has_lines_for_goes_back_to_the_model(
    field: str, number: float, tmp_path: Path
) -> None:
    config = agents({"call": "read_file", "arguments": {"path": "a", field: number}})
    run = await run_team(tmp_path, config, environ=ENVIRON)
    (told,) = run.of(ToolFinished)
    assert told.is_error
    assert field in told.result
    assert not run.of(AgentDropped)
    check_others(run)


async def test_line_0_is_read_as_the_first(tmp_path: Path) -> None:
    config = agents({"call": "read_file", "arguments": {"path": "a", "offset": 0}})
    run = await run_team(tmp_path, config, environ=ENVIRON)
    (told,) = run.of(ToolFinished)
    assert told.result == "'a': no such file or directory", "it is looked for"
