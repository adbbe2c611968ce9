"""No result claims more than was done: what each run leaves undone stands in `WorkDone`, and all say the same of it."""

import ast
import json
from pathlib import Path
from typing import Any, get_args

import pytest

from massgen_mcp.cli.exits import EXIT_EXECUTION, EXIT_OK, exit_of_foreground
from massgen_mcp.config.loader import config_from_data
from massgen_mcp.events.agent_work import BallotChanged, RoundStarted
from massgen_mcp.events.coordination import StageOpened
from massgen_mcp.request.question import EarlierTurn
from massgen_mcp.run_state.state import folded
from massgen_mcp.run_state.work_done import Failure, Weakness
from massgen_mcp.views.ending import outcome_line
from massgen_mcp.views.firmness import FAILURES, shortly, why_weak
from massgen_mcp.views.styled import text_of
from tests.checks.project import GOOD, environ, play, project, write
from tests.checks.test_write_check import TEST, played
from tests.checks.writers import doubling, settle
from tests.orchestration.test_window import one_agent, reading, voting
from tests.raw_double import answering
from tests.small_window import SmallWindow
from tests.teams import Ended, run_team, team

__all__ = ["doubling", "environ", "project"]

PACKAGE = Path(__file__).parent.parent / "massgen_mcp"


def status_of(ended: Ended) -> dict[str, Any]:
    return json.loads((ended.directory.path / "status.json").read_text())


def sentences(ended: Ended) -> str:
    return " ".join(why_weak(ended.snapshot))


# -- shortened texts ----------


async def test_a_question_that_was_read_in_part_makes_a_weak_result_that_names_the_share(tmp_path: Path) -> None:
    question = f"{'a' * 490_000} What is six times seven? {'b' * 490_000} The end."
    model = SmallWindow(12_000, reading(2))
    async with answering(model.respond) as double:
        ended = await run_team(tmp_path, one_agent(double.url), question=question, environ={})
    first, second = ended.of(RoundStarted)
    assert first.shortened == ()
    (share,) = second.shortened
    assert (share.text, share.of) == ("question", len(question))
    assert 0 < share.shown < len(question) // 20
    assert ended.snapshot.work_done.weak == ("shown_in_part",)
    assert "read 1% of the question" in sentences(ended)
    assert "voted" not in sentences(ended)
    results = status_of(ended)["results"]
    assert (results["weak"], results["failure"]) == (["shown_in_part"], None)
    assert "1% of the question" in " ".join(results["cautions"])
    assert exit_of_foreground(ended.snapshot) == EXIT_OK


async def test_votes_that_were_cast_on_parts_are_named_with_their_voters(tmp_path: Path) -> None:
    model = SmallWindow(32_000, voting(lambda number: f"{number:04} " * 40_000))
    async with answering(model.respond) as double:
        agents = [{"backend": {"type": "chatcompletion", "base_url": double.url, "model": "m"}}] * 3
        ended = await run_team(tmp_path, config_from_data({"agents": agents}, "test", environ={}), environ={})
    readers = ended.snapshot.work_done.partly_read
    assert [(one.agent, one.voted) for one in readers] == [("agent_a", True), ("agent_b", True), ("agent_c", True)]
    assert {share.text for one in readers for share in one.texts} == {"answers"}
    assert "these agents voted without seeing everything: agent1, agent2, agent3." in sentences(ended)


async def test_a_voter_that_read_all_is_not_named_beside_one_that_did_not(tmp_path: Path) -> None:
    model = SmallWindow(12_000, voting())
    whole = [{"answer": "x" * 60_000}, {"vote": "own"}, {"answer": "42"}]
    async with answering(model.respond) as double:
        small = {"backend": {"type": "chatcompletion", "base_url": double.url, "model": "m"}}
        agents = [small, {"backend": {"type": "scripted", "script": whole}}]
        ended = await run_team(tmp_path, config_from_data({"agents": agents}, "test", environ={}), environ={})
    assert [one.agent for one in ended.snapshot.work_done.partly_read] == ["agent_a"]
    assert "agent2" not in sentences(ended).partition("these agents voted without seeing everything")[2]


