"""An agent's fallback goes on where its own model was ended by a quota, a balance or an outage, also after a kill."""

import json
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from massgen_mcp.config.loader import config_from_data
from massgen_mcp.config.models.config import Config
from massgen_mcp.errors import MassgenError
from massgen_mcp.events.agent_work import ModelCallFailed, ModelCallRetried, ModelCallStarted, ModelReplied
from massgen_mcp.events.coordination import AgentDropped, ModelReplaced, PresentationFailed
from massgen_mcp.events.run import RunCompleted, RunFailed
from massgen_mcp.money.estimate import estimate, get_team_prices
from massgen_mcp.request.reach import reach_of
from massgen_mcp.runs.engine import RunFiles
from massgen_mcp.runs.host.execute import RunContext, execute_run
from massgen_mcp.views.ending import list_replacement_notes
from tests.raw_double import RawDouble, Seen, answering, reply, sse
from tests.teams import Ended, Script, run_team

OTHER = "groq/our-other-model"
LIST: dict[str, Any] = {"call": "list_files"}
FAULTS = ("quota_exhausted", "rate_limited", "unreachable", "provider_error")


def config(first: Script, *others: Script, fallback: str | None = OTHER, **settings: Any) -> Config:
    agents: list[dict[str, Any]] = [{"backend": {"type": "scripted", "script": list(first), "fallback": fallback}}]
    agents += [{"backend": {"type": "scripted", "script": list(one)}} for one in others]
    return config_from_data({"agents": agents, **settings}, "test", environ={})


