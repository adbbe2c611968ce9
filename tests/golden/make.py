"""Makes a golden state directory: real runs with as many kinds of events as they can hold, and what the tools tell.

`python -m tests.golden.make DIRECTORY`, with the commit to be kept first on PYTHONPATH. Written there: `runs/` with the
journals and requests, `store.sql` with the run store, and `expected.json`, the replies of the tools.
"""

import json
import os
import shutil
import signal
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any
from zlib import crc32

import anyio
from mcp.client import Client

from tests.harness import RUNNER_MODULE, TempHome, agent, call, end, happened, wait_until

PROJECT = "/home/user/project"
"""What the directory is called in which the runs were made."""
KEPT_FILES = ("events.jsonl", "config.json")
WRITE = {"call": "write_file", "arguments": {"path": "note.txt", "content": "six times seven"}}
ABSENT = {"call": "read_file", "arguments": {"path": "absent.txt"}}
LATE = {"delay_seconds": 1.5}
PRICE = {"input_usd_per_million": 1_000, "output_usd_per_million": 1_000}
CHEAP = {"input_usd_per_million": 1_000, "output_usd_per_million": 1}
QUESTION = "What is six times seven?"

AGAIN = {"call": "restart_orchestration", "arguments": {"reason": "too short", "instructions": "explain it"}}


class Maker:
    def __init__(self, home: TempHome, client: Client) -> None:
        self._home = home
        self._client = client
        self.runs: dict[str, str] = {}

    async def start(self, name: str, *agents: dict[str, Any], **settings: Any) -> str:
        config = self._home.config(name, *agents, **settings)
        started = await call(self._client, "start_run", question=QUESTION, config=config)
        self.runs[name] = started["run_id"]
        return started["run_id"]

    async def ended(self, run_id: str) -> None:
        while (await call(self._client, "wait_run", run_id=run_id, timeout_seconds=45))["status"] == "running":
            pass

    async def until(self, run_id: str, kind: str) -> None:
        await wait_until(lambda: happened(self._home.run_directory(run_id), kind))

    async def control(self, run_id: str, action: str, **arguments: Any) -> None:
        await call(self._client, "control_run", run_id=run_id, action=action, **arguments)

    def kill(self) -> None:
        """The runner, as a power cut would."""
        for pid in self._home.processes(RUNNER_MODULE):
            end(pid, signal.SIGKILL)

    async def all(self) -> None:
        run_id = await self.start(
            "team",
            agent(
                "one",
                *(WRITE, {**ABSENT, **LATE}, {"say": "I think."}, {"answer": "42"}),
                *({"vote": "own"}, {"vote": "own"}, {"say": "Short."}, AGAIN),
                *({"answer": "42 because"}, {"vote": "own"}, {"say": "Explained."}, {"call": "submit"}),
            ),
            agent("two", {"fail": "provider_error"}, {"answer": "43"}, {"answer": "forty-two"}, {"vote": "42"}),
            agent("three", {"answer": "41"}, {"vote": "43"}, {"vote": "42"}),
            agent("four", {"fail": "auth"}),
            orchestrator={"coordination": {"max_orchestration_restarts": 1}},
        )
        await self.until(run_id, "model_call_started")
        await self.control(run_id, "steer", message="Mind the units.")
        await self.ended(run_id)
        run_id = await self.start(
            "asking",
            agent("one", {"call": "ask_the_asker", "arguments": {"question": "Metres or feet?"}}, {"answer": "42 m"}),
            orchestrator={"allow_questions": True},
        )
        await self.until(run_id, "input_required")
        await self.control(run_id, "answer", message="Metres.")
        await self.ended(run_id)
        budget = {"max_usd": 0.5, "at_cap": "ask"}
        run_id = await self.start("raised", agent("one", price=PRICE), agent("two", price=PRICE), budget=budget)
        await self.until(run_id, "input_required")
        await self.control(run_id, "raise_budget", value=500)
        await self.ended(run_id)
        await self.ended(
            await self.start("marked", agent("one", price=CHEAP), agent("two", price=CHEAP), budget={"max_usd": 4})
        )
        await self.ended(
            await self.start("failed", agent("one", {"fail": "auth"}), agent("two", {"fail": "model_not_found"}))
        )
        run_id = await self.start("cancelled", agent("one", {"answer": "42"}), agent("two", {"hang": True}))
        await self.until(run_id, "answer_submitted")
        await self.control(run_id, "cancel")
        await self.ended(run_id)
        await self.ended(
            await self.start(
                "timed-out",
                agent("one", {"answer": "42"}),
                agent("two", {"hang": True}),
                timeout_settings={"orchestrator_timeout_seconds": 2},
            )
        )
        resumed = await self.start("resumed", agent("one", WRITE, {"answer": "42", **LATE}), agent("two"))
        await self.until(resumed, "answer_submitted")
        self.kill()
        await self.ended(resumed)
        run_id = await self.start(
            "interrupted", agent("one", WRITE, {"answer": "42", "delay_seconds": 4}), agent("two")
        )
        await self.until(run_id, "answer_submitted")
        await wait_until(lambda: sum(1 for _ in self._started(run_id)) > 2)
        os.kill(self._home.processes(RUNNER_MODULE)[0], signal.SIGSTOP)

    def _started(self, run_id: str) -> list[str]:
        lines = (self._home.run_directory(run_id) / "events.jsonl").read_text().splitlines()
        return [line for line in lines if '"model_call_started"' in line]


def name_anew(request: Path, work: str) -> None:
    """Call the directory of a kept request `PROJECT`, and seal it again: it is kept by its digest."""
    document = json.loads(request.read_text().replace(work, PROJECT))
    del document["crc"]
    crc = f"{crc32(json.dumps(document, sort_keys=True).encode()):08x}"
    request.write_text(json.dumps({**document, "crc": crc}, indent=2))


async def make(home: TempHome, target: Path) -> None:
    expected: dict[str, Any] = {}
    async with home.client() as client:
        maker = Maker(home, client)
        await maker.all()
        for name, run_id in maker.runs.items():
            expected[name] = {"run_id": run_id, "status": await call(client, "get_status", run_id=run_id)}
            if name != "interrupted":
                expected[name]["result"] = await call(client, "get_result", run_id=run_id, view="full")
    maker.kill()
    for run_id in maker.runs.values():
        kept = target / "runs" / run_id
        kept.mkdir(parents=True)
        for file in KEPT_FILES:
            shutil.copy(home.run_directory(run_id) / file, kept)
        name_anew(kept / "config.json", str(home.work))
    with closing(sqlite3.connect(home.path / "runs.sqlite3")) as db:
        (version,) = db.execute("PRAGMA user_version").fetchone()
        dump = "\n".join(db.iterdump())
    (target / "store.sql").write_text(f"PRAGMA user_version={version};\n{dump}\n".replace(str(home.work), "."))
    told = json.dumps(expected, indent=1).replace(str(home.path), "HOME")
    (target / "expected.json").write_text(f"{told}\n")


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="golden-") as directory:
        work = Path(directory) / "work"
        work.mkdir()
        home = TempHome(Path(directory) / "home", work, starts_anew=True)
        try:
            anyio.run(make, home, Path(sys.argv[1]))
        finally:
            home.close()


if __name__ == "__main__":
    main()