async def test_earlier_turns_that_were_read_in_part_are_named(tmp_path: Path) -> None:
    history = tuple(EarlierTurn(question=f"What is {number}?", answer="So. " * 2_000) for number in range(20))
    model = SmallWindow(8_000, reading(1))
    async with answering(model.respond) as double:
        ended = await run_team(tmp_path, one_agent(double.url), history=history, environ={})
    assert "of the earlier turns" in sentences(ended)


async def test_a_result_is_the_same_for_a_process_that_only_reads_the_journal(tmp_path: Path) -> None:
    question = f"{'a' * 200_000} What is six times seven?"
    model = SmallWindow(12_000, reading(2))
    async with answering(model.respond) as double:
        ended = await run_team(tmp_path, one_agent(double.url), question=question, environ={})
    assert folded(ended.records).work_done == ended.snapshot.work_done


async def test_an_answer_of_half_a_million_characters_is_kept_whole_and_shown_in_part(tmp_path: Path) -> None:
    long = "word " * 100_000
    model = SmallWindow(10_000_000, voting(lambda _: long))
    async with answering(model.respond) as double:
        large = {"backend": {"type": "chatcompletion", "base_url": double.url, "model": "m"}}
        agents = [large, {"backend": {"type": "scripted", "script": [{"answer": "short"}, {"vote": "word word"}]}}]
        ended = await run_team(tmp_path, config_from_data({"agents": agents}, "test", environ={}), environ={})
    assert ended.snapshot.agents["agent_a"].answers[0].content == long
    assert not ended.snapshot.dropped
    shown = [
        one for event in ended.events if isinstance(event, RoundStarted | BallotChanged) for one in event.shortened
    ]
    assert {one.text for one in shown} == {"answers"}
    assert "shown_in_part" in ended.snapshot.work_done.weak


async def test_a_run_that_nothing_was_kept_from_says_nothing_of_it(tmp_path: Path) -> None:
    scripts = [[{"answer": "42"}, {"vote": "own"}], [{"answer": "42."}, {"vote": "42"}]]
    ended = await run_team(tmp_path, team(*scripts))
    assert ended.snapshot.work_done.partly_read == ()
    assert not any(isinstance(event, RoundStarted) and event.shortened for event in ended.events)


# -- checks ----------

BROKEN = "test -e there"
"""It fails on the base, and for every answer here."""


@pytest.mark.parametrize("policy", ["required", "goal"])
@pytest.mark.parametrize(
    ("checks", "why"),
    [
        ([GOOD, BROKEN], f"the final files fail {BROKEN}"),
        ([GOOD, "no-such-program --all"], "no-such-program --all could not run"),
        (["no-such-program --all"], "nothing was checked"),
    ],
    ids=["fails for all and on the base", "could not run", "nothing ran"],
)
async def test_files_that_required_checks_do_not_prove_are_no_success(
    tmp_path: Path, project: Path, environ: dict[str, str], policy: str, checks: list[str], why: str
) -> None:
    script = [write("notes", "told\n"), {"answer": "Done."}]
    ended = await play(tmp_path, project, environ, script, checks=checks, checks_policy=policy)
    work = ended.snapshot.work_done
    assert (work.failure, work.unproven) == ("unproven", why)
    assert exit_of_foreground(ended.snapshot) == EXIT_EXECUTION
    assert folded(ended.records).work_done.unproven == why, "a reader of the journal knows it, too"
    assert status_of(ended)["results"]["failure"] == "unproven"


