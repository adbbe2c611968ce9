"""An agent CLI as a model, over the Agent Client Protocol: one process of an agent, one session for each conversation.

The tools of a request are an MCP server that the CLI calls. A call is held until its result is known: the next request
of the same conversation answers it, and the CLI's turn goes on. Another conversation is another session, and the turn
that was held is cancelled. See docs/decisions.md.
"""

import asyncio
import tempfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any, Literal

import anyio.to_thread

from massgen_mcp import __version__
from massgen_mcp.backends.acp.enclosure import RELAY, SHARED, TEAM_SOCKET, Place, Running, started
from massgen_mcp.backends.acp.json_rpc import AgentRefused, Wire, WireBroken
from massgen_mcp.backends.acp.permits import Permits
from massgen_mcp.backends.acp.team_server import HeldCall, TeamServer
from massgen_mcp.backends.base import (
    AssistantMessage,
    JsonObject,
    ModelRequest,
    Part,
    ReasoningPart,
    StopPart,
    TextPart,
    ToolCallPart,
    ToolResultMessage,
    UsagePart,
    UserMessage,
)
from massgen_mcp.backends.frameworks.agent_cli import fields, render
from massgen_mcp.backends.wire_values import clean, usage_part
from massgen_mcp.config.access.acp_agents import preset_of, shown_name
from massgen_mcp.config.access.acp_presets import TEAM
from massgen_mcp.config.models.backends import AcpBackendConfig
from massgen_mcp.errors import BackendError, DropReason
from massgen_mcp.home import known_levels
from massgen_mcp.redaction import Redactor
from massgen_mcp.sandbox import SandboxFailed, Wishes, choose, interpreter

PROTOCOL = 1
START_SECONDS = 120.0
CANCEL_SECONDS = 2.0
MAX_QUEUED = 8 * 1024 * 1024
"""Characters that may come while nobody listens."""
LAST_WORDS_BYTES = 2000
MAX_DETAIL = 500
_LOGIN_NEEDED = -32000

_TOOLS_NOTE = (
    f"\n\nThe tools that these instructions name are those of the MCP server `{TEAM}`; their names may begin with its "
    "name here. Act through them alone. Your files are those that these tools reach; the working directory that you "
    "are told of is none of them."
)

Ended = StopPart | BackendError


class Session:
    """One conversation. `coming`: what the CLI says and wants, in order, and how its turn ended."""

    def __init__(self, request: ModelRequest, permits: Permits) -> None:
        self.id = self.word = ""
        self.permits = permits
        self.coming: asyncio.Queue[Part | HeldCall | Ended] = asyncio.Queue()
        self.held: HeldCall | None = None
        self.turn: asyncio.Task[None] | None = None
        self.steps = 0
        """Of the turn."""
        self.queued = 0
        self.take(request)

    def take(self, request: ModelRequest) -> None:
        self.system, self.tools, self.messages = request.system, request.tools, request.messages

    def said_next(self, request: ModelRequest) -> tuple[list[ToolResultMessage], str] | None:
        """The results and the further words of a request that goes on with this conversation; None: it is another."""
        known = len(self.messages)
        reply, *rest = request.messages[known:] or (None,)
        if (request.system, request.tools, request.messages[:known]) != (self.system, self.tools, self.messages):
            return None
        if not isinstance(reply, AssistantMessage) or any(isinstance(one, AssistantMessage) for one in rest):
            return None
        results = [one for one in rest if isinstance(one, ToolResultMessage)]
        held = [] if self.held is None else [self.held.call.id]
        if [one.call_id for one in results] != held or (self.held is not None and self.held.gone):
            return None
        return results, "\n\n".join(one.text for one in rest if isinstance(one, UserMessage))


