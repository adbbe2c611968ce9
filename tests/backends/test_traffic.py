"""What calls to one provider share: order, limits, pauses and the circuit."""

import itertools
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest

from massgen_mcp.backends.base import ModelRequest, Part, StopPart, TextPart, UserMessage
from massgen_mcp.backends.calling import CallHooks, ModelReply, RetryPolicy, call_model
from massgen_mcp.backends.limiter import Destination, LimiterPolicy, ProviderLimiter, ProviderLimiters
from massgen_mcp.config.access.limits import RateLimits
from massgen_mcp.errors import BackendError, DropReason
from massgen_mcp.events.agent_work import WaitReason
from tests.virtual_time import VIRTUAL_TIME

HERE = Destination("http://provider.test/v1", "sk-secret")
REQUEST = ModelRequest("system", (UserMessage("?"),))
DOWN = BackendError("unreachable", "cannot be reached", retryable=True)
ONCE = RetryPolicy(attempts=1)


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return VIRTUAL_TIME


@dataclass
class Provider:
    """A backend as its provider sees it: every try that arrives, and when. `outcomes` are worked off first."""

    outcomes: list[BackendError] = field(default_factory=list[BackendError])
    well: bool = True
    arrived: list[float] = field(default_factory=list[float])
    names: list[str] = field(default_factory=list[str])
    hold: anyio.Event = field(default_factory=anyio.Event)
    """Replies come when it is set."""
    at_once: int = 0
    most_at_once: int = 0
    model: str = "provider"
    seconds: float = 0.0
    """How long it takes to reply."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Part]:
        self.arrived.append(anyio.current_time())
        self.names.append(request.system)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await self.hold.wait()
            await anyio.sleep(self.seconds)
            if self.outcomes or not self.well:
                raise self.outcomes.pop(0) if self.outcomes else DOWN
            yield TextPart("Paris")
            yield StopPart("end")
        finally:
            self.at_once -= 1

    def __post_init__(self) -> None:
        self.hold.set()

    async def aclose(self) -> None:
        """Nothing is open."""


def holding() -> Provider:
    provider = Provider()
    provider.hold = anyio.Event()
    return provider


def not_told(*_: object) -> None:
    """Nobody listens."""


class Waits(CallHooks):
    """Hands on what a call waits for."""

    def __init__(self, heard: Callable[[WaitReason | None], None]) -> None:
        self._heard = heard

    def on_wait(self, obstacle: WaitReason | None) -> None:
        self._heard(obstacle)


async def ask(
    provider: Provider,
    limiter: ProviderLimiter,
    *,
    name: str = "somebody",
    retries: RetryPolicy = ONCE,
    seconds: float = 20,
    on_wait: Callable[[WaitReason | None], None] = lambda _: None,
) -> ModelReply:
    return await call_model(
        provider,
        ModelRequest(name, REQUEST.messages),
        Waits(on_wait),
        policy=retries,
        deadline_seconds=seconds,
        limiter=limiter,
    )


async def ask_all(
    provider: Provider, limiter: ProviderLimiter, count: int, *, retries: RetryPolicy = ONCE
) -> list[BackendError]:
    """Ask that often at once; returns the failures."""
    failures: list[BackendError] = []

    async def one() -> None:
        try:
            await ask(provider, limiter, retries=retries)
        except BackendError as error:
            failures.append(error)

    async with anyio.create_task_group() as tasks:
        for _ in range(count):
            tasks.start_soon(one)
    return failures


async def until(condition: Callable[[], object]) -> None:
    with anyio.fail_after(10):
        while not condition():
            await anyio.sleep(0.001)


@pytest.mark.parametrize("concurrency", [1, 3])
async def test_no_more_calls_are_under_way_than_the_limit_allows(concurrency: int) -> None:
    provider = Provider()
    with ProviderLimiters().limiter(HERE, RateLimits(concurrency=concurrency)) as limiter:
        assert await ask_all(provider, limiter, 20) == []
    assert (len(provider.arrived), provider.most_at_once) == (20, concurrency)


async def test_calls_go_in_the_order_in_which_they_came() -> None:
    provider = holding()
    with ProviderLimiters().limiter(HERE, RateLimits(concurrency=1)) as limiter:
        async with anyio.create_task_group() as tasks:
            for name in "abcdef":
                waits: list[WaitReason | None] = []
                tasks.start_soon(lambda n=name, w=waits: ask(provider, limiter, name=n, on_wait=w.append))
                await until(lambda w=waits: provider.names or w)
                assert waits in ([], ["concurrency"])
            provider.hold.set()
    assert provider.names == list("abcdef")


async def test_whoever_is_cancelled_while_it_waits_leaves_its_place_to_the_others() -> None:
    provider = holding()
    with ProviderLimiters().limiter(HERE, RateLimits(concurrency=1)) as limiter:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: ask(provider, limiter, name="first"))
            await until(lambda: provider.names)
            async with anyio.create_task_group() as leaving:
                waits: list[WaitReason | None] = []
                for _ in range(3):
                    leaving.start_soon(lambda: ask(provider, limiter, name="leaves", on_wait=waits.append))
                await until(lambda: len(waits) == 3)
                leaving.cancel_scope.cancel()
            with anyio.move_on_after(5) as stuck:
                tasks.start_soon(lambda: ask(provider, limiter, name="last"))
                provider.hold.set()
                await until(lambda: len(provider.names) == 2)
            assert not stuck.cancelled_caught
    assert provider.names == ["first", "last"]


async def test_a_call_that_is_cancelled_under_way_frees_its_place() -> None:
    provider = holding()
    with ProviderLimiters().limiter(HERE, RateLimits(concurrency=1)) as limiter:
        async with anyio.create_task_group() as leaving:
            leaving.start_soon(lambda: ask(provider, limiter))
            await until(lambda: provider.names)
            leaving.cancel_scope.cancel()
        provider.hold.set()
        await ask(provider, limiter)
    assert len(provider.names) == 2


async def test_waiting_in_our_own_queue_does_not_count_into_the_time_of_a_call() -> None:
    provider = Provider(seconds=0.03)
    with ProviderLimiters().limiter(HERE, RateLimits(concurrency=1)) as limiter:
        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(lambda: ask(provider, limiter, seconds=0.3))
    assert len(provider.names) == 20


async def test_waiting_for_the_minute_does_not_count_either() -> None:
    provider, minute = Provider(), 0.2
    with ProviderLimiters(LimiterPolicy(minute=minute)).limiter(HERE, RateLimits(requests_per_minute=1)) as limiter:
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(lambda: ask(provider, limiter, seconds=0.1))
    assert len(provider.names) == 3


async def test_a_pause_that_the_provider_asks_for_counts_into_the_time_of_a_call() -> None:
    provider = Provider([BackendError("rate_limited", "slow down", retryable=True, retry_after=5)])
    with ProviderLimiters().limiter(HERE, RateLimits()) as limiter:
        with pytest.raises(BackendError, match="slow down"):
            await ask(provider, limiter)
        with pytest.raises(BackendError, match="s, which is longer than this call's time limit"):
            await ask(provider, limiter, seconds=3)
    assert len(provider.names) == 1


async def test_the_smaller_of_two_limits_holds_while_both_runs_go_on() -> None:
    limiters, provider = ProviderLimiters(), Provider()
    with limiters.limiter(HERE, RateLimits(concurrency=5)) as limiter:
        with limiters.limiter(HERE, RateLimits(concurrency=2)) as same:
            assert same is limiter
            await ask_all(provider, limiter, 10)
            assert provider.most_at_once == 2
        await ask_all(provider, limiter, 10)
        assert provider.most_at_once == 5


async def test_who_waits_for_a_limit_goes_on_when_its_run_leaves() -> None:
    limiters, provider = ProviderLimiters(), holding()
    with limiters.limiter(HERE, RateLimits(concurrency=2)) as limiter:
        async with anyio.create_task_group() as tasks:
            with limiters.limiter(HERE, RateLimits(concurrency=1)):
                waits: list[WaitReason | None] = []
                for _ in range(2):
                    tasks.start_soon(lambda: ask(provider, limiter, on_wait=waits.append))
                await until(lambda: waits)
                assert provider.at_once == 1
            await until(lambda: provider.at_once == 2)
            provider.hold.set()


async def test_other_keys_and_other_providers_have_lanes_of_their_own() -> None:
    limiters, limits = ProviderLimiters(), RateLimits()
    async with AsyncExitStack() as open_lanes:
        lanes = [
            open_lanes.enter_context(limiters.limiter(Destination(address, key), limits))
            for address, key in (("a", "k"), ("a", "k"), ("a", "other"), ("b", "k"))
        ]
    assert lanes[0] is lanes[1]
    assert len(set(map(id, lanes))) == 3
    assert "sk-secret" not in repr(HERE)


async def test_no_more_calls_begin_in_a_minute_than_the_limit_allows() -> None:
    provider, minute = Provider(), 0.2
    with ProviderLimiters(LimiterPolicy(minute=minute)).limiter(HERE, RateLimits(requests_per_minute=3)) as limiter:
        assert await ask_all(provider, limiter, 10) == []
    assert len(provider.arrived) == 10
    for first, fourth in zip(provider.arrived, provider.arrived[3:], strict=False):
        assert fourth - first >= minute * 0.9


async def test_retries_count_as_calls_of_the_minute() -> None:
    provider, minute = Provider([DOWN]), 0.2
    with ProviderLimiters(LimiterPolicy(minute=minute)).limiter(HERE, RateLimits(requests_per_minute=1)) as limiter:
        await ask(provider, limiter, retries=RetryPolicy(first_wait=0))
    first, second = provider.arrived
    assert second - first >= minute * 0.9


@pytest.mark.parametrize("reason", ["rate_limited", "provider_error"])
async def test_a_pause_that_a_provider_asks_one_caller_for_is_kept_by_all(reason: DropReason) -> None:
    pause = 0.2
    asked = BackendError(reason, "slow down", retryable=True, retry_after=pause)
    provider = Provider([asked])
    waits: list[WaitReason | None] = []
    with ProviderLimiters().limiter(HERE, RateLimits(concurrency=1)) as limiter:
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(lambda: ask(provider, limiter, retries=RetryPolicy(), on_wait=waits.append))
    first, *others = provider.arrived
    assert len(others) == 5
    assert min(others) - first >= pause * 0.9
    assert {"concurrency", "retry_after"} <= set(waits)


async def test_who_stands_in_line_hears_what_is_in_the_way_and_does_not_wait_for_it_in_vain() -> None:
    busy = BackendError("rate_limited", "slow down", retryable=True, retry_after=30)
    provider = Provider([busy])
    provider.seconds = 3
    waits: dict[str, list[WaitReason | None]] = {name: [] for name in ("patient", "hasty", "calm")}
    failed: list[tuple[str, float, str]] = []
    with ProviderLimiters().limiter(HERE, RateLimits(concurrency=1)) as limiter:

        async def one(name: str, seconds: float) -> None:
            try:
                await ask(provider, limiter, name=name, seconds=seconds, on_wait=waits[name].append)
            except BackendError as error:
                failed.append((name, anyio.current_time(), str(error)))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: ask(provider, limiter, retries=RetryPolicy(), seconds=100))
            await anyio.sleep(1)
            for name, seconds in (("patient", 50), ("hasty", 20), ("calm", 60)):
                tasks.start_soon(one, name, seconds)
    # A hasty one stands in line behind a patient one, and would else wait for what it has no time for.
    ((name, at, told),) = failed
    assert (name, at) == ("hasty", pytest.approx(3))
    assert "asked all callers to wait another 30 s" in told
    assert waits["hasty"] == ["concurrency", "retry_after"]
    assert waits["calm"][:2] == ["concurrency", "retry_after"]
    assert provider.names[1:] == ["patient", "calm", "somebody"]


async def test_calls_in_line_are_not_told_each_time_another_limit_of_ours_is_in_the_way() -> None:
    provider = Provider()
    provider.seconds = 5
    waits: list[list[WaitReason | None]] = [[] for _ in range(12)]
    limits = RateLimits(concurrency=1, requests_per_minute=2)
    with ProviderLimiters().limiter(HERE, limits) as limiter:
        async with anyio.create_task_group() as tasks:
            for told in waits:
                tasks.start_soon(lambda on_wait=told.append: ask(provider, limiter, on_wait=on_wait))
    assert len(provider.arrived) == 12
    assert max(map(len, waits)) <= 3
    assert waits[11][0] == "concurrency"


async def test_calls_in_line_hear_that_their_provider_is_down_and_fail_as_soon_as_that_is_certain() -> None:
    provider = Provider(well=False)
    provider.seconds = 1
    heard: list[tuple[float, WaitReason | None]] = []
    failed: list[tuple[float, str]] = []
    policy = LimiterPolicy(first_break=2, patience=5)
    with ProviderLimiters(policy).limiter(HERE, RateLimits(concurrency=1)) as limiter:

        def hears(obstacle: WaitReason | None) -> None:
            heard.append((anyio.current_time(), obstacle))

        async def one(on_wait: Callable[[WaitReason | None], None]) -> None:
            try:
                await ask(provider, limiter, seconds=15, on_wait=on_wait)
            except BackendError as error:
                failed.append((anyio.current_time(), str(error)[:12]))

        async with anyio.create_task_group() as tasks:
            for _ in range(9):
                tasks.start_soon(one, not_told)
            tasks.start_soon(one, hears)
    assert heard == [(0, "concurrency"), (pytest.approx(5), "circuit")]
    # Five fail, after 1 s each; a probe after 2 s more, which takes 1 s; then the next one lies too far away.
    assert [at for at, text in failed if text != "circuit open"] == pytest.approx([1, 2, 3, 4, 5, 8])
    assert [at for at, text in failed if text == "circuit open"] == pytest.approx([8] * 4)


async def test_no_pause_is_longer_than_a_minute_and_none_is_begun_that_there_is_no_time_for() -> None:
    asked = BackendError("rate_limited", "slow down", retryable=True, retry_after=49 * 86_400.0)
    provider = Provider([asked])
    with ProviderLimiters().limiter(HERE, RateLimits()) as limiter:
        with pytest.raises(BackendError, match="slow down"):
            await ask(provider, limiter)
        with pytest.raises(BackendError, match=r"asked all callers to wait another (59|60) s") as caught:
            await ask(provider, limiter, seconds=50)
    assert caught.value.reason == "rate_limited"
    assert not caught.value.retryable
    assert len(provider.arrived) == 1


async def test_a_wait_that_the_run_has_no_time_for_is_not_begun_whatever_the_call_may_take() -> None:
    asked = BackendError("rate_limited", "slow down", retryable=True, retry_after=30)
    with anyio.fail_after(20), pytest.raises(BackendError, match="slow down"):
        await call_model(Provider([asked]), REQUEST, CallHooks(), policy=RetryPolicy(), deadline_seconds=300)


# -- the circuit ------------------------------------------------------------------------------------------------------


async def test_a_provider_that_is_down_is_not_asked_by_everybody() -> None:
    provider = Provider(well=False)
    policy = LimiterPolicy(first_break=0.05, patience=0.05)
    with ProviderLimiters(policy).limiter(HERE, RateLimits(concurrency=5)) as limiter:
        failures = await ask_all(provider, limiter, 50, retries=RetryPolicy(first_wait=0))
    assert len(failures) == 50
    # Five open it, four are on their way then; probes come after 50, 150, 350 ms and so on.
    assert len(provider.arrived) <= 5 + 4 + 8
    assert {failure.reason for failure in failures} == {"unreachable"}
    told = [str(failure) for failure in failures if str(failure).startswith("circuit open: http://provider.test")]
    assert len(told) >= 30
    assert all("retry" in text and "cannot be reached" in text for text in told)


async def test_when_an_outage_lasts_calls_fail_at_once() -> None:
    provider = Provider(well=False)
    with ProviderLimiters(LimiterPolicy(first_break=60)).limiter(HERE, RateLimits()) as limiter:
        await ask_all(provider, limiter, 5)
        with anyio.fail_after(50), pytest.raises(BackendError, match=r"will retry it in (59|60) s") as caught:
            await ask(provider, limiter, seconds=1000)
    assert not caught.value.retryable
    assert len(provider.arrived) == 5


async def test_without_a_circuit_everybody_asks_a_provider_that_is_down() -> None:
    provider = Provider(well=False)
    with ProviderLimiters(LimiterPolicy(failures=10_000)).limiter(HERE, RateLimits(concurrency=5)) as limiter:
        await ask_all(provider, limiter, 50, retries=RetryPolicy(first_wait=0))
    assert len(provider.arrived) == 200


async def test_a_short_outage_is_waited_out_with_one_probe_at_a_time() -> None:
    provider = Provider([DOWN] * 7)
    with ProviderLimiters(LimiterPolicy(first_break=0.02)).limiter(HERE, RateLimits(concurrency=1)) as limiter:
        failures = await ask_all(provider, limiter, 30, retries=RetryPolicy(first_wait=0))
    assert failures == []
    assert len(provider.arrived) == 7 + 30
    breaks = [later - earlier for earlier, later in itertools.pairwise(provider.arrived[4:8])]
    assert [gap >= least * 0.9 for gap, least in zip(breaks, (0.02, 0.04, 0.08), strict=True)] == [True] * 3


async def test_the_pauses_of_a_lasting_outage_double_up_to_the_longest_one() -> None:
    provider = Provider([DOWN] * 10)
    policy = LimiterPolicy(first_break=1, longest_break=4, patience=1_000)
    with ProviderLimiters(policy).limiter(HERE, RateLimits()) as limiter:
        await ask(provider, limiter, retries=RetryPolicy(attempts=20, first_wait=0), seconds=1_000)
    breaks = [later - earlier for earlier, later in itertools.pairwise(provider.arrived[4:])]
    assert breaks == pytest.approx([1, 2, 4, 4, 4, 4])


async def test_while_a_probe_is_under_way_nobody_else_is_let_through() -> None:
    provider = Provider([DOWN] * 5)
    with ProviderLimiters(LimiterPolicy(first_break=0.02)).limiter(HERE, RateLimits()) as limiter:
        await ask_all(provider, limiter, 5)
        provider.hold = anyio.Event()
        async with anyio.create_task_group() as tasks:
            waits: list[WaitReason | None] = []
            for _ in range(10):
                tasks.start_soon(lambda: ask(provider, limiter, on_wait=waits.append))
            await until(lambda: len(provider.arrived) == 6 and len(waits) >= 9)  # the probe itself may not wait
            assert provider.at_once == 1
            assert set(waits) - {None} == {"circuit"}, "also those hear it who are not next"
            provider.hold.set()
    assert len(provider.arrived) == 5 + 10


async def test_a_probe_that_is_cancelled_lets_the_next_one_try() -> None:
    provider = Provider([DOWN] * 5)
    with ProviderLimiters(LimiterPolicy(first_break=0.02)).limiter(HERE, RateLimits()) as limiter:
        await ask_all(provider, limiter, 5)
        provider.hold = anyio.Event()
        async with anyio.create_task_group() as leaving:
            leaving.start_soon(lambda: ask(provider, limiter))
            await until(lambda: provider.at_once == 1)
            leaving.cancel_scope.cancel()
        provider.hold.set()
        assert (await ask(provider, limiter)).text == "Paris"


@pytest.mark.parametrize("reason", ["auth", "model_not_found", "bad_request", "quota_exhausted", "rate_limited"])
async def test_refusals_of_a_provider_that_is_there_do_not_open_the_circuit(reason: DropReason) -> None:
    error = BackendError(reason, "no", retryable=reason == "rate_limited")
    provider = Provider([error] * 20)
    with ProviderLimiters().limiter(HERE, RateLimits()) as limiter:
        failures = await ask_all(provider, limiter, 20)
        assert {failure.reason for failure in failures} == {reason}
        waits: list[WaitReason | None] = []
        assert (await ask(provider, limiter, on_wait=waits.append)).text == "Paris"
        assert waits == []


async def test_failures_with_successes_between_them_do_not_open_the_circuit() -> None:
    provider = Provider()
    with ProviderLimiters().limiter(HERE, RateLimits()) as limiter:
        for _ in range(10):
            provider.outcomes = [DOWN]
            await ask(provider, limiter, retries=RetryPolicy(first_wait=0))
    assert len(provider.arrived) == 20


async def test_the_circuit_outlives_the_run_that_opened_it_and_is_forgotten_in_the_end() -> None:
    limiters, provider = ProviderLimiters(LimiterPolicy(first_break=60, memory=30)), Provider(well=False)
    lasting = ProviderLimiters(LimiterPolicy(first_break=60))
    for one in (limiters, lasting):
        with one.limiter(HERE, RateLimits(concurrency=1)) as limiter:
            for _ in range(5):
                with pytest.raises(BackendError):
                    await ask(provider, limiter)
    provider.well = True
    await anyio.sleep(31)
    with lasting.limiter(HERE, RateLimits()) as limiter, pytest.raises(BackendError, match="circuit open"):
        await ask(provider, limiter)
    with limiters.limiter(HERE, RateLimits()) as limiter:
        assert (await ask(provider, limiter)).text == "Paris"
