"""Agents to talk to one at a time: a backend, instructions, and a conversation that it remembers.

No team, no votes: that is a run. A reply comes by the same call of a model that agents of a run make.

Callers write conversations as dictionaries of Chat Completions. They are read once, here; whatever a provider would
refuse later is refused with its place in the list.
"""

import asyncio
import json
import uuid
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Self, cast

import anyio

from massgen_mcp.agents.config import AgentConfig
from massgen_mcp.agents.settings import UnsupportedSettingError
from massgen_mcp.backends.base import (
    AssistantMessage,
    Backend,
    JsonObject,
    Message,
    ModelRequest,
    Part,
    ReasoningPart,
    StopReason,
    TextPart,
    ToolCall,
    ToolResultMessage,
    ToolSpec,
    UsagePart,
    UserMessage,
    prepare,
)
from massgen_mcp.backends.calling import CallHooks, ModelReply, OutOfTimeError, RetryPolicy, call_model
from massgen_mcp.config.models.orchestrator import TimeoutSettings
from massgen_mcp.errors import BackendError, MassgenError

Spoken = TextPart | ReasoningPart

CALL_SECONDS = TimeoutSettings().call_timeout_seconds
NO_INSTRUCTIONS = "You are a helpful assistant."
"""What an agent without instructions is told; some providers insist on a system message."""


@dataclass(frozen=True, slots=True)
class StreamChunk:
    """A piece of a reply. `type` says which fields are set:

    - "content" and "reasoning": `content`, the next piece of text.
    - "tool_calls": `tool_calls`, all of the reply's, as dictionaries of Chat Completions.
    - "complete_message": `complete_message`, the whole reply as it stands in the history now.
    - "done", always the last: `stop` (why the model ended) and `usage` (its tokens, where the provider counts them).

    `source` is the agent's id.
    """

    type: Literal["content", "reasoning", "tool_calls", "complete_message", "done"]
    source: str
    content: str | None = None
    tool_calls: list[dict[str, Any]] | None = None
    complete_message: dict[str, Any] | None = None
    stop: StopReason | None = None
    usage: UsagePart | None = None


class ChatAgent(ABC):
    """Something that can be talked to. One conversation, one turn at a time."""

    def __init__(self, agent_id: str | None = None, session_id: str | None = None) -> None:
        self.agent_id = agent_id or f"agent_{uuid.uuid4().hex[:8]}"
        self.session_id = session_id or f"chat_session_{uuid.uuid4().hex[:8]}"

    @abstractmethod
    def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None = None,
        *,
        reset_chat: bool = False,
        clear_history: bool = False,
    ) -> AsyncGenerator[StreamChunk]:
        """Say something and stream the reply.

        `messages` go on with the conversation; a system message among them replaces the agent's own until the next
        reset. `reset_chat` begins anew as `reset` does; `clear_history` forgets the messages alone. Both hold only
        when the reply is whole: after an error the conversation is as it was, and the same call may be made again.

        Raises `MassgenError("invalid_arguments")` for messages that no model could be sent, and `BackendError`.
        """

    @property
    @abstractmethod
    def conversation_history(self) -> list[dict[str, Any]]:
        """The messages so far, as dictionaries, without the system message. A copy."""

    @abstractmethod
    def reset(self) -> None:
        """Forget the conversation, and a system message that came with it."""

    @abstractmethod
    def get_status(self) -> dict[str, Any]:
        """What the agent is, and how long its conversation has become."""

    async def simple_chat(self, user_message: str) -> str:
        """Say one thing; returns the text of the reply."""
        chunks = self.chat([{"role": "user", "content": user_message}])
        return "".join([chunk.content or "" async for chunk in chunks if chunk.type == "content"])

    async def aclose(self) -> None:  # noqa: B027 - not every agent holds something
        """Give back what is open, such as connections."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class SingleAgent(ChatAgent):
    """An agent that is one model. It owns its backend and closes it in `aclose`."""

    def __init__(
        self,
        backend: Backend,
        agent_id: str | None = None,
        system_message: str | None = None,
        session_id: str | None = None,
        *,
        timeout_seconds: float = CALL_SECONDS,
        retry: RetryPolicy | None = None,
    ) -> None:
        """`timeout_seconds` bounds one reply, from the request to its end, retries included."""
        super().__init__(agent_id, session_id)
        self.backend = backend
        self.system_message = system_message
        self._system: str | None = None
        """A system message that came with the conversation."""
        self._history: tuple[Message, ...] = ()
        self._timeout = timeout_seconds
        self._retry = retry or RetryPolicy()

    @property
    def conversation_history(self) -> list[dict[str, Any]]:
        return [as_dictionary(message) for message in self._history]

    def reset(self) -> None:
        self._history, self._system = (), None

    def get_status(self) -> dict[str, Any]:
        return {
            "agent_type": type(self).__name__,
            "agent_id": self.agent_id,
            "session_id": self.session_id,
            "model": self.backend.model,
            "system_message": self.get_configurable_system_message(),
            "conversation_length": len(self._history),
        }

    def get_configurable_system_message(self) -> str | None:
        """The system message that holds now; None when there is none."""
        return self._system or self.system_message

    async def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None = None,
        *,
        reset_chat: bool = False,
        clear_history: bool = False,
    ) -> AsyncGenerator[StreamChunk]:
        earlier = () if reset_chat or clear_history else self._history
        taken = parse_messages(messages, after=earlier)
        system = taken.system or (None if reset_chat else self._system)
        conversation = (*earlier, *taken.messages)
        request = ModelRequest(system or self.system_message or NO_INSTRUCTIONS, conversation, parse_tools(tools or ()))
        await prepare(self.backend)
        async with aclosing(_Call(self.backend, request, self._retry, self._timeout)) as call:
            while (piece := await call.heard()) is not None:
                kind = "content" if isinstance(piece, TextPart) else "reasoning"
                yield StreamChunk(kind, self.agent_id, content=piece.text)
            whole = await call.reply()
        message = AssistantMessage(whole.text, whole.tool_calls, whole.replay)
        self._history, self._system = (*conversation, message), system
        if whole.tool_calls:
            yield StreamChunk("tool_calls", self.agent_id, tool_calls=list(map(call_dictionary, whole.tool_calls)))
        yield StreamChunk("complete_message", self.agent_id, complete_message=as_dictionary(message))
        yield StreamChunk("done", self.agent_id, stop=whole.stop, usage=whole.usage)

    async def aclose(self) -> None:
        await self.backend.aclose()


class ConfigurableAgent(SingleAgent):
    """A `SingleAgent` made from an `AgentConfig`: its id, its instructions, and the backend its parameters describe."""

    def __init__(
        self,
        config: AgentConfig,
        backend: Backend | None = None,
        session_id: str | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        timeout_seconds: float = CALL_SECONDS,
    ) -> None:
        """`backend` is taken instead of one of the config's own making; `environ` holds the keys (default: the
        process's). Raises as `AgentConfig.create_backend`."""
        if config.enable_nlip:
            raise UnsupportedSettingError(
                "enable_nlip", "messages are written where a run is; leave it off for one agent"
            )
        own = backend or config.create_backend(environ)
        super().__init__(own, config.agent_id, config.get_system_message(), session_id, timeout_seconds=timeout_seconds)
        self.config = config


