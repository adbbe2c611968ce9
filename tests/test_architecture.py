"""docs/architecture.md and the table of folders in CONTRIBUTING.md say what the code is."""

import ast
import re
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import get_args

import pytest

from massgen_mcp.coordination.state import Coordination, Seat
from massgen_mcp.events.record import AnyEvent
from massgen_mcp.money.budget import Budget, Spending
from massgen_mcp.run_state.agents import AgentState
from massgen_mcp.run_state.caller import Caller
from massgen_mcp.run_state.facts import RunFacts
from massgen_mcp.run_state.resume_point import ResumePoint
from massgen_mcp.run_state.state import RunState
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


def the_way_of_a_run() -> list[str]:
    """The files on it, in their order."""
    way = rows(PAGE.split("\n## The way of a run\n")[1].split("\n## ")[0])
    assert [row[0] for row in way] == [str(number) for number in range(1, len(way) + 1)]
    return [file for row in way for file in re.findall(r"`([\w/]+\.py)`", row[1])]


def test_a_name_in_a_table_occurs_in_a_file_of_its_row() -> None:
    lost: list[str] = []
    for row in rows(PROSE):
        named = re.findall(r"`([^`]+)`", " ".join(row))
        places = [place(name) for name in named if name in PATHS]
        files = [file for path in places for file in ([path] if path.is_file() else path.rglob("*.py"))]
        text = "\n".join(file.read_text() for file in files)
        lost += [f"{name} in {row}" for name in named if name not in PATHS and name not in text and places]
    assert lost == []


# -- one state, one owner of each fact ---------------------------------------------------------------------------------

PARTS = (RunFacts, AgentState, Caller, ResumePoint, Coordination, Seat, Budget, Spending)
"""The classes that the state of a run is put together from."""
BETWEEN = {"coordination", "budget", "agents", "caller", "resume_point", "seats", "seat", "spending"}
"""Their fields that hold another part, and no fact."""


def owners() -> list[tuple[str, str, str]]:
    """Module, class and attribute of each fact, as the page has them."""
    owned: list[tuple[str, str, str]] = []
    for _, part, owner in (row for row in rows(section("The state of a run")) if len(row) == 3):
        (file,), (owning, *attributes) = (re.findall(r"`([^`]+)`", cell) for cell in (part, owner))
        owned += [(f"massgen_mcp.{file.removesuffix('.py').replace('/', '.')}", owning, name) for name in attributes]
    return owned


def test_every_fact_of_a_run_has_one_owner_and_the_page_names_it() -> None:
    facts = [(part.__module__, part.__name__, field.name) for part in PARTS for field in fields(part)]
    assert sorted(owners()) == sorted(fact for fact in facts if not fact[2].startswith("_") and fact[2] not in BETWEEN)


def test_the_state_is_put_together_from_these_parts_alone() -> None:
    """A class that is added to the folder, or to a part, is a part itself: then its facts need an owner on the page."""
    defined = {node.name for file in (PACKAGE / "run_state").glob("*.py") for node in classes_of(file)}
    derived = {"WorkDone", "PartlyRead"}  # computed from the parts, whenever it is asked for
    assert defined == {"RunState", "Final", "Vote"} | derived | {part.__name__ for part in PARTS[:4]}
    assert {field.name for part in PARTS for field in fields(part)} >= BETWEEN
    assert {name for name in vars(RunState) if not callable(getattr(RunState, name)) and name[:2] != "__"} == {
        "_work_done",  # the same, until the next event
        "work_done",
    }


EVENTS = {event.__name__: event.model_fields["type"].default for event in get_args(get_args(AnyEvent)[0])}


def classes_of(file: Path) -> list[ast.ClassDef]:
    return [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.ClassDef)]


def names_in(node: ast.AST) -> set[str]:
    parsed = [*ast.walk(node)]
    quoted = [part.value for part in parsed if isinstance(part, ast.Constant) and isinstance(part.value, str)]
    words = {word for text in quoted for word in re.findall(r"\w+", text)}
    attributes = {part.attr for part in parsed if isinstance(part, ast.Attribute)}
    return words | attributes | {part.id for part in parsed if isinstance(part, ast.Name)}


def tells_events_apart(body: ast.AST) -> bool:
    """By `match`, by `isinstance`, or by the name of the type."""
    for node in ast.walk(body):
        match node:
            case ast.MatchClass(cls=kind) if names_in(kind) & EVENTS.keys():
                return True
            case ast.Call(func=ast.Name(id="isinstance"), args=[_, kinds]) if names_in(kinds) & {*EVENTS, "TERMINAL"}:
                return True
            case ast.Constant(value=str(word)) if word in EVENTS.values():
                return True
            case _:
                pass
    return False


def takes_events(function: ast.FunctionDef | ast.AsyncFunctionDef, *, many: bool) -> bool:
    """Whether it is given events or records: one by one, or (`many`) a collection of them."""
    given = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    for annotation in (parameter.annotation for parameter in given if parameter.annotation is not None):
        of_many = isinstance(annotation, ast.Subscript) and "Callable" not in names_in(annotation.value)
        if (of_many or not many) and names_in(annotation) & {
            "LogRecord",
            "Event",
            "EventT",
            "AnyEvent",
            "UnknownEvent",
            "RunEvent",
            "BudgetEvent",
            "CallEvent",
            "AgentEvent",
            "CoordinationEvent",
            "LostTry",
            "RunEnd",
            "WorkEvent",
            "PresentationEvent",
            *EVENTS,
        }:
            return True
    return False


