"""The live view of a run on a terminal: a small frame under the normal scrollback, into which what matters is printed.

No frame is left behind when the window changes. The cursor rests on the frame's first row, so erasing from there on
removes the frame whatever the terminal has made of its lines; and while the window is being changed there is none. In
tmux it also keeps away from the upper edge: tmux makes room for broken lines by pushing the topmost rows, rather than
the empty ones at the bottom, into the scrollback, where nothing can be erased any more. Must not know what the frame
shows; `views.live_view` draws it.
"""

import os
import signal
import time
from collections.abc import Callable, Sequence

import anyio
from prompt_toolkit.application import Application
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.input import create_input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import FormattedTextControl, Layout, Window

from massgen_mcp.cli.live.display import Display, FollowedRun
from massgen_mcp.cli.live.keys import Keys
from massgen_mcp.cli.live.terminal import Terminal
from massgen_mcp.events.agent_work import TextDelta
from massgen_mcp.events.record import LogRecord
from massgen_mcp.events.run import InputRequired
from massgen_mcp.run_state.state import RunState
from massgen_mcp.views.activity import Activities
from massgen_mcp.views.coordination_record import draw_history
from massgen_mcp.views.event_lines import event_line
from massgen_mcp.views.live_view import Screen, live_view
from massgen_mcp.views.styled import Line, Span, clip_line, line, text_of, width_of, wrap

REFRESH_SECONDS = 0.1
SETTLE_SECONDS = 0.2
"""A window that has not changed for so long is taken as settled."""
PLACE_SECONDS = 1.0
"""So long a terminal may take to tell where the frame is."""


