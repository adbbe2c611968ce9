"""Honest set-ups need one step at most, and the same question comes no second time, at every door."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

import massgen_mcp
from massgen_mcp.errors import MassgenError
from tests.harness import call, expect_error
from tests.request.scene import Scene, agent, tools

LAN = "http://192.168.1.20:8000"
TEAM: dict[str, Any] = {"agents": [agent(base_url=f"{LAN}/v1")]}
SCRIPTED: dict[str, Any] = {"agents": [{"id": "a", "backend": {"type": "scripted"}}]}
REFUSED = "nothing was started"


# -- doors: each returns the text of its refusal, or nothing once the run has passed ---------------------------------


def by_tool(place: Scene, llm: Any, config: Path | None) -> str:
    del place, llm

    async def asked() -> str:
        arguments: dict[str, Any] = {"question": "q", "dry_run": True, **({"team": str(config)} if config else {})}
        async with tools() as client:
            reply = await client.call_tool("start_run", arguments)
            if not reply.is_error:
                return ""
            return (await expect_error(client, "start_run", **arguments))[1]

    return anyio.run(asked)


def by_command(place: Scene, llm: Any, config: Path | None) -> str:
    del llm
    code, _, err = place.run("--automation", *(["--config", str(config)] if config else []), "q")
    return err if code == 1 else ""


def by_python(place: Scene, llm: Any, config: Path | None) -> str:
    del place, llm
    try:
        anyio.run(partial(massgen_mcp.run, "q", **({"config": str(config)} if config else {})))
    except MassgenError as error:
        return str(error) if error.code != "run_not_completed" else ""
    return ""


def by_litellm(place: Scene, llm: Any, config: Path | None) -> str:
    del place
    massgen_mcp.register_with_litellm()
    try:
        llm.completion(
            model=f"massgen/path:{config}" if config else "massgen/default",
            messages=[{"role": "user", "content": "q"}],
        )
    except (llm.BadRequestError, llm.AuthenticationError) as error:
        return str(error)
    return ""


DOORS: dict[str, Callable[[Scene, Any, Path | None], str]] = {
    "MCP": by_tool,
    "command line": by_command,
    "Python": by_python,
    "LiteLLM": by_litellm,
}


# -- set-ups: each returns the config that is named, or nothing --------------------------------------------------------


def found(place: Scene, _: pytest.MonkeyPatch) -> None:
    place.write(place.found, TEAM)


def named(place: Scene, _: pytest.MonkeyPatch) -> Path:
    return place.write(place.repository / "team.yaml", TEAM)


def named_with_a_key(place: Scene, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TEAM_KEY", "sk-of-the-team")
    keyed = {"agents": [agent(base_url=f"{LAN}/v1", api_key_env="TEAM_KEY")]}
    return place.write(place.repository / "team.yaml", keyed)


def changed(place: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    found(place, monkeypatch)
    assert place.verb("trust", str(place.found))[0] == 0
    place.write(place.found, {**TEAM, "budget": {"max_usd": 25}})


def own(place: Scene, _: pytest.MonkeyPatch) -> None:
    place.write(place.own / "config.yaml", {**TEAM, "budget": {"max_usd": 25}})


def from_below(place: Scene, monkeypatch: pytest.MonkeyPatch) -> Path:
    (place.repository / "below").mkdir()
    monkeypatch.chdir(place.repository / "below")
    return place.write(place.found, SCRIPTED)


ALL, NOBODY = frozenset(DOORS), frozenset[str]()
SET_UPS = (
    (found, ALL),
    (named, frozenset({"MCP"})),
    (named_with_a_key, ALL),
    (changed, ALL),
    (own, NOBODY),
    (from_below, NOBODY),
)
"""The set-up, and the doors at which it needs a yes."""


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(("set_up", "asking"), SET_UPS, ids=[one.__name__ for one, _ in SET_UPS])
def test_one_command_that_the_refusal_names_is_enough(
    place: Scene, monkeypatch: pytest.MonkeyPatch, litellm: Any, door: str, set_up: Any, asking: frozenset[str]
) -> None:
    config = set_up(place, monkeypatch)
    refusal = DOORS[door](place, litellm, config)
    assert (REFUSED in refusal) == (door in asking), refusal
    if not refusal:
        return
    path = config or place.found
    assert refusal.count(f"`massgen validate --trust {path}`") == 1
    assert place.verb("trust", str(path))[0] == 0
    for _ in range(2):
        assert DOORS[door](place, litellm, config) == ""


async def test_below_a_repositorys_config_each_door_names_its_own_way_to_it(
    place: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = from_below(place, monkeypatch)
    (place.repository / ".git").mkdir()
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(MassgenError) as refused:
        await massgen_mcp.run("q")
    words = f"To use this file: pass {config} as `config`; with LiteLLM, use the model `massgen/path:{config}`."
    assert words in str(refused.value)
    async with tools() as client:
        _, message = await expect_error(client, "start_run", question="q")
        assert f"To use this file: pass `team: {config}`." in message
        assert (await call(client, "start_run", question="q", team=str(config), dry_run=True))["status"] == "planned"
    assert (await massgen_mcp.run("q", config=str(config)))["final_answer"]
