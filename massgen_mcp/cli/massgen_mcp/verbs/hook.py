"""`massgen-mcp hook`: what the hooks of the Claude Code plugin call, so that an idle session hears how a run ended.

The event comes as JSON on standard input. After a call of our tools it notes what the session waits for. When the
session becomes idle, or is continued, it waits, prints the result of the first run that ends (or what a run asks for)
to standard error and exits with 2: that wakes the session. What the model has seen itself is not told again.
"""

import argparse
import json
import os
import re
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, cast

import anyio

from massgen_mcp.cli.exits import EXIT_FAILED, EXIT_OK
from massgen_mcp.errors import MassgenError
from massgen_mcp.home import find_home, find_hook_mark

NAME = re.compile(r"[A-Za-z0-9-]{1,64}")
RUN_ID = re.compile(r"run-[a-z2-7]{26}")
WATCHER = "watcher"
FORGOTTEN_SECONDS = 30 * 24 * 3600
"""A session that was not heard of for so long does not come back."""


class AwaitedRuns:
    """Those of one session. Only one process at a time watches them: the one that came last."""

    def __init__(self, directory: Path, session_id: str) -> None:
        """Raises ValueError for a session id that is no name."""
        if not NAME.fullmatch(session_id):
            raise ValueError("a session id can contain only letters, digits and hyphens")
        self._sessions = directory / "awaited"
        self._directory = self._sessions / session_id

    def add(self, run_id: str) -> None:
        """Wait for this run, too. Raises OSError."""
        if RUN_ID.fullmatch(run_id):
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            (self._directory / run_id).touch(mode=0o600)
            self._forget_old_sessions()

    def forget(self, run_id: str) -> bool:
        """Wait for this run no longer. False where nobody waited for it, or another process was faster."""
        if not RUN_ID.fullmatch(run_id):
            return False
        try:
            (self._directory / run_id).unlink()
        except OSError:
            return False
        return True

    def announced(self, run_id: str) -> str:
        """What `tell` kept last; empty where nothing was told. Raises OSError where the run is waited for no longer."""
        return (self._directory / run_id).read_text(encoding="utf-8")

    def tell(self, run_id: str, what: str) -> None:
        """Keep waiting, but do not tell this again. Raises OSError."""
        (self._directory / run_id).write_text(what, encoding="utf-8")

    def run_ids(self) -> list[str]:
        with suppress(OSError):
            return sorted(path.name for path in self._directory.iterdir() if RUN_ID.fullmatch(path.name))
        return []

    def watch(self) -> None:
        """Become the one that watches. Raises OSError."""
        (self._directory / WATCHER).write_text(str(os.getpid()), encoding="utf-8")

    @property
    def is_watched_here(self) -> bool:
        """Whether this process is the one that watches."""
        try:
            return (self._directory / WATCHER).read_text(encoding="utf-8") == str(os.getpid())
        except OSError:
            return False

    def _forget_old_sessions(self) -> None:
        for session in self._sessions.iterdir():
            with suppress(OSError):
                if session.stat().st_mtime < time.time() - FORGOTTEN_SECONDS:
                    for path in session.iterdir():
                        path.unlink()
                    session.rmdir()


if TYPE_CHECKING:  # nine of ten calls have nothing to wait for, and must not pay for what waiting needs
    from massgen_mcp.runs.service import RunService
    from massgen_mcp.runs.view.run_view import RunView

EXIT_WAKES = 2
"""A contract of Claude Code: a background hook with this code wakes the session with what is on standard error."""
ATTENDED = "CLAUDE_CODE_SESSION_ATTENDED"
CHECK_SECONDS = 2.0
RESULT_CHARACTERS = 8_000
"""Of the answer; the rest is a page of get_result away."""
AWAITS = ("start_run", "wait_run")
OVER = ("completed", "failed", "cancelled", "timed_out")


