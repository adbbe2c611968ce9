"""Show the figures of the package's rooms; keep better ones.

`python -m tests.words` prints the table and marks a figure that is worse than its limit by `!`. `write` keeps the
better figures, removes rooms that are gone and adds new ones, whose limits are the figures of all rooms together. A
worse figure isn't kept, and the exit code is 1. `names ROOM` lists the functions to rename. To accept a worse figure
(code moved to another room), edit tests/words/figures.json by hand and give the reason in the commit.
"""

import argparse
import sys

from tests.harness import ROOT
from tests.words.measure import count, rooms
from tests.words.ratchet import (
    MEASURES,
    Figures,
    find_limits,
    find_worse,
    improve,
    measure_rooms,
    read_figures,
    write_figures,
)

PACKAGE = ROOT / "massgen_mcp"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.words", description=__doc__)
    commands = parser.add_subparsers(dest="command")
    commands.add_parser("write", help="keep the figures that are better")
    commands.add_parser("names", help="list the functions to rename").add_argument("room")
    given = parser.parse_args()
    if given.command == "names":
        print("\n".join(count(dict(rooms(PACKAGE))[given.room]).badly_named))
        return 0
    kept, measured = read_figures(), measure_rooms(PACKAGE)
    print_table(kept, measured)
    if given.command == "write":
        write_figures(improve(kept, measured))
        kept = read_figures()
    worse = list(find_worse(kept, measured))
    print("\n".join(worse), file=sys.stderr)
    return 1 if worse else 0


def print_table(kept: dict[str, Figures], measured: dict[str, Figures]) -> None:
    heads = "".join(f"{one.name:>9}" for one in MEASURES)
    print(f"{'room':14}{'statements':>11}{'growth':>8}{heads}")
    for room, figures in measured.items():
        limits = find_limits(kept, room)
        cells = [f"{figures[one.name]:g}{'!' * one.is_worse(figures[one.name], limits[one.name])}" for one in MEASURES]
        grown = figures["statements"] - kept.get(room, {"statements": 0})["statements"]
        print(f"{room:14}{figures['statements']:>11}{grown:>+8}" + "".join(f"{cell:>9}" for cell in cells))


if __name__ == "__main__":
    sys.exit(main())
