"""What a browser can ask for. What it does is a call of the MCP tools, with their checks, limits and words; what it
sees besides comes from the run service. Whoever gets here has shown the token (see `serve`).

Runs that go on are followed, drawn and put into bytes once, however many look at them.
"""

import json
import logging
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Literal, cast

import anyio.to_thread
from anyio.abc import TaskGroup
from mcp import Client
from mcp.client.context import ClientRequestContext
from mcp.shared.exceptions import MCPError
from mcp.types import CallToolResult, ElicitRequestParams, ElicitResult, Implementation, TextContent
from pydantic import BaseModel, Field, ValidationError
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from massgen_mcp import __version__
from massgen_mcp.changes.apply_records import applied_at
from massgen_mcp.checks.proposals import proposed_checks
from massgen_mcp.config.access.local_servers import find_local_servers
from massgen_mcp.config.default_team import MAX_AGENTS, reachable_models
from massgen_mcp.config.examples import list_examples
from massgen_mcp.config.models.config import Config
from massgen_mcp.config.own_clis import installed_clis
from massgen_mcp.errors import MassgenError
from massgen_mcp.page.data import RunPage
from massgen_mcp.page.document import DRAWING, STATISTICS_DRAWING, document, with_data
from massgen_mcp.page.head import TONES
from massgen_mcp.redaction import Redactor
from massgen_mcp.request.kind import ListedKind
from massgen_mcp.request.team import NamedTeam, choose_team
from massgen_mcp.request.trust import Consent
from massgen_mcp.run_state.status import RunStatus
from massgen_mcp.runs.checks import MAX_MESSAGE_CHARACTERS
from massgen_mcp.runs.engine import RunFilter, RunRow
from massgen_mcp.runs.service import RunService
from massgen_mcp.runs.view.run_view import RunView
from massgen_mcp.server.arguments import MAX_ANSWERS, context_path
from massgen_mcp.server.build import BuiltServer
from massgen_mcp.server.decisions import is_raise_form
from massgen_mcp.server.results import run_list
from massgen_mcp.server.results.words import team_of
from massgen_mcp.server.transport import MAX_BODY_BYTES
from massgen_mcp.statistics.digest import RunDigest
from massgen_mcp.statistics.sums import StatisticsFilter, money_of
from massgen_mcp.statistics.words import as_worded, money_text

logger = logging.getLogger(__name__)

LEAST_SECONDS = 0.25
"""Between two updates of a run ..."""
TIMES_AS_LONG = 8
"""... and so many times as long as the last one took to draw and to put into bytes: a long run takes no more than a
part of a core."""
BREATH_SECONDS = 15.0
"""After so long without news a viewer is sent an empty line, so that the stream is not taken for dead."""


class Feeds:
    """The runs that somebody looks at. Feeds run in `tasks`, and end when their last viewer leaves."""

    def __init__(self, service: RunService, tasks: TaskGroup, redactor: Redactor) -> None:
        self._service, self._tasks, self._redactor = service, tasks, redactor
        self._feeds: dict[str, _Feed] = {}

    async def watch(self, run_id: str) -> AsyncGenerator[bytes]:
        """Server-sent events: `page` is the whole `RunPage`, `change` those of its fields that are different since the
        event before, `fault` what went wrong, which may pass, `end` says that nothing more comes until somebody does
        something. A viewer who is slow is sent fewer of them.
        """
        feed = self._feeds.get(run_id)
        if feed is None:
            feed = self._feeds[run_id] = _Feed(self._redactor)
            self._tasks.start_soon(self._follow, run_id, feed)
        feed.viewers += 1
        seen = 0
        try:
            while True:
                changed = feed.changed
                if feed.version != seen:
                    piece = feed.change if seen and feed.version == seen + 1 else feed.page()
                    seen = feed.version
                    yield piece
                elif feed.over is not None:
                    yield feed.over
                    return
                else:
                    with anyio.move_on_after(BREATH_SECONDS) as waiting:
                        await changed.wait()
                    if waiting.cancelled_caught:
                        yield b":\n\n"
        finally:
            feed.viewers -= 1
            if not feed.viewers:
                feed.scope.cancel()
                self._forget(run_id, feed)

    async def _follow(self, run_id: str, feed: "_Feed") -> None:
        over = _event("end", {})
        with feed.scope:
            try:
                async with aclosing(self._service.pages.stream(run_id)) as pages:
                    async for page, drawing in pages:
                        changed, telling = await anyio.to_thread.run_sync(feed.different, page)
                        feed.take(page, changed)
                        await anyio.sleep(max(LEAST_SECONDS, TIMES_AS_LONG * (drawing + telling)))
            except Exception as error:  # one run that cannot be followed must not end all the others
                logger.warning("cannot follow run %s: %s", run_id, error, exc_info=error)
                over = _event("fault", {"error": _bytes(self._redactor.text(str(error)))})
        self._forget(run_id, feed)
        feed.over = over
        feed.tell()

    def _forget(self, run_id: str, feed: "_Feed") -> None:
        if self._feeds.get(run_id) is feed:
            del self._feeds[run_id]


