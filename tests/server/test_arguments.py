"""What clients send that is not quite what the schemas say: another name, and a value for every argument."""

from typing import Any

import pytest

from tests.harness import MODES, Mode, TempHome, agent, call, expect_error, home, text_of

__all__ = ["home"]

_NOTHING: list[tuple[list[str] | None, int | None, str | None]] = [([], 0, ""), (None, None, None)]
ABSENT: dict[str, list[dict[str, Any]]] = {
    "start_run": [
        {
            "models": models,
            "num_agents": zero,
            "context_paths": models,
            "checks": models,
            "decide": text,
            "max_usd": zero,
            "max_seconds": zero,
            "max_answers": zero,
            "idempotency_key": text,
            "on_conflict": text,
            "session_id": text,
            "changes_of": text,
            "wait_seconds": 0,
            "dry_run": True,
        }
        for models, zero, text in _NOTHING
    ],
    "wait_run": [
        {"until": "", "timeout_seconds": 0, "cursor": 0},
        dict.fromkeys(["until", "timeout_seconds", "cursor"]),
    ],
    "get_status": [{}],
    "get_result": [
        {"view": "", "agent": "", "offset": 0, "limit": 0},
        dict.fromkeys(["view", "agent", "offset", "limit"]),
    ],
    "control_run": [
        {"action": "cancel", "message": "", "value": 0},
        {"action": "cancel", "message": None, "value": None},
    ],
    "apply_result": [
        {"dry_run": True, "paths": [], "agent": "", "undo": False},
        dict.fromkeys(["dry_run", "paths", "agent", "undo"]),
    ],
    "list_runs": [
        {"state": "", "kind": "", "session_id": "", "since": 0, "cursor": 0, "limit": 0},
        dict.fromkeys(["state", "kind", "session_id", "since", "cursor", "limit"]),
    ],
    "list_configs": [{"name": ""}, {"name": None}],
}


@pytest.mark.parametrize("mode", MODES)
async def test_an_empty_value_of_an_argument_that_may_be_left_out_is_as_good_as_none(
    home: TempHome, mode: Mode
) -> None:
    async with home.client(mode) as client:
        named = {"question": "q", "team": home.config("solo", agent("ada"))}
        run = {"run_id": (await call(client, "start_run", **named, wait_seconds=45))["run_id"]}
        schemas = {tool.name: tool.input_schema for tool in (await client.list_tools()).tools}
        assert set(ABSENT) == set(schemas), "write in ABSENT what a client sends for each argument that it leaves out"
        for tool, ways in ABSENT.items():
            schema = schemas[tool]
            for empty in ways:
                own = named if tool == "start_run" else run if "run_id" in schema["properties"] else {}
                assert {*own, *empty} == schema["properties"].keys(), "every argument is given"
                reply = await client.call_tool(tool, {**own, **empty})
                lacking = tool == "apply_result" and "has changed none of your files" in text_of(reply)
                assert lacking or not reply.is_error, text_of(reply)
        full = await call(client, "get_result", **run, view="full", offset=0, limit=0)
        assert full["answer"], "0 is no limit"


async def test_what_has_to_be_given_and_what_is_wrong_is_refused_also_when_it_is_empty(home: TempHome) -> None:
    async with home.client() as client:
        for tool, arguments in (
            ("start_run", {"question": ""}),
            ("start_run", {"question": "q", "team": "scripted", "num_agents": -1}),
            ("start_run", {"question": "q", "team": "scripted", "nothing": ""}),
            ("start_run", {"question": "q", "team": "scripted", "models": [""]}),
            ("list_runs", {"limit": -1}),
            ("control_run", {"run_id": "run-x", "action": ""}),
        ):
            assert (await expect_error(client, tool, **arguments))[0] in ("invalid_arguments", "config_invalid"), (
                arguments
            )


async def test_config_is_another_name_of_team(home: TempHome) -> None:
    async with home.client() as client:
        schema = (await client.list_tools()).tools[0].input_schema
        assert "config" not in schema["properties"], "one name is enough to read"
        for named in (
            {"config": "scripted"},
            {"config": "scripted", "team": ""},
            {"config": "scripted", "team": "scripted"},
        ):
            planned = await call(client, "start_run", question="q", dry_run=True, **named)
            assert planned["source"] == "scripted"
        code, told = await expect_error(client, "start_run", question="q", config="scripted", team="local_server")
        assert (code, "pass only `team`" in told) == ("invalid_arguments", True)
