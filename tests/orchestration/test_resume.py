"""A run cut off at any event goes on from its journal: nothing paid for is asked again, nothing told is lost."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import pytest

from massgen_mcp.backends.base import JsonObject, ModelRequest, ToolSpec
from massgen_mcp.config.models.orchestrator import CoordinationSettings, OrchestratorConfig
from massgen_mcp.coordination.state import Rules
from massgen_mcp.events.agent_work import (
    AgentEvent,
    BallotChanged,
    ConversationCondensed,
    ConversationShortened,
    MessagesShown,
    ModelCallAborted,
    ModelCallAdmitted,
    ModelCallFailed,
    ModelCallRetried,
    ModelCallStarted,
    ModelCallWaiting,
    ModelReplied,
    TextDelta,
    ToolFinished,
)
from massgen_mcp.events.coordination import AnswerEvaluated, AnswerSubmitted, PresentationStarted, StageOpened, VoteCast
from massgen_mcp.events.parts import Event, EventT
from massgen_mcp.events.record import LogRecord
from massgen_mcp.events.run import TERMINAL, CallerMessage, RunCompleted, RunResumed, RunTimedOut
from massgen_mcp.money.tariff import Tariff
from massgen_mcp.orchestration.conduct import Conductor
from massgen_mcp.tools.base import ToolResult
from massgen_mcp.tools.files import file_tools
from massgen_mcp.tools.planning import planning_tools
from massgen_mcp.workspace.directory import Workspace
from tests.in_memory import EventList
from tests.stage import Performance, perform, text_of

OF_CALLS = (ModelCallStarted, ModelCallWaiting, ModelCallAdmitted, ModelCallRetried, TextDelta)
"""A call that was lost is made anew, and all of this happens again."""
ONCE = (*(set(get_args(AgentEvent)) - {*OF_CALLS, ConversationShortened}), AnswerEvaluated)
"""What happens once within a round or an attempt, also where its process is lost. Shortened again, a conversation is
the same.
"""
PLAN = {"call": "create_task_plan", "arguments": {"tasks": [{"id": "a", "description": "first"}]}}
DONE = {"call": "update_task", "arguments": {"id": "a", "status": "done"}}
SHOW: dict[str, Any] = {"call": "get_task_plan", "arguments": {}}

SCRIPTS: tuple[list[dict[str, Any]], ...] = (
    [PLAN, {"answer": "the first answer"}, DONE, {"vote": "second"}, SHOW, {"say": "the final answer"}],
    [{"say": "no tool call"}, {"answer": "the second answer"}, {"vote": "nobody"}, {"vote": "own"}],
    [{"answer": "a third one"}, {"answer": "better than the second answer"}, {"vote": "better than the second"}],
)
RESTART = {
    "call": "restart_orchestration",
    "arguments": {"reason": "too short", "instructions": "say more"},
}
IN_TEXT: tuple[list[dict[str, Any]], ...] = (
    [
        {"say": 'First a plan.\n{"create_task_plan": {"tasks": [{"id": "a", "description": "b"}]}}'},
        {"say": '<tool_call>{"name": "new_answer", "arguments": {"content": "the first answer"}}</tool_call>'},
        {"say": "I am not sure."},
        {"say": '{"name": "vote", "arguments": {"agent_id": "nobody", "reason": "who else"}}'},
        {"say": "vote: agent1\nIt is the best one."},
        {"say": "the final answer"},
    ],
    [{"say": "hm"}, {"say": "the second answer, in words"}, {"say": "vote: agent2"}, {"say": "the final answer"}],
    [{"answer": "a third one"}, {"say": '<function=vote>{"agent_id": "agent1", "reason": "x"}</function>'}],
)
"""What agents do without calling a tool; it stands in the journal as text."""
AGAIN: tuple[list[dict[str, Any]], ...] = (
    [{"answer": "short"}, {"vote": "own"}, {"say": "short final"}, RESTART, {"answer": "long"}, {"vote": "own"}],
    [{"answer": "other"}, {"vote": "short"}, {"answer": "other again"}, {"vote": "long"}],
)


RUN_OFF: tuple[list[dict[str, Any]], ...] = tuple(
    [{"say": f"thinking of {text}"}, {"answer": text}, {"vote": "own", "reason": f"{text} it is"}, *then]
    for text, then in (("one", []), ("two", [{"answer": "two again"}, {"vote": "own"}]), ("three", []))
)

LONG: tuple[list[dict[str, Any]], ...] = (
    [*[{"call": "look", "arguments": {}}] * 12, {"answer": "the first answer"}, {"vote": "own"}],
    [{"answer": "the second answer"}, {"vote": "first"}],
)
"""What the first agent's tool returns is more than its model reads."""


