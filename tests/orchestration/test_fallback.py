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
from massgen_mcp.events.agent_work import ModelCallFailed, ModelCallStarted, ModelReplied
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
