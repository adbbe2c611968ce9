"""Runs of a batch and of an evaluation are in no list and no statistics unless they are asked for."""

import json
import sqlite3
from functools import partial
from typing import Any

import anyio.to_thread

from massgen_mcp.evaluation.tasks import Item
from massgen_mcp.runs.store.sqlite.database import MIGRATIONS
from tests.commands import run_command
from tests.harness import COMMAND_MODULE, TempHome, agent, call

BATCH, EVALUATION = 3, 2
"""How many runs each of them begins."""


def command(home: TempHome, *words: str) -> str:
    done = run_command(home, COMMAND_MODULE, *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def listed(home: TempHome, *words: str) -> list[str]:
    return [run["question"] for run in json.loads(command(home, "runs", "--json", *words))["runs"]]


def counted(home: TempHome, *words: str) -> int:
    statistics: dict[str, Any] = json.loads(command(home, "stats", "--json", *words))
    return statistics["figures"]["runs"]


def ask_all(home: TempHome) -> None:
    """Ask a batch and an evaluation, then one question."""
    config = home.config("ada", agent("ada", {"answer": "ANSWER: 42"}))
    questions = [json.dumps({"question": f"Batch {number}?"}) for number in range(BATCH)]
    (home.work / "questions.jsonl").write_text("\n".join(questions))
    command(home, "batch", "questions.jsonl", "--config", config)
    (home.work / "tasks.jsonl").write_text(Item(id="six", input="Six times seven?", target="42").model_dump_json())
    one = home.config("bo", agent("bo", {"answer": "ANSWER: 42"}))
    command(home, "eval", "tasks.jsonl", "--configs", config, "--against", one, "--samples", "1")


async def test_lists_and_statistics_have_single_runs_unless_others_are_asked_for(home: TempHome) -> None:
    await anyio.to_thread.run_sync(ask_all, home)
    run = partial(anyio.to_thread.run_sync)
    assert "--kind all" in await run(command, home, "runs")
    question = ("--automation", "--config", str(home.own_configs / "ada.yaml"), "Alone?")
    await run(partial(command, home, *question))
    assert await run(listed, home) == ["Alone?"]
    assert len(await run(listed, home, "--kind", "batch")) == BATCH
    assert len(await run(partial(listed, home, "--kind", "eval"))) == EVALUATION
    assert len(await run(partial(listed, home, "--kind", "all"))) == BATCH + EVALUATION + 1
    kinds = {"single": 1, "batch": BATCH, "eval": EVALUATION, "all": BATCH + EVALUATION + 1}
    assert await run(counted, home) == 1
    async with home.client() as client:
        for kind, count in kinds.items():
            assert await run(counted, home, "--kind", kind) == count
            assert len((await call(client, "list_runs", kind=kind))["runs"]) == count
        assert len((await call(client, "list_runs"))["runs"]) == 1


def test_a_list_that_was_lost_is_made_again_with_the_kinds_of_its_runs(home: TempHome) -> None:
    ask_all(home)
    for file in home.path.glob("runs.sqlite3*"):
        file.unlink()
    command(home, "doctor", "--rebuild")
    assert listed(home) == []
    assert len(listed(home, "--kind", "batch")) == BATCH


def test_runs_of_an_earlier_version_are_single_ones(home: TempHome) -> None:
    command(home, "--automation", "--config", home.config("ada", agent("ada", {"answer": "42"})), "Alone?")
    with sqlite3.connect(home.path / "runs.sqlite3") as db:
        db.execute("ALTER TABLE runs DROP COLUMN kind")
        db.execute(f"PRAGMA user_version={len(MIGRATIONS) - 1}")
    assert listed(home) == ["Alone?"]
    assert counted(home) == 1
