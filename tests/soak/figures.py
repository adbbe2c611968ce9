"""The figures of the harness that looks for false greens."""

from collections import defaultdict
from dataclasses import dataclass, field


@dataclass
class Figures:
    injected: int = 0
    struck: int = 0
    """Faults that befell a request; the others came to a phase that was not reached."""
    found: dict[str, list[str]] = field(default_factory=lambda: defaultdict[str, list[str]](list))

    def __str__(self) -> str:
        wrong = sum(map(len, self.found.values()))
        return f"{self.injected} faults injected, {self.struck} struck, {wrong} false greens or lost answers"
