"""Arguments of `run` that nothing can be done with are a `MassgenError` that names them, before anything is asked."""

import math
from pathlib import Path
from typing import Any

import pytest

import massgen_mcp
from massgen_mcp.errors import MassgenError

TEAM = {"models": ["scripted/x"]}
UNUSABLE: list[tuple[str, Any]] = [
    ("query", None),
    ("query", b"q"),
    ("query", "half \udcff"),
    ("models", [None]),
    ("models", 5),
    ("model", b"x"),
    ("num_agents", "2"),
    ("num_agents", 2.5),
    ("num_agents", math.nan),
    ("num_agents", True),
    ("config", 5),
    ("config_dict", 5),
    ("output_file", 5),
    ("output_file", "a\0b"),
    ("output_file", "a" * 251),
    ("output_file", "a" * 5_000),
    ("output_file", f"{'a' * 300}/x"),
    ("context_paths", 5),
    ("context_paths", [5]),
    ("context_paths", [["/etc"]]),
    ("session_id", 5),
    ("session_id", []),
    ("conversation_history", 5),
    ("conversation_history", [5]),
    ("conversation_history", "said"),
    ("system_message", 5),
    ("base_url", 5),
]


@pytest.mark.parametrize(("name", "value"), UNUSABLE)
async def test_an_argument_that_cannot_be_used_is_refused_by_its_name(name: str, value: Any) -> None:
    given: dict[str, Any] = {"query": "q", **TEAM, name: value}
    if name in ("model", "config", "config_dict"):
        del given["models"]
    with pytest.raises(MassgenError) as refused:
        await massgen_mcp.run(**given)
    assert refused.value.code == "invalid_arguments"
    assert ("question" if name == "query" else name) in str(refused.value)


async def test_a_way_to_decide_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(MassgenError, match=r"decide is to be 'auto', 'vote', 'checks' or 'synthesise'"):
        await massgen_mcp.run("q", **TEAM, decide="best")  # type: ignore[arg-type]


@pytest.mark.parametrize("path", ["~nosuch/x", "a\0b", "a" * 5_000, "a" * 300, ""], ids=ascii)
async def test_a_context_path_that_cannot_be_is_refused(path: str) -> None:
    with pytest.raises(MassgenError, match="context_paths") as refused:
        await massgen_mcp.run("q", models=["scripted/x"], context_paths=[path])
    assert refused.value.code == "config_invalid"


async def test_a_name_as_long_as_a_file_system_takes_is_written(tmp_path: Path) -> None:
    target = tmp_path / ("a" * 250)
    await massgen_mcp.run("q", models=["scripted/x"], output_file=target)
    assert target.read_text() == "x's answer to: q"
