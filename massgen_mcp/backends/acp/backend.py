"""An agent CLI over the Agent Client Protocol: one process of an agent, one session for each conversation.

The tools of a request are an MCP server that the CLI calls. A turn that is held when its conversation is over is
cancelled. See docs/decisions.md.
"""

import asyncio
import json
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import anyio.to_thread

from massgen_mcp import __version__
from massgen_mcp.backends.acp.enclosure import RELAY, SHARED, TEAM_SOCKET, Place, started
from massgen_mcp.backends.acp.permits import Permits
from massgen_mcp.backends.acp.team_server import TeamServer
from massgen_mcp.backends.base import (
    JsonObject,
    ModelRequest,
    ReasoningPart,
    StopPart,
    TextPart,
    ToolCall,
    ToolSpec,
    UsagePart,
)
from massgen_mcp.backends.frameworks.agent_cli import render, tool_result
from massgen_mcp.backends.frameworks.own_loop import CANCEL_SECONDS, MAX_QUEUED, HeldCall, OwnLoop, Session
from massgen_mcp.backends.wire_values import clean, usage_part
from massgen_mcp.config.access.acp_agents import preset_of, shown_name
from massgen_mcp.config.access.acp_presets import TEAM
from massgen_mcp.config.models.backends import AcpBackendConfig
from massgen_mcp.errors import BackendError, DropReason
from massgen_mcp.home import known_levels
from massgen_mcp.json_rpc import AgentRefused, Wire, WireBroken, fields
from massgen_mcp.redaction import Redactor
from massgen_mcp.sandbox import Wishes, choose, interpreter

PROTOCOL = 1
START_SECONDS = 120.0
_LOGIN_NEEDED = -32000

_TOOLS_NOTE = (
    f"The tools that these instructions name are those of the MCP server `{TEAM}`; their names may begin with its "
    "name here. Act through them alone. Your files are those that these tools reach; the working directory that you "
    "are told of is none of them."
)

Ended = StopPart | BackendError


