"""`effort: auto`: where a check fails on the base, agents are asked one at a time, until an answer passes it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from massgen_mcp.events.agent_work import ModelCallStarted
from massgen_mcp.events.coordination import AnswerSubmitted, FilesChecked, StageOpened, VoteCast, WinnerChosen
from massgen_mcp.events.run import RunCompleted
from massgen_mcp.runs.engine import RunFiles
from massgen_mcp.runs.host.execute import RunContext, execute_run
from tests.checks.project import GOOD, TOLD, commit, environ, evidence, project, team_on, write
from tests.checks.tosses import Tosses
from tests.teams import Act, Ended, run_team

__all__ = ["environ", "project"]

Script = list[dict[str, Any]]
RIGHT = write("notes", "told\n")
WRONG = write("notes", "not yet\n")
VOTE: dict[str, Any] = {"vote": "third"}
AUTO: dict[str, Any] = {"decide": "vote", "effort": "auto", "order": "listed", "checks": [TOLD, GOOD]}


def agent(name: str, *steps: dict[str, Any]) -> Script:
    return [*steps, {"answer": name}, VOTE, VOTE]


async def asked(
    path: Path, project: Path, environ: dict[str, str], *scripts: Script, act: Act | None = None, **more: Any
) -> Ended:
    return await run_team(path, team_on(project, *scripts, **{**AUTO, **more}), environ=environ, act=act)


def stages(ended: Ended) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(stage.kind, stage.because, stage.agents) for stage in ended.of(StageOpened)]


def end(ended: Ended) -> tuple[str, str, int | None, int | None]:
    """The answer, how it won, and how many of how many agents were asked."""
    (chosen,), (completed,) = ended.of(WinnerChosen), ended.of(RunCompleted)
    assert completed.outcome == chosen.outcome
    return completed.answer, chosen.outcome, chosen.asked, chosen.of


FIRST = ("answer", "check_tells", ("agent_a",))
SECOND = ("answer", "none_passes", ("agent_b",))


async def test_the_first_answer_that_passes_what_failed_before_ends_the_run(
    tmp_path: Path, project: Path, environ: dict[str, str]
) -> None:
    rest = [agent(name, RIGHT) for name in ("third", "fourth", "fifth")]
    ended = await asked(tmp_path, project, environ, agent("first", WRONG), agent("second", RIGHT), *rest)
    assert end(ended) == ("second", "checked", 2, 5)
    assert stages(ended) == [FIRST, SECOND]
    assert [call.agent for call in ended.of(ModelCallStarted)] == ["agent_a"] * 2 + ["agent_b"] * 2  # not 2N+1 = 11
    assert ended.of(VoteCast) == []
    (completed,) = ended.of(RunCompleted)
    standing = ended.of(AnswerSubmitted)[-1].changes
    assert completed.changes is not None
    assert standing is not None
    assert completed.changes.tree == standing.tree  # what was checked
    assert completed.failing_checks == ()


async def test_cut_off_at_any_event_it_asks_the_same_agents_and_nobody_twice(
    tmp_path: Path, project: Path, environ: dict[str, str]
) -> None:
    ended = await asked(tmp_path, project, environ, agent("first", WRONG), agent("second", RIGHT), agent("third"))
    journal = ended.directory.path / "events.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    decisive = (StageOpened, AnswerSubmitted, FilesChecked, WinnerChosen)
    cuts = [place for place, record in enumerate(ended.records, 1) if isinstance(record.event, decisive)]
    assert len(cuts) == 10
    for cut in sorted({*cuts, *(cut - 1 for cut in cuts)}):
        journal.write_bytes(b"".join(lines[:cut]))
        again = RunFiles(ended.directory.path)
        state = await execute_run(again, "run-test", RunContext(environ))
        gone_on = Ended(state, again.event_log.read(), again)
        assert end(gone_on) == ("second", "checked", 2, 3), cut
        assert stages(gone_on) == [FIRST, SECOND], cut
        assert [event.label for event in gone_on.of(AnswerSubmitted)] == ["agent1.1", "agent2.1"], cut


async def test_an_agent_that_is_asked_later_sees_nothing_of_the_answers_before(
    tmp_path: Path, project: Path, environ: dict[str, str]
) -> None:
    second = [{"call": "list_directory", "arguments": {"path": "."}}, *agent("second", RIGHT)]
    ended = await asked(tmp_path, project, environ, agent("first", WRONG), second)
    opened = [event for event in ended.events if getattr(event, "type", "") == "round_started"]
    assert [getattr(event, "ballot", None) for event in opened] == [(), ()]


async def test_an_answer_that_breaks_what_passed_before_does_not_end_it(
    tmp_path: Path, project: Path, environ: dict[str, str]
) -> None:
    ended = await asked(
        tmp_path, project, environ, agent("first", RIGHT, write("value", "wrong\n")), agent("second", RIGHT)
    )
    assert end(ended) == ("second", "checked", 2, 2)


@pytest.fixture
def tosses(tmp_path: Path) -> Iterator[Tosses]:
    made = Tosses(tmp_path / "tosses", {"base": "0", "first": "10", "second": "1"})
    yield made
    made.close()


async def test_a_check_that_is_passed_once_and_then_failed_ends_nothing(
    tmp_path: Path, project: Path, environ: dict[str, str], tosses: Tosses
) -> None:
    (project / "who").write_text("base\n")
    commit(project)
    scripts = [agent("first", write("who", "first\n")), agent("second", write("who", "second\n"))]
    ended = await asked(
        tmp_path, project, environ, *scripts, checks=[tosses.check], commands={"readable": [str(tosses.place)]}
    )
    assert end(ended) == ("second", "checked", 2, 2)


async def test_a_check_that_fails_once_on_the_base_and_then_passes_tells_nothing(
    tmp_path: Path, project: Path, environ: dict[str, str]
) -> None:
    flaky = Tosses(tmp_path / "others", {"base": "01", "first": "1", "second": "1", "third": "1"})
    (project / "who").write_text("base\n")
    commit(project)
    scripts = [agent(name, write("who", f"{name}\n")) for name in ("first", "second", "third")]
    ended = await asked(
        tmp_path, project, environ, *scripts, checks=[flaky.check], commands={"readable": [str(flaky.place)]}
    )
    flaky.close()
    assert end(ended) == ("third", "consensus", None, None)
    assert [outcome.flaky for outcome in evidence(ended, "base").outcomes] == [True]


@pytest.mark.parametrize(("first", "asked_agents"), [("01", ["first"]), ("00", ["first", "second"])])
async def test_a_check_that_fails_once_and_then_passes_breaks_nothing(
    tmp_path: Path, project: Path, environ: dict[str, str], first: str, asked_agents: list[str]
) -> None:
    flaky = Tosses(tmp_path / "others", {"base": "1", "first": first, "second": "1"})
    (project / "who").write_text("base\n")
    commit(project)
    scripts = [agent(name, RIGHT, write("who", f"{name}\n")) for name in ("first", "second")]
    ended = await asked(
        tmp_path, project, environ, *scripts, checks=[TOLD, flaky.check], commands={"readable": [str(flaky.place)]}
    )
    flaky.close()
    assert end(ended) == (asked_agents[-1], "checked", len(asked_agents), 2)
    (completed,) = ended.of(RunCompleted)
    assert (completed.failing_checks, ended.snapshot.work_done.checked) == ((), "passed")


async def test_where_nobody_passes_the_team_decides_with_the_answers_there_are(
    tmp_path: Path, project: Path, environ: dict[str, str]
) -> None:
    ended = await asked(tmp_path, project, environ, *(agent(name, WRONG) for name in ("first", "second", "third")))
    assert end(ended) == ("third", "majority", 3, 3)
    everybody = ("agent_a", "agent_b", "agent_c")
    third = ("answer", "none_passes", ("agent_c",))
    assert stages(ended) == [FIRST, SECOND, third, ("vote", "none_passes", everybody)]
    assert len(ended.of(ModelCallStarted)) == 10  # each writes, answers and votes; the winner presents


async def test_in_place_of_an_agent_that_fails_the_next_is_asked(
    tmp_path: Path, project: Path, environ: dict[str, str]
) -> None:
    ended = await asked(tmp_path, project, environ, [{"fail": "auth"}], agent("second", RIGHT), agent("third", RIGHT))
    assert end(ended) == ("second", "checked", 2, 3)
    assert stages(ended) == [FIRST, ("answer", "dropped", ("agent_b",))]


async def test_a_check_that_the_environment_makes_fail_tells_nothing(
    tmp_path: Path, project: Path, environ: dict[str, str]
) -> None:
    scripts = [agent(name, RIGHT) for name in ("first", "second", "third")]
    ended = await asked(tmp_path, project, environ, *scripts, checks=["no-such-program-anywhere --test"])
    assert stages(ended) == []
    assert {event.agent for event in ended.of(AnswerSubmitted)} == {"agent_a", "agent_b", "agent_c"}


async def test_with_high_effort_all_are_asked_at_once_whatever_a_check_tells(
    tmp_path: Path, project: Path, environ: dict[str, str]
) -> None:
    scripts = [agent(name, RIGHT) for name in ("first", "second", "third")]
    ended = await asked(tmp_path, project, environ, *scripts, effort="high")
    assert stages(ended) == []
    assert end(ended) == ("third", "consensus", None, None)


@pytest.mark.parametrize("action", ["finish_now", "cancel"])
async def test_a_run_that_is_ended_asks_nobody_else(
    tmp_path: Path, project: Path, environ: dict[str, str], action: Any
) -> None:
    ended = await asked(
        tmp_path, project, environ, agent("first", WRONG), agent("second", RIGHT), act=Act(AnswerSubmitted, action)
    )
    assert {call.agent for call in ended.of(ModelCallStarted)} == {"agent_a"}
    assert ended.snapshot.end is not None
    assert getattr(ended.snapshot.end, "answer", None) == "first"


async def test_agents_that_say_the_same_need_neither_the_others_nor_a_vote_by_all(
    tmp_path: Path, project: Path, environ: dict[str, str]
) -> None:
    same: dict[str, Any] = {"vote": "it is 42", "same_as": ["42, I say", "forty-two"]}
    texts = ("it is 42", "42, I say", "forty-two", "43", "44")
    scripts: list[Script] = [[{"answer": text}, {**same, "same_as": [*{*texts[:3]} - {"it is 42"}]}] for text in texts]
    ended = await asked(tmp_path, project, environ, *scripts, checks=[])
    assert end(ended)[1:] == ("agreed", 3, 5)
    assert [stage[:2] for stage in stages(ended)] == [("answer", "start"), ("vote", "compare")]
    assert len(ended.of(ModelCallStarted)) == 5  # three answers, one reader, and the winner presents: not 2N+1 = 11


async def test_where_they_differ_as_many_more_are_asked_as_could_end_it_and_then_all_vote(
    tmp_path: Path, project: Path, environ: dict[str, str]
) -> None:
    vote: dict[str, Any] = {"vote": "it is 42"}
    texts = ("it is 42", "43", "44", "45", "46")
    ended = await asked(tmp_path, project, environ, *([{"answer": text}, vote, vote] for text in texts), checks=[])
    assert end(ended)[1:] == ("majority", 4, 5)
    assert [(kind, because, len(agents)) for kind, because, agents in stages(ended)] == [
        ("answer", "start", 3),
        ("vote", "compare", 1),
        ("answer", "disagreement", 1),
        ("vote", "compare", 1),
        ("vote", "disagreement", 4),
    ]
    counts = [(stage.lead, stage.rival, stage.left) for stage in ended.of(StageOpened)]
    assert counts == [(0, 0, 2), (0, 0, 2), (2, 1, 1), (0, 0, 1), (3, 1, 1)]
