"""Every known behaviour of models and servers completes with the right answer, within the calls that it needs."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from massgen_mcp.backends.abilities import Abilities
from massgen_mcp.backends.calling import RetryPolicy
from massgen_mcp.backends.chatcompletion import ChatCompletionBackend
from massgen_mcp.backends.http import Endpoint
from massgen_mcp.config.models.orchestrator import OrchestratorConfig
from massgen_mcp.coordination.state import Rules
from massgen_mcp.events.agent_work import ModelReplied
from massgen_mcp.events.coordination import AnswerPresented, AnswerSubmitted, VoteCast
from massgen_mcp.events.parts import Event, public_agent_name
from massgen_mcp.events.run import RunCompleted
from massgen_mcp.orchestration.conduct import Conductor
from massgen_mcp.orchestration.team import Member, RunSpec, TeamLimits
from tests.in_memory import EventList, NullAnswerStore
from tests.raw_double import RawDouble, answering
from tests.wires.behaviours import (
    GIVEN_BY_CALL,
    RIGHT,
    ROWS,
    WRITTEN_AS_TEXT,
    Asked,
    Behaviour,
    Respond,
    call,
    refuse,
    say,
)
from tests.wires.calls import load_sdks

QUESTION = "What is six times seven?"
N = 3
MARKS = ("<|", "|>", "tool_call", "new_answer", '"content"', "TOOL_CALLS", "</", "```")


@asynccontextmanager
async def one_server(behaviours: dict[str, Respond]) -> AsyncGenerator[RawDouble]:
    """A server whose models behave as they are called."""
    load_sdks()
    async with answering(lambda seen, _: behaviours[seen.body["model"]](Asked(seen))) as server:
        yield server


@dataclass
class Outcome:
    events: list[Event]

    @property
    def calls(self) -> int:
        return sum(isinstance(event, ModelReplied) for event in self.events)

    @property
    def final(self) -> str | None:
        if not isinstance(self.events[-1], RunCompleted):
            return None
        return next((one.answer for one in reversed(self.events) if isinstance(one, AnswerPresented)), None)

    @property
    def answers(self) -> list[str]:
        return [event.content for event in self.events if isinstance(event, AnswerSubmitted)]

    @property
    def votes(self) -> list[VoteCast]:
        return [event for event in self.events if isinstance(event, VoteCast)]


async def run(url: str, model: str, size: int, question: str = QUESTION) -> Outcome:
    endpoint = Endpoint(model, "key", base_url=f"{url}/v1")
    backends = [ChatCompletionBackend(endpoint) for _ in range(size)]
    shared, events = Abilities(), EventList()
    team = tuple(Member(public_agent_name(place), one, abilities=shared) for place, one in enumerate(backends))
    limits = TeamLimits(retry=RetryPolicy(first_wait=0.0))
    spec = RunSpec(question, team, Rules(seed="test"), limits, NullAnswerStore(), OrchestratorConfig())
    try:
        await Conductor(spec, events, ()).conduct()
    finally:
        for backend in backends:
            await backend.aclose()
    return Outcome(events.events)


def fault_of(row: Behaviour, outcome: Outcome) -> str:
    """What is wrong with a run; "" where nothing is."""
    most = 2 * N + 1 + row.more
    texts = [*outcome.answers, *([outcome.final] if outcome.final else [])]
    if outcome.final is None:
        return f"no answer after {outcome.calls} calls: {outcome.events[-1]!r}"[:300]
    if outcome.calls > most:
        return f"{outcome.calls} calls, {most} were to do"
    if RIGHT.replace(" ", "") not in outcome.final.replace(" ", "").replace("\n", ""):
        return f"wrong: {outcome.final!r}"
    return next((f"markup: {text!r}" for text in texts if any(mark in text for mark in MARKS)), "")


async def test_every_behaviour_completes_with_the_right_answer_in_few_calls() -> None:
    faults: dict[str, str] = {}
    async with one_server({row.title: row.respond for row in ROWS}) as server:
        for row in ROWS:
            if fault := fault_of(row, await run(server.url, row.title, N)):
                faults[row.title] = fault
    assert faults == {}, "\n".join(f"{title}: {fault}" for title, fault in faults.items())
    assert len(ROWS) == len({row.title for row in ROWS}) >= 150


async def test_an_answer_stays_what_it_is_whatever_it_looks_like() -> None:
    texts = [*GIVEN_BY_CALL, *WRITTEN_AS_TEXT]
    models: dict[str, Respond] = {}
    for place, text in enumerate(texts):
        models[f"call {place}"] = lambda _, text=text: call("new_answer", json.dumps({"content": text}))
    for place, text in enumerate(WRITTEN_AS_TEXT):
        models[f"text {place}"] = _without_tools(lambda _, text=text: say(text))
    changed: list[str] = []
    async with one_server(models) as server:
        for name in models:
            kind, _, place = name.partition(" ")
            text = (texts if kind == "call" else WRITTEN_AS_TEXT)[int(place)]
            outcome = await run(server.url, name, 1)
            if outcome.final != text.strip() and outcome.final != text:
                changed.append(f"{kind}: {text!r} became {outcome.final!r}, after {outcome.calls} calls")
    assert changed == []
    assert len(WRITTEN_AS_TEXT) >= 40


def _without_tools(respond: Respond) -> Respond:
    return lambda asked: refuse("this model does not support tools") if asked.offered else respond(asked)
