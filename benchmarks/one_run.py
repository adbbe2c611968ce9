"""One run through the tools, and the moments of it. Moments are seconds since the epoch on this machine's one clock."""

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.local_model import NAME, LocalModel
from benchmarks.server import Server

QUESTION = "What is six times seven?"


@dataclass(frozen=True, slots=True)
class Moments:
    """Of one run: when `start_run` was sent and answered, when the model got its first request, when the run's journal
    got its last event, and when `wait_run` told its client the end. `requests` counts model requests.
    """

    sent: float
    answered: float
    first_request: float
    ended: float
    told: float
    requests: int

    @property
    def whole(self) -> float:
        return self.ended - self.sent

    @property
    def coordination(self) -> float:
        return self.ended - self.first_request


def expected_requests(agents: int) -> int:
    """An answer and a vote of each and one presentation; a team of one has nothing to vote on or to merge."""
    return 2 * agents + 1 if agents > 1 else 1


def write_team(directory: Path, agents: int, base_url: str, wire: str = "chatcompletion") -> Path:
    """A config of so many agents who all ask the local model; returns its path. (JSON is YAML, too.) `wire`: the type
    of their backends.
    """
    backend = {"type": wire, "model": NAME, "base_url": base_url}
    team = [{"id": f"agent{place}", "backend": backend} for place in range(1, agents + 1)]
    path = directory / f"team_of_{agents}_{wire}.yaml"
    path.write_text(json.dumps({"agents": team}, indent=2))
    return path


def run_once(server: Server, model: LocalModel, team: Path) -> Moments:
    """Raises `RuntimeError` unless the run completes."""
    model.reset()
    sent = time.time()
    run_id = str(server.call("start_run", question=QUESTION, config=str(team))["run_id"])
    answered = time.time()
    state = server.call("wait_run", run_id=run_id, timeout_seconds=50)["status"]
    told = time.time()
    if state != "completed":
        raise RuntimeError(f"the run ended as {state}")
    arrivals = model.arrivals()
    return Moments(sent, answered, min(arrivals), _last_event(server.home, run_id), told, len(arrivals))


def run_many(server: Server, team: Path, runs: int) -> None:
    """So many runs at once, to their ends."""
    started = [server.call("start_run", question=QUESTION, config=str(team)) for _ in range(runs)]
    for run in started:
        server.call("wait_run", run_id=run["run_id"], timeout_seconds=50)


def ended(server: Server, run_id: str) -> str:
    """Wait for the end of a run; returns its state then."""
    while True:
        state = server.call("wait_run", run_id=run_id, timeout_seconds=50)["status"]
        if state not in ("queued", "running"):
            return str(state)


def _last_event(home: Path, run_id: str) -> float:
    last: dict[str, Any] = json.loads((home / "runs" / run_id / "events.jsonl").read_bytes().splitlines()[-1])
    return float(last["time"])
