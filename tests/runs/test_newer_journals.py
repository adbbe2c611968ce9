"""What a newer version wrote is named as such: views go on with what they know, and nobody works on the run."""

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zlib import crc32

import anyio
import pytest

from massgen_mcp.events.record import JOURNAL_VERSION
from tests.commands import run_command
from tests.harness import (
    RUNNER_MODULE,
    SERVER_MODULE,
    TempHome,
    after,
    agent,
    call,
    end,
    events_of,
    expect_error,
    happened,
    wait_until,
)

LATER = JOURNAL_VERSION + 1


def sealed(document: dict[str, Any]) -> bytes:
    """A line as any version seals it."""
    written = json.dumps(document).encode()
    return written[:-1] + b',"crc":"%08x"}\n' % crc32(written)


def event(**members: Any) -> Callable[[int], dict[str, Any]]:
    return lambda seq: {"v": JOURNAL_VERSION, "seq": seq, "time": 1.0, "event": members}


NEWER: dict[str, Callable[[int], dict[str, Any]]] = {
    "an unknown event": event(type="agent_praised", agent="agent_z", warmth=3),
    "an unknown event without a version": lambda seq: {"seq": seq, "time": 1.0, "event": {"type": "agent_praised"}},
    "an unknown field": event(type="finish_requested", by="the asker"),
    "an unknown field deep inside": event(
        type="round_started", agent="agent_a", round=9, revision=0, ballot=[{"name": "x", "label": "y", "same_as": "z"}]
    ),
    "an unknown value": event(type="agent_dropped", agent="agent_b", reason="bored", message="it left"),
    "a later version of a line": lambda seq: {
        "v": LATER,
        "seq": seq,
        "time": 1.0,
        "event": {"type": "finish_requested"},
    },
    "an unknown member of a line": lambda seq: {**event(type="finish_requested")(seq), "machine": "m"},
    "an agent that an unknown event brought in": lambda seq: {
        **event(type="round_started", agent="agent_z", round=1, revision=0, ballot=[])(seq),
        "v": LATER,
    },
}


async def interrupted(home: TempHome) -> str:
    """A run with one answer, whose runner is lost."""
    gate = home.work / "go-on"
    config = home.config("two", agent("one", {"answer": "42"}), agent("two", {"answer": "43", **after(gate)}))
    async with home.client() as client:
        run_id = (await call(client, "start_run", question="q", config=config))["run_id"]
        await wait_until(lambda: happened(home.run_directory(run_id), "answer_submitted"))
    for pid in home.processes(RUNNER_MODULE):
        end(pid, signal.SIGKILL)
    await wait_until(lambda: not home.processes())
    gate.touch()
    return run_id


def append(run: Path, *documents: Callable[[int], dict[str, Any]]) -> bytes:
    """Go on with a journal as a newer version would; returns what it is then."""
    journal = run / "events.jsonl"
    whole = journal.read_bytes()
    seq = whole.count(b"\n")
    journal.write_bytes(
        whole[: whole.rindex(b"\n") + 1] + b"".join(sealed(d(seq + k)) for k, d in enumerate(documents, 1))
    )
    return journal.read_bytes()


async def test_views_go_on_and_resuming_refuses_and_the_run_stays_as_it_is(home: TempHome) -> None:
    run_id = await interrupted(home)
    unknown = NEWER["an unknown event"], NEWER["an agent that an unknown event brought in"]
    written = append(home.run_directory(run_id), *unknown)
    async with home.client() as client:
        status = await call(client, "get_status", run_id=run_id)
        assert status["status"] == "interrupted"
        assert "agent_praised" in status["reason"]
        assert status["reason"].startswith("journal_newer: ")
        assert "newer massgen-mcp" in status["note"]
        assert "Upgrade" in status["next_step"]
        assert "1 answer" in status["agents"][0]
        code, message = await expect_error(client, "control_run", run_id=run_id, action="resume")
        assert (code, "upgrade" in message, "agent_praised" in message) == ("journal_newer", True, True)
        answer = await call(client, "get_result", run_id=run_id, view="agent", agent="agent_a")
        assert answer["answer"] == "42"
        assert (await call(client, "wait_run", run_id=run_id, timeout_seconds=30))["status"] == "interrupted"
    assert home.processes(RUNNER_MODULE) == [], "nobody was sent to work on it"
    refused = run_command(home, SERVER_MODULE, "resume", run_id)
    assert refused.returncode != 0
    assert "journal_newer" in refused.stderr
    watched = run_command(home, SERVER_MODULE, "watch", run_id)
    assert "agent_praised: a newer massgen-mcp wrote this event; this version can't show it" in watched.stdout
    shown = run_command(home, SERVER_MODULE, "status", run_id)
    assert "newer massgen-mcp" in shown.stdout
    assert (home.run_directory(run_id) / "events.jsonl").read_bytes() == written


