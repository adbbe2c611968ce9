"""What is known of a run beside its events: its row in the store, its request, and its controls."""

import secrets
from base64 import b32encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from massgen_mcp.config.models.config import Config
from massgen_mcp.errors import MassgenError
from massgen_mcp.events.parts import Outcome
from massgen_mcp.request.kind import RunKind
from massgen_mcp.request.question import EarlierTurn
from massgen_mcp.run_state.state import RunState
from massgen_mcp.run_state.status import RunStatus
from massgen_mcp.statistics.digest import Mark, RunDigest

Action = Literal["cancel", "finish_now", "steer", "answer", "raise_budget"]
"""What can be asked of a run that is queued or goes on."""
Wish = Action | Literal["admit", "move"]
"""The same; what a program asks that runs inside it: to let a run begin that was started there; and to leave a run to
another store.
"""
Kept = Literal["all", "moved", "losing_workspaces", "results", "losing_results", "nothing"]
"""What of a run's files there is. `moved`: all, and the run goes on in another store. `losing_`: being deleted, to be
finished by the next pruning.
"""

RUN_ID_PREFIX = "run-"


@dataclass(frozen=True, slots=True)
class StartedRun:
    """A run as it was started. `config` says where the team came from. `parent`: id of the run that it is
    nested in, whose place it shares; it begins when that one has `admitted` it. `owner`: the name of the person who
    started it, empty where nobody is named; of a nested run as of its parent.
    """

    run_id: str
    question: str
    config: str
    fingerprint: str
    request_hash: str
    idempotency_key: str | None = None
    session_id: str | None = None
    parent: str | None = None
    admitted: bool = True
    owner: str = ""
    kind: RunKind = "single"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow(StartedRun):
    """A run in the store, with a column for each field. `question` is cut to a preview; times are seconds since the
    epoch.

    `outcome`, `winner` (an id), `weak` (words of `Weakness`, spaces between them), `summary` (its outcome as a
    sentence) and `events` (how many there are in its journal) are known once the run has ended. Of an expired run
    (`kept` is losing_results or nothing) question, config and summary are empty.
    `resumes`: how often a runner has taken it over from one that was lost.
    `directory`: where the run is, absolute; None: below the home's `runs`. `foreground`: the process that asked
    executes it, and no runner takes it before somebody resumes it. `held_back_by`: why its runner leaves it in the
    queue although there may be a free place, or where it was moved to.
    """

    number: int
    state: RunStatus
    runner: str | None = None
    created: float
    started: float | None
    ended: float | None
    outcome: Outcome | None
    winner: str | None
    events: int | None
    kept: Kept
    resumes: int
    directory: str | None
    foreground: bool
    held_back_by: str | None = None
    weak: str = ""
    summary: str = ""

    @property
    def busy(self) -> bool:
        """Whether another turn of its session has to wait for it. Nobody goes on with an interrupted run of the
        foreground before somebody resumes it.
        """
        going_on = self.state in ("queued", "running") or (self.state == "interrupted" and not self.foreground)
        return going_on and self.kept != "moved"

    @property
    def expired(self) -> bool:
        return self.kept in ("losing_results", "nothing")

    @property
    def moved(self) -> str | None:
        """Where to, in words, if the run goes on in another store."""
        return (self.held_back_by or "moved") if self.kept == "moved" else None


@dataclass(frozen=True, slots=True)
class WorkRow:
    """What tells who should work on a run. `started`: when, or when it was queued, in seconds since the epoch;
    `directory` as in `RunRow`.
    """

    run_id: str
    state: RunStatus
    fingerprint: str
    started: float
    kept: Kept
    directory: str | None
    foreground: bool


@dataclass(frozen=True, slots=True)
class EndedRow:
    """A run that has ended, as statistics see it. `digested`: its record was read; `digest` is None if it was not, or
    if the run was never begun. `marks`: as in `CountedRun`.
    """

    row: RunRow
    digested: bool
    digest: RunDigest | None
    marks: dict[str, Mark]


@dataclass(frozen=True, slots=True)
class Control:
    """A request to act on a run, such as to cancel it; `number` is unique. The `message` of `admit` is the id of the
    run that is to begin, that of `answer` a `CallerAnswer`.
    """

    number: int
    run_id: str
    action: Wish
    message: str


