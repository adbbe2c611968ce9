"""What breaks first with ever more runs at once in PostgreSQL: `python -m benchmarks.scale [FIGURES.json]`.

Calculated from the figures that `python -m benchmarks.cluster --json` wrote, for one PostgreSQL with `CORES` cores; how
long a change waits for the one lock is simulated, as runs come at random. It is arithmetic, not a measurement: the
network is not in it, nor what grows faster than in proportion.

Each need grows with the runs at once, and each has a limit. A run takes three minutes. `STREAMING` of its time one
model streams text to it, which is an event every 0.1 s (`DELTA_SECONDS`).
"""

import json
import math
import random
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from massgen_mcp.home import StoreLimits
from massgen_mcp.orchestration.model_calls import DELTA_SECONDS

RUN_SECONDS, STREAMING, STEPS = 180.0, 0.5, 33
PLACES, WAITERS = 50, 100
"""Runs of a worker (its default), and callers of one server who wait for runs."""
CORES, CONNECTIONS, DISK = 16, 97, 1e12
"""Of PostgreSQL: what its default settings leave for us, and bytes."""
AT_ONCE = (100, 1_000, 10_000, 100_000)
KEPT_SECONDS = StoreLimits().results_seconds
WRITTEN = Path(__file__).with_name("cluster.json")
"""The figures that docs/serving.md shows."""


