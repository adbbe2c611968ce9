"""A config that an agent names may ask for no more than one that was found, the call's own arguments included."""

from pathlib import Path
from typing import Any

import pytest

from tests.harness import call, expect_error
from tests.request.scene import FOREIGN, Scene, agent, needs_consent, tools

GPT = {"type": "openai", "model": "gpt-5"}
FREE = {"input_usd_per_million": 0, "output_usd_per_million": 0}


def team(*backends: dict[str, Any], **settings: Any) -> dict[str, Any]:
    agents = [{"id": f"a{place}", "backend": backend} for place, backend in enumerate(backends or (GPT,))]
    return {"agents": agents, **settings}


async def test_neither_the_question_nor_a_file_goes_to_a_host_that_only_an_agents_config_names(place: Scene) -> None:
    (place.repository / "source.py").write_text("secret_of_the_project = 1")
    config = place.write(place.repository / "team.yaml", {"agents": [agent(base_url=f"{FOREIGN}/v1")]})
    arguments: dict[str, Any] = {"question": "q", "config": str(config), "context_paths": [str(place.repository)]}
    async with tools() as client:
        for spelled in (str(config), f"{place.repository}/../{place.repository.name}/team.yaml", "./team.yaml"):
            code, message = await expect_error(client, "start_run", **{**arguments, "config": spelled})
            assert (code, f"`massgen validate --trust {config}`" in message) == ("config_untrusted", True)
        assert place.untouched
        await place.verb_beside("trust", str(config))
        done = await call(client, "start_run", **arguments, wait_seconds=45)
        assert done["status"] == "completed"
    assert place.stranger.heard, "the stranger would have heard it before, too"


async def test_a_cap_is_the_calls_or_the_users_and_no_config_raises_it_or_makes_it_count_nothing(place: Scene) -> None:
    config = place.repository / "team.yaml"
    greedy = {"budget": {"max_usd": 100_000}, "timeout_settings": {"orchestrator_timeout_seconds": 86_400}}
    async with tools() as client:

        async def beyond(**arguments: Any) -> list[str]:
            _, message = await expect_error(
                client, "start_run", question="q", config=str(config), dry_run=True, **arguments
            )
            return [line for line in message.splitlines() if line.startswith("  ")]

        place.write(config, team(**greedy))
        assert await beyond() == [
            "  ! spends: up to 100000 US dollars",
            "  ! spends: up to 100000000000 tokens",
            "  ! takes: up to 86400 seconds",
        ]
        assert await beyond(max_usd=1) == ["  ! takes: up to 86400 seconds"]
        own = {"max_usd": 1, "max_seconds": 7200}
        planned = await call(client, "start_run", question="q", config=str(config), dry_run=True, **own)
        assert "(max_usd 1)" in planned["estimate"], "the call's own cap holds, whatever the config says"
        place.write(config, team(budget={"max_tokens": 10_000_000_000}))
        assert await beyond(max_usd=1) == [
            "  ! spends: up to 10000000000 tokens; calls without a known price count only toward this limit"
        ]
        place.write(config, team({**GPT, "price": FREE}))
        assert await beyond(max_usd=1) == ["  ! sets: a0: its own price, used for the money limit"]


@pytest.mark.parametrize("found", [True, False], ids=["found", "named"])
async def test_where_and_with_what_the_checks_of_a_call_run_needs_a_yes_although_the_config_has_none(
    place: Scene, found: bool
) -> None:
    config = place.found if found else place.repository / "team.yaml"
    whole: dict[str, Any] = {"context_paths": [str(place.repository)], "checks": ["make test"]}
    arguments = {"question": "q", "dry_run": True, **whole, **({} if found else {"config": str(config)})}
    docker, network = {"sandbox": "docker", "image": "evil/image"}, {"network": ["stranger.example:443"]}
    asked: list[tuple[dict[str, Any], str]] = [
        ({"env": {"PYTEST_ADDOPTS": "--co"}}, "  ! sets: PYTEST_ADDOPTS=--co for commands and checks"),
        ({"env": {"LINES": "one\u2028  ! two"}}, r"  ! sets: 'LINES=one\u2028  ! two for commands and checks'"),
        (network, "  ! starts: checks in a sandbox that can connect to stranger.example:443"),
        (docker, "  ! starts: checks in a docker container from the image evil/image"),
        (
            {**docker, "open_network": True},
            "  ! starts: checks in a docker container from the image evil/image that can",
        ),
        ({"readable": ["/srv/others"]}, "/srv/others"),
    ]
    async with tools() as client:
        for commands, line in asked:
            place.write(config, team(orchestrator={"commands": commands}))
            code, message = await expect_error(client, "start_run", **arguments)
            assert (code, line in message) == ("config_untrusted", True), (commands, message)


@pytest.mark.parametrize("found", [True, False], ids=["found", "named"])
async def test_a_setup_needs_a_yes(place: Scene, found: bool) -> None:
    config = place.found if found else place.repository / "team.yaml"
    place.write(config, team(orchestrator={"setup": "npm ci\u2028  ! two"}))
    whole: dict[str, Any] = {"context_paths": [str(place.repository)], **({} if found else {"config": str(config)})}
    async with tools() as client:
        code, message = await expect_error(client, "start_run", question="q", dry_run=True, **whole)
    assert code == "config_untrusted"
    assert r"  ! starts: the setup 'npm ci\u2028  ! two' in a sandbox" in message


