"""Runs of `massgen` that are killed at a moment of the test's choice, and what they cost until then."""

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

from tests.commands import run_command
from tests.harness import COMMAND_MODULE, SERVER_MODULE, TempHome, after, agent, end, events_of, happened, poll_until

PHASES = {"answering": "answer_submitted", "voting": "vote_cast", "presenting": "presentation_started"}
QUESTION = "Which one?"


def gate(home: TempHome) -> Path:
    """The file for which `held_team` waits."""
    return home.work / "go-on"


def held_team(home: TempHome, moment: str) -> str:
    """Two agents whose run stays at the first event of this kind until there is the gate. At `text_delta` it only takes
    its time.
    """

    def held(*moments: str) -> dict[str, Any]:
        return after(gate(home)) if moment in moments else {}

    pace = 0.15 if moment == "text_delta" else 0.0
    final = {"say": "word " * 40, **held("presentation_started")}
    second = {"answer": "the second", **held("run_started", "model_call_started", "answer_submitted")}
    vote = {"vote": "the first", **held("vote_cast")}
    return home.config(
        "slow",
        agent("ada", {"answer": "the first"}, {"vote": "own"}, final, chunk_delay_seconds=pace),
        agent("bo", second, vote, chunk_delay_seconds=pace),
    )


def started(home: TempHome, config: str, *arguments: str) -> "subprocess.Popen[str]":
    """`massgen` at work."""
    return subprocess.Popen(
        [home.python, "-m", COMMAND_MODULE, "--automation", "--config", config, *arguments, QUESTION],
        cwd=home.work,
        env=home.environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )


def kill(home: TempHome) -> None:
    """End every `massgen` of this home as nothing can be done about it."""
    for pid in home.processes(COMMAND_MODULE):
        end(pid, signal.SIGKILL)


def log_directory(massgen: "subprocess.Popen[str]") -> Path:
    assert massgen.stdout is not None
    return Path(massgen.stdout.readline().removeprefix("LOG_DIR: ").strip())


def the_only_run(home: TempHome) -> dict[str, object]:
    (row,) = json.loads(run_command(home, SERVER_MODULE, "runs", "--json").stdout)["runs"]
    return row


def killed(home: TempHome, kind: str) -> Path:
    """The directory of a run whose `massgen` was killed as soon as an event of this kind had happened."""
    with started(home, held_team(home, kind)) as massgen:
        directory = log_directory(massgen)
        poll_until(lambda: happened(directory, kind))
        kill(home)
    gate(home).touch()
    return directory


def paid(directory: Path) -> list[str]:
    return [event["call_id"] for event in events_of(directory) if event["type"] == "model_replied"]
