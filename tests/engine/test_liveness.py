"""Who works on one machine: one runner per set of credentials, heard when it is woken, and gone with its process."""

from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from massgen_mcp.runs.engine import Liveness, NewRun, RunFiles, RunRow, new_run_id
from massgen_mcp.runs.store.opening import LocalEngine
from tests.engine.machine import LocalMachine
from tests.harness import PATIENCE_SECONDS, wait_until

OURS, THEIRS = "fingerprint-ours", "fingerprint-theirs"


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[LocalMachine]:
    made = LocalMachine(tmp_path)
    yield made
    made.close()


@pytest.fixture
def engine(machine: LocalMachine) -> LocalEngine:
    return machine.open()


def test_a_runner_is_alive_while_it_is_held(machine: LocalMachine, engine: LocalEngine) -> None:
    seen = machine.open().liveness
    assert not seen.runner_alive(OURS)
    assert seen.runners() == set()
    with engine.liveness.hold(OURS) as held:
        assert held
        assert (seen.runner_alive(OURS), seen.runner_alive(THEIRS)) == (True, False)
    assert not seen.runner_alive(OURS)
    assert seen.runners() == {OURS}


def test_there_is_one_runner_per_set_of_credentials(machine: LocalMachine, engine: LocalEngine) -> None:
    another = machine.open().liveness
    with engine.liveness.hold(OURS), engine.liveness.listen(OURS):
        with another.hold(OURS) as held:
            assert not held
        assert another.runner_alive(OURS), "the first one still is"
        with another.hold(THEIRS) as held:
            assert held
    with another.hold(OURS) as held:
        assert held


async def test_a_runner_that_listens_is_woken_and_one_that_left_refuses(
    machine: LocalMachine, engine: LocalEngine
) -> None:
    caller = machine.open().liveness
    assert not caller.wake(OURS)
    with engine.liveness.hold(OURS):
        assert not caller.wake(OURS), "it does not listen yet"
        with engine.liveness.listen(OURS) as listening:
            for _ in range(2):
                assert caller.wake(OURS)
                assert caller.wake(OURS)
                caller.ensure_runner(OURS, {})
                await listening.woken()
            with pytest.raises(TimeoutError), anyio.fail_after(0.05):
                await listening.woken()
            assert not caller.wake(THEIRS)
        assert not caller.wake(OURS)


async def test_who_follows_a_run_is_told_by_the_runner_whose_turn_it_is(
    machine: LocalMachine, engine: LocalEngine
) -> None:
    row = engine.store.queue.add(NewRun(new_run_id(), "q", "config", OURS, "hash")).row
    seen, run = machine.open().liveness, engine.files.of(row)
    with seen.following(row, run) as nobody:
        assert nobody is None
    news = engine.liveness.runner_news(OURS, {})
    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(news.serve)
            await wait_until(lambda: _has_host(seen, row, run))
            with seen.following(row, run) as all_of_it, seen.following(row, run, milestones=True) as milestones:
                assert all_of_it
                assert milestones
                assert await all_of_it.changed(), "it is attached"
                assert await milestones.changed()
                news.tell("another run")
                news.tell(row.run_id, milestone=False)
                assert await all_of_it.changed()
                with pytest.raises(TimeoutError), anyio.fail_after(0.05):
                    await milestones.changed()
                machine.open().liveness.announce(row, run)
                await news.woken()
                assert await milestones.changed()
                tasks.cancel_scope.cancel()
        with seen.following(row, run) as nobody:
            assert nobody is None


def _has_host(liveness: Liveness, row: RunRow, run: RunFiles) -> bool:
    with liveness.following(row, run) as follower:
        return follower is not None


def test_a_run_in_the_foreground_is_alive_while_it_is_held(machine: LocalMachine, engine: LocalEngine) -> None:
    run, seen = machine.own_files("own"), machine.open().liveness
    assert not seen.foreground_alive(run)
    with engine.liveness.hold_foreground(run):
        assert seen.foreground_alive(run)
        assert not seen.foreground_alive(machine.own_files("another"))
    assert not seen.foreground_alive(run)


def test_a_killed_process_is_gone_at_once_and_what_it_was_told_is_durable_stays(
    machine: LocalMachine, engine: LocalEngine
) -> None:
    run_id = new_run_id()
    with machine.process(OURS, run_id) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "ready\n"
            row = engine.store.index.get(run_id)
            run, liveness = engine.files.of(row), engine.liveness
            assert (liveness.runner_alive(OURS), liveness.wake(OURS), liveness.foreground_alive(run)) == (True,) * 3
        finally:
            process.kill()
            process.wait()
    assert (liveness.runner_alive(OURS), liveness.wake(OURS), liveness.foreground_alive(run)) == (False,) * 3
    assert engine.store.index.get(run_id) == row
    texts = [getattr(record.event, "text", "") for record in run.event_log.read()]
    assert texts[:2] == ["settled", "settled, too"]
    with machine.open().liveness.hold(OURS) as held:
        assert held
