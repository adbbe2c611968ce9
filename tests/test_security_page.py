"""docs/security.md names, for every threat, tests that exist and places that its links lead to."""

import re

import pytest

from tests.harness import ROOT

PAGE = (ROOT / "docs" / "security.md").read_text()
ROWS = [line for line in PAGE.partition("## Threats")[2].partition("\n## ")[0].splitlines() if line.startswith("| ")][
    1:
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip()[:40])
def test_every_threat_names_tests_that_exist(row: str) -> None:
    files = re.findall(r"`([\w/]+/test_\w+\.py)`", row.split("|")[4])
    assert files
    assert all((ROOT / "tests" / file).is_file() for file in files)