FINAL = ToolSpec(
    "final_answer",
    "Hand over your reply: its whole text. Nothing else that you say is part of it, and your work ends with it.",
    {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
)
"""Offered where the text is the reply: a CLI has words of its own between those of its model."""

_FINAL_NOTE = f"When your reply is ready, call `{FINAL.name}` of the MCP server `{TEAM}` with its whole text."


class AcpSession(Session):
    def __init__(self, request: ModelRequest, permits: Permits) -> None:
        super().__init__(request)
        self.id = self.word = ""
        self.permits = permits
        self.turn: asyncio.Task[None] | None = None
        self.hands_over = not (request.ends_with_call or request.must_call_tool)
        """Its reply is what it calls `FINAL` with, or else all that it has said."""
        self._said: list[str] = []
        self._said_characters = 0
        self._over = False

    async def go_on(self, request: ModelRequest) -> str | None:
        return None if self._over else await super().go_on(request)

    async def called(self, call: ToolCall, held: HeldCall) -> None:
        if call.name == FINAL.name and self.hands_over:
            await self._hand_over_reply(call, held)
            return
        await self.hold(held)
        self.hand_over([call])

    async def _hand_over_reply(self, call: ToolCall, held: HeldCall) -> None:
        """That the call is never answered saves a request, and the session is left."""
        match json.loads(call.arguments):
            case {"text": str(text)} if text.strip():
                self._said, self._over = [text], True
                self.ended(StopPart("end"))
            case _:
                await held.answer(tool_result("text: the whole reply is missing", is_error=True))

    def heard(self, text: str) -> None:
        if not self.hands_over:
            self.say(TextPart(text))
            return
        self._said.append(text)
        self._said_characters += len(text)
        if self._said_characters > MAX_QUEUED:
            raise WireBroken("it says more than anybody reads")

    def ended(self, how: StopPart | BackendError) -> None:
        if self._said and isinstance(how, StopPart):
            self.say(TextPart("".join(self._said)))
        self._said = []
        self.coming.put_nowait(how)


class AcpBackend(OwnLoop[AcpSession, Wire]):
    """`program` is the CLI's path; `private` as `make_backend` has it."""

    def __init__(
        self,
        config: AcpBackendConfig,
        program: str,
        environ: Mapping[str, str],
        private: Path | None,
        redactor: Redactor,
    ) -> None:
        super().__init__(shown_name(config), redactor)
        self._config, self._program, self._environ = config, program, environ
        self._preset = preset_of(config)
        self._private = private
        self._team = TeamServer()
        self._enclosed = False
        self._place: Place | None = None

    @property
    def model(self) -> str:
        return self._name if self._config.model == "default" else self._config.model

    async def aclose(self) -> None:
        await self.rest()
        await self._stop()
        place, self._place = self._place, None
        if place is not None:
            await anyio.to_thread.run_sync(place.remove)

    # -- conversations ------------------------------------------------------------------------------------------------

    async def _begin(self, request: ModelRequest) -> AcpSession:
        wire = await self._running()
        session = AcpSession(request, Permits(self._preset.sign))
        notes = [*([_TOOLS_NOTE] if request.tools else []), *([_FINAL_NOTE] if session.hands_over else [])]
        system = "\n\n".join([clean(request.system), *notes])
        params: JsonObject = {"cwd": self._inside("work"), "mcpServers": []}
        tools = (*request.tools, *((FINAL,) if session.hands_over else ()))
        if tools:
            session.word = self._team.let_in(tools, session.called)
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
        await self._set_options(wire, session.id)
        said = render(request.messages)
        await self._prompt(session, said if self._preset.system else f"{system}\n\n{said}")
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

    async def _prompt(self, session: AcpSession, text: str) -> None:
        session.turn = asyncio.create_task(self._take_turn(session, await self._running(), text))

    async def _take_turn(self, session: AcpSession, wire: Wire, text: str) -> None:
        """A task, for the turn goes on while nobody listens."""
        said = text if not text.lstrip().startswith("/") else f"It says:\n\n{text}"  # a CLI has commands that begin so
        prompt: JsonObject = {"sessionId": session.id, "prompt": [{"type": "text", "text": said}]}
        try:
            done = await wire.ask("session/prompt", prompt)
            if (usage := self._usage(session, done)) is not None:
                session.coming.put_nowait(usage)
            session.ended(self._end_of(done.get("stopReason")))
        except WireBroken as error:
            session.ended(self.fault(error))

    def _end_of(self, reason: object) -> Ended:
        word = str(reason)[:80]
        if (stop := _STOPS.get(word)) is None:
            return self._failed("provider_error", f"ended its turn with {word!a}", retryable=True)
        return StopPart(stop, provider_word=word)

    def _usage(self, session: AcpSession, done: Mapping[str, Any]) -> UsagePart | None:
        """What it counted, where that is this step's alone; None where nobody knows."""
        counted = fields(done.get("usage"))
        if not self._preset.counts or session.answered:
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

    async def _end(self, session: AcpSession) -> None:
        self._team.let_out(session.word)
        if session.turn is not None and not session.turn.done() and self._lines is not None:
            with anyio.move_on_after(CANCEL_SECONDS, shield=True), suppress(WireBroken):
                await self._lines.tell("session/cancel", {"sessionId": session.id})

    # -- what it says and asks ----------------------------------------------------------------------------------------

    def _talked_to(self, params: Mapping[str, Any]) -> AcpSession | None:
        session = self._session
        return session if session is not None and session.id == params.get("sessionId") else None

    def _heard(self, method: str, params: Mapping[str, Any]) -> None:
        session, update = self._talked_to(params), fields(params.get("update"))
        if method != "session/update" or session is None:
            return
        session.permits.hear(update)
        match update:
            case {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": str(text)}}:
                if not self._preset.is_notice(text):
                    session.heard(clean(text))
            case {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": str(text)}}:
                session.say(ReasoningPart(clean(text)))
            case _:
                pass

    def _answer(self, method: str, params: Mapping[str, Any]) -> JsonObject | None:
        if method != "session/request_permission":
            return None
        session = self._talked_to(params)
        return {"outcome": {"outcome": "cancelled"}} if session is None else session.permits.decide(params)

    # -- the process --------------------------------------------------------------------------------------------------

    async def _running(self) -> Wire:
        if self._lines is not None and self._lines.broken is None:
            return self._lines
        await self._stop()
        with anyio.move_on_after(START_SECONDS):
            return await self._start()
        raise self._failed("timeout", f"did not begin to speak within {START_SECONDS:g} s")

    async def _start(self) -> Wire:
        self._enclosed = await self._find_enclosure()
        place = self._place = self._place or await anyio.to_thread.run_sync(self._new_place)
        cli = started(self._config, self._environ, self._program, place, enclosed=self._enclosed)
        wire = await self._run(cli, lambda running: Wire(running.stdin, running.stdout, self._answer, self._heard))
        self._team = TeamServer()
        self._process.callback(self._team.close)
        await self._team.open(place.shared / TEAM_SOCKET)
        able: JsonObject = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
        info: JsonObject = {"name": "massgen-mcp", "version": __version__}
        begin: JsonObject = {"protocolVersion": PROTOCOL, "clientCapabilities": able, "clientInfo": info}
        found = await wire.ask("initialize", begin)
        if found.get("protocolVersion") != PROTOCOL:
            raise self._failed("bad_request", f"does not speak version {PROTOCOL} of the Agent Client Protocol")
        has_key = self._config.login == "key" and any(map(self._environ.get, self._preset.key_variables))
        if has_key and self._preset.auth_method:
            await wire.ask("authenticate", {"methodId": self._preset.auth_method})
        self._lines = wire
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

    # -- what goes wrong ----------------------------------------------------------------------------------------------

    def fault(self, error: Exception) -> BackendError:
        if not isinstance(error, AgentRefused):
            return super().fault(error)
        if error.code == _LOGIN_NEEDED:
            how = "log in with the CLI itself" if self._config.login == "own" else "its key was not taken"
            return self._failed("auth", f"is not logged in: {how}: {error}")
        said = str(error).lower()
        for words, reason in _REFUSALS.items():
            if words in said:
                return self._failed(reason, f"refused: {error}", retryable=reason == "rate_limited")
        return self._failed("provider_error", f"refused: {error}", retryable=True)


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
