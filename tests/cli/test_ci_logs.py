"""What models, tools and changes say in the log of a job is text: no CI executes a line of it."""

import json
import re
import subprocess
from pathlib import Path

import anyio.to_thread
import pytest

from tests.cli.reviewers import Reviewer, finding, reviewing
from tests.commands import run_command
from tests.harness import SERVER_MODULE, TempHome, agent, home

__all__ = ["home"]

MASSGEN = "massgen_mcp.cli.massgen.main"
COMMANDS = (
    "::error::planted",
    "  ::error file=a.py,line=1::planted",
    "::set-output name=a::planted",
    "::add-mask::planted",
    "::stop-commands::planted",
    "##vso[task.setvariable variable=a]planted",
    "text before ##vso[task.complete result=Succeeded;]planted",
    "##[add-mask]planted",
    "##teamcity[buildStatus status='SUCCESS' text='planted']",
    "\rsection_start:1560896352:planted\r\x1b[0Kplanted",
    "\x0b::warning::planted",
    "\u2028::debug::planted",
)
ANSWER = "The answer.\n" + "\n".join(COMMANDS)
EXECUTED = re.compile(r"^\s*::[A-Za-z-]+.*::|##(vso|teamcity)?\[|section_start:\d+:\w+\r\x1b\[0K", re.IGNORECASE)
"""How the runners of GitHub, Azure Pipelines, TeamCity and GitLab find a command in a line."""
SYSTEMS = ({"CI": "true"}, {"GITHUB_ACTIONS": "true"}, {"TF_BUILD": "True"}, {"TEAMCITY_VERSION": "2026.1"})


def executed(output: str) -> list[str]:
    return [line for line in re.split("[\r\n]", output) if EXECUTED.search(line)]


@pytest.fixture
def answered(home: TempHome) -> tuple[TempHome, str]:
    """A run whose answer, and whose vote's reason, are full of commands."""
    steps = ({"answer": ANSWER}, {"vote": "agent1", "reason": ANSWER})
    config = home.config("planting", agent("a", *steps), agent("b", *steps))
    done = run_command(home, MASSGEN, "--background", "--config", config, "q ::error::planted")
    run_id = done.stdout.strip()
    assert run_command(home, SERVER_MODULE, "wait", run_id, seconds=60).returncode in (0, 2)
    return home, run_id


def test_no_verb_prints_a_line_that_a_ci_takes_for_a_command(answered: tuple[TempHome, str]) -> None:
    home, run_id = answered
    verbs = [
        ("result", run_id),
        ("result", run_id, "--json"),
        ("result", run_id, "--view", "votes"),
        ("status", run_id),
        ("status", run_id, "--json"),
        ("watch", run_id),
        ("watch", run_id, "--json"),
        ("watch", run_id, "--plain"),
        ("runs",),
    ]
    planted = 0
    for system in SYSTEMS[:1] * len(verbs) + SYSTEMS[1:]:
        arguments = verbs.pop(0) if verbs else ("result", run_id)
        done = run_command(home.with_variables(**system), SERVER_MODULE, *arguments)
        assert executed(done.stdout + done.stderr) == [], arguments
        if "--json" in arguments:
            assert [json.loads(line) for line in done.stdout.splitlines()]
        planted += done.stdout.count("planted")
    assert planted > 100, "what was said is still there"
    note = "massgen added a space to that line"
    assert note in run_command(home.with_variables(CI="true"), SERVER_MODULE, "result", run_id).stderr
    outside = run_command(home.with_variables(CI=""), SERVER_MODULE, "result", run_id)
    assert "\n::error::planted\n" in outside.stdout, "outside of a CI an answer is printed as it is"
    assert note not in outside.stderr


def test_an_answer_that_is_written_to_a_file_stands_there_as_it_is(
    answered: tuple[TempHome, str], tmp_path: Path
) -> None:
    home, run_id = answered
    with (tmp_path / "answer.md").open("wb") as file:
        command = [home.python, "-m", SERVER_MODULE, "result", run_id]
        subprocess.run(command, env=home.environ | {"CI": "true"}, stdout=file, check=True, timeout=60)
    assert "\n::error::planted\n" in (tmp_path / "answer.md").read_text()


@pytest.mark.parametrize("options", [("--quiet",), ("--plain",), ("--automation",), ("--debug",), ()])
def test_massgen_prints_no_command_of_a_ci(home: TempHome, options: tuple[str, ...]) -> None:
    config = home.config("planting", agent("a", {"answer": ANSWER}))
    done = run_command(home.with_variables(CI="true"), MASSGEN, *options, "--config", config, "q", seconds=60)
    assert "planted" in done.stdout, done.stderr
    assert executed(done.stdout + done.stderr) == []


async def test_a_review_prints_no_command_of_a_ci(home: TempHome, tmp_path: Path) -> None:
    name = "##vso[task.complete]planted.py"
    diff = f"--- a/{name}\n+++ b/{name}\n@@ -1 +1,2 @@\n import re\n+::error::planted\n"
    (tmp_path / "change.diff").write_text(diff)
    ada = Reviewer([finding(ANSWER, 1, name, detail=ANSWER)], verdict=lambda _: ("stands", ANSWER))
    async with reviewing(home, ada=ada, bo=Reviewer()) as (config, _):
        for form in ("markdown", "json", "sarif"):
            arguments = ("review", "--config", config, "--diff", str(tmp_path / "change.diff"), "--format", form)
            done = await anyio.to_thread.run_sync(
                lambda arguments=arguments: run_command(home.with_variables(CI="1"), MASSGEN, *arguments, seconds=60)
            )
            assert "planted" in done.stdout, done.stderr
            assert executed(done.stdout + done.stderr) == []
