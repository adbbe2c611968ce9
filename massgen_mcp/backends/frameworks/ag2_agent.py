"""An agent of the AG2 framework: its own loop asks its model, and uses the tools of its desk.

Code in a reply that calls nothing becomes a call of `run_command`, where the agent is to run code: so it runs in the
sandbox, journaled, like any other command. Each block is written to a file and run there, one after the other, until
one fails, as AG2's executor of command lines does it. AG2's own executors are never used.

AG2 1.x is asynchronous to the bottom: a turn that is cancelled or out of time ends at once, with its connection. Only
AG2's import, a second or two, happens on a thread. Its cache and telemetry are middleware that nobody adds here; its
retries are the SDK's and off.
"""

import asyncio
import hashlib
import json
import re
import shlex
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from massgen_mcp.backends.base import (
    RUN_COMMAND,
    AssistantMessage,
    Message,
    ModelRequest,
    StopPart,
    ToolCall,
    ToolResultMessage,
    UsagePart,
    UserMessage,
)
from massgen_mcp.backends.chatcompletion import FINISH, OPENAI
from massgen_mcp.backends.ends import CHAT
from massgen_mcp.backends.failures import stop_part, translated
from massgen_mcp.backends.http import Endpoint, LazyClient
from massgen_mcp.backends.own_loop import Desk
from massgen_mcp.backends.wire_values import CallIds, arguments_text, clean, complete_usage, count, written_tokens
from massgen_mcp.config.models.ag2 import CodeExecutor

if TYPE_CHECKING:
    from ag2.events import ModelResponse

    from massgen_mcp.backends.frameworks.ag2_turn import Turns


Ag2Api = Literal["chat", "messages"]
"""Chat Completions, or Anthropic's Messages API."""

_FENCE = re.compile(r"[ \t]*```[ \t]*(\w*)[ \t]*")
_FILE_NAME = re.compile(r"#\s*filename:\s*(?P<name>[\w][\w.-]*)\s*$")
"""AG2's way to say in the first line where a block is to be kept."""
_PROGRAMS = {
    **dict.fromkeys(("python", "python3", "py"), ("python3", "py")),
    **dict.fromkeys(("sh", "shell"), ("sh", "sh")),
    "bash": ("bash", "sh"),
}
"""The program that runs a language, and how its files end. Blocks in others, or in none, are not run."""


@dataclass(frozen=True, slots=True)
class CodeBlock:
    program: str
    file: str
    code: str


def code_blocks(text: str) -> list[CodeBlock]:
    """The blocks of `text` that can be run, in their order."""
    return list(_found(text))


def as_command(blocks: list[CodeBlock], directory: str) -> str:
    """A shell command that runs them in this directory of the workspace, and exits as the last one that ran."""
    place = shlex.quote(directory)
    steps = [f"mkdir -p -- {place} && cd -- {place} || exit"]
    for block in blocks:
        end = f"END_OF_{_digest(block.code)}"
        steps.append(f"cat > {block.file} <<'{end}' || exit\n{block.code}\n{end}\n{block.program} {block.file} || exit")
    return "\n".join(steps)


def _found(text: str) -> Iterator[CodeBlock]:
    language: str | None = None
    lines: list[str] = []
    for line in text.replace("\r\n", "\n").split("\n"):
        fence = _FENCE.fullmatch(line)
        if language is None:
            language, lines = (fence[1] if fence else None), []
        elif fence is None or fence[1]:
            lines.append(line)
        else:
            if runs := _PROGRAMS.get(language.lower()):
                yield _block("\n".join(lines).rstrip(), *runs)
            language = None


def _block(code: str, program: str, suffix: str) -> CodeBlock:
    named = _FILE_NAME.match(code.partition("\n")[0])
    return CodeBlock(program, named["name"] if named else f"code_{_digest(code)}.{suffix}", code)


def _digest(code: str) -> str:
    return hashlib.sha256(code.encode("utf-8", "replace")).hexdigest()[:16]


MAX_SECONDS = 86_400.0
"""The longest time that a command can be given."""
_CODE = "code_"
"""The ids of calls that run the code of a reply begin so."""
_CODE_RUNS = (
    "When a reply of yours calls no tool, its ```python, ```sh and ```bash blocks are run in a sandbox, in {place}. "
    "What they print comes with the next message. Call a tool in the same reply to show code without running it."
)
_CODE_DOES_NOT_RUN = "Code in your replies is not run: there is no sandbox here."


