"""The keys of the live view: what each of them shows or does, and what a person types for a team that is at work."""

import signal
from collections.abc import Callable, Sequence

from prompt_toolkit.filters import Condition
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from massgen_mcp.cli.live.display import LET_GO, FollowedRun
from massgen_mcp.events.record import LogRecord
from massgen_mcp.events.run import BudgetRaised, CallerMessage, InputGiven, InputKind, InputRequired
from massgen_mcp.run_state.state import RunState
from massgen_mcp.views.difference import answers_to_compare, difference_lines
from massgen_mcp.views.live_view import KEYS, Controls, keys_help
from massgen_mcp.views.plain_text import plain
from massgen_mcp.views.styled import Line, Span
from massgen_mcp.views.votes_text import votes_lines

FINISH = "Finish now with the existing answers? f: yes, any other key: no"
COMPARE = "Compare: type the numbers of two agents, or one number twice to compare that agent's last two answers"


class Words:
    """A remark, an answer to a question, or a higher budget. `typed` is what has been typed so far, None while nothing
    is being typed. A question opens it by itself.
    """

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
            self._show(
                [(Span("Too late: the winner is writing the final answer and no longer reads messages.", "busy"),)]
            )
            return False
        return True

    def _asked(self) -> InputKind | None:
        asked = self._run.state.input_required if self._run else None
        return asked.kind if asked else None


class Keys:
    """`show` prints lines into the scrollback, `history` those of the coordination history."""

    def __init__(
        self,
        show: Callable[[Sequence[Line]], None],
        history: Callable[[], Sequence[Line]],
        width: Callable[[], int],
        *,
        leaves: bool,
    ) -> None:
        self.words = Words(show)
        self._show, self._history, self._width, self._leaves = show, history, width, leaves
        self._run: FollowedRun | None = None
        self._followed: str | None = None
        self._question = ""
        self._chosen: str | None = None
        """The first of two agents to compare."""
        self._questioned = Condition(lambda: bool(self._question))

    def started(self, run: FollowedRun) -> None:
        self._run = run
        self.words.started(run)

    @property
    def controls(self) -> Controls:
        return Controls(self.words.typed, self._question, self._followed, self._leaves)

    def bind(self, keys: KeyBindings) -> None:
        free, questioned = ~self.words.typing & ~self._questioned, self._questioned & ~self.words.typing
        handlers = {
            **dict.fromkeys(KEYS, self._follow),
            "r": self._tell_history,
            "v": self._show_votes,
            "c": self._compare,
            "d": self._let_go,
            "s": self.words.begin,
            "?": self._help,
            "f": self._finish,
        }
        for key, handler in handlers.items():
            keys.add(key, filter=free)(handler)
        keys.add("escape", filter=free, eager=True)(self._follow)
        keys.add("<any>", filter=questioned)(self._decide)
        keys.add("escape", filter=questioned, eager=True)(self._decide)
        keys.add("c-z")(_suspend)
        self.words.bind(keys)

    @property
    def _state(self) -> RunState:
        return self._run.state if self._run else RunState()

    def _agent_of(self, key: str) -> str | None:
        names = list(self._state.agents)
        place = KEYS.find(key) if len(key) == 1 else -1
        return names[place] if 0 <= place < len(names) else None

    def _follow(self, pressed: KeyPressEvent) -> None:
        agent = self._agent_of(pressed.data)
        self._followed = agent if agent != self._followed else None

    def _tell_history(self, _: KeyPressEvent) -> None:
        self._show(self._history())

    def _show_votes(self, _: KeyPressEvent) -> None:
        lines = votes_lines(self._state, self._width())
        self._show([(Span("Votes so far", "title"),), *(lines or [(Span("There are no votes yet.", "dim"),)])])

    def _help(self, _: KeyPressEvent) -> None:
        self._show(keys_help(self._state, leaves=self._leaves))

    def _finish(self, _: KeyPressEvent) -> None:
        self._question = FINISH

    def _compare(self, _: KeyPressEvent) -> None:
        self._question, self._chosen = COMPARE, None

    def _let_go(self, _: KeyPressEvent) -> None:
        """To be told to whoever executes the run, as Ctrl-C is; a run that is only watched goes on anyway."""
        signal.raise_signal(signal.SIGINT if self._leaves else LET_GO)

    def _decide(self, pressed: KeyPressEvent) -> None:
        """The answer to the question in the frame."""
        if self._question == FINISH:
            self._question = ""
            if pressed.data == "f" and self._run is not None:
                self._run.do("finish_now")
            return
        first, second = self._chosen, self._agent_of(pressed.data)
        if second is not None and first is None:
            self._chosen = second
            self._question = f"Compare {self._state.agents[second].info.id} with whose answer? Type a number."
            return
        self._question = ""
        if first is not None and second is not None:
            self._show(self._difference(first, second))

    def _difference(self, one: str, other: str) -> Sequence[Line]:
        run = self._state
        answers = answers_to_compare(run, one, other)
        if answers is not None:
            return difference_lines(run, *answers, self._width())
        lacks = next((name for name in (one, other) if not run.agents[name].answers), one)
        lack = "has not answered yet" if not run.agents[lacks].answers else "has answered only once"
        return [(Span(f"{run.agents[lacks].info.id} {lack}.", "dim"),)]


def _suspend(pressed: KeyPressEvent) -> None:
    pressed.app.suspend_to_background()


def _order(record: LogRecord) -> int:
    return min(0, record.event.control) if isinstance(record.event, CallerMessage | BudgetRaised) else 0


def _dollars(typed: str) -> float | None:
    """None for what is no amount of money."""
    try:
        value = float(typed.lstrip("$").strip())
    except ValueError:
        return None
    return value if 0 < value < 1e6 else None
