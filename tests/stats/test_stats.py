"""`massgen stats` and `mark`: what many runs come to, from real runs, through the command line."""

import json
import shutil
import sqlite3
from contextlib import closing
from typing import Any

import pytest

from tests.commands import run_command
from tests.harness import SERVER_MODULE, TempHome
from tests.stats.played import copied, played

__all__ = ["copied", "played"]


def verb(home: TempHome, *arguments: str, code: int = 0) -> str:
    done = run_command(home, SERVER_MODULE, *arguments)
    assert (done.returncode, bool(done.stderr)) == (code, code != 0), done.stderr
    return done.stdout or done.stderr


def stats(home: TempHome, *arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(verb(home, "stats", "--json", *arguments))
    return found


def run_ids(home: TempHome) -> list[str]:
    """In the order in which they were played."""
    return [row["run_id"] for row in reversed(json.loads(verb(home, "runs", "--json"))["runs"])]


def of(share: dict[str, Any]) -> tuple[int, int]:
    return share["count"], share["of"]


def test_outcomes_money_wins_and_agreement_are_those_of_the_runs(played: TempHome) -> None:
    told = stats(played)
    figures, models = told["figures"], {one["model"]: one for one in told["models"]}
    assert figures["states"] == {"completed": 3, "failed": 1}
    assert sum(figures["outcomes"].values()) == 3
    assert figures["outcomes"]["majority"] == 1
    assert of(figures["first_answer"]) == (2, 3), "the winner of the third run answered twice"
    assert of(figures["first_ballot"]) == (2, 3)
    assert of(told["marked"]["dissent"]) == (1, 3)
    assert [of(models[model]["wins"]) for model in ("alpha", "beta", "gamma", "local")] == [
        (1, 2),
        (2, 3),
        (0, 2),
        (0, 1),
    ]
    assert of(models["gamma"]["with_winner"]) == (1, 2)
    assert (models["alpha"]["answered"], models["alpha"]["agents"], models["alpha"]["dropped"]) == (2, 3, 1)
    agreed = {tuple(pair["models"]): of(pair["agreed"]) for pair in told["agreement"]}
    assert agreed[("alpha", "beta")] == (2, 2)
    assert agreed[("alpha", "gamma")] == agreed[("beta", "gamma")] == (1, 2)
    # What nobody knows a price of is not nothing.
    assert models["local"]["money"] == {"usd": None, "unknown": 1, "estimated": 0}
    assert figures["money"]["unknown"] == 1
    assert figures["money"]["usd"] == pytest.approx(sum(one["money"]["usd"] or 0 for one in told["models"]))
    by_team = {team["name"]: team["figures"]["money"] for team in told["teams"]}
    assert by_team["beta, local"]["usd"] > 0
    assert by_team["alpha, beta"] == {"usd": 0.0, "unknown": 0, "estimated": 0}, "nothing was asked of anybody"


def test_a_terminal_is_told_counts_beside_every_share_and_no_percents_of_few(played: TempHome) -> None:
    text = verb(played, "stats")
    assert text.startswith("4 runs ended\n3 completed, 1 failed\n")
    assert "the winning answer was its agent's first one in 2 of 3 runs\n" in text
    assert "%" not in text
    (local,) = [line for line in text.splitlines() if line.startswith("local ")]
    assert local.endswith("cost n/a")
    assert "+" in next(line for line in text.splitlines() if line.startswith("beta, local"))


def test_only_the_runs_that_are_asked_for_are_counted(played: TempHome) -> None:
    def counted(*arguments: str) -> int:
        runs: int = stats(played, *arguments)["figures"]["runs"]
        return runs

    config = json.loads(verb(played, "runs", "--json"))["runs"][-1]["source"]
    assert [counted(), counted("--model", "local"), counted("--team", "gamma, beta,alpha")] == [4, 1, 2]
    assert counted("--team", "alpha,beta") == 1, "no more models than that"
    assert counted("--config", config) == 1
    assert counted("--since", "1h", "--model", "alpha") == 3
    assert counted("--since", "2999-01-01") == 0
    assert verb(played, "stats", "--since", "2999-01-01").startswith("0 runs ended, since 2999-01-01")


def test_what_a_person_marks_is_counted_until_it_is_taken_back(copied: TempHome) -> None:
    agreed, split, second, failed = run_ids(copied)
    verb(copied, "mark", agreed, "right")
    verb(copied, "mark", split, "wrong", "--note", "It was the tests.")
    verb(copied, "mark", split, "right", "--agent", "cleo")
    marked = json.loads(verb(copied, "mark", second, "right", "--json"))
    assert marked == {"run_id": second, "verdict": "right"}
    told = stats(copied)
    assert of(told["marked"]["answers"]) == (2, 3)
    assert of(told["marked"]["by_outcome"]["majority"]) == (0, 1)
    assert of(told["marked"]["dissent_right"]) == (1, 1)
    assert {one["model"]: of(one["dissent_right"]) for one in told["models"]}["gamma"] == (1, 1)
    assert "dissent was right in 1 of 1 marked runs with dissent" in verb(copied, "stats")
    verb(copied, "mark", split, "--undo", "--agent", "cleo")
    verb(copied, "mark", split, "right")
    told = stats(copied)["marked"]
    assert (of(told["answers"]), of(told["dissent_right"])) == ((3, 3), (0, 1))
    assert "no agent 'eve'; it has ada, bo, cleo" in verb(copied, "mark", agreed, "wrong", "--agent", "eve", code=1)
    assert "more than 2000 characters" in verb(copied, "mark", failed, "wrong", "--note", "x" * 2001, code=1)
    assert "add `right` or `wrong`" in verb(copied, "mark", agreed, code=64)


def test_every_record_is_read_once_and_figures_and_marks_outlive_what_is_deleted(copied: TempHome) -> None:
    before = stats(copied)
    first, *rest = run_ids(copied)
    with closing(sqlite3.connect(copied.path / "runs.sqlite3")) as db, db:
        places = [place for (place,) in db.execute("SELECT directory FROM runs")]
        db.execute("DELETE FROM digests")  # as a version without statistics left it
    own = copied.path / "own"
    for place in places:
        shutil.copytree(place, own / place.rpartition("/")[2])
    with closing(sqlite3.connect(copied.path / "runs.sqlite3")) as db, db:
        db.execute(
            "UPDATE runs SET directory = ? || replace(directory, rtrim(directory, replace(directory, '/', '')), '')",
            (f"{own}/",),
        )
    assert stats(copied) == before
    verb(copied, "mark", first, "right", "--note", "a name that is to be forgotten")
    verb(copied, "prune", first)
    shutil.rmtree(own)
    after = stats(copied)
    assert of(after["marked"]["answers"]) == (1, 1)
    assert (after["figures"], after["models"], after["unread"]) == (before["figures"], before["models"], 0)
    assert b"to be forgotten" not in b"".join(file.read_bytes() for file in copied.path.glob("runs.sqlite3"))
    verb(copied, "mark", first, "--undo")
    assert of(stats(copied)["marked"]["answers"]) == (0, 0), "an expired run can be marked, too"
    assert len(rest) == 3


def test_marks_say_whether_one_agent_alone_would_have_been_as_right_and_cheaper(copied: TempHome) -> None:
    agreed, split, second, _ = run_ids(copied)
    for run_id, verdict in ((agreed, "right"), (split, "wrong"), (second, "right")):
        verb(copied, "mark", run_id, verdict)
    alone = {one["model"]: one for one in stats(copied)["marked"]["alone"]}
    # In the first run beta wins with its only answer; in the third one beta answers twice, so that nothing is known.
    assert of(alone["beta"]["right"]) == of(alone["beta"]["team_right"]) == (1, 1)
    assert of(alone["alpha"]["right"]) == (0, 2), "once beside what proved right, once the author of what proved wrong"
    assert of(alone["gamma"]["right"]) == (0, 1), "what it said beside a wrong answer may be right"
    assert alone["beta"]["money"]["usd"] < alone["beta"]["team_money"]["usd"]
    told = verb(copied, "stats")
    lines = [line for line in told.splitlines() if "'s first answer was right in" in line]
    assert [line.split()[0] for line in lines if "as often, at a lower cost (too few marked runs" in line] == ["beta's"]
