"""The tables under docs/ say what the code says."""

import runpy

from massgen_mcp.config.providers import PROVIDERS
from tests.harness import ROOT


def test_the_page_of_backends_is_up_to_date() -> None:
    script = runpy.run_path(str(ROOT / "docs" / "tables.py"))
    assert script["PAGE"].read_text(encoding="utf-8") == script["page"](), "run `python docs/tables.py`"


def test_the_page_of_backends_has_a_row_for_every_type() -> None:
    lines = (ROOT / "docs" / "backends.md").read_text(encoding="utf-8").splitlines()
    rows = [line.split("`")[1] for line in lines if line.startswith("| `")]
    assert rows == [row.type for row in PROVIDERS]
