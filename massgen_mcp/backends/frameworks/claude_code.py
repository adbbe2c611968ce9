"""Claude Code: a conversation of an agent is one process of its CLI, with the team's tools and none of its own.

The tools of the request are an MCP server behind the CLI's own channel. The CLI sees a home of its own and none of the
user's settings. See docs/decisions.md.
"""

import asyncio
import json
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, cast

import anyio.to_thread

from massgen_mcp.backends.base import (
    JsonObject,
    ModelRequest,
    ReasoningPart,
    StopPart,
    TextPart,
    ToolCall,
    ToolResultMessage,
)
from massgen_mcp.backends.ends import MESSAGES, stop_of
from massgen_mcp.backends.frameworks.agent_process import (
    BROKEN,
    PREFIX,
    CliAgent,
    of_server,
    render,
    select_variables,
    tool_result,
)
from massgen_mcp.backends.own_loop import Desk
from massgen_mcp.backends.wire_values import MessagesUsage, clean, clean_object
from massgen_mcp.config.access.acp_agents import CLAUDE_OUTPUT, CLAUDE_OUTPUT_VARIABLE, TEAM
from massgen_mcp.config.access.agent_clis import BASE_URL, CONFIG_DIRECTORY, Login
from massgen_mcp.config.models.backends import ClaudeCodeBackendConfig
from massgen_mcp.errors import BackendError, DropReason
from massgen_mcp.json_rpc import ConnectionBroken, JsonLines, fields
from massgen_mcp.redaction import Redactor
from massgen_mcp.sandbox import PipedProgram, bare

_TOOLS_NOTE = (
    f"\n\nThe name of every tool begins with {PREFIX} here: its name elsewhere in these instructions is the part after "
    "that. Your files are those that these tools reach; the working directory that you are told of is none of them."
)


MAX_CALLS_AT_ONCE = 256
_BY_STATUS: dict[int, tuple[DropReason, bool]] = {
    401: ("auth", False),
    402: ("quota_exhausted", False),
    403: ("auth", False),
    404: ("model_not_found", False),
    408: ("provider_error", True),
    409: ("provider_error", True),
    429: ("rate_limited", True),
}


class ClaudeCodeAgent(CliAgent):
    """`program` is the CLI's path; `private` becomes its home, a temporary directory where it is None."""

    own_words = False

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
        self.model = config.model
        self._config, self._program, self._login, self._environ = config, program, login, environ
        self._private = private
        self._home: Path | None = None

    async def aclose(self) -> None:
        await self._stop()
        home, self._home = self._home, None
        if home is not None:
            await anyio.to_thread.run_sync(lambda: shutil.rmtree(home, ignore_errors=True))

    async def work(self, task: ModelRequest, desk: Desk) -> None:
        home = await anyio.to_thread.run_sync(self._make_home)
        system = clean(task.system) + (_TOOLS_NOTE if task.tools else "")
        (home / "system.md").write_text(system, encoding="utf-8")
        cli = bare(self._command(task, home), home, self._variables(home))
        try:
            lines = await self._run(cli, partial(ClaudeCodeLines, desk=desk, failed=self._failed))
            await lines.begin()
            words = render(task.messages)
            while True:
                words = await desk.news(await lines.turn(words))
        except BROKEN as error:
            raise self.fault(error) from None
        finally:
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
            **select_variables(self._environ, BASE_URL),
            self._login.variable: self._login.value,
            "HOME": str(home),
            "TMPDIR": str(home),
            CONFIG_DIRECTORY: str(home / ".claude"),
            "CLAUDE_CODE_ENTRYPOINT": "sdk-py",
            "CLAUDE_CODE_MAX_RETRIES": "0",  # retries are ours
            CLAUDE_OUTPUT_VARIABLE: str(CLAUDE_OUTPUT),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
            "CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK": "1",
            "ENABLE_TOOL_SEARCH": "false",
            "DISABLE_AUTOUPDATER": "1",
        }