class Ag2Agent:
    """`executor`: how code in its replies is run; None: it is not. `api`: how its model is asked."""

    own_words = False

    def __init__(
        self,
        endpoint: Endpoint,
        name: str,
        system_message: str | None,
        executor: CodeExecutor | None = None,
        api: Ag2Api = "chat",
    ) -> None:
        self.model = endpoint.model
        self._endpoint = endpoint = replace(endpoint, base_url=endpoint.base_url or OPENAI)
        self._executor = executor
        self._turns = LazyClient(
            lambda: _load(endpoint, name, system_message, api), "massgen_mcp.backends.frameworks.ag2_turn"
        )

    async def prepare(self) -> None:
        with translated(self._endpoint):
            await self._turns.get()

    async def work(self, task: ModelRequest, desk: Desk) -> None:
        del task  # the desk has it, too
        while True:
            _, end = await self.turn(desk)
            await desk.news(end)

    async def turn(self, desk: Desk) -> tuple[str, StopPart]:
        """Work until there is a reply that calls nothing: its text, and how it ended."""
        with translated(self._endpoint):
            turns = await self._turns.get()
            while True:
                steps = Steps(desk, self._stop)
                response = await turns.take(self._with_instructions(desk.task), desk.say, steps)
                await steps.ended()
                if response is None or response.tool_calls.calls:
                    continue
                text, end = clean(response.content or ""), self._stop(response)
                if end.reason != "end" or (code := self._code_call(text, desk.task)) is None:
                    return text, end
                await desk.use(code)

    async def aclose(self) -> None:
        await self._turns.aclose()

    def _stop(self, response: "ModelResponse") -> StopPart:
        calls = [call.arguments for call in response.tool_calls.calls]
        return stop_part(CHAT, FINISH, response.finish_reason, calls, self._endpoint)

    def _with_instructions(self, request: ModelRequest) -> ModelRequest:
        """The request as the agent sees it: what became of its code comes as a message, as in AG2."""
        if self._executor is None or not request.ends_with_call:
            return request
        note = _CODE_DOES_NOT_RUN
        if _offers_commands(request):
            inner = "" if self._executor.work_dir == "." else f"{self._executor.work_dir} of "
            note = _CODE_RUNS.format(place=f"{inner}your workspace")
        messages = tuple(map(_without_code_calls, request.messages))
        return replace(request, system=f"{request.system}\n\n{note}", messages=messages)

    def _code_call(self, text: str, request: ModelRequest) -> ToolCall | None:
        """The call that runs the code of a reply; None where there is none to run. Where the text is the reply it is
        what it says; and code that was run just before is what the agent has to say.
        """
        if self._executor is None or not request.ends_with_call or not _offers_commands(request):
            return None
        if not (blocks := code_blocks(text)):
            return None
        replies = [message for message in request.messages if isinstance(message, AssistantMessage)]
        if replies and _ran_code(replies[-1]) and code_blocks(replies[-1].text) == blocks:
            return None
        seconds = min(self._executor.timeout * len(blocks), MAX_SECONDS)
        command = as_command(blocks, self._executor.work_dir)
        arguments = json.dumps({"command": command, "timeout_seconds": seconds})
        return ToolCall(f"{_CODE}{uuid.uuid4().hex}", RUN_COMMAND, arguments)


def _offers_commands(request: ModelRequest) -> bool:
    """Also where a server takes no tools, and they are described in the text instead."""
    return any(tool.name == RUN_COMMAND for tool in request.tools) or (
        not request.tools and RUN_COMMAND in request.system
    )


def _ran_code(message: AssistantMessage) -> bool:
    return any(call.name == RUN_COMMAND for call in message.tool_calls) or RUN_COMMAND in message.text


def _without_code_calls(message: Message) -> Message:
    match message:
        case AssistantMessage():
            calls = tuple(call for call in message.tool_calls if not call.id.startswith(_CODE))
            return replace(message, tool_calls=calls)
        case ToolResultMessage() if message.call_id.startswith(_CODE):
            return UserMessage(f"What came of your code:\n{message.text}")
        case _:
            return message


class Steps:
    """One turn of AG2's loop at a desk: what the loop asks and tells between its steps."""

    def __init__(self, desk: Desk, stop: "Callable[[ModelResponse], StopPart]") -> None:
        self._desk, self._stop = desk, stop
        self._task = replace(desk.task, messages=())
        self._ids = CallIds(desk.task.messages)
        self._using: asyncio.Task[tuple[ToolResultMessage, ...]] | None = None

    def stands(self) -> bool:
        """Whether the task is the one that the turn began with."""
        return replace(self._desk.task, messages=()) == self._task

    def replied(self, response: "ModelResponse") -> bool:
        """Hears each reply of the model. Whether AG2 can use the tools that it calls."""
        self._stop(response)
        if response.usage:
            self._desk.say(_usage(response))
        if not (made := response.tool_calls.calls):
            return True
        for call in made:
            call.id = self._ids.take(call.id)
        calls = [ToolCall(call.id, clean(call.name), clean(call.arguments)) for call in made]
        for call in made:
            call.arguments = arguments_text(call.arguments)
        self._using = asyncio.create_task(self._desk.use(*calls))
        return {call.name for call in made}.issubset(tool.name for tool in self._desk.task.tools)

    async def result(self, call_id: str) -> str:
        results = await self.ended()
        return next(one.text for one in results if one.call_id == call_id)

    async def ended(self) -> tuple[ToolResultMessage, ...]:
        return () if self._using is None else await self._using


def _usage(response: "ModelResponse") -> UsagePart:
    usage = response.usage
    read, reasoning = count(usage.prompt_tokens), count(usage.thinking_tokens)
    cached, cache_written = count(usage.cache_read_input_tokens), count(usage.cache_creation_input_tokens)
    total = count(usage.total_tokens)
    if response.provider == "anthropic":  # which counts apart what a cache was asked for
        total, read = None, (read or 0) + (cached or 0) + (cache_written or 0)
    counted = UsagePart(
        input_tokens=read,
        output_tokens=written_tokens(read, count(usage.completion_tokens), total, reasoning),
        cached_input_tokens=cached or 0,
        cache_write_tokens=cache_written or 0,
        reasoning_tokens=reasoning or 0,
    )
    return complete_usage(response.model or "", counted)


def _load(endpoint: Endpoint, name: str, system_message: str | None, api: Ag2Api) -> "Turns":
    """AG2's side of the agent. What imports AG2 is imported only when it is needed."""
    from massgen_mcp.backends.frameworks.ag2_turn import Turns

    return Turns(endpoint, name, system_message, api)
