"""A command that a message or a page names exists: its verb, as the help calls it, and each of its options."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from inspect import iscoroutinefunction
from pathlib import Path

import pytest

from massgen_mcp.cli.command_line import describe_arguments
from massgen_mcp.cli.commands import NAMES, load_verb
from massgen_mcp.cli.exits import UsageError
from massgen_mcp.cli.old_spellings import OPTIONS, OPTIONS_TO_VERBS, VERBS
from massgen_mcp.cli.program import choose_verb
from massgen_mcp.cli.verb import Verb
from tests.harness import ROOT
from tests.words.references import FENCED, IN_BACKTICKS

COMMAND = re.compile(r"(?:\$ )?(massgen(?:-mcp)?)(?: (.*))?")
IN_PROSE = re.compile(rf"\bmassgen(?:-mcp)? (?:{'|'.join([*NAMES, *VERBS])})(?: (?:--?\w[\w-]*|[A-Z]+\b|…))+")
OPTION = re.compile(r"--?[a-zA-Z][\w-]*")
EVERYWHERE = {"-h", "--help"}
EARLIER = {*OPTIONS_TO_VERBS, *(option for renamed in OPTIONS.values() for option in renamed)} - {"--init"}
"""Without one that other programs have, too."""
PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "docs/*.md",
    "website/*.md",
    "examples/**/*.md",
    "deploy/*",
    "action.yml",
    "plugins/**/*.md",
)


@cache
def list_options(verb: str) -> set[str]:
    words = describe_arguments(load_verb(verb).make_parser()).replace("|", " ").split()
    return {word for word in words if word.startswith("-")} | EVERYWHERE


def find_fault(command: str) -> str | None:
    """Say what of a command line does not exist."""
    found = COMMAND.fullmatch(command.strip())
    if found is None:
        option = command.partition(" ")[0]
        is_earlier = option in EARLIER and not any(option in list_options(name) for name in NAMES)
        return "an earlier spelling" if is_earlier else None
    program, rest = found[1], re.sub(r'"[^"]*"|\'[^\']*\'', "Q", (found[2] or "").partition(" #")[0])
    words = re.split(r" -- | [|>&;] ", f"{rest} ")[0].split()
    if words[:1] == ["VERB"]:
        return None
    if words and words[0] in VERBS:
        return f"`{words[0]}` is an earlier spelling"
    try:
        verb, words = choose_verb("massgen" if program == "massgen" else "massgen-mcp", words)
    except UsageError as error:
        return str(error)
    named = [option[0] for word in words if (option := OPTION.match(word.strip("[]|().,")))]
    unknown = [option for option in named if option not in list_options(verb)]
    return f"{verb} has no {', '.join(unknown)}" if unknown else None


def find_commands(text: str) -> Iterator[tuple[int, str]]:
    """Yield the commands of a text with the line where each begins, counted from 0: in backticks, or with an option or
    an argument in prose.
    """
    for found in IN_BACKTICKS.finditer(text):
        yield text.count("\n", 0, found.start()), found[1]
    for found in IN_PROSE.finditer(text):
        yield text.count("\n", 0, found.start()), found[0]


def find_commands_of_page(text: str) -> Iterator[tuple[int, str]]:
    """Yield also the lines of its blocks."""
    yield from find_commands(FENCED.sub(lambda fenced: "\n" * fenced[0].count("\n"), text))
    for found in FENCED.finditer(text):
        first = text.count("\n", 0, found.start())
        yield from ((first + place, line) for place, line in enumerate(found[0].splitlines()))


def read_strings(source: str) -> Iterator[tuple[int, str]]:
    """Yield each string of a module with its line; `…` stands for what an f-string inserts."""
    tree = ast.parse(source)
    inserted = {part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values]
            yield node.lineno, "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in inserted:
            yield node.lineno, node.value


def list_named_commands() -> Iterator[tuple[Path, int, str]]:
    for file in sorted((ROOT / "massgen_mcp").rglob("*.py")):
        for line, text in read_strings(file.read_text(encoding="utf-8")):
            yield from ((file, line + place, command) for place, command in find_commands(text))
    for file in sorted(path for pattern in PAGES for path in ROOT.glob(pattern) if path.is_file()):
        text = file.read_text(encoding="utf-8")
        yield from ((file, line + 1, command) for line, command in find_commands_of_page(text))


def test_a_command_in_a_message_or_on_a_page_exists() -> None:
    named = [*list_named_commands()]
    faults = {
        f"{file.relative_to(ROOT)}:{line}: {command}: {fault}"
        for file, line, command in named
        if (fault := find_fault(command))
    }
    assert sorted(faults) == []
    assert len([command for _, _, command in named if COMMAND.fullmatch(command.strip())]) > 300, "commands were found"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("run `massgen trust t.yaml`", "`trust` is an earlier spelling"),
        ("start a worker: massgen worker --pool a", "worker has no --pool"),
        ("`massgen --output-file a.md q`", "ask has no --output-file"),
        ("`massgen-mcp --transports http`", "serve has no --transports"),
        ("`massgen result ID --page -x`", "result has no -x"),
        ('`massgen -- "what is --nope?"`', None),
        ("`--output-file FILE`", "an earlier spelling"),
        ("`massgen eval @questions -c a --max-usd 5`", None),
    ],
)
def test_a_command_that_does_not_exist_is_found(text: str, fault: str | None) -> None:
    faults = {find_fault(command) for _, command in find_commands(text)}
    assert faults - {None} == ({fault} - {None})


def test_the_work_of_every_verb_exists() -> None:
    """Also the work that an option chooses."""
    sources = [file.read_text(encoding="utf-8") for file in (ROOT / "massgen_mcp" / "cli" / "commands").glob("*.py")]
    have_methods = {"ask", "start", "batch", "init", "eval", "help"}
    packages = {verb.work: verb.package for verb in map(load_verb, NAMES) if verb.name not in have_methods}
    chosen = {work for source in sources for work in re.findall(r"\"([\w.]+:\w+)\"", source)}
    assert chosen - {*packages} == {"pages:write_report"}, "it is chosen by an option"
    for work in sorted(chosen | {*packages}):
        module, _, function = f"{packages.get(work, Verb.package)}.{work}".partition(":")
        assert iscoroutinefunction(getattr(import_module(module), function)), work
