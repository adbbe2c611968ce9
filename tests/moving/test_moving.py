"""A run moves from one store to another: ended or going on, killed or not; nothing is lost, and nothing paid twice."""

import json
import signal
import sqlite3
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from massgen_mcp.home import find_home
from massgen_mcp.redaction import NO_KEYS
from massgen_mcp.runs.engine import NewRun, new_run_id
from massgen_mcp.runs.moving import move_out
from massgen_mcp.runs.store.opening import local_engine
from massgen_mcp.runs.view.run_view import RunWatch
from tests.changes.conftest import Repository, repository
from tests.harness import (
    RUNNER_MODULE,
    SERVER_MODULE,
    TempHome,
    after,
    agent,
    call,
    end,
    events_of,
    happened,
    home,
    poll_until,
)
from tests.model_servers import acting_server
from tests.moving.stores import Stored, stored
from tests.needs import needs

__all__ = ["home", "repository"]

pytestmark = pytest.mark.uncounted

WAYS = [
    ("embedded", "embedded"),
    pytest.param(("embedded", "cluster"), marks=needs("postgres")),
    pytest.param(("cluster", "embedded"), marks=needs("postgres")),
]


@pytest.fixture(params=WAYS, ids="-to-".join)
def two(request: pytest.FixtureRequest, home: TempHome) -> Iterator[tuple[Stored, Stored]]:
    here, there = request.param
    with stored(home, here, "here") as first, stored(home, there, "there") as second:
        yield first, second


@pytest.fixture
def homes(home: TempHome) -> Iterator[tuple[Stored, Stored]]:
    with stored(home, "embedded", "here") as first, stored(home, "embedded", "there") as second:
        yield first, second


def write(path: str, content: str) -> dict[str, Any]:
    return {"call": "write_file", "arguments": {"path": path, "content": content}}


def of_log(file: Path, run_id: str) -> list[dict[str, Any]]:
    """The events in a file."""
    with tarfile.open(file) as archive:
        lines = archive.extractfile(f"{run_id}/events.jsonl")
        assert lines is not None
        return [json.loads(line)["event"] for line in lines]


def test_an_ended_run_answers_in_another_store_as_it_did_and_its_patch_applies(
    two: tuple[Stored, Stored], repository: Repository
) -> None:
    here, there = two
    repository.commit(**{"old.txt": "old\n", "left.txt": "left\n"})
    steps = [write("project/old.txt", "new\n"), {"answer": "made"}]
    paths = [{"path": str(repository.path), "permission": "write"}]
    given = ("--context", str(repository.path)) if here.cluster else ()
    settings = {} if here.cluster else {"orchestrator": {"context_paths": paths}}
    config = here.home.config("makers", agent("ada", *steps), agent("bob", {"answer": "other"}), **settings)
    here.work()
    run_id = here.start(config, *given)
    here.verb("wait", run_id)
    here.verb("mark", run_id, "right")
    file = here.home.work / "run.tar.gz"
    assert here.told("export", run_id, "--to", file) == {
        "run_id": run_id,
        "file": str(file),
        "moved": False,
        "notes": [],
    }
    assert there.told("import", file) == {"run_id": run_id, "state": "completed", "known": False, "notes": []}
    for view in ("full", "votes", "diff"):
        before, now = (place.told("result", run_id, "--view", view) for place in two)
        for told in (before, now):
            told.pop("paths", None)  # others in each store
        assert now == before
    assert there.told("stats")["figures"] == here.told("stats")["figures"]
    assert "made" in Path(there.verb("report", run_id).strip()).read_text()
    assert here.told("status", run_id)["status"] == "completed", "it is there, too"
    there.verb("apply", run_id)
    assert (repository.path / "old.txt").read_text() == "new\n"
    assert there.verb("import", file) == f"{run_id}: here already, completed\n"


