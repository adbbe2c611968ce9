"""What a model at one address was found not to take: learned from the refusal, and not asked for again."""

import math
import sys

import anyio

from massgen_mcp.backends.base import Backend, ModelRequest, window
from massgen_mcp.backends.metering import BYTES_PER_TOKEN, request_tokens
from massgen_mcp.backends.refusals import window_in_words
from massgen_mcp.errors import BackendError
from massgen_mcp.events.parts import Usage

USUAL_SHARE = 0.6
"""Of the tokens that a text has at most, so many are there usually."""
LEAST_SHARE = 0.1
WITHIN = 0.8
"""A model that told no number takes less than what was too much for it."""


class Abilities:
    """Of one model at one address. Everything is taken to be possible until it is refused."""

    def __init__(self) -> None:
        self.takes_tools = True
        self.can_be_forced = True
        """Whether a request may say that a tool must be called."""
        self.window: int | None = None
        """Tokens of the largest request that it takes, as its server or a refusal told. None: none did."""
        self._asking = anyio.Lock()
        self._asked = False
        self._tokens_per_estimate = USUAL_SHARE

    async def ask_window(self, backend: Backend) -> None:
        """Have the server itself say it, unless it was asked."""
        async with self._asking:
            if self.window is None and not self._asked:
                self._asked = True
                self.window = await window(backend)

    def tokens(self, request: ModelRequest) -> int:
        """About how many tokens of this model a request has: as many as of those before, by their length."""
        return math.ceil(request_tokens(request) * self._tokens_per_estimate)

    def bytes_of(self, tokens: float) -> int:
        """About so many bytes of text are so many tokens."""
        return int(tokens / self._tokens_per_estimate * BYTES_PER_TOKEN)

    def measure(self, estimate: int, usage: Usage | None) -> None:
        """Learn from what the provider counted. `estimate`: what the request had at most (`request_tokens`)."""
        if usage is not None and not usage.estimated and not usage.at_least:
            self._tokens_per_estimate = max(LEAST_SHARE, usage.input_tokens / estimate)

    def learn(self, error: BackendError, request: ModelRequest) -> bool:
        """Remember what `error` says is not taken of `request`. Whether there is something to ask without."""
        if error.reason == "context_too_small":
            known = self.window or sys.maxsize
            self.window = min(known, window_in_words(str(error)) or int(WITHIN * self.tokens(request)))
        if error.refused is None or not request.tools:
            return False
        if error.refused == "tool_choice" and request.must_call_tool:
            self.can_be_forced = False
        else:
            self.takes_tools = False
        return True
