"""A weak win looks weak: at every door, in the same words, and with who disagrees."""

import os
import re
from pathlib import Path
from typing import Any

import anyio
import pytest

from massgen_mcp.cli.massgen.main import main
from tests.commands import run_command
from tests.harness import SERVER_MODULE, TempHome, agent, call
from tests.page.test_report import data_of

NAMES = ("ada", "bo", "cleo", "dan", "eve", "fay", "gus", "hal", "ida", "jon")
VOTES = ("ada", "ada", "ada", "bo", "bo", "cleo", "cleo", "dan", "eve", "fay")
TEN = [
    agent(name, {"answer": f"{name} says so."}, {"vote": f"{of} says"}) for name, of in zip(NAMES, VOTES, strict=True)
]
REASON = "It answers the question best"
BROKEN = {"fail": "auth"}
LEFT_ALONE = [agent("ada", {"answer": "It is 42."}), agent("bo", BROKEN), agent("cleo", BROKEN)]
TIED = [agent("ada", {"answer": "A"}, *[{"vote": "own"}] * 2), agent("bo", {"answer": "B"}, *[{"vote": "own"}] * 2)]
TIED_THREE = [agent(name, {"answer": name[0]}, *[{"vote": "own"}] * 2) for name in NAMES[:3]]
AGREED = [agent(name, {"answer": f"{name} says so."}, {"vote": "ada says"}) for name in NAMES[:3]]
SAME = [agent(name, {"answer": text}, {"vote": "own"}) for name, text in zip(NAMES, ("42", "43", "42"), strict=False)]


async def replies(home: TempHome) -> list[dict[str, Any]]:
    """Of the latest run: its row in the list, its result and its status."""
    async with home.client() as client:
        row = (await call(client, "list_runs"))["runs"][0]
        told = [await call(client, name, run_id=row["run_id"]) for name in ("get_result", "get_status")]
    return [row, *told]


@pytest.mark.parametrize(
    ("team", "code", "decided_by", "weak", "outcome", "caution"),
    [
        (
            TEN,
            0,
            ["votes"],
            ["no_majority"],
            f"3 of 10 agree; no majority; dan, eve and 5 more disagree: {REASON}",
            "Only 3 of 10 votes are for this answer, which isn't a majority.",
        ),
        (
            LEFT_ALONE,
            2,
            None,
            ["nobody_left"],
            "of 3 agents, only ada remained; no agent was left to review the answer",
            "No agent voted for or reviewed ada's answer.",
        ),
        (
            TIED,
            0,
            ["votes"],
            ["tied"],
            f"1 of 2 agrees; the votes are tied; (ada|bo) disagrees: {REASON}",
            "The votes are tied between ada's 1st answer and bo's 1st answer",
        ),
        (
            TIED_THREE,
            0,
            ["votes"],
            ["tied"],
            f"1 of 3 agrees; the votes are tied; (ada|bo) and (bo|cleo) disagree: {REASON}",
            "The votes are tied between ada's 1st answer, bo's 1st answer and cleo's 1st answer, and ",
        ),
        (AGREED, 0, ["votes"], None, "all 3 agree", ""),
        (SAME, 0, ["votes"], None, f"2 of 3 agree; bo disagrees: {REASON}", ""),
    ],
    ids=["no_majority", "left_alone", "tied", "tied_three", "agreed", "same_text"],
)
def test_every_door_tells_how_firm_a_decision_is(
    home: TempHome,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    team: list[dict[str, Any]],
    code: int,
    decided_by: list[str] | None,
    weak: list[str] | None,
    outcome: str,
    caution: str,
) -> None:
    monkeypatch.setattr(os, "environ", home.environ)
    monkeypatch.chdir(home.work)
    config = home.config("team", *team)
    with pytest.raises(SystemExit) as end:
        main(["--automation", "--config", config, "What is it?"])
    lines = capsys.readouterr().out.splitlines()
    assert end.value.code == code
    line = next(line for line in lines if line.startswith("OUTCOME: "))
    assert (f"; weak: {', '.join(weak)}" in line) if weak else ("weak" not in line)
    warned = " ".join(line.removeprefix("WARNING: ") for line in lines if line.startswith("WARNING: "))
    assert caution in warned

    with pytest.raises(SystemExit) as end:
        main(["--no-display", "--config", config, "What is it?"])
    told = capsys.readouterr().err
    assert end.value.code == code
    first = f"(ada|bo|cleo) · {'weak: ' if weak else ''}{outcome} · "
    assert re.search(first, told)
    assert caution in " ".join(told.split("\n")), told

    monkeypatch.undo()
    row, result, status = anyio.run(replies, home)
    assert (result.get("weak"), result.get("decided_by")) == (weak, decided_by)
    assert caution in result.get("note", "")
    assert re.fullmatch(outcome, result["summary"])
    assert row["summary"] == status["summary"] == result["summary"]
    assert bool(row.get("weak")) == bool(weak)
    assert ("decision is weak: " in status["next_step"] or "No agent voted" in status["next_step"]) == bool(weak)

    told = run_command(home, SERVER_MODULE, "result", row["run_id"]).stdout
    assert re.search(first, told)
    assert caution in " ".join(told.split("\n")), told
    listed = run_command(home, SERVER_MODULE, "runs").stdout
    assert f"({'weak: ' if weak else ''}{result['summary']})" in listed

    page = data_of(Path(lines[0].removeprefix("LOG_DIR: ")) / "report.html")
    assert (page["tone"], caution in " ".join(page["cautions"])) == ("busy" if weak else "good", True)
    assert re.fullmatch(outcome, page["headline"])