class Look:
    """A tool that returns much."""

    spec = ToolSpec("look", "Look.", {"type": "object", "properties": {}})
    side_effects = keeps_state = False

    async def run(self, arguments: JsonObject) -> ToolResult:
        del arguments
        return ToolResult("word " * 2_000)


STAGED: tuple[list[dict[str, Any]], ...] = (
    *([{"answer": text}, {"vote": "one"}, {"vote": "one"}] for text in ("one", "two")),
    [{"fail": "auth"}] * 3,
    *([{"answer": text}, {"vote": "one"}, {"vote": "one"}] for text in ("three", "four")),
)
"""Two of five are asked first; they differ, and of those asked after them one falls out."""


async def play(scripts: Sequence[list[dict[str, Any]]], past: Sequence[LogRecord] = ()) -> Performance:
    return await perform(
        *scripts,
        rules=Rules(seed="test", max_answers=2, effort="low" if scripts is STAGED else "high", order="listed"),
        policy=OrchestratorConfig(
            coordination=CoordinationSettings(max_orchestration_restarts=1 if scripts is AGAIN else 0),
            show_reasons=scripts is RUN_OFF,
        ),
        tools=(*planning_tools(max_tasks=5, workspace=None), Look()),
        past=past,
        tariff=Tariff("gpt-4", listed_at="https://api.openai.com/v1") if scripts is LONG else None,
    )


def journaled(events: Sequence[Event]) -> list[LogRecord]:
    lines = [{"seq": seq, "time": 1000.0 + seq, "event": event.model_dump()} for seq, event in enumerate(events, 1)]
    return [LogRecord.model_validate(line) for line in lines]


def calls_by_id(performance: Performance, events: Sequence[Event]) -> dict[str, ModelRequest]:
    """The request of each model call of these events, by the call's id."""
    asked = {place: iter(listener.requests) for place, listener in enumerate(performance.listeners)}
    started = [event for event in events if isinstance(event, ModelCallStarted)]
    return {event.call_id: next(asked[ord(event.agent[-1]) - ord("a")]) for event in started}


def in_flight(events: Sequence[Event]) -> set[str]:
    started = {event.call_id for event in events if isinstance(event, ModelCallStarted)}
    return started - {
        event.call_id for event in events if isinstance(event, ModelReplied | ModelCallAborted | ModelCallFailed)
    }


@pytest.mark.parametrize("scripts", [SCRIPTS, AGAIN, IN_TEXT, RUN_OFF, LONG, STAGED])
async def test_cut_off_at_any_event_a_run_ends_without_asking_again_what_was_replied(
    scripts: tuple[list[dict[str, Any]], ...],
) -> None:
    whole = await play(scripts)
    once = Counter(event.model_dump_json() for event in whole.events if isinstance(event, ONCE))
    for cut in range(1, len(whole.events)):
        before = whole.events[:cut]
        if isinstance(before[-1], TERMINAL):
            continue
        rest = await play(scripts, journaled(before))
        after = rest.events
        assert isinstance(after[0], RunResumed)
        assert isinstance(after[-1], RunCompleted), (cut, after[-1])
        replied = Counter(event.call_id for event in (*before, *after) if isinstance(event, ModelReplied))
        assert set(replied.values()) == {1}, (cut, replied)
        repeated = {event.call_id for event in after if isinstance(event, ModelCallStarted) and event.repeated}
        assert repeated <= in_flight(before) == set(after[0].in_flight)
        labels = [event.label for event in (*before, *after) if isinstance(event, AnswerSubmitted)]
        if scripts is not AGAIN:
            assert len(labels) == len(set(labels))
        results = Counter((e.agent, e.call_id) for e in (*before, *after) if isinstance(e, ToolFinished))
        assert set(results.values()) <= {1}, cut
        work = Counter(e.model_dump_json() for e in (*before, *after) if isinstance(e, ONCE))
        twice = [event for event, times in work.items() if times > max(1, once[event])]
        assert not twice, f"cut off after event {cut}, this happens twice; does it belong to WorkEvent?"


async def test_a_note_that_was_paid_for_is_used_when_the_run_goes_on() -> None:
    whole = await play(LONG)
    notes = [event for event in whole.events if isinstance(event, ModelReplied) and event.purpose == "condense"]
    assert notes
    for note in notes:
        rest = await play(LONG, journaled(whole.events[: whole.events.index(note) + 1]))
        after = [event for event in rest.events if isinstance(event, ConversationCondensed | ModelCallStarted)]
        assert isinstance(after[0], ConversationCondensed)
        assert after[0].note == note.text


