"""Amounts of money, tokens and calls in the record of a run that comes from elsewhere. Pure."""

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import cast

from massgen_mcp.events.record import LogRecord
from massgen_mcp.runs.store.run_file import MovedRun

AMOUNTS = ("usd", "tokens", "calls", "searches", "seconds")
"""The ends of the names of fields that are added up, or that limit such a sum."""
SIGNED = frozenset({"saved_usd"})
"""A cache that was only written has saved less than nothing."""


def find_wrong_amounts(moved: MovedRun, records: Sequence[LogRecord]) -> Iterator[str]:
    """Name the amounts that are negative or not finite: they would lower sums, and raise what may be spent."""
    if not is_amount(moved.run.usd):
        yield "`usd` in manifest.json"
    for action, message in moved.controls:
        if action == "raise_budget" and not is_amount(message):
            yield "a raised budget in manifest.json"
    for record in records:
        for name in _find_wrong_fields(record.event.model_dump()):
            yield f"`{name}` of event {record.seq}"


def is_amount(value: object) -> bool:
    """Tell a number that can be added up; None and what is no number at all are for others to judge."""
    if isinstance(value, str):
        with suppress(ValueError):
            value = float(value)
    return not isinstance(value, int | float) or (math.isfinite(value) and value >= 0)


def _find_wrong_fields(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in cast("dict[str, object]", value).items():
            if name.endswith(AMOUNTS) and name not in SIGNED and not is_amount(inner):
                yield name
            yield from _find_wrong_fields(inner)
    elif isinstance(value, list | tuple):
        for inner in cast("Sequence[object]", value):
            yield from _find_wrong_fields(inner)
