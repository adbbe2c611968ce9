"""What the rules give an agent: the ballot that it is shown, and what it should do now or why its action is refused. In
facts, not in words.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from massgen_mcp.events.parts import BallotEntry, RoundKind


@dataclass(frozen=True, slots=True)
class Ballot:
    """The answers shown to `viewer` at `revision`, under neutral names, the viewer's own among them. It owns the
    meaning of these names.
    """

    viewer: str
    revision: int
    entries: tuple[BallotEntry, ...]

    def label_of(self, name: str) -> str | None:
        """The label of the answer that stands here under `name`; None if there is none."""
        return next((entry.label for entry in self.entries if entry.name == name), None)


ViolationCode = Literal[
    "empty_answer",
    "answer_limit",
    "only_votes",
    "only_this",
    "unknown_source",
    "too_late",
    "no_expectation",
    "duplicate_answer",
    "repeated_answer",
    "not_novel",
    "unknown_answer",
    "checks_fail",
    "stale_ballot",
    "nothing_to_vote_for",
    "empty_reason",
]


@dataclass(frozen=True, slots=True)
class Violation:
    """A refused action. `facts` are what its explanation needs; `counts` says whether the model is to blame."""

    code: ViolationCode
    facts: Mapping[str, str | int | float] = field(default_factory=dict[str, str | int | float])
    counts: bool = True


@dataclass(frozen=True, slots=True)
class Work:
    """The agent may begin a round with this ballot."""

    ballot: Ballot
    kind: RoundKind = "answer_or_vote"
    """What ends it."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to do until something changes."""


@dataclass(frozen=True, slots=True)
class Rest:
    """Nothing to do any more."""


Duty = Work | Wait | Rest
