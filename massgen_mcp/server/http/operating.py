"""What who operates the server asks it: whether it can serve, and how much there is to do, as Prometheus reads it."""

import json
import time
from collections import Counter
from functools import partial

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from massgen_mcp.errors import MassgenError
from massgen_mcp.runs.access import RunAccess

READY, METRICS = "/readyz", "/metrics"
TEXT_FORMAT = "text/plain; version=0.0.4; charset=utf-8"


class Operating:
    """Of one server. `replies`: how many it has given, by status."""

    def __init__(self, access: RunAccess) -> None:
        self._access, self._engine = access, access.whole_engine
        self.replies: Counter[int] = Counter()

    async def ready(self) -> Response:
        """Says to everybody whether the store of runs can be used, and no more."""
        try:
            await anyio.to_thread.run_sync(partial(self._engine.store.index.list_recent, limit=1))
        except MassgenError:
            return PlainTextResponse("cannot use the run store", 503)
        return PlainTextResponse("ready")

    async def metrics(self, scope: Scope, receive: Receive, send: Send) -> None:
        """For the operator alone; of everybody's runs together."""
        response: Response = PlainTextResponse("Not Found", 404)
        if not self._access.is_guest and Request(scope).method == "GET":
            figures = await anyio.to_thread.run_sync(self._engine.store.index.count_states)
            limits = await anyio.to_thread.run_sync(self._engine.limits_in_use)
            held, most = Counter[str](), Counter[str]()
            for address, name, part, whole, _ in limits:  # those of several keys together
                labels = f"{{address={json.dumps(address)},limit={json.dumps(name)}}}"
                held[labels] += part
                most[labels] += whole
            waiting = [one.oldest for one in figures if one.state == "queued"]
            lines = [
                "# HELP massgen_runs Runs by state, excluding nested runs.",
                "# TYPE massgen_runs gauge",
                *(f'massgen_runs{{state="{one.state}"}} {one.runs}' for one in figures),
                "# HELP massgen_queue_age_seconds Waiting time of the oldest queued run.",
                "# TYPE massgen_queue_age_seconds gauge",
                f"massgen_queue_age_seconds {time.time() - waiting[0] if waiting else 0:.3f}",
                "# HELP massgen_usd Cost of runs by state; for active runs, the maximum cost.",
                "# TYPE massgen_usd gauge",
                *(f'massgen_usd{{state="{one.state}"}} {one.usd:.6f}' for one in figures),
                "# HELP massgen_limit_held Current use of a provider limit shared by workers.",
                "# TYPE massgen_limit_held gauge",
                *(f"massgen_limit_held{of} {count}" for of, count in held.items()),
                "# HELP massgen_limit_most Size of a provider limit shared by workers.",
                "# TYPE massgen_limit_most gauge",
                *(f"massgen_limit_most{of} {count}" for of, count in most.items()),
                "# HELP massgen_http_replies_total Replies from this process by status code.",
                "# TYPE massgen_http_replies_total counter",
                *(f'massgen_http_replies_total{{status="{code}"}} {n}' for code, n in sorted(self.replies.items())),
            ]
            response = PlainTextResponse("\n".join(lines) + "\n", media_type=TEXT_FORMAT)
        await response(scope, receive, send)
