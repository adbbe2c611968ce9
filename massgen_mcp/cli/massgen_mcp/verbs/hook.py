"""`massgen-mcp hook`: what the hooks of the Claude Code plugin call, so that an idle session hears how a run ended.

The event comes as JSON on standard input. After a call of our tools it notes what the session waits for. When the
session becomes idle, or is continued, it waits, prints the result of the first run that ends (or what a run asks for)
to standard error and exits with 2: that wakes the session. What the model has seen itself is not told again.
"""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

import anyio

from massgen_mcp.cli.exits import EXIT_FAILED, EXIT_OK
from massgen_mcp.cli.massgen_mcp.awaited_runs import AwaitedRuns
from massgen_mcp.errors import MassgenError

if TYPE_CHECKING:  # nine of ten calls have nothing to wait for, and must not pay for what waiting needs
    from massgen_mcp.runs.service import RunService
    from massgen_mcp.runs.view.run_view import RunView
    from massgen_mcp.server.results import ToolReply

EXIT_WAKES = 2
"""A contract of Claude Code: a background hook with this code wakes the session with what is on standard error."""
ATTENDED = "CLAUDE_CODE_SESSION_ATTENDED"
CHECK_SECONDS = 2.0
RESULT_CHARACTERS = 8_000
"""Of the answer; the rest is a page of get_result away."""
AWAITS = ("start_run", "wait_run")
OVER = ("completed", "failed", "cancelled", "timed_out")

Json = dict[str, object]


async def run(options: argparse.Namespace) -> int:
    client = os.getppid()  # before anything that takes time, in which it could be gone
    try:
        event = _object(sys.stdin.buffer.read())
        awaited = AwaitedRuns(Path(options.directory), str(event.get("session_id")))
        match event.get("hook_event_name"):
            case "PostToolUse":
                _note(awaited, str(event.get("tool_name")).rpartition("__")[2], _object(event.get("tool_response")))
                return EXIT_OK
            case "SessionStart" if os.environ.get(ATTENDED) == "0":
                return EXIT_OK  # nobody is idle: the prompt comes with the start, and would wait for us
            case _:
                return await _watch(awaited, client) if awaited.run_ids() else EXIT_OK
    except (MassgenError, OSError, ValueError) as error:
        print(f"massgen-mcp hook: {error}", file=sys.stderr)  # noqa: T201 - for the client's debug log
        return EXIT_FAILED


def _object(given: object) -> Json:
    """The JSON object in a text, or the object itself; empty for anything else. Raises ValueError for broken JSON."""
    found: object = json.loads(given) if isinstance(given, str | bytes) and given.lstrip()[:1] in ("{", b"{") else given
    return cast("Json", found) if isinstance(found, dict) else {}


def _note(awaited: AwaitedRuns, tool: str, reply: Json) -> None:
    """Nothing where the reply is no run of ours, such as a task that the client itself waits for."""
    run_id, status = reply.get("run_id"), reply.get("status")
    if not isinstance(run_id, str):
        return
    if status in OVER:
        awaited.forget(run_id)
    elif tool in AWAITS:
        awaited.add(run_id)


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

            async def wait_for_all() -> None:
                async with anyio.create_task_group() as waits:
                    for run_id in awaited.run_ids():
                        waits.start_soon(wait_for, run_id)
                tasks.cancel_scope.cancel()

            tasks.start_soon(wait_for_all)
            tasks.start_soon(_while_wanted, awaited, client, tasks.cancel_scope)
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
        view = await service.wait(run_id, until="terminal", seconds=float("inf"), cursor=None)
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
    return [f"The massgen run {run_id} has ended. Its result, as get_result gives it:\n{_as_json(reply)}"]


def _need(awaited: AwaitedRuns, view: "RunView") -> list[str]:
    from massgen_mcp.server import results

    run_id, need = view.row.run_id, str(view.snapshot.seq)
    if awaited.announced(run_id) == need:
        return []
    awaited.tell(run_id, need)
    reply = _as_json(results.status(view))
    return [f"The massgen run {run_id} needs you. Its status, as get_status gives it:\n{reply}"]


def _as_json(reply: "ToolReply") -> str:
    return json.dumps(reply.structured(), ensure_ascii=False)
