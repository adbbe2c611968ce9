"""docs/architecture.md and the table of folders in CONTRIBUTING.md say what the code is."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

from tests.harness import ROOT

PACKAGE = ROOT / "massgen_mcp"
PAGE = (ROOT / "docs" / "architecture.md").read_text()
PROSE = re.sub(r"```mermaid\n.*?```", "", PAGE, flags=re.DOTALL)
(PICTURE,) = re.findall(r"```mermaid\n(.*?)```", PAGE, re.DOTALL)
CODE = sorted(set(re.findall(r"`([^`\n]+)`", PROSE)))
PATHS = [name for name in CODE if re.fullmatch(r"[\w/]+(\.py|\.md|/)", name)]
NODES = dict(re.findall(r'^ *(\w+)\["([\w/.]+)"\]$', PICTURE, re.MULTILINE))
ARROWS = re.findall(r"^ *(\w+) (-->|-\. [\w .]+ \.->) (\w+)$", PICTURE, re.MULTILINE)
CALLS = [(NODES[upper], NODES[lower]) for upper, arrow, lower in ARROWS if arrow == "-->"]


def place(name: str) -> Path:
    """The file or folder that the page names, in the package or in the repository."""
    (found,) = [path for path in (PACKAGE / name, ROOT / name) if path.exists()] or [PACKAGE / name]
    return found


def section(title: str) -> str:
    return PAGE.split(f"\n### {title}\n")[1].split("\n#")[0]


def rows(text: str) -> list[list[str]]:
    """The cells of the rows of all tables, without their heads."""
    lines = text.splitlines()
    below = [below.startswith(("|--", "|:-")) for below in [*lines[1:], ""]]
    kept = [line for line, head in zip(lines, below, strict=True) if line.startswith("| ") and not head]
    return [line.strip("| ").split(" | ") for line in kept]


def imports_of(file: Path) -> set[str]:
    """The modules of the package that a module imports, as paths in it."""
    nodes = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.ImportFrom)]
    named = {name for node in nodes for name in (node.module, *(f"{node.module}.{part.name}" for part in node.names))}
    paths = [name.removeprefix("massgen_mcp.").replace(".", "/") for name in named if name]
    return {f"{path}.py" for path in paths} | {f"{path}/__init__.py" for path in paths}


@pytest.mark.parametrize("name", PATHS)
def test_a_file_that_the_page_names_exists(name: str) -> None:
    assert place(name).is_dir() if name.endswith("/") else place(name).is_file()


@pytest.mark.parametrize(("upper", "lower"), CALLS, ids=str)
def test_an_arrow_of_the_picture_is_an_import(upper: str, lower: str) -> None:
    assert lower in imports_of(PACKAGE / upper)


def test_every_line_of_the_picture_was_read_and_every_file_in_it_has_an_arrow() -> None:
    frame = r"flowchart TD|subgraph \w+ \[.*\]|end"
    drawn = [line for line in map(str.strip, PICTURE.splitlines()) if line and not re.fullmatch(frame, line)]
    assert len(drawn) == len(NODES) + len(ARROWS)
    assert {end for upper, _, lower in ARROWS for end in (upper, lower)} == set(NODES)
    assert all((PACKAGE / file).is_file() for file in NODES.values())


def test_the_way_of_a_run_has_eight_stops() -> None:
    way = PAGE.split("\n## The way of a run\n")[1].split("\n## ")[0]
    assert [row[0].strip() for row in rows(way)] == [str(number) for number in range(1, 9)]


def test_a_name_in_a_table_occurs_in_a_file_of_its_row() -> None:
    lost: list[str] = []
    for row in rows(PROSE):
        named = re.findall(r"`([^`]+)`", " ".join(row))
        places = [place(name) for name in named if name in PATHS]
        files = [file for path in places for file in ([path] if path.is_file() else path.rglob("*.py"))]
        text = "\n".join(file.read_text() for file in files)
        lost += [f"{name} in {row}" for name in named if name not in PATHS and name not in text and places]
    assert lost == []


def test_each_fold_is_a_class_in_the_file_that_the_page_names() -> None:
    for row in rows(section("Several folds over one journal")):
        text = "\n".join(place(name).read_text() for name in re.findall(r"`([^`]+)`", row[1]))
        assert all(f"class {name}" in text for name in re.findall(r"`([^`]+)`", row[0]))


def test_one_fact_has_one_row() -> None:
    owned = PAGE.split("\n## Who owns which fact\n")[1].split("\n### ")[0]
    owners = [name for row in rows(owned) for name in re.findall(r"`([^`]+)`", row[1])]
    assert len(owners) == len(set(owners))


def test_every_file_that_must_know_a_new_event_is_listed() -> None:
    must = [file for file in PACKAGE.rglob("*.py") if "assert_never(event)" in file.read_text()]
    assert {f"`{file.relative_to(PACKAGE)}`" for file in must} <= set(re.findall(r"`[^`]+`", section("An event")))


def test_every_file_that_decides_by_wire_is_listed() -> None:
    must = [file for file in PACKAGE.rglob("*.py") if re.search(r"\w\.wire\b", file.read_text())]
    assert {f"`{file.relative_to(PACKAGE)}`" for file in must} <= set(re.findall(r"`[^`]+`", section("A wire")))


def test_the_folders_of_contributing_are_the_layers_of_the_import_contract() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    table = (ROOT / "CONTRIBUTING.md").read_text().split("\n## Where things are\n")[1].split("\n## ")[0]
    listed: list[tuple[int, str]] = []
    for number, names, *_ in rows(table):
        listed += [(int(number), name.removesuffix(".py").rstrip("/")) for name in re.findall(r"`([^`]+)`", names)]
    expected = [(number, name) for number, layer in enumerate(layers, 1) for name in re.split(r" [|:] ", layer)]
    assert sorted(listed) == sorted(expected)
    assert [number for number, _ in listed] == sorted(number for number, _ in listed)
