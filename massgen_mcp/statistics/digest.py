"""What the statistics of many runs have to know of one: a few figures, made once from its state, and what a user said
of it afterwards. Pure.

Nothing that anybody wrote is in a digest, so it may be kept when the run's results are gone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from pydantic import BaseModel, TypeAdapter

from massgen_mcp.errors import DropReason
from massgen_mcp.events.parts import Outcome, Spent
from massgen_mcp.run_state.state import RunState
from massgen_mcp.run_state.work_done import Failure, Weakness

Verdict = Literal["right", "wrong"]


class Mark(BaseModel, frozen=True, defer_build=True, extra="forbid"):
    """`note`: what the user wrote with it; `at`: when, in seconds since the epoch."""

    verdict: Verdict
    note: str
    at: float


DIGEST_VERSION = 3
"""Raised whenever a digest says more or something else: those of before are made anew while the run's record lasts."""


# Statistics hold all digests at once. With slots they take a quarter of the time of pydantic's models, which is the
# garbage collector's.


@dataclass(frozen=True, slots=True)
class SpentDigest:
    """`usd` is the known part; None: calls were made, and the price of none is known."""

    calls: int
    tokens: int
    usd: float | None
    unpriced_calls: int
    estimated_calls: int


@dataclass(frozen=True, slots=True)
class AgentDigest:
    """`voted`: the camp that its vote went to in the end; `wrote`: the camp of its own last answer. See
    `RunDigest.camp`.
    """

    id: str
    model: str
    answers: int
    dropped: DropReason | None
    voted: str | None
    wrote: str | None
    spent: SpentDigest
    first_answer_seconds: float | None = None
    """How long it worked on its first answer; None if it gave none."""


@dataclass(frozen=True, slots=True)
class RunDigest:
    """A run that has ended. Camps are answers that say the same; a camp is called by the label of its first answer."""

    seconds: float
    attempts: int
    outcome: Outcome | None
    agents: tuple[AgentDigest, ...]
    winner: str | None
    """Id of the agent whose answer the run is completed with."""
    camp: str | None
    """The camp that won the vote; None where nothing was decided."""
    first_answer: bool
    """What won was the first answer of its author."""
    first_ballot: bool
    """Nobody answered again after the first ballot, and there was neither a run-off nor a further attempt."""
    spent: SpentDigest
    """With what nested runs spent."""
    decide: str = ""
    """How the winner was to be found, as `decide` of a config; empty in a digest that was kept before it said so."""
    kind: str = ""
    """The kind of work, as estimates tell it; empty in a digest that was kept before it said so."""
    weak: tuple[Weakness, ...] = ()
    """As `WorkDone.weak`; empty in a digest that is older."""
    failure: Failure | None = None
    """As `WorkDone.failure`; None in a digest that is older."""

    @property
    def dissenters(self) -> list[AgentDigest]:
        """Who voted in the end, and for something else than what won."""
        return [agent for agent in self.agents if agent.voted not in (None, self.camp)]


_DIGESTS = TypeAdapter(RunDigest)


def as_kept(digest: RunDigest) -> str:
    return _DIGESTS.dump_json(digest).decode()


@lru_cache(maxsize=256)  # every start of a run reads the newest ones
def from_kept(text: str) -> RunDigest:
    """Raises `ValueError` for what `as_kept` did not write."""
    return _DIGESTS.validate_json(text)


def digest_of(run: RunState) -> RunDigest | None:
    """None for a run that was never begun."""
    if run.started_at is None:
        return None
    camps = {label: camp.answers[0] for camp in run.camps for label in camp.answers}
    winner, work = run.winner, run.work_done
    firsts = {agent.answers[0].label for agent in run.agents.values() if agent.answers}
    one_answer_each = all(len(agent.answers) <= 1 for agent in run.agents.values())
    votes = {voter: vote.label for voter, vote in {**run.votes, **run.run_off_votes}.items()}
    return RunDigest(
        seconds=round(run.elapsed(run.updated_at or run.started_at), 3),
        attempts=run.attempt,
        outcome=run.outcome,
        agents=tuple(_agent_digest(run, name, camps, votes.get(name)) for name in run.agents),
        winner=run.author if run.answered_by else None,
        camp=None if winner is None else camps.get(winner.label, winner.label),
        first_answer=run.attempt == 1 and winner is not None and winner.label in firsts,
        first_ballot=run.attempt == 1 and winner is not None and winner.run_off is None and one_answer_each,
        spent=_spent(run.spent),
        decide=run.coordination.rules.decide,
        kind="question" if run.base is None else "code",
        weak=work.weak,
        failure=work.failure,
    )


def _agent_digest(run: RunState, name: str, camps: Mapping[str, str], voted: str | None) -> AgentDigest:
    agent = run.agents[name]
    wrote = agent.latest_label
    return AgentDigest(
        id=agent.info.id,
        model=agent.info.model,
        answers=len(agent.answers),
        dropped=agent.dropped.reason if agent.dropped else None,
        voted=None if voted is None else camps.get(voted, voted),
        wrote=None if wrote is None else camps.get(wrote, wrote),
        spent=_spent(run.budget.spending.by_agent.get(name, Spent())),
        first_answer_seconds=agent.first_answer_seconds,
    )


def _spent(spent: Spent) -> SpentDigest:
    return SpentDigest(
        calls=spent.calls + spent.lost_calls,
        tokens=spent.tokens,
        usd=spent.rounded_usd,
        unpriced_calls=spent.unpriced_calls,
        estimated_calls=spent.estimated_calls,
    )
