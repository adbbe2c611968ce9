"""Writes what was measured of the two stores, and what follows for many runs at once, into docs/serving.md."""

from pathlib import Path

from benchmarks.scale import read, shown

PAGE = Path(__file__).parent / "serving.md"
BEGIN, END = "<!-- figures: written by `make docs` -->\n", "<!-- end of the figures -->\n"


def page() -> str:
    """The page with the figures of benchmarks/cluster.json."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{shown(read())}\n\n{END}{after}"
