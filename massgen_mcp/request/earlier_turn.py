"""What a run is told of the turns before it."""

from pydantic import BaseModel


class EarlierTurn(BaseModel, frozen=True, extra="forbid", hide_input_in_errors=True):
    """A turn of the same session that has ended: what was asked, and the final answer."""

    question: str
    """What was asked."""
    answer: str
    """The final answer."""
