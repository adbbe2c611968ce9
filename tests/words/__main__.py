"""Show the figures of the package's rooms; keep better ones.

`python -m tests.words` prints the table and marks a figure that is worse than its limit by `!`. `write` keeps the
better figures, removes rooms that are gone and adds new ones, whose limits are the figures of all rooms together. A
worse figure isn't kept, and the exit code is 1. `names ROOM` lists the functions to rename. To accept a worse figure
(code moved to another room), edit tests/words/figures.json by hand and give the reason in the commit.

`sentences --seed SEED --count N` draws sentences at random from the texts that people and clients' models read, for
readers to judge. `forms PLACE` lists the sentences of a place that have a banned word or form (`tests/words/forms.py`).
"""

import argparse
import sys

from tests.harness import ROOT
from tests.words.forms import count_forms, find_forms, find_more, read_counts, write_counts
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
from tests.words.sentences import draw_sentences, find_sentences

PACKAGE = ROOT / "massgen_mcp"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.words", description=__doc__)
    commands = parser.add_subparsers(dest="command")
    commands.add_parser("write", help="keep the figures that are better")
    commands.add_parser("names", help="list the functions to rename").add_argument("room")
    drawing = commands.add_parser("sentences", help="draw sentences at random")
    drawing.add_argument("--seed", required=True, help="the same seed draws the same sentences")
    drawing.add_argument("--count", type=int, default=60)
    drawing.add_argument("--place", action="append", default=[], help="only places whose names begin like this")
    drawing.add_argument("--where", action="store_true", help="print the file of each sentence")
    commands.add_parser("forms", help="list the sentences that have a banned form").add_argument("place", nargs="?")
    given = parser.parse_args()
    match given.command:
        case "names":
            print("\n".join(count(dict(rooms(PACKAGE))[given.room]).badly_named))
            return 0
        case "sentences":
            print_sample(given)
            return 0
        case "forms":
            print_forms(given.place or "")
            return 0
        case _:
            return compare_figures(keep=given.command == "write")


def compare_figures(*, keep: bool) -> int:
    """Print what is worse than before. `keep` writes the better figures."""
    kept, measured = read_figures(), measure_rooms(PACKAGE)
    kept_forms, counted = read_counts(), count_forms(find_sentences(ROOT))
    print_table(kept, measured)
    if keep:
        write_figures(improve(kept, measured))
        write_counts({place: min(count, kept_forms.get(place, 0)) for place, count in counted.items()})
        kept, kept_forms = read_figures(), read_counts()
    worse = [*find_worse(kept, measured), *find_more(kept_forms, counted)]
    print("\n".join(worse), file=sys.stderr)
    return 1 if worse else 0


def print_sample(given: argparse.Namespace) -> None:
    drawn = draw_sentences(find_sentences(ROOT), given.seed, given.count, given.place)
    for number, sentence in enumerate(drawn, 1):
        where = f"  [{sentence.file}]" if given.where else ""
        print(f"{number}. {sentence.text}{where}")


def print_forms(place: str) -> None:
    for sentence, advice in find_forms(one for one in find_sentences(ROOT) if one.place.startswith(place)):
        print(f"{sentence.file}: {sentence.text}\n    {advice}")


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
