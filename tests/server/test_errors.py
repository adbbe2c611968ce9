"""Whatever a tool is asked, and whatever fails in it: the answer says `ERROR <code>: ...` and the server goes on."""

import json
import re
from typing import Any

from tests.harness import TempHome, agent, call, expect_error, raw_server
from tests.server.broken_server import PLANTED

UNKNOWN = "run-" + "a" * 26
START = {"question": "q", "config": "scripted"}
ABSURD: dict[str, tuple[str, dict[str, Any], str]] = {
    "a cursor of an unknown run": ("wait_run", {"run_id": UNKNOWN, "cursor": 3}, "unknown_run"),
    "a page that no database counts to": ("list_runs", {"cursor": 2**63}, "invalid_arguments"),
    "a page that no computer counts to": ("list_runs", {"cursor": 10**400}, "invalid_arguments"),
    "a time after the end of the world": ("list_runs", {"since": 1e308}, "invalid_arguments"),
    "an event that will never happen": ("wait_run", {"run_id": UNKNOWN, "cursor": 2**63}, "invalid_arguments"),
    "an offset beyond every text": ("get_result", {"run_id": UNKNOWN, "offset": 2**64}, "invalid_arguments"),
    "a path below nobody's home": ("start_run", {**START, "context_paths": ["~nosuch/x"]}, "invalid_arguments"),
    "a path too long": ("start_run", {**START, "context_paths": ["/" + "a/" * 2_500]}, "invalid_arguments"),
    "a name too long": ("start_run", {**START, "context_paths": ["/" + "a" * 256]}, "invalid_arguments"),
    "a config's name too long": ("start_run", {"question": "q", "config": "/" + "a" * 5_000}, "config_not_found"),
    "more answers than a config allows": ("start_run", {**START, "max_answers": 101}, "invalid_arguments"),
    "more money than a config allows": ("start_run", {**START, "max_usd": 1e308}, "invalid_arguments"),
    "a model named by an escape": ("start_run", {"question": "q", "models": ["scripted/\x1b[31m"]}, "config_invalid"),
    "a model named in two lines": ("start_run", {"question": "q", "models": ["openai/a\nb"]}, "config_invalid"),
    "a model written backwards": ("start_run", {"question": "q", "models": ["scripted/\u202eb"]}, "config_invalid"),
    "a model that is an option": ("start_run", {"question": "q", "models": ["claude_code/-x"]}, "config_invalid"),
}


async def test_absurd_requests_are_refused_with_a_code_and_start_nothing(home: TempHome) -> None:
    async with home.client() as client:
        told = {case: (await expect_error(client, tool, **given))[0] for case, (tool, given, _) in ABSURD.items()}
        assert (await call(client, "list_runs"))["runs"] == []
    assert told == {case: code for case, (_, _, code) in ABSURD.items()}
    assert home.runs == []


async def test_a_request_is_checked_again_as_a_whole_with_what_the_call_added(home: TempHome) -> None:
    paths = [home.work / str(number) for number in range(20)]
    for path in paths:
        path.touch()
    twenty = [{"path": str(path)} for path in paths]
    config = home.config("twenty", agent("ada", {"answer": "a"}), orchestrator={"context_paths": twenty})
    async with home.client() as client:
        code, message = await expect_error(
            client, "start_run", question="q", config=config, context_paths=[str(home.work)]
        )
        assert (await call(client, "list_runs"))["runs"] == []
    assert code == "config_invalid"
    assert "orchestrator.context_paths" in message
    assert "at most 20" in message
    assert home.runs == []


async def test_a_config_names_agents_and_models_in_printable_characters(home: TempHome) -> None:
    path = home.work / "team.json"
    async with home.client() as client:
        for place in ("id", "model"):
            for name in ("a\nb", "a\x1b[31mb", "a\u202eb", "a\0b"):
                described = agent("ada")
                (described if place == "id" else described["backend"])[place] = name
                path.write_text(json.dumps({"agents": [described]}))
                code, message = await expect_error(client, "start_run", question="q", config=str(path))
                assert (code, f"{place}: expected" in message, name in message) == ("config_invalid", True, False)