@pytest.mark.parametrize("killed", [False, True], ids=["stopped", "killed"])
async def test_a_run_that_goes_on_moves_and_no_reply_that_was_paid_is_paid_again(
    two: tuple[Stored, Stored], *, killed: bool
) -> None:
    here, there = two
    gate, file = here.home.work / "gate", here.home.work / "run.tar.gz"

    def moved(url: str, requests: list[Any]) -> None:
        paid = {"id": "paid", "backend": {"type": "vllm", "base_url": url}}
        slow = agent("slow", write("notes.txt", "kept"), {"answer": "42", **after(gate)})
        config = here.home.config("both", paid, slow, orchestrator={"enable_filesystem": True})
        here.work()
        run_id = here.start(config, "--idempotency-key", "the key") if here.cluster else here.start(config)
        poll_until(lambda: any("1 answer" in line for line in here.told("status", run_id)["agents"]))
        if killed:
            here.kill()
        assert "moved to" in here.verb("export", run_id, "--to", file)
        if not killed and here.cluster is None:
            poll_until(lambda: not here.home.processes(RUNNER_MODULE))
        asked = len(requests)
        standing = here.told("status", run_id)
        assert standing["status"] == "interrupted"
        assert f"moved to {file}" in standing["reason"]
        for verb in ("resume", "cancel"):
            assert f"moved to {file}" in here.verb(verb, run_id, code=1)
        watched = here.verb("watch", run_id, "--plain", code=4)
        assert f"The run was moved to {file}" in watched
        assert "massgen resume" not in watched, "that would be refused"
        there.work()
        assert f"{run_id}: imported, interrupted" in there.verb("import", file, "--trust")
        assert there.told("import", file)["known"], "there is one run, however often it is imported"
        gate.touch()
        there.verb("wait", run_id)
        done = there.told("result", run_id)
        assert (done["status"], done["resumed"]) == ("completed", 1)
        home_again = here.home.work / "ended.tar.gz"
        there.verb("export", run_id, "--to", home_again)
        had, have = (
            [
                one["call_id"]
                for one in of_log(log, run_id)
                if (one["type"], one.get("agent")) == ("model_replied", "agent_a")
            ]
            for log in (file, home_again)
        )
        assert have[: len(had)] == had
        assert len(set(have)) == len(have)
        assert len(requests) - asked == len(have) - len(had), "what it had was not asked for again"
        assert "the file is older than run" not in here.verb("import", home_again)
        assert here.told("result", run_id)["answer"] == there.told("result", run_id)["answer"], "its end came home"

    async with acting_server("vllm") as server:
        await anyio.to_thread.run_sync(moved, server.url, server.requests)


def test_a_run_of_the_code_goes_on_in_another_store_with_its_files(
    two: tuple[Stored, Stored], repository: Repository
) -> None:
    here, there = two
    repository.commit(**{"old.txt": "old\n", "left.txt": "left\n"})
    gate, file = here.home.work / "gate", here.home.work / "run.tar.gz"
    look = {"call": "read_file", "arguments": {"path": "project/left.txt"}}
    steps = [write("project/old.txt", "new\n"), {**look, **after(gate)}, {"answer": "made"}]
    paths = [{"path": str(repository.path), "permission": "write"}]
    given = ("--context", str(repository.path)) if here.cluster else ()
    settings = {} if here.cluster else {"orchestrator": {"context_paths": paths}}
    here.work()
    run_id = here.start(here.home.config("makers", agent("ada", *steps), **settings), *given)
    poll_until(lambda: here.told("status", run_id)["model_calls"] == 1)
    here.verb("export", run_id, "--to", file)
    objects = repository.path / ".git" / "objects"
    objects.rename(objects.with_name("away"))  # nothing of it is needed any more
    there.work()
    there.verb("import", file)
    gate.touch()
    there.verb("wait", run_id)
    assert "+new" in there.told("result", run_id, "--view", "diff")["answer"]
    other = here.home.work / "checkout"
    other.mkdir()
    (other / "old.txt").write_text("old\n")
    there.verb("apply", run_id, "--directory", other)
    assert (other / "old.txt").read_text() == "new\n"


