"""`import massgen_mcp`: what is there, and what it costs."""

import importlib
import json
import subprocess
import sys
from typing import Any

import pytest

import massgen_mcp

HOMES: dict[str, str] = vars(massgen_mcp)["_HOMES"]


def in_a_fresh_python(code: str) -> Any:
    """What `code` prints as JSON."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_every_public_name_is_there_and_listed() -> None:
    assert sorted(massgen_mcp.__all__) == sorted([*HOMES, "__version__"])
    assert set(massgen_mcp.__all__) <= set(dir(massgen_mcp))
    for name in massgen_mcp.__all__:
        assert getattr(massgen_mcp, name) is not None


@pytest.mark.parametrize("name", HOMES)
def test_a_public_name_is_the_one_of_its_module(name: str) -> None:
    assert getattr(massgen_mcp, name) is getattr(importlib.import_module(HOMES[name]), name)


def test_a_name_that_does_not_exist_is_told_as_in_any_module() -> None:
    with pytest.raises(AttributeError, match="module 'massgen_mcp' has no attribute 'runn'"):
        massgen_mcp.runn  # noqa: B018  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnusedExpression]


def test_importing_the_package_and_naming_run_imports_nothing_of_anybody_else() -> None:
    code = (
        "import sys, json; before = set(sys.modules); import massgen_mcp; massgen_mcp.run; massgen_mcp.RunOptions; "
        "print(json.dumps([name for name in sys.modules if name not in before]))"
    )
    foreign = {name.split(".")[0] for name in in_a_fresh_python(code)} - sys.stdlib_module_names
    assert foreign == {"massgen_mcp"}
