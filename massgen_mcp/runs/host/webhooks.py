"""Tells servers that the operator names that a run has ended: a small JSON document, signed. No caller names one.

What cannot be told is no error of the run.
"""

import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import anyio

from massgen_mcp.config.providers.addresses import is_safe_url
from massgen_mcp.errors import MassgenError
from massgen_mcp.home import WEBHOOK_SECRET_VARIABLE, WEBHOOKS_VARIABLE
from massgen_mcp.run_state.state import RunState

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
            raise MassgenError("invalid_arguments", f"{WEBHOOKS_VARIABLE}: expected https:// URLs, without a query")
        if urls and len(secret) < LEAST_SECRET:
            message = f"{WEBHOOKS_VARIABLE} needs {WEBHOOK_SECRET_VARIABLE}, of at least {LEAST_SECRET} characters"
            raise MassgenError("invalid_arguments", message)
        return cls(urls, secret.encode())

    async def tell(self, run_id: str, run: RunState) -> list[str]:
        """Returns a line for each server that was not told."""
        document = {"run_id": run_id, "state": run.state, "outcome": run.outcome, "usd": run.spent.rounded_usd}
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
        async with httpx2.AsyncClient(follow_redirects=False, timeout=TRY_SECONDS) as http:
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
