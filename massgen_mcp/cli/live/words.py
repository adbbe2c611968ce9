"""What a person types for a team that is at work: a remark, an answer to a question, a higher budget."""

from collections.abc import Callable, Sequence

from prompt_toolkit.filters import Condition
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from massgen_mcp.cli.live.display import FollowedRun
from massgen_mcp.events.record import LogRecord
from massgen_mcp.events.run import BudgetRaised, CallerMessage, InputGiven, InputKind, InputRequired
from massgen_mcp.views.plain_text import plain
from massgen_mcp.views.styled import Line, Span


class Words:
    """`typed` is what has been typed so far, None while nothing is being typed. A question opens it by itself."""

    def __init__(self, show: Callable[[Sequence[Line]], None]) -> None:
        self._show = show
        self.typed: str | None = None
        self.typing = Condition(lambda: self.typed is not None)
        self._run: FollowedRun | None = None
        self._order = 0
        """Number of the last order. Those that are typed count down from 0, those of the run store up."""

    def started(self, run: FollowedRun) -> None:
        self._run = run
        self._order = min((_order(record) for record in run.past), default=0)
        if run.state.input_required is not None:
            self.typed = ""

    def record(self, record: LogRecord) -> None:
        if isinstance(record.event, InputRequired):
            self.typed = ""
        elif isinstance(record.event, InputGiven):
            self.typed = None

    def bind(self, keys: KeyBindings) -> None:
        keys.add("<any>", filter=self.typing)(self._add)
        keys.add("<bracketed-paste>", filter=self.typing)(self._add)
        keys.add("backspace", filter=self.typing)(self._erase)
        keys.add("enter", filter=self.typing)(self._send)
        keys.add("escape", filter=self.typing, eager=True)(self._leave)

    def begin(self, _: KeyPressEvent) -> None:
        self.typed = "" if self._heard() else None

    def _add(self, pressed: KeyPressEvent) -> None:
        self.typed = (self.typed or "") + plain(pressed.data)

    def _erase(self, _: KeyPressEvent) -> None:
        self.typed = (self.typed or "")[:-1]

    def _leave(self, _: KeyPressEvent) -> None:
        """A question stays until it is answered."""
        self.typed = None if self._asked() is None else ""

    def _send(self, pressed: KeyPressEvent) -> None:
        typed = (self.typed or "").strip()
        self._leave(pressed)
        if self._run is None:
            return
        match self._asked():
            case "question" if typed:
                self._run.do("answer", typed)
            case "budget_reached" if not typed:
                self._run.do("finish_now")
            case "budget_reached" if dollars := _dollars(typed):
                self._order -= 1
                self._run.do("raise_budget", repr(dollars), self._order)
            case None if typed and self._heard():
                self._order -= 1
                self._run.do("steer", typed, self._order)
            case _:
                pass

    def _heard(self) -> bool:
        """Whether a message can still be read; says so if not."""
        if self._run is not None and not self._run.state.hears:
            self._show([(Span("Too late: the winner is writing the final answer, and reads no more.", "busy"),)])
            return False
        return True

    def _asked(self) -> InputKind | None:
        asked = self._run.state.input_required if self._run else None
        return asked.kind if asked else None


def _order(record: LogRecord) -> int:
    return min(0, record.event.control) if isinstance(record.event, CallerMessage | BudgetRaised) else 0


def _dollars(typed: str) -> float | None:
    """None for what is no amount of money."""
    try:
        value = float(typed.lstrip("$").strip())
    except ValueError:
        return None
    return value if 0 < value < 1e6 else None
