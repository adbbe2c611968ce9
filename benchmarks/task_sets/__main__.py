"""Writes the task sets into the package."""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.task_sets import programs
from benchmarks.task_sets.questions import questions

PLACE = Path(__file__).parents[2] / "massgen_mcp" / "evaluation" / "tasks"


def task_sets() -> dict[str, str]:
    """The text of each file by its name."""
    return {f"{name}.jsonl": _lines(items) for name, items in {"questions": questions(), **programs.made()}.items()}


def _lines(items: Iterable[dict[str, Any]]) -> str:
    return "".join(f"{json.dumps(item)}\n" for item in items)


def main() -> int:
    for name, text in task_sets().items():
        (PLACE / name).write_text(text)
        print(f"{name}: {text.count(chr(10))} items")
    return 0


if __name__ == "__main__":
    sys.exit(main())
