"""The long harnesses of faults in a short form, each with its known-bad twin, which must fail."""

from dataclasses import replace

import pytest

from massgen_mcp.events.record import LogRecord
from massgen_mcp.runs.engine import event_log
from massgen_mcp.runs.engine.event_log import SEAL_BYTES
from tests.harness import TempHome, home
from tests.needs import needs
from tests.soak.charges import kill_charges
from tests.soak.damage import damage
from tests.soak.kills import twin_of
from tests.soak.one_key import one_key
from tests.soak.power import power_cuts
from tests.soak.storage_faults import storage_faults

__all__ = ["home"]

pytestmark = [pytest.mark.long, pytest.mark.uncounted]  # a fault in what counts the lines would prove nothing


async def test_one_key_from_many_servers_gives_one_run(home: TempHome) -> None:
    assert "1 run, 23 reused" in await one_key(home, clients=4, starts=6)


async def test_looking_before_adding_does_not_give_one_run(home: TempHome) -> None:
    with pytest.raises(AssertionError):
        await one_key(home, clients=4, starts=6, module="tests.soak.naive_server")


@needs("strace")
async def test_death_and_storage_errors_at_random_calls_leave_no_bad_state(home: TempHome) -> None:
    assert "0 bad states" in await storage_faults(home, sample=4, seed=2)


@needs("strace")
async def test_a_journal_that_ignores_errors_is_left_in_a_bad_state(home: TempHome) -> None:
    with pytest.raises(AssertionError, match="run_damaged"):
        await storage_faults(twin_of(home, "careless_journal"), only="EIO once at write", seed=2)


@needs("strace")
async def test_what_was_acknowledged_survives_a_power_cut_and_no_journaled_reply_is_paid_for_twice(
    home: TempHome,
) -> None:
    told = await power_cuts(on_a_disk(home), cuts=0)
    assert told.startswith("2 power cuts: every acknowledged run was there and completed")
    assert " 0 replies" not in told


@needs("strace")
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
    told = await damage(home, truncations=75, flips=75)
    assert "typed error" in told


async def test_a_reader_that_trusts_every_line_tells_something_untrue(
    home: TempHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    def trusting(line: bytes) -> LogRecord | None:
        try:
            return LogRecord.model_validate_json(line[:-SEAL_BYTES] + b"}")
        except ValueError:
            return None

    monkeypatch.setattr(event_log, "unsealed", trusting)
    with pytest.raises(AssertionError):
        await damage(home, truncations=0, flips=1_000)


async def test_a_runner_killed_beside_tools_and_nested_runs_leaves_no_request_uncharged(home: TempHome) -> None:
    told = await kill_charges(home, kills=1, seed=1)
    assert "uncharged 0, overcharged 0" in told
    assert "lost 0" not in told


async def test_a_product_that_charges_nothing_for_lost_calls_is_caught(home: TempHome) -> None:
    with pytest.raises(AssertionError, match=r"uncharged [1-9]"):
        await kill_charges(twin_of(home, "free_losses"), kills=1, seed=1)


def on_a_disk(home: TempHome) -> TempHome:
    """A home that is all there is on its disk, for a model of that."""
    disk = home.path.with_name("disk")
    disk.mkdir()
    return replace(home, path=disk / "home")
