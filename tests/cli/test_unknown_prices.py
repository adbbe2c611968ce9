"""The caps hold for models without a known price at every entry: batches, evaluations, reviews, nested runs; and for
calls that no money limits.
"""

import json
import subprocess
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
import pytest

from tests.busy_double import BusyDouble, busy_server
from tests.commands import run_command
from tests.harness import COMMAND_MODULE, TempHome, agent, call
from tests.ollama_double import LINES, OllamaModel, serving_ollama
from tests.raw_double import reply, sse
from tests.wires.dialects import Ollama as OllamaChat

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


async def test_calls_that_no_money_limits_end_at_max_calls(home: TempHome) -> None:
    """Those of scripted agents without a price count as those of a subscription do."""
    agents = [agent(name, {"answer": f"It is {name}."}, {"vote": "It is a."}, price=None) for name in "abc"]
    config = home.config("subscribed", *agents, budget={"max_calls": 6})
    ended = await run(home, "--automation", "--config", config, "q")
    assert ended.returncode == 0, ended.stderr
    assert "for 6 calls" in ended.stdout
    assert "The run reached its budget: 6 calls of max_calls 6." in ended.stdout
    assert "so they count towards max_calls (6) and max_tokens, not towards max_usd." in ended.stdout


async def test_no_call_is_made_by_a_subscription_where_max_calls_allows_none(home: TempHome) -> None:
    config = home.config("none", agent("a", {"answer": "x"}, price=None), budget={"max_calls": 0})
    ended = await run(home, "--automation", "--config", config, "q")
    assert ended.returncode == 2
    assert "0 of 0 calls without a price (max_calls)" in ended.stdout


async def test_a_run_and_a_run_inside_it_stay_below_one_cap_while_both_go_on(home: TempHome) -> None:
    """Each has an agent that asks a model without a known price. Nothing is replied before both wait for a reply."""
    hold = anyio.Event()
    async with busy_server(answering(), hold=hold) as double, home.client() as client:
        helper = agent("helper", {"call": "delegate", "arguments": {"question": "Is it so?"}}, {"answer": "So."})
        nested = {"max_depth": 1, "max_runs": 1, "share_of_budget": 0.5}
        asking = {"id": "asking", "backend": backend(double)}
        config = home.config("outer", helper, asking, budget={"max_usd": 4 * CAP}, nested=nested)
        run_id = (await call(client, "start_run", question="q", config=config))["run_id"]
        with anyio.fail_after(60):
            while len(double.heads) < 2:
                await anyio.sleep(0.05)
        told = await call(client, "get_status", run_id=run_id)
        assert BOUND in told["note"]
        hold.set()
        await call(client, "wait_run", run_id=run_id)
        usage = (await call(client, "get_result", run_id=run_id))["usage"]
    assert usage["nested_calls"] >= 1
    assert usage["cost_usd"] == pytest.approx(len(double.heads) * CALL_USD)
    assert usage["cost_usd"] <= 4 * CAP


async def test_the_status_says_why_a_call_waits_for_the_budget_and_which_keys_change_that(home: TempHome) -> None:
    hold = anyio.Event()
    async with busy_server(answering(), hold=hold) as double, home.client() as client:
        config = team(home, double, 2)
        planned = await call(client, "start_run", question="q", config=config, dry_run=True)
        assert (
            f"Each call to chatcompletion/{MODEL} reserves up to $0.32, so other agents' calls may delay it"
            in planned["estimate"]
        )
        run_id = (await call(client, "start_run", question="q", config=config))["run_id"]
        with anyio.fail_after(60):
            while "waits until they end" not in (
                told := (await call(client, "get_status", run_id=run_id)).get("note", "")
            ):
                await anyio.sleep(0.05)
        assert f"(max_usd {CAP}) beside the calls under way" in told
        assert "Set the right price with `price` or `price_as`" in told
        hold.set()
        await call(client, "wait_run", run_id=run_id)
        told = (await call(client, "get_status", run_id=run_id))["note"]
    assert "waits until they end" not in told


async def test_a_gateway_with_an_unknown_name_is_asked_only_what_fits_at_the_highest_listed_price(
    home: TempHome,
) -> None:
    """The double is the HTTP proxy on the way to the gateway, which is no private address."""
    async with busy_server(answering()) as double:
        proxied = home.with_variables(HTTP_PROXY=double.url, http_proxy=double.url, NO_PROXY="", no_proxy="")
        ours = {"type": "chatcompletion", "model": "our-own-model", "base_url": "http://gateway.example/v1"}
        agents = [{"id": name, "backend": ours} for name in "abc"]
        poor = await run(proxied, "--automation", "--config", home.config("poor", *agents, budget={"max_usd": 1}), "q")
        assert (poor.returncode, len(double.heads)) == (2, 0), poor.stdout
        assert "counts its calls at $150 and $600 per million input and output tokens" in poor.stdout
        assert "the highest known price of any listed model" in poor.stdout
        assert "Set the right price with `price` or `price_as` in its backend" in poor.stdout
        config = home.config("known", *agents, budget={"max_usd": 1, "max_tokens": 500_000})
        await run(proxied, "--automation", "--config", config, "q")
        assert double.heads, "with a limit of tokens it is asked"


async def test_a_model_of_ollama_is_free_whatever_the_cap(home: TempHome) -> None:
    call_of_answer = OllamaChat().call("new_answer", '{"content": "ANSWER: 42"}').stop("calls").body()
    model = OllamaModel("qwen3:8b")
    async with serving_ollama(model, replies={model.name: reply(call_of_answer, media_type=LINES)}) as server:
        backend = {"type": "ollama", "model": model.name, "base_url": server.url}
        config = home.config("local", {"id": "a", "backend": backend}, budget={"max_usd": 0.000001})
        ended = await run(home, "--automation", "--config", config, "q")
    assert ended.returncode == 0, ended.stdout
    assert "Estimate: free, usually" in ended.stderr
    assert "COST: free for 1 call" in ended.stdout
