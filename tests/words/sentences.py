"""The sentences that people and clients' models read, by the place where they read them.

Texts for agents (prompts, results of their tools) aren't among them. A sentence has at least four words. In messages of
the code, `…` stands for each part that differs.
"""

import ast
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.words.messages import GAP, read_messages

MOST_READ = (
    *("tutorial", "config", "code-work", "costs", "security", "guarantees", "cli", "clients", "troubleshooting"),
    *("python", "runs"),
)
"""Pages of docs/ by name."""
FOR_AGENTS = {"agents", "coordination", "orchestration", "skills", "tools", "workspace"}
"""Folders of the package whose texts only agents read."""
FOREIGN = {
    *("backends/abilities.py", "backends/own_loop.py"),
    *("backends/frameworks/ag2_agent.py", "backends/frameworks/ag2_group.py"),
}
"""Files whose texts are prompts, or errors of providers in their own words."""
PROMPTS = {"ACCEPT", "EVIDENCE", "FILES", "REFUTE", "REVIEW", "RULE", "_FINAL_NOTE", "_QUESTION", "_TOOLS_NOTE"}
"""Constants that hold prompts, in other files."""
PLACES_OF_FOLDERS: Mapping[str, str] = {
    "cli": "command line",
    "editors": "command line",
    "views": "command line",
    "page": "run pages",
    "web": "run pages",
    "statistics": "run pages",
    "server": "tools",
}
"""Folders of the package whose texts aren't errors."""
HELP = re.compile(r"options|command_line|verbs\.py")
"""Files of the command line that hold the help."""
TOOL_DESCRIPTIONS = {"server/tools.py", "server/resources.py"}
"""Files whose docstrings clients read."""

FENCED = re.compile(r"^( *)```.*?^\1```", re.DOTALL | re.MULTILINE)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
LINK = re.compile(r"!?\[([^]]*)\]\([^)]*\)")
END = re.compile(r"(?<=[.?!])[\"')*]*\s+(?=[A-Z`\"'(*…]|massgen )|(?<=:)\s+(?=[A-Z])")
WORD = re.compile(r"[\"'(]*[A-Za-z][a-z']*(?:-[a-z]+)*[.,;:?!)\"']*")
CODE_SPAN = re.compile(r"`[^`]*`")
SCRIPT_TEXT = re.compile(
    r"//[^\n]*|'((?:[^'\\\n]|\\.)*)'|\"((?:[^\"\\\n]|\\.)*)\"|`((?:[^`\\$]|\\.|\$\{[^{}`]*\}|\$)*)`"
)
"""A comment, which has no group, or a string."""
CODE = re.compile(r"[{};]|=>|&&|\(\?|\\[bdsw]|\w\(\w")
PROGRAM = re.compile(
    r"^\s*(SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|DROP|WITH|PRAGMA|BEGIN|import |from \w+ import|#!|<\w|http)"
)
"""Beginnings of SQL, Python, shell and markup."""
PATTERN = re.compile(
    r"\(\?[:!<Pi-]|\\[bdswSE.1(]|\w\|\w|[=<>] ?\?\d|\bAND [a-z(]|= CASE|\bFROM (runs|procrastinate)|\(old mode"
    r"|\brun_id, [a-z]+, |differ\|GIT|[{] (font|border)|^\((allow|deny)|^(umoci|kind=|echo|state IN|str [|]|if command)"
    r"|\.\*\)|^[\[{]+(\w+: |\")"
)
"""Regular expressions, SQL, styles, shell and JSON."""
GAPS = re.compile(rf"{GAP}(?: ?{GAP})+")
WRAPPED = re.compile(r"(?<=[a-z,])\n(?=[a-z])")
FIELD = re.compile(r"\{[a-z_]*\}(?!`)|%[sdr]\b")
"""A field of a template, or of a line of the log."""
TAG = re.compile(r"</?(?:p|li|ul|h\d|b|code|t[dhr])>")
FEWEST_WORDS = 4


@dataclass(frozen=True)
class Sentence:
    """A sentence, its place and the file that has it."""

    text: str
    place: str
    file: str


def find_sentences(root: Path) -> list[Sentence]:
    """Return all sentences of a repository, each once for a place."""
    found = [*_of_pages(root), *_of_package(root), *_of_action(root)]
    return list({(one.place, one.text): one for one in found}.values())