@pytest.mark.parametrize("kind", NEWER)
def test_nothing_that_a_newer_version_may_add_is_taken_for_damage(ended_run: tuple[TempHome, str], kind: str) -> None:
    place, run_id = ended_run
    journal = place.run_directory(run_id) / "events.jsonl"
    before = journal.read_bytes()
    lines = before.splitlines(keepends=True)
    middle = [sealed(NEWER[kind](len(lines))), sealed({**json.loads(lines[-1][:-19] + b"}"), "seq": len(lines) + 1})]
    journal.write_bytes(b"".join(lines[:-1] + middle))
    try:
        shown = run_command(place, SERVER_MODULE, "result", run_id, "--json")
    finally:
        journal.write_bytes(before)
    assert shown.returncode == 0, shown.stderr
    result = json.loads(shown.stdout)
    assert (result["status"], result["answer"]) == ("completed", "42")
    assert "newer massgen-mcp" in result["note"]


@pytest.fixture(scope="module")
def ended_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[TempHome, str]:
    """A home with one completed run, for tests that only look."""
    directory = tmp_path_factory.mktemp("ended")
    (directory / "work").mkdir()
    place = TempHome(directory / "home", directory / "work")

    async def start() -> str:
        config = place.config("solo", agent("one", {"answer": "42"}))
        async with place.client() as client:
            started = await call(client, "start_run", question="q", config=config, wait_seconds=30)
            assert started["status"] == "completed"
            return started["run_id"]

    try:
        return place, anyio.run(start)
    finally:
        place.close()


def newer_request(run: Path) -> None:
    request = run / "config.json"
    document = json.loads(request.read_text())
    del document["crc"]
    document["config"]["orchestrator"]["seances"] = 3
    crc = crc32(json.dumps(document, sort_keys=True).encode())
    request.write_text(json.dumps({**document, "crc": f"{crc:08x}"}))


def newer_event(run: Path) -> None:
    append(run, event(type="agent_praised", warmth=3))


@pytest.mark.parametrize("newer", [newer_request, newer_event], ids=["request", "event"])
async def test_a_runner_leaves_a_run_of_a_newer_version_alone_and_does_the_others(
    home: TempHome, newer: Callable[[Path], None]
) -> None:
    """It takes the run from the store, where nothing tells yet that it is one."""
    run_id = await interrupted(home)
    newer(home.run_directory(run_id))
    written = (home.run_directory(run_id) / "events.jsonl").read_bytes()
    async with home.client() as client:
        other = await call(client, "start_run", question="q", models=["scripted/x"], wait_seconds=30)
        assert other["status"] == "completed"
        status = await call(client, "get_status", run_id=run_id)
        assert status["status"] == "interrupted"
        assert status["reason"].startswith("journal_newer: ")
        assert (await expect_error(client, "control_run", run_id=run_id, action="resume"))[0] == "journal_newer"
        await wait_until(lambda: not home.processes(RUNNER_MODULE))
        log = b"".join(path.read_bytes() for path in (home.path / "runners").glob("*.log"))
        assert log.count(f"skipping run {run_id}".encode()) == 1
        assert (await call(client, "control_run", run_id=run_id, action="cancel"))["status"] == "cancelled"
    assert (home.run_directory(run_id) / "events.jsonl").read_bytes() == written
    assert events_of(home.run_directory(run_id))[-1]["type"] != "run_failed"
