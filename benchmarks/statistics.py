"""`massgen-mcp stats` over many runs: the first call, which reads every record, and the second one, which reads none.

`python -m benchmarks.statistics` prints one table; numbers after it are how many runs (1,000 and 10,000). The runs are
copies of a few real ones of scripted teams, as a version without statistics would have left them.
"""

import asyncio
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import massgen_mcp
from benchmarks.table import Table, machine
from massgen_mcp.errors import RunNotCompleted
from massgen_mcp.home import find_home
from massgen_mcp.runs.engine import RunFiles, new_run_id
from massgen_mcp.runs.store.opening import local_engine

SIZES = (1_000, 10_000)
DAYS = 60
INSERT = (
    "INSERT INTO runs (run_id, state, question, config, fingerprint, request_hash, created, started, ended)"
    " VALUES (?, ?, 'q', 'config_dict', 'f', 'h', ?, ?, ?)"
)
VERDICTS = ("right", "right", "wrong")


def agent(name: str, model: str, usd: float | None, *script: dict[str, Any]) -> dict[str, Any]:
    price = None if usd is None else {"input_usd_per_million": usd, "output_usd_per_million": 5 * usd}
    return {"id": name, "backend": {"type": "scripted", "model": model, "script": [*script], "price": price}}


def answers(text: str, votes_for: str) -> tuple[dict[str, Any], ...]:
    return ({"answer": text}, {"vote": votes_for, "reason": "It says why."}, {"vote": votes_for, "reason": "Still."})


TEAMS: tuple[list[dict[str, Any]], ...] = (
    [
        agent("ada", "claude-opus-4-8", 5.0, *answers("Rewrite it.", "Mend")),
        agent("bo", "gpt-5.5", 3.0, *answers("Mend it.", "Mend")),
        agent("cleo", "gemini-3.1-pro", 2.0, *answers("Leave it alone.", "Mend")),
    ],
    [
        agent("ada", "claude-opus-4-8", 5.0, *answers("Rewrite it.", "Rewrite")),
        agent("bo", "gpt-5.5", 3.0, *answers("Mend it.", "Rewrite")),
        agent("cleo", "gemini-3.1-pro", 2.0, *answers("Leave it alone.", "own")),
    ],
    [
        agent("ada", "gpt-5.5", 3.0, {"answer": "One."}, {"answer": "Two, with a reason."}, {"vote": "own"}),
        agent("bo", "local-model", None, *answers("Three.", "One"), {"vote": "Two"}, {"vote": "Two"}),
    ],
    [agent("ada", "claude-opus-4-8", 5.0, {"fail": "auth"}), agent("bo", "gpt-5.5", 3.0, {"fail": "auth"})],
)


async def play(work: Path) -> list[tuple[str, Path]]:
    """A real run of each team: how it ended, and its record."""
    os.chdir(work)
    for team in TEAMS:
        with suppress(RunNotCompleted):
            await massgen_mcp.run("What is to be done?", config_dict={"agents": team}, enable_logging=True)
    with closing(sqlite3.connect(find_home(os.environ).path / "runs.sqlite3")) as db:
        return [
            (state, Path(place)) for state, place in db.execute("SELECT state, directory FROM runs ORDER BY number")
        ]


def fill(home: Path, played: list[tuple[str, Path]], runs: int) -> None:
    """A state directory with so many runs whose records nobody has read yet."""
    engine = local_engine(find_home({"MASSGEN_MCP_HOME": str(home)}))
    engine.home.ensure()
    engine.store.index.list_recent(limit=1)  # makes the store
    engine.close()
    lot, now = random.Random(1), time.time()
    with closing(sqlite3.connect(home / "runs.sqlite3")) as db, db:
        for number in range(runs):
            state, source = lot.choices(played, weights=(5, 4, 2, 1))[0]
            run_id = new_run_id()
            place = RunFiles(engine.home.runs / run_id)
            place.path.mkdir()
            shutil.copy(source / "events.jsonl", place.path)
            began = now - DAYS * 86_400 * (runs - number) / runs
            db.execute(INSERT, (run_id, state, began, began, began + 60))
            if state == "completed" and lot.random() < 0.2:
                mark = "INSERT INTO marks SELECT number, ?, ?, '', ? FROM runs WHERE run_id = ?"
                db.execute(mark, ("", lot.choice(VERDICTS), now, run_id))


def stats(home: Path, *arguments: str) -> float:
    """Seconds that one call takes, with the start of its process."""
    begun = time.perf_counter()
    command = [sys.executable, "-m", "massgen_mcp.cli.massgen_mcp.main", "stats", *arguments]
    environ = {**os.environ, "MASSGEN_MCP_HOME": str(home)}
    subprocess.run(command, check=True, env=environ, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begun


def main() -> None:
    sizes = [int(size) for size in sys.argv[1:]] or SIZES
    table = Table()
    with tempfile.TemporaryDirectory(prefix="statistics-") as directory:
        work = Path(directory)
        os.environ["MASSGEN_MCP_HOME"] = str(work / "played")
        played = asyncio.run(play(work))
        for size in sizes:
            home = work / str(size)
            home.mkdir()
            fill(home, played, size)
            table.add(f"{size:,} runs, first call", "ms", stats(home, "--json"))
            table.add(f"{size:,} runs, second call", "ms", stats(home, "--json"))
            table.add(f"{size:,} runs, second call, page", "ms", stats(home, "--html", str(work / "stats.html")))
    print(machine(1), table, sep="\n\n")


if __name__ == "__main__":
    main()
