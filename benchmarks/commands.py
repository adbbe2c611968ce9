"""What the sandbox adds to a command: `python -m benchmarks.commands [--repeat N]`; Linux only.

The same command as a plain subprocess of this process and in every level that this machine has, by turns, in one run:
`true`, 300 files written and read again, Python with some imports, and 200 processes one after the other. Each from
before it is started to its last process gone and its output read. p50 and p95 of all repetitions.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import quantiles

import anyio

from benchmarks.table import machine
from massgen_mcp.sandbox import LevelName, Policy, spawn
from massgen_mcp.sandbox.levels import BY_ITSELF, present

COMMANDS = {
    "true": "true",
    "300 files": "i=0; while [ $i -lt 300 ]; do echo x > f$i; i=$((i+1)); done; cat f* > all; rm -f f* all",
    "python with imports": "python3 -c 'import json, asyncio, email, http.client, unittest'",
    "200 processes": "i=0; while [ $i -lt 200 ]; do /bin/true; i=$((i+1)); done",
}
Way = Callable[[str], Awaitable[None]]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.commands", description="Measure the sandbox.")
    parser.add_argument("--repeat", type=int, default=30, metavar="N", help="measure everything so often (default 30)")
    repeat: int = parser.parse_args().repeat
    with tempfile.TemporaryDirectory(prefix="massgen-mcp-commands-") as directory:
        anyio.run(_measure, Path(directory), repeat)


async def _measure(base: Path, repeat: int) -> None:
    ways: dict[str, Way] = {"plain": _plain(_made(base / "plain"))}
    for level in BY_ITSELF:
        if present(level) is None:
            ways[level] = _in(level, Policy(_made(base / level), _made(base / f"{level}-scratch")))
    taken = {(name, way): list[float]() for name in COMMANDS for way in ways}
    for number in range(repeat + 1):
        print(f"\rrepetition {number} of {repeat} ...", end="", file=sys.stderr, flush=True)
        for name, command in COMMANDS.items():
            for way, run in ways.items():
                began = time.perf_counter()
                await run(command)
                if number:
                    taken[name, way].append(time.perf_counter() - began)
    print(file=sys.stderr)
    print(machine(repeat), end="\n\n")
    print(f"{'command':<22}{'way':<14}{'p50':>8}{'p95':>8}  ms{'p50':>9} over plain")
    for (name, way), values in taken.items():
        middle, high = _percentile(values, 50), _percentile(values, 95)
        more = middle - _percentile(taken[name, "plain"], 50)
        print(f"{name:<22}{way:<14}{middle:>8.1f}{high:>8.1f}{more:>12.1f}")


def _percentile(values: list[float], percent: int) -> float:
    return quantiles(values, n=100, method="inclusive")[percent - 1] * 1000


def _plain(directory: Path) -> Way:
    async def run(command: str) -> None:
        await anyio.run_process(["/bin/sh", "-c", command], cwd=directory)

    return run


def _in(level: LevelName, policy: Policy) -> Way:
    async def run(command: str) -> None:
        async with spawn(["/bin/sh", "-c", command], policy, level) as process:
            try:
                while True:
                    await process.stdout.receive()
            except anyio.EndOfStream:
                ended = await process.wait()
        assert ended.reason == "exited", ended

    return run


def _made(path: Path) -> Path:
    path.mkdir()
    return path


if __name__ == "__main__":
    main()