Figures = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Load:
    """What so many runs at once ask for, by the figures of the benchmark."""

    figures: Figures
    runs: float

    def figure(self, name: str) -> float:
        """In seconds, bytes or a number."""
        found = self.figures[name]
        return float(found["median"]) / {"ms": 1e3, "us": 1e6}.get(found["unit"], 1.0)

    @property
    def starts(self) -> float:
        """Each second."""
        return self.runs / RUN_SECONDS

    @property
    def streamed(self) -> float:
        """Events each second."""
        return self.runs * STREAMING / DELTA_SECONDS

    @property
    def events(self) -> float:
        return self.streamed + self.starts * STEPS

    @property
    def workers(self) -> int:
        return math.ceil(self.runs / PLACES)

    @property
    def servers(self) -> int:
        return math.ceil(self.runs / WAITERS)

    def executing(self) -> float:
        """Cores of all workers."""
        writing = self.streamed * self.figure("a further event: CPU, worker")
        return self.starts * self.figure("PostgreSQL: CPU, executing, per run") + writing

    def connections(self) -> float:
        return self.workers * self.figure("connections of a worker") + self.servers * self.figure(
            "connections of a server"
        )

    def lock(self) -> float:
        return self.starts * self.figure("the lock, of one run alone")

    def runs_in_postgresql(self) -> float:
        return self.starts * self.figure("PostgreSQL: CPU, PostgreSQL, per run")

    def streaming_in_postgresql(self) -> float:
        return self.streamed * self.figure("a further event: CPU, PostgreSQL")

    def fetches(self) -> float:
        return self.starts * self.workers * self.figure("fetch from an empty queue")

    def looks(self) -> float:
        return self.runs / 10_000 * self.figure("look for lost runs, of 10,000")

    def news(self) -> float:
        """Of a server."""
        return self.events * WAITERS * self.figure("news, per waiter")

    def disk(self) -> float:
        return self.events * self.figure("size of an event in PostgreSQL") * KEPT_SECONDS

    def waiting_for_the_lock(self) -> float:
        """The p90 of how long one of three turns waits, in a simulation of 60,000; the seed is fixed."""
        chance, turn, turns = random.Random(33), self.figure("the lock, of one run alone") / 3, 60_000
        wait, waits = 0.0, list[float]()
        for _ in range(turns):
            wait = max(0.0, wait + chance.expovariate(1 / turn) - chance.expovariate(3 * self.starts))
            waits.append(wait)
        return sorted(waits)[turns * 9 // 10]


@dataclass(frozen=True)
class Limit:
    what: str
    need: Callable[[Load], float]
    limit: float
    push: str
    """What moves it."""


STORES = "more stores"
LIMITS = (
    Limit(
        "connections, of the 100 of PostgreSQL's default",
        Load.connections,
        CONNECTIONS,
        "`max_connections`, `--concurrency`",
    ),
    Limit(
        f"disk, 1 TB for the events of {KEPT_SECONDS / 86_400:.0f} days",
        Load.disk,
        DISK,
        "`MASSGEN_MCP_KEEP_RESULTS_DAYS`",
    ),
    Limit("CPU of PostgreSQL for streamed text", Load.streaming_in_postgresql, CORES, STORES),
    Limit(f"CPU of a server that hears of all runs, with {WAITERS} callers who wait", Load.news, 1, STORES),
    Limit("CPU of PostgreSQL, as each start wakes every worker", Load.fetches, CORES, "`--concurrency`, `--pools`"),
    Limit("the lock that orders changes of rows", Load.lock, 1, STORES),
    Limit("CPU of PostgreSQL for runs without their text", Load.runs_in_postgresql, CORES, STORES),
    Limit("the look for lost runs, each second", Load.looks, 1, STORES),
)


def breaks_at(figures: Figures, limit: Limit) -> int:
    """The number of runs at once."""
    low, high = 1.0, 1e9
    while high / low > 1.001:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if limit.need(Load(figures, middle)) >= limit.limit else (middle, high)
    return int(low)


def shown(document: dict[str, Any]) -> str:
    """What docs/serving.md says of it, as Markdown."""
    figures: Figures = document["figures"]
    found = sorted(((breaks_at(figures, limit), limit) for limit in LIMITS), key=lambda pair: pair[0])
    rows = [f"| {_round(runs)} | {limit.what} | {limit.push} |" for runs, limit in found]
    stores = math.ceil(AT_ONCE[-1] / min(runs for runs, limit in found if limit.push == STORES))
    return "\n".join(
        [
            f"{_beside(figures)} {document['machine']}",
            "",
            "| runs at once | what breaks there | what moves it |",
            "|--:|---|---|",
            *rows,
            "",
            f"So {AT_ONCE[-1]:,} runs at once need about {stores} stores.",
        ]
    )


def _beside(figures: Figures) -> str:
    """The two stores, as they were measured."""

    def both(what: str, digits: int = 0) -> str:
        values = (figures[f"{name}: {what}"]["median"] for name in ("embedded", "PostgreSQL"))
        return " and ".join(f"{value:.{digits}f}" for value in values)

    latencies = "; ".join(
        f"{told} p50 {both(f'{what}, p50')} ms, p90 {both(f'{what}, p90')} ms"
        for what, told in (
            ("start", "reply of `start_run`"),
            ("first event", "first event"),
            ("told", "end told to a waiter after"),
        )
    )
    database = figures["PostgreSQL: CPU, PostgreSQL, per run"]["median"]
    return (
        f"The embedded store and PostgreSQL with two workers, measured by turns: {latencies}; scripted runs of three"
        f" agents {both('runs', 1)} a second; CPU of a run {both('CPU, executing, per run')} ms, and {database:.0f} ms"
        " in PostgreSQL."
    )


def needs(document: dict[str, Any]) -> str:
    """How much of each limit some numbers of runs at once need."""
    loads = [Load(document["figures"], runs) for runs in AT_ONCE]

    def row(name: str, values: Iterable[str]) -> str:
        return f"{name:<70}" + "".join(f"{value:>11}" for value in values)

    waits = [load.waiting_for_the_lock() if load.lock() < 1 else math.inf for load in loads]
    return "\n".join(
        [
            row("runs at once", (f"{load.runs:,.0f}" for load in loads)),
            row("starts, a second", (f"{load.starts:,.1f}" for load in loads)),
            row("events, a second", (f"{load.events:,.0f}" for load in loads)),
            row("workers", (f"{load.workers:,}" for load in loads)),
            row("their cores", (f"{load.executing():,.1f}" for load in loads)),
            row("p90 of the wait for the lock, simulated, ms", (f"{1000 * wait:,.1f}" for wait in waits)),
            *(
                row(limit.what, (f"{100 * limit.need(load) / limit.limit:,.1f} %" for load in loads))
                for limit in LIMITS
            ),
        ]
    )


def _round(number: int) -> str:
    """Two digits that mean something."""
    scale = 10 ** max(0, len(str(number)) - 2)
    return f"{number // scale * scale:,}"


def read(path: Path = WRITTEN) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def main() -> None:
    document = read(*map(Path, sys.argv[1:]))
    print(needs(document), shown(document), sep="\n\n")


if __name__ == "__main__":
    main()