def test_a_run_that_has_not_begun_moves_with_the_directories_that_it_was_given(
    homes: tuple[Stored, Stored], repository: Repository
) -> None:
    here, there = homes
    repository.commit(**{"old.txt": "old\n"})
    gate, file = here.home.work / "gate", here.home.work / "run.tar.gz"
    busy = Stored(here.home.with_variables(MASSGEN_MCP_MAX_RUNNING="1"))
    first = busy.start(here.home.config("waits", agent("one", {"answer": "1", **after(gate)})))
    poll_until(lambda: busy.told("status", first)["status"] == "running")
    paths = [{"path": str(repository.path), "permission": "write"}]
    makers = agent("ada", write("project/old.txt", "new\n"), {"answer": "made"})
    run_id = busy.start(here.home.config("makers", makers, orchestrator={"context_paths": paths}))
    assert busy.told("status", run_id)["status"] == "queued"
    busy.verb("export", run_id, "--to", file)
    (repository.path / "old.txt").rename(repository.path.parent / "away.txt")
    assert f"{run_id}: imported, queued" in there.verb("import", file)
    there.verb("wait", run_id)
    assert "+new" in there.told("result", run_id, "--view", "diff")["answer"]
    gate.touch()
    busy.verb("wait", first)
    assert busy.told("status", run_id)["status"] == "interrupted", "it does not begin here any more"


def test_runs_that_are_nested_come_along(two: tuple[Stored, Stored]) -> None:
    here, there = two
    gate, file = here.home.work / "gate", here.home.work / "run.tar.gz"
    team = {"agents": [agent("inner", {"answer": "so", **after(gate)})]}
    steps: list[dict[str, Any]] = [
        write("team.json", json.dumps(team)),
        {"call": "delegate", "arguments": {"question": "Is it so?", "config": "team.json"}},
        {"call": "get_status", "arguments": {"wait_seconds": 40}},
        {"call": "get_result", "arguments": {}},
        {"answer": "done"},
    ]
    nested = {"max_depth": 1, "max_runs": 1, "share_of_budget": 0.5}
    here.work()
    run_id = here.start(here.home.config("outer", agent("solo", *steps), nested=nested))
    poll_until(lambda: len(here.told("runs")["runs"]) == 2)
    (inner,) = [one["run_id"] for one in here.told("runs")["runs"] if one["run_id"] != run_id]
    poll_until(lambda: here.told("status", inner)["status"] == "running")
    assert f"is nested in {run_id}" in here.verb("export", inner, "--to", file, code=1)
    here.verb("export", run_id, "--to", file)
    assert here.told("status", inner)["status"] == "interrupted"
    there.work()
    there.verb("import", file)
    gate.touch()
    there.verb("wait", run_id)
    assert there.told("result", run_id)["answer"] == "done"
    assert there.told("result", inner)["answer"] == "so"
    assert len(there.told("runs")["runs"]) == 2, "no second one was started"


