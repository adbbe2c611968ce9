"""Inspect with `massgen/...` models: doubles of a known accuracy give the figures that their dice predict."""

import json
import sys
from collections.abc import AsyncGenerator
from typing import Any

import anyio
import pytest

from massgen_mcp.evaluation.tasks import read_items
from tests.evaluation.doubles import INPUT, OUTPUT, Dice, dicing, team
from tests.harness import TempHome
from tests.raw_double import RawDouble

ITEMS = read_items("@questions")
MODELS = {
    "able": Dice(0.7),
    "fair": Dice(0.6),
    "poor": Dice(0.5),
    "sure": Dice(1.0, fails=[ITEMS[3].id, ITEMS[11].id]),
}
OF_TEAM, OF_ONE, OF_FAILING = 14, 14, 20


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def logs(
    tmp_path_factory: pytest.TempPathFactory, anyio_backend: str
) -> AsyncGenerator[tuple[dict[str, Any], RawDouble]]:
    """By model; all of them by one process."""
    del anyio_backend
    place = tmp_path_factory.mktemp("inspect")
    home = TempHome(place / "home", place / "work", {"DOUBLE_API_KEY": "none"})
    home.work.mkdir()
    async with dicing(ITEMS, MODELS) as double:
        environ = {**home.environ, "DOUBLE_BASE_URL": f"{double.url}/v1", "INSPECT_LOG_DIR": str(place / "logs")}
        three = team(home, double, "three", "able", "fair", "poor")
        runs = {
            "team": (f"massgen/path:{three}", OF_TEAM),
            "one": (f"massgen/path:{team(home, double, 'one', 'able')}", OF_ONE),
            "bare": ("openai-api/double/able", OF_ONE),
            "failing": (f"massgen/path:{team(home, double, 'failing', 'sure')}", OF_FAILING),
            "no config": ("massgen/path:nowhere.yaml", 1),
        }
        command = [sys.executable, "-m", "tests.evaluation.inspect_runs", json.dumps([*runs.values()])]
        environ["PYTHONPATH"] = "."
        done = await anyio.run_process(command, env=environ, check=False)
        assert done.returncode == 0, done.stderr.decode()
        yield dict(zip(runs, json.loads(done.stdout), strict=True)), double
    home.close()


def test_a_team_is_right_where_the_dice_of_two_of_three_say_so(logs: Any) -> None:
    told = logs[0]["team"]
    names = ("able", "fair", "poor")
    predicted = {item.id: sum(MODELS[name].is_right(name, item) for name in names) >= 2 for item in ITEMS[:OF_TEAM]}
    assert {one["id"]: one["right"] for one in told["samples"]} == predicted
    assert told["accuracy"] == pytest.approx(sum(predicted.values()) / OF_TEAM)


def test_a_team_of_one_is_right_on_the_same_items_as_the_bare_model(logs: Any) -> None:
    one, bare = ({sample["id"]: sample["right"] for sample in logs[0][name]["samples"]} for name in ("one", "bare"))
    assert len(one) == OF_ONE
    assert one == bare
    assert len(set(one.values())) == 2


def test_a_run_that_fails_is_a_wrong_answer_with_its_cost(logs: Any) -> None:
    told = logs[0]["failing"]
    assert told["accuracy"] == pytest.approx(0.900)
    failed = [one for one in told["samples"] if not one["right"]]
    assert {one["id"] for one in failed} == set(MODELS["sure"].fails)
    for one in failed:
        assert one["massgen"]["failure"]["state"] == "failed"
        assert one["massgen"]["failure"]["reason"]
        assert one["usage"]["total_tokens"] == one["massgen"]["session_metadata"]["spent"]["tokens"]


def test_tokens_and_money_in_the_log_are_those_of_the_run(logs: Any) -> None:
    told, double = logs
    for one in told["team"]["samples"]:
        spent = one["massgen"]["session_metadata"]["spent"]
        assert one["usage"]["total_tokens"] == spent["tokens"] == spent["calls"] * (INPUT + OUTPUT)
        assert one["usage"]["total_cost"] == pytest.approx(spent["calls"] * 0.01)
        assert sum(each["tokens"] for each in one["massgen"]["spent_by"].values()) == spent["tokens"]
    runs = [one["massgen"]["session_metadata"]["spent"] for name in ("team", "one") for one in told[name]["samples"]]
    served = [seen for seen in double.requests if seen.body["model"] != "sure"]
    assert sum(run["calls"] for run in runs) == len(served) - OF_ONE, "the bare model made the others"


def test_the_log_holds_how_a_run_was_decided_and_what_it_was_measured_with(logs: Any) -> None:
    one = logs[0]["team"]["samples"][0]["massgen"]
    assert one["decided_by"] == ["votes"]
    assert one["outcome"]
    assert one["vote_results"]["agents_voted"] == 3
    assert sum(camp["votes"] for camp in one["camps"]) == 3
    assert len(one["answers"]) == 3
    assert [each["model"] for each in one["team"]["agents"]] == ["able", "fair", "poor"]
    assert {"massgen-mcp", "openai", "anthropic", "inspect_ai"} <= one["versions"].keys()
    assert one["prompts"].startswith("sha256:")
    assert {"tests", "degraded", "weak"} <= one.keys()


def test_what_keeps_every_run_from_beginning_stops_the_evaluation(logs: Any) -> None:
    told = logs[0]["no config"]
    assert told["status"] == "error"
    assert "nowhere.yaml" in told["error"]
