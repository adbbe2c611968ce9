"""docs/clients.md: its programs start our command and call our tools with arguments that these have."""

import ast
import re
from collections.abc import Iterator
from typing import cast

import pytest

from massgen_mcp.cli.massgen_mcp.install.clients import CLIENTS
from massgen_mcp.config.examples import list_examples
from tests.commands import ROOT
from tests.harness import TempHome, home

__all__ = ["home"]

PAGE = (ROOT / "docs/clients.md").read_text(encoding="utf-8")
PROGRAMS = dict(re.findall(r"^## ([^\n]+)\n(?:(?!^## ).)*?```python\n(.*?)```", PAGE, re.DOTALL | re.MULTILINE))


def test_the_page_says_of_every_client_what_is_known_of_it() -> None:
    words = {True: "yes", False: "no", None: "unknown"}
    rows = [
        f"| {client.title} | {' | '.join(words[one] for one in known[:3])} | {known.limits} | {known.source} |"
        for client in CLIENTS.values()
        if (known := client.known) and known.source != "nothing found"
    ]
    unknown = [one.title for one in CLIENTS.values() if one.known and one.known.source == "nothing found"]
    assert f"We found no information about these clients: {', '.join(unknown)}." in PAGE
    _, _, table = PAGE.partition("| client | tasks |")
    assert table.partition("\n\n")[0].splitlines()[2:] == rows
    assert all(f"`{name}`" in PAGE for name in CLIENTS)


def literals(program: str) -> Iterator[object]:
    for node in ast.walk(ast.parse(program)):
        try:
            yield ast.literal_eval(node) if isinstance(node, ast.expr) else None
        except ValueError:
            continue


def test_every_framework_has_a_program() -> None:
    assert PROGRAMS.keys() == {"LangChain", "OpenAI Agents SDK", "pydantic-ai"}


@pytest.mark.parametrize("framework", PROGRAMS)
async def test_a_program_calls_what_is_there(home: TempHome, framework: str) -> None:
    said = list(literals(PROGRAMS[framework]))
    (arguments,) = (cast("dict[str, object]", one) for one in said if isinstance(one, dict) and "question" in one)
    async with home.client() as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert "massgen-mcp" in said
    assert "start_run" in said
    assert arguments.keys() <= tools["start_run"].input_schema["properties"].keys()
    assert arguments["team"] in {example.name for example in list_examples()}