async def test_a_run_off_that_was_due_or_begun_is_held_once_wherever_the_run_was_cut_off() -> None:
    whole = await play(RUN_OFF)
    (held,) = [event for event in whole.events if isinstance(event, StageOpened)]
    assert len(held.agents) == 3
    for cut in range(whole.events.index(held) - 1, len(whole.events) - 1):
        rest = await play(RUN_OFF, journaled(whole.events[:cut]))
        everything = [*whole.events[:cut], *rest.events]
        assert sum(isinstance(event, StageOpened) for event in everything) == 1, cut
        again = [event.agent for event in everything if isinstance(event, VoteCast) and event.run_off]
        assert sorted(again) == sorted(held.agents), cut


async def test_every_stage_is_opened_once_wherever_the_run_was_cut_off() -> None:
    whole = await play(STAGED)
    opened = [event for event in whole.events if isinstance(event, StageOpened)]
    assert [stage.because for stage in opened] == ["start", "compare", "disagreement", "dropped", "disagreement"]
    for cut in range(1, len(whole.events)):
        rest = await play(STAGED, journaled(whole.events[:cut]))
        everything = [event for event in (*whole.events[:cut], *rest.events) if isinstance(event, StageOpened)]
        assert everything == opened, cut


@pytest.mark.parametrize("scripts", [SCRIPTS, AGAIN, IN_TEXT, RUN_OFF, LONG, STAGED])
async def test_a_call_that_was_in_flight_is_repeated_word_for_word(scripts: tuple[list[dict[str, Any]], ...]) -> None:
    whole = await play(scripts)
    asked = calls_by_id(whole, whole.events)
    compared = 0
    for cut in range(1, len(whole.events)):
        before = whole.events[:cut]
        rest = await play(scripts, journaled(before))
        again = calls_by_id(rest, rest.events)
        for call_id in in_flight(before) & again.keys():
            request, original = again[call_id], asked[call_id]
            assert request.system == original.system
            assert request.messages[: len(original.messages)] == original.messages, (cut, call_id)
            compared += 1
    assert compared > len(asked)


async def test_a_resumed_run_marks_everything_with_the_same_codes(tmp_path: Path) -> None:
    write = {"call": "write_file", "arguments": {"path": "notes.txt", "content": "</result>"}}
    look = {"call": "read_file", "arguments": {"path": "notes.txt"}}
    scripts = (
        [write, look, {"answer": "one"}, look, {"answer": "one, improved"}, {"vote": "own"}],
        [{"answer": "two"}, look, {"vote": "one"}, look, {"vote": "improved"}],
    )
    with Workspace.create(tmp_path / "ws") as workspace:

        async def go(journal: EventList, past: Sequence[LogRecord] = ()) -> Performance:
            def listen(conductor: Conductor) -> None:
                if isinstance(journal, SpeaksUp):
                    journal.conductor = conductor

            tools = file_tools(workspace)
            return await perform(
                *scripts, rules=Rules(seed="test"), tools=tools, journal=journal, past=past, during=listen
            )

        for _ in range(50):  # tools work on threads: which agent is faster differs from time to time
            whole = await go(SpeaksUp())
            if {type(event) for event in whole.events} >= {MessagesShown, BallotChanged}:
                break
        else:
            pytest.fail("no answer came while the other agent was at work")
        asked = calls_by_id(whole, whole.events)
        compared = 0
        for cut in range(1, len(whole.events)):
            rest = await go(EventList(), journaled(whole.events[:cut]))
            again = calls_by_id(rest, rest.events)
            for call_id in in_flight(whole.events[:cut]) & again.keys():
                assert again[call_id].messages[: len(asked[call_id].messages)] == asked[call_id].messages
                compared += 1
        assert compared >= len(asked)


async def test_a_tool_that_remembers_stands_where_it_stood() -> None:
    planner = [PLAN, DONE, SHOW, {"answer": "42"}]
    whole = await play([planner])
    shown = [event for event in whole.events if isinstance(event, ToolFinished)][-1]
    assert "[x] a" in shown.result
    for cut in range(1, whole.events.index(shown)):
        rest = await play([planner], journaled(whole.events[:cut]))
        again = [event for event in rest.events if isinstance(event, ToolFinished)][-1]
        assert again.result == shown.result


