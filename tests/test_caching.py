"""Requests that a provider's cache can serve, shown by doubles of the caches, and by twins that they cannot serve."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from benchmarks.caching import (
    RUNS,
    TWINS,
    WIRES,
    Block,
    BreakpointCache,
    MarkedCache,
    PrefixCache,
    code_run,
    measure,
    requests_of,
)
from massgen_mcp.backends import chatcompletion, claude, openai_responses
from massgen_mcp.backends.abilities import Abilities
from massgen_mcp.backends.base import (
    AssistantMessage,
    Message,
    ModelRequest,
    ToolCall,
    ToolResultMessage,
    ToolSpec,
    UserMessage,
)
from massgen_mcp.backends.http import Endpoint
from massgen_mcp.config.models.backends import ScriptStep
from massgen_mcp.errors import RefusedPart
from massgen_mcp.orchestration.model_calls import fitted

LONG = "word " * 1_200
READ_TOOL = ToolSpec("read_file", "Read.", {"type": "object"})
ANSWER_TOOL = ToolSpec("new_answer", "Answer.", {"type": "object"})
VOTE_TOOL = ToolSpec("vote", "Vote.", {"type": "object"})


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
async def test_the_input_of_a_run_costs_hardly_more_than_it_has_to(
    run: Callable[[], Awaitable[list[ModelRequest]]],
) -> None:
    requests = await run()
    ratios = {name: measure(wire, requests).ratio for name, wire in WIRES.items()}
    assert {name: ratio for name, ratio in ratios.items() if ratio > WIRES[name].most} == {}
    assert min(ratios.values()) > 0.9, "and the least is the least"


@pytest.mark.parametrize("twin", TWINS.values(), ids=TWINS)
async def test_requests_that_begin_with_other_bytes_each_time_cost_a_multiple(twin: Any) -> None:
    requests = await code_run(5)
    for wire in WIRES.values():
        assert measure(wire, requests).ratio <= wire.most + 0.05
        assert measure(wire, requests, twin).ratio > 1.5


async def test_every_request_of_a_round_begins_with_the_one_before_on_every_wire() -> None:
    reads = [ScriptStep(call="read_file", arguments={"path": f"{step}.py"}) for step in range(60)]
    requests, _ = await requests_of([[*reads, ScriptStep(answer="Done.")]], "What is wrong?", with_tools=True)
    assert len(requests) == 61
    for wire in WIRES.values():
        before: list[str] = []
        for request in requests:
            texts = [block.text for block in wire.blocks(wire.body(wire.endpoint, request))]
            assert texts[: len(before)] == before
            before = texts


@pytest.mark.parametrize("refused", [("system_role",), ("alternation",), ("tools",), ("alternation", "system_role")])
async def test_a_request_of_a_model_that_refuses_parts_begins_with_the_one_before(
    refused: tuple[RefusedPart, ...],
) -> None:
    """Servers of one's own keep what they have computed of a beginning, too."""
    reads = [ScriptStep(call="read_file", arguments={"path": f"{step}.py"}) for step in range(20)]
    requests, _ = await requests_of([[*reads, ScriptStep(answer="Done.")]], "What is wrong?", with_tools=True)
    abilities = Abilities()
    abilities.takes_tools = "tools" not in refused
    abilities.left_out = frozenset(refused)
    for wire in WIRES.values():
        before: list[str] = []
        for request in requests:
            body = wire.body(wire.endpoint, fitted(request, abilities))
            texts = [block.text for block in wire.blocks(body)]
            assert texts[: len(before)] == before
            before = texts


async def test_all_rounds_of_agents_of_one_model_begin_with_the_same_bytes_on_every_wire() -> None:
    requests = await code_run(3)
    assert {tool.name for tool in requests[0].tools} < {tool.name for tool in requests[-1].all_tools}
    for wire in WIRES.values():
        blocks = [list(wire.blocks(wire.body(wire.endpoint, request))) for request in requests]
        asked = next(place for place, block in enumerate(blocks[0]) if "<question " in block.text)
        beginnings = {tuple(block.text for block in one[: asked + 1]) for one in blocks}
        assert len(beginnings) == 1


# -- what is asked of each provider -----------------------------------------------------------------------------------


def conversation(steps: int, calls: int = 1) -> ModelRequest:
    messages: list[Message] = [UserMessage(LONG), UserMessage("Do it.")]
    for step in range(steps):
        made = tuple(ToolCall(f"c{step}.{number}", "read_file", "{}") for number in range(calls))
        results = [ToolResultMessage(call.id, "read_file", f"result {call.id}") for call in made]
        messages += [AssistantMessage("", made), *results]
    tools = (READ_TOOL, ANSWER_TOOL)
    standing = (*tools, VOTE_TOOL)
    return ModelRequest(
        "System.", tuple(messages), tools, standing_tools=standing, shared_ends=(0,), cache_scope="run-1"
    )


def at(url: str, model: str, **more: Any) -> Endpoint:
    return Endpoint(model=model, api_key="none", base_url=url, **more)


ANTHROPIC = at("https://api.anthropic.com", "claude-opus-5-5")


