"""Journals that earlier versions wrote are healthy: they look as they did, and an interrupted run goes on."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client

from tests.harness import TempHome, call, events_of, home

__all__ = ["home"]

GOLDEN = sorted(path.parent for path in Path(__file__).parent.glob("*/expected.json"))
STATUS_FACTS = (
    "status",
    "phase",
    "model_calls",
    "tokens",
    "spent_usd",
    "max_usd",
    "elapsed_seconds",
    "progress_percent",
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


async def told(client: Client, run_id: str) -> dict[str, Any]:
    status = await call(client, "get_status", run_id=run_id)
    result = await call(client, "get_result", run_id=run_id, view="full")
    return {**{fact: status[fact] for fact in STATUS_FACTS}, **{fact: result[fact] for fact in RESULT_FACTS}}


def test_there_are_journals_without_a_version_and_of_the_first_one() -> None:
    assert [path.name for path in GOLDEN][:2] == ["journal_0", "journal_1"]


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda path: path.name)
async def test_runs_of_an_earlier_version_look_as_they_did_and_go_on(home: TempHome, golden: Path) -> None:
    expected = laid_out(golden, home)
    async with home.client() as client:
        for name, then in expected.items():
            if name != "interrupted":
                facts = {**{fact: then["status"][fact] for fact in STATUS_FACTS}}
                facts |= {fact: then["result"][fact] for fact in RESULT_FACTS}
                now = await told(client, then["run_id"])
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
