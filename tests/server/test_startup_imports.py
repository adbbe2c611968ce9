"""A server answers fast: it loads no SDK of a provider, and its first answers wait for no config."""

import re

from tests.harness import TempHome, raw_server

SDKS = ("openai", "anthropic", "google.genai", "litellm", "ag2", "autogen", "inspect_ai")


async def test_a_server_that_starts_a_run_imports_no_providers_sdk(home: TempHome) -> None:
    async with raw_server(home, "-X", "importtime") as server:
        await server.ask("tools/list")
        arguments = {"question": "q", "config": "scripted"}
        started = await server.ask("tools/call", name="start_run", arguments=arguments)
        assert not started["result"]["isError"]
        await server.stdin.aclose()
        assert await server.leave() == 0
    imported = set(_imported_modules(home))
    assert "massgen_mcp.server.tools" in imported
    assert sorted(name for name in imported if any(name == sdk or name.startswith(f"{sdk}.") for sdk in SDKS)) == []


async def test_the_first_answers_wait_neither_for_the_config_nor_for_its_library(home: TempHome) -> None:
    async with raw_server(home, "-X", "importtime") as server:
        await server.ask("tools/list")
        await server.stdin.aclose()
        assert await server.leave() == 0
    imported = _imported_modules(home)
    before = imported[: imported.index("massgen_mcp.server.front")]
    assert "massgen_mcp.cli.boundary" in before
    assert [name for name in before if name.startswith(("pydantic", "mcp", "massgen_mcp.config.models"))] == []


def _imported_modules(home: TempHome) -> list[str]:
    log = (home.work / "server.log").read_text()
    return re.findall(r"^import time:\s+\d+ \|\s+\d+ \|\s+(\S+)$", log, re.MULTILINE)
