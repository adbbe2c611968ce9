"""A name in backticks exists. Otherwise: correct it, or list the name of another program in `foreign.py`."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.harness import ROOT
from tests.words.foreign import FOREIGN
from tests.words.references import DATA_SUFFIXES, Code

LISTED = {name for names in FOREIGN.values() for name in names}
PACKAGE = ROOT / "massgen_mcp"
NOT_OURS = {
    *("node_modules", "dist", "build", "htmlcov", ".git", ".venv", ".massgen"),
    *(".hypothesis", ".import_linter_cache", ".pytest_cache", ".ruff_cache"),
}
LEFT_OUT = {"CHANGELOG.md", "package-lock.json", "tests/api/programmatic_api.md", "tests/words/test_stale_names.py"}
GOOD = {
    "pack/money/budget.py": '''
"""Keeps `LIMIT`; see `Budget.spend`, `tariff.price_of` and `money.tariff`. `max_usd` of a config, `openat2` of Linux.
"""
from pack.money.tariff import price_of

LIMIT = 3


class Budget:
    """`spent` grows by each `spend(usd)`, `spare` is in `tariff.py`."""

    def spend(self, usd: float) -> None:
        """`usd`: a part of `max_usd`."""
        self.spent = price_of(usd) or {"max_usd": 1}
''',
    "pack/money/tariff.py": "spare = 1\n\n\ndef price_of(usd: float) -> float:\n    return usd  # as in `Budget`\n",
    "pack/talk/words.py": 'SAID = "`Budget` of `budget.py`: raise `max_usd`, or run `pack --help`"\n',
    "page.md": "Set `max_usd`, which `Budget` reads in `pack/money/budget.py`.\n\n```\n`no_such_name`\n```\n",
    "team.yaml": "team:\n  max_usd: 3\n",
}
BAD_TWINS = {
    "a docstring": ("pack/talk/words.py", '"""See `Wallet`."""\n', "pack/talk/words.py:1: `Wallet` does not exist"),
    "a comment": ("pack/talk/words.py", "\n# As `old_name` does.\n", "pack/talk/words.py:2: `old_name` does not exist"),
    "a message": ("pack/talk/words.py", 'SAID = "set `min_usd`"\n', "pack/talk/words.py:1: `min_usd` does not exist"),
    "a page": ("page.md", "one\n\ntwo `max_eur`\n", "page.md:3: `max_eur` does not exist"),
    "a call": ("page.md", "`Budget.earn(usd)`\n", "page.md:1: `Budget.earn` does not exist"),
    "a file": ("page.md", "`money/wallet.py`\n", "page.md:1: `money/wallet.py` does not exist"),
    "a module": ("pack/talk/words.py", "# `money.wallet`\n", "pack/talk/words.py:1: `money.wallet` does not exist"),
    "a member": ("pack/talk/words.py", "# `Budget.spare`\n", "pack/talk/words.py:1: `Budget.spare` does not exist"),
    "a name of a module": ("pack/talk/words.py", "# `tariff.of`\n", "pack/talk/words.py:1: `tariff.of` does not exist"),
    "a plain word of another room": (
        "pack/talk/words.py",
        "# `spare`\n",
        "pack/talk/words.py:1: `spare` does not exist",
    ),
}


def read_files(place: Path, files: Mapping[str, str]) -> Code:
    paths = [place / name for name in files]
    for path, text in zip(paths, files.values(), strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return Code(place, paths, place / "pack", {"openat2"})


def list_files() -> list[Path]:
    """List the files of the repository, without other people's text and what is installed or built."""
    found: list[Path] = []
    for directory, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in NOT_OURS]
        found += [Path(directory) / name for name in files if name.endswith((".py", ".md", *DATA_SUFFIXES))]
    return [path for path in found if path.relative_to(ROOT).as_posix() not in LEFT_OUT]


def test_a_name_in_backticks_exists() -> None:
    files = list_files()
    shipped = [path for path in files if PACKAGE in path.parents or ROOT / "configs" in path.parents]
    of_package = Code(ROOT, [*shipped, ROOT / "pyproject.toml"], PACKAGE, LISTED, others=files)
    of_all = Code(ROOT, files, PACKAGE, LISTED)
    outside = [line for line in of_all.find_stale() if not line.startswith("massgen_mcp/")]
    assert [*of_package.find_stale(), *outside] == []
    assert len(of_all.mentions) > 3_000, "the files were found"


def test_every_listed_name_of_another_program_is_needed() -> None:
    without = Code(ROOT, list_files(), PACKAGE, set())
    assert {name for name in LISTED if all(mention.name != name for mention, _ in without.mentions)} == set()


def test_names_that_exist_are_found(tmp_path: Path) -> None:
    assert read_files(tmp_path, GOOD).find_stale() == []


@pytest.mark.parametrize("where", [*BAD_TWINS])
def test_a_name_that_does_not_exist_is_told_with_its_place(where: str, tmp_path: Path) -> None:
    file, text, told = BAD_TWINS[where]
    assert read_files(tmp_path, {**GOOD, file: text}).find_stale() == [told]
