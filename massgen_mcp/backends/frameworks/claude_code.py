"""Claude Code as a model: one step of an agent is one run of its CLI, with the team's tools and none of its own.

The tools of the request are an MCP server behind the CLI's own channel; a call of one of them ends the run of the CLI
and goes to the round, as every other model's does. The CLI sees a home of its own and none of the user's settings. See
docs/decisions.md.
"""

import json
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any

import anyio.abc
import anyio.to_thread

from massgen_mcp.backends.base import JsonObject, ModelRequest, Part, ToolSpec
from massgen_mcp.backends.frameworks.agent_cli import PASSED_ON, PREFIX, of_server, render
from massgen_mcp.backends.frameworks.claude_code_step import ClaudeCodeStep, Cli, failed
from massgen_mcp.backends.wire_values import clean
from massgen_mcp.config.access.acp_presets import TEAM
from massgen_mcp.config.access.agent_clis import BASE_URL, CONFIG_DIRECTORY
from massgen_mcp.errors import BackendError

MAX_MESSAGE_BYTES = 16 * 1024 * 1024
STDERR_TAIL = 2000


class CliBroken(Exception):
    """The CLI cannot be talked to; the message says why."""


class CliProcess:
    """`command` in `cwd` with `environ` and nothing else; what it says on standard error goes to the file `log`."""

    def __init__(self, command: Sequence[str], *, cwd: Path, environ: Mapping[str, str], log: Path) -> None:
        self._command = list(command)
        self._cwd = cwd
        self._environ = dict(environ)
        self._log = log
        self._process: anyio.abc.Process | None = None

    async def start(self) -> None:
        """Raises `CliBroken`, as everything here but `close`."""
        try:
            with self._log.open("ab") as log, anyio.CancelScope(shield=True):  # half started it could not be ended
                self._process = await anyio.open_process(
                    self._command, stderr=log, cwd=self._cwd, env=self._environ, start_new_session=True
                )
        except OSError as error:
            raise CliBroken(f"cannot start {self._command[0]}: {error.strerror or error}") from error

    async def write(self, message: Mapping[str, Any]) -> None:
        if self._process is None or self._process.stdin is None:
            raise CliBroken("the CLI is not running")
        try:
            await self._process.stdin.send(f"{json.dumps(message)}\n".encode())
        except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            raise CliBroken(f"the CLI does not listen any more: {self._last_words()}") from error

    async def messages(self) -> AsyncGenerator[dict[str, Any]]:
        """What it says on standard output, one JSON object per line; other lines are passed over."""
        process = self._process
        if process is None or process.stdout is None:
            raise CliBroken("the CLI is not running")
        pending = b""
        with suppress(anyio.ClosedResourceError):
            async for chunk in process.stdout:
                *lines, pending = (pending + chunk).split(b"\n")
                if len(pending) > MAX_MESSAGE_BYTES:
                    raise CliBroken(f"a message is larger than {MAX_MESSAGE_BYTES} bytes")
                for line in lines:
                    if line.startswith(b"{"):
                        yield _message(line)
        if (code := await process.wait()) != 0:
            raise CliBroken(f"the CLI failed with exit code {code}: {self._last_words()}")

    async def close(self) -> None:
        """Kill the CLI with everything it started. What it may still have to write nobody needs."""
        process, self._process = self._process, None
        if process is None:
            return
        with anyio.CancelScope(shield=True):
            # Its group is still there while it is not waited for, even if it has ended itself.
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            with anyio.move_on_after(5):
                await process.aclose()

    def _last_words(self) -> str:
        with suppress(OSError):
            return self._log.read_bytes()[-STDERR_TAIL:].decode(errors="replace").strip()
        return ""


def _message(line: bytes) -> dict[str, Any]:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise CliBroken(f"a message that is not JSON: {error}") from error


_TOOLS_NOTE = (
    f"\n\nThe name of every tool begins with {PREFIX} here: its name elsewhere in these instructions is the part after "
    "that. Calling one ends your turn; its result comes with the next message. Your files are those that these tools "
    "reach; the working directory that you are told of is none of them."
)


