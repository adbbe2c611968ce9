"""Simulated models behind the product's `Backend` seam.

Like a model, an agent reads the ballot where a prompt marks it, and acts through the workflow tools. Beyond that it
knows what the simulation gives it: its answer, and how it votes.
"""

import json
from collections import Counter
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from random import Random

import anyio.lowlevel

from massgen_mcp.backends.base import ModelRequest, Part, StopPart, TextPart, ToolCall, ToolCallPart, UserMessage
from massgen_mcp.markers import materials


@dataclass(frozen=True, slots=True)
class Majority:
    """Votes for the option it answered itself."""


@dataclass(frozen=True, slots=True)
class Loyal:
    """Votes for its own answer."""


@dataclass(frozen=True, slots=True)
class Judging:
    """Votes for what it takes for right; see the package's docstring. The floats are probabilities."""

    skill: float
    authors_shown: bool = False
    votes_visible: bool = False
    self_bias: float = 0.35
    herding: float = 0.4
    own_weight: int = 1
    """How often the own answer counts where it guesses."""
    slowest: int = 1
    """A call takes between one and so many turns of the event loop."""
    same_wrong: float | None = None
    """It says which answers are the same as its choice, each statement wrong so often. None: it says nothing."""


Voting = Majority | Loyal | Judging


@dataclass(frozen=True, slots=True)
class Entry:
    """An answer on a ballot as a prompt shows it. `text` begins with the option's letter."""

    name: str
    text: str
    own: bool

    @property
    def option(self) -> str:
        return self.text[0]


@dataclass(slots=True)
class Poll:
    """The votes of one trial so far, by answer text: the side channel that makes votes visible."""

    counts: Counter[str] = field(default_factory=Counter[str])

    def leaders(self) -> list[str]:
        top = max(self.counts.values(), default=0)
        return [text for text, votes in self.counts.items() if votes == top]


class SimulatedAgent:
    """Answers `option`, votes as `voting` says, and presents its own answer. `right` is what a good judge knows."""

    model = "simulated"

    def __init__(self, option: str, right: str, voting: Voting, poll: Poll, random: Random) -> None:
        self._answer = f"{option} {random.getrandbits(64):016x}"
        self._right = right
        self._voting = voting
        self._poll = poll
        self._random = random
        self._misread = Random(f"{random.getrandbits(64)}")
        """Apart, so that with and without statements of sameness the votes are the same."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Part]:
        for _ in range(self._turns()):
            await anyio.lowlevel.checkpoint()  # as with a real call, the others go on meanwhile
        offered = {tool.name for tool in request.tools}
        if "vote" in offered:
            ballot = _ballot(request)
            choice = self._vote(ballot)
            self._poll.counts[choice.text] += 1
            yield _call("vote", reason="simulated", agent_id=choice.name, **self._sameness(choice, ballot))
        elif "new_answer" in offered:
            yield _call("new_answer", content=self._answer)
        else:
            yield TextPart(self._answer)
            yield StopPart("end")
            return
        yield StopPart("tool_calls")

    async def aclose(self) -> None:
        """Nothing is open."""

    def _turns(self) -> int:
        """How long the next call takes, from a source of luck that decides no vote."""
        slowest = self._voting.slowest if isinstance(self._voting, Judging) else 1
        return self._misread.randint(1, slowest) if slowest > 1 else 1

    def _vote(self, ballot: list[Entry]) -> Entry:
        match self._voting:
            case Majority():
                same = [entry for entry in ballot if entry.option == self._answer[0]]
                return min(same, key=lambda entry: entry.text) if same else self._random.choice(ballot)
            case Loyal():
                return next(entry for entry in ballot if entry.own)
            case Judging() as judging:
                return self._judge(judging, ballot)

    def _judge(self, judging: Judging, ballot: list[Entry]) -> Entry:
        """Herding comes before the bias for oneself, and that before judgement."""
        pick = self._random
        own = [entry for entry in ballot if entry.own]
        if judging.votes_visible and (leaders := self._poll.leaders()) and pick.random() < judging.herding:
            return pick.choice([entry for entry in ballot if entry.text in leaders])
        if judging.authors_shown and own and pick.random() < judging.self_bias:
            return own[0]
        if pick.random() < judging.skill and (right := [entry for entry in ballot if entry.option == self._right]):
            return pick.choice(right)
        return pick.choice(ballot + own * (judging.own_weight - 1))

    def _sameness(self, choice: Entry, ballot: list[Entry]) -> dict[str, list[str]]:
        """What the agent says of the other answers; one that only counts votes says nothing."""
        if not isinstance(self._voting, Judging) or self._voting.same_wrong is None:
            return {}
        wrong = self._voting.same_wrong
        others = [entry for entry in ballot if entry != choice]
        same = [entry for entry in others if (entry.option == choice.option) != (self._misread.random() < wrong)]
        return {"same_as": [entry.name for entry in same]}


def _ballot(request: ModelRequest) -> list[Entry]:
    """The ballot that was shown last."""
    for message in reversed(request.messages):
        if isinstance(message, UserMessage):
            marked = [shown for shown in materials(message.text) if shown.kind == "answer"]
            found = [Entry(shown.name, shown.text, shown.yours) for shown in marked]
            if found:
                return found
    return []


def _call(name: str, **arguments: str | list[str]) -> ToolCallPart:
    return ToolCallPart(ToolCall(f"call_{name}", name, json.dumps(arguments)))
