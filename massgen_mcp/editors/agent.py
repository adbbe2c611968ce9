"""The sessions of one editor. A session is one of the run store: its turns are runs, so another process lists, watches
and applies them, and an editor that comes back finds them. What is answered here is protocol 1.
"""

import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, cast

import anyio.to_thread
from anyio.abc import ByteReceiveStream, ByteSendStream, TaskGroup

from massgen_mcp import __version__
from massgen_mcp.config.access.held_keys import redactor_for
from massgen_mcp.config.adjusted import RequestedLimits, given_path
from massgen_mcp.editors.choices import ASK, CODE, DEFAULT, MODES, Choice, as_options, teams
from massgen_mcp.editors.turn import Turn, question_of
from massgen_mcp.errors import FAULTS_OF_THE_MACHINE, MassgenError
from massgen_mcp.json_rpc import UNKNOWN_METHOD, ConnectionBroken, JsonRpcConnection
from massgen_mcp.request.build import CallerRequest, build_request
from massgen_mcp.request.harm import granted_by
from massgen_mcp.request.team import NamedTeam, choose_team
from massgen_mcp.request.trust import Consent
from massgen_mcp.runs.engine import RunFilter, RunRow
from massgen_mcp.runs.service import RunService
from massgen_mcp.views.plain_text import preview

logger = logging.getLogger(__name__)

PROTOCOL = 1
NOT_JSON, INVALID_REQUEST, INVALID_PARAMS, INTERNAL = -32700, -32600, -32602, -32603
METHODS = frozenset(
    f"session/{name}" for name in ("new", "load", "resume", "close", "list", "prompt", "set_mode", "set_config_option")
)
SESSION_PREFIX = "acp-"
LISTED_RUNS = 500
TITLE_CHARACTERS = 80
ABOUT: Mapping[str, Any] = {
    "protocolVersion": PROTOCOL,
    "agentCapabilities": {
        "loadSession": True,
        "promptCapabilities": {"embeddedContext": True},
        "sessionCapabilities": {"list": {}, "resume": {}, "close": {}},
    },
    "agentInfo": {"name": "massgen-mcp", "title": "massgen-mcp", "version": __version__},
    "authMethods": [],
}