@pytest.mark.parametrize(
    ("policy", "checks", "writes"),
    [("required", [GOOD], "told\n"), ("goal", [GOOD], "told\n"), ("informative", [GOOD, BROKEN], "told\n")],
)
async def test_files_that_pass_what_is_required_are_a_success(
    tmp_path: Path, project: Path, environ: dict[str, str], policy: str, checks: list[str], writes: str
) -> None:
    script = [write("notes", writes), {"answer": "Done."}]
    ended = await play(tmp_path, project, environ, script, checks=checks, checks_policy=policy)
    work = ended.snapshot.work_done
    assert (work.succeeded, work.unproven) == (True, "")


async def test_checks_run_in_a_directory_that_is_empty(tmp_path: Path, environ: dict[str, str]) -> None:
    empty = tmp_path / "project"
    empty.mkdir()
    script = [write("made", "here\n"), {"answer": "Made."}]
    ended = await play(tmp_path, empty, environ, script, checks=["true", "test -e made"], checks_policy="required")
    base = ended.snapshot.checked_base
    assert base is not None
    assert [one.result for one in base.outcomes] == ["passed", "failed"]
    assert ended.snapshot.work_done.succeeded


# -- who took part ----------


@pytest.mark.parametrize("fault", ["auth", "quota_exhausted", "provider_error"])
async def test_agents_that_fell_out_before_they_were_asked_are_no_team_of_one(
    tmp_path: Path, doubling: Path, environ: dict[str, str], fault: str
) -> None:
    dead = [{"fail": fault}] * 9
    ended = await played(tmp_path, doubling, environ, dead, [TEST], dead)
    assert [stage.kind for stage in ended.of(StageOpened)][:2] == ["check", "confirm"]
    assert ended.snapshot.outcome == "single_survivor"
    assert ended.snapshot.work_done.weak[0] == "nobody_left"
    assert exit_of_foreground(ended.snapshot) == EXIT_EXECUTION


async def test_one_that_fell_out_leaves_two_who_vote(tmp_path: Path, doubling: Path, environ: dict[str, str]) -> None:
    ended = await played(tmp_path, doubling, environ, [{"fail": "auth"}] * 9, [TEST], [settle("6")])
    assert ended.snapshot.outcome not in ("single", "single_survivor")


async def test_a_team_of_one_is_single_and_firm(tmp_path: Path) -> None:
    ended = await run_team(tmp_path, team([{"answer": "42"}]))
    assert (ended.snapshot.outcome, ended.snapshot.work_done.weak) == ("single", ())


# -- status.json in every ending ----------


async def test_status_json_has_outcome_winner_and_preview_after_a_timeout(tmp_path: Path) -> None:
    scripts = [[{"answer": "42"}, {"hang": True}], [{"answer": "43"}, {"hang": True}]]
    ended = await run_team(tmp_path, team(*scripts, timeouts={"orchestrator_timeout_seconds": 1}))
    assert ended.snapshot.state == "timed_out"
    results = status_of(ended)["results"]
    assert (results["outcome"], results["winner"]) == ("best_so_far", "agent_a")
    assert results["final_answer_preview"] == "42"
    assert results["failure"] == "not_completed"


# -- one owner ----------

OWNER = "run_state/work_done.py"
RAW = {"failing_checks", "checked_final", "acted_on", "voted_on", "opened_with"}
"""Facts that a claim is made of."""
MAY_READ = {
    OWNER,
    "run_state/state.py",
    "run_state/agents.py",
    "run_state/facts.py",
    "events/run.py",
    "orchestration/conduct.py",  # it writes the event
    "orchestration/answer_checks.py",  # it does what is not done yet
    "page/left_out.py",  # it takes commands out of the event
    "views/sentences.py",  # it tells of the event
    "views/checks.py",  # it shows how each check came out
    "views/firmness.py",  # it puts `WorkDone` into words
    "server/results/record.py",  # the same, for programs
    "runs/patches/earlier_changes.py",  # it repeats single checks of an earlier run
    "evaluation/comparing.py",  # it compares single checks with those of an earlier run
    "evaluation/tasks.py",
}


def attributes_of(file: Path) -> set[str]:
    return {node.attr for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Attribute)}


