"""What is to be done with one file of a person's: what it is before, and what it shall be. Pure.

A path is text as the operating system decodes it (`os.fsdecode`), relative, with `/` between its parts.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from massgen_mcp.changes.files import TreeFile


@dataclass(frozen=True, slots=True)
class ChangeStep:
    """`old` is None for a file that is made, `new` for one that is removed. `permissions`: of a file that is removed,
    and of one that is made where they are known from before. `like`: where a file that is renamed was, as long as it is
    there; no row has it.
    """

    path: str
    old: TreeFile | None
    new: TreeFile | None
    permissions: int | None = None
    like: str | None = None


Row: TypeAlias = tuple[str, TreeFile | None, TreeFile | None, int | None]
"""A step for JSON."""


def as_row(step: ChangeStep) -> Row:
    return (step.path, step.old, step.new, step.permissions)


def of_row(row: Row) -> ChangeStep:
    path, old, new, permissions = row
    return ChangeStep(path, old and TreeFile(*old), new and TreeFile(*new), permissions)


def steps_between(before: Mapping[bytes, TreeFile], after: Mapping[bytes, TreeFile]) -> list[ChangeStep]:
    """What makes the files of one tree those of another."""
    paths = [path for path in {**before, **after} if before.get(path) != after.get(path)]
    return [ChangeStep(os.fsdecode(path), before.get(path), after.get(path)) for path in paths]


def in_order(steps: Iterable[ChangeStep]) -> tuple[ChangeStep, ...]:
    """As they can be done one after the other: what is removed makes room for what is made."""
    return tuple(sorted(steps, key=lambda step: (step.new is not None, step.path)))


def parents_of(path: str) -> list[str]:
    """The directories above a path, outermost first; the root is not among them."""
    parts = path.split("/")
    return ["/".join(parts[:end]) for end in range(1, len(parts))]
