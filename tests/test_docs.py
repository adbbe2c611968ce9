"""The pages under docs/ tell the truth: what is generated is up to date, no link is dead, every example is tried."""

import json
import os
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import jsonschema
import pytest
import yaml

from docs import config_reference
from docs.__main__ import PAGES, place_of, text_of
from docs.index import GROUPS, without_place
from docs.markdown import anchor
from massgen_mcp.config.models.common import Settings
from massgen_mcp.config.schema import config_schema, meanings, subclasses
from tests.commands import run_command
from tests.harness import ROOT, SERVER_MODULE, TempHome, home
from tests.schemas import checker

__all__ = ["home"]

DOCS = ROOT / "docs"
APART = {"node_modules", "dist", "build"}
"""Directories whose Markdown is not ours."""
JSON_BLOCK = re.compile(r"^```json\n(.*?)^```", re.DOTALL | re.MULTILINE)
FENCED = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```", re.DOTALL | re.MULTILINE)


def all_pages() -> list[Path]:
    """Every Markdown file of the project."""
    found: list[Path] = []
    for directory, folders, files in os.walk(ROOT):
        folders[:] = [each for each in folders if each not in APART and (each == ".ci" or not each.startswith("."))]
        found += [Path(directory) / file for file in files if file.endswith(".md")]
    return sorted(found)


MARKDOWN = all_pages()


# -- generated pages --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(PAGES.keys() - {"wires"}))
async def test_a_generated_page_is_up_to_date(name: str) -> None:
    """That of wires takes a minute to make; `test_docs_tables` compares what its parts say."""
    assert place_of(name).read_text(encoding="utf-8") == await text_of(name), f"run `make docs ONLY={name}`"


def test_every_page_has_a_place_in_the_index() -> None:
    assert without_place() == [], "name them in a group of docs/index.py, then run `make docs ONLY=README`"
    names = [name for group in GROUPS.values() for name in group]
    assert len(names) == len(set(names)), "each page has one place"


# -- links ------------------------------------------------------------------------------------------------------------


@cache
def anchors(path: Path) -> frozenset[str]:
    text = FENCED.sub("", path.read_text(encoding="utf-8"))
    found: list[str] = []
    for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE):
        name = anchor(heading)
        count = len([each for each in found if re.fullmatch(rf"{re.escape(name)}(-\d+)?", each)])
        found.append(f"{name}-{count}" if name in found else name)
    return frozenset(found)


def dead_links(page: Path) -> Iterator[str]:
    text = re.sub(r"`[^`\n]*`", "", FENCED.sub("", page.read_text(encoding="utf-8")))
    for target in re.findall(r"\]\(([^)\s]+)\)|^\[[^]]+\]: (\S+)$", text, re.MULTILINE):
        path, _, heading = "".join(target).partition("#")
        if re.match(r"[a-z+]+:", path):
            continue
        place = (page.parent / path).resolve() if path else page
        if not place.exists() or (heading and place.suffix == ".md" and heading not in anchors(place)):
            yield "".join(target)


@pytest.mark.parametrize("page", MARKDOWN, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_link_is_dead(page: Path) -> None:
    assert list(dead_links(page)) == []


# -- examples ---------------------------------------------------------------------------------------------------------

RUN_ELSEWHERE: Mapping[str, str] = {
    "README.md": "tests/test_readme.py",
    "docs/python.md": "tests/api/test_docs_python.py",
    "docs/agents-api.md": "tests/agents/test_page.py",
    "docs/clients.md": "tests/test_clients_page.py",
    "docs/cli.md": "tests/cli/test_page.py",
    "docs/tutorial.md": "tests/test_tutorial.py",
    "tests/api/programmatic_api.md": "tests/api/test_programmatic_api.py",
}
"""Pages whose blocks are run, and the tests that do it."""

SHOWN_ONLY: Mapping[str, str] = {
    "": "pictures of a terminal or a directory, and what installs a package from an index",
    "text": "output of a program, or a file of another program (a proxy, systemd)",
    "sh": "commands that change the reader's machine or client; those of ours are parsed here",
    "bash": "the same",
    "console": "the same, with what they print",
    "mermaid": "a drawing; tests/test_architecture.py compares it with the imports",
}
"""Languages of blocks that no test runs, and why. Blocks of YAML, JSON and Python are always tried."""

NO_TEAM: Mapping[str, str] = {
    "docs/security.md": "the file of what an operator accepts",
    "docs/review.md": "workflows of GitHub, which release/check.py tries",
}
"""Pages with YAML that is no config. Fragments of a config are loaded with a team of one around them."""


def blocks(*languages: str) -> list[tuple[str, str, str]]:
    """Page, language and text of every block that is not run elsewhere."""
    found: list[tuple[str, str, str]] = []
    for path in MARKDOWN:
        page = str(path.relative_to(ROOT))
        if page not in RUN_ELSEWHERE:
            for indent, language, text in FENCED.findall(path.read_text(encoding="utf-8")):
                found.append((page, language, re.sub(rf"^{indent}", "", text, flags=re.MULTILINE)))
    return [each for each in found if not languages or each[1] in languages]


def test_every_block_is_tried_or_says_here_why_it_is_not() -> None:
    strange = [(page, language) for page, language, _ in blocks() if language not in {"yaml", "json", *SHOWN_ONLY}]
    assert strange == []
    assert [test for test in RUN_ELSEWHERE.values() if not (ROOT / test).is_file()] == []


@pytest.mark.parametrize("page", sorted({page for page, *_ in blocks("yaml")} - NO_TEAM.keys()))
def test_every_config_of_a_page_loads(page: str) -> None:
    for _, _, text in (each for each in blocks("yaml") if each[0] == page):
        config_reference.load_example(whole(text))


def whole(text: str) -> str:
    """A config with a team; a fragment begins with the key of a part."""
    part = yaml.safe_load(text)
    if part.keys() & {"agent", "agents"}:
        return text
    if backend := part.pop("backend", None):
        return yaml.safe_dump({**part, "agent": {"backend": {"type": "openai", "model": "gpt-5", **backend}}})
    return yaml.safe_dump({**part, "agent": {"backend": {"type": "scripted"}}})


def test_every_json_of_a_page_can_be_read() -> None:
    for page, _, text in blocks("json"):
        try:
            json.loads(text)
        except ValueError as error:
            pytest.fail(f"{page}: {error}")


# -- the reference of configs -----------------------------------------------------------------------------------------

SECTIONS = config_reference.SECTIONS
KINDS = {kind for section in SECTIONS for kind in section.kinds.values()}


def test_every_key_of_a_config_is_told_explained_and_shown() -> None:
    bases = {base for kind in KINDS for base in kind.__mro__}
    assert [kind for kind in subclasses(Settings) if kind not in KINDS | bases] == []
    for section in SECTIONS:
        for kind in section.kinds.values():
            for key in config_reference.listed_fields(kind):
                assert re.search(rf"\b{key}: ", section.example) or f"{key}:\n" in section.example, (kind, key)
                assert meanings(kind)[key].endswith("."), (kind, key)


def test_the_schema_for_editors_takes_the_teams_that_load_and_marks_a_wrong_key(home: TempHome) -> None:
    printed = run_command(home, SERVER_MODULE, "configs", "--schema")
    assert printed.returncode == 0
    schema = json.loads(printed.stdout)
    assert schema == config_schema()
    check = checker(schema)
    ours = [path for path in (ROOT / "configs").rglob("*.yaml") if path.parent.name != "ag2"]
    for text in [*(section.example for section in SECTIONS), *(path.read_text() for path in ours)]:
        check(yaml.safe_load(text))
    wrong = yaml.safe_load(SECTIONS[0].example)
    wrong["orchestrator"]["max_new_answer_per_agent"] = 3
    with pytest.raises(jsonschema.ValidationError, match="max_new_answer_per_agent"):
        check(wrong)
    for part in [schema, *schema["$defs"].values()]:
        assert all(member.get("description") for member in part.get("properties", {}).values()), part["title"]


# -- names of tests ---------------------------------------------------------------------------------------------------

PAGE = (DOCS / "coordination.md").read_text()


@pytest.mark.parametrize("file", sorted(set(re.findall(r"`([\w/]+/test_\w+\.py)`", PAGE))))
def test_a_file_that_the_table_names_exists(file: str) -> None:
    assert (ROOT / "tests" / file).is_file()


# -- the schema of events ---------------------------------------------------------------------------------------------

SCHEMA = json.loads((DOCS / "events.schema.json").read_text(encoding="utf-8"))


def test_the_schema_of_events_takes_kept_journals_and_its_own_examples_and_nothing_else() -> None:
    check = checker(SCHEMA)
    kept = [
        json.loads(text)
        for path in (ROOT / "tests" / "golden").glob("journal_*/runs/*/events.jsonl")
        for text in path.read_text(encoding="utf-8").splitlines()
    ]
    examples = [example for part in SCHEMA["$defs"].values() for example in part.get("examples", ())]
    lines = [{"v": 1, "seq": 1, "time": 0, "event": example, "crc": "5d41402a"} for example in examples]
    assert {one["type"] for one in examples} == SCHEMA["properties"]["event"]["discriminator"]["mapping"].keys()
    for line in (*kept, *lines):
        check(line)
    for strange in ({"type": "never_heard_of"}, {**examples[0], "type": "vote_cast"}):
        with pytest.raises(jsonschema.ValidationError):
            check({**lines[0], "event": strange})


# -- the schema of replies --------------------------------------------------------------------------------------------


def test_the_schema_of_replies_takes_the_examples_and_explains_their_fields() -> None:
    schema = json.loads((DOCS / "replies.schema.json").read_text(encoding="utf-8"))
    sections = re.split(r"^## ", (DOCS / "tools.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    shown = {one.split("\n")[0]: json.loads(texts[1]) for one in sections if (texts := JSON_BLOCK.findall(one))}
    assert schema["$defs"].keys() - shown.keys() >= {"get_status"}, "its reply is shown in that of wait_run"
    for tool, reply in shown.items():
        check = checker({**schema, "anyOf": [{"$ref": f"#/$defs/{tool}"}]})
        check(reply)
        for name in reply:
            with pytest.raises(jsonschema.ValidationError):
                check({**reply, name: None})
    for part in schema["$defs"].values():
        assert all(member.get("description") for member in part.get("properties", {}).values()), part["title"]
