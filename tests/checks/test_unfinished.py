"""What a dropped agent left in files is kept with its checks, and is the best there is where nobody answered."""

from pathlib import Path

import pytest

from massgen_mcp.events.agent_work import ToolFinished
from massgen_mcp.events.coordination import AgentDropped, FilesChecked
from massgen_mcp.events.run import RunCancelled, RunCompleted, RunFailed
from massgen_mcp.views.checks import check_notes
from massgen_mcp.views.votes_text import nobody_voted
from tests.checks.project import GOOD, TOLD, environ, play, project, results, team_on, write
from tests.teams import Act, Ended, run_team

__all__ = ["environ", "project"]

BROKEN, TELLS, HANGS = write("value", "bad\n"), write("notes", "told\n"), {"hang": True}


def left(ended: Ended) -> dict[str | None, list[str]]:
    """How the checks of unfinished files came out, by agent."""
    return {one.agent: results(one.outcomes) for one in ended.of(FilesChecked) if one.subject == "unfinished"}


def of_unfinished(event: FilesChecked) -> bool:
    return event.subject == "unfinished"


@pytest.mark.parametrize("broken_first", [True, False])
async def test_where_nobody_answers_the_unfinished_files_that_checks_speak_for_are_the_result(
    tmp_path: Path, project: Path, environ: dict[str, str], *, broken_first: bool
) -> None:
    scripts = [[BROKEN] * 5, [TELLS] * 5]
    ended = await play(
        tmp_path, project, environ, *(scripts if broken_first else scripts[::-1]),
        checks=[GOOD, TOLD], max_steps_per_round=2,
    )  # fmt: skip
    run = ended.snapshot
    (end,) = ended.of(RunFailed)
    breaks, tells = ("agent_a", "agent_b") if broken_first else ("agent_b", "agent_a")
    assert left(ended) == {breaks: ["failed", "failed"], tells: ["passed", "passed"]}
    author = run.agents[tells].info.id
    assert (end.winner, run.outcome, run.author) == (tells, "unfinished", author)
    told = f"Unfinished: {author} gave no answer (no_action). Its changes: 1 file changed, +1 -1 lines."
    assert end.answer == told
    assert run.best_changes is not None
    assert [file.path for file in run.best_changes.files] == ["project/notes"]
    assert nobody_voted(run) == f"No agent answered. These are the unfinished files of {author}."
    assert check_notes(run) == [f"The unfinished files of {author} pass the checks"]


async def test_where_an_answer_stands_unfinished_files_are_checked_and_cannot_win(
    tmp_path: Path, project: Path, environ: dict[str, str]
) -> None:
    config = team_on(
        project, [TELLS] * 5, [BROKEN, {"answer": "done"}], [TELLS, HANGS],
        checks=[GOOD, TOLD], checks_policy="required", max_steps_per_round=2,
    )  # fmt: skip
    ended = await run_team(tmp_path, config, act=Act(FilesChecked, "finish_now", of_unfinished), environ=environ)
    (end,) = ended.of(RunCompleted)
    assert (end.winner, end.answer, end.outcome) == ("agent_b", "done", "best_so_far")
    assert left(ended)["agent_a"] == ["passed", "passed"]
    assert "agent_a" not in [ended.snapshot.coordination.author(one) for one in ended.snapshot.tally]
    dropped = {one.agent: (one.reason, str(one.changes)) for one in ended.of(AgentDropped)}
    assert dropped["agent_a"] == ("no_action", "1 file changed, +1 -1 lines")
    assert dropped["agent_c"] == ("cut_off", "1 file changed, +1 -1 lines"), "it was at work when the run was decided"


async def test_a_run_that_is_cancelled_at_work_keeps_what_was_changed(
    tmp_path: Path, project: Path, environ: dict[str, str]
) -> None:
    config = team_on(project, [TELLS, HANGS], [HANGS])
    ended = await run_team(tmp_path, config, act=Act(ToolFinished, "cancel"), environ=environ)
    (end,) = ended.of(RunCancelled)
    assert (end.winner, ended.snapshot.outcome) == ("agent_a", "unfinished")
    assert [one.agent for one in ended.of(AgentDropped)] == ["agent_a"], "the other one changed nothing"
    assert ended.snapshot.best_changes is not None
