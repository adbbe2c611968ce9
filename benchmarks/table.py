"""Figures by name, the one table of them, and the machine that they were measured on."""

import os
import platform
from dataclasses import dataclass, field
from statistics import median

UNITS = {"ms": 1000.0, "us": 1e6, "MiB": 1.0, "x": 1.0, "%": 1.0, "runs": 1.0, "requests": 1.0} | dict.fromkeys(
    ("runs/s", "events", "connections", "bytes"), 1.0
)
"""What a value as it was measured (seconds, MiB, a ratio, a number) is multiplied by to be shown in a unit."""


@dataclass(slots=True)
class Table:
    """Rows appear in the order in which their first values came."""

    rows: dict[tuple[str, str], list[float]] = field(default_factory=dict[tuple[str, str], list[float]])

    def add(self, name: str, unit: str, value: float) -> None:
        """One more value of a figure: seconds for the units ms and us, else in the unit itself."""
        self.rows.setdefault((name, unit), []).append(value * UNITS[unit])

    def median(self, name: str, unit: str) -> float:
        """Of a figure, in its unit."""
        return median(self.rows[name, unit])

    def __str__(self) -> str:
        width = max(len(name) for name, _ in self.rows)
        lines = [f"{'figure':<{width}}  {'median':>8}  {'[min - max]':>19}  unit", "-" * (width + 41)]
        for (name, unit), values in self.rows.items():
            span = f"[{_shown(min(values))} - {_shown(max(values))}]"
            lines.append(f"{name:<{width}}  {_shown(median(values)):>8}  {span:>19}  {unit}")
        return "\n".join(lines)


def _shown(value: float) -> str:
    """Three digits that mean something; whole numbers as they are."""
    return f"{value:.0f}" if value >= 100 or value == int(value) else f"{value:.1f}"


def machine(repeat: int) -> str:
    """What a reader of the table has to know about where and how often it was measured."""
    load = os.getloadavg()[0]
    return (
        f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, Python {platform.python_version()}, "
        f"load {load:.1f} (one minute), {repeat} repetitions after one whose timings do not count.\n"
        "Wall times on a loaded machine are to be read as ratios to others of the same table (see python -c pass)."
    )