class FinishesEarly(EventList):
    """A journal whose reader wants the end as soon as the first tool has run."""

    conductor: Conductor | None = None

    def record(self, event: EventT) -> EventT:
        recorded = super().record(event)
        if isinstance(event, ToolFinished) and self.conductor is not None:
            self.conductor.finish_now()
        return recorded


async def test_a_final_answer_that_interrupts_its_authors_round_goes_on_where_it_was_cut_off() -> None:
    scripts = ([{"answer": "one"}, PLAN, SHOW, SHOW, SHOW, {"say": "the end"}], [{"answer": "two"}, {"vote": "one"}])
    journal = FinishesEarly()

    def listen(conductor: Conductor) -> None:
        journal.conductor = conductor

    tools = planning_tools(max_tasks=5, workspace=None)
    whole = await perform(*scripts, tools=tools, journal=journal, during=listen)
    begun = next(place for place, event in enumerate(whole.events, 1) if isinstance(event, PresentationStarted))
    for cut in range(begun, len(whole.events)):
        before = whole.events[:cut]
        rest = await perform(*scripts, tools=planning_tools(max_tasks=5, workspace=None), past=journaled(before))
        replied = Counter(event.call_id for event in (*before, *rest.events) if isinstance(event, ModelReplied))
        assert set(replied.values()) == {1}, (cut, replied)
        assert rest.events[-1] == whole.events[-1]


async def test_the_time_a_run_lay_interrupted_does_not_count() -> None:
    whole = await play(SCRIPTS)
    first, second, *rest = journaled(whole.events[:6])
    late = [first, second, *(r.model_copy(update={"time": r.time + 100_000}) for r in rest)]
    worked = [*late[:2], LogRecord(seq=3, time=late[2].time, event=RunResumed()), *late[2:]]
    assert await seconds_of(worked) == 4
    assert await seconds_of(late) == 100_005


async def seconds_of(past: Sequence[LogRecord]) -> float:
    """How long a run with this journal was worked on."""
    found: list[float] = []
    await perform(*SCRIPTS, past=past, during=lambda conductor: found.append(conductor.state.resume_point.seconds))
    return found[0]


async def test_a_resumed_run_that_has_used_up_its_time_ends_at_once_with_its_best_answer() -> None:
    whole = await play(SCRIPTS)
    cut = next(place for place, event in enumerate(whole.events) if isinstance(event, AnswerSubmitted))
    first, *others = journaled(whole.events[: cut + 1])
    late = [first, *(record.model_copy(update={"time": record.time + 10_000}) for record in others)]
    rest = await play(SCRIPTS, late)
    assert isinstance(rest.events[-1], RunTimedOut)
    assert rest.events[-1].answer is not None


# -- the asker's messages -----------------------------------------------------------------------------------------


async def test_what_the_asker_says_is_shown_to_every_agent_and_in_the_presentation() -> None:
    def say(conductor: Conductor) -> None:
        conductor.steer(1, "Answer in French.")
        conductor.steer(1, "Answer in French.")

    performance = await perform([], [], during=say)
    for request in (request for listener in performance.listeners for request in listener.requests):
        assert text_of(request).count("Answer in French.") == 1
    assert len([event for event in performance.events if isinstance(event, CallerMessage)]) == 1


class SpeaksUp(EventList):
    """A journal whose reader has something to say as soon as the first answer stands."""

    conductor: Conductor | None = None

    def record(self, event: EventT) -> EventT:
        recorded = super().record(event)
        if isinstance(event, ToolFinished) and self.conductor is not None:
            self.conductor.steer(7, "Mind the units.")
        return recorded


async def test_an_agent_in_the_middle_of_its_round_hears_the_asker_at_its_next_step() -> None:
    journal = SpeaksUp()
    tools = planning_tools(max_tasks=5, workspace=None)

    def listen(conductor: Conductor) -> None:
        journal.conductor = conductor

    performance = await perform([PLAN, {"answer": "42"}], tools=tools, journal=journal, during=listen)
    first, second = performance.asked(0)
    assert "Mind the units." not in text_of(first)
    assert "Mind the units." in text_of(second)
    for cut in range(1, len(performance.events)):
        if not isinstance(performance.events[cut - 1], TERMINAL):
            rest = await perform(
                [PLAN, {"answer": "42"}],
                tools=planning_tools(max_tasks=5, workspace=None),
                past=journaled(performance.events[:cut]),
            )
            said = any(isinstance(event, CallerMessage) for event in performance.events[:cut])
            assert all(("Mind the units." in text_of(request)) == said for request in rest.asked(0)), cut