@pytest.mark.parametrize("found", [True, False], ids=["found", "named"])
async def test_what_the_call_itself_names_needs_no_second_yes(place: Scene, found: bool) -> None:
    config = place.found if found else place.repository / "team.yaml"
    source = place.repository / "src"
    source.mkdir()
    paths = [{"path": str(source), "permission": "write"}]
    orchestrator = {"context_paths": paths, "checks": ["make test"]}
    place.write(config, team(orchestrator=orchestrator, budget={"max_usd": 50}))
    arguments: dict[str, Any] = {"question": "q", "dry_run": True, **({} if found else {"config": str(config)})}
    granted = {"context_paths": paths, "checks": ["make test"], "max_usd": 50}
    missing = {
        "context_paths": f"  ! writes: {source}",
        "checks": "  ! starts: the check make test in a sandbox",
        "max_usd": "  ! spends: up to 50 US dollars",
    }
    async with tools() as client:
        assert (await call(client, "start_run", **arguments, **granted))["status"] == "planned"
        for name, line in missing.items():
            given = {key: value for key, value in granted.items() if key != name}
            code, message = await expect_error(client, "start_run", **arguments, **given)
            assert (code, line in message) == ("config_untrusted", True), message
            assert ("Or list these paths in the call's `context_paths`" in message) == (name == "context_paths")
        read_only = {**granted, "context_paths": [str(source)]}
        assert (await expect_error(client, "start_run", **arguments, **read_only))[0] == "config_untrusted"


async def test_what_ships_with_the_package_and_what_the_user_keeps_need_no_yes(place: Scene) -> None:
    programs = team({"type": "claude_code"}, {**GPT, "price": FREE}, budget={"max_usd": 500})
    own = place.write(place.own / "config.yaml", programs)
    beside = place.write(place.own / "teams" / "dear.yaml", programs)
    elsewhere = place.write(place.repository / "team.yaml", programs)
    linked = place.own / "linked.yaml"
    linked.symlink_to(elsewhere)
    (place.own / "repository").symlink_to(place.repository)
    (place.repository / "own.yaml").symlink_to(own)
    (place.repository / "scripted").write_text(elsewhere.read_text())

    async def status(config: str | Path) -> str:
        arguments = {"question": "q", "dry_run": True, "config": str(config)}
        if config in refused:
            return (await expect_error(client, "start_run", **arguments))[0]
        return str((await call(client, "start_run", **arguments))["status"])

    refused = [elsewhere, place.own / "repository" / "team.yaml", f"{place.own}/../{place.repository.name}/team.yaml"]
    refused += [place.repository / "own.yaml", "./scripted"]
    async with tools() as client:
        for config in ("claude_code_single", "@examples/claude_code_single", "scripted", own, beside, linked):
            assert await status(config) == "planned", config
        for config in refused:
            assert await status(config) == "config_untrusted", config


STDIO = {"mcp_servers": {"x": {"command": "sh", "args": ["-c", "evil"]}}}
OUTSIDE = {"mcp_servers": {"x": {"command": "sh", "sandbox": False}}}
ONLINE = {"mcp_servers": {"x": {"url": "https://stranger.example/mcp"}}}
OF_THE_USERS_OWN: dict[str, tuple[dict[str, Any], str]] = {
    "an MCP server": (team({**GPT, **STDIO}), "MCP server: x for a0: sh -c evil"),
    "one outside the sandbox": (
        team({**GPT, **OUTSIDE}),
        "MCP server: x for a0: sh (outside the sandbox, with your full permissions)",
    ),
    "one at an address": (team({**GPT, **ONLINE}), "MCP server: x for a0: https://stranger.example/mcp"),
    "a path to read": (team(orchestrator={"context_paths": [{"path": "/srv"}]}), "reads: /srv"),
    "a path to write": (
        team(orchestrator={"context_paths": [{"path": "/srv", "permission": "write"}]}),
        "writes: /srv",
    ),
    "a readable directory": (
        team(orchestrator={"commands": {"enabled": True, "readable": ["/srv"]}}),
        "reads: /srv",
    ),
    "a network for commands": (
        team(orchestrator={"commands": {"enabled": True, "network": ["pypi.org:443"]}}),
        "starts: agents' commands in a sandbox that can connect to pypi.org:443",
    ),
    "a network for checks": (
        team(orchestrator={"commands": {"network": ["pypi.org:443"]}}),
        "starts: checks in a sandbox that can connect to pypi.org:443",
    ),
    "every host": (
        team(orchestrator={"commands": {"enabled": True, "sandbox": "docker", "open_network": True}}),
        "starts: agents' commands in a docker container that can connect to any host",
    ),
    "an agent CLI outside the sandbox": (
        team({"type": "acp", "command": ["/bin/evil"], "enclosure": "off"}),
        "starts: the agent CLI /bin/evil, outside the sandbox, with your full permissions",
    ),
}


async def test_an_agent_that_names_the_users_own_config_needs_a_yes_to_what_reaches_out_of_the_call(
    place: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-of-the-person")
    file = place.own / "config.yaml"
    arguments: dict[str, Any] = {"question": "q", "dry_run": True, "config": str(file)}
    async with tools() as client:
        for name, (config, line) in OF_THE_USERS_OWN.items():
            place.write(file, config)
            code, message = await expect_error(client, "start_run", **arguments)
            listed = {one for one in message.splitlines() if one.startswith("  ! ")}
            assert (code, f"  ! {line}" in listed) == ("config_untrusted", True), (name, message)
            await place.verb_beside("trust", str(file))
            assert not await needs_consent(client, config=str(file)), name
        for name, config in {
            "commands without a network": team(orchestrator={"commands": {"enabled": True}}),
            "a price": team({**GPT, "price": FREE}),
            "the Claude Code CLI": team({"type": "claude_code"}),
            "a host of the person's": team({**GPT, "base_url": "http://lab.example/v1"}),
        }.items():
            place.write(file, config)
            assert (await call(client, "start_run", **arguments))["status"] == "planned", name
