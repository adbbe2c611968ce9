"""One model call to its end: our only retry policy, its time limit, and the parts put together.

Backends never retry; this does, so that nothing is tried by two policies at once.
"""

import random
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass

import anyio

from massgen_mcp.backends.base import (
    Backend,
    Citation,
    CitationsPart,
    DraftPart,
    JsonObject,
    ModelRequest,
    Part,
    ReasoningPart,
    StopPart,
    StopReason,
    TextPart,
    ToolCall,
    ToolCallPart,
    UsagePart,
)
from massgen_mcp.backends.limiter import ProviderLimiter
from massgen_mcp.backends.thoughts import strip_template, thoughts_apart
from massgen_mcp.countdown import Countdown
from massgen_mcp.errors import BackendError
from massgen_mcp.events.agent_work import OWN_QUEUE, WaitReason

MAX_REPLY_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and after which waits a call is tried again. Seconds throughout."""

    attempts: int = 4
    first_wait: float = 0.5
    longest_wait: float = 8.0
    longest_retry_after: float = 60.0
    longest_wish: float = 3_600.0
    """A provider that wants a longer wait is not asked again."""

    def wait(self, failures: int, error: BackendError) -> float:
        """The wait after the `failures`-th failure (from 1): the provider's wish, else a random one that grows."""
        if error.retry_after is not None:
            return min(error.retry_after, self.longest_retry_after)
        return random.uniform(0, min(self.longest_wait, self.first_wait * 2 ** (failures - 1)))

    def again(self, failures: int, error: BackendError, deadline: float) -> float | None:
        """The wait before the next try; None if there is none, as when it would begin after `deadline`, on the event
        loop's clock.
        """
        wait = self.wait(failures, error)
        wish = error.retry_after or 0.0  # a provider that is asked earlier refuses again
        out_of_time = anyio.current_time() + max(wait, wish) >= deadline or wish > self.longest_wish
        return None if not error.retryable or failures >= self.attempts or out_of_time else wait


@dataclass(frozen=True, slots=True)
class ModelReply:
    """A whole reply. `model` is the provider's name for it where it told one."""

    text: str
    reasoning: str
    tool_calls: tuple[ToolCall, ...]
    stop: StopReason
    replay: tuple[JsonObject, ...]
    usage: UsagePart | None
    model: str
    citations: tuple[Citation, ...] = ()


class CallHooks:
    """What whoever makes a call hears of it, and may change about it. Each does nothing until it is overridden."""

    def on_wait(self, obstacle: WaitReason | None) -> None:
        """The call waits for this in the limiter; None: it goes on. In our own queue its time stands still."""

    def on_try(self) -> None:
        """A try begins."""

    def on_part(self, part: Part) -> None:
        """A piece of the reply, of any kind."""

    def on_text(self, text: str) -> None:
        """What people may read as it arrives: text, and drafts of arguments."""

    def on_retry(self, attempt: int, error: BackendError, wait_seconds: float) -> None:
        """Failed attempt (from 1) that is followed by another: all text so far is void. May raise `BackendError`."""

    def fit(self, request: ModelRequest) -> ModelRequest:
        """What is asked with the next try."""
        return request

    def refused(self, error: BackendError) -> bool:  # noqa: ARG002 - for those that override it
        """Hears every error. True: `fit` makes something else of the request now, so it is asked again at once."""
        return False


async def call_model(
    backend: Backend,
    request: ModelRequest,
    hooks: CallHooks,
    *,
    policy: RetryPolicy,
    deadline_seconds: float,
    limiter: ProviderLimiter | None = None,
) -> ModelReply:
    """Ask until a reply is whole, the error is final, or the time is up.

    Every try goes through `limiter`, if there is one. It never begins a wait that would end after the deadline of the
    call, the round or the run. Raises `BackendError`, with reason "timeout" when `deadline_seconds` have passed.
    """
    heard = False
    with Countdown(deadline_seconds) as time_left:

        def waits(obstacle: WaitReason | None) -> None:
            if obstacle in OWN_QUEUE:
                time_left.stop()
            else:
                time_left.go()
            hooks.on_wait(obstacle)

        tries, failures = 0, 0
        while True:
            heard = False
            try:
                async with _let_through(limiter, waits) as answered:
                    hooks.on_try()

                    def hear(part: Part, answered: Callable[[], None] = answered) -> None:
                        nonlocal heard
                        heard = True
                        answered()
                        hooks.on_part(part)

                    return await _collect_reply(backend, hooks.fit(request), hooks.on_text, hear)
            except BackendError as error:
                tries += 1
                failures += not (other := hooks.refused(error))
                wait = 0.0 if other else policy.again(failures, error, anyio.current_effective_deadline())
                if wait is None:
                    raise
                hooks.on_retry(tries, error, wait)
            await anyio.sleep(wait)
    raise OutOfTimeError(deadline_seconds, heard=heard)


