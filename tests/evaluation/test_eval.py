"""`massgen eval`: teams of a known accuracy beside one model, and the same money on it."""

import json
import re
import signal
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from massgen_mcp.evaluation.comparing import Evaluation
from massgen_mcp.evaluation.tasks import Item, read_items
from massgen_mcp.runs.batch import ResultsFile
from tests.commands import run_command
from tests.evaluation.doubles import Dice, dicing, team
from tests.harness import COMMAND_MODULE, SERVER_MODULE, TempHome, spawned, wait_until

QUESTIONS = read_items("@questions")


def tasks(home: TempHome, items: list[Item]) -> Path:
    file = home.work / "mine.jsonl"
    file.write_text("".join(f"{item.model_dump_json()}\n" for item in items))
    return file


async def evaluated(home: TempHome, *arguments: str, code: int = 0) -> str:
    command = partial(run_command, home, COMMAND_MODULE, "eval", *arguments)
    done = await anyio.to_thread.run_sync(command)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def row(told: dict[str, Any], name: str) -> dict[str, Any]:
    return next(one for one in told["rows"] if one["name"] == name)


def against(told: dict[str, Any], other: str) -> dict[str, Any]:
    return next(one for one in told["comparisons"] if one["second"] == other)


def results(home: TempHome, name: str = "mine.eval.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (home.work / name).read_text().splitlines()]


async def test_the_table_has_the_figures_that_the_dice_predict_at_their_price(home: TempHome) -> None:
    items = QUESTIONS[:6]
    models = {"able": Dice(0.6, fails=[items[2].id]), "fair": Dice(0.6), "poor": Dice(0.5)}
    tasks(home, items)
    async with dicing(items, models) as double:
        three = team(home, double, "three", "able", "fair", "poor")
        one = team(home, double, "single", "able", cents=3)
        arguments = ["mine.jsonl", "--teams", three, "--against", one, "--budget", "50", "--max-usd-each", "1"]
        told = json.loads(await evaluated(home, *arguments, "--json"))
        before = len(double.requests)
        page = await evaluated(home, *arguments, "--html", "page.html")
    assert len(double.requests) == before, "nothing is asked, and paid, twice"
    able = {item.id: item.id not in models["able"].fails and models["able"].is_right("able", item) for item in items}
    votes = {
        item.id: [models[name].is_right(name, item) for name in models if item.id not in models[name].fails]
        for item in items
    }
    sure = {item: 2 * sum(each) > len(each) for item, each in votes.items() if 2 * sum(each) != len(each)}
    lines = {line["id"]: line for line in results(home)}
    assert {item: lines[f"three/{item}"]["right"] for item in sure} == sure
    assert row(told, "one model")["right"] == row(told, "same money as three")["right"] == sum(able.values())
    assert row(told, "one model")["failed"] == {"failed": 1}
    outcomes = Counter(line["outcome"] for line in lines.values() if line["members"])
    assert all(f"{n} {outcome.replace('_', ' ')}" in row(told, "three")["note"] for outcome, n in outcomes.items())
    by_hand = Counter((lines[f"three/{item.id}"]["right"], able[item.id]) for item in items)
    found = against(told, "one model")
    assert (found["only_first"], found["only_second"]) == (by_hand[True, False], by_hand[False, True])
    assert row(told, "three")["usd"] == pytest.approx(sum(line["usd"] for line in lines.values() if line["members"]))
    for item in items:
        samples = [line for line in lines.values() if line["id"].startswith(f"one/{item.id}/")]
        bought = int(lines[f"three/{item.id}"]["tokens"] // (3 * samples[0]["tokens"])) if samples[0]["tokens"] else 1
        assert len(samples) == max(1, bought), item.id
    assert "items are too few to compare" in page
    assert re.search(r"three +\d of 6 \(\d+ to \d+ %\) +\$0\.0", page)
    html = (home.work / "page.html").read_text()
    assert "<script" not in html
    assert (home.work / "page.svg").read_text().strip() in html
    assert "massgen-mcp 0" in html, "what it was measured with"


async def test_a_team_without_a_working_key_ends_it_and_the_same_command_goes_on_with_one(home: TempHome) -> None:
    """It doesn't lose on items that it never worked on; those that it answered before count."""
    items = QUESTIONS[:5]
    models = {"able": Dice(0.6), "fair": Dice(0.6), "poor": Dice(0.5), "solo": Dice(1.0)}
    tasks(home, items)
    async with dicing(items, models) as double:
        three = team(home, double, "three", "able", "fair", "poor")
        arguments = ["mine.jsonl", "--configs", three, "--against", team(home, double, "single", "solo")]
        arguments += ["--json", "--concurrency", "2", "--samples", "1"]
        for name in ("able", "fair", "poor"):
            models[name].keyless = True
        told = json.loads(await evaluated(home, *arguments, code=2))
        assert "three has no working key (agent_0: auth" in told["told"]
        assert {one["items"] for one in told["rows"]} == {0}
        asked = sum(seen.body["model"] == "solo" for seen in double.requests)
        assert asked == 1
        for name in ("able", "fair", "poor"):
            models[name].keyless = name != "poor"
        told = json.loads(await evaluated(home, *arguments, code=2))
        assert "three has no working key (agent_0: auth, agent_1: auth)" in told["told"]
        for name in ("able", "fair", "poor"):
            models[name].keyless = False
        told = json.loads(await evaluated(home, *arguments))
        assert {one["items"] for one in told["rows"]} == {5}
        assert row(told, "three")["failed"] == {}
        assert sum(seen.body["model"] == "solo" for seen in double.requests) == len(items), "none is paid for twice"


async def test_a_team_that_is_worse_on_purpose_is_found_worse_and_nothing_is_asked_after_that(home: TempHome) -> None:
    async with dicing(QUESTIONS, {"able": Dice(1.0), "poor": Dice(0.0)}) as double:
        worse = team(home, double, "worse", "poor")
        one = team(home, double, "single", "able")
        told = json.loads(
            await evaluated(home, "@questions", "--teams", worse, "--against", one, "--concurrency", "8", "--json")
        )
    assert "every comparison with the single model is settled" in told["told"]
    assert 20 <= told["items"] <= 24
    found = against(told, "one model")
    assert found["settled"]
    assert found["p"] < 0.001
    assert "worse is worse than one model by 100.0 points" in found["claim"]
    assert "items of this kind" in found["claim"]


async def test_a_budget_ends_it_in_order_and_who_is_killed_gets_the_same_table(home: TempHome) -> None:
    items = QUESTIONS[10:15]
    tasks(home, items)
    async with dicing(items, {"able": Dice(0.5)}) as double:
        both = team(home, double, "both", "able", "able")
        one = team(home, double, "single", "able", cents=2)
        command = ["mine.jsonl", "--teams", both, "--against", one, "--max-usd-each", "0.2", "--json"]
        whole = json.loads(await evaluated(home, *command, "--results", "whole.jsonl"))
        told = json.loads(await evaluated(home, *command, "--budget", "0.5", code=2))
        assert "the budget can't cover the next run" in told["told"]
        assert 0 < told["items"] < len(items)
        assert sum(line["usd"] for line in results(home)) <= 0.5
        assert row(told, "both")["items"] == row(told, "one model")["items"] == told["items"]
        asked = len(double.requests)
        argv = [home.python, "-m", COMMAND_MODULE, "eval", *command]
        async with spawned(home, *argv, cwd=home.work) as process:
            await wait_until(lambda: len(double.requests) > asked)
            process.send_signal(signal.SIGKILL)
            await process.wait()
        again = json.loads(await evaluated(home, *command))
    assert again["rows"] == whole["rows"]
    assert again["comparisons"] == whole["comparisons"]
    runs = [line["run_id"] for line in results(home)]
    assert len(set(runs)) == len(runs) == len(results(home, "whole.jsonl"))


async def test_the_same_money_is_the_most_frequent_answer_of_as_many_samples(home: TempHome) -> None:
    items = QUESTIONS[20:24]
    tasks(home, items)
    luck = Dice(0.6, luck=True)
    async with dicing(items, {"lucky": luck, "able": Dice(1.0)}) as double:
        two = team(home, double, "two", "able", "able")
        one = team(home, double, "single", "lucky")
        most = ["mine.jsonl", "--teams", two, "--against", one, "--json"]
        fewer = json.loads(await evaluated(home, *most, "--samples", "1"))
        assert "asked 1.0 times" in row(fewer, "same money as two")["note"]
        told = json.loads(await evaluated(home, *most))
    lines = results(home)
    predicted = 0
    for item in items:
        samples = sum(line["id"].startswith(f"one/{item.id}/") for line in lines)
        assert samples == round(next(line["usd"] for line in lines if line["id"] == f"two/{item.id}") * 100)
        thrown = [luck.is_right("lucky", item, time) for time in range(samples)]
        predicted += max((True, False), key=lambda right: (thrown.count(right), right == thrown[0]))
    assert row(told, "same money as two")["right"] == predicted
    runs = [line["run_id"] for line in results(home)]
    assert len({*runs}) == len(runs), "each sample is a run of its own"


async def test_of_programs_the_first_that_passes_the_example_is_taken_and_no_more_are_asked_for(home: TempHome) -> None:
    items = read_items("@coding")[5:7]
    tasks(home, items)
    luck = Dice(0.5, luck=True)
    async with dicing(items, {"lucky": luck, "able": Dice(1.0)}) as double:
        two = team(home, double, "two", "able", "able")
        one = team(home, double, "single", "lucky")
        told = json.loads(await evaluated(home, "mine.jsonl", "--teams", two, "--against", one, "--json"))
    for item in items:
        samples = [line for line in results(home) if line["id"].startswith(f"one/{item.id}/")]
        assert [line["right"] for line in samples] == [luck.is_right("lucky", item, t) for t in range(len(samples))]
        assert not any(line["right"] for line in samples[:-1]), "the first right one ends it"
    assert row(told, "two")["right"] == 2


async def test_ones_own_questions_are_asked_again_of_which_it_is_marked_what_is_right(home: TempHome) -> None:
    items = QUESTIONS[:2]
    long = Item(id="long", input="Tell a story.", target="x", metadata={})
    mark = partial(run_command, home, SERVER_MODULE, "mark")
    async with dicing([*items, long], {"able": Dice(1.0), "poor": Dice(0.0)}) as double:
        able, poor = team(home, double, "able", "able"), team(home, double, "poor", "poor")
        ask = partial(run_command, home, COMMAND_MODULE, "--config", able, "--json")
        arguments = ["--from", "runs", "--teams", poor, "--against", able, "--json"]
        nothing = partial(run_command, home, COMMAND_MODULE, "eval", *arguments)
        assert "mark one with `massgen mark ID right`" in (await anyio.to_thread.run_sync(nothing)).stderr
        for item in items:
            done = await anyio.to_thread.run_sync(partial(ask, item.question))
            run_id = json.loads(done.stdout)["run_id"]
            assert (await anyio.to_thread.run_sync(partial(mark, run_id, "right"))).returncode == 0
        await anyio.to_thread.run_sync(partial(ask, long.question))
        told = json.loads(await evaluated(home, *arguments))
    assert {line["id"].split("/")[0] for line in results(home, "runs.eval.jsonl")} == {"poor", "one"}
    assert (row(told, "one model")["right"], row(told, "poor")["right"], told["items"]) == (2, 0, 2)
    assert "items are too few to compare" in against(told, "one model")["claim"]


async def test_what_cannot_be_compared_is_said_before_anybody_is_asked(home: TempHome) -> None:
    config = home.config(
        "pair", {"id": "a", "backend": {"type": "scripted"}}, {"id": "b", "backend": {"type": "scripted"}}
    )
    run = partial(run_command, home, COMMAND_MODULE, "eval")
    assert "name one model" in run("@questions", "--teams", config, "--against", config).stderr
    assert "two files have the same name" in run("@questions", "--teams", f"{config},{config}", "--against", "x").stderr
    for option in ("--items", "--samples", "--concurrency"):
        refused = run("@questions", "--teams", config, "--against", config, option, "0").stderr
        assert f"{option}: expected a number from 1 to 1000" in refused
    assert "there are no built-in tasks called @none" in run("@none", "--teams", config, "--against", config).stderr
    assert not [*home.work.glob("*.eval.jsonl")]
    line: dict[str, Any] = {"id": "1", "question": "?", "state": "completed", "usd": 0.1, "weak": []}
    (home.work / "batch.results.jsonl").write_text(f"{json.dumps(line)}\n")
    single = home.config("single", {"id": "a", "backend": {"type": "scripted"}})
    done = run("@questions", "--teams", config, "--against", single, "--results", "batch.results.jsonl")
    assert done.returncode == 1
    assert "the results file belongs to another comparison" in done.stderr


def test_the_order_of_items_is_always_the_same(tmp_path: Path) -> None:
    kept = ResultsFile(tmp_path, b"")
    evaluations = [Evaluation(QUESTIONS, [], None, kept, *[None] * 3, None, 1, 1) for _ in range(2)]  # type: ignore[arg-type]
    orders = [[item.id for item in evaluation.items] for evaluation in evaluations]
    assert orders[0] == orders[1] != [item.id for item in QUESTIONS]
