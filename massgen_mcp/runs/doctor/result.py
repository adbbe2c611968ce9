"""What the doctor found: a type for everybody who looks at something for it."""

from dataclasses import dataclass
from typing import Literal

CheckLevel = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class DoctorCheck:
    """What one look found. `advice` says what to do, and is empty when there is nothing to do."""

    name: str
    level: CheckLevel
    message: str
    advice: str = ""
