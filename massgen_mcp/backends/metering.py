"""Measures one try of a model call while it streams, so that it can be billed however it ends; only its HTTP client
knows whether its request has left this process (`heard_by`).

What a provider counted is taken as it is; what it did not count is estimated from the length of the texts, cautiously:
`BYTES_PER_TOKEN` is low for prose in any language, code included.
"""

import json
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import replace

from massgen_mcp.backends.base import (
    AssistantMessage,
    CitationsPart,
    DraftPart,
    Message,
    ModelRequest,
    Part,
    ReasoningPart,
    StopPart,
    TextPart,
    ToolCallPart,
    UsagePart,
)
from massgen_mcp.errors import BackendError, DropReason
from massgen_mcp.events.parts import Usage

heard_by: ContextVar[Callable[[bool], None]] = ContextVar("heard_by", default=lambda _: None)
"""Whoever makes a try hears False when its request waits for a connection, True when it goes out. A backend that says
neither has sent it for all that is known.
"""


BYTES_PER_TOKEN = 2
MESSAGE_TOKENS = 16
"""What a message costs besides its text."""

PLAUSIBLE_SHARE = 1 / 20
"""The least share of our estimate that a provider's count can be. Texts that repeat themselves come to fewer tokens."""
LEAST_COMPARED = 10_000
"""Tokens: our estimate of a shorter text is not compared with what a provider counted."""

_NOT_BILLED: tuple[DropReason, ...] = (
    *("auth", "quota_exhausted", "rate_limited", "model_not_found"),
    *("unreachable", "tools_unsupported", "context_too_small", "content_filter", "provider_error"),
    *("bad_request", "budget"),
)
"""A failure of these kinds before the first piece of a reply means that no model has worked."""


def estimated_tokens(text: str) -> int:
    """How many tokens a text has at most, in practice."""
    return _count_tokens(len(text.encode("utf-8", "replace")))


def _count_tokens(size: int) -> int:
    return -(-size // BYTES_PER_TOKEN)


def request_tokens(request: ModelRequest) -> int:
    """How many tokens a request has at most, in practice."""
    tools = sum(MESSAGE_TOKENS + _count_tokens(tool.size) for tool in request.all_tools)
    return MESSAGE_TOKENS + estimated_tokens(request.system) + tools + sum(map(_message_tokens, request.messages))


def count_long_tokens(request: ModelRequest) -> int:
    """Return the maximum number of tokens of a request that a cache keeps for an hour."""
    if not request.long_waits:
        return 0
    end = max(request.shared_ends, default=-1) + 1
    return request_tokens(replace(request, messages=request.messages[:end]))


def _message_tokens(message: Message) -> int:
    text = message.text
    if isinstance(message, AssistantMessage):
        text += "".join(f"{call.name}{call.arguments}" for call in message.tool_calls)
        text += json.dumps(message.replay) if message.replay else ""
    return MESSAGE_TOKENS + estimated_tokens(text)


def _is_too_low(counted: int, estimated: int) -> bool:
    """Tell a count that is far below what was sent or came, as no provider bills."""
    return estimated >= LEAST_COMPARED and counted < estimated * PLAUSIBLE_SHARE


class Meter:
    """Hears every part of a try; `begin` it anew with each, where it is made, and tell it when there will be another
    one.
    """

    def __init__(self, request: ModelRequest) -> None:
        self.input_tokens = request_tokens(request)
        self.begin()
        self._trying = False

    def begin(self) -> None:
        self._trying = self._sent = True
        heard_by.set(self._hear_sent)
        self._streamed = 0
        self._drafted = 0
        """Of a call that is being written."""
        self._begun = False
        self.reported: UsagePart | None = None

    def wait(self) -> None:
        """The try has failed, and the next one has not begun."""
        self._trying = False

    def _hear_sent(self, sent: bool) -> None:
        self._sent = sent

    def hear(self, part: Part) -> None:
        self._begun = True
        match part:
            case TextPart(text) | ReasoningPart(text):
                self._streamed += estimated_tokens(text)
            case DraftPart(text):
                self._drafted += estimated_tokens(text)
            case ToolCallPart(call):
                self._drafted = 0
                self._streamed += MESSAGE_TOKENS + estimated_tokens(call.name + call.arguments)
            case UsagePart():
                self.reported = part
            case CitationsPart() | StopPart():
                pass

    def usage(self) -> Usage:
        """The provider's numbers; our estimate of those it did not tell, or that are far too low. Nothing is read or
        written for no tokens.
        """
        reported = self.reported or UsagePart()
        streamed = self._streamed + self._drafted
        read, written = reported.input_tokens or 0, reported.output_tokens or 0
        no_input = not read or _is_too_low(read, self.input_tokens)
        no_output = (not written and streamed > 0) or _is_too_low(written, streamed)
        if no_input:
            read = self.input_tokens
        if no_output:
            written = streamed
        return Usage(
            input_tokens=read,
            cached_input_tokens=reported.cached_input_tokens,
            cache_write_tokens=reported.cache_write_tokens,
            cache_write_long_tokens=reported.cache_write_long_tokens,
            output_tokens=written,
            reasoning_tokens=reported.reasoning_tokens,
            web_searches=reported.web_searches,
            estimated=no_input or no_output,
            at_least=reported.at_least,
        )

    def billed(self, error: BackendError | None) -> bool:
        """Whether a try that `error` ended, or that we cut off (None), has to be paid for as far as we know."""
        return self._trying and self._sent and (self._begun or error is None or error.reason not in _NOT_BILLED)