def test_a_run_comes_back_only_as_it_left_or_later(homes: tuple[Stored, Stored]) -> None:
    here, there = homes
    gate, work = here.home.work / "gate", here.home.work
    run_id = here.start(
        here.home.config("waits", agent("a", {"answer": "1"}), agent("b", {"answer": "2", **after(gate)}))
    )
    poll_until(lambda: here.told("status", run_id)["model_calls"] == 1)
    here.verb("export", run_id, "--to", work / "first.tar.gz")
    here.verb("export", run_id, "--to", work / "again.tar.gz")
    assert "is there already" in here.verb("export", run_id, "--to", work / "again.tar.gz", code=1)
    for lost in here.home.path.glob("runs.sqlite3*"):
        lost.unlink()
    rebuilt = here.verb("doctor", "--rebuild")
    assert "1 runs are back in the list" in rebuilt
    assert "to continue these runs" not in rebuilt
    assert f"moved to {work / 'again.tar.gz'}" in here.verb("resume", run_id, code=1), "its row is not all that says so"
    assert "with --back" in here.verb("import", work / "first.tar.gz", code=1)
    assert "imported, interrupted" in here.verb("import", work / "again.tar.gz", "--back", "--yes")
    poll_until(lambda: here.told("status", run_id)["status"] == "running")
    here.verb("export", run_id, "--to", work / "second.tar.gz")
    there.verb("import", work / "second.tar.gz")
    poll_until(lambda: there.told("status", run_id)["status"] == "running")
    there.verb("export", run_id, "--to", work / "third.tar.gz")
    assert "the file is older than run" in there.verb("import", work / "first.tar.gz", "--back", code=1)
    assert "imported, interrupted" in here.verb("import", work / "third.tar.gz")
    gate.touch()
    here.verb("wait", run_id)
    assert there.told("status", run_id)["status"] == "interrupted"


def test_a_run_whose_file_cannot_be_written_goes_on_where_it_is(homes: tuple[Stored, Stored]) -> None:
    here, _ = homes
    gate = here.home.work / "gate"
    run_id = here.start(here.home.config("waits", agent("a", {"answer": "1", **after(gate)})))
    poll_until(lambda: here.told("status", run_id)["status"] == "running")
    here.verb("export", run_id, "--to", here.home.work / "none" / "run.tar.gz", code=1)
    assert here.told("status", run_id)["status"] == "running", "nothing has happened yet"
    (here.home.run_directory(run_id) / "turn_1").mkdir(exist_ok=True)
    (here.home.work / "run.tar.gz").parent.joinpath(".run.tar.gz.new").mkdir()  # what it is written to first
    here.verb("export", run_id, "--to", here.home.work / "run.tar.gz", code=5)
    gate.touch()
    here.verb("wait", run_id)


def begin_export(here: Stored, run_id: str, file: Path) -> subprocess.Popen[bytes]:
    """Return the process of an export that has marked its run and waits for the runner to leave it."""
    command = [here.home.python, "-m", SERVER_MODULE, "export", run_id, "--to", str(file)]
    exporting = subprocess.Popen(command, env=here.home.environ, stderr=subprocess.DEVNULL)

    def is_marked() -> bool:
        with closing(sqlite3.connect(here.home.path / "runs.sqlite3")) as rows:
            return rows.execute("SELECT kept FROM runs WHERE run_id = ?", (run_id,)).fetchone() == ("moved",)

    poll_until(is_marked)
    return exporting


@pytest.mark.parametrize("ending", ["time", "SIGINT", "SIGTERM"])
def test_a_run_whose_export_ended_before_its_file_was_complete_goes_on_here(
    homes: tuple[Stored, Stored], ending: str
) -> None:
    here, _ = homes
    gate, file = here.home.work / "gate", here.home.work / "run.tar.gz"
    run_id = here.start(here.home.config("waits", agent("a", {"answer": "42", **after(gate)})))
    poll_until(lambda: happened(here.home.run_directory(run_id), "model_call_started"))
    (runner,) = here.home.processes(RUNNER_MODULE)
    end(runner, signal.SIGSTOP)  # it cannot leave the run
    if ending == "time":
        assert f"process {runner} is still executing run {run_id}" in here.verb("export", run_id, "--to", file, code=2)
    else:
        exporting = begin_export(here, run_id, file)
        exporting.send_signal(signal.Signals[ending])
        assert exporting.wait(30) == 130
    assert not file.exists()
    gate.touch()
    end(runner, signal.SIGCONT)
    here.verb("wait", run_id)
    assert here.told("result", run_id)["answer"] == "42"


