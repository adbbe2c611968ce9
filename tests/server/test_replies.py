"""What the tools' replies cost a parent agent, and that nothing in them is cut by anybody but us, who say so."""

import json
import re
from typing import Any

import pytest
import wcwidth
from hypothesis import given
from hypothesis import strategies as st
from mcp import Client

from massgen_mcp.server.results.reply import page_of
from tests.harness import (
    MODES,
    ROOT,
    TempHome,
    agent,
    call,
    events_of,
    expect_error,
    happened,
    http_server,
    text_of,
    wait_until,
)
from tests.server.reply_check import MOST_BYTES, as_sent, check_reply
from tests.tokens import tokens

MODELS = {
    "openai": "gpt-6.2-sol",
    "claude": "claude-opus-5-5",
    "gemini": "gemini-4-argon",
    "grok": "grok-4.7",
    "zai": "glm-5.3",
    "groq": "openai/gpt-oss-120b",
    "together": "moonshotai/Kimi-K3",
    "fireworks": "accounts/fireworks/models/deepseek-v4-pro",
    "sonnet": "claude-sonnet-5-5",
    "mini": "gpt-5.4-mini",
}
HANG = {"hang": True}


async def both_forms(client: Client, tool: str, **arguments: Any) -> tuple[dict[str, Any], int]:
    """A checked reply, and the tokens of its more expensive form."""
    reply = await client.call_tool(tool, arguments)
    assert not reply.is_error, text_of(reply)
    data = check_reply(reply)
    assert tokens(text_of(reply)) < tokens(as_sent(data).decode())
    return data, tokens(as_sent(data).decode())


# -- budgets ----------------------------------------------------------------------------------------------------------

TOOLS_BUDGET = 2_500


async def test_the_tools_cost_a_parent_less_than_the_budget(home: TempHome) -> None:
    async with home.client() as client:
        listed = (await client.list_tools()).model_dump(mode="json", by_alias=True, exclude_none=True)["tools"]
    sizes = {tool["name"]: tokens(as_sent(tool).decode()) for tool in listed}
    assert tokens(as_sent(listed).decode()) < TOOLS_BUDGET, sizes
    for page in ("comparison.md", "tools.md"):
        assert f"{TOOLS_BUDGET:,}" in (ROOT / "docs" / page).read_text(), f"docs/{page} names another budget"


@pytest.mark.parametrize(("size", "most"), [(3, 161), (10, 300)])
async def test_a_status_costs_few_tokens(home: TempHome, size: int, most: int) -> None:
    """The random id of the run alone costs 13 to 23, and each vote 3 for the name of the answer. After the end, the
    sentence of its outcome comes on top.
    """
    team = list(MODELS.items())[:size]
    steps = [[{"answer": f"{name} says {place * 7919}"}, {"vote": "own"}] for place, (name, _) in enumerate(team)]
    agents = [
        agent(name, *(said if place else [*said[:1], HANG]), model=model)
        for place, ((name, model), said) in enumerate(zip(team, steps, strict=True))
    ]
    async with home.client() as client:
        run_id = (await call(client, "start_run", question="q", config=home.config("team", *agents)))["run_id"]
        run = home.run_directory(run_id)
        await wait_until(lambda: sum(event["type"] == "vote_cast" for event in events_of(run)) == size - 1)
        going, cost = await both_forms(client, "get_status", run_id=run_id)
        assert cost < most
        assert going["agents"][0] == "openai (gpt-6.2-sol): streaming, 1 answer"
        assert going["agents"][1] == "claude (claude-opus-5-5): voted for claude's 1st answer"
        await call(client, "control_run", run_id=run_id, action="finish_now")
        await call(client, "wait_run", run_id=run_id)
        ended, cost = await both_forms(client, "get_status", run_id=run_id)
        assert cost < most + tokens(ended["summary"])


async def test_a_status_of_a_failed_team_with_long_names_fits_in_a_kilobyte(home: TempHome) -> None:
    name = "a-model-with-a-very-long-name-that-some-providers-really-use-2026-11-21"
    config = home.config("failing", *(agent(f"a{n}", {"fail": "auth"}, model=name) for n in range(3)))
    async with home.client() as client:
        started, _ = await both_forms(client, "start_run", question="q", config=config, wait_seconds=30)
        assert started["status"] == "failed"
        status, _ = await both_forms(client, "get_status", run_id=started["run_id"])
    assert len(as_sent(status)) <= 1_024


