"""The retry policy and the time limit of one model call, on the scripted backend."""

from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from massgen_mcp.backends import calling
from massgen_mcp.backends.base import (
    JsonObject,
    ModelRequest,
    Part,
    ReasoningPart,
    StopPart,
    TextPart,
    UsagePart,
    UserMessage,
)
from massgen_mcp.backends.calling import CallHooks, ModelReply, RetryPolicy, call_model
from massgen_mcp.backends.failures import retry_after
from massgen_mcp.backends.scripted import ScriptedBackend
from massgen_mcp.config.models.backends import ScriptedBackendConfig, ScriptStep
from massgen_mcp.errors import BackendError
from tests.virtual_time import VIRTUAL_TIME

REQUEST = ModelRequest("system", (UserMessage("?"),))
NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return VIRTUAL_TIME


class Told(CallHooks):
    """What a call told while it went on."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.retries: list[tuple[int, str, float]] = []

    def on_text(self, text: str) -> None:
        self.texts.append(text)

    def on_retry(self, attempt: int, error: BackendError, wait_seconds: float) -> None:
        self.retries.append((attempt, error.reason, wait_seconds))


class Player:
    """A backend that plays prepared parts; an error among them is raised."""

    model = "player"

    def __init__(self, *takes: tuple[Part | BackendError, ...]) -> None:
        self.takes = list(takes)
        self.closed = 0

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Part]:
        assert request is REQUEST
        try:
            for part in self.takes.pop(0):
                if isinstance(part, BackendError):
                    raise part
                yield part
        finally:
            self.closed += 1

    async def aclose(self) -> None:
        """Nothing is open."""


def scripted(*steps: dict[str, Any]) -> ScriptedBackend:
    script = tuple(ScriptStep(**step) for step in steps)
    return ScriptedBackend(ScriptedBackendConfig(type="scripted", script=script))


async def call(
    backend: ScriptedBackend | Player, told: Told, *, policy: RetryPolicy | None = None, deadline: float = 20.0
) -> ModelReply:
    return await call_model(
        backend,
        REQUEST,
        told,
        policy=policy or RetryPolicy(first_wait=0.0),
        deadline_seconds=deadline,
    )


async def test_parts_become_one_reply() -> None:
    usage = UsagePart(3, 1, 2, 1, "m-2026")
    replay: tuple[JsonObject, ...] = ({"type": "reasoning"},)
    player = Player((ReasoningPart("hm"), TextPart("Pa"), TextPart("ris"), usage, StopPart("length", replay)))
    told = Told()
    reply = await call(player, told)
    assert (reply.text, reply.reasoning, reply.stop, reply.replay) == ("Paris", "hm", "length", replay)
    assert (reply.usage, reply.model) == (usage, "m-2026")
    assert told.texts == ["Pa", "ris"]
    assert player.closed == 1


async def test_a_passing_failure_is_tried_again() -> None:
    told = Told()
    steps = ({"fail": "rate_limited"}, {"fail": "unreachable"}, {"fail": "broken_stream"}, {"say": "Paris"})
    reply = await call(scripted(*steps), told)
    assert reply.text == "Paris"
    assert [(attempt, reason) for attempt, reason, _ in told.retries] == [
        (1, "rate_limited"),
        (2, "unreachable"),
        (3, "provider_error"),
    ]


async def test_four_failures_are_enough() -> None:
    told = Told()
    with pytest.raises(BackendError) as caught:
        await call(scripted(*[{"fail": "provider_error"}] * 4, {"say": "too late"}), told)
    assert caught.value.reason == "provider_error"
    assert len(told.retries) == 3


@pytest.mark.parametrize("kind", ["auth", "quota_exhausted", "model_not_found"])
async def test_a_final_failure_is_not_tried_again(kind: str) -> None:
    told = Told()
    with pytest.raises(BackendError) as caught:
        await call(scripted({"fail": kind}, {"say": "never"}), told)
    assert caught.value.reason == kind
    assert told.retries == []


async def test_a_stream_without_an_end_is_an_error() -> None:
    told = Told()
    reply = await call(Player((TextPart("Pa"),), (TextPart("Paris"), StopPart("end"))), told)
    assert reply.text == "Paris"
    assert [reason for _, reason, _ in told.retries] == ["provider_error"]


async def test_a_hanging_model_ends_at_the_deadline() -> None:
    started = anyio.current_time()
    with pytest.raises(BackendError, match="call_timeout_seconds") as caught:
        await call(scripted({"hang": True}), Told(), deadline=50)
    assert caught.value.reason == "timeout"
    assert anyio.current_time() == pytest.approx(started + 50)


async def test_a_wait_longer_than_the_time_left_is_not_begun() -> None:
    told = Told()
    error = BackendError("rate_limited", "come back later", retryable=True, retry_after=30)
    started = anyio.current_time()
    with pytest.raises(BackendError, match="come back later"):
        await call(Player((error,)), told, deadline=5)
    assert anyio.current_time() == started
    assert told.retries == []


async def test_a_wait_can_be_cancelled() -> None:
    error = BackendError("rate_limited", "later", retryable=True, retry_after=30)
    told = Told()
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: call(Player((error,)), told, deadline=100))
            while not told.retries:
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
    assert told.retries == [(1, "rate_limited", 30)]


def test_waits_follow_the_provider_within_bounds_else_grow_at_random() -> None:
    policy = RetryPolicy()
    told = [BackendError("rate_limited", "", retryable=True, retry_after=wish) for wish in (0.0, 1.5, 1e9)]
    assert [policy.wait(1, error) for error in told] == [0.0, 1.5, 60.0]
    untold = BackendError("provider_error", "", retryable=True)
    for failures, most in ((1, 0.5), (2, 1.0), (3, 2.0), (9, 8.0)):
        waits = [policy.wait(failures, untold) for _ in range(200)]
        assert all(0 <= wait <= most for wait in waits)
        assert max(waits) > most / 2 > min(waits)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "0"}, None),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "2", "retry-after-ms": "250"}, 0.25),
        ({"retry-after": "2", "retry-after-ms": "soon"}, 2.0),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "Sat, 21 Nov 2026 12:00:07 GMT"}, 7.0),
        ({"retry-after": "Sat, 21 Nov 2026 11:00:00 GMT"}, None),
        ({"retry-after": "Sat, 21 Nov 2026 12:00:07"}, 7.0),
        ({"retry-after": "whenever"}, None),
    ],
)
def test_retry_after_in_all_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, NOW) == seconds


@pytest.mark.parametrize("kind", [TextPart, ReasoningPart])
async def test_a_reply_without_measure_is_refused(
    kind: type[TextPart] | type[ReasoningPart], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calling, "MAX_REPLY_BYTES", 100)
    player = Player((*[kind("ä" * 10)] * 6, StopPart("end")))
    told = Told()
    with pytest.raises(BackendError, match="larger than") as caught:
        await call(player, told)
    assert caught.value.reason == "bad_reply"
    assert len("".join(told.texts)) <= 100
    assert player.closed == 1