class CallerAnswer(BaseModel):
    """The caller's decision and the number of the question in its run, so that no other question gets it after a kill
    or a timeout. `question` None: earlier versions didn't keep it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    question: int | None
    text: str

    @classmethod
    def read(cls, message: str) -> Self:
        """Read the message of a stored control."""
        try:
            return cls.model_validate_json(message)
        except ValidationError:
            return cls(question=None, text=message)


@dataclass(frozen=True, slots=True)
class NewRun(StartedRun):
    """What a start asks the store to remember. `turns_over`: the numbers of the session's runs that have ended, as
    far as its history goes back; the store may not know of the last end yet. `usd`: what it may cost at most.
    """

    turns_over: frozenset[int] = frozenset()
    usd: float | None = None


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """Something that a person has done; `at` in seconds since the epoch."""

    at: float
    person: str
    action: str
    run_id: str


@dataclass(frozen=True, slots=True)
class StateFigures:
    """Of the runs in one state, nested ones left out. `oldest`: when the first of them was queued; `usd`: what they
    have cost, or may cost while they go on.
    """

    state: RunStatus
    runs: int
    oldest: float
    usd: float


@dataclass(frozen=True, slots=True)
class LostRun:
    """A run of which there are files and no row. `alone`: no runner takes it before somebody resumes it. `newer`: a
    newer version of this program has to. `controls`: what is wanted of it still; `marks`: as in `EndedRow`.
    """

    run: NewRun
    state: RunStatus
    created: float
    record: RunState
    alone: bool = False
    newer: bool = False
    controls: Sequence[tuple[Wish, str]] = ()
    marks: Mapping[str, Mark] = field(default_factory=dict[str, Mark])


@dataclass(frozen=True, slots=True)
class Added:
    """The run that a start led to. `reused`: it is an earlier one; `replaced`: the run that was cancelled for it."""

    row: RunRow
    reused: bool = False
    replaced: RunRow | None = None


class SessionMoved(Exception):
    """Another turn of the session has been added since its history was read."""


@dataclass(frozen=True, slots=True)
class Nesting:
    """Of a nested run: the run that it was started in, how many runs it is below the first one, and how many more may
    be below it.
    """

    parent: str
    depth: int
    levels_left: int


@dataclass(frozen=True, slots=True)
class EarlierChanges:
    """What an agent changed in an earlier run, and a new one goes on with: a tree among the `changes` of that run,
    which lie in `directory`.
    """

    run_id: str
    agent: str
    directory: str
    tree: str
    files: int
    commented: str = ""
    """The lines that the question comments on, in words for a model."""


@dataclass(frozen=True, slots=True)
class FrozenRequest:
    """What a run was asked to do, frozen when it was started. `history`: the earlier turns of its session, in order.
    `nesting`: None for a run that nobody started inside another one. `begins_with`: None if copies begin as the base.
    """

    question: str
    config: Config
    history: tuple[EarlierTurn, ...] = ()
    nesting: Nesting | None = None
    begins_with: EarlierChanges | None = None
    bounded: bool = False
    """Whether calls of unknown price count for `max_usd`, at the highest known price of similar models. False in a
    request that an earlier version froze.
    """
    kind: RunKind = "single"
    usual_seconds: Mapping[str, float] = field(default_factory=dict[str, float])
    """How long models take for a first answer on such work, by model: the medians of the user's own runs."""

    @property
    def levels(self) -> int:
        """So many levels of runs may be below this one."""
        if self.config.nested is None:
            return 0
        inherited = self.nesting.levels_left if self.nesting else self.config.nested.max_depth
        return min(self.config.nested.max_depth, inherited)

    @property
    def depth(self) -> int:
        """How many runs it is below one that nobody started inside another."""
        return self.nesting.depth if self.nesting else 0

    def inside(self, run_id: str, question: str, config: Config) -> "FrozenRequest":
        """The request of a run that is started inside this one, whose id that is."""
        nesting = Nesting(run_id, self.depth + 1, self.levels - 1)
        return FrozenRequest(question, config, nesting=nesting, bounded=self.bounded, usual_seconds=self.usual_seconds)

    def depth_reached(self) -> str:
        """Why no run may be started inside this one, in words for a model."""
        return (
            f"Not started: this run is at nesting level {self.depth}, the maximum here (max_depth). Work it out "
            "yourself."
        )


def new_run_id() -> str:
    """128 random bits: cannot be guessed, and fits every place where an id may stand."""
    return RUN_ID_PREFIX + b32encode(secrets.token_bytes(16)).decode().rstrip("=").lower()


def unknown_run(run_id: str) -> MassgenError:
    """For an id that the store does not know: it may have been deleted, or never was."""
    return MassgenError("unknown_run", f"there is no run {run_id[:80]!r}; list_runs shows all runs")
