"""A server answers fast because it loads no SDK of a provider; agents run elsewhere."""

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
    log = (home.work / "server.log").read_text()
    imported = set(re.findall(r"^import time:\s+\d+ \|\s+\d+ \|\s+(\S+)$", log, re.MULTILINE))
    assert "massgen_mcp.server.tools" in imported
    assert sorted(name for name in imported if any(name == sdk or name.startswith(f"{sdk}.") for sdk in SDKS)) == []
