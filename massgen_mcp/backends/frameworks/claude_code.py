"""Claude Code as a model: one step of an agent is one run of its CLI, which may use its own file tools on the way.

The tools of the request are an MCP server in this process; a call of one of them ends the run of the CLI and goes to
the round, as every other model's does. The CLI sees a home of its own and none of the user's settings; what its own
tools may do is decided in `claude_code_rules`. See docs/decisions/0006.
"""

import json
import shutil
import tempfile
from collections.abc import AsyncGenerator
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import anyio.to_thread

from massgen_mcp.backends.base import (
    AssistantMessage,
    Message,
    ModelRequest,
    Part,
    ToolResultMessage,
    UserMessage,
)
from massgen_mcp.backends.frameworks.claude_code_step import PREFIX, SERVER, Cli, Step, failed
from massgen_mcp.backends.wiretext import clean
from massgen_mcp.config.agent_clis import BASE_URL, CONFIG_DIRECTORY
from massgen_mcp.config.claude_code_agents import READING, WRITING
from massgen_mcp.errors import BackendError
from massgen_mcp.threads import imported

_SDK = ("claude_agent_sdk", "massgen_mcp.backends.frameworks.claude_code_process")

_PASSED_ON = (
    *("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
)
"""What the CLI needs of the environment; everything else there is none of its business."""

_OWN_TOOLS_NOTE = (
    "\n\nYour working directory {workspace} is your workspace. Use {tools} for the files in it. Every tool whose name "
    f"begins with {PREFIX} belongs to the team: its name elsewhere in these instructions is the part after that. "
    "Calling one ends your turn; its result comes with the next message."
)
_TEAM_TOOLS_NOTE = (
    f"\n\nEvery tool whose name begins with {PREFIX} belongs to the team: its name elsewhere in these instructions is "
    "the part after that. Calling one ends your turn; its result comes with the next message."
)


class ClaudeCodeBackend:
    def __init__(self, cli: Cli) -> None:
        self._cli = cli
        self._home: Path | None = None

    @property
    def model(self) -> str:
        return self._cli.model

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Part]:
        await imported(*_SDK)
        sdk, process = _load()
        home = await anyio.to_thread.run_sync(self._make_home)
        # Its own tools only where the step ends with a call: elsewhere the text is the reply, not a report of the work.
        own_tools = self._own_tools() if request.ends_with_call else ()
        (home / "system.md").write_text(self._system(request, own_tools), encoding="utf-8")
        step = Step(self._cli, own_tools)
        transport = process.CliProcess(
            self._command(request, own_tools, home),
            cwd=self._cli.workspace or home,
            environ=self._environ(home),
            log=home / "stderr.log",
        )
        options = sdk.ClaudeAgentOptions(
            hooks={"PreToolUse": [sdk.HookMatcher(hooks=[step.before_tool])]},
            mcp_servers={SERVER: _server(sdk, request)} if request.tools else {},
            verbatim_prompts=True,
        )
        client = sdk.ClaudeSDKClient(options, transport=transport)
        try:
            await client.connect()
            await client.query(render(request.messages))
            async for message in client.receive_response():
                for part in step.read(message):
                    yield part
                if step.ended:
                    return
        except BackendError:
            raise
        except Exception as error:  # noqa: BLE001 - the seam: nothing of the SDK passes it
            raise failed(self._cli, "provider_error", f"claude_code broke off: {error}", retryable=True) from None
        finally:
            await client.disconnect()
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

    def _own_tools(self) -> tuple[str, ...]:
        if self._cli.workspace is None:
            return ()
        return (*READING, *WRITING) if self._cli.may_write else READING

    def _system(self, request: ModelRequest, own_tools: tuple[str, ...]) -> str:
        note = ""
        if own_tools:
            note = _OWN_TOOLS_NOTE.format(workspace=self._cli.workspace, tools=", ".join(own_tools))
        elif request.tools:
            note = _TEAM_TOOLS_NOTE
        return clean(request.system) + note

    def _command(self, request: ModelRequest, own_tools: tuple[str, ...], home: Path) -> list[str]:
        command = [self._cli.path, "--output-format", "stream-json", "--input-format", "stream-json", "--verbose"]
        command += ["--include-partial-messages", "--system-prompt-file", str(home / "system.md")]
        command += ["--tools", ",".join(own_tools), "--permission-mode", "dontAsk"]
        command += ["--setting-sources=", "--strict-mcp-config", "--disable-slash-commands", "--no-session-persistence"]
        command += ["--max-turns", str(self._cli.max_turns)]
        if request.tools:
            command += ["--mcp-config", json.dumps({"mcpServers": {SERVER: {"type": "sdk", "name": SERVER}}})]
        if self._cli.model != "default":
            command += [f"--model={self._cli.model}"]
        if self._cli.effort is not None:
            command += ["--effort", self._cli.effort]
        return command

    def _environ(self, home: Path) -> dict[str, str]:
        return {
            **{name: value for name in (*_PASSED_ON, BASE_URL) if (value := self._cli.environ.get(name))},
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


def render(messages: tuple[Message, ...]) -> str:
    """A conversation as one prompt: every run of the CLI begins anew."""
    told: list[str] = []
    for message in messages:
        match message:
            case UserMessage():
                told.append(message.text)
            case AssistantMessage():
                used = [str(name) for item in message.replay for name in cast("list[str]", item.get("own_tools", []))]
                did = [f"You used {name}." for name in used]
                did += [f"You called {call.name} with {call.arguments}" for call in message.tool_calls]
                said = [f"You said: {message.text}"] if message.text.strip() else []
                told.append("\n".join([*said, *did]))
            case ToolResultMessage():
                told.append(f"Result of {message.name}{' (an error)' if message.is_error else ''}:\n{message.text}")
    return clean("\n\n".join(part for part in told if part))


def _load() -> tuple[ModuleType, ModuleType]:
    """The SDK and our process, which are imported by now."""
    import claude_agent_sdk

    from massgen_mcp.backends.frameworks import claude_code_process

    return claude_agent_sdk, claude_code_process


def _server(sdk: ModuleType, request: ModelRequest) -> object:
    async def never(arguments: object) -> dict[str, Any]:
        """Calls are taken over before they come here."""
        del arguments
        return {"content": [{"type": "text", "text": "handed over to the team"}], "is_error": True}

    tools = [sdk.tool(tool.name, tool.description, tool.parameters)(never) for tool in request.tools]
    return sdk.create_sdk_mcp_server(SERVER, tools=tools)
