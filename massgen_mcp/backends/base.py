"""The seam between a run and a model: one request in, a stream of typed parts out.

A backend translates; it holds no conversation, knows no coordination rules, and never retries (see `calling`).
"""

import json
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from massgen_mcp.errors import RefusedPart

JsonValue: TypeAlias = "str | int | float | bool | list[JsonValue] | dict[str, JsonValue] | None"
JsonObject: TypeAlias = dict[str, JsonValue]


VOTE = "vote"
WORKFLOW_TOOLS = ("new_answer", VOTE, "submit_tests", "submit_synthesis", "submit_outputs")
"""The tools whose calls are actions of the coordination."""
NEXT_SPEAKER = "next_speaker"
"""The tool that a group of agents behind one backend calls between its turns."""
RUN_COMMAND = "run_command"
"""The tool that runs a command in the sandbox. A backend calls it for code that its agent has written."""


@dataclass(frozen=True)
class ToolSpec:
    """A tool as a model is told of it. `parameters` is a JSON Schema object.

    `shown` names the argument, a text, that people may read while a model writes it (`DraftPart`); "" for none.
    """

    name: str
    description: str
    parameters: JsonObject
    shown: str = ""
    listed: bool = True
    """Whether models are told of it. Those that call it all the same are served."""

    @cached_property
    def size(self) -> int:
        """Bytes of its name, description and schema. Cached, since every model call counts the tools that it sends."""
        return len(f"{self.name}{self.description}{json.dumps(self.parameters)}".encode("utf-8", "replace"))


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's wish to call a tool. `arguments` is the JSON text exactly as the model wrote it, possibly broken."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class UserMessage:
    text: str


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    """An earlier reply of the model.

    `replay` holds items a provider wants to see again verbatim (signed thinking, encrypted reasoning); only the
    backend that produced them reads them.
    """

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    replay: tuple[JsonObject, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolResultMessage:
    call_id: str
    name: str
    text: str
    is_error: bool = False


Message = UserMessage | AssistantMessage | ToolResultMessage


@dataclass(frozen=True, slots=True)
class TextVariant:
    """The instructions and tools of a request in which calls are written as text."""

    system: str
    tools: tuple[ToolSpec, ...]
    messages: "tuple[Message, ...]" = ()
    """Shown in place of the conversation; empty: the conversation is."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """Everything one model call needs. `must_call_tool` asks for a tool call; providers may ignore it. With
    `ends_with_call` the work is done when a tool is called, not when something is said, though no call is forced.

    `max_output_tokens` goes before the limit of the agent's config: it is what the budget leaves for this call.
    """

    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    must_call_tool: bool = False
    max_output_tokens: int | None = None
    ends_with_call: bool = False
    reply_schema: JsonObject | None = None
    """JSON Schema that the text of the reply must follow: how a call is forced where no tools are taken."""
    standing_tools: tuple[ToolSpec, ...] = ()
    """All tools that the run may offer this agent beside or in place of some of `tools`, in an order that never
    changes. A server with a prompt cache is sent these: another list of tools would void it.
    """
    shared_ends: tuple[int, ...] = ()
    """Places of messages that end what other requests begin with, too: the earlier turns of a session, and what every
    agent and round of the run is told first.
    """
    cache_scope: str = ""
    """Names the run, so that its requests find each other's cache."""
    long_waits: bool = False
    """Whether the agent may ask the next time after longer than a cache usually lives."""
    notice: str = ""
    """The last message, where it is a notice of ours: the reply's event keeps it."""
    opening: str = ""
    """The nonce around the question, where it is a new one: the reply's event keeps it."""
    in_text: "TextVariant | None" = None
    """What is asked instead where calls are written as text. None: the same."""
    calls_in_text: bool = False
    """Have calls written as text, also by a model that takes tools: it has failed to call them."""
    left_out: frozenset[RefusedPart] = frozenset()
    """Parts that the server refused before, so that they are not sent."""

    @property
    def all_tools(self) -> tuple[ToolSpec, ...]:
        """The tools to list where a cache is to be kept."""
        return self.standing_tools or self.tools


@dataclass(frozen=True, slots=True)
class TextPart:
    text: str


@dataclass(frozen=True, slots=True)
class ReasoningPart:
    text: str


@dataclass(frozen=True, slots=True)
class DraftPart:
    """A piece of the text that the model is writing into a tool's `shown` argument. The finished call has all of it
    again, so this is for display only. Not every backend tells it.
    """

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallPart:
    """A finished tool call; backends put argument fragments together before they yield."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class UsagePart:
    """Tokens of this call as the provider counted them; None: it told no number of them.

    Cached and cache-written tokens are part of `input_tokens`, reasoning tokens of `output_tokens`, whatever the
    provider's own way of counting is. `cost_usd` is what the provider says that it charges, where it does.
    """

    input_tokens: int | None = None
    cached_input_tokens: int = 0
    output_tokens: int | None = None
    reasoning_tokens: int = 0
    model: str = ""
    cache_write_tokens: int = 0
    cache_write_long_tokens: int = 0
    """Those of the written ones that are kept for an hour."""
    web_searches: int = 0
    cost_usd: float | None = None
    at_least: bool = False
    """An agent with a loop of its own told of some of its model calls only."""


@dataclass(frozen=True, slots=True)
class Citation:
    """A page that the provider's own search found, and that the reply rests on. `title` may be empty."""

    url: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class CitationsPart:
    """Where the reply's claims come from, as the provider tells it; most important first."""

    citations: tuple[Citation, ...]


StopReason = Literal["end", "tool_calls", "length"]
"""How a reply ended that counts."""


@dataclass(frozen=True, slots=True)
class StopPart:
    """The model's own end of the reply. A stream without it was cut off, and is an error, never a short answer."""

    reason: StopReason | Literal["refusal"]
    """`refusal`: a content filter, or the model itself, ended it. Then it is no reply."""
    replay: tuple[JsonObject, ...] = field(default=())
    provider_word: str = ""
    """The provider's own word for the reason, where there is one."""


Part = TextPart | ReasoningPart | DraftPart | ToolCallPart | CitationsPart | UsagePart | StopPart


@dataclass(frozen=True, slots=True)
class PastCall:
    """A try to call a model that ended before its run was resumed: what for, and the tool calls it came to."""

    coordinated: bool
    tool_calls: tuple[ToolCall, ...] = ()


@runtime_checkable
class Replayable(Protocol):
    """A backend that keeps its own place in a script; in a resumed run it is told what it has already done."""

    def fast_forward(self, past: Sequence[PastCall]) -> None: ...


def fast_forward(backend: "Backend", past: Sequence[PastCall]) -> None:
    """Have a backend that keeps its own place stand where `past` led it."""
    if isinstance(backend, Replayable):
        backend.fast_forward(past)


@runtime_checkable
class Preparable(Protocol):
    """A backend that needs things which take their time, such as a provider's SDK, before it can send anything."""

    async def prepare(self) -> None:
        """Have them there; at once where they are. No time and no cost of any call. Raises `BackendError`."""
        ...


async def prepare(backend: object) -> None:
    """Have there what a backend or an agent needs before its first request. Raises `BackendError`."""
    if isinstance(backend, Preparable):
        await backend.prepare()


@runtime_checkable
class Sized(Protocol):
    """A backend whose server may tell how much its model reads."""

    async def window(self) -> int | None:
        """In tokens, of one call. None: it does not say. Never raises `BackendError`."""
        ...


async def window(backend: "Backend") -> int | None:
    """How many tokens the model reads in one call, as its server says; None where there is none to ask."""
    return await backend.window() if isinstance(backend, Sized) else None


@runtime_checkable
class Resting(Protocol):
    """A backend that keeps something ready for the next request of a conversation."""

    async def rest(self) -> None:
        """There will be none. Never raises `BackendError`."""
        ...


async def rest(backend: "Backend") -> None:
    """Nobody goes on with the conversation that this backend had last."""
    if isinstance(backend, Resting):
        await backend.rest()


class Backend(Protocol):
    """One kind of model API, bound to one agent's settings."""

    @property
    def model(self) -> str:
        """The model's name as the config gives it, for records."""
        ...

    def stream(self, request: ModelRequest) -> AsyncGenerator[Part]:
        """Make one model call.

        Yields parts as they arrive; the last one is a `StopPart`. Raises `BackendError` for every failure of the
        provider or the connection, also in the middle of the stream.
        """
        ...

    async def aclose(self) -> None:
        """Close connections. Safe to call twice, and when no call was ever made."""
        ...