async def test_what_goes_with_an_ended_run_and_what_does_not(home: TempHome) -> None:
    stuck = home.config("stuck", agent("ada", {"hang": True}))
    async with home.client() as client:
        ended = await call(client, "start_run", question="q", models=["scripted/x"], wait_seconds=40)
        for view in ("summary", "full", "votes"):
            for name in ("bo", "agent_a", "scripted-x-1", "x-2"):
                code, message = await expect_error(client, "get_result", run_id=ended["run_id"], view=view, agent=name)
                assert (code, "view=agent" in message) == ("invalid_arguments", True)
        going = await call(client, "start_run", question="q", config=stuck)
        for value in (1e308, 100_001, -1, None):
            code, message = await expect_error(
                client, "control_run", run_id=going["run_id"], action="raise_budget", value=value
            )
            assert (code, "100000" in message) == ("invalid_arguments", True)


async def test_a_fault_of_ours_is_told_by_a_reference_and_stands_whole_in_the_log(home: TempHome) -> None:
    async with raw_server(home, module="tests.server.broken_server") as server:
        replies = [
            await server.ask("tools/call", name=tool, arguments={"run_id": "run-x"})
            for tool in ("get_status", "get_result", "wait_run")
        ]
        alive = await server.ask("tools/call", name="list_runs", arguments={})
        heard = "".join(server.lines)
    assert "structuredContent" in alive["result"]
    log = (home.path / "server.log").read_text()
    for reply in replies:
        result = reply["result"]
        told = re.fullmatch(r"ERROR internal: .+\(([0-9a-f]{8})\)", result["content"][0]["text"])
        assert told, result
        assert result["isError"]
        assert f"reference {told[1]}" in log
    assert log.count(f"KeyError: '{PLANTED} run-x'") == len(replies)
    assert "Traceback" in log
    for words in (PLANTED, "KeyError", "Traceback"):
        assert words not in heard
    assert "Traceback" not in (home.work / "server.log").read_text(), "clients show standard error to people"


UNSPEAKABLE = (
    b'{"run_id": "\\ud800"}',
    b'{"run_id": "\xff"}',
    b'{"run_id": "run-x", "offset": NaN}',
    b'{"run_id": "run-x", "offset": Infinity}',
    b'{"run_id": "run-x", "offset": 1e999}',
    b'{"run_id": "run-x", "offset": ' + b"9" * 10_000 + b"}",
    b'{"run_id": ' + b"[" * 5_000 + b"]" * 5_000 + b"}",
    b"[]",
    b'"run-x"',
    b"null",
)


async def test_what_no_client_of_the_sdk_would_send_is_refused_and_the_server_goes_on(home: TempHome) -> None:
    async with raw_server(home) as server:
        for number, arguments in enumerate(UNSPEAKABLE, start=100):
            params = b'{"name": "get_result", "arguments": ' + arguments + b"}"
            await server.send(b'{"jsonrpc": "2.0", "id": %d, "method": "tools/call", "params": %b}' % (number, params))
        alive = await server.ask("tools/call", name="list_runs", arguments={})
        heard = [json.loads(line) for line in server.lines]
    assert "structuredContent" in alive["result"]
    for message in heard[1:-1]:
        refused = "error" in message or message["result"]["content"][0]["text"].startswith("ERROR ")
        assert refused, message
    assert "Traceback" not in "".join(server.lines)


async def test_a_home_that_is_no_directory_is_an_error_of_each_call(home: TempHome) -> None:
    home.path.touch()
    async with home.client() as client:
        for tool, given in (("list_runs", {}), ("start_run", START), ("get_status", {"run_id": UNKNOWN})):
            code, message = await expect_error(client, tool, **given)
            assert code == "store_unavailable"
            assert str(home.path) in message
