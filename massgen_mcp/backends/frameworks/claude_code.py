"""Claude Code: a conversation of an agent is one process of its CLI, with the team's tools and none of its own.

The tools of the request are an MCP server behind the CLI's own channel. The CLI sees a home of its own and none of the
user's settings. See docs/decisions.md.
"""

import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, cast

import anyio.to_thread

from massgen_mcp.backends.base import JsonObject, ModelRequest, ReasoningPart, StopPart, TextPart, ToolCall
from massgen_mcp.backends.ends import MESSAGES, stop_of
from massgen_mcp.backends.frameworks.agent_cli import PASSED_ON, PREFIX, of_server, render
from massgen_mcp.backends.frameworks.agent_process import Running, bare
from massgen_mcp.backends.frameworks.own_loop import HeldCall, OwnLoop, Session
from massgen_mcp.backends.wire_values import MessagesUsage, clean, clean_object
from massgen_mcp.config.access.acp_presets import TEAM
from massgen_mcp.config.access.agent_clis import BASE_URL, CONFIG_DIRECTORY, Login
from massgen_mcp.config.models.backends import ClaudeCodeBackendConfig
from massgen_mcp.errors import BackendError, DropReason
from massgen_mcp.json_rpc import JsonLines, WireBroken, fields
from massgen_mcp.redaction import Redactor

_TOOLS_NOTE = (
    f"\n\nThe name of every tool begins with {PREFIX} here: its name elsewhere in these instructions is the part after "
    "that. Your files are those that these tools reach; the working directory that you are told of is none of them."
)


_BY_STATUS: dict[int, tuple[DropReason, bool]] = {
    401: ("auth", False),
    402: ("quota_exhausted", False),
    403: ("auth", False),
    404: ("model_not_found", False),
    408: ("provider_error", True),
    409: ("provider_error", True),
    429: ("rate_limited", True),
}


class ClaudeCodeSession(Session):
    """Reads what the CLI says in one conversation, and answers what it may do."""

    def __init__(self, request: ModelRequest, failed: Callable[..., BackendError]) -> None:
        super().__init__(request)
        self._failed = failed
        self._ours = {f"{PREFIX}{tool.name}" for tool in request.tools}
        self._begin_step()

    def _begin_step(self) -> None:
        self._calls: list[ToolCall] = []
        self._has_text = self._asked = False
        self._usage = MessagesUsage()

    def before_tool(self, asked: Mapping[str, Any]) -> JsonObject:
        """What the CLI is told that wants to run a tool: only those of the team are there."""
        tool = str(asked.get("tool_name", ""))
        ours = tool.startswith(PREFIX)
        decided: JsonObject = {
            "hookEventName": "PreToolUse",
            "permissionDecision": "allow" if ours else "deny",
            "permissionDecisionReason": f"your tools are those that begin with {PREFIX}",
        }
        return {"hookSpecificOutput": decided}

    def hear(self, message: Mapping[str, Any]) -> None:
        """Raises `BackendError` where the turn failed."""
        match message:
            case {"type": "stream_event", "event": {} as event}:
                self._hear_event(event)
            case {"type": "assistant", "message": {"content": [*blocks]}}:
                for block in blocks:
                    self._hear_block(block)
            case {"type": "result"}:
                self._hear_result(message)
            case _:
                pass

    def _hear_event(self, event: Mapping[str, Any]) -> None:
        match event:
            case {"type": "message_start", "message": {} as message}:
                if self._asked:
                    self._usage.next_request()
                self._asked = True
                self._usage.model = message.get("model")
                self._usage.hear(message.get("usage"))
                if self._has_text:
                    self.say(TextPart("\n\n"))
                self._has_text = False
            case {"type": "content_block_delta", "delta": {"text": str(text)}} if text:
                self._has_text = True
                self.say(TextPart(clean(text)))
            case {"type": "content_block_delta", "delta": {"thinking": str(thinking)}} if thinking:
                self.say(ReasoningPart(clean(thinking)))
            case {"type": "message_delta", "usage": usage}:
                self._usage.hear(usage)
            case {"type": "message_stop"} if self._calls:
                self.say(self._usage.total())
                self.hand_over(self._calls)
                self._begin_step()
            case _:
                pass

    def _hear_block(self, block: object) -> None:
        """Whole calls of the team's tools: the CLI itself refuses any other, and goes on."""
        match block:
            case {"type": "tool_use", "id": str(call_id), "name": str(name)} if name in self._ours:
                given = clean_object(dict(fields(fields(block).get("input"))))
                self._calls.append(ToolCall(call_id, name.removeprefix(PREFIX), json.dumps(given, ensure_ascii=False)))
                self.expect(call_id)
            case _:
                pass

    def _hear_result(self, result: Mapping[str, Any]) -> None:
        if self._asked:
            self.say(self._usage.total())
        self._begin_step()
        if result.get("is_error"):
            raise self._refused(result)
        self.say(self._stop(result))

    def _stop(self, result: Mapping[str, Any]) -> StopPart:
        """By the model's own end. A CLI that tells none has said by the kind of its result that it came to one."""
        reason = result.get("stop_reason") or ("end_turn" if result.get("subtype") == "success" else None)
        stop = stop_of(MESSAGES, reason, ())
        if stop is None:
            raise self._failed("provider_error", f"broke off: stop_reason {reason}", retryable=True)
        return StopPart(stop, provider_word=str(reason))

    def _refused(self, result: Mapping[str, Any]) -> BackendError:
        if result.get("subtype") == "error_max_turns":
            return self._failed("bad_reply", "came to no end in as many turns as it has (max_turns)")
        status = result.get("api_error_status")
        errors = cast("list[object]", result.get("errors") or [])
        detail = result.get("result") or "; ".join(map(str, errors)) or result.get("subtype")
        if not isinstance(status, int):  # it never came to an answer of the API, or the CLI itself failed
            return self._failed("provider_error", f"failed: {detail}", retryable=True)
        default = ("provider_error", True) if status >= 500 else ("bad_request", False)
        reason, retryable = _BY_STATUS.get(status, default)
        return self._failed(reason, f"was answered {status}: {detail}", retryable=retryable)


