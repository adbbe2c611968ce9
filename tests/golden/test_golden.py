"""Journals that earlier versions wrote are healthy: they look as they did, and an interrupted run goes on."""

import json
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client

from massgen_mcp.events.parts import public_agent_name
from tests.harness import TempHome, call, events_of, home

__all__ = ["home"]

GOLDEN = sorted(path.parent for path in Path(__file__).parent.glob("*/expected.json"))
PUBLIC_NAME = re.compile(r"\bagent_[a-z]\b")
HEADING = re.compile(r"^## agent\d+\.(?P<number>\d+) \((?P<agent>\w+)\)$", re.MULTILINE)
VOTE = re.compile(r"^(?P<vote>## Vote of \w+ for )(?P<agent>\w+) \(agent\d+\.(?P<number>\d+)\)$", re.MULTILINE)
"""Lines of the whole result, as they were."""
ORDINALS = {"1": "1st", "2": "2nd", "3": "3rd"}
STATUS_FACTS = (
    "status",
    "phase",
    "model_calls",
    "tokens",
    "spent_usd",
    "max_usd",
    "elapsed_seconds",
)
RESULT_FACTS = (
    *(
        "status",
        "answer",
        "outcome",
        "winner",
        "vote_counts",
        "votes",
        "dissent",
        "degraded",
        "usage",
        "resumed",
        "seconds",
    ),
)


def laid_out(golden: Path, home: TempHome) -> dict[str, Any]:
    """Put a golden state directory where the home is; returns what was expected of it."""
    home.path.mkdir()
    shutil.copytree(golden / "runs", home.path / "runs")
    with closing(sqlite3.connect(home.path / "runs.sqlite3")) as db:
        db.executescript((golden / "store.sql").read_text())
    return json.loads((golden / "expected.json").read_text())


async def told(client: Client, run_id: str) -> tuple[dict[str, Any], list[str]]:
    """The facts, and the ids of the agents."""
    status = await call(client, "get_status", run_id=run_id)
    result = await call(client, "get_result", run_id=run_id, view="full")
    for usage in (status, result["usage"]):  # calls that were cut off were not among them
        usage["model_calls"] -= result["usage"].get("cut_off_calls") or 0
    result["usage"].pop("cut_off_calls", None)
    facts = {**{fact: status.get(fact) for fact in STATUS_FACTS}, **{fact: result.get(fact) for fact in RESULT_FACTS}}
    for dissent in result["dissent"]:
        del dissent["agent"]
    return without_nothing(facts), list(result["team"])


def as_told_now(then: dict[str, Any], agents: list[str]) -> dict[str, Any]:
    """What a reply said when agents had other names in it, and what was not there was null."""
    cut_off = then["result"]["usage"].pop("cut_off_calls", None) or 0
    for usage in (then["status"], then["result"]["usage"]):
        usage["model_calls"] -= cut_off
    facts = {**{fact: then["status"][fact] for fact in STATUS_FACTS}}
    facts |= {fact: then["result"].get(fact) for fact in RESULT_FACTS}
    for dissent in facts["dissent"]:
        dissent.pop("agent", None)
    names = {public_agent_name(place): agent for place, agent in enumerate(agents)}
    facts = json.loads(PUBLIC_NAME.sub(lambda found: names[found[0]], json.dumps(facts)))
    if facts["answer"]:
        answer = HEADING.sub(lambda found: f"## {name_answer(found)}", facts["answer"])
        facts["answer"] = VOTE.sub(lambda found: f"{found['vote']}{name_answer(found)}", answer)
    return without_nothing(facts)


def name_answer(found: re.Match[str]) -> str:
    return f"{found['agent']}'s {ORDINALS[found['number']]} answer"


def without_nothing(facts: dict[str, Any]) -> dict[str, Any]:
    """Without nulls, without counters that are 0, and without a count of no resumes."""
    facts = {**facts, "usage": {name: value for name, value in facts["usage"].items() if value}}
    votes: dict[str, int] = facts.get("vote_counts") or {}
    if not any(votes.values()):
        facts.pop("vote_counts", None)
    return {name: value for name, value in facts.items() if value is not None and (name, value) != ("resumed", 0)}


def assert_still_told(now: str, then: str) -> None:
    """Every paragraph that there was is told, if in the words of another: what ended the run is said once."""
    assert [paragraph for paragraph in then.split("\n\n") if paragraph not in now] == []


def test_there_are_journals_without_a_version_and_of_the_first_one() -> None:
    assert [path.name for path in GOLDEN][:2] == ["journal_0", "journal_1"]


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda path: path.name)
async def test_runs_of_an_earlier_version_look_as_they_did_and_go_on(home: TempHome, golden: Path) -> None:
    expected = laid_out(golden, home)
    async with home.client() as client:
        listed = {row["run_id"]: row["status"] for row in (await call(client, "list_runs"))["runs"]}
        states = {then["run_id"]: then["status"]["status"] for then in expected.values()}
        assert listed == {**states, expected["interrupted"]["run_id"]: "interrupted"}
        for name, then in expected.items():
            if name != "interrupted":
                now, agents = await told(client, then["run_id"])
                facts = as_told_now(then, agents)
                assert_still_told(now.pop("answer"), facts.pop("answer", "## "))
                for gone, then_gone in zip(now.get("degraded", ()), facts.get("degraded", ()), strict=True):
                    if "message" not in gone:  # the reason of the run tells it, once
                        then_gone.pop("message", None)
                if now.get("resumed"):  # the time between two processes is none of the run's
                    assert now.pop("elapsed_seconds") <= facts.pop("elapsed_seconds")
                    assert now.pop("seconds") <= facts.pop("seconds")
                assert now == facts, name
        run_id = expected["interrupted"]["run_id"]
        before = events_of(home.run_directory(run_id))
        assert (await call(client, "get_status", run_id=run_id))["status"] == "interrupted"
        await call(client, "control_run", run_id=run_id, action="resume")
        assert (await call(client, "wait_run", run_id=run_id, timeout_seconds=45))["status"] == "completed"
        assert (await call(client, "get_result", run_id=run_id))["resumed"] == 1
    after = events_of(home.run_directory(run_id))
    assert after[: len(before)] == before
    replied = [event["call_id"] for event in after if event["type"] == "model_replied"]
    assert len(replied) == len(set(replied)), "what was replied before was not paid for again"
