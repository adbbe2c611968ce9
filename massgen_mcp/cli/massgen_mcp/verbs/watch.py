"""`massgen status`, `massgen wait` and `massgen watch`: how a run stands, now or until it has ended or needs an answer.
`watch` shows what happens meanwhile: on a terminal in the live view, elsewhere as text or JSON lines.
"""

import argparse
import math
import os
import signal
from contextlib import aclosing

import anyio
from anyio.abc import TaskGroup

from massgen_mcp.cli.asking import person_at_terminal
from massgen_mcp.cli.exits import EXIT_OK, exit_of_run
from massgen_mcp.cli.live.display import Display, Sentences
from massgen_mcp.cli.live.telling import Telling, draw_attention, kept_of, open_terminal
from massgen_mcp.cli.massgen_mcp.verbs.status import say_status
from massgen_mcp.cli.named_runs import find_run_to_read
from massgen_mcp.cli.output import print_line
from massgen_mcp.cli.run_service import run_service
from massgen_mcp.errors import MassgenError
from massgen_mcp.events.record import LogRecord
from massgen_mcp.run_state.state import RunState
from massgen_mcp.runs.engine import Action
from massgen_mcp.runs.service import RunService
from massgen_mcp.runs.view.run_view import RunView
from massgen_mcp.server import results
from massgen_mcp.views.event_lines import log_line
from massgen_mcp.views.plain_text import preview


async def watch_as_person(service: RunService, run_id: str, *, plain: bool) -> int:
    """As `massgen` shows a run; with its answer, when it has ended."""
    terminal, display = open_terminal(wanted=not plain), Sentences(print_line)
    if terminal is not None:
        from massgen_mcp.cli.live.view import LiveView  # a terminal library, for terminals only

        usual_time = await service.outcomes.describe_usual_time(run_id)
        display = LiveView(terminal, leaves=True, usual_time=usual_time)
    telling = Telling(terminal, print_line)
    watched: _Watched | None = None
    followed = False
    try:
        async with (
            anyio.create_task_group() as tasks,
            aclosing(service.watcher.follow(run_id, past_questions=True)) as news,
        ):
            async for view, records in news:
                if watched is None:
                    watched = _Watched(service, view, tasks, display)
                    telling.aside(f"Question: {preview(view.snapshot.question)}")
                    display.started(watched)
                    if not view.ended:
                        followed = True
                        tasks.start_soon(display.refresh)
                watched.view = view
                for record in records:
                    display.record(record)
            tasks.cancel_scope.cancel()
    finally:
        display.close()
        if watched is not None and not watched.view.ended:
            telling.aside(_goes_on(watched.view))
    if watched is None:
        return EXIT_OK
    if watched.view.ended:
        telling.ending(watched.state, kept_of(watched.state, watched.view.directory))
        if followed and terminal is not None:
            draw_attention(watched.state, os.environ)
    return exit_of_run(watched.view)


def _goes_on(view: RunView) -> str:
    run_id = view.row.run_id
    if view.row.moved:
        return f"The run was {view.row.moved}."
    if view.state == "interrupted":
        return f"The run was interrupted; continue it with `massgen resume {run_id}`."
    return f"The run continues; `massgen watch {run_id}` follows it again."


class _Watched:
    """A run of another process, as a display follows it."""

    past: tuple[LogRecord, ...] = ()
    """All of it comes as news."""

    def __init__(self, service: RunService, view: RunView, tasks: TaskGroup, display: Display) -> None:
        self._service, self._tasks, self._display = service, tasks, display
        self.view = view

    @property
    def state(self) -> RunState:
        return self.view.snapshot

    def do(self, action: Action, message: str = "", number: int = 0) -> None:  # noqa: ARG002 - the run store numbers them
        self._tasks.start_soon(self._want, action, message)

    async def _want(self, action: Action, message: str) -> None:
        value = float(message) if action == "raise_budget" else None
        try:
            await self._service.control(self.view.row.run_id, action, "" if value else message, value)
        except MassgenError as error:
            self._display.note(str(error))


async def follow_run(options: argparse.Namespace) -> int:
    """Show how a run stands now (`status`), when it has ended or needs an answer (`wait`), or all the time until then
    (`watch`). Returns the exit code, which is 0 for how it stands now.
    """
    code = EXIT_OK
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_leave_in_order)
        with run_service() as service:
            code = await _show(service, await find_run_to_read(service, options.run_id), options)
        tasks.cancel_scope.cancel()
    return code


async def _leave_in_order() -> None:
    """SIGTERM leaves as Ctrl-C does, with the terminal as it was."""
    with anyio.open_signal_receiver(signal.SIGTERM) as signals:
        async for _ in signals:
            signal.raise_signal(signal.SIGINT)


async def _show(service: RunService, run_id: str, options: argparse.Namespace) -> int:
    if options.verb == "watch":
        view = await service.watcher.get_run(run_id)
        if view.damage is not None and not view.directory.path.exists():
            raise view.damage
        if options.plain or (not options.json and person_at_terminal(os.environ)):
            return await watch_as_person(service, run_id, plain=options.plain)
        return await _show_lines(service, run_id, as_json=options.json)
    if options.verb == "wait":
        seconds = math.inf if options.timeout is None else options.timeout
        view = await service.watcher.wait(run_id, until="terminal", seconds=seconds, cursor=None)
    else:
        view = await service.watcher.get_run(run_id)
    if options.json:
        print_line(results.status(view).as_json())
    else:
        say_status(view)
    return exit_of_run(view) if options.verb == "wait" else EXIT_OK


async def _show_lines(service: RunService, run_id: str, *, as_json: bool) -> int:
    code = EXIT_OK
    async with aclosing(service.watcher.follow(run_id, text=as_json)) as news:
        async for view, records in news:
            code = exit_of_run(view)
            for record in records:
                line = record.model_dump_json() if as_json else log_line(record, view.snapshot, debug=False)
                if line is not None and not print_line(line):
                    return code  # nobody reads any more
    return code
