"""Servers that do everything wrong, used by agents in whole runs: their own calls fail, and nothing else."""

import json
import resource
import sys
from pathlib import Path
from typing import Any

import pytest

from massgen_mcp.backends.base import JsonObject
from massgen_mcp.config.loader import config_from_data
from massgen_mcp.config.models.config import Config
from massgen_mcp.events.agent_work import ModelCallStarted, ToolFinished
from massgen_mcp.events.run import RunFailed, ServerLost
from tests.mcp_servers.double import BEGGING, BOMBS
from tests.teams import Ended, run_team

DOUBLE = Path(__file__).with_name("double.py")

Step = dict[str, Any]


def server(behaviour: str, **settings: Any) -> dict[str, Any]:
    """A double outside the sandbox, which starts quicker. It is waited for however busy the machine is."""
    plain = {"command": sys.executable, "args": ["-I", "-S", str(DOUBLE), behaviour], "sandbox": False}
    return {**plain, "start_seconds": 300, **settings}


def agent(servers: dict[str, Any], *steps: Step, **backend: Any) -> dict[str, Any]:
    return {"backend": {"type": "scripted", "script": [*steps, {"answer": "42"}], "mcp_servers": servers, **backend}}


def config(*agents: dict[str, Any], **orchestrator: Any) -> Config:
    return config_from_data({"agents": [*agents], "orchestrator": orchestrator}, "test", environ={})


def call(name: str, **arguments: Any) -> Step:
    return {"call": name, "arguments": arguments}


async def used(path: Path, behaviour: str, *names: str, **settings: Any) -> list[ToolFinished]:
    """The results of these calls, by one agent that then answers; the run ends well."""
    servers = {"odd": server(behaviour, **settings)}
    return results(await run_team(path, config(agent(servers, *(call(name) for name in names)))))


def results(ended: Ended) -> list[ToolFinished]:
    assert ended.snapshot.state == "completed", [event.message for event in ended.of(ServerLost)]
    return ended.of(ToolFinished)


def worked(ended: Ended) -> list[ToolFinished]:
    """The same, where no server was lost."""
    assert not [event.message for event in ended.of(ServerLost)]
    return results(ended)


async def test_the_tools_of_a_server_are_the_agents(tmp_path: Path) -> None:
    done = results(await run_team(tmp_path, config(agent({"odd": server("server")}, call("ping", a=1), call("look")))))

    assert [(event.result, event.is_error) for event in done] == [
        ('ping {"a": 1} number 1', False),
        ("look {} number 2", False),
    ]
    assert all(event.nonce for event in done), "what a server says is marked as somebody else's words"


async def test_a_server_that_never_starts_holds_up_nobody(tmp_path: Path) -> None:
    servers = {"odd": server("never", start_seconds=0.2), "good": server("server")}
    (done,) = results(await run_team(tmp_path, config(agent(servers, call("ping")), agent({}))))

    assert done.result == "ping {} number 1"


async def test_a_program_that_is_not_there_is_told_in_the_log(tmp_path: Path) -> None:
    servers = {"odd": {"command": "/nowhere/server", "sandbox": False}}
    ended = await run_team(tmp_path, config(agent(servers, call("ping"))))

    (done,) = results(ended)
    assert "There is no tool named 'ping'" in done.result
    assert "MCP server odd: program not found: /nowhere/server" in ended.directory.log.read_text()


async def test_a_server_that_crashes_fails_its_call_and_is_started_again(tmp_path: Path) -> None:
    crashed, after = await used(tmp_path, "crashing", "look", "ping")

    assert crashed.is_error
    assert crashed.result == "The MCP server odd was lost: it ended (exit code 3); its last words: the disk is on fire"
    assert (after.result, after.is_error) == ("ping {} number 1", False)


async def test_a_server_that_keeps_crashing_is_given_up(tmp_path: Path) -> None:
    *_, last = await used(tmp_path, "crashing", *["look"] * 4, "ping")

    assert "it was started 4 times and is not started again" in last.result


async def test_a_server_that_floods_is_ended_and_started_again(tmp_path: Path) -> None:
    flooded, after = await used(tmp_path, "flooding", "look", "ping")

    assert "it sent more than 10000 messages without being asked" in flooded.result
    assert (after.result, after.is_error) == ("ping {} number 1", False)


async def test_a_server_that_changes_its_tools_is_asked_again_what_it_has(tmp_path: Path) -> None:
    first, gone, later = await used(tmp_path, "renaming", "sooner", "sooner", "later")

    assert first.result == "sooner {} number 1"
    assert gone.is_error
    assert later.result == "later {} number 2"