class RefusedRequest(Exception):
    """A request is answered with this error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(slots=True)
class EditorSession:
    id: str
    cwd: Path
    teams: Sequence[Choice]
    team: str = DEFAULT
    mode: str = CODE
    turn: Turn | None = None
    """What is being worked on."""
    goes_on: bool = False

    @property
    def options(self) -> dict[str, Any]:
        return as_options(self.team, self.teams, self.mode)


class EditorAgent(JsonRpcConnection):
    """What takes its time runs in `tasks`; `read` has to be running."""

    def __init__(
        self,
        stdin: ByteSendStream,
        stdout: ByteReceiveStream,
        service: RunService,
        environ: Mapping[str, str],
        tasks: TaskGroup,
    ) -> None:
        super().__init__(stdin, stdout, _nothing, self._notified)
        self._service, self._environ, self._tasks = service, environ, tasks
        self._redactor = redactor_for(environ)
        self._sessions: dict[str, EditorSession] = {}

    # -- messages -----------------------------------------------------------------------------------------------------

    async def asked_for(self, number: object, method: str, params: Mapping[str, Any]) -> None:
        if method == "initialize":  # before whatever else is said, and although nothing more may be
            await self.reply(number, {"result": ABOUT})
        else:
            self._tasks.start_soon(self._answer_request, number, method, params)

    def _notified(self, method: str, params: Mapping[str, Any]) -> None:
        session = self._sessions.get(str(params.get("sessionId")))
        if method == "session/cancel" and session is not None and session.turn is not None:
            session.turn.cancelled = True  # at once: the run may be about to begin
            self._tasks.start_soon(self._beside, session.turn.cancel)

    async def misheard(self) -> None:
        await self.reply(None, {"error": {"code": NOT_JSON, "message": "a line isn't JSON"}})

    async def _answer_request(self, number: object, method: str, params: Mapping[str, Any]) -> None:
        try:
            reply: dict[str, Any] = {"result": await self._done(method, params)}
        except RefusedRequest as refused:
            reply = self._error(refused.code, str(refused))
        except MassgenError as error:
            code = INTERNAL if error.code in FAULTS_OF_THE_MACHINE else INVALID_PARAMS
            reply = self._error(code, f"{error.code}: {error}")
        except ConnectionBroken:
            return
        except Exception as error:  # one request that fails must not end the others
            logger.warning("%s failed: %s", method, error, exc_info=error)
            reply = self._error(INTERNAL, f"internal: {type(error).__name__}: {error}")
        with suppress(ConnectionBroken):
            await self.reply(number, reply)

    def _error(self, code: int, message: str) -> dict[str, Any]:
        return {"error": {"code": code, "message": self._redactor.text(message)}}

    async def send(self, message: Mapping[str, Any]) -> None:
        with anyio.CancelScope(shield=True):  # no half line: others go on
            await super().send(message)

    async def _beside(self, work: Callable[[], Awaitable[None]]) -> None:
        """What answers no request; it must not end the others."""
        try:
            await work()
        except ConnectionBroken:
            pass
        except Exception as error:  # as above
            logger.warning("cannot follow or cancel a run: %s", error, exc_info=error)

    # -- what an editor asks for --------------------------------------------------------------------------------------

    async def _done(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        match method, params:
            case "session/new", {"cwd": str(cwd)}:
                session = await self._opened_session(f"{SESSION_PREFIX}{secrets.token_hex(8)}", cwd)
                return {"sessionId": session.id, **session.options}
            case "session/load", {"sessionId": str(session_id), "cwd": str(cwd)}:
                return await self._loaded(session_id, cwd, tells=True)
            case "session/resume", {"sessionId": str(session_id), "cwd": str(cwd)}:
                return await self._loaded(session_id, cwd, tells=False)
            case "session/close", {"sessionId": str(session_id)}:
                return await self._close_session(self._session(session_id))
            case "session/list", _:
                return {"sessions": await self._listed(params.get("cwd"))}
            case "session/prompt", {"sessionId": str(session_id), "prompt": blocks} if isinstance(blocks, list):
                return await self._prompted(self._session(session_id), cast("list[object]", blocks))
            case "session/set_mode", {"sessionId": str(session_id), "modeId": value}:
                return self._set(self._session(session_id), "mode", value)
            case "session/set_config_option", {"sessionId": str(session_id), "configId": str(name), "value": value}:
                return self._set(self._session(session_id), name, value)
            case _ if method in METHODS:
                raise RefusedRequest(INVALID_PARAMS, f"{method}: parameters are missing or have the wrong type")
            case _:
                raise RefusedRequest(UNKNOWN_METHOD, f"{preview(method, TITLE_CHARACTERS)} is not supported")

    def _session(self, session_id: str) -> EditorSession:
        if session_id in self._sessions:
            return self._sessions[session_id]
        raise RefusedRequest(
            INVALID_PARAMS, f"session {preview(session_id, TITLE_CHARACTERS)!r} isn't open; load it first"
        )

    async def _opened_session(self, session_id: str, cwd: str) -> EditorSession:
        path = Path(cwd)
        if not path.is_absolute() or not await anyio.to_thread.run_sync(path.is_dir):
            raise RefusedRequest(
                INVALID_PARAMS, f"cwd: {preview(cwd, TITLE_CHARACTERS)!r} isn't a directory, or isn't an absolute path"
            )
        known = await anyio.to_thread.run_sync(teams, self._environ)
        return self._sessions.setdefault(session_id, EditorSession(session_id, path, known))

    async def _close_session(self, session: EditorSession) -> dict[str, Any]:
        """Close it with what it is working on; the store still has it."""
        if session.turn is not None:
            await session.turn.cancel()
        self._sessions.pop(session.id, None)
        return {}

    async def _listed(self, cwd: object) -> list[dict[str, Any]]:
        """The sessions of editors, newest first; those of one directory, if one is named. The first directory of a run
        is the one in which its session was opened.
        """
        views = await self._service.watcher.list_runs(limit=LISTED_RUNS, keep=_is_of_an_editor)
        found: dict[str, dict[str, Any]] = {}
        for view in views:
            places = await anyio.to_thread.run_sync(view.read_context_paths)
            if not places or cwd not in (None, places[0]):
                continue
            updated = datetime.fromtimestamp(view.row.ended or view.row.created, UTC).isoformat()
            entry = found.setdefault(view.row.session_id or "", {"cwd": places[0], "updatedAt": updated})
            entry["title"] = preview(view.row.question, TITLE_CHARACTERS)
        return [{"sessionId": session_id, **entry} for session_id, entry in found.items()]

    async def _loaded(self, session_id: str, cwd: str, *, tells: bool) -> dict[str, Any]:
        """A run that goes on is followed from where it is. `tells`: the conversation, again."""
        runs = await self._service.watcher.list_turns(session_id)
        if not runs and session_id not in self._sessions:
            raise RefusedRequest(INVALID_PARAMS, f"there is no session {preview(session_id, TITLE_CHARACTERS)!r}")
        session = await self._opened_session(session_id, cwd)
        for listed in runs:
            turn = self._turn(session)
            try:
                view = await self._service.watcher.get_run(listed.row.run_id)
            except MassgenError as gone:
                await turn.say(f"{gone}\n\n")
                continue
            if tells:
                await turn.say(view.snapshot.question, "user_message_chunk")
            if view.ended:
                if tells:
                    await turn.ended(view)
            elif session.turn is None:
                session.turn = turn
                self._tasks.start_soon(self._beside, partial(self._followed, session, turn, view.row.run_id))
        return session.options

    def _set(self, session: EditorSession, name: str, value: object) -> dict[str, Any]:
        match name, value:
            case "team", str(chosen) if chosen in (one.id for one in session.teams):
                session.team = chosen
            case "mode", str(chosen) if chosen in (one.id for one in MODES):
                session.mode = chosen
            case _:
                raise RefusedRequest(INVALID_PARAMS, f"{preview(name, 40)} cannot be {preview(str(value), 40)!r}")
        return session.options

    async def _prompted(self, session: EditorSession, blocks: Sequence[object]) -> dict[str, Any]:
        if session.turn is not None:
            message = "session_busy: a run in this session is active; cancel it, or wait until it ends"
            raise RefusedRequest(INVALID_REQUEST, message)
        question = question_of(blocks, session.cwd)
        session.turn = turn = self._turn(session)
        run_id = ""
        try:
            run_id = await self._answered_or_started(session, question)
        finally:
            if not run_id:
                session.turn = None
        await self._followed(session, turn, run_id)
        return {"stopReason": "cancelled" if turn.cancelled else "end_turn"}

    async def _answered_or_started(self, session: EditorSession, text: str) -> str:
        """The run that the prompt is for: the one that waits for an answer, else a new one."""
        newest = await self._service.watcher.list_runs(RunFilter(session_id=session.id, kind="single"), limit=1)
        for view in newest:
            if view.state == "input_required":
                return (await self._service.control(view.row.run_id, "answer", text)).row.run_id
        limits, consent = RequestedLimits(), Consent()
        named = NamedTeam(config=None if session.team == DEFAULT else session.team)
        paths = [given_path(str(session.cwd), "read" if session.mode == ASK else "write")]
        granted = granted_by(paths, (), None, limits)
        team = await choose_team(named, cwd=session.cwd, environ=self._environ, consent=consent, granted=granted)
        request = await build_request(
            CallerRequest(
                text,
                team,
                cwd=session.cwd,
                environ=self._environ,
                context_paths=paths if team.config.orchestrator.enable_filesystem else (),
                caller_answers=True,
                session_id=session.id,
                changes_of="winner" if session.goes_on and session.mode == CODE else None,
            )
        )
        view, _ = await self._service.start(await self._service.prepare(request))
        if not newest:
            title = {"sessionUpdate": "session_info_update", "title": preview(text, TITLE_CHARACTERS)}
            await self.tell("session/update", {"sessionId": session.id, "update": title})
        return view.row.run_id

    async def _followed(self, session: EditorSession, turn: Turn, run_id: str) -> None:
        try:
            await turn.follow(run_id)
        finally:
            session.turn, session.goes_on = None, turn.goes_on

    def _turn(self, session: EditorSession) -> Turn:
        return Turn(self._service, self, session.id, applies=session.mode == CODE)


def _is_of_an_editor(row: RunRow) -> bool:
    return row.session_id is not None and row.session_id.startswith(SESSION_PREFIX)


def _nothing(_method: str, _params: Mapping[str, Any]) -> None:
    """Requests are answered by tasks."""