class OutOfTimeError(BackendError):
    """The time of a call is up. `lack` says what has not come, without the name of the limit."""

    def __init__(self, seconds: float, *, heard: bool) -> None:
        came = "no complete reply" if heard else "no reply started"
        slow = "" if heard else "; a local model may take minutes to produce its first token"
        self.lack = f"{came} within {seconds:g} s{slow}"
        super().__init__("timeout", f"call_timeout_seconds: {self.lack}; raise it in timeout_settings")


def _filtered(provider_word: str) -> BackendError:
    word = f" ({provider_word})" if provider_word else ""
    message = (
        f"the provider's content filter or the model itself refused to continue{word}; massgen discarded the reply"
    )
    return BackendError("content_filter", message)


def _let_through(
    limiter: ProviderLimiter | None, on_wait: Callable[[WaitReason | None], None]
) -> AbstractAsyncContextManager[Callable[[], None]]:
    return nullcontext(lambda: None) if limiter is None else limiter.slot(on_wait)


async def _collect_reply(
    backend: Backend,
    request: ModelRequest,
    on_text: Callable[[str], None],
    on_part: Callable[[Part], None],
) -> ModelReply:
    collected = ReplyParts()
    spoken: type[Part] | None = None
    parts = backend.stream(request)
    try:
        async for part in parts:
            on_part(part)
            collected.take(part)
            if isinstance(part, TextPart | DraftPart):
                apart = "" if spoken in (None, type(part)) else "\n\n"
                spoken = type(part)
                on_text(apart + part.text)
        return collected.whole(backend.model)
    finally:
        # A stream that is left half read would keep its connection until the garbage collector came.
        with anyio.move_on_after(5, shield=True):
            await parts.aclose()


class ReplyParts:
    """Puts the parts of one reply together."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._reasoning: list[str] = []
        self._calls: list[ToolCall] = []
        self._usage: UsagePart | None = None
        self._citations: tuple[Citation, ...] = ()
        self._stop: StopPart | None = None
        self._size = 0
        self._drafted = 0
        """Bytes of a call that is being written."""

    def take(self, part: Part) -> None:
        """Raises `BackendError` when the reply becomes too large."""
        match part:
            case TextPart(text):
                self._texts.append(text)
                self._size += len(text.encode())
            case ReasoningPart(text):
                self._reasoning.append(text)
                self._size += len(text.encode())
            case DraftPart(text):
                self._drafted += len(text.encode())
            case ToolCallPart(call):
                self._calls.append(call)
                self._drafted = 0
                self._size += len(call.id) + len(call.name) + len(call.arguments.encode())
            case CitationsPart(citations):
                self._citations = citations
            case UsagePart():
                self._usage = part
            case StopPart():
                self._stop = part
        if self._size + self._drafted > MAX_REPLY_BYTES:
            raise BackendError("bad_reply", f"the reply is larger than {MAX_REPLY_BYTES} bytes")

    def whole(self, model: str) -> ModelReply:
        """Raises `BackendError`: provider_error if the model had not come to its end, content_filter if it was stopped
        there.
        """
        if self._stop is None:
            raise BackendError("provider_error", "the reply ended early", retryable=True)
        if self._stop.reason == "refusal":
            raise _filtered(self._stop.provider_word)
        text, reasoning = "".join(self._texts), "".join(self._reasoning)
        if not reasoning:
            reasoning, text = thoughts_apart(text)
        reasoning, text = strip_template(reasoning, text)
        return ModelReply(
            text=text,
            reasoning=reasoning,
            tool_calls=tuple(self._calls),
            stop=self._stop.reason,
            replay=self._stop.replay,
            usage=self._usage,
            model=(self._usage.model if self._usage else "") or model,
            citations=self._citations,
        )
