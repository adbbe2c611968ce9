"""Private names of other packages: each in one module, and checked for the releases that stand here.

Only this suite asks for a release; whoever has a newer one installed is not hindered.
"""

import ast
from importlib.metadata import version

import pytest

from tests.harness import ROOT

PACKAGE = ROOT / "massgen_mcp"
CHECKED = {
    ("mcp.shared._stream_protocols", "mcp_streams.py"): ("mcp", "2.3"),
    ("ctx.session._connection", "server/connection.py"): ("mcp", "2.3"),
    ("genai_prices.types._providers_from_raw", "money/price_list.py"): ("genai-prices", "0.2"),
    ("parser._actions", "cli/command_line.py"): None,
    ("super()._get_value", "cli/command_line.py"): None,
}
"""By the name and the module that may use it: the package and its release. None: argparse, which comes with Python."""
OURS = {
    ("copy._entries", "orchestration/window.py"),
    ("resumed._take_in", "orchestration/agent_round.py"),
    ("state._seat", "run_state/state.py"),
}
"""A class's own names, on another object of that class."""


def private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def names_in(text: str) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.ImportFrom(module=str(module), names=names) if not module.startswith("massgen_mcp"):
                if any(map(private, module.split("."))):
                    found.add(module)
                found |= {f"{module}.{each.name}" for each in names if private(each.name)}
            case ast.Import(names=names):
                found |= {each.name for each in names if any(map(private, each.name.split(".")))}
            case ast.Attribute(value=value, attr=attribute) if private(attribute):
                if not (isinstance(value, ast.Name) and value.id in ("self", "cls")):
                    found.add(ast.unparse(node))
            case _:
                pass
    return found - {"os._exit", "target._replace"}  # documented, for all their underscores


def test_no_other_module_uses_a_private_name_of_another_package() -> None:
    files = sorted(PACKAGE.rglob("*.py"))
    used = {(name, file.relative_to(PACKAGE).as_posix()) for file in files for name in names_in(file.read_text())}
    assert used == {*CHECKED, *OURS}


@pytest.mark.parametrize(
    "text", ["from mcp.client._transport import X", "from mcp import _x", "import a._b", "x = session._connection"]
)
def test_a_private_name_is_found(text: str) -> None:
    assert names_in(text)


@pytest.mark.parametrize(("package", "release"), sorted({each for each in CHECKED.values() if each}))
def test_private_names_were_checked_for_the_installed_release(package: str, release: str) -> None:
    places = ", ".join(f"{name} in {file}" for (name, file), each in CHECKED.items() if each == (package, release))
    here = ".".join(version(package).split(".")[:2])
    assert here == release, f"{package} is at {here}: see whether it still has {places}, then write {here} here"