class _Feed:
    """One run: how it stands, in bytes."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self.viewers = 0
        self.scope = anyio.CancelScope()
        self.changed = anyio.Event()
        self.version = 0
        """0: nothing is known so far."""
        self.change = b""
        """From the version before to this one."""
        self.over: bytes | None = None
        self._drawn: RunPage | None = None
        self._fields: dict[str, bytes] = {}
        self._page: bytes | None = None

    def different(self, page: RunPage) -> tuple[dict[str, bytes], float]:
        """The fields that are not as before, and the seconds of work. In a thread: viewers see nothing of it."""
        began = time.thread_time()
        before = self._drawn
        new = {
            name for name in RunPage.model_fields if before is None or getattr(page, name) is not getattr(before, name)
        }
        made = {name: _bytes(value) for name, value in self._redactor.value(page.model_dump(include=new)).items()}
        changed = {name: value for name, value in made.items() if self._fields.get(name) != value}
        return changed, time.thread_time() - began

    def take(self, page: RunPage, changed: Mapping[str, bytes]) -> None:
        """What did not change is neither made nor sent again."""
        self._drawn = page
        if changed:
            self._fields.update(changed)
            self.change, self._page = _event("change", changed), None
            self.version += 1
            self.tell()

    def page(self) -> bytes:
        if self._page is None:
            self._page = _event("page", self._fields)
        return self._page

    def tell(self) -> None:
        self.changed.set()
        self.changed = anyio.Event()


def _bytes(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _event(kind: str, fields: Mapping[str, bytes]) -> bytes:
    """Fields are JSON, in which there is no end of a line."""
    members = b",".join(b'"%s":%s' % (name.encode(), value) for name, value in fields.items())
    return b"event: %s\ndata: {%s}\n\n" % (kind.encode(), members)


COOKIE = "massgen-token"
API = "/api"
"""Everything below it needs the token; the pages themselves hold nothing."""
FEW_RUNS = 30
MOST_RUNS = 100
"""So many runs are listed at once."""
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class RunListFilter(BaseModel, frozen=True, extra="forbid"):
    """Which runs are listed. Texts are found in any case; times are seconds since the epoch."""

    text: str = ""
    """In the question, as far as the store keeps it, or the beginning of the id."""
    team: str = ""
    state: RunStatus | None = None
    kind: ListedKind = "single"
    since: float | None = Field(None, allow_inf_nan=False)
    before: float | None = Field(None, allow_inf_nan=False)
    cursor: int | None = Field(None, ge=1, le=2**63 - 1)
    limit: int = Field(FEW_RUNS, ge=1, le=MOST_RUNS)

    def fits(self, row: RunRow) -> bool:
        text, team = self.text.strip().casefold(), self.team.strip().casefold()
        return (
            (text in row.question.casefold() or row.run_id.removeprefix("run-").startswith(text.removeprefix("run-")))
            and team in row.config.casefold()
            and (self.before is None or row.created < self.before)
        )


KNOWN = {
    "states": TONES,
    "agents": MAX_AGENTS,
    "answers": MAX_ANSWERS,
    "message_characters": MAX_MESSAGE_CHARACTERS,
    "runs": FEW_RUNS,
    "most_runs": MOST_RUNS,
}
"""What the script of the pages has to know before it asks for anything."""


def cookie_name(name: str, *, encrypted: bool) -> str:
    """By https browsers take a cookie of such a name from this host alone, and not from a neighbour in its domain."""
    return f"__Host-{name}" if encrypted else name


def keep(
    reply: Response,
    name: str,
    value: str,
    seconds: int | None = None,
    *,
    encrypted: bool,
    samesite: Literal["lax", "strict"] = "strict",
) -> None:
    """Have the browser keep a value, until it is closed or for `seconds`, which no script can read and no other site
    can have sent along; but `lax`, by a link.
    """
    reply.set_cookie(
        cookie_name(name, encrypted=encrypted), value, seconds, secure=encrypted, httponly=True, samesite=samesite
    )


def is_asked(path: str) -> bool:
    """Whether the path is one that needs the token."""
    return path == API or path.startswith(f"{API}/")


POLICY = "; connect-src 'self'"


def page_of_runs(login: dict[str, str] | None, status: int = 200, problem: str | None = None) -> Response:
    """`problem`: why somebody is not let in, instead of runs; `login` as for `pages`."""
    html = document("web.js", POLICY, ("web.css",), (*DRAWING, "ask.js"))
    return HTMLResponse(with_data(html, {**KNOWN, "login": login, "problem": problem}), status, HEADERS)


def pages(*, login: dict[str, str] | None = None) -> Starlette:
    """The pages, which are the same for everybody and hold no data. `login`: a token can be written into them, and `at`
    which host people can sign in.
    """
    runs = page_of_runs(login)
    html = document("web_statistics.js", POLICY, ("web.css", "statistics.css"), (*STATISTICS_DRAWING, "ask.js"))
    statistics = HTMLResponse(with_data(html, {**KNOWN, "login": login}), headers=HEADERS)

    paths = {"/": runs, "/new": runs, "/compare": runs, "/runs/{run_id}": runs, "/statistics": statistics}
    return Starlette(routes=[Route(path, page, methods=["GET"]) for path, page in paths.items()])


@asynccontextmanager
async def api(built: BuiltServer, redactor: Redactor, *, encrypted: bool = False) -> AsyncGenerator[Starlette]:
    """What the pages ask for, without the keys that `redactor` knows; runs are followed until the end of the block.
    `encrypted`: browsers come by https.
    """
    us = Implementation(name="massgen web", version=__version__)
    async with (
        anyio.create_task_group() as tasks,
        Client(built.server, client_info=us, elicitation_callback=accept_raise) as client,
    ):
        yield _api(built.service, client, Feeds(built.service, tasks, redactor), redactor, encrypted=encrypted)
        tasks.cancel_scope.cancel()


async def accept_raise(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
    """Agree to a larger budget: the person has just asked for it on the page. Other questions are shown there."""
    del context
    if is_raise_form(params):
        return ElicitResult(action="accept")
    return ElicitResult(action="cancel")


def _api(service: RunService, client: Client, feeds: Feeds, redactor: Redactor, *, encrypted: bool) -> Starlette:
    async def login(request: Request) -> Response:
        """The token, which was right, as a cookie for this site alone, until the browser is closed; or no more."""
        token = request.headers["authorization"].partition(" ")[2] if request.method == "POST" else ""
        reply = Response(status_code=204, headers=HEADERS)
        keep(reply, COOKIE, token, None if token else 0, encrypted=encrypted)
        return reply

    async def runs(request: Request) -> Response:
        wanted = RunListFilter.model_validate(dict(request.query_params))
        views = await service.watcher.list_runs(
            RunFilter(wanted.state, since=wanted.since, kind=wanted.kind),
            before=wanted.cursor,
            limit=wanted.limit,
            keep=wanted.fits,
        )
        digests = await service.outcomes.read_digests(views)
        return _json(redactor.value(await anyio.to_thread.run_sync(rows, views, digests, wanted.limit)))

    async def watch(request: Request) -> Response:
        run_id = request.path_params["run_id"]
        await service.watcher.get_run(run_id)
        return StreamingResponse(feeds.watch(run_id), media_type="text/event-stream", headers=HEADERS)

    async def form(_: Request) -> Response:
        return _json(redactor.value(await offered(service, service.access.environ)))

    async def checks(request: Request) -> Response:
        directories = [
            Path(context_path(path, guest=service.access.is_guest).path)
            for path in request.query_params.getlist("directory")
        ]
        return _json({"checks": await anyio.to_thread.run_sync(proposed_checks, directories)})

    async def again(request: Request) -> Response:
        view = await service.watcher.get_run(request.path_params["run_id"])
        return _json(redactor.value(await request_of(view, Path.cwd(), service.access.environ)))

    async def statistics(_: Request) -> Response:
        return _json(redactor.value(as_worded(await service.outcomes.sum_up(StatisticsFilter()))))

    async def tool(request: Request) -> Response:
        reply = await client.call_tool(request.path_params["name"], await _arguments(request))
        return _json(reply.structured_content or {}) if not reply.is_error else _error_response(_text_of(reply))

    return Starlette(
        routes=[
            Route(f"{API}/login", login, methods=["POST", "DELETE"]),
            Route(f"{API}/runs", runs, methods=["GET"]),
            Route(f"{API}/runs/{{run_id}}", watch, methods=["GET"]),
            Route(f"{API}/runs/{{run_id}}/request", again, methods=["GET"]),
            Route(f"{API}/form", form, methods=["GET"]),
            Route(f"{API}/checks", checks, methods=["GET"]),
            Route(f"{API}/statistics", statistics, methods=["GET"]),
            Route(f"{API}/tools/{{name}}", tool, methods=["POST"]),
        ],
        exception_handlers={MassgenError: _bad_request, ValidationError: _bad_request, MCPError: _bad_request},
    )


async def _arguments(request: Request) -> dict[str, Any]:
    """Raises `MassgenError` invalid_arguments."""
    if Headers(scope=request.scope).get("content-type", "").partition(";")[0] != "application/json":
        raise MassgenError("invalid_arguments", "expected JSON")
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > MAX_BODY_BYTES:
            raise MassgenError("invalid_arguments", "the request is too large")
    try:
        arguments: Any = json.loads(body)
    except (ValueError, RecursionError):
        arguments = None
    if not isinstance(arguments, dict):
        raise MassgenError("invalid_arguments", "expected a JSON object")
    return cast("dict[str, Any]", arguments)


async def _bad_request(_: Request, error: Exception) -> Response:
    if isinstance(error, MassgenError):
        status = 404 if error.code in ("unknown_run", "expired") else 503 if error.code == "store_unavailable" else 400
        return _error_response(f"ERROR {error.code}: {error}", status)
    if isinstance(error, ValidationError):
        wrong = error.errors()[0]
        return _error_response(f"ERROR invalid_arguments: {'.'.join(map(str, wrong['loc']))}: {wrong['msg']}")
    return _error_response(f"ERROR invalid_arguments: {error}")


def _text_of(reply: CallToolResult) -> str:
    return "\n".join(block.text for block in reply.content if isinstance(block, TextContent))


def _error_response(message: str, status: int = 400) -> Response:
    return _json({"error": message}, status)


def _json(value: dict[str, Any], status: int = 200) -> Response:
    return JSONResponse(value, status, HEADERS)


# ---------------------------------------------------------------------------------------------------------------------
# What the form that starts a run has to offer, and how a run that there was is filled into it.


RUNS_READ = 50
MOST_DIRECTORIES = 8


async def offered(service: RunService, environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the models that can be asked now, the strong ones with a key first; agent CLIs; directories that runs were
    given. A person who shares the server gets neither its directory nor its logins.
    """
    servers = await find_local_servers(environ)
    local = [f"{server.type}/{model.name}" for server in servers for model in server.models]
    recent = await service.watcher.list_runs(limit=RUNS_READ)
    directories = await anyio.to_thread.run_sync(_directories, recent)
    clis: list[str] = []
    if not service.access.is_guest:
        directories.append(str(Path.cwd()))
        clis += map(str, await installed_clis(environ))
    return {
        "models": [*reachable_models(environ), *local],
        "clis": clis,
        "directories": list(dict.fromkeys(directories))[:MOST_DIRECTORIES],
    }