class ClaudeCodeLines(JsonLines):
    """How the CLI is talked to, as its SDK does it: one conversation.

    Beside the messages of the conversation there are requests in both directions. We ask it once, to begin; it asks us
    before it runs a tool, and passes on what its MCP client says to our server.
    """

    def __init__(self, running: PipedProgram, *, desk: Desk, failed: Callable[..., BackendError]) -> None:
        super().__init__(running.stdin, running.stdout)
        self._desk, self._failed = desk, failed
        self._ours = {f"{PREFIX}{tool.name}" for tool in desk.tools}
        self._waiting: asyncio.Future[StopPart | None] | None = None
        """For the CLI to have begun, or for its turn to end."""
        self._using: asyncio.Task[None] | None = None
        self._results: dict[str, asyncio.Future[ToolResultMessage]] = {}
        self._held: dict[str, asyncio.Task[None]] = {}
        """What the CLI waits for."""
        self._begin_step()

    async def begin(self) -> None:
        hooks = {"PreToolUse": [{"matcher": None, "hookCallbackIds": ["before_tool"]}]}
        begin = {"subtype": "initialize", "hooks": hooks}
        await self._ask({"type": "control_request", "request_id": "begin", "request": begin})

    async def turn(self, text: str) -> StopPart:
        """The CLI is to expand nothing in it: no `@path`, no `/command`."""
        message = {"role": "user", "content": text}
        asked = {"type": "user", "message": message, "parent_tool_use_id": None, "client_composed": True}
        return await self._ask(asked) or StopPart("end")

    async def _ask(self, message: Mapping[str, Any]) -> StopPart | None:
        self._waiting = asyncio.get_running_loop().create_future()
        try:
            await self.send(message)
            return await self._waiting
        finally:
            self._waiting = None

    async def hear(self, message: Mapping[str, Any]) -> None:
        match message:
            case {"type": "control_response", "response": {"subtype": "error"} as refused}:
                raise ConnectionBroken(f"cannot start the CLI: {refused.get('error')}")
            case {"type": "control_response"} if self._waiting is not None:
                self._waiting.set_result(None)
            case {"type": "control_request", "request_id": str(number), "request": {} as asked}:
                await self._asked_for(number, asked)
            case {"type": "control_cancel_request", "request_id": str(number)} if number in self._held:
                self._let_go()
            case _:
                self._hear_turn(message)

    async def _asked_for(self, number: str, asked: Mapping[str, Any]) -> None:
        match asked:
            case {"subtype": "hook_callback", "input": {} as tool}:
                await self._answer(number, self._before_tool(tool))
            case {"subtype": "mcp_message", "message": {"method": "tools/call", "id": _} as message}:
                if len(self._held) >= MAX_CALLS_AT_ONCE or number in self._held:
                    raise ConnectionBroken(f"it made more than {MAX_CALLS_AT_ONCE} parallel calls, or reused an id")
                task = self._held[number] = asyncio.create_task(self._hold(number, message))
                task.add_done_callback(lambda _: self._held.pop(number, None))
            case {"subtype": "mcp_message", "message": {} as message}:
                await self._answer(number, {"mcp_response": of_server(message, self._desk.tools)})
            case _:
                refusal = {"subtype": "error", "request_id": number, "error": "not supported"}
                await self.send({"type": "control_response", "response": refusal})

    async def _hold(self, number: str, message: Mapping[str, Any]) -> None:
        """Its id is the one that the model gave the call."""
        call_id = str(fields(fields(message.get("params")).get("_meta")).get("claudecode/toolUseId"))
        result = tool_result(await self._results.get(call_id, asyncio.get_running_loop().create_future()))
        answer: JsonObject = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        with suppress(ConnectionBroken):
            await self._answer(number, {"mcp_response": answer})

    async def _use(self, calls: Sequence[ToolCall]) -> None:
        for result in await self._desk.use(*calls):
            self._results[result.call_id].set_result(result)

    async def _answer(self, number: str, answer: JsonObject) -> None:
        response = {"subtype": "success", "request_id": number, "response": answer}
        await self.send({"type": "control_response", "response": response})

    def _let_go(self) -> None:
        """The CLI waits for no result any more."""
        for task in (*self._held.values(), self._using):
            if task is not None:
                task.cancel()

    def end(self, why: str) -> None:
        super().end(why)
        self._let_go()
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(ConnectionBroken(why))

    # -- what it says -------------------------------------------------------------------------------------------------

    def _begin_step(self) -> None:
        self._calls: list[ToolCall] = []
        self._has_text = self._asked = False
        self._usage = MessagesUsage()

    def _before_tool(self, asked: Mapping[str, Any]) -> JsonObject:
        """What the CLI is told that wants to run a tool: only those of the team are there."""
        tool = str(asked.get("tool_name", ""))
        ours = tool.startswith(PREFIX)
        decided: JsonObject = {
            "hookEventName": "PreToolUse",
            "permissionDecision": "allow" if ours else "deny",
            "permissionDecisionReason": f"your tools are those that begin with {PREFIX}",
        }
        return {"hookSpecificOutput": decided}

    def _hear_turn(self, message: Mapping[str, Any]) -> None:
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
                    self._desk.say(TextPart("\n\n"))
                self._has_text = False
            case {"type": "content_block_delta", "delta": {"text": str(text)}} if text:
                self._has_text = True
                self._desk.say(TextPart(clean(text)))
            case {"type": "content_block_delta", "delta": {"thinking": str(thinking)}} if thinking:
                self._desk.say(ReasoningPart(clean(thinking)))
            case {"type": "message_delta", "usage": usage}:
                self._usage.hear(usage)
            case {"type": "message_stop"} if self._calls:
                if self._using is not None and not self._using.done():
                    raise ConnectionBroken("it called more tools before it had the results of its previous calls")
                self._desk.say(self._usage.total())
                self._using = asyncio.create_task(self._use(self._calls))
                self._begin_step()
            case _:
                pass

    def _hear_block(self, block: object) -> None:
        """Whole calls of the team's tools: the CLI itself refuses any other, and goes on."""
        match block:
            case {"type": "tool_use", "id": str(call_id), "name": str(name)} if name in self._ours:
                if len(self._calls) >= MAX_CALLS_AT_ONCE:
                    raise ConnectionBroken(f"it called more than {MAX_CALLS_AT_ONCE} tools at once")
                given = clean_object(dict(fields(fields(block).get("input"))))
                self._calls.append(ToolCall(call_id, name.removeprefix(PREFIX), json.dumps(given, ensure_ascii=False)))
                # A future of its own, as an earlier call may have had this id.
                self._results[call_id] = asyncio.get_running_loop().create_future()
            case _:
                pass

    def _hear_result(self, result: Mapping[str, Any]) -> None:
        if self._asked:
            self._desk.say(self._usage.total())
        self._begin_step()
        if self._waiting is None or self._waiting.done():
            return
        try:
            self._waiting.set_result(self._stop_of(result))
        except BackendError as error:
            self._waiting.set_exception(error)

    def _stop_of(self, result: Mapping[str, Any]) -> StopPart:
        """By the model's own end. A CLI that tells none has said by the kind of its result that it came to one."""
        if result.get("is_error"):
            raise self._refused_reply(result)
        reason = result.get("stop_reason") or ("end_turn" if result.get("subtype") == "success" else None)
        stop = stop_of(MESSAGES, reason, ())
        if stop is None:
            raise self._failed("provider_error", f"broke off: stop_reason {reason}", retryable=True)
        return StopPart(stop, provider_word=str(reason))

    def _refused_reply(self, result: Mapping[str, Any]) -> BackendError:
        if result.get("subtype") == "error_max_turns":
            return self._failed("bad_reply", "didn't finish within its maximum number of turns (max_turns)")
        status = result.get("api_error_status")
        errors = cast("list[object]", result.get("errors") or [])
        detail = result.get("result") or "; ".join(map(str, errors)) or result.get("subtype")
        if not isinstance(status, int):  # it never came to an answer of the API, or the CLI itself failed
            return self._failed("provider_error", f"failed: {detail}", retryable=True)
        default = ("provider_error", True) if status >= 500 else ("bad_request", False)
        reason, retryable = _BY_STATUS.get(status, default)
        return self._failed(reason, f"was answered {status}: {detail}", retryable=retryable)
