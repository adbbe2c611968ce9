"""Tells that a run has ended: the program by which its user hears of it, and servers that the operator names, each by a
small JSON document, signed.

The program works outside the sandbox, so only a person names it: on the command line, or in the user's own config. No
caller names a server. What cannot be told, and whatever goes wrong with the program, is no error of the run.
"""

import hashlib
import hmac
import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from massgen_mcp.config.access.connections import open_client
from massgen_mcp.config.loader import config_places, load_notify
from massgen_mcp.config.providers.addresses import is_safe_url
from massgen_mcp.errors import BadVariable, MassgenError
from massgen_mcp.home import WEBHOOK_SECRET_VARIABLE, WEBHOOKS_VARIABLE
from massgen_mcp.run_state.state import RunState
from massgen_mcp.views.spent import cost_of

PAUSES = (0.5, 4.0, 30.0)
"""Seconds before each further try."""
TRY_SECONDS = 10.0
LEAST_SECRET = 16
_AGAIN = 429
_FAULT_OF_THE_SERVER = 500


@dataclass(frozen=True, slots=True)
class Webhooks:
    urls: tuple[str, ...]
    secret: bytes = field(repr=False)

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> "Webhooks":
        """Raises `MassgenError` invalid_arguments."""
        urls, secret = tuple(environ.get(WEBHOOKS_VARIABLE, "").split()), environ.get(WEBHOOK_SECRET_VARIABLE, "")
        if not all(map(is_safe_url, urls)):
            raise MassgenError("invalid_arguments", f"{WEBHOOKS_VARIABLE}: expected https:// URLs without a query")
        if urls and len(secret) < LEAST_SECRET:
            message = f"{WEBHOOKS_VARIABLE} needs a {WEBHOOK_SECRET_VARIABLE} of at least {LEAST_SECRET} characters"
            raise MassgenError("invalid_arguments", message)
        return cls(urls, secret.encode())

    async def tell(self, run_id: str, run: RunState) -> list[str]:
        """Returns a line for each server that was not told."""
        document = {"run_id": run_id, "state": run.state, "outcome": run.outcome, "usd": run.spent.rounded_usd}
        document |= {"weak": [*run.work_done.weak], "failure": run.work_done.failure}
        body, failed = json.dumps(document).encode(), list[str]()

        async def send(url: str) -> None:
            if fault := await self._fault(url, body):
                failed.append(f"webhook {url}: {fault}")

        async with anyio.create_task_group() as tasks:
            for url in self.urls:
                tasks.start_soon(send, url)
        return failed

    async def _fault(self, url: str, body: bytes) -> str:
        """Why the server was not told; empty: it was."""
        import httpx2  # no runner starts with it

        fault = ""
        try:
            client = open_client(url, timeout=TRY_SECONDS)
        except BadVariable as error:
            return str(error)
        async with client as http:
            for pause in (0.0, *PAUSES):
                await anyio.sleep(pause)
                try:
                    reply = await http.post(url, content=body, headers=self._signed(body))
                except httpx2.HTTPError as error:
                    fault = type(error).__name__
                    continue
                fault = "" if reply.is_success else f"HTTP {reply.status_code}"
                if reply.status_code != _AGAIN and reply.status_code < _FAULT_OF_THE_SERVER:
                    break
        return fault

    def _signed(self, body: bytes) -> dict[str, str]:
        """The time is signed as well, so that nobody can send it again later."""
        now = str(int(time.time()))
        signature = hmac.new(self.secret, f"{now}.".encode() + body, hashlib.sha256).hexdigest()
        return {
            "Content-Type": "application/json",
            "Massgen-Timestamp": now,
            "Massgen-Signature": f"sha256={signature}",
        }


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
        return f"notify: {command[0]} was stopped after {NOTIFY_SECONDS:g} seconds"
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            with anyio.CancelScope(shield=True):
                await process.wait()
    return f"notify: {command[0]} ended with exit code {code}" if code else None