class LiveView(Display):
    """Ctrl-C is passed on as the signal that it stands for; with `leaves` it does not end the run."""

    def __init__(self, terminal: Terminal, *, leaves: bool = False, usual_time: str = "") -> None:
        self._terminal = terminal
        self._usual_time = usual_time
        self._run: FollowedRun | None = None
        self._doing = Activities()
        self.records: list[LogRecord] = []
        """What has happened so far, streamed text left out."""
        self._waiting: list[Line] = []
        self._app: Application[None] | None = None
        self._keys = Keys(self.show, self._history, lambda: terminal.width, leaves=leaves)
        self._rendered: tuple[str, int, list[Line]] = ("", 0, [])
        """The words of the followed agent, as they were drawn last."""
        self._room_above = 0
        """Empty rows between what was printed last and the frame, to be printed into."""
        self._closed = False
        self._kept_from_edge = False
        self._placed_by = 0.0
        self._size: tuple[int, int] | None = None
        self._changed_at: float | None = None
        """When the window changed last, until it has settled."""

    def started(self, run: FollowedRun) -> None:
        self._run = run
        self.records = [record for record in run.past if not isinstance(record.event, TextDelta)]
        open_question = run.state.input_required
        for record in self.records:
            if record.event is open_question and (sentence := event_line(record, run.state)):
                self._waiting += self._record_lines(record, sentence)
        self._keys.started(run)

    def record(self, record: LogRecord) -> None:
        self._doing.apply(record)
        if isinstance(record.event, TextDelta) or self._run is None:
            return
        self.records.append(record)
        if sentence := event_line(record, self._run.state):
            self._waiting += self._record_lines(record, sentence)
        self._keys.words.record(record)

    def _record_lines(self, record: LogRecord, sentence: Line) -> list[Line]:
        """A question is kept whole, because somebody has to answer it; everything else in one line."""
        width = self._terminal.width
        if not isinstance(record.event, InputRequired):
            return [clip_line(sentence, width)]
        return [(Span(part, "accent"),) for part in wrap(text_of(sentence), width, indent=2)]

    def note(self, text: str) -> None:
        self.show([line(Span(text, "bad"))])

    async def refresh(self) -> None:
        app = self._application()
        self._wait_for_place()
        running = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._show, app, running.set)
            try:
                await running.wait()
                while True:
                    await anyio.sleep(REFRESH_SECONDS)
                    await self._settle(app)
                    self._keep_from_edge(app)
                    self._print_waiting(app)
                    app.invalidate()
            finally:
                with anyio.CancelScope(shield=True):
                    await running.wait()
                    if app.is_running and not app.is_done:
                        app.exit()

    def close(self) -> None:
        self._closed = True
        if self._app is not None and self._app.is_running:  # the process is leaving in a hurry
            self._app.renderer.erase()
            self._app.input.cooked_mode().__enter__()
        self._flush()

    # -- the frame ----------------------------------------------------------------------------------------------------

    def _application(self) -> Application[None]:
        keys = KeyBindings()
        self._keys.bind(keys)
        keys.add("c-c")(_interrupt)
        control = FormattedTextControl(self._frame, show_cursor=False)
        app: Application[None] = Application(
            layout=Layout(Window(control, wrap_lines=False, always_hide_cursor=True, dont_extend_height=True)),
            key_bindings=keys,
            style=self._terminal.style,
            color_depth=self._terminal.depth,
            input=create_input(),
            output=self._terminal.output,
            erase_when_done=True,
            before_render=self._notice_size,
        )
        app.renderer.cpr_not_supported_callback = None  # the frame goes without
        self._app = app
        return app

    async def _show(self, app: Application[None], running: Callable[[], None]) -> None:
        """Until `app.exit`; a cancelled application would leave the terminal as it is."""
        with anyio.CancelScope(shield=True):
            try:
                await app.run_async(pre_run=running, handle_sigint=False, set_exception_handler=False)
            finally:
                running()

    def _frame(self) -> FormattedText:
        placed = self._kept_from_edge or anyio.current_time() > self._placed_by
        if self._run is None or self._changed_at is not None or not placed:
            return FormattedText()
        return self._terminal.formatted(self._lines(self._run.state))

    def _lines(self, run: RunState) -> list[Line]:
        return live_view(
            run,
            self._doing,
            Screen(self._terminal.width, self._terminal.height, self._rendering),
            now=run.now(time.monotonic(), time.time()),
            controls=self._keys.controls,
            usual_time=self._usual_time,
        )

    def _rendering(self, text: str, width: int) -> list[Line]:
        if self._rendered[:2] != (text, width):
            self._rendered = (text, width, self._terminal.text(text, width))
        return self._rendered[2]

    # -- the window ---------------------------------------------------------------------------------------------------

    def _notice_size(self, _: object) -> None:
        size = (self._terminal.width, self._terminal.height)
        if self._size not in (None, size):
            self._changed_at = anyio.current_time()
        self._size = size

    async def _settle(self, app: Application[None]) -> None:
        """After a change of the window: wait until it has settled, then keep away from its upper edge."""
        if self._changed_at is None:
            return
        while anyio.current_time() - self._changed_at < SETTLE_SECONDS:
            await anyio.sleep(SETTLE_SECONDS / 4)
            self._notice_size(app)
        self._changed_at = None
        self._wait_for_place()

    def _wait_for_place(self) -> None:
        """From now on the frame waits until it is known to be away from the edge, or for so long."""
        self._kept_from_edge = not self._terminal.in_tmux
        self._placed_by = anyio.current_time() + PLACE_SECONDS

    def _keep_from_edge(self, app: Application[None]) -> None:
        """Once there is a run and the terminal has told where its frame is, and after each change of the window."""
        if self._kept_from_edge or self._run is None:  # nobody knows how high the frame of no run will be
            return
        if app.renderer.waiting_for_cpr or not app.renderer.height_is_known:
            return  # an answer still to come tells where the frame was before it is moved
        self._kept_from_edge = True
        self._room_above = min(self._room_above, app.renderer.rows_above_layout)
        rows = len(self._lines(self._run.state))
        missing = min(2 * rows, self._terminal.height - rows) - app.renderer.rows_above_layout
        if missing > 0:
            app.renderer.erase()
            app.output.write_raw("\r\n" * missing)
            app.output.flush()
            self._room_above += missing

    # -- the scrollback -----------------------------------------------------------------------------------------------

    def _print_waiting(self, app: Application[None]) -> None:
        if self._waiting:
            app.renderer.erase()
            self._flush()

    def show(self, lines: Sequence[Line]) -> None:
        """Lines for the scrollback, printed at the next refresh or when the view is closed."""
        self._waiting += lines

    def _flush(self) -> None:
        """Into the empty rows above the frame, as far as there are some; the cursor is on the frame's first row."""
        lines, self._waiting = self._waiting, []
        output = self._terminal.output
        if self._room_above:
            output.cursor_up(self._room_above)
        self._terminal.print(lines)
        taken = sum(max(1, -(-width_of(text_of(one)) // self._terminal.width)) for one in lines)
        self._room_above = max(0, self._room_above - taken)
        if self._room_above and not self._closed:
            output.cursor_down(self._room_above)
        output.flush()

    def _history(self) -> Sequence[Line]:
        return draw_history_lines(self._run.state, self.records, self._terminal.width) if self._run else []


def draw_history_lines(run: RunState, records: Sequence[LogRecord], width: int) -> list[Line]:
    """The whole coordination history as a table of at most `width` columns."""
    title = (Span("Coordination history", "title"),)
    table = draw_history(run, records, width=width)
    return [(), title, *((Span(row),) for row in table.splitlines()), ()]


def _interrupt(_: KeyPressEvent) -> None:
    os.kill(os.getpid(), signal.SIGINT)
