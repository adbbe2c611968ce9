"""The figures of each room that may only get better, and the file that holds them."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.words.measure import Counts, count, rooms

FIGURES = Path(__file__).with_name("figures.json")
"""One line per room, so that two branches that touch different rooms merge."""

SUMS = {"all", "not plugins"}
"""Rows of several rooms. They have no limit: code may move to a room, or grow in one, whose figures are worse."""

Figures = dict[str, float]
"""The measures of a room by name, and its `statements`, which aren't a measure and may grow."""


@dataclass(frozen=True)
class Measure:
    """A figure of a room, rounded to one decimal, with the direction in which it may move."""

    name: str
    part: str
    """The field of `Counts` that is counted."""
    whole: str
    """The field of `Counts` that it's divided by; empty for a plain number."""
    per: int
    better: Literal["higher", "lower"]
    advice: str

    def value(self, counts: Counts) -> float:
        part = float(getattr(counts, self.part))
        if not self.whole:
            return part
        whole = getattr(counts, self.whole)
        if not whole:
            return 100.0 if self.better == "higher" else 0.0
        return round(self.per * part / whole, 1)

    def is_worse(self, value: float, than: float) -> bool:
        return value < than if self.better == "higher" else value > than


MEASURES = (
    Measure("verb%", "verbs", "functions", 100, "higher", "begin function names with a verb of tests/words/verbs.txt"),
    Measure("part%", "participles", "functions", 100, "lower", "name no function by a participle alone"),
    Measure("prep%", "prepositions", "functions", 100, "lower", "end no function name in a preposition"),
    Measure("doc%", "relative_starts", "docstrings", 100, "lower", "begin docstrings with a verb or a noun"),
    Measure("nobody‰", "pronouns", "words", 1000, "lower", "name the actor instead of nobody, whoever, whatever"),
    Measure("cond‰", "conditionals", "statements", 1000, "lower", "write conditional expressions as statements"),
    Measure("gerunds", "gerunds", "", 1, "lower", "name modules for the thing they hold, not for an activity"),
)


def read_figures() -> dict[str, Figures]:
    return json.loads(FIGURES.read_text(encoding="utf-8"))


def write_figures(figures: Mapping[str, Figures]) -> None:
    lines = [f"{json.dumps(room)}: {json.dumps(figures[room], ensure_ascii=False)}" for room in figures]
    FIGURES.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def measure_rooms(package: Path) -> dict[str, Figures]:
    return {room: measure(count(modules)) for room, modules in rooms(package)}


def measure(counts: Counts) -> Figures:
    return {"statements": counts.statements, **{one.name: one.value(counts) for one in MEASURES}}


def find_worse(kept: Mapping[str, Figures], measured: Mapping[str, Figures]) -> Iterator[str]:
    """Yield a sentence for each figure of a room that is worse than its limit."""
    for room, figures in measured.items():
        limits = find_limits(kept, room)
        for one in MEASURES:
            limit, now = limits[one.name], figures[one.name]
            if room not in SUMS and one.is_worse(now, limit):
                yield f"{room}: {one.name} was {limit:g}, is {now:g}: {one.advice}"


def find_limits(kept: Mapping[str, Figures], room: str) -> Figures:
    """Return the kept figures of a room. A new room must not be worse than all rooms together."""
    return kept[room] if room in kept else kept["all"]


def improve(kept: Mapping[str, Figures], measured: Mapping[str, Figures]) -> dict[str, Figures]:
    """Return the better figures for each measured room, with its present statements."""
    improved: dict[str, Figures] = {}
    for room, figures in measured.items():
        limits = find_limits(kept, room)
        improved[room] = {"statements": figures["statements"]}
        for one in MEASURES:
            is_worse = one.is_worse(figures[one.name], limits[one.name])
            improved[room][one.name] = limits[one.name] if is_worse else figures[one.name]
    return improved
