"""What a user said afterwards of a run's answer, or of one of its agents."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

Verdict = Literal["right", "wrong"]


class Mark(BaseModel):
    """`note`: what the user wrote with it; `at`: when, in seconds since the epoch."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    verdict: Verdict
    note: str
    at: float