async def test_output_that_is_no_message_is_passed_over_and_nul_is_no_text(tmp_path: Path) -> None:
    (done,) = await used(tmp_path, "garbling", "ping")

    assert done.result == "a\ufffdb \x1b[31mred"


async def test_a_result_of_100_mb_fails_and_the_server_goes_on(tmp_path: Path) -> None:
    huge, after = await used(tmp_path, "huge", "look", "ping")

    assert huge.is_error
    assert "at most 8388608 are taken; ask for less" in huge.result
    assert after.result.startswith("xxx")


@pytest.mark.parametrize(
    ("behaviour", "why"),
    [
        ("scattered", "the reply has more than 500000 parts; ask for less"),
        ("pouring", "it sent more than 268435456 bytes without being asked"),
    ],
)
async def test_a_result_that_would_fill_the_memory_fails_and_the_next_call_works(
    tmp_path: Path, behaviour: str, why: str
) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    lost, after = await used(tmp_path, behaviour, "look", "ping")

    assert lost.is_error
    assert why in lost.result
    assert after.result.startswith("ping {} number")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 150 * 1024


async def test_a_long_result_is_cut_and_lies_whole_in_the_workspace(tmp_path: Path) -> None:
    ended = await run_team(tmp_path, config(agent({"odd": server("huge")}, call("ping"))))

    (done,) = results(ended)
    beginning, told, end = done.result.split("\n")
    assert (beginning, end) == ("x" * 14_000, "x" * 6_000)
    place = told.removesuffix("]").rpartition(" ")[2]
    assert told.startswith("[cut: 20000 of 1000000 characters; the whole text is in tool_results/ping-")
    assert (ended.directory.workspace_of("agent_a") / place).read_text() == "x" * 1_000_000


@pytest.mark.parametrize("name", BOMBS)
async def test_a_schema_of_any_shape_leaves_a_tool_that_can_be_called(tmp_path: Path, name: str) -> None:
    (done,) = await used(tmp_path, "bombs", name)

    assert done.result == f"{name} {{}} number 1"


async def test_tools_that_cannot_be_read_are_not_there(tmp_path: Path) -> None:
    ended = await run_team(tmp_path, config(agent({"odd": server("bottomless")}, call("ping"))))

    (done,) = results(ended)
    assert "There is no tool named 'ping'" in done.result
    assert "MCP server odd: the reply cannot be read" in ended.directory.log.read_text()


async def test_names_that_are_taken_get_the_name_of_the_server(tmp_path: Path) -> None:
    names = ("odd__read_file", "odd__vote", "odd__new_answer", "odd__ping", "good__ping", "a_b_c", "x" * 64)
    servers = {"odd": server("naming"), "good": server("server")}
    done = results(await run_team(tmp_path, config(agent(servers, *map(call, names), call("read_file", path="x")))))

    called = ("read_file", "vote", "new_answer", "ping", "ping", "a b/c", "x" * 300)
    assert [event.result.split(" {")[0] for event in done[:-1]] == [*called]
    assert done[-1].result == "'x': no such file or directory"


async def test_a_server_with_endless_pages_of_tools_has_those_of_the_first_ones(tmp_path: Path) -> None:
    last, beyond = await used(tmp_path, "paging", "ping19", "ping20")

    assert last.result == "ping19 {} number 1"
    assert "There is no tool named 'ping20'" in beyond.result


async def test_words_of_a_server_stay_between_markers(tmp_path: Path) -> None:
    (done,) = await used(tmp_path, "begging", "ping")

    assert done.result == BEGGING
    assert len(done.nonce) == 16
    assert done.nonce not in BEGGING


async def test_a_call_that_hangs_ends_in_time_and_the_server_is_started_again(tmp_path: Path) -> None:
    hung, after = await used(tmp_path, "hanging", "look", "ping", call_seconds=0.5)

    assert hung.result == "The MCP server odd did not answer within 0.5 s (call_seconds)."
    assert (after.result, after.is_error) == ("ping {} number 1", False)


async def test_results_that_are_not_as_announced_are_read_or_refused(tmp_path: Path) -> None:
    fine, odd = await used(tmp_path, "lying", "ping", "look")

    assert (fine.result, fine.is_error) == ("fine", False)
    assert (odd.result, odd.is_error) == ("no list", True)


