"""An agent CLI over the Agent Client Protocol: one process of an agent, one session for each conversation.

The tools of a request are an MCP server that the CLI calls. A turn that is held when its conversation is over is
cancelled. See docs/decisions.md.
"""

import json
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import anyio.to_thread

from massgen_mcp import __version__
from massgen_mcp.backends.acp.enclosure import RELAY, SHARED, TEAM_SOCKET, AgentHome, make_login_copy, started
from massgen_mcp.backends.acp.login import write_home_file
from massgen_mcp.backends.acp.team_server import Permits, TeamServer
from massgen_mcp.backends.base import (
    JsonObject,
    ModelRequest,
    ReasoningPart,
    StopPart,
    TextPart,
    ToolCall,
    ToolResultMessage,
    UsagePart,
)
from massgen_mcp.backends.frameworks.agent_process import BROKEN, CANCEL_SECONDS, CliAgent, render
from massgen_mcp.backends.own_loop import FINAL, Desk
from massgen_mcp.backends.wire_values import clean, complete_usage
from massgen_mcp.config.access.acp_agents import TEAM, preset_of, shown_name
from massgen_mcp.config.models.backends import AcpBackendConfig
from massgen_mcp.errors import BackendError, DropReason
from massgen_mcp.home import known_levels
from massgen_mcp.json_rpc import AgentRefused, ConnectionBroken, JsonRpcConnection, fields
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

_FINAL_NOTE = f"When your reply is ready, call `{FINAL.name}` of the MCP server `{TEAM}` with its whole text."


class AcpSession:
    """One conversation with the CLI."""

    def __init__(self, desk: Desk, permits: Permits) -> None:
        self.desk, self.permits = desk, permits
        self.id = self.word = ""
        self.in_turn = False
        self.answered = 0
        """Calls of this turn."""

    async def use(self, call: ToolCall) -> ToolResultMessage:
        (result,) = await self.desk.use(call)
        self.answered += 1
        return result


