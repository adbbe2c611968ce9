"""`docs/cli.md` tells the truth: its example is run, and its tables name what there is."""

import argparse
import doctest
import re
import shlex

import pytest

from massgen_mcp.cli.commands import NAMES, load_verb
from massgen_mcp.cli.massgen.options import AskKind, make_parser
from massgen_mcp.cli.program import read
from tests.cli.codes import CODES_OF_MASSGEN, CODES_OF_VERBS
from tests.commands import run_command
from tests.harness import COMMAND_MODULE, ROOT, TempHome

PAGE = (ROOT / "docs" / "cli.md").read_text()


KINDS: tuple[AskKind, ...] = ("ask", "batch")
CHANGING = [name for name in NAMES if load_verb(name).changes_run or name == "resume"]
VALUES = {
    "STATE": "running",
    "N": "3",
    "SECONDS": "3",
    "DAYS": "3",
    "USD": "3",
    "WHEN": "36h",
    "CLIENT": "codex",
    "VERDICT": "right",
    "NAMES": "a,b",
}
"""What stands for the words in capitals that are not any text."""


def section(title: str) -> str:
    """The text under a heading, up to the next one."""
    (found,) = re.findall(rf"^#+ {re.escape(title)}\n(.*?)(?=^#|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    return found


def first_cells(table: str) -> list[str]:
    return [cell.replace("\\|", "|") for cell in re.findall(r"^\| `(.*?)`(?=[ ,].*\|)", table, re.MULTILINE)]


def test_the_example_prints_what_the_page_shows(home: TempHome) -> None:
    (example,) = re.findall(r"```console\n\$ massgen (.*?)\n(.*?)```", PAGE, re.DOTALL)
    done = run_command(home, COMMAND_MODULE, *shlex.split(example[0]))
    assert done.returncode == 0
    assert doctest.OutputChecker().check_output(example[1], done.stdout, doctest.ELLIPSIS), done.stdout


@pytest.mark.parametrize("name", NAMES)
def test_every_verb_is_found_by_its_name_and_has_a_line_in_the_help(name: str) -> None:
    verb = load_verb(name)
    assert verb.name == name
    assert verb.help


def test_the_page_has_every_option_and_no_other() -> None:
    shown = [action for kind in KINDS for action in make_parser(kind)._actions if action.help != argparse.SUPPRESS]
    known = {name for action in shown for name in action.option_strings if name.startswith("--")}
    cells = re.findall(r"^\| (`--.*?) \| ", section("massgen") + section("Many questions"), re.MULTILINE)
    assert set(re.findall(r"`(--[a-z-]+)", "".join(cells))) == known


def test_the_page_has_every_verb_as_it_is_parsed() -> None:
    written = [cell.split()[0] for cell in first_cells(section("Verbs"))]
    assert written == list(NAMES)
    for cell in first_cells(section("Verbs")):
        if cell.startswith("help"):
            continue
        needed = re.sub(r"\[.*?\]", "", cell)
        for further in {"", *re.findall(r"\[(.*?)\]", cell)} - {"ID"}:
            given = [VALUES.get(word, word.split("|")[0]) for word in f"{needed} {further}".split()]
            if given[0] in CHANGING and "ID" not in given:
                given[1:1] = ["ID"]
            assert read("massgen", given)[0].name == given[0]


@pytest.mark.parametrize(
    ("title", "codes"),
    [("Exit codes of a question", CODES_OF_MASSGEN), ("Exit codes of verbs", CODES_OF_VERBS)],
)
def test_the_page_has_the_exit_codes_that_there_are(title: str, codes: frozenset[int]) -> None:
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", section(title), re.MULTILINE)} == codes