class _Call(CallHooks):
    """One call on its way: its pieces for the caller, and then its reply.

    An asyncio task and not a task group: whoever closes a generator may be another task than the one that opened it.
    """

    def __init__(self, backend: Backend, request: ModelRequest, policy: RetryPolicy, seconds: float) -> None:
        self._spoke = False
        self._pieces: asyncio.Queue[Spoken | None] = asyncio.Queue()
        call = call_model(backend, request, self, policy=policy, deadline_seconds=seconds)
        self._task = asyncio.create_task(call)
        self._task.add_done_callback(lambda _: self._pieces.put_nowait(None))

    def on_part(self, part: Part) -> None:
        if isinstance(part, TextPart | ReasoningPart):
            self._spoke = True
            self._pieces.put_nowait(part)

    def on_retry(self, attempt: int, error: BackendError, wait_seconds: float) -> None:  # noqa: ARG002 - the others' part
        """A piece of text that somebody may have read cannot be taken back."""
        if self._spoke:
            raise error

    async def heard(self) -> Spoken | None:
        """The next piece; None when no more will come."""
        return await self._pieces.get()

    async def reply(self) -> ModelReply:
        """Raises `BackendError`."""
        try:
            return await self._task
        except OutOfTimeError as error:
            raise BackendError("timeout", f"timeout_seconds: {error.lack}; give the agent more") from None

    async def aclose(self) -> None:
        """End it, if it still goes on."""
        self._task.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.gather(self._task, return_exceptions=True)


# -- conversations as dictionaries ----------------------------------------------------------------------------------

_NO_PARAMETERS: JsonObject = {"type": "object", "properties": {}}


@dataclass(frozen=True, slots=True)
class Parsed:
    """`system` is None when no message has that role; several are joined by blank lines."""

    system: str | None
    messages: tuple[Message, ...]