def test_a_second_import_of_a_run_that_goes_on_is_refused_where_it_can_be_seen(homes: tuple[Stored, Stored]) -> None:
    here, there = homes
    gate, file = here.home.work / "gate", here.home.work / "run.tar.gz"
    run_id = here.start(here.home.config("waits", agent("a", {"answer": "42", **after(gate)})))
    poll_until(lambda: here.told("status", run_id)["status"] == "running")
    here.verb("export", run_id, "--to", file)
    assert "If you haven't imported it anywhere else, repeat the command with --back --yes" in here.verb(
        "import", file, "--back", code=1
    ), "it may go on elsewhere"
    there.verb("import", file)
    assert "here already" in there.verb("import", file), "the same store may be asked again"
    with stored(here.home, "embedded", "third") as third:
        refused = third.verb("import", file, code=1)
        assert f"run {run_id} was imported from {file} into {there.home.path} on " in refused
        assert "Export it from there; if it is lost, repeat the command with --yes" in refused
        assert third.told("runs")["runs"] == []
        file.with_name("run.tar.gz.imported").unlink()
        file.with_name(".run.tar.gz.imported.new").mkdir()  # as in a directory that cannot be written
        assert "), so other stores could import it too" in third.verb("import", file, code=1)
        assert "imported, interrupted" in third.verb("import", file, "--yes")
    gate.touch()
    there.verb("wait", run_id)
    there.verb("export", run_id, "--to", file.with_name("ended.tar.gz"))
    here.verb("import", file.with_name("ended.tar.gz"))
    assert here.told("result", run_id)["answer"] == "42", "copies of an ended run need no yes"


def test_an_export_or_import_that_was_killed_can_be_done_again(homes: tuple[Stored, Stored]) -> None:
    """As the store and the files are left by a process that ends between any two of its steps."""
    here, there = homes
    gate, file = here.home.work / "gate", here.home.work / "run.tar.gz"
    run_id = here.start(here.home.config("waits", agent("a", {"answer": "1", **after(gate)})))
    poll_until(lambda: here.told("status", run_id)["status"] == "running")
    (runner,) = here.home.processes(RUNNER_MODULE)
    end(runner, signal.SIGSTOP)  # the run is marked, and nobody leaves it
    killed = begin_export(here, run_id, file)
    killed.kill()
    killed.wait()
    end(runner, signal.SIGKILL)
    poll_until(lambda: not here.home.processes(RUNNER_MODULE))
    assert here.told("status", run_id)["status"] == "interrupted"
    here.verb("resume", run_id, code=1)
    here.verb("export", run_id, "--to", file)
    half = there.home.path / "runs" / run_id  # what was unpacked, before there was a row
    half.mkdir(parents=True)
    (half / "events.jsonl").write_text("torn")
    (there.home.path / "moving" / "rest").mkdir(parents=True)
    there.verb("import", file)
    gate.touch()
    there.verb("wait", run_id)
    assert next(one["type"] for one in events_of(half)) == "run_started"


async def test_a_run_has_its_key_in_the_other_store_or_it_is_said_and_may_be_given_to_a_person(
    homes: tuple[Stored, Stored],
) -> None:
    here, there = homes
    config, work = here.home.config("plain", agent("a", {"answer": "1"})), here.home.work
    given = {"question": "six times seven?", "config": config, "wait_seconds": 40, "idempotency_key": "the key"}
    ids = list[str]()
    for number in range(2):
        own = Stored(replace(here.home, path=here.home.path.with_name(f"own-{number}")))
        async with own.home.client() as client:
            ids.append((await call(client, "start_run", **given))["run_id"])
        own.verb("wait", ids[-1])
        own.verb("export", ids[-1], "--to", work / f"{number}.tar.gz")
        own.home.close()
    assert "another run" not in there.verb("import", work / "0.tar.gz")
    assert "The run lost its idempotency key, since another run here has the same key" in there.verb(
        "import", work / "1.tar.gz"
    )
    async with there.home.client() as client:
        again = await call(client, "start_run", **given)
        assert (again["run_id"], again["reused"]) == (ids[0], True)
    with stored(here.home, "embedded", "of-people") as people:
        people.verb("import", work / "0.tar.gz", "--owner", "ann")
        people.verb("mark", ids[0], "right")
        assert ids[0] in people.verb("audit", "--run", ids[0]), "what is done to a person's run is noted"


