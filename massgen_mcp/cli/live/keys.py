"""The keys of the live view, and what each of them shows or does. `words` has those that write a text."""

import signal
from collections.abc import Callable, Sequence

from prompt_toolkit.filters import Condition
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from massgen_mcp.cli.live.display import LET_GO, FollowedRun
from massgen_mcp.cli.live.words import Words
from massgen_mcp.run_state.state import RunState
from massgen_mcp.views.difference import answers_to_compare, difference_lines
from massgen_mcp.views.live_view import KEYS, Controls, keys_help
from massgen_mcp.views.styled import Line, Span
from massgen_mcp.views.votes_text import votes_lines

FINISH = "Finish now with the answers there are? f: yes, any other key: no"
COMPARE = "Compare: the number of one agent, then of another (or the same twice: its last two answers)"


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
        free = ~self.words.typing & ~self._questioned
        for key in KEYS:
            keys.add(key, filter=free)(self._follow)
        keys.add("escape", filter=free, eager=True)(self._follow)
        keys.add("r", filter=free)(self._tell_history)
        keys.add("v", filter=free)(self._votes)
        keys.add("c", filter=free)(self._compare)
        keys.add("d", filter=free)(self._let_go)
        keys.add("s", filter=free)(self.words.begin)
        keys.add("?", filter=free)(self._help)
        keys.add("c-z")(_suspend)
        keys.add("f", filter=free)(self._finish)
        keys.add("<any>", filter=self._questioned & ~self.words.typing)(self._decide)
        keys.add("escape", filter=self._questioned & ~self.words.typing, eager=True)(self._decide)
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

    def _votes(self, _: KeyPressEvent) -> None:
        lines = votes_lines(self._state, self._width())
        self._show([(Span("Votes so far", "title"),), *(lines or [(Span("Nobody has voted yet.", "dim"),)])])

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
            self._question = f"Compare {self._state.agents[second].info.id} with the number of"
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