def parse_messages(given: Sequence[Mapping[str, Any]], *, after: Sequence[Message] = ()) -> Parsed:
    """Read messages that follow `after`.

    Raises `MassgenError("invalid_arguments")` for an unknown role, content that is not text, a tool's result that
    belongs to no call, and calls that have no result when somebody speaks again.
    """
    system: list[str] = []
    found: list[Message] = []
    open_calls = _open_calls(after)
    for place, message in enumerate(given):
        where = f"messages[{place}]"
        role = message.get("role")
        if role == "system":
            system.append(_content_text(message, where))
            continue
        if role == "tool":
            found.append(_tool_result(message, open_calls, where))
            continue
        if open_calls:
            waiting = ", ".join(open_calls)
            raise _wrong(where, f"tool calls without a result: {waiting}; add_tool_result gives them one")
        if role == "user":
            found.append(UserMessage(_content_text(message, where)))
        elif role == "assistant":
            reply = _assistant(message, where)
            open_calls = {call.id: call.name for call in reply.tool_calls}
            found.append(reply)
        else:
            raise _wrong(where, "role is one of: system, user, assistant, tool")
    if open_calls:
        raise _wrong(f"messages[{len(given)}]", f"missing: the results of tool calls {', '.join(open_calls)}")
    if not found:
        raise _wrong("messages", "there is nothing to reply to")
    return Parsed("\n\n".join(system) if system else None, tuple(found))


def parse_tools(given: Sequence[Mapping[str, Any]]) -> tuple[ToolSpec, ...]:
    """Read tools of the form `{"type": "function", "function": {...}}`; the inner form alone will do too."""
    return tuple(_tool_spec(tool, f"tools[{place}]") for place, tool in enumerate(given))


def as_dictionary(message: Message) -> dict[str, Any]:
    """The message as a caller would write it."""
    match message:
        case UserMessage():
            return {"role": "user", "content": message.text}
        case ToolResultMessage():
            return {"role": "tool", "tool_call_id": message.call_id, "content": message.text}
        case AssistantMessage():
            calls = [call_dictionary(call) for call in message.tool_calls]
            return {"role": "assistant", "content": message.text, **({"tool_calls": calls} if calls else {})}


def call_dictionary(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _open_calls(messages: Sequence[Message]) -> dict[str, str]:
    """Calls that nobody has answered yet: id → name of the tool."""
    opened: dict[str, str] = {}
    for message in messages:
        if isinstance(message, AssistantMessage):
            opened = {call.id: call.name for call in message.tool_calls}
        elif isinstance(message, ToolResultMessage):
            opened.pop(message.call_id, None)
    return opened


def _content_text(message: Mapping[str, Any], where: str) -> str:
    """The content: text, or a list of parts that are all text."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [_text_part(part, where) for part in cast("list[object]", content)]
        return "".join(parts)
    raise _wrong(where, "content must be text")


def _text_part(part: object, where: str) -> str:
    entry = _mapping(part)
    text = entry.get("text")
    if entry.get("type") not in ("text", "input_text", "output_text") or not isinstance(text, str):
        raise _wrong(where, "only text can be sent; images, sound and files cannot")
    return text


def _tool_result(message: Mapping[str, Any], open_calls: dict[str, str], where: str) -> ToolResultMessage:
    call_id = message.get("tool_call_id")
    if not isinstance(call_id, str) or call_id not in open_calls:
        waiting = ", ".join(open_calls) or "none"
        raise _wrong(where, f"tool_call_id {str(call_id)[:80]!a} belongs to no open call; open: {waiting}")
    return ToolResultMessage(call_id, open_calls.pop(call_id), _content_text(message, where))


def _assistant(message: Mapping[str, Any], where: str) -> AssistantMessage:
    calls: object = message.get("tool_calls") or []
    if not isinstance(calls, list | tuple):
        raise _wrong(where, "tool_calls must be a list")
    parsed = tuple(_tool_call(call, where) for call in cast("Sequence[object]", calls))
    if message.get("content") is None and parsed:
        return AssistantMessage("", parsed)
    return AssistantMessage(_content_text(message, where), parsed)


def _tool_call(call: object, where: str) -> ToolCall:
    outer = _mapping(call)
    function = _mapping(outer.get("function"))
    call_id, name, arguments = outer.get("id"), function.get("name"), function.get("arguments", "{}")
    if isinstance(arguments, Mapping):
        arguments = json.dumps(arguments, ensure_ascii=False)
    if not isinstance(call_id, str) or not isinstance(name, str) or not isinstance(arguments, str):
        raise _wrong(where, "a tool call is {'id', 'type': 'function', 'function': {'name', 'arguments'}}")
    return ToolCall(call_id, name, arguments)


def _tool_spec(tool: Mapping[str, Any], where: str) -> ToolSpec:
    function = _mapping(tool.get("function", tool))
    name, description = function.get("name"), function.get("description", "")
    parameters = function.get("parameters", _NO_PARAMETERS)
    if not isinstance(name, str) or not name or not isinstance(description, str) or not isinstance(parameters, dict):
        raise _wrong(where, "a tool is {'type': 'function', 'function': {'name', 'description', 'parameters'}}")
    return ToolSpec(name, description, cast("JsonObject", parameters))


def _mapping(value: object) -> Mapping[str, object]:
    """`value` if it is a mapping, else an empty one, in which everything is missing."""
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {}


def _wrong(where: str, message: str) -> MassgenError:
    return MassgenError("invalid_arguments", f"{where}: {message}")