class ClaudeCodeBackend:
    def __init__(self, cli: Cli) -> None:
        self._cli = cli
        self._home: Path | None = None

    @property
    def model(self) -> str:
        return self._cli.model

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Part]:
        home = await anyio.to_thread.run_sync(self._make_home)
        (home / "system.md").write_text(
            clean(request.system) + (_TOOLS_NOTE if request.tools else ""), encoding="utf-8"
        )
        step = ClaudeCodeStep(self._cli)
        process = CliProcess(
            self._command(request, home), cwd=home, environ=self._environ(home), log=home / "stderr.log"
        )
        try:
            await process.start()
            messages_of_turn = conversation(process, render(request.messages), request.tools, step.before_tool)
            async with aclosing(messages_of_turn) as messages:
                async for message in messages:
                    for part in step.read(message):
                        yield part
                    if step.ended:
                        return
        except CliBroken as error:
            raise failed(self._cli, "provider_error", f"claude_code broke off: {error}", retryable=True) from None
        finally:
            await process.close()
        raise BackendError("provider_error", "claude_code ended without a result", retryable=True)

    async def aclose(self) -> None:
        home, self._home = self._home, None
        if home is not None:
            await anyio.to_thread.run_sync(lambda: shutil.rmtree(home, ignore_errors=True))

    def _make_home(self) -> Path:
        if self._home is None:
            if self._cli.private is None:
                self._home = Path(tempfile.mkdtemp(prefix="massgen-claude-code-"))
            else:
                self._cli.private.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._home = self._cli.private
        return self._home

    def _command(self, request: ModelRequest, home: Path) -> list[str]:
        command = [self._cli.path, "--output-format", "stream-json", "--input-format", "stream-json", "--verbose"]
        command += ["--include-partial-messages", "--system-prompt-file", str(home / "system.md")]
        command += ["--tools", "", "--permission-mode", "dontAsk"]
        command += ["--setting-sources=", "--strict-mcp-config", "--disable-slash-commands", "--no-session-persistence"]
        command += ["--max-turns", str(self._cli.max_turns)]
        if request.tools:
            command += ["--mcp-config", json.dumps({"mcpServers": {TEAM: {"type": "sdk", "name": TEAM}}})]
        if self._cli.model != "default":
            command += [f"--model={self._cli.model}"]
        if self._cli.effort is not None:
            command += ["--effort", self._cli.effort]
        if self._cli.max_thinking_tokens is not None:
            command += ["--max-thinking-tokens", str(self._cli.max_thinking_tokens)]
        return command

    def _environ(self, home: Path) -> dict[str, str]:
        return {
            **{name: value for name in (*PASSED_ON, BASE_URL) if (value := self._cli.environ.get(name))},
            self._cli.login.variable: self._cli.login.value,
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


# ---------------------------------------------------------------------------------------------------------------------
# How the Claude Code CLI is talked to: JSON lines on its standard input and output, as its SDK does it.
# Beside the messages of the conversation there are requests in both directions. We ask it once, to begin; it asks us
# before it runs a tool, and passes on what its MCP client says to our server, which only lists its tools.


BeforeTool = Callable[[Mapping[str, Any], str | None], JsonObject]
"""What the CLI is to do about a call of a tool, by what it says of it and the call's id."""


async def conversation(
    process: CliProcess, prompt: str, tools: Sequence[ToolSpec], before_tool: BeforeTool
) -> AsyncGenerator[dict[str, Any]]:
    """Ask what `prompt` says; yields the messages of the conversation. Raises `CliBroken`."""
    hooks = {"PreToolUse": [{"matcher": None, "hookCallbackIds": ["before_tool"]}]}
    begin = {"subtype": "initialize", "hooks": hooks}
    await process.write({"type": "control_request", "request_id": "begin", "request": begin})
    async with aclosing(process.messages()) as messages:
        async for message in messages:
            match message:
                case {"type": "control_response", "response": {"subtype": "error"} as refused}:
                    raise CliBroken(f"the CLI does not begin: {refused.get('error')}")
                case {"type": "control_response"}:
                    await process.write(_prompt(prompt))
                case {"type": "control_request", "request_id": str(request_id), "request": {} as request}:
                    await process.write(_response(request_id, _answer(request, tools, before_tool)))
                case {"type": "control_cancel_request"}:
                    pass
                case _:
                    yield message


def _prompt(text: str) -> dict[str, Any]:
    """The CLI is to expand nothing in it: no `@path`, no `/command`."""
    message = {"role": "user", "content": text}
    return {"type": "user", "message": message, "parent_tool_use_id": None, "client_composed": True}


def _response(request_id: str, answer: JsonObject | None) -> dict[str, Any]:
    response: dict[str, Any] = {"subtype": "error", "request_id": request_id, "error": "not supported"}
    if answer is not None:
        response = {"subtype": "success", "request_id": request_id, "response": answer}
    return {"type": "control_response", "response": response}


def _answer(request: Mapping[str, Any], tools: Sequence[ToolSpec], before_tool: BeforeTool) -> JsonObject | None:
    """None: it asks what we do not know."""
    match request:
        case {"subtype": "hook_callback", "input": {} as asked}:
            return before_tool(asked, request.get("tool_use_id"))
        case {"subtype": "mcp_message", "message": {} as message}:
            return {"mcp_response": of_server(message, tools)}
        case _:
            return None
