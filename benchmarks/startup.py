"""What it costs until a program that uses us, or a person, may begin: `python -m benchmarks.startup`.

With `--upstream PYTHON`, the Python of another environment with MassGen in it, both are measured by turns in one run:
times on a machine with other work on it are only good as ratios. CPU seconds are those of the whole process.
"""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.processes import environment, finish
from benchmarks.table import Table

PACKAGES = {"ours": "massgen_mcp", "upstream": "massgen"}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.startup", description="Measure import and --help.")
    parser.add_argument("--repeat", type=int, default=5, metavar="N", help="measure everything so often (default 5)")
    parser.add_argument("--upstream", type=Path, metavar="PYTHON", help="Python of an environment with MassGen in it")
    options = parser.parse_args()
    pythons = {"ours": Path(sys.executable)}
    if options.upstream is not None:
        pythons["upstream"] = options.upstream.absolute()
    table = Table()
    with tempfile.TemporaryDirectory(prefix="massgen-mcp-startup-") as directory:
        _repetition(pythons, Path(directory), Table())  # compiles bytecode: its timings do not count
        for number in range(options.repeat):
            print(f"\rrepetition {number + 1} of {options.repeat} ...", end="", file=sys.stderr, flush=True)
            _repetition(pythons, Path(directory), table)
    print(file=sys.stderr)
    print(table)


def _repetition(pythons: dict[str, Path], directory: Path, table: Table) -> None:
    """Everything once, ours and upstream's one after the other."""
    for what, commands in _commands(pythons).items():
        seconds: dict[str, float] = {}
        for whose, command in commands.items():
            done = finish(command, directory=directory, environ=environment(directory))
            table.add(f"{what}, {whose}, wall", "ms", done.wall)
            table.add(f"{what}, {whose}, CPU", "ms", done.cpu)
            table.add(f"{what}, {whose}, peak", "MiB", done.peak)
            seconds[whose] = done.cpu
        if "upstream" in seconds:
            table.add(f"{what}, CPU, upstream to ours", "x", seconds["upstream"] / seconds["ours"])


Commands = dict[str, Sequence[str]]


def _commands(pythons: dict[str, Path]) -> dict[str, dict[str, Sequence[str]]]:
    """What is measured, and how each of them is told to do it."""
    bare: Commands = {"ours": [str(pythons["ours"]), "-c", "pass"]}
    imports: dict[str, Sequence[str]] = {
        whose: [str(python), "-c", f"import {PACKAGES[whose]}"] for whose, python in pythons.items()
    }
    ready: Commands = {"ours": [str(pythons["ours"]), "-c", "import massgen_mcp; massgen_mcp.run"]}
    helps: Commands = {whose: [_command(python), "--help"] for whose, python in pythons.items()}
    return {"python -c pass": bare, "import": imports, "import, and run is there": ready, "massgen --help": helps}


def _command(python: Path) -> str:
    """`massgen` of the same environment."""
    found = shutil.which("massgen", path=str(python.parent))
    if found is None:
        raise SystemExit(f"the command massgen is not installed beside {python}")
    return found


if __name__ == "__main__":
    main()