async def test_parts_of_a_result_that_nobody_knows_are_read_as_text(tmp_path: Path) -> None:
    parts, structured = await used(tmp_path, "newer", "ping", "look")

    assert not parts.is_error
    assert parts.result.splitlines() == [
        '[a part of unknown kind hologram: {"type": "hologram", "light": [1, 2]}]',
        "plain",
        '[a part of unknown kind text: {"type": "text"}]',
        '[a part of unknown kind image: {"type": "image", "data": 7}]',
        "bare",
        "[a part of unknown kind: null]",
        "without a kind",
        '[a part of unknown kind resource: {"type": "resource", "resource": {"uri": "x:y"}}]',
        "[resource n: x:y]",
    ]
    assert json.loads(structured.result) == [1, "two"]


async def test_a_tool_that_the_config_asks_for_and_the_server_has_not_is_told(tmp_path: Path) -> None:
    ended = await run_team(tmp_path, config(agent({"odd": server("server", allowed_tools=["ping", "pong"])})))

    assert ended.snapshot.state == "completed"
    assert ended.snapshot.server_losses == ["MCP server odd of agent1: it has no tool named pong; it has look, ping"]


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"command": "/nowhere/server"}, "program not found: /nowhere/server"),
        ({"allowed_tools": ["pong"]}, "it has no tool named pong; it has look, ping"),
        ({"env": {"KEY": "${NOWHERE}"}}, "the variable NOWHERE is not set"),
    ],
)
async def test_a_server_that_is_required_and_not_there_ends_the_run_before_its_first_call(
    tmp_path: Path, settings: dict[str, Any], why: str
) -> None:
    ended = await run_team(tmp_path, config(agent({"odd": server("server", required=True, **settings)})))

    assert isinstance(ended.snapshot.end, RunFailed)
    assert ended.snapshot.end.reason == "config_invalid"
    assert f"the MCP server odd is required: {why}" in ended.snapshot.end.message
    assert not ended.of(ModelCallStarted)


async def test_one_agents_server_is_not_the_others_unless_it_is_shared(tmp_path: Path) -> None:
    async def numbers(name: str, **settings: Any) -> list[str]:
        servers = {"odd": server("server", **settings)}
        team = [agent(servers, call("ping")), agent(servers, call("ping"))]
        return sorted(event.result[-1] for event in results(await run_team(tmp_path / name, config(*team))))

    assert await numbers("own") == ["1", "1"]
    assert await numbers("shared", shared=True) == ["1", "2"]


async def test_tools_are_offered_and_left_out_as_the_config_says(tmp_path: Path) -> None:
    async def offered(name: str, settings: JsonObject, **backend: Any) -> list[bool]:
        steps = [call("ping"), call("look")]
        made = config(agent({"odd": server("server", **settings)}, *steps, **backend))
        return [not event.is_error for event in results(await run_team(tmp_path / name, made))]

    assert await offered("1", {"allowed_tools": ["ping"]}) == [True, False]
    assert await offered("2", {"exclude_tools": ["ping"]}) == [False, True]
    assert await offered("3", {}, allowed_tools=["odd__look"]) == [False, True]
    assert await offered("4", {}, exclude_tools=["look"]) == [True, False]


async def test_in_planning_mode_only_tools_that_say_they_read_are_called(tmp_path: Path) -> None:
    plan = {"enable_planning_mode": True}
    team = [agent({"odd": server("server")}, call("ping"), call("look")), agent({}, {"vote": "first"})]
    planned, read, *_ = results(await run_team(tmp_path, config(*team, coordination=plan)))

    assert planned.result.startswith("Not executed: this is planning")
    assert read.result == "look {} number 1"


async def test_an_agent_without_file_tools_may_have_servers(tmp_path: Path) -> None:
    servers = {"odd": server("huge")}
    made = config(agent(servers, call("ping"), call("read_file", path="a"), exclude_file_operation_mcps=True))
    cut, none = results(await run_team(tmp_path, made))

    assert cut.result.count("the rest is lost; ask for less]") == 1
    assert "There is no tool named 'read_file'" in none.result


async def test_nothing_of_a_server_is_left_when_the_run_has_ended(tmp_path: Path) -> None:
    ended = await run_team(tmp_path, config(agent({"odd": server("server")}, call("ping"))))

    assert ended.of(ModelCallStarted)
    assert not [
        line for process in Path("/proc").glob("[0-9]*/cmdline") if str(tmp_path) in (line := _command_line(process))
    ]


def _command_line(path: Path) -> str:
    try:
        return path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""
