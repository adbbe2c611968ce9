"""The same commands of ours and of upstream's MassGen, by turns: `python -m benchmarks.upstream`; Linux only.

Upstream is measured where `MASSGEN_UPSTREAM` names its command, from a virtual environment of its own; without that a
line says so, and nothing is measured. Both ask the same local model, which takes no time. Upstream has no server and no
runner, so there is no idle process of it to measure.

- help: `massgen --help`. run: `massgen --automation` with three agents, from before its start to its end.
- requests: what came to the model in that run; a team of three needs seven.
"""

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

from benchmarks.local_model import LocalModel
from benchmarks.one_run import QUESTION, write_team
from benchmarks.processes import environment, finish
from benchmarks.table import Table, machine

VARIABLE = "MASSGEN_UPSTREAM"
AGENTS = 3


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.upstream", description="Measure upstream beside us.")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="measure everything so often (default 3)")
    repeat: int = parser.parse_args().repeat
    ours = shutil.which("massgen", path=str(Path(sys.executable).parent))
    upstream = os.environ.get(VARIABLE)
    if ours is None:
        raise SystemExit("the command massgen is not installed beside this Python")
    if not upstream or not Path(upstream).is_file():
        print(f"UPSTREAM IS NOT MEASURED: {VARIABLE} does not name its command `massgen`")
        return
    table = Table()
    with LocalModel() as model, tempfile.TemporaryDirectory(prefix="massgen-mcp-upstream-") as directory:
        for number in range(-1, repeat):
            print(f"\rrepetition {max(0, number) + 1} of {repeat} ...", end="", file=sys.stderr, flush=True)
            for name, command in (("ours", ours), ("upstream", upstream)):
                _measure(Table() if number < 0 else table, name, command, model, Path(directory))
    print(file=sys.stderr)
    print(machine(repeat), table, _ratios(table), sep="\n\n")


def _measure(table: Table, name: str, command: str, model: LocalModel, directory: Path) -> None:
    environ = {**environment(directory), "OPENAI_API_KEY": "none"}
    team = write_team(directory, AGENTS, model.base_url)
    shown = finish([command, "--help"], directory=directory, environ=environ, quiet=True)
    model.reset()
    run = [command, "--automation", "--config", str(team), QUESTION]
    done = finish(run, directory=directory, environ=environ, quiet=True)
    for what, figures in (("help", shown), ("run", done)):
        table.add(f"{what}, {name}: wall", "ms", figures.wall)
        table.add(f"{what}, {name}: CPU", "ms", figures.cpu)
        table.add(f"{what}, {name}: peak", "MiB", figures.peak)
    table.add(f"run, {name}: model requests", "requests", len(model.arrivals()))


def _ratios(table: Table) -> str:
    """Upstream's medians to ours."""
    told: list[str] = []
    for what in ("help", "run"):
        for figure, unit in (("wall", "ms"), ("CPU", "ms"), ("peak", "MiB")):
            theirs, ours = (table.median(f"{what}, {name}: {figure}", unit) for name in ("upstream", "ours"))
            told.append(f"{what}, {figure}: {theirs / ours:.1f}")
    return f"Upstream's to ours: {'; '.join(told)}."


if __name__ == "__main__":
    main()
