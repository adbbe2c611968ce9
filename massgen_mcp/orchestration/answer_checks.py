"""Evidence on the ballot: the checks of a run are run on the base, on the files of every answer, and on the final ones;
tests that the team writes, on the base and on the answers.

A fold over the journal like everything here: what has run once on the same files is in the run's state, and does not
run again, also after a resume.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass

import anyio

from massgen_mcp.checks.judge import FileJudge
from massgen_mcp.coordination.evidence import RUNS
from massgen_mcp.coordination.testing import TestRun, due_runs
from massgen_mcp.events.coordination import CheckFinished, FilesChecked
from massgen_mcp.events.parts import Changes, CheckOutcome
from massgen_mcp.orchestration.live_run import LiveRun

MAX_NAMED = 50
"""So many restored files are named."""


@dataclass(frozen=True, slots=True)
class _Work:
    """The checks of an answer in an attempt; once more those named in `again`, else all."""

    attempt: int
    label: str
    again: tuple[str, ...] = ()


class AnswerChecks:
    """The checks of one run that is being conducted."""

    def __init__(self, judge: FileJudge, live_run: LiveRun) -> None:
        self._judge = judge
        self.commands = judge.commands
        """The checks of the config."""
        self._live_run = live_run
        # Room for other work is left on the machine: a check that is starved runs into its time limit.
        self._room = anyio.Semaphore(max(1, min(4, (os.cpu_count() or 1) // 2)))
        self._locks: dict[tuple[str, str], anyio.Lock] = {}
        self._base_lock = anyio.Lock()
        self._left_locks: dict[str, anyio.Lock] = {}

    async def attend(self) -> None:
        """Check each answer when it stands, for as long as that can matter."""
        begun: dict[_Work, anyio.CancelScope] = {}
        tests_begun, left_begun = set[TestRun](), set[str]()
        async with anyio.create_task_group() as tasks:
            while True:
                attempt, state = self._live_run.state.attempt, self._live_run.coordination
                wanted = [*((label, ()) for label in state.checks.unchecked), *state.checks.to_repeat.items()]
                for label, again in wanted if state.winner is None else ():
                    work = _Work(attempt, label, again)
                    if work not in begun:
                        begun[work] = anyio.CancelScope()
                        tasks.start_soon(self._check_answer, work, begun[work])
                for run in due_runs(state) if state.winner is None else ():
                    if run not in tests_begun:
                        tests_begun.add(run)
                        tasks.start_soon(self._run_test, run)
                for agent in self._left:
                    if agent not in left_begun:
                        left_begun.add(agent)
                        tasks.start_soon(self._check_left, agent)
                for work, scope in begun.items():
                    if work.attempt != attempt or (state.winner is not None and work.label != state.winner.label):
                        scope.cancel()
                await self._live_run.change()

    async def final(self, agent: str, changes: Changes | None) -> FilesChecked:
        """Check the files of the final answer, unless that is done."""
        if done := self._live_run.state.checked_final:
            return done
        return self._live_run.record(await self._judged(changes, FilesChecked(subject="final", agent=agent)))

    async def unfinished(self) -> None:
        """Check what dropped agents left in files, as far as that is not done."""
        async with anyio.create_task_group() as tasks:
            for agent in self._left:
                tasks.start_soon(self._check_left, agent)

    @property
    def _left(self) -> dict[str, Changes]:
        """What agents left that were dropped, by agent."""
        dropped = self._live_run.state.dropped
        return {one.agent: one.changes for one in dropped if one.changes is not None and self.commands}

    async def _check_left(self, agent: str) -> None:
        async with self._left_locks.setdefault(agent, anyio.Lock()):
            if agent not in self._live_run.state.checked_unfinished:
                found = FilesChecked(subject="unfinished", agent=agent)
                self._live_run.record(await self._judged(self._left[agent], found))

    async def _check_answer(self, work: _Work, scope: anyio.CancelScope) -> None:
        state = self._live_run.coordination
        agent = state.author(work.label)
        changes = next(answer.changes for answer in state.seats[agent].answers if answer.label == work.label)
        with scope:
            if work.again:
                found = await self._repeated(work, changes)
            else:
                found = await self._judged(changes, FilesChecked(subject="answer", agent=agent, label=work.label))
            if self._live_run.state.attempt == work.attempt:
                self._live_run.record(found)

    async def _run_test(self, run: TestRun) -> None:
        """Once on these files; the failing test that answers have to pass, as checks are, with protected files of the
        base. One that we cannot run says so, and is not tried again.
        """
        script, expected = run.test.script, run.test.expected
        try:
            async with self._room:
                if self._live_run.coordination.winner is not None:
                    return
                goal = run.test == self._live_run.coordination.checks.goal
                tree = (await self._judge.subject(run.tree)).tree if goal else run.tree
                outcome = await self._judge.check(tree, script, expected)
        except Exception as error:  # noqa: BLE001 - a test that we cannot run is nobody's fault
            how = f"did not run: {self._problem(error)}"
            outcome = CheckOutcome(command=script, expected=expected, result="not_run", how=how, seconds=0)
        if run.before is not None:
            outcome = run.before.with_another_run(outcome)
        if run in due_runs(self._live_run.coordination):
            self._live_run.record(CheckFinished(tree=run.tree, outcome=outcome))

    async def _repeated(self, work: _Work, changes: Changes | None) -> FilesChecked:
        """What is known of the answer, with these checks run once more on the same files."""
        tree = self._judge.base if changes is None else changes.tree
        second: dict[str, CheckOutcome] = {}
        for first in self._live_run.coordination.evidence[work.label].outcomes:
            if first.command in work.again:
                try:
                    subject = await self._judge.subject(tree)
                    ran = await self._outcome(subject.tree, first.command, again=first)
                    second[first.command] = ran.add_warnings(*first.warnings)
                except Exception as error:  # noqa: BLE001 - what ran once is evidence, also if it cannot run again
                    self._live_run.fault(error)
                    second[first.command] = first.model_copy(update={"runs": RUNS})
        found = self._live_run.coordination.evidence.get(work.label, FilesChecked(subject="answer", label=work.label))
        outcomes = tuple(second.get(outcome.command, outcome) for outcome in found.outcomes)
        return found.model_copy(update={"outcomes": outcomes})

    async def _judged(self, changes: Changes | None, found: FilesChecked) -> FilesChecked:
        """`found` with what the checks say of the changed files; nothing, where nothing is changed, unless they are to
        be passed.
        """
        unchanged = changes is None or changes.tree == self._judge.base
        if unchanged and self._live_run.coordination.rules.checks != "goal":
            return found
        try:
            base = await self.base()
            subject = await self._judge.subject(self._judge.base if changes is None else changes.tree)
            hindered = {one.command for one in base.outcomes if one.obstacle is not None}
            own = await self._outcomes(subject.own_tree) if subject.restored else ()
            before = {one.command: one for one in base.outcomes}
            return found.model_copy(
                update={
                    "outcomes": _of_answer(await self._outcomes(subject.tree), hindered, before),
                    "fails_before": tuple(one.command for one in base.outcomes if one.result != "passed"),
                    "restored": subject.restored[:MAX_NAMED],
                    "own": _of_answer(own, hindered, before),
                    "problem": base.problem,
                }
            )
        except Exception as error:  # noqa: BLE001 - a check that we cannot run is nobody's fault
            return found.model_copy(update={"problem": self._problem(error)})

    async def base(self) -> FilesChecked:
        """What the checks say of the untouched base; they run once."""
        async with self._base_lock:
            if done := self._live_run.state.checked_base:
                return done
            found = FilesChecked(subject="base")
            try:
                outcomes, unfollowed = await self._outcomes(self._judge.base), await self._judge.find_unfollowed()
                found = found.model_copy(update={"outcomes": outcomes, "unfollowed": unfollowed[:MAX_NAMED]})
            except Exception as error:  # noqa: BLE001 - a check that we cannot run is nobody's fault
                found = found.model_copy(update={"problem": self._problem(error)})
            return self._live_run.record(found)

    async def _outcomes(self, tree: str) -> tuple[CheckOutcome, ...]:
        return tuple([await self._outcome(tree, command) for command in self.commands])

    async def _outcome(self, tree: str, command: str, again: CheckOutcome | None = None) -> CheckOutcome:
        """From the journal, if the same files were checked so before. `again`: what a first run came to, where a second
        one is wanted.
        """
        async with self._locks.setdefault((tree, command), anyio.Lock()):
            known = self._live_run.state.check_outcomes.get((tree, command))
            if known is not None and (again is None or known.runs >= RUNS):
                return known
            async with self._room:
                untouched = tree == self._judge.base and again is None
                outcome = await (self._judge.check_base(command) if untouched else self._judge.check(tree, command))
            if again is not None:
                outcome = again.with_another_run(outcome)
            if outcome.result == "not_run":
                return outcome
            return self._live_run.record(CheckFinished(tree=tree, outcome=outcome)).outcome

    def _problem(self, error: Exception) -> str:
        return str(self._live_run.fault(error))


def _of_answer(
    outcomes: tuple[CheckOutcome, ...], hindered: set[str], before: Mapping[str, CheckOutcome]
) -> tuple[CheckOutcome, ...]:
    """What the environment gave the base it gives an answer, too: what is missing for an answer alone, it asks for.
    `before`: what the checks say of the base, by command.
    """
    plain = {"obstacle": None, "cure": ""}
    found = (one if one.command in hindered else one.model_copy(update=plain) for one in outcomes)
    return tuple(one.warn_if_fewer(before.get(one.command)) for one in found)