def folds(source: str) -> list[str]:
    """The functions that make facts of a run's events: methods and functions within functions, which can remember, that
    are given them one by one and tell them apart, and functions of any kind that go through a collection of them.
    """
    tree = ast.parse(source)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [
        function.name
        for function in functions
        if takes_events(function, many=function in tree.body) and tells_events_apart(function)
    ]


def test_nothing_but_the_state_folds_events_into_facts_about_a_run() -> None:
    told = [row for row in rows(section("The state of a run")) if len(row) == 2]
    listed = {name for row in told for name in re.findall(r"`([\w/]+\.py)`", row[0])}
    owning = {f"{module.removeprefix('massgen_mcp.').replace('.', '/')}.py" for module, *_ in owners()}
    folding = {str(file.relative_to(PACKAGE)) for file in PACKAGE.rglob("*.py") if folds(file.read_text())}
    assert folding - owning - listed - {"run_state/state.py"} == set()
    assert listed <= folding, "the page names a file that folds nothing"


@pytest.mark.parametrize(
    "second",
    [
        (
            "class Tally:\n def heard(self, record: LogRecord) -> None:\n"
            "  match record.event:\n   case VoteCast() as vote: self.votes[vote.agent] = vote"
        ),
        "class Tally:\n def heard(self, event: 'Event') -> None:\n  if isinstance(event, VoteCast): self.votes += 1",
        (
            "class Tally:\n def heard(self, vote: VoteCast | AnswerSubmitted) -> None:\n"
            "  if vote.type == 'vote_cast': self.votes += 1"
        ),
        "def votes_in(records: Iterable[LogRecord]):\n return [r for r in records if isinstance(r.event, VoteCast)]",
        (
            "def counter():\n count = 0\n def heard(record: LogRecord):\n"
            "  nonlocal count\n  count += isinstance(record.event, VoteCast)\n return heard"
        ),
    ],
)
def test_a_second_owner_is_found(second: str) -> None:
    assert folds(second) != []


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
    (layers,) = (each["layers"] for each in contracts if each.get("containers") == ["massgen_mcp"])
    table = (ROOT / "CONTRIBUTING.md").read_text().split("\n## Where things are\n")[1].split("\n## ")[0]
    listed: list[tuple[int, str]] = []
    for number, names, *_ in rows(table):
        listed += [(int(number), name.removesuffix(".py").rstrip("/")) for name in re.findall(r"`([^`]+)`", names)]
    expected = [(number, name) for number, layer in enumerate(layers, 1) for name in re.split(r" [|:] ", layer)]
    assert sorted(listed) == sorted(expected)
    assert [number for number, _ in listed] == sorted(number for number, _ in listed)


def public_types() -> dict[str, list[str]]:
    """The files that define each public class or name of a type, by its name."""
    found: dict[str, list[str]] = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        for node in ast.parse(file.read_text()).body:
            match node:
                case ast.ClassDef(name=name):
                    pass
                case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                    if "TypeVar" in ast.unparse(node):
                        continue
                case _:
                    continue
            if re.match(r"[A-Z]\w*[a-z]", name):
                found.setdefault(name, []).append(str(file.relative_to(PACKAGE)))
    return found


def test_no_two_public_types_have_the_same_name() -> None:
    assert {name: files for name, files in public_types().items() if len(files) > 1} == {}


VERBS = {"_add", "_ask", "_begin", "_follow", "_keep", "_leave", "_run", "_send", "_show", "_start", "_take", "_write"}
"""What these do is said by the class or the file that they stand in."""
OF_EACH_WIRE = {"_events"}


def test_a_helper_in_more_than_four_files_is_an_ordinary_verb() -> None:
    files: dict[str, set[str]] = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and re.match(r"_(?!_)", node.name):
                files.setdefault(node.name, set()).add(str(file.relative_to(PACKAGE)))
    assert {name for name, where in files.items() if len(where) > 4} - VERBS - OF_EACH_WIRE == set()


PUBLISHED = {
    "server/tools.py start_run": "arguments of the MCP tool",
    "api/calls.py run": "arguments of `massgen_mcp.run`, which programs written for MassGen pass",
    "config/build_config.py build_config": "arguments of MassGen's function of this name",
}
"""Functions whose parameters are an interface that others use."""
MOST_PARAMETERS = 6


def count_parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count all but `self` or `cls`."""
    given = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return len(given) - (given[:1] != [] and given[0].arg in ("self", "cls"))


def test_a_function_takes_at_most_six_parameters() -> None:
    wide = {
        f"{file.relative_to(PACKAGE).as_posix()} {node.name}"
        for file in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and count_parameters(node) > MOST_PARAMETERS
    }
    assert wide == PUBLISHED.keys()


def test_only_the_transport_sets_the_current_user_and_runs_are_handed_it() -> None:
    uses = {
        file.relative_to(PACKAGE).as_posix()
        for file in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module == "massgen_mcp.people"
        for part in node.names
        if part.name in ("set_current_user", "current_user")
    }
    assert uses == {"cli/massgen_mcp/verbs/serve.py", "server/http/gate.py", "server/log.py"}
