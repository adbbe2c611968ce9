"""A run that is cut off while it decides goes on as it would have, asks nobody again, and runs no script again."""

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from massgen_mcp.config.loader import config_from_data
from massgen_mcp.events.agent_work import ModelReplied, RoundStarted
from massgen_mcp.events.coordination import (
    AnswerSubmitted,
    CheckFinished,
    StageOpened,
    WinnerChosen,
    WrittenTestsSubmitted,
)
from massgen_mcp.events.parts import Event
from massgen_mcp.events.run import RunCancelled, RunCompleted
from massgen_mcp.runs.engine import RunFiles
from massgen_mcp.runs.host.execute import RunContext, execute_run
from tests.checks.project import environ
from tests.checks.test_write_check import TEST as FAILING
from tests.checks.test_write_check import played as failing_first
from tests.checks.writers import ADDS_TWO, DOUBLE, SQUARES, Step, agent, decided, doubling, settle, test_of, tests
from tests.teams import Act, Ended, run_team

__all__ = ["doubling", "environ"]

pytestmark = pytest.mark.long
CLAIMS: Step = {
    "call": "submit_synthesis",
    "arguments": {
        "content": "All in all.",
        "claims": [
            {
                "claim": "as it is it ends with 1",
                "answers": ["agent1"],
                "script": "sh double.sh || echo 1",
                "prints": "1",
            },
            {"claim": "it prints 6", "answers": ["agent2"], "script": "sh double.sh 3", "prints": "6"},
        ],
    },
}


async def played(name: str, path: Path, project: Path, environ: dict[str, str], act: Act | None = None) -> Ended:
    """A run that comes through the stages of its name."""
    match name:
        case "judged":
            scripts = (agent(ADDS_TWO, "adds"), agent(DOUBLE, "doubles"), agent(SQUARES, "squares"))
            names = ("one", "two", "three", "four")
            backends = [
                {"type": "scripted", "script": script, "model": model}
                for script, model in zip((*scripts, list[Step]()), names, strict=True)
            ]
            settings = {"context_paths": [{"path": str(project)}], "decide": "judge", "judge": "agent4"}
            data = {"agents": [{"backend": one} for one in backends], "orchestrator": settings}
            return await run_team(path, config_from_data(data, "test", environ={}), environ=environ, act=act)
        case "checked":
            six = [settle("6")]
            return await failing_first(path, project, environ, six, [FAILING], six, act=act)
        case "tested":
            scripts = (
                agent(ADDS_TWO, "adds", tests(test_of(3, 6))),
                agent(SQUARES, "squares", tests()),
                agent(DOUBLE, "doubles"),
            )
            return await decided(path, project, environ, *scripts, act=act)
        case _:
            scripts = (agent(ADDS_TWO, "adds"), agent(DOUBLE, "doubles", CLAIMS))
            settings = {"context_paths": [{"path": str(project)}], "decide": "synthesise", "by": "agent2"}
            agents = [{"backend": {"type": "scripted", "script": script}} for script in scripts]
            config = config_from_data({"agents": agents, "orchestrator": settings}, "test", environ={})
            return await run_team(path, config, environ=environ, act=act)


def cuts(events: list[Event]) -> Iterator[int]:
    """How many events are left: up to the beginning and the end of each stage, and up to what a stage asks for and runs
    the first time in the run, and runs the second time.
    """
    staged, kinds = False, Counter[str]()
    for place, event in enumerate(events, start=1):
        if isinstance(event, StageOpened | WinnerChosen):
            staged = isinstance(event, StageOpened)
            yield place
        elif staged:
            kinds[type(event).__name__] += 1
            asked = isinstance(event, WrittenTestsSubmitted | AnswerSubmitted | RoundStarted | ModelReplied)
            times = 1 if asked else 2 * isinstance(event, CheckFinished)
            if kinds[type(event).__name__] <= times:
                yield place


@pytest.mark.parametrize("name", ["tested", "synthesised", "judged", "checked"])
async def test_wherever_it_is_cut_off_it_comes_to_the_same_end(
    tmp_path: Path, doubling: Path, environ: dict[str, str], name: str
) -> None:
    whole = await played(name, tmp_path, doubling, environ)
    (end,), (won,) = whole.of(RunCompleted), whole.of(WinnerChosen)
    assert name == won.outcome
    kept, run = tmp_path / "kept", whole.directory.path
    shutil.copytree(run, kept, symlinks=True)
    lines = (run / "events.jsonl").read_bytes().splitlines(keepends=True)
    ran: list[CheckFinished] = whole.of(CheckFinished)
    for cut in dict.fromkeys(cuts(whole.events)):
        shutil.rmtree(run)
        shutil.copytree(kept, run, symlinks=True)
        (run / "events.jsonl").write_bytes(b"".join(lines[:cut]))
        again = RunFiles(run)
        snapshot = await execute_run(again, "run-test", RunContext(environ))
        resumed = Ended(snapshot, again.event_log.read(), again)
        assert [one.model_dump(exclude={"seconds"}) for one in resumed.of(RunCompleted)] == [
            end.model_dump(exclude={"seconds"})
        ], cut
        assert resumed.of(WinnerChosen) == [won], cut
        assert resumed.of(StageOpened) == whole.of(StageOpened), cut
        replied = Counter(event.call_id for event in resumed.of(ModelReplied))
        assert len(replied) == len(whole.of(ModelReplied)), cut
        assert set(replied.values()) == {1}, cut
        assert key_of(resumed.of(CheckFinished)) == key_of(ran), cut


def key_of(ran: list[CheckFinished]) -> Counter[Any]:
    """Which script ran how often on which files, with what result."""
    return Counter((one.tree, one.outcome.command, one.outcome.runs, one.outcome.result) for one in ran)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("tested", "test"),
        ("synthesised", "synthesise"),
        ("judged", "compare"),
        ("checked", "check"),
        ("checked", "confirm"),
    ],
)
async def test_cancelled_in_a_stage_it_ends_with_the_best_answer_there_was(
    tmp_path: Path, doubling: Path, environ: dict[str, str], name: str, kind: str
) -> None:
    act = Act(RoundStarted, "cancel", lambda event: event.kind == kind)
    ended = await played(name, tmp_path, doubling, environ, act=act)
    assert [type(one) for one in ended.events if isinstance(one, RunCompleted | RunCancelled)] == [RunCancelled]
    best = {"checked": [None]}.get(name, ["adds", "squares", "doubles"])
    assert ended.snapshot.best_answer in best
