"""The cap holds for a model without a known price at every entry: batches, evaluations, reviews."""

import json
import subprocess
from functools import partial
from typing import Any

import anyio
import anyio.to_thread

from tests.busy_double import BusyDouble, busy_server
from tests.commands import run_command
from tests.harness import COMMAND_MODULE, TempHome
from tests.raw_double import reply, sse

MODEL = "gpt-9.9-sol"
CAP = 0.1
BOUND = "the highest known price of a gpt-sol model"
CALL_USD = 0.044
"""The cost of each call at that price."""
MOST_CALLS = 2
"""So many fit into the cap; a whole run of three agents makes seven."""


def answering() -> bytes:
    """A reply with an answer, 1,000 tokens read and 2,000 written."""
    function = {"name": "new_answer", "arguments": '{"content": "ANSWER: 42"}'}
    delta = {"role": "assistant", "tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": function}]}
    chunk: dict[str, Any] = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": MODEL}
    usage = {"prompt_tokens": 1_000, "completion_tokens": 2_000, "total_tokens": 3_000}
    return reply(
        sse(
            {**chunk, "choices": [{"index": 0, "delta": delta}]},
            {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
            {**chunk, "choices": [], "usage": usage},
        )
    )


def backend(double: BusyDouble) -> dict[str, Any]:
    return {"type": "chatcompletion", "model": MODEL, "base_url": f"{double.url}/v1"}


def team(home: TempHome, double: BusyDouble, size: int = 3, **settings: Any) -> str:
    agents = [{"id": f"agent_{place}", "backend": backend(double)} for place in range(size)]
    return home.config(f"team{size}", *agents, budget={"max_usd": CAP}, **settings)


async def run(home: TempHome, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return await anyio.to_thread.run_sync(partial(run_command, home, COMMAND_MODULE, *arguments))


async def test_a_batch_ends_each_question_at_its_cap(home: TempHome) -> None:
    async with busy_server(answering()) as double:
        (home.work / "q.jsonl").write_text('{"question": "One?"}\n{"question": "Two?"}\n')
        ended = await run(home, "batch", "q.jsonl", "--config", team(home, double))
    assert ended.returncode == 2, ended.stderr
    assert len(double.heads) == 2 * MOST_CALLS
    results = [json.loads(line) for line in (home.work / "q.results.jsonl").read_text().splitlines()]
    assert [result["usd"] for result in results] == [MOST_CALLS * CALL_USD] * 2


async def test_an_evaluation_ends_each_run_at_its_cap(home: TempHome) -> None:
    item = {"id": "a", "input": "What is six times seven?", "target": "42"}
    (home.work / "mine.jsonl").write_text(f"{json.dumps(item)}\n")
    async with busy_server(answering()) as double:
        teams = ("--teams", team(home, double), "--against", team(home, double, 1))
        ended = await run(home, "eval", "mine.jsonl", *teams, "--budget", "1", "--max-usd-each", str(CAP), "--json")
    assert ended.returncode == 2, ended.stderr
    rows = {row["name"]: row["usd"] for row in json.loads(ended.stdout)["rows"]}
    assert (rows["team3"], rows["one model"]) == (MOST_CALLS * CALL_USD, CALL_USD)
    assert len(double.heads) == 2 * MOST_CALLS, "those of the team, of one model, and once more for the same money"


async def test_a_review_ends_at_its_cap_and_names_the_bound(home: TempHome) -> None:
    (home.work / "change.diff").write_text("--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n")
    async with busy_server(answering()) as double:
        ended = await run(home, "review", "--diff", "change.diff", "--config", team(home, double))
    assert ended.returncode == 2, ended.stderr
    assert 1 <= len(double.heads) <= MOST_CALLS
    assert BOUND in ended.stdout
    assert f"${len(double.heads) * CALL_USD:.4f} for" in ended.stdout