@pytest.mark.parametrize(
    "keys",
    [
        [],
        ["OPENAI_API_KEY", "ANTHROPIC_API_KEY"],
        ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "XAI_API_KEY", "OPENROUTER_API_KEY"],
    ],
    ids=["no key", "two keys", "every key"],
)
async def test_the_list_of_configs_costs_few_tokens_whatever_keys_are_set(home: TempHome, keys: list[str]) -> None:
    async with home.with_variables(**dict.fromkeys(keys, "sk-some-key-of-a-test")).client() as client:
        listed, cost = await both_forms(client, "list_configs")
    assert cost < 950
    lacking = {name for config in listed["configs"].values() for name in config.get("missing", ())}
    assert lacking.isdisjoint(keys)


# -- nothing is cut unsaid --------------------------------------------------------------------------------------------

LONG = {
    "plain": "".join(f"Line {n} of a long answer, as a model writes it.\n" for n in range(620)),
    "escapes": '"C:\\temp"\t' * 3_000,
    "three bytes a character": "漢字仮名" * 2_500,
    "families": "👩‍👩‍👧‍👦" * 800 + "\N{REGIONAL INDICATOR SYMBOL LETTER D}\N{REGIONAL INDICATOR SYMBOL LETTER E}" * 900,
}


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
async def test_a_long_answer_of_a_team_comes_in_whole_pages_that_join_to_it(home: TempHome, text: str) -> None:
    reason = "It says what has to be said, " * 40
    vote = {"vote": text[:4], "reason": reason}
    others = [agent(f"a{n}", {"answer": f"{n}"}, vote) for n in range(5)]
    config = home.config("long", agent("first", {"answer": text}, vote), *others)
    async with home.client() as client:
        started, _ = await both_forms(client, "start_run", question="q", config=config, wait_seconds=40)
        run_id = started["run_id"]
        waited, _ = await both_forms(client, "wait_run", run_id=run_id)
        pages: list[dict[str, Any]] = []
        offset = 0
        while offset is not None:
            page, _ = await both_forms(client, "get_result", run_id=run_id, view="agent", agent="first", offset=offset)
            pages.append(page)
            offset = page.get("next_offset")
            assert page["truncated"] == (offset is not None or len(pages) == 1)
            if offset is not None:
                assert f"view=agent agent=first offset={offset}" in page["next_step"]
        votes, _ = await both_forms(client, "get_result", run_id=run_id, view="votes")
    assert "".join(page["answer"] for page in pages) == text
    assert len(as_sent(pages[0])) > MOST_BYTES * 0.75, "a page is used"
    assert all(
        set(page) <= {"answer", "truncated", "next_offset", "run_id", "status", "next_step"} for page in pages[1:]
    )
    assert text.startswith((started["answer"], waited["answer"]))
    assert len(waited["answer"]) >= len(started["answer"]) > 1_000
    assert next(iter(started)) == "answer"
    assert [vote["reason"] for vote in votes["votes"]] == [reason.strip()] * 6
    broken = [page["answer"] for page in pages if list(wcwidth.iter_graphemes(page["answer"]))[-1] not in text]
    assert broken == []


async def test_what_is_shortened_is_marked_and_whole_in_another_view(home: TempHome) -> None:
    reason, answer = "because " * 200, "word " * 500
    config = home.config(
        "close",
        agent("ada", {"answer": answer}, {"vote": "own", "reason": reason}),
        agent("bo", {"answer": f"{answer} too"}, {"vote": "own", "reason": reason}),
    )
    async with home.client() as client:
        started = await call(client, "start_run", question="q", config=config, wait_seconds=30)
        first, _ = await both_forms(client, "get_result", run_id=started["run_id"])
        votes, _ = await both_forms(client, "get_result", run_id=started["run_id"], view="votes")
    assert first["truncated"]
    assert "next_offset" not in first
    assert "The answer is complete; view=votes gives the full text." in first["next_step"]
    assert all(vote["reason"].endswith("…") for vote in first["votes"])
    assert [vote["reason"] for vote in votes["votes"]] == [reason.strip()] * 2
    assert not votes["truncated"]


async def test_votes_that_fit_into_no_reply_are_shortened_and_whole_in_the_full_view(home: TempHome) -> None:
    reason = "渡す" * 1_500
    steps = ({"vote": "own", "reason": reason},)
    config = home.config("wordy", *(agent(f"a{n}", {"answer": f"{n}"}, *steps) for n in range(10)))
    async with home.client() as client:
        started = await call(client, "start_run", question="q", config=config, wait_seconds=45)
        run_id = started["run_id"]
        votes, _ = await both_forms(client, "get_result", run_id=run_id, view="votes")
        assert (votes["truncated"], "view=full" in votes["next_step"]) == (True, True)
        whole, offset = "", 0
        while offset is not None:
            page, _ = await both_forms(client, "get_result", run_id=run_id, view="full", offset=offset)
            whole, offset = whole + page["answer"], page.get("next_offset")
    assert whole.count(reason) == 10


