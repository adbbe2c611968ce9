"""A run moves at any moment: frozen workers, messages that nobody has heard, a queue, imports that meet."""

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anyio
import pytest
from mcp.types import TextResourceContents

from tests.changes.conftest import Repository, repository
from tests.harness import (
    PATIENCE_SECONDS,
    RUNNER_MODULE,
    TempHome,
    after,
    agent,
    call,
    end,
    happened,
    home,
    poll_until,
)
from tests.moving.stores import Stored, stored
from tests.moving.test_moved_away import ASK
from tests.moving.test_moving import of_log, two, write
from tests.needs import needs

__all__ = ["home", "repository", "two"]

pytestmark = pytest.mark.uncounted


@pytest.fixture
def out(home: TempHome) -> Iterator[tuple[Stored, Stored]]:
    """From PostgreSQL to a state directory."""
    with stored(home, "cluster", "here") as first, stored(home, "embedded", "there") as second:
        yield first, second


def freeze(where: Stored) -> list[int]:
    """Whoever executes runs there does nothing from now on."""
    frozen = [one.pid for one in where.cluster.workers] if where.cluster else where.home.processes(RUNNER_MODULE)
    for pid in frozen:
        end(pid, signal.SIGSTOP)
    return frozen


@needs("postgres")
def test_a_worker_that_was_frozen_while_its_run_left_writes_nothing_when_it_wakes_up(
    out: tuple[Stored, Stored],
) -> None:
    here, there = out
    assert here.cluster is not None
    gate, work = here.home.work / "gate", here.home.work
    here.work()
    run_id = here.start(here.home.config("waits", agent("a", {"answer": "42", **after(gate)})))
    poll_until(lambda: here.told("status", run_id)["status"] == "running")
    freeze(here)
    here.verb("export", run_id, "--to", work / "left.tar.gz")
    there.verb("import", work / "left.tar.gz")
    gate.touch()
    there.verb("wait", run_id)
    (woken,) = here.cluster.workers
    woken.send(signal.SIGCONT)
    poll_until(lambda: "ended with status" in woken.log.read_text())
    other = here.start(here.home.config("plain", agent("a", {"answer": "1"})))
    here.verb("wait", other)  # it works again
    here.verb("export", run_id, "--to", work / "later.tar.gz")
    assert of_log(work / "later.tar.gz", run_id) == of_log(work / "left.tar.gz", run_id)
    assert here.told("status", run_id)["status"] == "interrupted"
    assert there.told("result", run_id)["answer"] == "42"


@needs("postgres")
def test_a_worker_that_others_gave_up_writes_nothing_of_a_run_that_has_left_meanwhile(
    out: tuple[Stored, Stored],
) -> None:
    here, _ = out
    assert here.cluster is not None
    gate, work = here.home.work / "gate", here.home.work
    here.work()
    run_id = here.start(here.home.config("waits", agent("a", {"answer": "42", **after(gate)})))
    poll_until(lambda: here.told("status", run_id)["status"] == "running")
    freeze(here)
    exporting = ThreadPoolExecutor(1).submit(here.verb, "export", run_id, "--to", work / "left.tar.gz")
    here.work()  # this worker finds that the run of the first one is lost, long before the export gives it up
    exporting.result()
    gate.touch()
    woken, _ = here.cluster.workers
    woken.send(signal.SIGCONT)
    poll_until(lambda: "ended with status" in woken.log.read_text())
    here.verb("export", run_id, "--to", work / "later.tar.gz")
    assert of_log(work / "later.tar.gz", run_id) == of_log(work / "left.tar.gz", run_id)


@needs("postgres")
def test_a_queued_run_leaves_postgresql_with_the_directories_that_it_was_given(
    out: tuple[Stored, Stored], repository: Repository
) -> None:
    here, there = out
    repository.commit(**{"old.txt": "old\n"})
    file = here.home.work / "run.tar.gz"
    makers = agent("ada", write("project/old.txt", "new\n"), {"answer": "made"})
    run_id = here.start(here.home.config("makers", makers), "--context", str(repository.path))
    assert here.told("status", run_id)["status"] == "queued", "nobody executes runs there"
    here.verb("export", run_id, "--to", file)
    (repository.path / "old.txt").rename(repository.path.parent / "away.txt")
    assert f"{run_id}: imported, queued" in there.verb("import", file)
    there.verb("wait", run_id)
    assert "+new" in there.told("result", run_id, "--view", "diff")["answer"]
    here.work()
    other = here.start(here.home.config("plain", agent("a", {"answer": "1"})))
    here.verb("wait", other)
    assert here.told("status", run_id)["status"] == "interrupted", "it does not begin here any more"


