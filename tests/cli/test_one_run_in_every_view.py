"""One run in every view: its agents, their answers and its outcome have the same names and words everywhere."""

import re

from mcp.types import TextContent

from massgen_mcp.server.results.reply import as_json
from tests.cli.reviewers import Reviewer, finding, reviewing
from tests.cli.test_review import BUG, reviewed
from tests.commands import run_command
from tests.harness import COMMAND_MODULE, TempHome, agent, call
from tests.page.test_report import data_of
from tests.terminal import only_child, terminal

REASON = "A second system will never be switched off"
OUTCOME = f"2 of 3 agree; claude disagrees: {REASON}"
MINE, THEIRS = {"vote": "own", "reason": "It can be undone"}, {"vote": "own", "reason": REASON}
RAW_NAME = re.compile(r"\bagent_[a-z]\b|\bagent\d+\.\d+\b")
ANSWER_NAME = re.compile(r"\b(\w+'s \d\w\w) answer\b")
PATH = re.compile(r"\S*/\S*")
WIDE = (200, 50)

Row = tuple[bool, frozenset[str], frozenset[str]]
"""Of a view: whether it has the outcome, the names of answers, and the names that only records and prompts have."""
NONE: frozenset[str] = frozenset()
VOTED_FOR = {"gpt's 2nd", "claude's 1st"}
ALL = VOTED_FOR | {"gpt's 1st", "gemini's 1st"}
LABELS = {"agent1.2", "agent2.1", "agent3.1"}


def make_team(home: TempHome) -> str:
    """Three agents: gpt's second answer wins with gemini's vote, claude stays with its own."""
    return home.config(
        "team",
        agent("gpt", {"answer": "Replace it."}, {"answer": "Replace it piece by piece."}, MINE),
        agent("claude", {"answer": "Mend it."}, *[THEIRS] * 2),
        agent("gemini", {"answer": "Wait for a year."}, *[{"vote": "Replace it", "reason": "It is safer"}] * 2),
    )


async def read_views(home: TempHome) -> dict[str, str]:
    """Ask a question, and return the text of each view of the run."""
    views: dict[str, str] = {}
    with terminal(home, "-c", make_team(home), "Rewrite it?", size=WIDE) as window:
        assert window.leave() == 0
        views["massgen QUESTION in a terminal"] = window.everything
    for words in ("runs", "status", "watch", "watch --plain", "result", "result --view full", "result --view votes"):
        done = run_command(home, COMMAND_MODULE, *words.split())
        assert (done.returncode, done.stderr) == (0, ""), words
        views[f"massgen {words}"] = done.stdout
    with terminal(home, "watch", size=WIDE) as window:
        assert window.leave() == 0
        views["massgen watch in a terminal"] = window.everything
    directory = only_child(home.work / ".massgen" / "massgen_logs")
    views["massgen.log"] = (directory / "massgen.log").read_text()
    page = data_of(directory / "report.html")
    views["page"] = as_json([page["headline"], *(f"{one['say']}: {one['detail']}" for one in page["moments"])])
    async with home.client() as client:
        row = (await client.call_tool("list_runs", {})).structured_content
        assert row is not None
        views["MCP list_runs"] = as_json(row["runs"][0])
        for tool, more in (("get_status", {}), ("get_result", {}), ("get_result", {"view": "full"})):
            reply = await client.call_tool(tool, {"run_id": row["runs"][0]["run_id"], **more})
            assert isinstance(reply.content[0], TextContent)
            views[f"MCP {' '.join([tool, *more.values()])}"] = reply.content[0].text
    return views


def read_row(text: str) -> Row:
    flat = " ".join(text.split())
    answers, raw = ANSWER_NAME.findall(flat), RAW_NAME.findall(PATH.sub("", flat))
    return OUTCOME in flat, frozenset(answers), frozenset(raw)


async def test_names_and_outcome_are_the_same_in_every_view(home: TempHome) -> None:
    """`get_result` keeps the labels that its fields have."""
    rows = {view: read_row(text) for view, text in (await read_views(home)).items()}
    assert rows == {
        "massgen QUESTION in a terminal": (True, ALL, NONE),
        "massgen watch in a terminal": (True, ALL, NONE),
        "massgen watch": (True, ALL, NONE),
        "massgen watch --plain": (True, ALL, NONE),
        "massgen.log": (True, ALL, NONE),
        "page": (True, ALL, NONE),
        "massgen result --view full": (True, ALL, NONE),
        "massgen result --view votes": (True, {"gpt's 2nd"}, NONE),
        "massgen result": (True, {"gpt's 2nd"}, NONE),
        "massgen status": (True, VOTED_FOR, NONE),
        "MCP get_status": (True, VOTED_FOR, NONE),
        "massgen runs": (True, NONE, NONE),
        "MCP list_runs": (True, NONE, NONE),
        "MCP get_result": (True, NONE, LABELS),
        "MCP get_result full": (True, ALL, LABELS),
    }


async def test_a_review_of_a_pull_request_has_the_outcome_that_its_run_has_elsewhere(home: TempHome) -> None:
    """The comment of the GitHub action is the report in Markdown."""
    reviewers = {name: Reviewer(finds=[finding(BUG)]) for name in ("gpt", "claude", "gemini")}
    async with reviewing(home, **reviewers) as (config, _):
        report = await reviewed(home, "--config", config, code=0)
    async with home.client() as client:
        listed = (await call(client, "list_runs"))["runs"]
        [row] = [one for one in listed if one["run_id"] == report["runs"][0]]
        replies = [await call(client, tool, run_id=row["run_id"]) for tool in ("get_status", "get_result")]
    [outcome] = report["outcomes"]
    assert re.fullmatch(r"(gpt|claude|gemini) wrote it from 3 answers", outcome)
    assert f"\nOutcome: {outcome}.\n" in (home.work / "report.md").read_text()
    assert [one["summary"] for one in (row, *replies)] == [outcome] * 3
