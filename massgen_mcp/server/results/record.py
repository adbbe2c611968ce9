"""What led to an answer: the votes with their reasons, dissent, who was dropped, what was used."""

from dataclasses import dataclass

from massgen_mcp.runs.run_view import RunView
from massgen_mcp.server.results.agent_names import id_of
from massgen_mcp.server.results.reply import Part, listed, number
from massgen_mcp.server.results.words import REASON_CHARACTERS, reason_of, shortened


class VoteLine(Part):
    voter: str
    voted_for: str
    label: str
    reason: str


class Dissent(Part):
    """An answer that says something else than the winner's and had votes."""

    agent: str
    label: str
    votes: int
    preview: str


class Dropped(Part):
    agent: str
    reason: str
    message: str


class Usage(Part):
    model_calls: int
    input_tokens: int
    cached_input_tokens: int
    output_tokens: int
    calls_without_usage: int
    cost_usd: float | None = None
    """Absent where no price is known."""
    unpriced_calls: int

    def text(self) -> str:
        return listed(
            "price unknown" if self.cost_usd is None else f"cost_usd {number(self.cost_usd)}",
            f"{self.model_calls} calls",
            f"{self.input_tokens} input tokens",
            f"{self.cached_input_tokens} of them cached",
            f"{self.output_tokens} output tokens",
            f"{self.calls_without_usage} calls without usage",
            f"{self.unpriced_calls} unpriced",
        )


@dataclass(frozen=True, slots=True)
class Detail:
    """How many characters of what led to an answer are told; None: all."""

    reason: int | None
    dissent: int | None
    message: int | None
    paths: bool = True


ALL = Detail(None, None, None)
DETAILS = (Detail(500, 1_000, 300), Detail(200, 300, 200), Detail(80, 100, 80), Detail(20, 20, 20, paths=False))


@dataclass(frozen=True, slots=True)
class Led:
    """What led to an answer, as far as it may be long."""

    reason: str | None
    votes: list[VoteLine]
    dissent: list[Dissent]
    degraded: list[Dropped]


def led_to_it(view: RunView, detail: Detail) -> Led:
    reason = reason_of(view, None if detail is ALL else REASON_CHARACTERS)
    return Led(reason, votes_of(view, detail), _dissent(view, detail), degraded_of(view, detail))


def votes_of(view: RunView, detail: Detail) -> list[VoteLine]:
    run = view.snapshot
    authors = {answer.label: answer.agent for answer in run.answers}
    return [
        VoteLine(
            voter=id_of(run, vote.voter),
            voted_for=id_of(run, authors[vote.label]),
            label=vote.label,
            reason=shortened(vote.reason, detail.reason),
        )
        for vote in run.votes.values()
    ]


def _dissent(view: RunView, detail: Detail) -> list[Dissent]:
    run = view.snapshot
    if run.winner is None:
        return []
    return [
        Dissent(
            agent=id_of(run, answer.agent),
            label=answer.label,
            votes=run.winner.votes[answer.label],
            preview=shortened(answer.content, detail.dissent),
        )
        for answer in run.current_answers
        if answer.label not in run.agreed and run.winner.votes.get(answer.label)
    ]


def degraded_of(view: RunView, detail: Detail) -> list[Dropped]:
    run = view.snapshot
    return [
        Dropped(agent=id_of(run, agent), reason=reason, message=shortened(message, detail.message))
        for agent, reason, message in run.degraded
    ]


def usage_of(view: RunView) -> Usage:
    spent = view.snapshot.spent
    return Usage(
        model_calls=spent.calls,
        input_tokens=spent.input_tokens,
        cached_input_tokens=spent.cached_input_tokens,
        output_tokens=spent.output_tokens,
        calls_without_usage=spent.calls_without_usage,
        cost_usd=spent.rounded_usd,
        unpriced_calls=spent.unpriced_calls,
    )