@pytest.mark.parametrize("calls", [1, 5, 12, 32])
def test_a_lookup_at_anthropic_always_finds_the_step_before(calls: int) -> None:
    cache = MarkedCache()
    for steps in range(6):
        read_before = cache.bill.read
        blocks = [*WIRES["Anthropic"].blocks(claude.request_body(ANTHROPIC, conversation(steps, calls)))]
        cache.ask(blocks, "", keeps_end=True)
        sent = sum(block.tokens for block in blocks)
        if steps:
            assert cache.bill.read - read_before > sent - 80 * calls
    with pytest.raises(ValueError, match="maximum of 4"):
        cache.ask([Block("x", "5m")] * 5, "", keeps_end=True)
    with pytest.raises(ValueError, match="must not come after"):
        cache.ask([Block("x", "5m"), Block("x", "1h")], "", keeps_end=True)


def test_a_beginning_is_kept_for_an_hour_where_agents_wait_long_for_each_other() -> None:
    body = claude.request_body(ANTHROPIC, replace(conversation(1), long_waits=True))
    marks = [block.mark for block in WIRES["Anthropic"].blocks(body) if block.mark]
    assert marks == ["1h", "1h", "1h", "5m"]


def test_whoever_marks_requests_by_hand_is_left_alone() -> None:
    endpoint = replace(ANTHROPIC, extra_body={"cache_control": {"type": "ephemeral"}})
    body = claude.request_body(endpoint, conversation(1))
    assert not any(block.mark for block in WIRES["Anthropic"].blocks(body))


def test_openai_gets_one_key_for_each_run_and_model_and_breakpoints_where_writes_are_charged() -> None:
    request, url = conversation(1), "https://api.openai.com/v1"
    new = openai_responses.request_body(at(url, "gpt-6.1-sol"), request)
    old = openai_responses.request_body(at(url, "gpt-5"), request)
    other = openai_responses.request_body(at(url, "gpt-5"), replace(request, cache_scope="run-2"))
    keys = [body["prompt_cache_key"] for body in (new, old, other)]
    assert len(set(keys)) == 3
    assert all(isinstance(key, str) and len(key) <= 64 and "run" not in key for key in keys)
    assert "prompt_cache_breakpoint" in str(new["input"])
    assert "prompt_cache_breakpoint" not in str(old)
    allowed = {"type": "allowed_tools", "mode": "auto", "tools": [*_named("read_file", "new_answer")]}
    assert (new["tool_choice"], len(new["tools"])) == (allowed, 3)  # pyright: ignore[reportArgumentType]
    chat = chatcompletion.request_body(at(url, "gpt-6.1-sol"), request)
    assert chat["prompt_cache_key"] == new["prompt_cache_key"]


def _named(*names: str) -> Sequence[dict[str, str]]:
    return [{"type": "function", "name": name} for name in names]


@pytest.mark.parametrize(
    ("url", "model"),
    [
        ("http://127.0.0.1:8000/v1", "gpt-6.1-sol"),
        ("https://api.groq.com/openai/v1", "openai/gpt-oss-120b"),
        ("https://api.mistral.ai/v1", "mistral-large"),
        ("https://openrouter.ai/api/v1", "openai/gpt-6.1-sol"),
    ],
)
def test_servers_that_may_refuse_what_they_do_not_know_are_asked_as_ever(url: str, model: str) -> None:
    for wire in (chatcompletion, openai_responses):
        body = wire.request_body(at(url, model), conversation(1))
        assert not any(word in str(body) for word in ("cache", "allowed_tools", "vote"))


@pytest.mark.parametrize("model", ["anthropic/claude-opus-5.5", "google/gemini-3.8-flash"])
def test_openrouter_gets_marks_for_models_that_want_them(model: str) -> None:
    body = chatcompletion.request_body(at("https://openrouter.ai/api/v1", model), conversation(2))
    marks = [block.text.partition("{")[0] for block in WIRES["OpenRouter, Claude"].blocks(body) if block.mark]
    assert marks == ["system", "user", "tool", "tool"]
    assert "prompt_cache_key" not in body


# -- the doubles themselves -------------------------------------------------------------------------------------------


def test_nothing_is_read_from_a_cache_of_marks_without_any() -> None:
    cache = MarkedCache()
    for _ in range(3):
        cache.ask([Block(LONG), Block("end")], "", keeps_end=True)
    assert (cache.bill.read, cache.bill.written) == (0, 0)


def test_a_mark_looks_back_over_twenty_blocks_and_no_further() -> None:
    for further, finds in ((19, True), (20, False)):
        cache = MarkedCache()
        cache.ask([Block(LONG, "5m")], "", keeps_end=True)
        cache.ask([Block(LONG), *[Block("x")] * (further - 1), Block("x", "5m")], "", keeps_end=True)
        assert (cache.bill.read > 0) is finds


def test_short_beginnings_are_not_kept() -> None:
    cache = MarkedCache()
    for _ in range(2):
        cache.ask([Block("x" * 4_000, "5m")], "", keeps_end=True)
    assert cache.bill.read == 0


def test_a_key_leads_to_the_machine_that_has_the_beginning() -> None:
    for cache in (PrefixCache(), BreakpointCache()):
        cache.ask([Block(LONG, is_message_end=True)], "one", keeps_end=True)
        cache.ask([Block(LONG, is_message_end=True)], "other", keeps_end=True)
        assert cache.bill.read == 0
        cache.ask([Block(LONG, is_message_end=True)], "one", keeps_end=True)
        assert cache.bill.read > 0