def called(name: str, arguments: str) -> bytes:
    call = {"index": 0, "id": "c1", "function": {"name": name, "arguments": arguments}}
    usage = {"prompt_tokens": 1_000, "completion_tokens": 100, "total_tokens": 1_100}
    choice = {"delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}
    return reply(sse({"choices": [choice]}, {"choices": [], "usage": usage}, "[DONE]"))


def respond(seen: Seen, _: int) -> bytes:
    tools = {tool["function"]["name"]: tool["function"]["parameters"] for tool in seen.body.get("tools", ())}
    if "vote" in tools:
        own = tools["vote"]["properties"]["agent_id"]["enum"][-1]
        return called("vote", json.dumps({"agent_id": own, "reason": "it is right"}))
    if "new_answer" in tools:
        return called("new_answer", '{"content": "42, says the other model"}')
    return reply(sse({"choices": [{"delta": {"content": "It is 42."}, "finish_reason": "stop"}]}, "[DONE]"))


@asynccontextmanager
async def other_model() -> AsyncGenerator[tuple[RawDouble, dict[str, str]]]:
    async with answering(respond) as double:
        yield double, {"MASSGEN_GROQ_BASE_URL": double.url, "GROQ_API_KEY": "gsk-fallback"}


async def ended(path: Path, own: Config) -> tuple[Ended, RawDouble]:
    async with other_model() as (double, environ):
        return await run_team(path, own, environ=environ), double


@pytest.mark.parametrize("fault", FAULTS)
async def test_the_fallback_goes_on_in_the_middle_of_a_round_and_the_record_says_so(tmp_path: Path, fault: str) -> None:
    run, double = await ended(tmp_path, config([LIST, LIST, *[{"fail": fault}] * 5]))
    (replaced,) = run.of(ModelReplaced)
    assert (replaced.reason, f"{replaced.backend}/{replaced.model}") == (fault, OTHER)
    assert not run.of(AgentDropped)
    assert run.snapshot.final_answer == "42, says the other model"
    assert "list_files" in str(double.requests[0].body["messages"]), "it knows what was done before"
    assert run.of(ModelReplied)[-1].by_fallback
    (note,) = list_replacement_notes(run.snapshot)
    assert "scripted/scripted" in note
    assert OTHER in note
    ids = [event.call_id for event in run.of(ModelCallStarted)]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("fault", FAULTS)
async def test_without_a_fallback_the_agent_is_dropped(tmp_path: Path, fault: str) -> None:
    run, double = await ended(tmp_path, config([LIST, *[{"fail": fault}] * 5], fallback=None))
    assert [event.reason for event in run.of(AgentDropped)] == [fault]
    assert run.of(RunFailed)
    assert not double.requests


@pytest.mark.parametrize("fault", ["auth", "model_not_found"])
async def test_a_fault_of_the_config_is_no_reason_for_the_fallback(tmp_path: Path, fault: str) -> None:
    run, double = await ended(tmp_path, config([{"fail": fault}]))
    assert [event.reason for event in run.of(AgentDropped)] == [fault]
    assert not double.requests


def refusal(status: str, error: dict[str, Any], **headers: str) -> bytes:
    body = json.dumps({"error": error}).encode()
    return reply(body, status=status, media_type="application/json", headers=headers)


REFUSED_FOR_TODAY: dict[str, tuple[bytes, str, str]] = {
    "a quota per day": (
        refusal("429 Too Many Requests", {"message": "Limit reached for requests per day (RPD): limit 1000"}),
        "quota_exhausted",
        "requests per day (RPD)",
    ),
    "a quota of a day by its name": (
        refusal(
            "429 Too Many Requests",
            {
                "message": "You exceeded your quota.",
                "details": [{"violations": [{"quotaId": "RequestsPerDayPerModel"}]}],
            },
        ),
        "quota_exhausted",
        "You exceeded your quota.",
    ),
    "a wait longer than the round": (
        refusal("429 Too Many Requests", {"message": "Slow down."}, **{"Retry-After": "3000"}),
        "rate_limited",
        "Slow down.",
    ),
    "a wait longer than any": (
        refusal("503 Service Unavailable", {"message": "Maintenance."}, **{"Retry-After": "86400"}),
        "provider_error",
        "Maintenance.",
    ),
    "a credit balance": (
        refusal("400 Bad Request", {"message": "Your credit balance is too low to access the API."}),
        "quota_exhausted",
        "credit balance is too low",
    ),
    "what OpenRouter quotes of a provider": (
        refusal(
            "429 Too Many Requests",
            {
                "message": "Provider returned error",
                "code": 429,
                "metadata": {
                    "provider_name": "X",
                    "raw": json.dumps({"error": {"message": "daily limit of 50 reached"}}),
                },
            },
        ),
        "quota_exhausted",
        "Provider returned error: daily limit of 50 reached",
    ),
    "an error inside a choice": (
        reply(
            sse(
                {"choices": [{"delta": {"content": "It is"}}]},
                {"choices": [{"error": {"code": 402, "message": "Insufficient credits"}, "finish_reason": "error"}]},
            )
        ),
        "quota_exhausted",
        "Insufficient credits",
    ),
}


@pytest.mark.parametrize("fault", REFUSED_FOR_TODAY)
async def test_a_model_that_is_not_to_be_had_in_time_is_asked_once_and_its_cause_is_told(
    tmp_path: Path, fault: str
) -> None:
    told, reason, words = REFUSED_FOR_TODAY[fault]
    async with answering(lambda _seen, _number: told) as gone, other_model() as (double, environ):
        backend = {"type": "chatcompletion", "model": "gone", "base_url": f"{gone.url}/v1", "fallback": OTHER}
        own = config_from_data(
            {"agents": [{"backend": backend}], "timeout_settings": {"round_timeout_seconds": 600}}, "test", environ={}
        )
        run = await run_team(tmp_path, own, environ=environ)
    (replaced,) = run.of(ModelReplaced)
    assert (replaced.reason, words in replaced.message) == (reason, True), replaced
    assert len(gone.requests) == 1
    assert len(double.requests) >= 1
    assert run.snapshot.final_answer == "42, says the other model"


async def test_a_resumed_run_knows_what_a_server_had_refused(tmp_path: Path) -> None:
    """The server has a chat template without a system role, and takes no tools."""
    asked: list[dict[str, Any]] = []

    def choosy(seen: Seen, _: int) -> bytes:
        asked.append(seen.body)
        if "tools" in seen.body:
            return refusal("400 Bad Request", {"message": "this model does not support tools"})
        if any(message["role"] == "system" for message in seen.body["messages"]):
            return refusal("400 Bad Request", {"message": "System role not supported"})
        return reply(sse({"choices": [{"delta": {"content": "It is 42."}, "finish_reason": "stop"}]}, "[DONE]"))

    async with answering(choosy) as server:
        backend = {"type": "chatcompletion", "model": "choosy", "base_url": f"{server.url}/v1"}
        own = config_from_data({"agents": [{"backend": backend}]}, "test", environ={})
        whole = await run_team(tmp_path / "whole", own, environ={})
        assert whole.snapshot.final_answer == "It is 42."
        events = [record.event for record in whole.directory.event_log.read()]
        cut = 1 + max(place for place, event in enumerate(events) if isinstance(event, ModelCallRetried))
        asked.clear()
        again = await resumed(tmp_path / "again", whole, cut, {})
    assert again.snapshot.final_answer == "It is 42."
    assert asked
    assert not any("tools" in body for body in asked)
    assert not any(message["role"] == "system" for body in asked for message in body["messages"])


async def test_the_fallback_writes_the_final_answer_of_a_winner_whose_model_is_gone(tmp_path: Path) -> None:
    first = [{"answer": "41"}, {"vote": "41"}, {"fail": "quota_exhausted"}]
    run, _ = await ended(tmp_path, config(first, [{"answer": "40"}, {"vote": "41"}]))
    assert run.of(ModelReplaced)
    assert not run.of(PresentationFailed)
    assert run.snapshot.final_answer == "It is 42."


async def test_a_fallback_that_fails_itself_is_dropped(tmp_path: Path) -> None:
    nowhere = {"MASSGEN_GROQ_BASE_URL": "http://127.0.0.1:9/v1", "GROQ_API_KEY": "gsk-fallback"}
    run = await run_team(tmp_path, config([{"fail": "quota_exhausted"}]), environ=nowhere)
    assert len(run.of(ModelReplaced)) == 1
    assert [event.reason for event in run.of(AgentDropped)] == ["unreachable"]


async def test_a_fallback_is_charged_at_its_own_price(tmp_path: Path) -> None:
    """The agent's own model costs nothing; that of the fallback is listed."""
    async with other_model() as (double, _):
        environ = {"OPENAI_BASE_URL": double.url, "OPENAI_API_KEY": "sk-fallback"}
        own = config([{"fail": "quota_exhausted"}], fallback="chatcompletion/gpt-5")
        run = await run_team(tmp_path, own, environ=environ)
    (replied,) = run.of(ModelReplied)
    assert replied.cost.source == "estimate"
    assert replied.cost.usd == pytest.approx((1_000 * 1.25 + 100 * 10) / 1e6)


async def test_the_plan_the_consent_and_the_estimate_name_the_fallback() -> None:
    own = config([], fallback="openai/gpt-6.2-sol")
    environ = {"OPENAI_API_KEY": "sk-fallback"}
    assert own.agents[0].models == "scripted/scripted, else openai/gpt-6.2-sol"
    reach = reach_of(own, environ, Path("/"))
    assert reach.hosts == ("api.openai.com",)
    assert [pair.key for pair in reach.keys] == ["OPENAI_API_KEY"]
    assert [*get_team_prices(own, environ).bounded] == ["gpt-6.2-sol"]
    usd = estimate(own, "?", environ).usd
    assert usd is not None
    assert usd[0] == 0 < usd[1]


@pytest.mark.parametrize("wrong", ["gpt-5", "opnai/gpt-5", "openai/", "claude_code/opus", "/x", "openai/a\nb"])
def test_a_fallback_that_names_no_model_of_a_provider_is_refused(wrong: str) -> None:
    with pytest.raises(MassgenError, match="fallback"):
        config([], fallback=wrong)


async def resumed(path: Path, whole: Ended, cut: int, environ: dict[str, str]) -> Ended:
    """The same run, whose process was lost after so many events."""
    shutil.copytree(whole.directory.path, path / "run")
    journal = path / "run" / "events.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:cut]))
    directory = RunFiles(path / "run")
    snapshot = await execute_run(directory, "run-test", RunContext(environ))
    return Ended(snapshot, directory.event_log.read(), directory)


async def test_a_run_that_is_cut_off_anywhere_goes_on_with_the_model_that_it_had(tmp_path: Path) -> None:
    own = config([LIST, *[{"fail": "quota_exhausted"}] * 5], [{"answer": "40"}, {"vote": "42"}])
    async with other_model() as (_, environ):
        whole = await run_team(tmp_path / "whole", own, environ=environ)
        lines = whole.directory.event_log.read()
        for cut in range(2, len(lines)):
            run = await resumed(tmp_path / str(cut), whole, cut, environ)
            assert run.of(RunCompleted), cut
            assert len(run.of(ModelReplaced)) == 1, cut
            assert not run.of(AgentDropped), cut
            assert {event.reason for event in run.of(ModelCallFailed)} == {"quota_exhausted"}, cut