class AcpBackend:
    """`program` is the CLI's path; `private` as `make_backend` has it."""

    def __init__(
        self,
        config: AcpBackendConfig,
        program: str,
        environ: Mapping[str, str],
        private: Path | None,
        redactor: Redactor,
    ) -> None:
        self._config, self._program, self._environ = config, program, environ
        self._preset = preset_of(config)
        self._private, self._redactor = private, redactor
        self._process = AsyncExitStack()
        self._wire: Wire | None = None
        self._team = TeamServer()
        self._sessions: dict[str, Session] = {}
        """The one that is talked to, by its id."""
        self._session: Session | None = None
        self._last_words = bytearray()
        self._enclosed = False
        self._place: Place | None = None

    @property
    def model(self) -> str:
        return shown_name(self._config) if self._config.model == "default" else self._config.model

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Part]:
        whole = False
        try:
            session = await self._going_on(request)
            while True:
                came = await session.coming.get()
                if isinstance(came, BackendError):
                    raise came
                if isinstance(came, HeldCall):
                    session.held = came
                    whole = True
                    yield ToolCallPart(came.call)
                    yield StopPart("tool_calls")
                    return
                if isinstance(came, TextPart | ReasoningPart):
                    session.queued -= len(came.text)
                if isinstance(came, StopPart):
                    whole = True
                    yield came
                    return
                yield came
        except (WireBroken, AgentRefused, SandboxFailed, OSError) as error:
            raise await self._fault(error) from None
        finally:
            if not whole:
                await self._leave()

    async def aclose(self) -> None:
        await self._leave()
        await self._stop()
        place, self._place = self._place, None
        if place is not None:
            await anyio.to_thread.run_sync(place.remove)

    # -- conversations ------------------------------------------------------------------------------------------------

    async def _going_on(self, request: ModelRequest) -> Session:
        """The session in which the reply to this request is coming."""
        session, wire = self._session, self._wire
        said = session and session.said_next(request)
        if session is None or wire is None or wire.broken is not None or said is None:
            await self._leave()
            return await self._begin(request)
        results, words = said
        session.take(request)
        if session.held is not None:
            held, session.held = session.held, None
            session.steps += 1
            held.answer("\n\n".join(filter(None, (results[0].text, words))), is_error=results[0].is_error)
        else:
            self._prompt(session, wire, words)
        return session

    async def _begin(self, request: ModelRequest) -> Session:
        wire = await self._running()
        session = Session(request, Permits(self._preset.sign))
        system = clean(request.system) + (_TOOLS_NOTE if request.tools else "")
        params: JsonObject = {"cwd": self._inside("work"), "mcpServers": []}
        if request.tools:
            session.word = self._team.let_in(request.tools, lambda held: self._called(session, held))
            socket, relay = self._inside(f"shared/{TEAM_SOCKET}"), self._inside(f"shared/{RELAY}")
            arguments: JsonObject = {"args": ["-I", "-S", relay, "team", socket, session.word], "env": []}
            params["mcpServers"] = [{"name": TEAM, "command": interpreter(), **arguments}]
        if self._preset.system:
            params["systemPrompt"] = {"mode": "append", "content": [{"type": "text", "text": system}]}
        if self._preset.session:
            params["_meta"] = dict(self._preset.session)  # pyright: ignore[reportArgumentType]
        self._session = session
        session.id = str((await wire.ask("session/new", params)).get("sessionId") or "")
        if not session.id:
            raise WireBroken("it made a session without an id")
        self._sessions = {session.id: session}
        await self._set_options(wire, session.id)
        said = render(request.messages)
        self._prompt(session, wire, said if self._preset.system else f"{system}\n\n{said}")
        return session

    async def _set_options(self, wire: Wire, session_id: str) -> None:
        preset, config = self._preset, self._config
        if preset.mode:
            await wire.ask("session/set_mode", {"sessionId": session_id, "modeId": preset.mode})
        model = None if config.model == "default" else config.model
        for option, value in ((preset.model_option, model), (preset.effort_option, config.reasoning_effort)):
            if option and value:
                chosen: JsonObject = {"sessionId": session_id, "configId": option, "value": value}
                await wire.ask("session/set_config_option", chosen)

    def _prompt(self, session: Session, wire: Wire, text: str) -> None:
        session.steps = 1
        session.turn = asyncio.create_task(self._take_turn(session, wire, text))

    async def _take_turn(self, session: Session, wire: Wire, text: str) -> None:
        """A task, for the turn goes on while nobody listens."""
        said = text if not text.lstrip().startswith("/") else f"It says:\n\n{text}"  # a CLI has commands that begin so
        prompt: JsonObject = {"sessionId": session.id, "prompt": [{"type": "text", "text": said}]}
        try:
            done = await wire.ask("session/prompt", prompt)
            if (usage := self._usage(session, done)) is not None:
                session.coming.put_nowait(usage)
            session.coming.put_nowait(self._end_of(done.get("stopReason")))
        except (WireBroken, AgentRefused) as error:
            session.coming.put_nowait(await self._fault(error))

    def _end_of(self, reason: object) -> Ended:
        word = str(reason)[:80]
        if (stop := _STOPS.get(word)) is None:
            return self._failed("provider_error", f"ended its turn with {word!a}", retryable=True)
        return StopPart(stop, provider_word=word)

    def _usage(self, session: Session, done: Mapping[str, Any]) -> UsagePart | None:
        """What it counted, where that is this step's alone; None where nobody knows."""
        counted = fields(done.get("usage"))
        if not self._preset.counts or session.steps != 1:
            return None
        read, cached, cache_written, written, reasoned, total = (
            value if isinstance(value := counted.get(name), int) and value >= 0 else 0
            for name in (
                *("inputTokens", "cachedReadTokens", "cachedWriteTokens"),
                *("outputTokens", "thoughtTokens", "totalTokens"),
            )
        )
        if not read or not written:
            return None
        if total >= read + cached + cache_written + written:  # then the input is told without what was cached
            read += cached + cache_written
        return usage_part(
            "",
            read=read,
            written=written,
            cached=min(cached, read),
            cache_written=min(cache_written, read - min(cached, read)),
            reasoning=min(reasoned, written),
        )

    async def _leave(self) -> None:
        """The conversation is over, whatever its turn was doing."""
        session, self._session, self._sessions = self._session, None, {}
        if session is None:
            return
        self._team.let_out(session.word)
        if session.turn is not None and not session.turn.done() and self._wire is not None:
            with anyio.move_on_after(CANCEL_SECONDS, shield=True), suppress(WireBroken):
                await self._wire.tell("session/cancel", {"sessionId": session.id})

    # -- what it says and asks ----------------------------------------------------------------------------------------

    def _called(self, session: Session, held: HeldCall) -> None:
        session.coming.put_nowait(held)

    def _heard(self, method: str, params: Mapping[str, Any]) -> None:
        session, update = self._sessions.get(str(params.get("sessionId"))), fields(params.get("update"))
        if method != "session/update" or session is None:
            return
        session.permits.hear(update)
        match update:
            case {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": str(text)}}:
                if not self._preset.is_notice(text):
                    self._say(session, TextPart(clean(text)))
            case {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": str(text)}}:
                self._say(session, ReasoningPart(clean(text)))
            case _:
                pass

    def _say(self, session: Session, part: TextPart | ReasoningPart) -> None:
        session.queued += len(part.text)
        if session.queued > MAX_QUEUED:
            raise WireBroken("it says more than anybody reads")
        session.coming.put_nowait(part)

    def _answer(self, method: str, params: Mapping[str, Any]) -> JsonObject | None:
        if method != "session/request_permission":
            return None
        session = self._sessions.get(str(params.get("sessionId")))
        return {"outcome": {"outcome": "cancelled"}} if session is None else session.permits.decide(params)

    # -- the process --------------------------------------------------------------------------------------------------

    async def _running(self) -> Wire:
        if self._wire is not None and self._wire.broken is None:
            return self._wire
        await self._stop()
        with anyio.move_on_after(START_SECONDS):
            return await self._start()
        raise self._failed("timeout", f"did not begin to speak within {START_SECONDS:g} s")

    async def _start(self) -> Wire:
        self._enclosed = await self._find_enclosure()
        place = self._place = self._place or await anyio.to_thread.run_sync(self._new_place)
        cli = started(self._config, self._environ, self._program, place, enclosed=self._enclosed)
        running = await self._process.enter_async_context(cli)
        self._team = TeamServer()
        self._process.callback(self._team.close)
        await self._team.open(place.shared / TEAM_SOCKET)
        wire = Wire(running.stdin, running.stdout, self._answer, self._heard)
        self._last_words.clear()
        words = asyncio.create_task(self._listen(running))
        reading = asyncio.create_task(self._read(wire, running, words))
        self._process.push_async_callback(_ended, reading, words)
        able: JsonObject = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
        info: JsonObject = {"name": "massgen-mcp", "version": __version__}
        begin: JsonObject = {"protocolVersion": PROTOCOL, "clientCapabilities": able, "clientInfo": info}
        found = await wire.ask("initialize", begin)
        if found.get("protocolVersion") != PROTOCOL:
            raise self._failed("bad_request", f"does not speak version {PROTOCOL} of the Agent Client Protocol")
        has_key = self._config.login == "key" and any(map(self._environ.get, self._preset.key_variables))
        if has_key and self._preset.auth_method:
            await wire.ask("authenticate", {"methodId": self._preset.auth_method})
        self._wire = wire
        return wire

    async def _find_enclosure(self) -> bool:
        """Raises `BackendError` for a CLI that may not run without one, where there is none."""
        if self._config.enclosure == "off":
            return False
        choice = await choose(Wishes("bubblewrap"), known_levels(self._environ))
        if choice.level is None and not self._preset.asks:
            why = f"runs only in an enclosure, since it does not ask before it reads or runs something: {choice.why}"
            raise self._failed("bad_request", why)
        return choice.level is not None

    def _new_place(self) -> Place:
        return Place(self._private or Path(tempfile.mkdtemp(prefix="massgen-acp-")))

    def _inside(self, name: str) -> str:
        """Where the CLI finds this of its place."""
        if self._enclosed:
            return "/workspace" if name == "work" else f"{SHARED}/{name.removeprefix('shared/')}"
        return str(self._place.root / name) if self._place else name

    async def _read(self, wire: Wire, running: Running, words: asyncio.Task[None]) -> None:
        why = "it ended"
        try:
            await wire.read()
            with anyio.move_on_after(CANCEL_SECONDS):
                await asyncio.shield(words)
        except WireBroken as error:
            why = str(error)
            await running.end()
        finally:
            wire.end(why)

    async def _listen(self, running: Running) -> None:
        with suppress(anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            while True:
                self._last_words += await running.stderr.receive()
                del self._last_words[:-LAST_WORDS_BYTES]

    async def _stop(self) -> None:
        self._wire = None
        with anyio.CancelScope(shield=True):
            await self._process.aclose()

    # -- what goes wrong ----------------------------------------------------------------------------------------------

    async def _fault(self, error: Exception) -> BackendError:
        if isinstance(error, AgentRefused):
            return self._refusal(error)
        if isinstance(error, SandboxFailed | OSError):
            return self._failed("provider_error", f"cannot be started: {error}")
        words = self._last_words.decode(errors="replace").strip()
        last = f"; its last words: {words}" if words else ""
        return self._failed("provider_error", f"broke off: {error}{last}", retryable=True)

    def _refusal(self, error: AgentRefused) -> BackendError:
        if error.code == _LOGIN_NEEDED:
            how = "log in with the CLI itself" if self._config.login == "own" else "its key was not taken"
            return self._failed("auth", f"is not logged in: {how}: {error}")
        said = str(error).lower()
        for words, reason in _REFUSALS.items():
            if words in said:
                return self._failed(reason, f"refused: {error}", retryable=reason == "rate_limited")
        return self._failed("provider_error", f"refused: {error}", retryable=True)

    def _failed(self, reason: DropReason, what: str, *, retryable: bool = False) -> BackendError:
        """An error whose message holds no secret and has an end."""
        message = self._redactor.text(clean(f"{shown_name(self._config)} {what}"))
        return BackendError(reason, message[:MAX_DETAIL], retryable=retryable)


_STOPS: dict[str, Literal["end", "length", "refusal"]] = {
    "end_turn": "end",
    "max_tokens": "length",
    "refusal": "refusal",
}
_REFUSALS: dict[str, DropReason] = {
    "usage limit": "quota_exhausted",
    "quota": "quota_exhausted",
    "rate limit": "rate_limited",
    "429": "rate_limited",
    "401": "auth",
    "unauthorized": "auth",
}
"""What stands in an error's words; the protocol has no codes for these."""


async def _ended(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
