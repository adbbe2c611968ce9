"""What a run is told of the turns before it."""

from pydantic import BaseModel, ConfigDict


class EarlierTurn(BaseModel):
    """A turn of the same session that has ended: what was asked, and the final answer."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    question: str
    """What was asked."""
    answer: str
    """The final answer."""