class AcpAgent(CliAgent):
    """`program` is the CLI's path; `private` as `make_backend` has it."""

    own_words = True

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
        self._place: AgentHome | None = None
        self._connection: JsonRpcConnection | None = None
        """Where it can be talked to."""
        self._session: AcpSession | None = None
        """The one that is talked to."""

    @property
    def model(self) -> str:
        return self._name if self._config.model == "default" else self._config.model

    async def aclose(self) -> None:
        await self._stop()
        place, self._place = self._place, None
        if place is not None:
            await anyio.to_thread.run_sync(place.remove)

    # -- conversations ------------------------------------------------------------------------------------------------

    async def work(self, task: ModelRequest, desk: Desk) -> None:
        session = self._session = AcpSession(desk, Permits(self._preset.sign))
        try:
            connection = await self._running()
            prompt = await self._begin(connection, session, task)
            while True:
                prompt = await desk.news(await self._take_turn(connection, session, prompt))
        except BROKEN as error:
            raise self.fault(error) from None
        finally:
            self._team.let_out(session.word)
            if session.in_turn and self._connection is not None:
                with anyio.move_on_after(CANCEL_SECONDS, shield=True), suppress(ConnectionBroken):
                    await self._connection.tell("session/cancel", {"sessionId": session.id})

    async def _begin(self, connection: JsonRpcConnection, session: AcpSession, task: ModelRequest) -> str:
        """Makes the session at the CLI. The first prompt."""
        tools = session.desk.tools
        notes = [*([_TOOLS_NOTE] if task.tools else []), *([_FINAL_NOTE] if FINAL in tools else [])]
        system = "\n\n".join([clean(task.system), *notes])
        params: JsonObject = {"cwd": self._inside("work"), "mcpServers": []}
        if tools:
            session.word = self._team.let_in(tools, session.use)
            socket, relay = self._inside(f"shared/{TEAM_SOCKET}"), self._inside(f"shared/{RELAY}")
            arguments = ["-I", "-S", relay, "team", socket, session.word]
            server: JsonObject = {"command": interpreter(), "args": [*arguments]}
            params["mcpServers"] = [{"name": TEAM, **server, "env": []}]
            if self._preset.servers_file and self._place is not None:
                known: JsonObject = {"mcpServers": {TEAM: {"type": "local", **server, "tools": ["*"]}}}
                written = json.dumps(known).encode()
                await anyio.to_thread.run_sync(write_home_file, self._place.home, self._preset.servers_file, written)
                params["mcpServers"] = []
        if self._preset.system:
            params["systemPrompt"] = {"mode": "append", "content": [{"type": "text", "text": system}]}
        if self._preset.session:
            params["_meta"] = dict(self._preset.session)  # pyright: ignore[reportArgumentType]
        session.id = str((await connection.ask("session/new", params)).get("sessionId") or "")
        if not session.id:
            raise ConnectionBroken("it created a session without an id")
        await self._set_options(connection, session.id)
        prompt = render(task.messages)
        return prompt if self._preset.system else f"{system}\n\n{prompt}"

    async def _set_options(self, connection: JsonRpcConnection, session_id: str) -> None:
        preset, config = self._preset, self._config
        if preset.mode:
            await connection.ask("session/set_mode", {"sessionId": session_id, "modeId": preset.mode})
        model = None if config.model == "default" else config.model
        for option, value in ((preset.model_option, model), (preset.effort_option, config.reasoning_effort)):
            if option and value:
                chosen: JsonObject = {"sessionId": session_id, "configId": option, "value": value}
                await connection.ask("session/set_config_option", chosen)

    async def _take_turn(self, connection: JsonRpcConnection, session: AcpSession, text: str) -> StopPart:
        words = text if not text.lstrip().startswith("/") else f"It says:\n\n{text}"  # a CLI has commands that begin so
        prompt: JsonObject = {"sessionId": session.id, "prompt": [{"type": "text", "text": words}]}
        session.in_turn, session.answered = True, 0
        done = await connection.ask("session/prompt", prompt)
        session.in_turn = False
        await self._exchange_login()
        if (usage := self._usage(session, done)) is not None:
            session.desk.say(usage)
        word = str(done.get("stopReason"))[:80]
        if (stop := _STOPS.get(word)) is None:
            raise self._failed("provider_error", f"ended its turn with stop reason {word!a}", retryable=True)
        return StopPart(stop, provider_word=word)

    def _usage(self, session: AcpSession, done: Mapping[str, Any]) -> UsagePart | None:
        """What it counted, where that is this step's alone; None where nobody knows."""
        counted = fields(done.get("usage"))
        last = self._preset.counts == "last call"
        if self._preset.counts == "nothing" or (session.answered and not last):
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
        found = UsagePart(read, cached, written, reasoned, cache_write_tokens=cache_written, at_least=last)
        return complete_usage("", found)

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
                    session.desk.say(TextPart(clean(text)))
            case {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": str(text)}}:
                session.desk.say(ReasoningPart(clean(text)))
            case _:
                pass

    def _answer(self, method: str, params: Mapping[str, Any]) -> JsonObject | None:
        if method != "session/request_permission":
            return None
        session = self._talked_to(params)
        return {"outcome": {"outcome": "cancelled"}} if session is None else session.permits.decide(params)

    # -- the process --------------------------------------------------------------------------------------------------

    async def _running(self) -> JsonRpcConnection:
        if self._connection is not None and self._connection.broken is None:
            return self._connection
        await self._stop()
        self._connection = None
        with anyio.move_on_after(START_SECONDS):
            return await self._start()
        raise self._failed("timeout", f"did not respond within {START_SECONDS:g} s")

    async def _start(self) -> JsonRpcConnection:
        self._enclosed = await self._find_enclosure()
        place = self._place = self._place or await anyio.to_thread.run_sync(self._new_place)
        cli = started(self._config, self._environ, self._program, place, enclosed=self._enclosed)
        self._process.push_async_callback(self._exchange_login)
        connection = await self._run(
            cli, lambda running: JsonRpcConnection(running.stdin, running.stdout, self._answer, self._heard)
        )
        self._team = TeamServer()
        self._process.callback(self._team.close)
        await self._team.open(place.shared / TEAM_SOCKET)
        able: JsonObject = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
        info: JsonObject = {"name": "massgen-mcp", "version": __version__}
        begin: JsonObject = {"protocolVersion": PROTOCOL, "clientCapabilities": able, "clientInfo": info}
        found = await connection.ask("initialize", begin)
        if found.get("protocolVersion") != PROTOCOL:
            raise self._failed("bad_request", f"doesn't support version {PROTOCOL} of the Agent Client Protocol")
        has_key = self._config.login == "key" and any(map(self._environ.get, self._preset.key_variables))
        if has_key and self._preset.auth_method:
            await connection.ask("authenticate", {"methodId": self._preset.auth_method})
        self._connection = connection
        return connection

    async def _exchange_login(self) -> None:
        """Keep the user's own login and the CLI's copy of it the same."""
        if self._enclosed and self._place is not None:
            copy = make_login_copy(self._config, self._environ, self._place)
            if copy is not None:
                await anyio.to_thread.run_sync(copy.exchange)

    async def _find_enclosure(self) -> bool:
        """Raises `BackendError` for a CLI that may not run without one, where there is none."""
        if self._config.enclosure == "off":
            return False
        choice = await choose(Wishes("bubblewrap"), known_levels(self._environ))
        if choice.level is None and not self._preset.asks:
            why = f"runs only inside a sandbox, since it reads files and runs commands without asking: {choice.why}"
            raise self._failed("bad_request", why)
        return choice.level is not None

    def _new_place(self) -> AgentHome:
        return AgentHome(self._private or Path(tempfile.mkdtemp(prefix="massgen-acp-")))

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
            how = "log in with the CLI" if self._config.login == "own" else "the CLI rejected the key"
            return self._failed("auth", f"isn't logged in: {how}: {error}")
        message = str(error).lower()
        for words, reason in _REFUSALS.items():
            if words in message:
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
