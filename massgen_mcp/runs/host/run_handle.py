"""What others may do with a run while it is executed."""

from collections.abc import Iterable
from dataclasses import dataclass

from massgen_mcp.events.record import LogRecord
from massgen_mcp.orchestration.conduct import Conductor
from massgen_mcp.run_state.state import RunState
from massgen_mcp.runs.engine.rows import Action, Control


@dataclass(frozen=True, slots=True)
class RunHandle:
    """Of one run; used from the event loop that executes it."""

    _conductor: Conductor
    state: RunState
    """The one that the conductor decides on; always up to date."""
    past: tuple[LogRecord, ...] = ()
    """What had happened before this process went on with the run."""

    def do(self, action: Action, message: str = "", number: int = 0) -> None:
        """End the run (`cancel`), decide with the answers that are there (`finish_now`), show `message` to all agents
        (`steer`), make it the new cap (`raise_budget`), or answer with it what the run asks (`answer`). `number` tells
        a remark or a raise from every other one of the run: what is given twice, as after a kill, is heeded once.
        """
        match action:
            case "cancel":
                self._conductor.cancel()
            case "finish_now":
                self._conductor.finish_now()
            case "steer":
                self._conductor.steer(number, message)
            case "raise_budget":
                self._conductor.raise_budget(number, float(message))
            case "answer":
                self._conductor.answer(message)

    async def heed(self, controls: Iterable[Control]) -> list[int]:
        """Carry out these controls; returns the numbers of those that are in the run's journal now."""
        done: list[int] = []
        for control in controls:
            if control.action == "admit":
                await self._conductor.admit(control.message)
            else:
                self.do(control.action, control.message, control.number)
            if control.action != "cancel":  # that stays wanted until the run has ended
                await self._conductor.settle()
                done.append(control.number)
        return done
