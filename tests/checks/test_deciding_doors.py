"""`decide` reaches the run through every door, and what cannot be done is refused before it begins."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import massgen_mcp
from massgen_mcp.errors import MassgenError
from tests.api.conftest import litellm
from tests.checks.writers import ADDS_TWO, DOUBLE, SQUARES, Step, doubling, test_of, tests
from tests.checks.writers import agent as steps
from tests.commands import run_command
from tests.harness import COMMAND_MODULE, TempHome, agent, call, expect_error, home

__all__ = ["doubling", "home", "litellm"]
WORDS = {"vote": "consensus", "checks": "tested", "synthesise": "synthesised"}
"""The outcome of the team by the way that is asked for; its config says another one."""


def team(home: TempHome, project: Path, **given: Any) -> str:
    """A config whose agents act as `asked` wants it, and that says something else of how the winner is found."""
    asked = given.pop("asked", "vote")
    then: dict[str, Step] = {"checks": tests(), "vote": {"vote": "doubles"}}
    steps_of = {
        "adds": [*steps(ADDS_TWO, "adds"), tests(test_of(3, 6)) if asked == "checks" else then.get(asked)],
        "squares": [*steps(SQUARES, "squares"), then.get(asked)],
        "doubles": [*steps(DOUBLE, "doubles"), then.get(asked)],
    }
    agents = [agent(name, *filter(None, each)) for name, each in steps_of.items()]
    settings = {"decide": "synthesise" if asked == "vote" else "vote", "context_paths": [{"path": str(project)}]}
    return home.config("team", *agents, orchestrator={**settings, **given})


@pytest.mark.parametrize("decide", WORDS)
async def test_start_run_takes_it(home: TempHome, doubling: Path, decide: str) -> None:
    asked = {"question": "Double.", "config": team(home, doubling, asked=decide), "context_paths": [str(doubling)]}
    async with home.client() as client:
        started = await call(client, "start_run", **asked, decide=decide)
        await call(client, "wait_run", run_id=started["run_id"])
        result = await call(client, "get_result", run_id=started["run_id"])
    assert result["outcome"] == WORDS[decide]


@pytest.mark.parametrize("decide", WORDS)
def test_the_command_line_takes_it(home: TempHome, doubling: Path, decide: str) -> None:
    asked = ("--automation", "--config", team(home, doubling, asked=decide), "--decide", decide)
    done = run_command(home, COMMAND_MODULE, *asked, "Double.")
    assert done.returncode == 0, done.stderr
    assert f"\nOUTCOME: {WORDS[decide]}, " in done.stdout


@pytest.fixture
def in_home(home: TempHome, doubling: Path, monkeypatch: pytest.MonkeyPatch) -> TempHome:
    """Our own process in this home, at work in the project."""
    for name, value in home.environ.items():
        monkeypatch.setenv(name, value)
    for name in os.environ.keys() - home.environ.keys():
        monkeypatch.delenv(name)
    monkeypatch.chdir(doubling)
    return replace(home, work=doubling)


@pytest.mark.parametrize("decide", WORDS)
async def test_python_takes_it(in_home: TempHome, decide: str) -> None:
    config = team(in_home, in_home.work, asked=decide)
    found = await massgen_mcp.run("Double.", config=config, decide=decide)
    assert found["outcome"] == WORDS[decide]


@pytest.mark.parametrize("decide", WORDS)
async def test_litellm_takes_it(in_home: TempHome, litellm: Any, decide: str) -> None:
    massgen_mcp.register_with_litellm()
    model = f"massgen/path:{team(in_home, in_home.work, asked=decide)}"
    asked = [{"role": "user", "content": "Double."}]
    reply = await litellm.acompletion(model=model, messages=asked, decide=decide)
    assert reply._hidden_params["massgen_outcome"] == WORDS[decide]


async def test_a_word_that_is_none_is_refused_with_those_that_there_are(in_home: TempHome, litellm: Any) -> None:
    config = team(in_home, in_home.work)
    async with in_home.client() as client:
        code, told = await expect_error(client, "start_run", question="Q", config=config, decide="judge")
        assert code == "invalid_arguments"
        assert "decide" in told
    done = run_command(in_home, COMMAND_MODULE, "--automation", "--config", config, "--decide", "lot", "Q")
    assert done.returncode != 0
    assert "--decide" in done.stderr
    with pytest.raises(MassgenError, match="decide"):
        await massgen_mcp.run("Q", config=config, decide="lot")
    massgen_mcp.register_with_litellm()
    with pytest.raises(litellm.BadRequestError, match="decide"):
        await litellm.acompletion(
            model=f"massgen/path:{config}", messages=[{"role": "user", "content": "Q"}], decide="lot"
        )
    assert in_home.runs == []


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"decide": "judge"}, "`decide: judge` also needs the key `judge`, the id of an agent"),
        ({"decide": "judge", "judge": "nobody"}, "nobody"),
        ({"decide": "judge", "judge": "doubles"}, "all agents are from the judge's vendor, scripted"),
    ],
    ids=["no judge", "an unknown one", "one of the only vendor"],
)
async def test_a_judge_that_cannot_judge_is_refused_before_anything_begins(
    in_home: TempHome, settings: dict[str, Any], why: str
) -> None:
    config = team(in_home, in_home.work, **settings)
    async with in_home.client() as client:
        paths = [str(in_home.work)]
        code, told = await expect_error(client, "start_run", question="Q", config=config, context_paths=paths)
    assert (code, why in told) == ("config_invalid", True), told
    done = run_command(in_home, COMMAND_MODULE, "--automation", "--config", config, "Q")
    assert done.returncode == 1
    assert why in done.stderr
    with pytest.raises(MassgenError, match=why.partition(",")[0]):
        await massgen_mcp.run("Q", config=config)
    assert in_home.runs == []


async def test_a_judge_of_another_vendor_decides(home: TempHome) -> None:
    verdict: Step = {"vote": "good"}
    agents = [
        agent("a", {"answer": "bad"}),
        agent("b", {"answer": "good"}),
        agent("c", verdict, verdict, model="other"),
    ]
    config = home.config("team", *agents, orchestrator={"decide": "judge", "judge": "c"})
    async with home.client() as client:
        started = await call(client, "start_run", question="Double.", config=config)
        await call(client, "wait_run", run_id=started["run_id"])
        result = await call(client, "get_result", run_id=started["run_id"])
    assert result["outcome"] == "judged"
