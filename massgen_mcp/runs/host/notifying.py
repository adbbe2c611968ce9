"""Starts the program by which a user hears that a run has ended.

It works outside the sandbox, so only a person names it: on the command line, or in the user's own config. Nothing that
goes wrong with it is an error of the run.
"""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import anyio

from massgen_mcp.config.loader import config_places, load_notify
from massgen_mcp.errors import MassgenError
from massgen_mcp.run_state.state import RunState
from massgen_mcp.views.spent import cost_of

NOTIFY_SECONDS = 20.0
_OF_A_DESKTOP = ("DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR")
_KEPT = ("PATH", "HOME", "USER", "LANG", "LC_ALL", "TMPDIR", *_OF_A_DESKTOP)
"""Variables that the program gets: what programs of a person need, and no key."""


async def notify(run_id: str, run: RunState, environ: Mapping[str, str], command: Sequence[str] = ()) -> str | None:
    """Start `command`, else what the user's own config names, and wait for its end. Returns what went wrong, for a
    person.
    """
    cwd = None if command else "/"
    try:
        command = command or load_notify(config_places(Path(), environ)[1], environ)
        return await _notified(command, cwd, run_id, run, environ) if command else None
    except MassgenError as error:
        return f"notify: {error}"
    except (OSError, ValueError) as error:
        return f"notify: {command[0]}: {getattr(error, 'strerror', None) or error}"


async def _notified(
    command: Sequence[str], cwd: str | None, run_id: str, run: RunState, environ: Mapping[str, str]
) -> str | None:
    variables = {
        "MASSGEN_RUN_ID": run_id,
        "MASSGEN_STATE": run.state,
        "MASSGEN_OUTCOME": run.outcome or "none",
        "MASSGEN_COST": cost_of(run.spent),
    }
    process = await anyio.open_process(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=cwd,
        env={**{name: environ[name] for name in _KEPT if name in environ}, **variables},
        start_new_session=True,
    )
    try:
        with anyio.fail_after(NOTIFY_SECONDS):
            code = await process.wait()
    except TimeoutError:
        return f"notify: {command[0]} was ended, because it took longer than {NOTIFY_SECONDS:g} seconds"
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            with anyio.CancelScope(shield=True):
                await process.wait()
    return f"notify: {command[0]} ended with exit code {code}" if code else None