class ClaudeCodeBackend(OwnLoop[ClaudeCodeSession, "ClaudeCodeLines"]):
    """`program` is the CLI's path; `private` becomes its home, a temporary directory where it is None."""

    def __init__(
        self,
        config: ClaudeCodeBackendConfig,
        program: str,
        login: Login,
        environ: Mapping[str, str],
        private: Path | None,
        redactor: Redactor,
    ) -> None:
        super().__init__("claude_code", redactor)
        self._config, self._program, self._login, self._environ = config, program, login, environ
        self._private = private
        self._home: Path | None = None

    @property
    def model(self) -> str:
        return self._config.model

    async def aclose(self) -> None:
        await self.rest()
        home, self._home = self._home, None
        if home is not None:
            await anyio.to_thread.run_sync(lambda: shutil.rmtree(home, ignore_errors=True))

    async def _begin(self, request: ModelRequest) -> ClaudeCodeSession:
        home = await anyio.to_thread.run_sync(self._make_home)
        system = clean(request.system) + (_TOOLS_NOTE if request.tools else "")
        (home / "system.md").write_text(system, encoding="utf-8")
        session = self._session = ClaudeCodeSession(request, self._failed)
        cli = bare(self._command(request, home), home, self._variables(home))
        said = render(request.messages)
        self._lines = await self._run(cli, partial(ClaudeCodeLines, session=session, said=said, fault=self.fault))
        with suppress(WireBroken):  # its session tells how it ended
            await self._lines.begin()
        return session

    async def _prompt(self, session: ClaudeCodeSession, text: str) -> None:
        del session  # the only one of the process
        if self._lines is not None:
            await self._lines.prompt(text)

    async def _end(self, session: ClaudeCodeSession) -> None:
        del session
        await self._stop()

    def _make_home(self) -> Path:
        if self._home is None:
            if self._private is None:
                self._home = Path(tempfile.mkdtemp(prefix="massgen-claude-code-"))
            else:
                self._private.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._home = self._private
        return self._home

    def _command(self, request: ModelRequest, home: Path) -> list[str]:
        command = [self._program, "--output-format", "stream-json", "--input-format", "stream-json", "--verbose"]
        command += ["--include-partial-messages", "--system-prompt-file", str(home / "system.md")]
        command += ["--tools", "", "--permission-mode", "dontAsk"]
        command += ["--setting-sources=", "--strict-mcp-config", "--disable-slash-commands", "--no-session-persistence"]
        command += ["--max-turns", str(self._config.max_turns)]
        if request.tools:
            command += ["--mcp-config", json.dumps({"mcpServers": {TEAM: {"type": "sdk", "name": TEAM}}})]
        if self._config.model != "default":
            command += [f"--model={self._config.model}"]
        if self._config.reasoning_effort is not None:
            command += ["--effort", self._config.reasoning_effort]
        if self._config.max_thinking_tokens is not None:
            command += ["--max-thinking-tokens", str(self._config.max_thinking_tokens)]
        return command

    def _variables(self, home: Path) -> dict[str, str]:
        return {
            **{name: value for name in (*PASSED_ON, BASE_URL) if (value := self._environ.get(name))},
            self._login.variable: self._login.value,
            "HOME": str(home),
            "TMPDIR": str(home),
            CONFIG_DIRECTORY: str(home / ".claude"),
            "CLAUDE_CODE_ENTRYPOINT": "sdk-py",
            "CLAUDE_CODE_MAX_RETRIES": "0",  # retries are ours
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
            "CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK": "1",
            "ENABLE_TOOL_SEARCH": "false",
            "DISABLE_AUTOUPDATER": "1",
        }


