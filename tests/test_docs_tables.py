"""The tables of docs/backends.md and docs/wires.md hold what the code and the tests hold."""

from docs.wires import by_wire_line, grouped
from massgen_mcp.config.providers.catalog import PROVIDERS
from tests.harness import ROOT
from tests.wires.checks import CHECKS
from tests.wires.ends import ENDS
from tests.wires.faults import FAULTS, cell
from tests.wires.manners import MANNERS
from tests.wires.rows import ROWS


def test_the_page_of_backends_has_a_row_for_every_type() -> None:
    lines = (ROOT / "docs" / "backends.md").read_text(encoding="utf-8").splitlines()
    rows = [line.split("`")[1] for line in lines if line.startswith("| `")]
    assert rows == [row.type for row in PROVIDERS]


def test_the_page_of_wires_lists_every_wire_check_and_fault_and_none_that_failed() -> None:
    text = (ROOT / "docs" / "wires.md").read_text(encoding="utf-8")
    tables = [[line.strip("| ").split(" | ") for line in block.splitlines()] for block in text.split("\n\n")]
    checks, ends, faults = (table for table in tables if table[0][0] in ("check", "wire", "fault"))
    titles = [row.title for row in ROWS]
    assert titles_of(checks) == sorted(check.title for check in CHECKS), "run `make docs ONLY=wires`"
    assert [line[0] for line in ends[2:]] == [title for title in titles if title in ENDS], "run `make docs ONLY=wires`"
    assert all(line[2:] == ["0", "0", "0"] for line in ends[2:]), "no answer is false, lost or counted wrong"
    assert titles_of(faults) == sorted(fault.title for fault in FAULTS), "run `make docs ONLY=wires`"
    assert "FAILED" not in text


def titles_of(table: list[list[str]]) -> list[str]:
    """What its rows are about; a row may be about several."""
    return sorted(title for line in table[2:] for title in line[0].split("; "))


def test_the_page_of_wires_tells_what_the_faults_of_the_tests_expect() -> None:
    text = (ROOT / "docs" / "wires.md").read_text(encoding="utf-8")
    expected = [by_wire_line(fault.title, *(cell(fault.expected(row)) for row in ROWS)) for fault in FAULTS]
    for line in grouped(expected):
        assert f"| {' | '.join(line)} |" in text, "run `make docs ONLY=wires`"


def test_the_page_of_wires_tells_how_models_may_act() -> None:
    text = (ROOT / "docs" / "wires.md").read_text(encoding="utf-8")
    for line in grouped([manner.title, *manner.cells] for manner in MANNERS):
        assert f"| {' | '.join(line)} |" in text, "run `make docs ONLY=wires`"