async def test_the_largest_team_with_the_longest_names_and_reasons_fits_in_every_reply(home: TempHome) -> None:
    answered = [({"answer": "答" * 5_000 + str(n)}, {"vote": "own", "reason": "理由" * 900}) for n in range(9)]
    names = [f"{n}-{'a' * 62}" for n in range(10)]
    model = "m" * 200
    team = [agent(name, *steps, model=model) for name, steps in zip(names, answered, strict=False)]
    config = home.config("largest", *team, agent(names[9], {"fail": "auth"}, model=model))
    async with home.client() as client:
        started, _ = await both_forms(client, "start_run", question="q", config=config, wait_seconds=45)
        run_id = started["run_id"]
        assert started["status"] == "completed"
        assert len(started["votes"]) == 9
        for tool in ("wait_run", "get_status", "get_result"):
            await both_forms(client, tool, run_id=run_id)
        for view in ("votes", "full"):
            await both_forms(client, "get_result", run_id=run_id, view=view)
        later, _ = await both_forms(client, "get_result", run_id=run_id, offset=started["next_offset"])
    assert later["answer"].startswith("答")


async def test_a_page_is_as_small_as_it_is_asked_for(home: TempHome) -> None:
    config = home.config("long", agent("solo", {"answer": "äöü " * 5_000}))
    async with home.client() as client:
        run_id = (await call(client, "start_run", question="q", config=config, wait_seconds=30))["run_id"]
        page = await call(client, "get_result", run_id=run_id, limit=400)
        beyond, _ = await both_forms(client, "get_result", run_id=run_id, offset=10_000_000)
    assert (len(page["answer"]), page["next_offset"]) == (400, 400)
    assert (beyond["answer"], beyond["truncated"], "next_offset" in beyond) == ("", False, False)


GRAPHEMES = st.sampled_from(["a", " ", "\n", '"', "\\", "\x07", "é", "e\u0301", "漢", "👩‍👩‍👧", "🇩🇪", "\r\n"])


@given(st.lists(GRAPHEMES, min_size=1, max_size=300), st.integers(1, 200), st.integers(1, 300))
def test_pages_join_to_the_text_and_break_no_character(parts: list[str], characters: int, size: int) -> None:
    text, pages, offset = "".join(parts), list[str](), 0
    while offset is not None:
        page, following = page_of(text, offset, characters, size)
        assert page
        assert len(page) <= characters
        assert len(as_sent(page)) - 2 <= size or len(page) == 1
        if following is not None and min(characters, size) >= 40:
            around = list(wcwidth.iter_graphemes(text[max(0, following - 12) : following + 12]))
            ends = {sum(map(len, around[:n])) for n in range(len(around) + 1)}
            assert min(12, following) in ends
        pages.append(page)
        offset = following
    assert "".join(pages) == text


async def test_a_list_of_runs_ends_where_no_client_cuts_it_and_goes_on_there(home: TempHome) -> None:
    question = "何をすべきか、" * 40
    async with home.client() as client:
        started = [
            (await call(client, "start_run", question=question, models=["scripted/x"], dry_run=False))["run_id"]
            for _ in range(25)
        ]
        first, _ = await both_forms(client, "list_runs", limit=100)
        rest, _ = await both_forms(client, "list_runs", limit=100, cursor=first["next_cursor"])
    assert 10 < len(first["runs"]) < 25
    assert [row["run_id"] for row in (*first["runs"], *rest["runs"])] == started[::-1]


async def test_a_long_error_is_cut_and_says_so(home: TempHome) -> None:
    path = home.work / "bad.yaml"
    path.write_text(json.dumps({"agents": [agent("ada")], **{f"wrong_{n}": n for n in range(400)}}, indent=1))
    async with home.client() as client:
        reply = await client.call_tool("start_run", {"question": "q", "config": str(path)})
    told = text_of(reply)
    assert told.startswith("ERROR config_invalid: ")
    assert len(as_sent(told)) <= MOST_BYTES
    assert told.endswith("(cut here)")


# -- names ------------------------------------------------------------------------------------------------------------


async def test_an_agent_called_as_another_is_in_the_records_is_itself(home: TempHome) -> None:
    config = home.config("crossed", agent("agent_b", {"answer": "from b"}), agent("agent_a", {"answer": "from a"}))
    async with home.client() as client:
        started = await call(client, "start_run", question="q", config=config, wait_seconds=30)
        for name in ("a", "b"):
            asked = {"run_id": started["run_id"], "view": "agent", "agent": f"agent_{name}"}
            assert (await call(client, "get_result", **asked))["answer"] == f"from {name}"