class ClaudeCodeLines(JsonLines):
    """How the CLI is talked to, as its SDK does it.

    Beside the messages of the conversation there are requests in both directions. We ask it once, to begin; it asks us
    before it runs a tool, and passes on what its MCP client says to our server.
    """

    def __init__(
        self, running: Running, *, session: ClaudeCodeSession, said: str, fault: Callable[[Exception], BackendError]
    ) -> None:
        super().__init__(running.stdin, running.stdout)
        self._session, self._said, self._fault = session, said, fault
        self._held: dict[str, HeldCall] = {}

    async def begin(self) -> None:
        hooks = {"PreToolUse": [{"matcher": None, "hookCallbackIds": ["before_tool"]}]}
        begin = {"subtype": "initialize", "hooks": hooks}
        await self.send({"type": "control_request", "request_id": "begin", "request": begin})

    async def prompt(self, text: str) -> None:
        """The CLI is to expand nothing in it: no `@path`, no `/command`."""
        message = {"role": "user", "content": text}
        await self.send({"type": "user", "message": message, "parent_tool_use_id": None, "client_composed": True})

    async def hear(self, message: Mapping[str, Any]) -> None:
        match message:
            case {"type": "control_response", "response": {"subtype": "error"} as refused}:
                raise WireBroken(f"the CLI does not begin: {refused.get('error')}")
            case {"type": "control_response"}:
                await self.prompt(self._said)
            case {"type": "control_request", "request_id": str(number), "request": {} as asked}:
                await self._asked(number, asked)
            case {"type": "control_cancel_request", "request_id": str(number)} if number in self._held:
                self._held[number].gone = True
            case _:
                try:
                    self._session.hear(message)
                except BackendError as error:
                    self._session.coming.put_nowait(error)

    async def _asked(self, number: str, asked: Mapping[str, Any]) -> None:
        match asked:
            case {"subtype": "hook_callback", "input": {} as tool}:
                await self._answer(number, self._session.before_tool(tool))
            case {"subtype": "mcp_message", "message": {"method": "tools/call", "id": _} as message}:
                await self._hold(number, message)
            case {"subtype": "mcp_message", "message": {} as message}:
                await self._answer(number, {"mcp_response": of_server(message, self._session.tools)})
            case _:
                refusal = {"subtype": "error", "request_id": number, "error": "not supported"}
                await self.send({"type": "control_response", "response": refusal})

    async def _hold(self, number: str, message: Mapping[str, Any]) -> None:
        """Its id is the one that the model gave the call."""
        call_id = str(fields(fields(message.get("params")).get("_meta")).get("claudecode/toolUseId"))

        async def answer(result: JsonObject) -> None:
            await self._answer(number, {"mcp_response": {"jsonrpc": "2.0", "id": message["id"], "result": result}})

        self._held[number] = HeldCall(call_id, answer)
        await self._session.hold(self._held[number])

    async def _answer(self, number: str, answer: JsonObject) -> None:
        response = {"subtype": "success", "request_id": number, "response": answer}
        await self.send({"type": "control_response", "response": response})

    def end(self, why: str) -> None:
        super().end(why)
        self._session.coming.put_nowait(self._fault(WireBroken(why)))