async def run(options: argparse.Namespace) -> int:
    client = os.getppid()  # before anything that takes time, in which it could be gone
    try:
        event = _json_object(sys.stdin.buffer.read())
        awaited = AwaitedRuns(Path(options.directory), str(event.get("session_id")))
        match event.get("hook_event_name"):
            case "PostToolUse":
                _note(awaited, str(event.get("tool_name")).rpartition("__")[2], _find_reply(event.get("tool_response")))
                return EXIT_OK
            case "SessionStart" if os.environ.get(ATTENDED) == "0":
                return EXIT_OK  # nobody is idle: the prompt comes with the start, and would wait for us
            case _:
                return await _watch(awaited, client) if awaited.run_ids() else EXIT_OK
    except (MassgenError, OSError, ValueError) as error:
        print(f"massgen-mcp hook: {error}", file=sys.stderr)  # noqa: T201 - for the client's debug log
        return EXIT_FAILED


def _json_object(given: object) -> dict[str, object]:
    """The JSON object in a text, or the object itself; empty for anything else. Raises ValueError for broken JSON."""
    found: object = json.loads(given) if isinstance(given, str | bytes) and given.lstrip()[:1] in ("{", b"{") else given
    return cast("dict[str, object]", found) if isinstance(found, dict) else {}


def _find_reply(response: object) -> dict[str, object]:
    """Return the data of our reply: Claude Code passes it on as a text, Codex inside the whole result of the call."""
    found = _json_object(response)
    return _json_object(found.get("structuredContent")) or found


def _note(awaited: AwaitedRuns, tool: str, reply: dict[str, object]) -> None:
    """Nothing where the reply is no run of ours, such as a task that the client itself waits for."""
    run_id, status = reply.get("run_id"), reply.get("status")
    if not isinstance(run_id, str):
        return
    if status in OVER:
        awaited.forget(run_id)
    elif tool in AWAITS:
        awaited.add(run_id)
        with suppress(OSError, MassgenError):  # a run on another machine has no directory here
            find_hook_mark(find_home(os.environ).runs / run_id).touch()


async def _watch(awaited: AwaitedRuns, client: int) -> int:
    from massgen_mcp.cli.run_service import run_service

    awaited.watch()
    news: list[str] = []
    with run_service() as service:
        async with anyio.create_task_group() as tasks:

            async def wait_for(run_id: str) -> None:
                news.extend(await _news(service, awaited, run_id))
                if news:
                    tasks.cancel_scope.cancel()

            tasks.start_soon(_while_wanted, awaited, client, tasks.cancel_scope)
            async with anyio.create_task_group() as waits:
                for run_id in awaited.run_ids():
                    waits.start_soon(wait_for, run_id)
            tasks.cancel_scope.cancel()
    if not news:
        return EXIT_OK
    print(news[0], file=sys.stderr)  # noqa: T201 - one JSON document; the client shows it to the model
    return EXIT_WAKES


async def _while_wanted(awaited: AwaitedRuns, client: int, scope: anyio.CancelScope) -> None:
    """End the watch when another process took it over, or the client is gone: a continued session calls us anew."""
    while os.getppid() == client and awaited.is_watched_here:  # noqa: ASYNC110 - nobody tells us
        await anyio.sleep(CHECK_SECONDS)
    scope.cancel()


async def _news(service: "RunService", awaited: AwaitedRuns, run_id: str) -> list[str]:
    """Wait until the run has ended or needs something; what the model is told then, if this process is to tell it."""
    from massgen_mcp.server import results

    try:
        view = await service.watcher.wait(run_id, until="terminal", seconds=float("inf"), cursor=None)
    except MassgenError as error:
        if error.code in ("unknown_run", "expired"):
            awaited.forget(run_id)
            return []
        raise
    if not view.ended:
        return _need(awaited, view)
    if not awaited.forget(run_id):
        return []
    try:
        reply = results.result(view, "summary", None, 0, RESULT_CHARACTERS)
    except MassgenError:  # its record is damaged; the status says where
        reply = results.status(view)
    return [f"massgen run {run_id} has ended. Its result, from get_result:\n{reply.as_json()}"]


def _need(awaited: AwaitedRuns, view: "RunView") -> list[str]:
    from massgen_mcp.server import results

    run_id, need = view.row.run_id, str(view.snapshot.seq)
    if awaited.announced(run_id) == need:
        return []
    awaited.tell(run_id, need)
    reply = results.status(view)
    return [f"massgen run {run_id} needs you. Its status, from get_status:\n{reply.as_json()}"]