def test_a_run_without_its_keys_waits_in_the_other_store_until_somebody_resumes_it(
    homes: tuple[Stored, Stored],
) -> None:
    here, there = homes
    gate, file = here.home.work / "gate", here.home.work / "run.tar.gz"
    keyed = Stored(here.home.with_variables(MISTRAL_API_KEY="planted-key-of-this-test-0001"))
    needing = {"id": "far", "backend": {"type": "mistral", "model": "m"}}
    config = here.home.config("keyed", agent("a", {"answer": "1", **after(gate)}), needing)
    run_id = keyed.start(config)
    poll_until(lambda: keyed.told("status", run_id)["status"] in ("running", "interrupted"))
    told = keyed.verb("export", run_id, "--to", file)
    assert "with MISTRAL_API_KEY set" in told
    assert "planted-key" not in told
    assert "MISTRAL_API_KEY" in there.verb("import", file)
    standing = there.told("status", run_id)
    assert (standing["status"], "MISTRAL_API_KEY" in standing["reason"]) == ("interrupted", True)


def test_what_a_user_asked_of_a_run_just_before_its_export_is_done_in_the_other_store(
    homes: tuple[Stored, Stored],
) -> None:
    here, there = homes
    gate, file = here.home.work / "gate", here.home.work / "run.tar.gz"
    run_id = here.start(here.home.config("waits", agent("a", {"answer": "42", **after(gate)})))
    poll_until(lambda: happened(here.home.run_directory(run_id), "model_call_started"))
    (runner,) = here.home.processes(RUNNER_MODULE)
    end(runner, signal.SIGSTOP)  # it does not hear of it any more
    engine = local_engine(find_home(here.home.environ))
    engine.store.controls.request(run_id, "steer", "Use metric units.")
    engine.close()
    here.kill()
    here.verb("export", run_id, "--to", file)
    there.verb("import", file)
    gate.touch()
    there.verb("wait", run_id)
    events = [event for event in events_of(there.home.run_directory(run_id)) if event["type"] == "asker_said"]
    assert [event["message"] for event in events] == ["Use metric units."]


def test_a_run_that_begins_inside_one_while_that_is_exported_leaves_with_it(homes: tuple[Stored, Stored]) -> None:
    """Between the look at what is executed and the decision that nothing is."""
    here, _ = homes
    gate, file = here.home.work / "gate", here.home.work / "run.tar.gz"
    run_id = here.start(here.home.config("waits", agent("a", {"answer": "42", **after(gate)})))
    poll_until(lambda: happened(here.home.run_directory(run_id), "model_call_started"))
    here.kill()
    engine, inner, looks = local_engine(find_home(here.home.environ)), new_run_id(), list[str]()

    def begin_inner() -> None:
        row = engine.store.index.get(run_id)
        outer = engine.files.of(row).read_request()
        run = NewRun(inner, "Is it so?", "", row.fingerprint, "", parent=run_id)
        engine.files.create(inner, outer.inside(run_id, run.question, outer.config), NO_KEYS, run)
        engine.store.queue.add(run)
        engine.store.queue.claim(row.fingerprint, "0-gone", max_running=9)

    def watch(looked_at: str) -> RunWatch:
        looks.append(looked_at)
        if len(looks) == 2:  # the first one is before the run is marked
            begin_inner()
        return RunWatch(engine, looked_at, lambda _: None)

    try:
        move_out(engine, watch, run_id, file, lambda: False)
        assert [engine.store.index.get(one).kept for one in (run_id, inner)] == ["moved", "moved"]
        assert engine.store.index.get(inner).state == "interrupted"
    finally:
        engine.close()
