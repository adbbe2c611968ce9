"""`docs/cli.md` tells the truth: its example is run, and it names only options, verbs and codes that exist."""

import doctest
import re
import shlex

import pytest

from massgen_mcp.cli.commands import NAMES, load_verb
from massgen_mcp.cli.massgen.options import make_parser
from tests.cli.codes import CODES_OF_MASSGEN, CODES_OF_VERBS
from tests.commands import run_command
from tests.harness import COMMAND_MODULE, ROOT, TempHome

PAGE = (ROOT / "docs" / "cli.md").read_text()


def section(title: str) -> str:
    """The text under a heading, up to the next one."""
    (found,) = re.findall(rf"^#+ {re.escape(title)}\n(.*?)(?=^#|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    return found


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


def test_every_option_and_verb_that_the_page_names_is_there() -> None:
    options = {name for action in make_parser()._actions for name in action.option_strings}
    for name in set(NAMES) - {"ask"}:
        options |= {option for action in load_verb(name).make_parser()._actions for option in action.option_strings}
    assert set(re.findall(r"`(--[a-z-]+)", PAGE)) <= options
    rows = re.findall(r"^\| (`.*?`) \| [^|]*\|$", section("JSON"), re.MULTILINE)
    verbs = {verb for row in rows for verb in re.findall(r"`([a-z-]+)(?: --[a-z-]+)?`", row)}
    assert verbs <= set(NAMES)
    assert {"runs", "doctor", "validate", "watch"} <= verbs


def test_the_codes_of_the_page_are_those_that_there_are() -> None:
    codes = {
        int(code)
        for code in re.findall(r"\b\d\b", "".join(re.findall(r"^\|.*?\|(.*?)\|", section("Exit codes"), re.MULTILINE)))
    }
    assert codes <= CODES_OF_MASSGEN | CODES_OF_VERBS
