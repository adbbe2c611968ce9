"""`report.html`: when it is there, what is in it, and what is left out of it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from massgen_mcp.runs.view.reporting import page_of
from tests.commands import run_command
from tests.harness import COMMAND_MODULE, SERVER_MODULE, TempHome, after, agent, call, events_of, poll_until
from tests.page import samples
from tests.page.samples import QUESTION, disagreeing, reported

MOST_TEMPLATE_BYTES = 150_000


def data_of(report: Path) -> dict[str, Any]:
    """The data in a report."""
    _, _, rest = report.read_text("utf-8").partition('<script type="application/json" id="data">')
    data: dict[str, Any] = json.loads(rest.partition("</script>")[0])
    return data


def verb(home: TempHome, *arguments: str) -> str:
    done = run_command(home, SERVER_MODULE, *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


def test_the_command_line_writes_a_report_and_names_it(home: TempHome) -> None:
    done = run_command(home, COMMAND_MODULE, "--automation", "--config", "@examples/scripted", QUESTION)
    assert (done.returncode, done.stderr) == (0, "")
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("REPORT: ")]
    report = Path(line.removeprefix("REPORT: "))
    data = data_of(report)
    assert (data["question"]["text"], data["state"], data["final"]) == (QUESTION, "completed", True)
    assert report.stat().st_size - len(json.dumps(data)) < MOST_TEMPLATE_BYTES


async def test_a_background_run_has_a_report_and_its_result_names_it(home: TempHome) -> None:
    async with home.client() as client:
        run_id = (await call(client, "start_run", question=QUESTION, config="scripted"))["run_id"]
        await call(client, "wait_run", run_id=run_id)
        named = Path((await call(client, "get_result", run_id=run_id))["paths"]["report"])
    assert named == home.run_directory(run_id) / "report.html"
    poll_until(named.exists)
    data = data_of(named)
    assert [vote["dissent"] for vote in data["votes"] if vote["stands"]].count(True) == 1
    assert len(data["answers"]) == sum(event["type"] == "answer_submitted" for event in events_of(named.parent))
    assert f"\nPage   {named}\n" in verb(home, "result", run_id)


async def test_a_report_that_cannot_be_written_fails_no_run_and_is_told_in_the_log(home: TempHome) -> None:
    gate = home.work / "go-on"
    config = home.config("held", agent("ada", {"answer": "one", **after(gate)}))
    async with home.client() as client:
        run_id = (await call(client, "start_run", question="q", config=config))["run_id"]
        (home.run_directory(run_id) / "report.html").mkdir()
        gate.touch()
        result = await call(client, "wait_run", run_id=run_id)
        assert result["status"] == "completed"
    logs = list((home.path / "runners").rglob("*.log"))
    poll_until(lambda: any("cannot write the report" in log.read_text() for log in logs))


async def test_the_verb_draws_a_run_that_goes_on_as_it_is_now(home: TempHome) -> None:
    config = home.config("stuck", agent("ada", {"answer": "one"}), agent("bo", {"hang": True}))
    async with home.client() as client:
        run_id = (await call(client, "start_run", question="q", config=config))["run_id"]
        directory = home.run_directory(run_id)
        poll_until(lambda: any(event["type"] == "answer_submitted" for event in events_of(directory)))
        data = data_of(Path(verb(home, "report", run_id)))  # before the run's own report takes its place
        await call(client, "control_run", run_id=run_id, action="cancel")
    assert (data["state"], data["answer"], len(data["answers"])) == ("running", None, 1)
    assert [call["ended"] for call in data["calls"] if call["agent"] == "agent_b"] == ["open"]


def test_the_verb_writes_where_it_is_told_opens_it_and_leaves_texts_out(home: TempHome) -> None:
    run_command(home, COMMAND_MODULE, "--automation", "--config", "@examples/scripted", QUESTION)
    run_id = json.loads(verb(home, "runs", "--json"))["runs"][0]["run_id"]
    opened = home.work / "opened"
    browser = home.work / "browser"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {opened}\n')
    browser.chmod(0o700)
    target = home.work / "shown.html"
    named = json.loads(
        verb(home.with_variables(BROWSER=str(browser)), "report", run_id, "--json", "--open", "--output", str(target))
    )
    assert named == {"run_id": run_id, "report": str(target), "bytes": target.stat().st_size}
    poll_until(opened.exists)
    assert opened.read_text() == target.as_uri()
    redacted = Path(verb(home, "report", run_id, "--redact"))
    assert redacted.name == "report-redacted.html"
    data = data_of(redacted)
    assert data["redacted"]
    assert [(answer["text"]["text"], answer["text"]["left_out"] > 0) for answer in data["answers"]] == [("", True)] * 4
    for written in (QUESTION, "piece by piece", "Cover the worst module", "second system will ever"):
        assert written in target.read_text()
        assert written not in redacted.read_text()


def test_a_file_that_cannot_be_written_is_refused_before_anything_is_drawn(home: TempHome) -> None:
    done = run_command(home, SERVER_MODULE, "report", "x", "--output", "no/such/directory/x.html")
    assert (done.returncode, done.stdout) == (1, "")
    assert "ERROR invalid_arguments: --output" in done.stderr


async def test_a_large_run_leaves_texts_out_the_least_important_first_and_says_so(tmp_path: Path) -> None:
    ended = await reported(tmp_path, samples.agent("ada", {"answer": "short"}), question="word " * 500_000)
    data = data_of(ended.directory.report)
    assert data["answer"] == {"text": "short", "left_out": 0}
    assert (len(data["question"]["text"]), data["question"]["left_out"]) == (1_000, 2_499_000)
    assert "This page shortens 1 text; the run's directory has the full text." in data["notes"]
    assert ended.directory.report.stat().st_size < MOST_TEMPLATE_BYTES


async def test_the_sums_by_agent_model_and_phase_are_those_of_the_run(tmp_path: Path) -> None:
    ended = await disagreeing(tmp_path)
    sums = page_of(ended.directory, ended.snapshot, None, {}).sums
    for rows in (sums.by_agent, sums.by_model, sums.by_phase):
        assert sum(row.calls for row in rows) == ended.snapshot.spent.calls
        assert max(row.share for row in rows) == 1
    assert [row.name for row in sums.by_phase] == ["First answers", "Reading, improving, voting", "Final answer"]
    assert sums.by_phase[0].calls == 3


async def test_a_record_that_is_damaged_is_drawn_as_far_as_it_is_whole(tmp_path: Path) -> None:
    ended = await disagreeing(tmp_path)
    journal = ended.directory.path / "events.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([*lines[:20], lines[20].replace(b'"', b"'", 1), *lines[21:]]))
    page = page_of(ended.directory, ended.snapshot, None, {})
    assert 0 < len(page.moments) < len(lines)


@pytest.mark.parametrize(
    "module", ["massgen_mcp.runs.host.runner", "massgen_mcp.runs.host.foreground", "massgen_mcp.server.build"]
)
def test_nothing_starts_with_what_draws_pages(module: str) -> None:
    code = f"import sys, {module}; print([name for name in sys.modules if name.startswith('massgen_mcp.page')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
