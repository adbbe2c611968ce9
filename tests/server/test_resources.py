"""Runs and configs as resources: what can be read, how long texts are paged, and what is refused with a sentence."""

import json
import re
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS, BlobResourceContents, ResourceListChangedNotification, TextResourceContents

from tests.commands import run_command
from tests.harness import MODES, PATIENCE_SECONDS, SERVER_MODULE, Mode, TempHome, agent, call, http_server

TEMPLATES = [
    "massgen://runs/{run_id}/status",
    "massgen://runs/{run_id}/result{?view,agent,offset}",
    "massgen://runs/{run_id}/events{?after}",
    "massgen://runs/{run_id}/log{?offset}",
    "massgen://runs/{run_id}/artifacts/{+path}",
    "massgen://configs/{+name}",
]
PAGE_BYTES = 60_000


async def read(client: Client, uri: str) -> str:
    (content,) = (await client.read_resource(uri)).contents
    assert isinstance(content, TextResourceContents), uri
    return content.text


async def refusal(client: Client, uri: str) -> str:
    with pytest.raises(MCPError) as caught:
        await client.read_resource(uri)
    assert caught.value.code == INVALID_PARAMS, uri
    return str(caught.value.message)


def write(path: str, content: str) -> dict[str, Any]:
    return {"call": "write_file", "arguments": {"path": path, "content": content}}


async def finished(client: Client, **arguments: Any) -> str:
    """The id of a run that has ended."""
    started = await call(client, "start_run", question="q", wait_seconds=45, **arguments)
    return started["run_id"]


@pytest.mark.parametrize("mode", MODES)
async def test_a_run_can_be_read_as_resources_in_every_era(home: TempHome, mode: Mode) -> None:
    async with home.client(mode) as client:
        templates = (await client.list_resource_templates()).resource_templates
        assert [one.uri_template for one in templates] == TEMPLATES
        assert all(one.title and one.description for one in templates)
        run_id = await finished(client, config="scripted")
        run = f"massgen://runs/{run_id}"
        assert json.loads(await read(client, f"{run}/status"))["status"] == "completed"
        result = json.loads(await read(client, f"{run}/result"))
        assert result == await call(client, "get_result", run_id=run_id)
        assert json.loads(await read(client, f"{run}/result?view=votes"))["votes"] == result["votes"]
        assert "completed with" in await read(client, f"{run}/log")
        listed = {str(one.uri): one for one in (await client.list_resources()).resources}
        assert listed[f"{run}/result"].title == "Result: q"
        assert "agents:" in await read(client, "massgen://configs/scripted")
        assert "massgen://configs/scripted" in listed


async def test_who_had_a_list_before_the_server_was_there_is_told_to_read_it_again(home: TempHome) -> None:
    async with home.client() as first:
        await first.list_tools()
        run_id = await finished(first, config="scripted")
    told = anyio.Event()

    async def heard(message: object) -> None:
        if isinstance(message, ResourceListChangedNotification):
            told.set()

    async with home.client("legacy", message_handler=heard) as second:
        assert "massgen://configs/scripted" in str(await second.list_resources())
        with anyio.fail_after(PATIENCE_SECONDS):
            await told.wait()
        assert run_id in str(await second.list_resources())


async def test_events_come_in_pages_without_a_gap(home: TempHome) -> None:
    long = "word " * 10_000
    config = home.config("long", agent("one", {"answer": long}), agent("two", {"answer": long + "too"}))
    async with home.client() as client:
        run_id = await finished(client, config=config)
        pages, seen = 0, list[int]()
        uri, more = f"massgen://runs/{run_id}/events", True
        while more:
            page = json.loads(await read(client, uri))
            assert len(page["events"]) == 1 or len(json.dumps(page)) < PAGE_BYTES
            seen += [one["seq"] for one in page["events"]]
            pages, uri, more = pages + 1, page["next"], page["more"]
        assert json.loads(await read(client, uri))["events"] == [], "nothing new after the end"
    assert pages > 1
    assert seen == list(range(1, len(seen) + 1))


async def test_a_long_log_shows_its_end_and_where_the_rest_is(home: TempHome) -> None:
    async with home.client() as client:
        run_id = await finished(client, config="scripted")
        log = home.run_directory(run_id) / "massgen.log"
        lines = [f"line {number} {'x' * 90}\n" for number in range(2_000)]
        log.write_text("".join(lines))
        newest = await read(client, f"massgen://runs/{run_id}/log")
        assert newest.endswith(lines[-1])
        assert len(newest) < PAGE_BYTES
        before = re.match(r"\[\d+ bytes before this: (\S+)\]\n", newest)
        assert before
        uri, whole = before[1], ""
        while uri:
            page = await read(client, uri)
            following = re.search(r"\[more: (\S+)\]\n\Z", page)
            whole += re.sub(r"\A\[\d+ bytes before this: \S+\]\n|\[more: \S+\]\n\Z", "", page)
            uri = following[1] if following else ""
    assert whole == "".join(lines)