def _directories(recent: Sequence[RunView]) -> list[str]:
    found: list[str] = []
    for view in recent:
        found += view.read_context_paths()
    return found


async def request_of(view: RunView, cwd: Path, environ: Mapping[str, str]) -> dict[str, Any]:
    """The arguments of `start_run` that ask the same again. `session_id`: of the conversation that the run is in, or
    begins; `unapplied`: it changed files, and nobody has applied that. Raises `MassgenError`.
    """
    request = await anyio.to_thread.run_sync(view.directory.read_request)
    settings, plain = request.config.orchestrator, Config(agents=request.config.agents)
    limits = {
        "max_usd": (request.config.budget.max_usd, plain.budget.max_usd),
        "max_seconds": (
            request.config.timeout_settings.orchestrator_timeout_seconds,
            plain.timeout_settings.orchestrator_timeout_seconds,
        ),
        "max_answers": (settings.max_new_answers_per_agent, plain.orchestrator.max_new_answers_per_agent),
        "decide": (settings.decide, plain.orchestrator.decide),
    }
    changes = view.snapshot.best_changes
    return {
        "question": request.question,
        **await _team_fields(view.row.config, request.config, cwd, environ),
        "context_paths": [{"path": one.path, "permission": one.permission} for one in settings.context_paths],
        "checks": list(settings.checks),
        **{name: value for name, (value, usual) in limits.items() if value != usual},
        "session_id": view.row.session_id or view.row.run_id,
        "unapplied": bool(changes and changes.count and applied_at(view.directory.changes) is None),
    }