def draw_sentences(sentences: Sequence[Sentence], seed: str, count: int, places: Sequence[str] = ()) -> list[Sentence]:
    """Draw sentences at random from the places whose names begin with one of `places`; the same ones for a seed."""
    eligible = sorted(
        (one for one in sentences if one.place.startswith(tuple(places) or "")), key=lambda one: (one.text, one.place)
    )
    return random.Random(seed).sample(eligible, min(count, len(eligible)))


def split_markdown(text: str) -> Iterator[str]:
    """Yield the sentences of a page: of its paragraphs, list items, headings and the cells of its tables."""
    text = LINK.sub(r"\1", FENCED.sub("", COMMENT.sub("", text)))
    text = re.sub(r"(`[^`]*`)|<[^>\n]+>", r"\1", text)
    for block in re.split(r"\n\s*\n|\n(?= *(?:[-*]|\d+\.) )|\n(?=\|)|\n(?=#)", text):
        line = " ".join(block.split())
        parts = re.split(r"(?<!\\)\|", line.strip("|")) if line.startswith("|") else [line]
        for part in parts:
            yield from split_text(re.sub(r"^\s*(?:[-*]|\d+\.|#+)\s+", "", part))


def split_text(text: str) -> Iterator[str]:
    """Yield the sentences of a text that is no program."""
    if PROGRAM.match(text) or PATTERN.search(text):
        return
    text = WRAPPED.sub(" ", TAG.sub(" ", GAPS.sub(GAP, text)))
    for line in re.split(r"\n+|\s{2,}", text):
        if PATTERN.search(line):
            continue
        for part in END.split(line):
            sentence = part.replace("**", "").lstrip(";:,.)· ").rstrip()
            words = [word for word in CODE_SPAN.sub("", sentence).split() if WORD.fullmatch(word)]
            if len(words) >= FEWEST_WORDS:
                yield sentence


def read_texts(source: str, *, with_docstrings: bool = False) -> Iterator[str]:
    """Yield the strings of a Python file that are neither docstrings nor prompts; with_docstrings: also the docstrings
    of decorated functions.
    """
    tree = ast.parse(source)
    left_out: set[ast.AST] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant() as docstring):
                left_out.add(docstring)
            case ast.Assign(targets=[ast.Name(id=name)], value=prompt) if name in PROMPTS:
                left_out.update(ast.walk(prompt))
            case ast.FunctionDef(decorator_list=[_, *_]) | ast.AsyncFunctionDef(decorator_list=[_, *_]) if (
                with_docstrings
            ):
                yield " ".join((ast.get_docstring(node) or "").split())
            case _:
                pass
    for text in read_messages(tree, left_out):
        yield FIELD.sub(GAP, text).replace("{{", "{").replace("}}", "}")


def _of_pages(root: Path) -> Iterator[Sentence]:
    pages = {"README": root / "README.md", **{f"docs/{name}": root / "docs" / f"{name}.md" for name in MOST_READ}}
    for place, path in pages.items():
        for text in split_markdown(path.read_text(encoding="utf-8")):
            yield Sentence(text, place, path.relative_to(root).as_posix())


def _of_package(root: Path) -> Iterator[Sentence]:
    package = root / "massgen_mcp"
    for path in sorted(package.rglob("*")):
        file = path.relative_to(package)
        is_read = file.parts[0] not in FOR_AGENTS and file.as_posix() not in FOREIGN
        if not is_read or path.suffix not in {".py", ".js"}:
            continue
        place = _place_of(file)
        for text in _read_file(path, file):
            for sentence in split_text(text):
                yield Sentence(sentence, place, f"massgen_mcp/{file.as_posix()}")


def _place_of(file: Path) -> str:
    place = PLACES_OF_FOLDERS.get(file.parts[0], "errors")
    return "help" if place == "command line" and HELP.search(file.name) else place


def _read_file(path: Path, file: Path) -> Iterator[str]:
    source = path.read_text(encoding="utf-8")
    match path.suffix:
        case ".py":
            yield from read_texts(source, with_docstrings=file.as_posix() in TOOL_DESCRIPTIONS)
        case ".js":
            for parts in SCRIPT_TEXT.findall(source):
                text = re.sub(r"\$\{[^}]*\}", GAP, "".join(parts)).replace("\\'", "'")
                if not CODE.search(text):
                    yield text
        case _:
            pass


def _of_action(root: Path) -> Iterator[Sentence]:
    for text in re.findall(r"^ *description: \"?(.+?)\"?$", (root / "action.yml").read_text(), re.MULTILINE):
        for sentence in split_text(text):
            yield Sentence(sentence, "action", "action.yml")