async def test_answers_and_their_files_can_be_read_and_nothing_else(home: TempHome) -> None:
    steps = [
        write("notes.md", "# Notes"),
        write(".env", "SECRET=1"),
        write("odd name é.txt", "odd"),
        {"answer": "done"},
    ]
    config = home.config("writer", agent("solo", *steps))
    async with home.client() as client:
        run_id = await finished(client, config=config)
        run = f"massgen://runs/{run_id}/artifacts"
        top = json.loads(await read(client, f"{run}/."))
        assert {one["path"].split("/")[0] for one in top["entries"]} == {"final", "turn_1"}
        assert await read(client, f"{run}/final/agent_a/answer.txt") == "done"
        files = json.loads(await read(client, f"{run}/final/agent_a/workspace"))["entries"]
        assert sorted(one["path"].rpartition("/")[2] for one in files) == ["notes.md", "odd name é.txt"]
        for one in files:
            assert await read(client, one["uri"]) in ("# Notes", "odd")
        workspace = home.run_directory(run_id) / "final" / "agent_a" / "workspace"
        (workspace / "image.bin").write_bytes(b"\xff\x00\xfe")
        (workspace / "large.txt").write_bytes(b"x" * (2 << 20))
        (workspace / "link").symlink_to("/etc/passwd")
        (content,) = (await client.read_resource(f"{run}/final/agent_a/workspace/image.bin")).contents
        assert isinstance(content, BlobResourceContents)
        below = f"{run}/final/agent_a/workspace"
        assert "larger than" in await refusal(client, f"{below}/large.txt")
        assert "symbolic link" in await refusal(client, f"{below}/link")
        assert "hidden" in await refusal(client, f"{below}/.env")
        assert "no such file" in await refusal(client, f"{below}/none.txt")
        for path in ("config.json", "events.jsonl", "workspaces/agent_a", "private"):
            assert "artifact not found" in await refusal(client, f"{run}/{path}")
        for path in ("../config.json", "final/../config.json", "/etc/passwd", "final/%2e%2e/config.json", "final/%00"):
            await refusal(client, f"{run}/{path}")


async def test_what_cannot_be_read_is_refused_with_a_sentence(home: TempHome) -> None:
    async with home.client() as client:
        config = home.config("slow", agent("solo", {"answer": "late", "delay_seconds": 3600}))
        run_id = (await call(client, "start_run", question="q", config=config))["run_id"]
        assert "not_finished" in await refusal(client, f"massgen://runs/{run_id}/result")
        assert json.loads(await read(client, f"massgen://runs/{run_id}/status"))["run_id"] == run_id
        assert "unknown_run" in await refusal(client, "massgen://runs/run-nope/status")
        await refusal(client, "massgen://runs/..%2f..%2fx/log")
        assert "after" in await refusal(client, f"massgen://runs/{run_id}/events?after=-1")
        assert "config_not_found" in await refusal(client, "massgen://configs/no-such-team")
        await refusal(client, f"massgen://runs/{run_id}/patch")
        await call(client, "control_run", run_id=run_id, action="cancel")
        await call(client, "wait_run", run_id=run_id, timeout_seconds=45)
        run_command(home, SERVER_MODULE, "prune", "--older-than", "0")
        assert "expired" in await refusal(client, f"massgen://runs/{run_id}/log")
        assert run_id not in str(await client.list_resources())


async def test_a_key_that_stands_in_a_file_is_not_shown(home: TempHome) -> None:
    key = "sk-planted-resource-0001"
    async with home.with_variables(OPENAI_API_KEY=key).client() as client:
        run_id = await finished(client, config="scripted")
        final = home.run_directory(run_id) / "final" / "agent_b"
        (final / "notes.txt").write_text(f"the key is {key}")
        (final / "data.bin").write_bytes(b"\xff" + key.encode())
        assert key not in await read(client, f"massgen://runs/{run_id}/artifacts/final/agent_b/notes.txt")
        with pytest.raises(MCPError, match="this file contains a key, so massgen doesn't show it"):
            await client.read_resource(f"massgen://runs/{run_id}/artifacts/final/agent_b/data.bin")
        for name in ("notes.txt", "data.bin"):
            (final / name).unlink()


async def test_resources_can_be_read_over_http_too(home: TempHome) -> None:
    async with http_server(home) as server, server.client("2026-07-28") as client:
        run_id = await finished(client, config="scripted")
        assert json.loads(await read(client, f"massgen://runs/{run_id}/status"))["status"] == "completed"
        assert await read(client, f"massgen://runs/{run_id}/artifacts/final/agent_b/answer.txt")