async def test_what_nobody_has_heard_yet_moves_with_the_run_and_is_heard_there(two: tuple[Stored, Stored]) -> None:
    """A message to the team, and the answer to an agent's question."""
    here, there = two
    gate, work = here.home.work / "gate", here.home.work
    waits: dict[str, Any] = {"answer": "42", **after(gate)}
    here.work()
    steered = here.start(here.home.config("waits", agent("a", waits), agent("b", waits)))
    asking = here.start(
        here.home.config("asks", agent("solo", ASK, {"answer": "42"}), orchestrator={"allow_questions": True})
    )
    poll_until(lambda: here.told("status", asking)["status"] == "input_required")
    poll_until(lambda: here.told("status", steered)["status"] == "running")
    freeze(here)
    async with here.home.client() as client:
        await call(client, "control_run", run_id=steered, action="steer", message="Mind the units.")
    here.verb("answer", asking, "In metres.")
    here.kill()
    there.work()
    for run_id in (steered, asking):
        file = work / f"{run_id}.tar.gz"
        here.verb("export", run_id, "--to", file)
        assert not {"asker_said", "input_given"} & {one["type"] for one in of_log(file, run_id)}
        there.verb("import", file)
    async with there.home.client() as client:
        for run_id, kind, text in ((steered, "asker_said", "Mind the units."), (asking, "input_given", "In metres.")):
            told = ""
            with anyio.fail_after(PATIENCE_SECONDS):
                while text not in told or kind not in told:
                    (events,) = (await client.read_resource(f"massgen://runs/{run_id}/events")).contents
                    assert isinstance(events, TextResourceContents)
                    told = events.text
    gate.touch()
    for run_id in (steered, asking):
        there.verb("wait", run_id)
        assert there.told("result", run_id)["answer"] == "42"


async def test_a_message_to_a_run_that_was_imported_a_moment_ago_is_heard_there(two: tuple[Stored, Stored]) -> None:
    """By agents that were asked before it moved; also where nobody executes it yet, and it ends in no time."""
    here, there = two
    gate, file = here.home.work / "gate", here.home.work / "run.tar.gz"
    waits: dict[str, Any] = {"answer": "42", **after(gate)}
    here.work()
    run_id = here.start(here.home.config("waits", agent("a", waits), agent("b", waits)))
    poll_until(lambda: here.told("status", run_id)["status"] == "running")
    here.verb("export", run_id, "--to", file)
    there.verb("import", file)
    async with there.home.client() as client:
        await call(client, "control_run", run_id=run_id, action="steer", message="Mind the units.")
    if there.cluster is None:  # a runner goes on with it as soon as it is there
        poll_until(lambda: happened(there.home.run_directory(run_id), "asker_said"))
    gate.touch()
    there.work()
    there.verb("wait", run_id)
    there.verb("export", run_id, "--to", file.with_name("ended.tar.gz"))
    told = of_log(file.with_name("ended.tar.gz"), run_id)
    assert [one["message"] for one in told if one["type"] == "asker_said"] == ["Mind the units."]
    assert there.told("result", run_id)["answer"] == "42"


@pytest.mark.parametrize("kind", ["embedded", pytest.param("cluster", marks=needs("postgres"))])
def test_of_two_imports_of_a_file_at_once_one_takes_the_run_in_and_the_other_finds_it(
    home: TempHome, kind: str
) -> None:
    with stored(home, "embedded", "here") as here, stored(home, kind, "there") as there:
        gate, file = home.work / "gate", home.work / "run.tar.gz"
        run_id = here.start(home.config("waits", agent("a", {"answer": "42", **after(gate)})))
        poll_until(lambda: here.told("status", run_id)["status"] == "running")
        here.verb("export", run_id, "--to", file)
        other = Stored(there.cluster.machine("other").home) if there.cluster else there
        with ThreadPoolExecutor() as threads:
            importing = [threads.submit(place.verb, "import", file) for place in (there, other)]
            said = sorted(one.result() for one in importing)
        assert said[0].startswith(f"{run_id}: here already")
        assert said[1].startswith(f"{run_id}: imported, interrupted")
        there.work()
        gate.touch()
        there.verb("wait", run_id)
        assert there.told("result", run_id)["answer"] == "42"
        assert len(there.told("runs")["runs"]) == 1