def test_no_interface_decides_for_itself_what_was_done() -> None:
    """It would have to read the facts that `WorkDone` is made of, or fold the checks' rules itself."""
    readers = {
        file.relative_to(PACKAGE).as_posix(): attributes_of(file) & RAW
        for file in PACKAGE.rglob("*.py")
        if attributes_of(file) & RAW
    }
    assert {file: names for file, names in readers.items() if file not in MAY_READ} == {}
    judges = {
        file.relative_to(PACKAGE).as_posix()
        for file in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").endswith("coordination.evidence")
        for name in node.names
        if name.name in ("verdict", "void")
    }
    assert judges == {OWNER}


@pytest.mark.parametrize(
    "interface",
    [
        *("cli/exits.py", "cli/massgen/reporting.py", "cli/massgen/applying.py", "cli/massgen/reviewing/review.py"),
        *("api/performing.py", "runs/batch.py", "runs/engine/leases.py", "server/results/result.py", "editors/turn.py"),
        *("server/results/words.py", "page/head.py", "page/parts.py", "views/status_json.py", "views/ending.py"),
        *("views/coordination_record.py", "statistics/digest.py", "views/votes_text.py", "views/checks.py"),
    ],
)
def test_every_interface_reads_the_one_type(interface: str) -> None:
    assert "work_done" in attributes_of(PACKAGE / interface)


AGREED = [[{"answer": f"{name} says so."}, {"vote": "ada says"}] for name in ("ada", "bo", "cleo")]
TOLD = [write("notes", "told\n"), {"answer": "Done."}, {"vote": "own"}]


def claimed(ended: Ended) -> str:
    """What is said of a run beside its answer."""
    return f"{text_of(outcome_line(ended.snapshot))} {' '.join(why_weak(ended.snapshot))}"


async def test_ordinary_runs_are_firm(tmp_path: Path, project: Path, environ: dict[str, str]) -> None:
    earlier = (EarlierTurn(question="What is 6?", answer="Six."),)
    required: dict[str, Any] = {"checks_policy": "required"}
    reused = {"final_answer_strategy": "winner_reuse"}
    goal: dict[str, Any] = {"checks_policy": "goal", "checks": [GOOD, "grep -q told notes"]}
    ended = {
        "one agent": await run_team(tmp_path / "1", team([{"answer": "42"}])),
        "two agents": await run_team(tmp_path / "2", team(*AGREED[:2])),
        "three agents": await run_team(tmp_path / "3", team(*AGREED)),
        "a turn of a session": await run_team(tmp_path / "4", team(*AGREED), history=earlier),
        "code without checks": await play(tmp_path / "5", project, environ, TOLD, checks=[]),
        "code with checks": await play(tmp_path / "6", project, environ, TOLD),
        "required checks": await play(tmp_path / "7", project, environ, TOLD, **required),
        "a goal": await play(tmp_path / "8", project, environ, TOLD, **goal),
        "the same files": await play(tmp_path / "9", project, environ, TOLD, TOLD, TOLD, decide="checks"),
        "a reused answer": await run_team(tmp_path / "10", team(*AGREED, orchestrator=reused)),
    }
    assert {name: one.snapshot.work_done.weak for name, one in ended.items() if one.snapshot.work_done.weak} == {}
    assert all(one.snapshot.work_done.succeeded for one in ended.values())
    assert not any("weak" in claimed(one) for one in ended.values())


async def test_a_run_whose_check_was_written_by_an_agent_is_firm(
    tmp_path: Path, doubling: Path, environ: dict[str, str]
) -> None:
    ended = await played(tmp_path, doubling, environ, [settle("6")], [TEST], [settle("6")])
    assert (ended.snapshot.work_done.weak, ended.snapshot.work_done.succeeded) == ((), True)


def test_every_way_to_fall_short_has_words() -> None:
    assert all(shortly([weakness]) != weakness for weakness in get_args(Weakness))
    assert {*FAILURES} == {*get_args(Failure)} - {"not_completed"}
