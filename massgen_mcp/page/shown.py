"""What an agent was sent at one moment, as the page of a run draws it."""

from collections.abc import Mapping, Sequence

from massgen_mcp.events.agent_work import BallotChanged, MessagesShown, RoundStarted
from massgen_mcp.events.coordination import PresentationStarted
from massgen_mcp.events.parts import BallotEntry, RoundKind
from massgen_mcp.page.data import PagePrompt, ShownAnswer
from massgen_mcp.page.history import Sent, key_of
from massgen_mcp.page.texts import TextRoom

_KINDS: Mapping[RoundKind, str] = {
    "answer_or_vote": "",
    "run_off": " of the run-off",
    "test": ", to write tests",
    "check": ", to write a failing test",
    "confirm": ", to say what a script has to print",
    "settle": ", to say what scripts have to print",
}


def shown_of(sent: Sent, messages: Sequence[str], room: TextRoom, at: float) -> PagePrompt:
    """`messages`: all that the caller has said; `at`: when it was sent, in seconds since the run began."""
    event, texts = sent.event, list[str]()
    ballot: tuple[BallotEntry, ...] = ()
    heard = [f"Message of the caller: {message}" for message in messages]
    match event:
        case RoundStarted():
            what = f"Round {event.round}{_KINDS.get(event.kind, '')}"
            ballot = event.ballot
            texts = [*_reasons(event), event.notes, *heard[: event.heard]]
        case BallotChanged():
            what, ballot = "Newer answers", event.ballot
            texts = _reasons(event)
        case MessagesShown():
            what = "Messages of the caller"
            texts = heard[: event.heard]
        case PresentationStarted():
            what = "All answers and votes, to write the final answer"
            texts = heard[: event.heard]
    return PagePrompt(
        at=at,
        agent=event.agent,
        what=what,
        ballot=tuple(ShownAnswer(name=entry.name, answer=key_of(sent.attempt, entry.label)) for entry in ballot),
        texts=tuple(room.take(text) for text in texts if text),
    )


def _reasons(event: RoundStarted | BallotChanged) -> list[str]:
    return [f"Reason of {reason.name}: {reason.reason}" for reason in event.reasons]
