"""What a procedure is."""

from typing import Protocol

from massgen_mcp.coordination.state import Coordination
from massgen_mcp.events.coordination import StageOpened, WinnerChosen

NextStep = StageOpened | WinnerChosen | None


class Procedure(Protocol):
    def next(self, state: Coordination) -> NextStep:
        """What is due in this state, in which some answer stands and no winner is chosen."""
        ...
