"""What a run sends to its models, against re-sending everything: `python -m benchmarks.prompt_tokens`.

The real orchestrator with scripted agents, in memory; nothing is timed. Counted in characters of system message,
messages and tool schemas, given as tokens at four characters each. "Everything re-sent" is the same run with one
conversation per agent over all rounds. "Same prefix" is how much of a request is, from its first character on, what the
same agent's request before it was: what a provider's prompt cache can serve.
"""

import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

import anyio

from massgen_mcp.backends.base import AssistantMessage, ModelRequest, Part
from massgen_mcp.backends.scripted import ScriptedBackend
from massgen_mcp.config.models import ScriptedBackendConfig, ScriptStep
from massgen_mcp.coordination.state import Rules
from massgen_mcp.events import public_agent_name
from massgen_mcp.orchestration.conduct import Conductor
from massgen_mcp.orchestration.in_memory import EventList, NullAnswerStore
from massgen_mcp.orchestration.team import Limits, Member, RunSpec

ANSWER = 2_000
QUESTION = 1_000
"""Characters."""


@dataclass
class Eavesdropper:
    """A scripted agent whose requests are kept."""

    inner: ScriptedBackend
    requests: list[ModelRequest] = field(default_factory=list[ModelRequest])
    model: str = "scripted"

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Part]:
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
                ScriptedBackend(ScriptedBackendConfig(type="scripted", script=(*steps, ScriptStep(vote="own"))))
            )
        )
    team = tuple(Member(public_agent_name(place), spy) for place, spy in enumerate(spies))
    rules = Rules(max_answers=answers, early_decision="off", seed="tokens")
    run_spec = RunSpec("q" * QUESTION, team, rules, Limits(), NullAnswerStore())
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


def main() -> None:
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
