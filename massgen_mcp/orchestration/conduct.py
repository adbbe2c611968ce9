"""One run from the question to its final answer. Read this to know what happens in a run.

Composes the phases; must not know providers, stores, servers or views.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import anyio

from massgen_mcp.backends.base import Replayable
from massgen_mcp.coordination.evidence import failing
from massgen_mcp.coordination.guidance import Rest, Wait, Work
from massgen_mcp.countdown import Countdown
from massgen_mcp.errors import BackendError, DropReason, FailureReason
from massgen_mcp.events.coordination import (
    AnswerEvaluated,
    AnswerPresented,
    FirstAnswersClosed,
    PresentationFailed,
    WinnerChosen,
)
from massgen_mcp.events.parts import Changes
from massgen_mcp.events.record import LogRecord
from massgen_mcp.events.run import (
    AttemptStarted,
    BudgetRaised,
    CallerSaid,
    FinishRequested,
    InputGiven,
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunResumed,
    RunTimedOut,
)
from massgen_mcp.orchestration.agent_round import Round
from massgen_mcp.orchestration.answer_checks import AnswerChecks
from massgen_mcp.orchestration.attempt import Attempt, Briefing
from massgen_mcp.orchestration.live_run import Journal, LiveRun
from massgen_mcp.orchestration.presentation import evaluate, present, verdict
from massgen_mcp.orchestration.replay import past_work
from massgen_mcp.orchestration.team import Member, RunSpec
from massgen_mcp.run_state.facts import Final
from massgen_mcp.run_state.state import RunState
from massgen_mcp.tools.base import decoded


class Conductor:
    """Conducts one run. `conduct` it once, after `resume` where another process has begun; the controls may be called
    from the same event loop.
    """

    def __init__(
        self, run_spec: RunSpec, journal: Journal, past: Sequence[LogRecord] = (), state: RunState | None = None
    ) -> None:
        """`past`: what is in the journal already, and `state`, if it is known, what `run_spec` begins with after that.
        Whoever listens to the journal from now on hears of an event when `state` has taken it in.
        """
        self._run_spec = run_spec
        self.state = run_spec.begin(past) if state is None else state
        self._past = past
        asks_first = run_spec.budget is not None and run_spec.budget.at_cap == "ask"
        self._live_run = LiveRun(self.state, journal, asks_first=asks_first, report=run_spec.report)
        if run_spec.caller_questions is not None:
            run_spec.caller_questions.open(self._live_run)
        if run_spec.nested_runs is not None:
            workspaces = [member.workspace for member in run_spec.team if member.workspace is not None]
            run_spec.nested_runs.open(self._live_run, workspaces)
        judge = run_spec.judge
        self._checks = None if judge is None else AnswerChecks(judge, self._live_run)
        self._run = Countdown(run_spec.limits.run_seconds - self.state.resume_point.seconds)
        self._cancel_requested = False
        self._briefing: Briefing | None = None

    async def resume(self) -> None:
        """Continue where the journal leads: no model call and no tool whose result is in it will be made again."""
        faults = {member.name: await self._fast_forward(member) for member in self._run_spec.team}
        self._past = ()
        if self._run_spec.nested_runs is not None:
            await self._run_spec.nested_runs.show_files()
        self._live_run.record(RunResumed(in_flight=tuple(self.state.resume_point.in_flight.values())))
        for name, fault in faults.items():
            if fault is not None and name in self._live_run.coordination.live:
                self._drop(name, fault)
        self._live_run.decide()

    async def _fast_forward(self, member: Member) -> BackendError | None:
        """Bring what an agent keeps in memory to where it stood; the fault, if that cannot be done."""
        tries, used = past_work(member.name, (record.event for record in self._past))
        try:
            if isinstance(member.backend, Replayable):
                member.backend.fast_forward(tries)
            for call in used:
                for tool in member.tools:
                    if tool.keeps_state and tool.spec.name == call.name:
                        await tool.run(decoded(call))
        except Exception as error:  # noqa: BLE001 - one agent's fault is one agent's
            return self._live_run.fault(error)
        return None

    def finish_now(self) -> None:
        """End coordination with the answers that are there; with none yet, at the first one."""
        if not self._live_run.coordination.finish_requested and self._live_run.coordination.winner is None:
            if self._live_run.caller.asked is not None and self._live_run.caller.asked.kind == "budget_reached":
                self._live_run.record(InputGiven(kind="budget_reached", text="finish with the existing answers"))
            self._live_run.record(FinishRequested())

    def raise_budget(self, control: int, max_usd: float) -> None:
        """Set the cap of the whole run, in US dollars. Does nothing unless it is above the present cap."""
        if self._live_run.caller.carried_out(control) or max_usd <= self.state.budget.max_usd:
            return
        self._live_run.record(BudgetRaised(control=control, max_usd=max_usd))
        if self._live_run.caller.asked is not None and self._live_run.caller.asked.kind == "budget_reached":
            self._live_run.record(InputGiven(kind="budget_reached", text=f"max_usd {max_usd:g}"))

    def steer(self, control: int, message: str) -> None:
        """Have every agent read this at its next step. The same `control` number twice is one message."""
        if not self._live_run.caller.carried_out(control):
            self._live_run.record(CallerSaid(control=control, message=message))

    async def admit(self, run_id: str) -> None:
        """Let a run begin that a program has prepared which works inside this run."""
        if self._run_spec.nested_runs is not None:
            await self._run_spec.nested_runs.admit(run_id)

    def answer(self, decision: str) -> None:
        """Tell the agent that asks what the caller decided; nothing if no agent asks any more."""
        if self._live_run.caller.asked is not None and self._live_run.caller.asked.kind == "question":
            self._live_run.record(InputGiven(kind="question", text=decision))

    async def settle(self) -> None:
        """Return when what was asked so far would survive a power cut."""
        await self._live_run.settle()

    def cancel(self) -> None:
        """Abort what is in flight; the best answer so far is kept."""
        self._cancel_requested = True
        self._run.cancel()

    async def conduct(self) -> None:
        """Take the run to its terminal event. Never raises for a failure of the run itself.

        If the surrounding task is cancelled (the process is leaving) no terminal event is recorded.
        """
        with self._live_run.limited(self._run, lambda: self.state.resume_point.only_queued):
            async with self._checking():
                if failure := await self._attempts():
                    await self._end_nested_runs()
                    self._live_run.record(failure)
                elif final := self.state.final:
                    completed = await self._completed(final)
                    await self._end_nested_runs()
                    self._live_run.record(completed)
        if self._run.ended_early:
            with anyio.CancelScope(shield=True):
                await self._end_nested_runs()
            self._live_run.record(self._cut_short())
        with anyio.CancelScope(shield=True):
            await self._live_run.settle()

    @asynccontextmanager
    async def _checking(self) -> AsyncGenerator[None]:
        """Answers are checked as they come, where the run has checks."""
        if self._checks is None:
            yield
            return
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._checks.attend)
            yield
            tasks.cancel_scope.cancel()

    async def _completed(self, final: Final) -> RunCompleted:
        """The end of a run whose final answer is kept, and whose files are checked once more."""
        completed = await self._kept(final)
        if self._checks is None or completed.unkept:
            return completed
        checked = await self._checks.final(final.agent, completed.changes)
        fails = failing(checked, self._run_spec.policy.checks_policy)
        return completed.model_copy(update={"failing_checks": fails})

    async def _end_nested_runs(self) -> None:
        """Before the run ends: what they cost is a part of it."""
        if self._run_spec.nested_runs is not None:
            await self._run_spec.nested_runs.end_all()

    async def _kept(self, final: Final) -> RunCompleted:
        """The end of the run, once the final answer is kept with its files; or with why they cannot be. The answer
        itself is in the journal.
        """
        completed = RunCompleted(winner=final.agent, outcome=final.outcome, answer=final.answer, changes=final.changes)
        workspace = self._run_spec.member(final.agent).workspace
        store = self._run_spec.answer_store
        try:
            changes = await store.keep_final(final.agent, final.answer, workspace, final.changes)
        except Exception as error:  # noqa: BLE001 - an answer that was paid for is not lost with its files
            return completed.model_copy(update={"unkept": str(self._live_run.fault(error))})
        return completed.model_copy(update={"changes": changes})

    # -- attempts -------------------------------------------------------------------------------------------------

    async def _attempts(self) -> RunFailed | None:
        """Attempt after attempt, until the winner is content with its final answer or no restart is left.

        A further attempt that comes to nothing leaves the answer of the one before standing.
        """
        policy = self._run_spec.policy.coordination
        begun = self.state.attempt_started or self._live_run.record(AttemptStarted(attempt=1))
        while True:
            if before := self.state.earlier_final:
                self._briefing = Briefing(before.answer, begun.reason, begun.instructions)
            failure = await self._attempt_once()
            final = self.state.final
            if failure is not None:
                return None if final else failure
            closing = self._live_run.coordination.finish_requested or self.state.budget_reached
            if final is None or begun.attempt > policy.max_orchestration_restarts or closing:
                return None
            judgement = await self._judge(final)
            if judgement.sufficient:
                return None
            begun = self._live_run.record(
                AttemptStarted(attempt=begun.attempt + 1, reason=judgement.reason, instructions=judgement.instructions)
            )

    async def _judge(self, final: Final) -> AnswerEvaluated:
        """The winner's judgement, from the journal as far as it is there."""
        at = self.state.resume_point
        if at.judged:
            return at.judged
        member = self._run_spec.member(final.agent)
        if at.judging:
            judgement = verdict(member, at.judging)
        else:
            judgement = await evaluate(member, final.answer, self._this_attempt())
        return self._live_run.record(judgement)

    async def _attempt_once(self) -> RunFailed | None:
        """One coordination and its final answer."""
        if self.state.resume_point.presented:
            return None
        if self._run_spec.policy.skip_coordination_rounds:
            return await self._first_agent_presents()
        winner = await self._coordinate()
        if winner is None:
            return self._nobody_left()
        self._live_run.record(await self._final_answer(winner))
        return None

    async def _first_agent_presents(self) -> RunFailed | None:
        """Without coordination there is nothing to fall back on."""
        member = self._run_spec.team[0]
        try:
            answer = await present(member, self._this_attempt(), tuple(self.state.resume_point.presentation))
        except BackendError as error:
            self._drop(member.name, error)
            return self._nobody_left()
        self._live_run.record(await self._presented(member, answer))
        return None

    def _this_attempt(self) -> Attempt:
        return Attempt(self._run_spec, self._live_run, self.state.attempt, self._briefing)

    # -- coordination ---------------------------------------------------------------------------------------------

    async def _coordinate(self) -> WinnerChosen | None:
        """Let everybody work until a winner is decided. None when nobody is left and there is no answer."""
        if self._live_run.coordination.winner is not None:
            return self._live_run.coordination.winner
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._close_first_answers)
            for member in self._run_spec.team:
                tasks.start_soon(self._take_part, member)
            while self._live_run.coordination.winner is None and self._live_run.coordination.live:
                await self._live_run.change()
            tasks.cancel_scope.cancel()
        return self._live_run.coordination.winner

    async def _take_part(self, member: Member) -> None:
        """One agent's part. If it fails, the agent is dropped; its answers stay, and the others go on."""
        try:
            await self._play_rounds(member)
        except Exception as error:  # noqa: BLE001 - one agent's fault is one agent's
            self._drop(member.name, self._live_run.fault(error))

    async def _play_rounds(self, member: Member) -> None:
        """Round after round, until the agent has nothing to do any more."""
        if events := self.state.resume_point.open_rounds.get(member.name):
            await self._play(member, Round.resume(member, self._this_attempt(), tuple(events)))
        while True:
            match self._live_run.coordination.duty(member.name):
                case Rest():
                    return
                case Wait():
                    await self._live_run.change()
                case Work() as work:
                    number = self.state.agents[member.name].round + 1
                    await self._play(member, Round.begin(member, self._this_attempt(), number, work))

    async def _play(self, member: Member, play: Round) -> None:
        """A round within its time."""
        setting, seconds = self._round_limit(play.number)
        limit = Countdown(seconds)
        with self._live_run.limited(limit, lambda: play.awaits_checks or member.name in self.state.resume_point.queued):
            await play.play()
        if limit.ended_early:
            message = f"{setting}: no accepted action within {seconds:g} s; raise it in timeout_settings"
            raise BackendError("timeout", message)

    def _round_limit(self, number: int) -> tuple[str, float]:
        """The name of the setting, and the seconds."""
        limits = self._run_spec.limits
        if number == 1 and limits.first_round_seconds is not None:
            return "first_round_timeout_seconds", limits.first_round_seconds
        return "round_timeout_seconds", limits.round_seconds

    def _drop(self, agent: str, fault: BackendError) -> None:
        self._live_run.record(self._live_run.coordination.drop(agent, fault.reason, str(fault)))

    async def _close_first_answers(self) -> None:
        """Give the stragglers `first_answer_wait_seconds` from the first answer on, our own queue not counted."""
        while not self._live_run.coordination.answered:
            await self._live_run.change()
        limit = Countdown(self._run_spec.limits.first_answer_wait_seconds)
        with self._live_run.limited(
            limit, lambda: not self.state.resume_point.queued.isdisjoint(self._live_run.coordination.unanswered)
        ):
            await anyio.sleep_forever()
        if unanswered := self._live_run.coordination.unanswered:
            self._live_run.record(FirstAnswersClosed(awaited=unanswered))

    # -- the final answer -----------------------------------------------------------------------------------------

    async def _final_answer(self, winner: WinnerChosen) -> AnswerPresented:
        """The final answer; if the winner cannot write it, its latest answer stands in, on the record."""
        standing = self.state.agents[winner.agent].answers[-1]
        as_it_stood = AnswerPresented(
            agent=winner.agent, answer=standing.content, reused=True, changes=standing.changes
        )
        debug = self._run_spec.policy.debug_final_answer
        if debug is not None and self.state.attempt == 1:
            return as_it_stood.model_copy(update={"answer": debug})
        if self._may_reuse(winner) or self.state.resume_point.presentation_broke_off:
            return as_it_stood
        member, past = self._run_spec.member(winner.agent), tuple(self.state.resume_point.presentation)
        try:
            if not past and standing.changes is not None:
                await self._restore(member, standing.changes)
            answer = await present(member, self._this_attempt(), past)
            return await self._presented(member, answer, standing.changes)
        except BackendError as error:
            self._live_run.record(PresentationFailed(agent=winner.agent, reason=error.reason, message=str(error)))
            return as_it_stood

    async def _presented(self, member: Member, answer: str, before: Changes | None = None) -> AnswerPresented:
        """An answer that was just written, with what it changes of the caller's files; if that cannot be found out,
        with what its author's answer changed `before`.
        """
        changes = before
        try:
            changes = await self._run_spec.answer_store.keep_patch(member.name, member.workspace)
        except Exception as error:  # noqa: BLE001 - an answer that was paid for is not lost with its files
            self._live_run.fault(error)
        return AnswerPresented(agent=member.name, answer=answer, changes=changes)

    async def _restore(self, member: Member, changes: Changes) -> None:
        """The votes were for the files as they were with the answer: what its author did to them since is undone.
        Raises `BackendError`.
        """
        try:
            if member.commands is not None:
                await member.commands.end_all()
            await self._run_spec.answer_store.restore(member.name, changes)
        except Exception as error:  # noqa: BLE001 - one agent's fault is one agent's
            raise self._live_run.fault(error) from None

    def _may_reuse(self, winner: WinnerChosen) -> bool:
        """Whether writing the final answer anew could add nothing, or is not wanted."""
        policy = self._run_spec.policy
        if policy.coordination.planning_instruction is not None:
            return False  # what was planned is still to be executed
        if policy.final_answer_strategy == "winner_reuse" or len(self._run_spec.team) == 1:
            return True
        agreed = winner.outcome == "consensus" or len(self._live_run.coordination.answered) == 1
        return policy.final_answer_strategy == "auto" and agreed

    # -- ends that are no completion --------------------------------------------------------------------------------

    def _cut_short(self) -> RunCancelled | RunTimedOut:
        winner, answer = self.state.best()
        if self._cancel_requested:
            return RunCancelled(winner=winner, answer=answer)
        seconds = self._run_spec.limits.run_seconds
        message = f"orchestrator_timeout_seconds: the run took longer than {seconds:g} s; raise it in timeout_settings"
        return RunTimedOut(message=message, winner=winner, answer=answer)

    def _nobody_left(self) -> RunFailed:
        """The reason is the one that all agents share, else no_quorum; the message tells every cause."""
        dropped = self.state.dropped
        reasons: set[FailureReason] = {_AS_FAILURE.get(drop.reason, "no_quorum") for drop in dropped}
        causes = "; ".join(f"{self.state.agents[drop.agent].info.id}: {drop.message}" for drop in dropped)
        reason = "budget" if "budget" in reasons else reasons.pop() if len(reasons) == 1 else "no_quorum"
        winner, answer = self.state.best()
        return RunFailed(reason=reason, message=f"no agent is left: {causes}", winner=winner, answer=answer)


_AS_FAILURE: dict[DropReason, FailureReason] = {
    "auth": "auth",
    "quota_exhausted": "quota_exhausted",
    "rate_limited": "rate_limited",
    "model_not_found": "model_not_found",
    "unreachable": "unreachable",
    "tools_unsupported": "tools_unsupported",
    "context_too_small": "context_too_small",
    "timeout": "timeout",
    "no_action": "no_answer",
    "budget": "budget",
    "bad_reply": "no_answer",
    "internal": "internal",
}