async def _team_fields(source: str, config: Config, cwd: Path, environ: Mapping[str, str]) -> dict[str, Any]:
    """How a call names the team from there: not at all, by its config, or else by its models alone."""
    with suppress(MassgenError):
        unnamed = NamedTeam()
        if (await choose_team(unnamed, cwd=cwd, environ=environ, consent=Consent(grants_paths=True))).source == source:
            return {}
    name = source.removeprefix("@examples/")
    if Path(source).is_absolute() or name in {example.name for example in list_examples()}:
        return {"team": name}
    return {"models": list(team_of(config).values())}


# ---------------------------------------------------------------------------------------------------------------------
# What the list of runs says of each: the line of `list_runs`, and beside it what statistics know of the run.


def rows(views: Sequence[RunView], digests: Mapping[str, RunDigest], limit: int) -> dict[str, Any]:
    """A page of the list; `digests` by id of the run. Reads which runs were applied."""
    page = run_list(views, limit, None)
    lines = [
        {
            **line.model_dump(exclude_none=True),
            "started": view.row.created,
            **_digest_fields(digests.get(view.row.run_id)),
            "applied": applied_at(view.directory.changes),
        }
        for line, view in zip(page.runs, views, strict=True)
    ]
    return {**page.structured(), "runs": lines}


def _digest_fields(digest: RunDigest | None) -> dict[str, Any]:
    """`dissent` of `voted`: agents that voted for something else than what won."""
    if digest is None:
        return {}
    return {
        "seconds": digest.seconds,
        "usd": digest.spent.usd,
        "cost": money_text(money_of([[digest.spent]])) if digest.spent.calls else None,
        "dissent": len(digest.dissenters) if digest.camp is not None else 0,
        "voted": sum(agent.voted is not None for agent in digest.agents),
    }
