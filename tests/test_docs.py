"""The pages under docs/ name real tests."""

import re

import pytest

from tests.harness import ROOT

PAGE = (ROOT / "docs" / "coordination.md").read_text()
TESTS = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(test_\w+?)(?:_…)?`", PAGE))))
def test_a_test_that_the_table_names_exists(name: str) -> None:
    assert re.search(rf"def {name}", TESTS)


@pytest.mark.parametrize("file", sorted(set(re.findall(r"`([\w/]+/test_\w+\.py)`", PAGE))))
def test_a_file_that_the_table_names_exists(file: str) -> None:
    assert (ROOT / "tests" / file).is_file()
