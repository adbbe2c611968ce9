"""What the server offers to hosts of MCP Apps, and keeps from everybody else, as it goes over the wire."""

import json
from typing import Any

import pytest

from tests.harness import SERVER_MODULE, RawServer, TempHome, agent, call, expect_error, spawned
from tests.server.test_tools import TOOLS

URI = "ui://massgen/run.html"
SHOWS_APPS = {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}}
ERAS = ("2025-11-25", "2026-07-28")
DATA_TOOL = "run_page"


async def told(home: TempHome, era: str, capabilities: dict[str, Any], *methods: str, **params: Any) -> list[Any]:
    """The results of these requests, in a session of a client with these capabilities."""
    async with spawned(home, home.python, "-m", SERVER_MODULE) as process:
        server = RawServer(process)
        about = {
            "io.modelcontextprotocol/protocolVersion": era,
            "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        }
        if era == ERAS[0]:
            hello = {
                "protocolVersion": era,
                "capabilities": capabilities,
                "clientInfo": {"name": "raw", "version": "1"},
            }
            await server.ask("initialize", **hello)
            await server.send(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}')
        asked = {**params, **({"_meta": about} if era == ERAS[1] else {})}
        return [(await server.ask(method, **asked))["result"] for method in methods]


def without_ui(tool: dict[str, Any]) -> dict[str, Any]:
    meta = {name: one for name, one in tool.get("_meta", {}).items() if not name.startswith("ui")}
    return {**tool, "_meta": meta}


@pytest.mark.parametrize("era", ERAS)
async def test_the_page_is_offered_to_hosts_that_show_apps_and_nobody_else_hears_of_it(
    home: TempHome, era: str
) -> None:
    lists = ("tools/list", "resources/list")
    silent = await told(home, era, {}, *lists)
    assert [tool["name"] for tool in silent[0]["tools"]] == TOOLS
    assert not any(word in json.dumps(silent) for word in ("ui://", '"ui"', DATA_TOOL))
    other = {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html"]}}}
    assert await told(home, era, other, *lists) == silent, "it shows another kind of them"

    tools, resources = await told(home, era, SHOWS_APPS, *lists)
    shown = {tool["name"]: tool.get("_meta", {}).get("ui") for tool in tools["tools"]}
    opens = {"resourceUri": URI}
    assert shown == {
        **dict.fromkeys(TOOLS),
        "start_run": opens,
        "get_result": opens,
        DATA_TOOL: {"visibility": ["app"]},
    }
    for_models = [without_ui(tool) for tool in tools["tools"] if tool["name"] != DATA_TOOL]
    assert for_models == [without_ui(tool) for tool in silent[0]["tools"]], "to a model the tools are the same"
    assert [one["mimeType"] for one in resources["resources"] if one["uri"] == URI] == ["text/html;profile=mcp-app"]
    ((page,),) = [one["contents"] for one in await told(home, era, SHOWS_APPS, "resources/read", uri=URI)]
    assert (page["mimeType"], page["_meta"]["ui"]) == ("text/html;profile=mcp-app", {"prefersBorder": True})
    assert "default-src 'none'; script-src 'sha256-" in page["text"]


async def test_the_data_of_the_page_are_bounded_and_what_is_drawn_already_is_not_sent_again(home: TempHome) -> None:
    quotes = '"' * 40_000  # as JSON twice as long
    steps = [{"answer": f"{name} {quotes}"} for name in ("one", "two", "three")]
    config = home.config("long", agent("ada", *steps[:2]), agent("bo", steps[2]))
    async with home.client() as client:
        run_id = (await call(client, "start_run", question="q", config=config))["run_id"]
        await call(client, "wait_run", run_id=run_id, timeout_seconds=40)
        first = await client.call_tool(DATA_TOOL, {"run_id": run_id})
        data: dict[str, Any] = first.structured_content or {}
        assert len(first.model_dump_json()) < 150_000
        assert (data["goes_on"], data["page"]["state"]) == (False, "completed")
        assert "the run's directory has the full text" in " ".join(data["page"]["notes"])
        again = await client.call_tool(DATA_TOOL, {"run_id": run_id, "seen": data["version"]})
        assert again.structured_content == {"version": data["version"], "goes_on": False}
        assert (await expect_error(client, DATA_TOOL, run_id="run-nobody"))[0] == "unknown_run"
        _, message = await expect_error(client, "run_pages")
        assert DATA_TOOL not in message.replace("run_pages", ""), "no model is led to it"
