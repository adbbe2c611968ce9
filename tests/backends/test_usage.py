"""Tokens and money mean the same on every wire, however a provider counts them."""

from typing import Any

import pytest

from massgen_mcp.backends.base import UsagePart
from massgen_mcp.backends.http import Endpoint
from tests.backends.wires import CHAT, CLAUDE, GEMINI, RESPONSES, Wire, ask, parts_of
from tests.raw_double import raw_server, reply, sse


async def usage_of(wire: Wire, *events: dict[str, Any], **settings: Any) -> UsagePart:
    async with raw_server(reply(sse(*events))) as server:
        parts = await parts_of(wire.backend(server.url, **settings), ask("?"))
    (usage,) = [part for part in parts if isinstance(part, UsagePart)]
    return usage


async def chat_usage(usage: dict[str, Any], **settings: Any) -> UsagePart:
    end: dict[str, Any] = {**CHAT.whole[0], "choices": [], "usage": usage}
    return await usage_of(CHAT, *CHAT.whole, end, **settings)


@pytest.mark.parametrize(
    ("provider", "usage", "read", "written", "reasoning"),
    [
        (
            "openai counts reasoning as output",
            {"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150,
             "completion_tokens_details": {"reasoning_tokens": 40}},
            100, 50, 40,
        ),
        (
            "xai counts it beside the output",
            {"prompt_tokens": 10120, "completion_tokens": 1499, "total_tokens": 14428,
             "completion_tokens_details": {"reasoning_tokens": 2809}},
            10120, 4308, 2809,
        ),
        (
            "gemini counts it in the total only",
            {"prompt_tokens": 20, "completion_tokens": 198, "total_tokens": 623},
            20, 603, 0,
        ),
        (
            "some tell no total",
            {"prompt_tokens": 5, "completion_tokens": 2, "completion_tokens_details": {"reasoning_tokens": 317}},
            5, 319, 317,
        ),
        ("some lie", {"prompt_tokens": -7, "completion_tokens": -1, "total_tokens": -8}, None, None, 0),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)  # fmt: skip
async def test_output_is_everything_that_the_model_wrote(
    provider: str, usage: dict[str, Any], read: int | None, written: int | None, reasoning: int
) -> None:
    del provider
    part = await chat_usage(usage)
    assert (part.input_tokens, part.output_tokens, part.reasoning_tokens) == (read, written, reasoning)


async def test_chat_input_has_its_cached_and_cache_written_part() -> None:
    details = {"cached_tokens": 60, "cache_write_tokens": 30}
    part = await chat_usage(
        {"prompt_tokens": 100, "completion_tokens": 1, "total_tokens": 101, "prompt_tokens_details": details}
    )
    assert (part.input_tokens, part.cached_input_tokens, part.cache_write_tokens) == (100, 60, 30)


async def test_a_response_has_them_too_and_its_searches() -> None:
    search = {"type": "web_search_call", "id": "ws", "status": "completed"}
    end = {
        **RESPONSES.whole[-1]["response"],
        "output": [
            {**search, "action": {"type": "search", "query": "q"}},
            {**search, "action": {"type": "open_page", "url": "u"}},
        ],
        "usage": {
            "input_tokens": 100, "output_tokens": 50, "total_tokens": 150,
            "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30},
            "output_tokens_details": {"reasoning_tokens": 40},
        },
    }  # fmt: skip
    part = await usage_of(RESPONSES, *RESPONSES.whole[:-1], {**RESPONSES.whole[-1], "response": end})
    assert part == UsagePart(100, 60, 50, 40, "m", cache_write_tokens=30, web_searches=1)


async def test_xai_tells_its_searches_and_what_the_call_cost() -> None:
    usage = {
        "input_tokens": 27236, "output_tokens": 3077, "total_tokens": 30313,
        "input_tokens_details": {"cached_tokens": 4585}, "output_tokens_details": {"reasoning_tokens": 1091},
        "num_server_side_tools_used": 6, "cost_in_usd_ticks": 37756000,
        "server_side_tool_usage_details": {"web_search_calls": 4, "x_search_calls": 1, "code_interpreter_calls": 1},
    }  # fmt: skip
    end = {**RESPONSES.whole[-1], "response": {**RESPONSES.whole[-1]["response"], "usage": usage}}
    settings: Any = {"of_xai": True, "cost_field": "cost_in_usd_ticks"}
    part = await usage_of(RESPONSES, *RESPONSES.whole[:-1], end, **settings)
    assert part == UsagePart(27236, 4585, 3077, 1091, "m", web_searches=5, cost_usd=0.0037756)


async def test_gemini_counts_what_its_tools_read_as_input_and_thoughts_as_output() -> None:
    usage = {
        "promptTokenCount": 17, "toolUsePromptTokenCount": 308, "cachedContentTokenCount": 10,
        "candidatesTokenCount": 37, "thoughtsTokenCount": 333, "totalTokenCount": 695,
    }  # fmt: skip
    part = await usage_of(GEMINI, *GEMINI.whole[:-1], {**GEMINI.whole[-1], "usageMetadata": usage})
    assert part == UsagePart(325, 10, 370, 333, "m")
    del usage["totalTokenCount"]
    assert await usage_of(GEMINI, *GEMINI.whole[:-1], {**GEMINI.whole[-1], "usageMetadata": usage}) == part


async def test_claudes_input_is_put_together_from_its_parts() -> None:
    usage = {
        "input_tokens": 3, "cache_read_input_tokens": 40, "cache_creation_input_tokens": 5, "output_tokens": 1,
        "server_tool_use": {"web_search_requests": 2, "web_fetch_requests": 0},
    }  # fmt: skip
    start = {"type": "message_start", "message": {**CLAUDE.whole[0]["message"], "usage": usage}}
    part = await usage_of(CLAUDE, start, *CLAUDE.whole[1:])
    assert part == UsagePart(48, 40, 2, 0, "m", cache_write_tokens=5, web_searches=2)


TOKENS = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


@pytest.mark.parametrize(
    ("cost_field", "told", "usd"),
    [
        ("cost", {"cost": 0.0123}, 0.0123),
        ("cost", {"cost": 0}, 0.0),  # free models exist
        ("cost", {"cost": 0.001, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.02}}, 0.021),
        ("cost", {"cost": 0.001, "is_byok": True}, None),
        ("cost", {"cost": 0.001, "is_byok": True, "cost_details": {"upstream_inference_cost": None}}, None),
        ("cost", {"cost": 0.02, "is_byok": False, "cost_details": {"upstream_inference_cost": 0.02}}, 0.02),
        ("cost_in_usd_ticks", {"cost_in_usd_ticks": 37756000}, 0.0037756),
        ("cost", {}, None),
        ("cost", {"cost": -1}, None),
        ("cost", {"cost": "much"}, None),
        ("cost", {"cost": True}, None),
        (None, {"cost": 0.0}, None),  # of others we know nothing: a false nothing would switch the budget off
    ],
)
async def test_money_is_taken_from_providers_that_report_it(
    cost_field: str | None, told: dict[str, Any], usd: float | None
) -> None:
    part = await chat_usage({**TOKENS, **told}, cost_field=cost_field)
    assert part.cost_usd == (usd if usd is None else pytest.approx(usd))


def test_nobody_reports_money_by_default() -> None:
    assert Endpoint("m", "k").cost_field is None
