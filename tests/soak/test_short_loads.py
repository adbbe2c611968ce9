"""The long harnesses of load in a short form, each with its known-bad twin, which must fail."""

import math
from dataclasses import replace

import httpx2
import pytest

from massgen_mcp.backends import chatcompletion, claude, http
from tests.harness import TempHome, home
from tests.soak.fuzz import fuzz
from tests.soak.http_crowd import http_crowd
from tests.soak.leaks import leaks
from tests.soak.long_work import long_work
from tests.soak.many_runs import many_runs
from tests.soak.slow_first_word import slow_first_word

__all__ = ["home"]

pytestmark = [pytest.mark.long, pytest.mark.uncounted]


async def test_a_model_that_is_long_silent_before_its_first_word_is_asked_once(home: TempHome) -> None:
    assert "1 request each" in await slow_first_word(home, seconds=0.6, limit=60)


async def test_a_client_with_a_limit_of_its_own_on_silence_does_not_wait_for_a_slow_model(
    home: TempHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (http, chatcompletion, claude):
        monkeypatch.setattr(module, "TIMEOUT", httpx2.Timeout(0.3))
    with pytest.raises(BaseExceptionGroup) as caught:
        await slow_first_word(home, seconds=0.6, limit=60)
    assert "call_timeout_seconds" in str(caught.value.exceptions[0])


async def test_more_runs_than_the_queue_holds_end_or_are_refused(home: TempHome) -> None:
    told = await many_runs(home, runs=60, servers=2, max_running=2, max_queued=5)
    assert "queue_full" in told


async def test_work_that_is_longer_than_the_window_outlasts_its_runner(home: TempHome) -> None:
    assert "patch of 1 file" in await long_work(home, windows=(32_000,), steps=20, kills=2)


async def test_a_runner_and_a_server_keep_nothing_of_the_runs_that_ended(home: TempHome) -> None:
    alone = replace(home, starts_anew=True)  # the memory of a copy grows with every page that it shares and touches
    assert "zombies 0" in await leaks(alone, runs=40, batch=10, most_kib=WARMING_KIB)


@pytest.mark.parametrize(
    ("deed", "told"), [("pass", "open files"), ("kept.append(b'x' * 2**20); real(fd)", "KiB a run")]
)
async def test_a_runner_that_keeps_something_of_every_run_is_caught(home: TempHome, deed: str, told: str) -> None:
    hook = home.work / "hook"
    hook.mkdir()
    (hook / "sitecustomize.py").write_text(LEAKING.format(deed=deed))
    with pytest.raises(AssertionError, match=told):
        await leaks(home.with_variables(PYTHONPATH=str(hook)), runs=20, batch=10, most_kib=WARMING_KIB)


async def test_every_client_over_http_gets_its_own_answers(home: TempHome) -> None:
    assert "0 errors, 0 of others; bare SDK" in await http_crowd(home, clients=8, seconds=2, turns=1)


async def test_a_server_that_mixes_answers_up_is_caught(home: TempHome) -> None:
    with pytest.raises(AssertionError, match=r"ours: .* [1-9]\d* of others; bare SDK"):
        await http_crowd(home, clients=4, seconds=2, turns=1, module="tests.soak.mixing_server")


async def test_every_answer_to_fuzzed_calls_is_a_result_or_a_typed_error(home: TempHome) -> None:
    assert "untyped 0" in await fuzz(home, calls=200, seed=1, late_seconds=math.inf)


async def test_a_server_with_one_tool_that_tells_failures_in_its_own_words_is_caught(home: TempHome) -> None:
    with pytest.raises(AssertionError, match="untyped: Error executing tool get_result"):
        await fuzz(home, calls=100, seed=1, module="tests.soak.untyped_server", late_seconds=math.inf)


WARMING_KIB = 300
"""A few dozen runs are not enough for the caches to be warm; the twin keeps 1,024 of every run."""
LEAKING = """
import os
real, kept = os.close, []
def close(fd):
    if os.readlink(f"/proc/self/fd/{{fd}}").endswith("events.jsonl"):
        {deed}
    else:
        real(fd)
os.close = close
"""
