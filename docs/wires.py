"""Plays every check, end and fault on every wire and writes what was seen to docs/wires.md.

The checks are those of the tests (tests/wires); the providers are doubles on this machine. Takes about a minute.
"""

import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from docs.markdown import table
from tests.wire_double import Aimock, running_aimock
from tests.wires.checks import CHECKS, Check
from tests.wires.ends import ENDS, fewer_cells, play_ends
from tests.wires.faults import FAULTS, Fault, cell, play
from tests.wires.manners import MANNERS, play_row
from tests.wires.rows import ROWS, Row

HEAD = """\
# Wires

<!-- Written by `make docs` from a run of tests/wires; do not edit. -->

A wire is a protocol in which models are asked. Here is the outcome of every check and fault on every wire, played
against local doubles of the providers. No real provider was asked. Every request was valid by the types of the
provider's SDK, or by the rules of its API.

## What every wire does

"""

FAULTS_HEAD = """
## What every wire stands

A cell shows how three runs of one agent ended, and after how many requests: the fault stayed; it came once and the next
reply was good; it stayed in place of the final answer. One entry stands for three that are the same.

- No run took a part of a faulty reply for an answer, or more than 64 MiB of memory beyond what the process had.
- Every request was one that the API allows, with the model's mistake in it. Each had its own key, and none went
  to another host.
- Gemini sends no malformed call: it ends the reply with `MALFORMED_FUNCTION_CALL`, which is tried again.

"""


ENDS_HEAD = """
## How a reply may end

Only ends that are known to be good make an answer: those of the SDKs' own types, and those that servers and providers
add to them (`backends/ends.py` names which). After a refusal nothing is asked again. Every other word (`abort`,
`cancelled`, `error`, none at all) is an error that is tried again, and so is an unknown one, unless it ends tool calls
whose arguments are whole. A wrong usage costs no reply: the tokens are estimated.

"""


MANNERS_HEAD = """
## How a model may act

Not every model calls tools as it is asked to. These doubles do not, over Chat Completions. A refused request is no
call: it is sent again without what was refused, which is remembered as long as the process lives. Refusals are
recognized by the words of real servers (`massgen_mcp/backends/abilities.py`).

"""


async def _manners() -> tuple[str, int]:
    """The table of manners, and how many rows failed."""
    lines: list[list[str]] = []
    for manner in MANNERS:
        with tempfile.TemporaryDirectory() as directory:
            try:
                lines.append([manner.title, *await play_row(Path(directory), manner)])
            except AssertionError as error:
                lines.append([manner.title, *[_failed(error)] * 3])
    text = MANNERS_HEAD + table(["model or server", "three agents", "three with files", "one alone"], grouped(lines))
    return text, sum("FAILED" in cell for line in lines for cell in line) // 3


async def _ends() -> tuple[str, int]:
    """The table of ends, and how many runs went wrong."""
    rows = [row for row in ROWS if row.title in ENDS]
    tallies = [await play_ends(row, fewer_cells(row)) for row in rows]
    lines = [
        [row.title, str(t.cells), str(len(t.false)), str(len(t.lost)), str(len(t.miscounted))]
        for row, t in zip(rows, tallies, strict=True)
    ]
    columns = ["wire", "runs", "false completions", "answers lost that were paid for", "replies counted wrong"]
    return ENDS_HEAD + table(columns, lines), sum(not tally.sound for tally in tallies)


async def page() -> str:
    """The page. Its cells say where a check or a fault failed, and so does standard error."""
    with tempfile.TemporaryDirectory() as fixtures, running_aimock(Path(fixtures)) as aimock:
        checks = [[row.title, *[await _check(check, row, aimock) for check in CHECKS]] for row in ROWS]
    faults = [[fault.title, *[await _fault(fault, row) for row in ROWS]] for fault in FAULTS]
    failed = sum(cell.startswith("FAILED") for line in (*checks, *faults) for cell in line)
    text = HEAD + by_wire(
        "check", list(zip([check.title for check in CHECKS], *(line[1:] for line in checks), strict=True))
    )
    ends, wrong = await _ends()
    failed, text = failed + wrong, text + ends
    manners, wrong = await _manners()
    failed, text = failed + wrong, text + manners
    if failed:
        sys.stderr.write(f"{failed} cells of docs/wires.md FAILED\n")
    return text + FAULTS_HEAD + by_wire("fault", faults)


def by_wire(what: str, lines: Sequence[Sequence[str]]) -> str:
    """A table with what most wires do, and what others do. A line: the title, then what was seen on each wire."""
    return table([what, "seen", "except"], grouped(by_wire_line(*line) for line in lines))


def grouped(lines: Iterable[Sequence[str]]) -> list[list[str]]:
    """One line for all titles of which the same was seen."""
    titles: dict[tuple[str, ...], list[str]] = {}
    for title, *cells in lines:
        titles.setdefault(tuple(cells), []).append(title)
    return [["; ".join(named), *cells] for cells, named in titles.items()]


def by_wire_line(title: str, *seen: str) -> list[str]:
    """The title, what most wires do, and what the others do."""
    usual, count = Counter(seen).most_common(1)[0]
    if count == 1:
        usual = ""
    wires: dict[str, list[str]] = {}
    for row, one in zip(ROWS, seen, strict=True):
        wires.setdefault(one, []).append(row.title)
    others = [f"{', '.join(titles)}: {one}" for one, titles in wires.items() if one != usual]
    return [title, usual, "; ".join(others)]


async def _check(check: Check, row: Row, aimock: Aimock) -> str:
    aimock.reset()
    try:
        async with row.provider(aimock) as provider:
            return await check.play(row, provider)
    except AssertionError as error:
        return _failed(error)


async def _fault(fault: Fault, row: Row) -> str:
    try:
        return cell(await play(fault, row))
    except AssertionError as error:
        return _failed(error)


def _failed(error: AssertionError) -> str:
    return f"FAILED: {str(error).splitlines()[0] if str(error) else 'see the test'}".replace("|", "/")
