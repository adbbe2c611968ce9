"""docs/security.md names tests for every threat, docs/guarantees.md for every promise; they exist."""

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


GUARANTEES = (ROOT / "docs" / "guarantees.md").read_text()


@pytest.mark.parametrize("promise", GUARANTEES.split("\n## ")[1:], ids=lambda promise: promise.partition("\n")[0])
def test_every_promise_names_tests_that_exist_and_its_limits(promise: str) -> None:
    _, tested, limits = re.split(r"- \*\*(?:Tested by|Not covered)\*\*: ", promise)
    files = re.findall(r"`(tests/\w+(?:/\w+)*\.py)`", tested)
    assert len(files) > 1
    assert [file for file in files if not (ROOT / file).is_file()] == []
    assert limits.strip()


def test_there_are_five_promises() -> None:
    assert GUARANTEES.count("\n## ") == 5
