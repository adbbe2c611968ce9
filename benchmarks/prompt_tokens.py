"""What a run sends to its models, against re-sending everything: `python -m benchmarks.prompt_tokens`. With `--show`
the requests of the first round, of a ballot, of a run-off and of the presentation are printed whole.

The real orchestrator with scripted agents, in memory; nothing is timed. Counted in characters of system message,
messages and tool schemas, given as tokens at four characters each. "Everything re-sent" is the same run with one
conversation per agent over all rounds. "Same prefix" is how much of a request is, from its first character on, what the
same agent's request before it was: what a provider's prompt cache can serve.
"""

import json
import sys
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

import anyio

from massgen_mcp.backends.base import AssistantMessage, ModelRequest, Part, ReasoningPart
from massgen_mcp.backends.scripted import ScriptedBackend
from massgen_mcp.config.models.backends import ScriptedBackendConfig, ScriptStep
from massgen_mcp.coordination.state import Rules
from massgen_mcp.events.parts import AgentInfo, public_agent_name
from massgen_mcp.events.run import RunStarted
from massgen_mcp.orchestration.conduct import Conductor
from massgen_mcp.orchestration.team import Member, RunSpec, TeamLimits
from tests.in_memory import EventList, NullAnswerStore

ANSWER = 2_000
QUESTION = 1_000
"""Characters."""


@dataclass
class Eavesdropper:
    """A scripted agent whose requests are kept."""

    inner: ScriptedBackend
    requests: list[ModelRequest] = field(default_factory=list[ModelRequest])
    model: str = "scripted"
    thoughts: str = ""
    """What it thinks before its first reply."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Part]:
        if self.thoughts and not self.requests:
            yield ReasoningPart(self.thoughts)
        self.requests.append(request)
        async for part in self.inner.stream(request):
            yield part

    async def aclose(self) -> None:
        await self.inner.aclose()


async def run(agents: int, answers: int) -> list[Eavesdropper]:
    """A run in which every agent gives `answers` answers and then votes."""
    spies: list[Eavesdropper] = []
    for place in range(agents):
        steps = [ScriptStep(answer=f"{place}.{number} ".ljust(ANSWER, "x")) for number in range(answers)]
        spies.append(
            Eavesdropper(
                ScriptedBackend(
                    ScriptedBackendConfig(type="scripted", script=(*steps, ScriptStep(vote=f"0.{answers - 1} ")))
                )
            )
        )
    team = tuple(Member(public_agent_name(place), spy) for place, spy in enumerate(spies))
    rules = Rules(max_answers=answers, early_decision="off", seed="tokens")
    run_spec = RunSpec("q" * QUESTION, team, rules, TeamLimits(), NullAnswerStore())
    await Conductor(run_spec, EventList()).conduct()
    return spies


def rendered(request: ModelRequest) -> str:
    """The request in the order in which providers read it: tools, system, messages."""
    tools = json.dumps([[tool.name, tool.description, tool.parameters] for tool in request.tools])
    return "\n".join([tools, request.system, *map(_text, request.messages)])


def _text(message: object) -> str:
    if isinstance(message, AssistantMessage):
        return message.text + "".join(call.arguments for call in message.tool_calls)
    return str(getattr(message, "text", ""))


def figures(spies: list[Eavesdropper]) -> tuple[int, int, int, int]:
    """(requests, characters sent, characters if everything were re-sent, characters in a prefix sent before)."""
    requests = sent = everything = same = 0
    for spy in spies:
        history, before = 0, ""
        for request in spy.requests:
            text = rendered(request)
            requests, sent = requests + 1, sent + len(text)
            everything += len(text) + history
            same += _shared(before, text)
            history += len("\n".join(map(_text, request.messages[1:]))) + ANSWER
            before = text
    return requests, sent, everything, same


def _shared(one: str, other: str) -> int:
    """Length of the common prefix."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (mine, theirs) in pairs if mine != theirs), min(len(one), len(other)))


QUESTION_SHOWN = "Which of two sorted lists holds a number that is missing in the other? Give the fastest way."
SHOWN: tuple[tuple[dict[str, str], ...], ...] = (
    (
        {"answer": "Walk both lists at once and stop at the first difference: O(n), no memory."},
        {"vote": "own", "reason": "It needs no memory."},
    ),
    ({"answer": "Put the shorter one into a set and look up every number of the other: O(n)."}, {"vote": "own"}),
    ({"answer": "Compare them by halves: the first half that differs holds the number, O(log n)."}, {"vote": "own"}),
)
"""Every agent votes for itself, so that there is a run-off."""
THOUGHTS = "Both are sorted, so one pass is enough; sets would need memory. I check the ends of the lists."


async def shown() -> list[tuple[str, ModelRequest]]:
    """One request of every kind, each by the first agent that got one."""
    spies = [
        Eavesdropper(ScriptedBackend(ScriptedBackendConfig.model_validate({"type": "scripted", "script": steps})))
        for steps in SHOWN
    ]
    spies[0].thoughts = THOUGHTS
    team = tuple(Member(public_agent_name(place), spy) for place, spy in enumerate(spies))
    journal = EventList()
    conductor = Conductor(RunSpec(QUESTION_SHOWN, team, Rules(seed="shown"), TeamLimits(), NullAnswerStore()), journal)
    agents = tuple(AgentInfo(name=member.name, id=member.name, backend="scripted", model="scripted") for member in team)
    journal.record(RunStarted(run_id="shown", question=QUESTION_SHOWN, agents=agents))
    await conductor.conduct()
    found: dict[str, ModelRequest] = {}
    for request in (request for spy in spies for request in spy.requests):
        found.setdefault(_kind(request), request)
    return [(kind, found[kind]) for kind in ("first round", "ballot", "run-off", "presentation") if kind in found]


def _kind(request: ModelRequest) -> str:
    tools = {tool.name: tool for tool in request.tools}
    if "new_answer" in tools:
        return "ballot" if "vote" in tools else "first round"
    return "run-off" if "vote" in tools else "presentation"


def show() -> None:
    for kind, request in anyio.run(shown):
        tools = "\n".join(
            json.dumps({"name": tool.name, "description": tool.description, "parameters": tool.parameters})
            for tool in request.tools
        )
        texts = [f"[system]\n{request.system}", *(f"[user]\n{_text(message)}" for message in request.messages)]
        texts += [f"[tools]\n{tools}"] if tools else []
        print(f"=== {kind}: {len(rendered(request))} characters ===\n\n" + "\n\n".join(texts) + "\n")


def main() -> None:
    if "--show" in sys.argv[1:]:
        show()
        return
    print(f"Answers of {ANSWER} characters to a question of {QUESTION}; tokens are characters / 4.\n")
    print(
        f"{'agents':>6} {'answers':>8} {'requests':>9} {'sent':>8} {'all re-sent':>12} {'saved':>6} {'same prefix':>12}"
    )
    for agents, answers in ((2, 1), (3, 1), (3, 2), (3, 3), (5, 2), (10, 1), (10, 2)):
        requests, sent, everything, same = figures(anyio.run(run, agents, answers))
        saved = 1 - sent / everything
        row = f"{agents:>6} {answers:>8} {requests:>9} {sent // 4:>8} {everything // 4:>12} {saved:>6.0%}"
        print(f"{row} {same / sent:>12.0%}")
    framing = rendered(anyio.run(run, 3, 1)[0].requests[0])
    print(
        f"\nFraming of a first call (tools, system and markup, without the question): {len(framing) - QUESTION} bytes"
    )


if __name__ == "__main__":
    main()
