"""Every long harness in a short form, and its known-bad twin, which must fail."""

import math
from dataclasses import replace

import httpx2
import pytest

from massgen_mcp.backends import claude, http, openai_client
from massgen_mcp.events import LogRecord
from massgen_mcp.runs import journal
from massgen_mcp.runs.journal_line import SEAL_BYTES
from tests.harness import TempHome, home
from tests.soak.commands import PATIENCE_SECONDS, by_killing_a_bare_shell, commands, swaps
from tests.soak.damage import damage
from tests.soak.fuzz import fuzz
from tests.soak.http_crowd import http_crowd
from tests.soak.kills import twin_of
from tests.soak.leaks import leaks
from tests.soak.many_runs import many_runs
from tests.soak.one_key import one_key
from tests.soak.power import power_cuts
from tests.soak.slow_first_word import slow_first_word
from tests.soak.storage_faults import storage_faults

__all__ = ["home"]


async def test_one_key_from_many_servers_gives_one_run(home: TempHome) -> None:
    assert "1 run, 23 reused" in await one_key(home, clients=4, starts=6)


async def test_looking_before_adding_does_not_give_one_run(home: TempHome) -> None:
    with pytest.raises(AssertionError):
        await one_key(home, clients=4, starts=6, module="tests.soak.naive_server")


async def test_death_and_storage_errors_at_random_calls_leave_no_bad_state(home: TempHome) -> None:
    assert "0 bad states" in await storage_faults(home, sample=8, seed=2)


async def test_a_journal_that_ignores_errors_is_left_in_a_bad_state(home: TempHome) -> None:
    with pytest.raises(AssertionError, match="run_damaged"):
        await storage_faults(twin_of(home, "careless_journal"), only="EIO once at write", seed=2)


async def test_what_was_acknowledged_survives_a_power_cut_and_no_journaled_reply_is_paid_for_twice(
    home: TempHome,
) -> None:
    told = await power_cuts(on_a_disk(home), cuts=0)
    assert told.startswith("2 power cuts: every acknowledged run was there and completed")
    assert " 0 replies" not in told


@pytest.mark.parametrize(
    ("twin", "told"),
    [("unsynced_journal", "were paid for twice"), ("unsynced_files", "the acknowledged run .* is")],
)
async def test_a_product_that_does_not_sync_loses_something_in_a_power_cut(
    home: TempHome, twin: str, told: str
) -> None:
    with pytest.raises(AssertionError, match=told):
        await power_cuts(twin_of(on_a_disk(home), twin), cuts=0)


async def test_damage_to_one_run_is_told_as_such_and_nobody_else_notices(home: TempHome) -> None:
    told = await damage(home, truncations=150, flips=150)
    assert "typed error" in told


async def test_a_reader_that_trusts_every_line_tells_something_untrue(
    home: TempHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    def trusting(line: bytes) -> LogRecord | None:
        try:
            return LogRecord.model_validate_json(line[:-SEAL_BYTES] + b"}")
        except ValueError:
            return None

    monkeypatch.setattr(journal, "unsealed", trusting)
    with pytest.raises(AssertionError):
        await damage(home, truncations=0, flips=1_000)


async def test_a_model_that_is_long_silent_before_its_first_word_is_asked_once(home: TempHome) -> None:
    assert "1 request each" in await slow_first_word(home, seconds=0.6, limit=60)


async def test_a_client_with_a_limit_of_its_own_on_silence_does_not_wait_for_a_slow_model(
    home: TempHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (http, openai_client, claude):
        monkeypatch.setattr(module, "TIMEOUT", httpx2.Timeout(0.3))
    with pytest.raises(BaseExceptionGroup) as caught:
        await slow_first_word(home, seconds=0.6, limit=60)
    assert "call_timeout_seconds" in str(caught.value.exceptions[0])


async def test_more_runs_than_the_queue_holds_end_or_are_refused(home: TempHome) -> None:
    told = await many_runs(home, runs=60, servers=2, max_running=2, max_queued=5)
    assert "queue_full" in told


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
    assert "untyped 0" in await fuzz(home, calls=400, seed=1, late_seconds=math.inf)


async def test_a_server_with_one_tool_that_tells_failures_in_its_own_words_is_caught(home: TempHome) -> None:
    with pytest.raises(AssertionError, match="untyped: Error executing tool get_result"):
        await fuzz(home, calls=100, seed=1, module="tests.soak.untyped_server", late_seconds=math.inf)


async def test_nothing_of_a_hostile_command_is_left_however_it_ends(home: TempHome) -> None:
    told = await commands(home, each=3, most_seconds=PATIENCE_SECONDS)
    assert "0 left" in told


async def test_a_shell_that_is_only_started_leaves_what_it_started_behind(home: TempHome) -> None:
    harmless = {"session leaver": "setsid sh -c 'sleep 20; : $0' $MARK & sleep 20; : $MARK"}
    with pytest.raises(AssertionError, match="1 of 1 were slow"):
        await commands(
            home, each=1, levels=("sandlock",), most_seconds=5, hostile=harmless, ends={"kill": by_killing_a_bare_shell}
        )


async def test_no_swap_of_a_directory_for_a_link_leads_a_command_out(home: TempHome) -> None:
    assert "0 read or written outside" in await swaps(home, each=1_000)


def on_a_disk(home: TempHome) -> TempHome:
    """A home that is all there is on its disk, for a model of that."""
    disk = home.path.with_name("disk")
    disk.mkdir()
    return replace(home, path=disk / "home")


WARMING_KIB = 100
"""A few dozen runs are not enough for the caches to be warm."""
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