async def test_no_reply_calls_an_agent_otherwise_than_its_config(home: TempHome) -> None:
    config = home.config("failing", agent("ada", {"fail": "auth"}), agent("bo", {"fail": "model_not_found"}))
    other = home.config("one_falls", agent("cleo", {"answer": "x"}), agent("dan", {"fail": "auth"}))
    async with home.client() as client:
        for team in (config, other):
            started = await client.call_tool("start_run", {"question": "q", "config": team, "wait_seconds": 30})
            run_id = check_reply(started)["run_id"]
            for tool in ("get_status", "get_result", "wait_run"):
                reply = await client.call_tool(tool, {"run_id": run_id})
                told = re.sub(r"/final/agent_.", "", json.dumps(check_reply(reply)))
                assert re.search(r"\bagent_[ab]\b", told) is None, told
        assert "no agent is left: ada: " in (await call(client, "get_result", run_id=started_id(home, 0)))["reason"]
        runs = (await call(client, "list_runs"))["runs"]
    assert [row.get("winner") for row in runs] == ["cleo", None]


def started_id(home: TempHome, place: int) -> str:
    """Of the run that was started so many runs after the first."""
    return sorted(home.runs, key=lambda run: (run / "config.json").stat().st_mtime_ns)[place].name


# -- keys -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("client_name", "told"),
    [
        ("claude-code", ["Claude Code's environment", "restart Claude Code"]),
        ("codex-mcp-client", ["~/.codex/config.toml", "`env_vars`", "restart Codex"]),
        ("some-editor", ["under `env` in this server's entry", "restart the client"]),
    ],
)
async def test_a_missing_key_says_where_this_client_takes_it(home: TempHome, client_name: str, told: list[str]) -> None:
    async with home.client(called=client_name) as client:
        for arguments in ({}, {"config": "two_providers"}):
            code, message = await expect_error(client, "start_run", question="q", **arguments)
            assert code in ("no_default_team", "missing_key")
            assert all(part in message for part in told), message
        planned, _ = await both_forms(client, "start_run", question="q", config="two_providers", dry_run=True)
    assert all(part in planned["next_step"] for part in ("OPENAI_API_KEY", *told))


async def test_a_client_whose_model_reads_text_and_data_gets_a_reply_once(home: TempHome) -> None:
    async with home.client(called="copilot-cli") as client:
        reply = await client.call_tool("start_run", {"question": "q", "team": "scripted", "wait_seconds": 30})
        refused = await client.call_tool("get_status", {"run_id": "run-x"})
    assert text_of(reply) == "The reply is in the structured data."
    assert json.dumps(reply.structured_content).startswith('{"answer": "Neither')
    assert text_of(refused).startswith("ERROR unknown_run"), "an error is a text alone"


async def test_a_missing_key_of_a_server_over_http_belongs_where_that_is_started(home: TempHome) -> None:
    async with http_server(home) as server:
        for mode in MODES:
            async with server.client(mode) as client:
                _, message = await expect_error(client, "start_run", question="q", config="two_providers")
                assert "the environment of `massgen-mcp --transport http`" in message


async def test_every_reply_has_its_facts_in_both_forms(home: TempHome) -> None:
    question = "Metres or feet? " + "It matters for every figure in the report. " * 10
    ask = {"call": "ask_the_asker", "arguments": {"question": question}}
    asking = home.config("asking", agent("solo", ask, {"answer": "42 m"}), orchestrator={"allow_questions": True})
    async with home.client() as client:
        started, _ = await both_forms(client, "start_run", question="q", config=asking, idempotency_key="k")
        again, _ = await both_forms(client, "start_run", question="q", config=asking, idempotency_key="k")
        assert (started["reused"], again["reused"]) == (False, True)
        run_id = started["run_id"]
        await wait_until(lambda: happened(home.run_directory(run_id), "input_required"))
        waited, _ = await both_forms(client, "wait_run", run_id=run_id, cursor=0, timeout_seconds=20)
        assert waited["reason"].startswith("question: Metres or feet?")
        assert waited["truncated"]
        assert "action=answer" in waited["next_step"]
        assert "get_result with view=votes gives the full reason" in waited["next_step"]
        votes, _ = await both_forms(client, "get_result", run_id=run_id, view="votes")
        assert votes["reason"] == f"question: {question.strip()}"
        await both_forms(client, "list_runs")
        await both_forms(client, "list_configs", name="two_providers")
        await both_forms(client, "control_run", run_id=run_id, action="cancel")
        ended, _ = await both_forms(client, "wait_run", run_id=run_id)
    assert (ended["status"], "answer" in ended, ended["next_step"]) == ("cancelled", False, "Start a new run.")
