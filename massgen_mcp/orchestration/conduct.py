"""One run from the question to its final answer. Read this to know what happens in a run.

Composes the phases; must not know providers, stores, servers or views.
"""

from collections.abc import Sequence

import anyio

from massgen_mcp.backends.base import Replayable
from massgen_mcp.coordination.guidance import Rest, Wait, Work
from massgen_mcp.coordination.state import Coordination
from massgen_mcp.errors import BackendError, DropReason, FailureReason
from massgen_mcp.events import (
    AnswerEvaluated,
    AnswerPresented,
    AttemptStarted,
    BudgetRaised,
    CallerSaid,
    FinishRequested,
    FirstAnswersClosed,
    InputGiven,
    LogRecord,
    PresentationFailed,
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunResumed,
    RunTimedOut,
    WinnerChosen,
)
from massgen_mcp.money.budget import Budget
from massgen_mcp.money.reservations import Reservations
from massgen_mcp.orchestration.agent_round import Round
from massgen_mcp.orchestration.attempt import Attempt, Briefing
from massgen_mcp.orchestration.floor import Floor, Journal
from massgen_mcp.orchestration.past import Final, Past, best_of, past_of
from massgen_mcp.orchestration.presentation import evaluate, present, verdict
from massgen_mcp.orchestration.team import Member, RunSpec
from massgen_mcp.tools.base import decoded


class Conductor:
    """Conducts one run. `conduct` it once, after `resume` where another process has begun; the controls may be called
    from the same event loop.
    """

    def __init__(self, run_spec: RunSpec, journal: Journal) -> None:
        self._run_spec = run_spec
        names = tuple(member.name for member in run_spec.team)
        self._floor = Floor(
            Coordination.begin(names, run_spec.rules), journal, _reservations(run_spec), run_spec.report
        )
        if run_spec.caller_questions is not None:
            run_spec.caller_questions.open(self._floor)
        self._run = anyio.CancelScope()
        self._cancel_requested = False
        self._attempt = 0
        self._briefing: Briefing | None = None
        self._final: Final | None = None
        self._past = Past()
        """What of the present attempt had happened before a resume; consumed as the run goes on."""

    async def resume(self, records: Sequence[LogRecord]) -> None:
        """Stand where this journal leads: no model call and no tool whose result is in it will be made again."""
        past = past_of(records)
        self._floor.resume((record.event for record in records), past.in_flight)
        self._past, self._final = past, past.final
        faults = {member.name: await self._rehearse(member) for member in self._run_spec.team}
        self._floor.record(RunResumed(in_flight=tuple(past.in_flight.values())))
        for name, fault in faults.items():
            if fault is not None and name in self._floor.state.live:
                self._drop(name, fault)
        self._floor.decide()

    async def _rehearse(self, member: Member) -> BackendError | None:
        """Bring what an agent keeps in memory to where it stood; the fault, if that cannot be done."""
        try:
            if isinstance(member.backend, Replayable):
                member.backend.fast_forward(self._past.calls.get(member.name, ()))
            for call in self._past.tools.get(member.name, ()):
                for tool in member.tools:
                    if tool.keeps_state and tool.spec.name == call.name:
                        await tool.run(decoded(call))
        except Exception as error:  # noqa: BLE001 - one agent's fault is one agent's
            return self._floor.fault(error)
        return None

    def finish_now(self) -> None:
        """End coordination with the answers that are there; with none yet, at the first one."""
        if not self._floor.state.finish_requested and self._floor.state.winner is None:
            if self._floor.asked is not None and self._floor.asked.kind == "budget_reached":
                self._floor.record(InputGiven(kind="budget_reached", text="finish with the existing answers"))
            self._floor.record(FinishRequested())

    def raise_budget(self, control: int, max_usd: float) -> None:
        """Set the cap of the whole run, in US dollars. Does nothing unless it is above the present cap."""
        if self._floor.has_heard(control) or max_usd <= self._floor.reservations.budget.max_usd:
            return
        self._floor.record(BudgetRaised(control=control, max_usd=max_usd))
        if self._floor.asked is not None and self._floor.asked.kind == "budget_reached":
            self._floor.record(InputGiven(kind="budget_reached", text=f"max_usd {max_usd:g}"))

    def steer(self, control: int, message: str) -> None:
        """Have every agent read this at its next step. The same `control` number twice is one message."""
        if not self._floor.has_heard(control):
            self._floor.record(CallerSaid(control=control, message=message))

    def answer(self, decision: str) -> None:
        """Tell the agent that asks what the caller decided; nothing if no agent asks any more."""
        if self._floor.asked is not None and self._floor.asked.kind == "question":
            self._floor.record(InputGiven(kind="question", text=decision))

    async def settle(self) -> None:
        """Return when what was asked so far would survive a power cut."""
        await self._floor.settle()

    def cancel(self) -> None:
        """Abort what is in flight; the best answer so far is kept."""
        self._cancel_requested = True
        self._run.cancel()

    async def conduct(self) -> None:
        """Take the run to its terminal event. Never raises for a failure of the run itself.

        If the surrounding task is cancelled (the process is leaving) no terminal event is recorded.
        """
        self._run.deadline = anyio.current_time() + self._run_spec.limits.run_seconds - self._past.seconds
        with self._run:
            if failure := await self._attempts():
                self._floor.record(failure)
            elif final := self._final:
                unkept = await self._keep(final)
                self._floor.record(
                    RunCompleted(winner=final.agent, outcome=final.outcome, answer=final.answer, unkept=unkept)
                )
        if self._run.cancelled_caught:
            self._floor.record(self._cut_short())
        with anyio.CancelScope(shield=True):
            await self._floor.settle()

    async def _keep(self, final: Final) -> str:
        """Keep the final answer with its files; why that failed, if it did. The answer itself is in the journal."""
        workspace = self._run_spec.member(final.agent).workspace
        try:
            await self._run_spec.answer_store.keep_final(final.agent, final.answer, workspace)
        except Exception as error:  # noqa: BLE001 - an answer that was paid for is not lost with its files
            return str(self._floor.fault(error))
        return ""

    # -- attempts -------------------------------------------------------------------------------------------------

    async def _attempts(self) -> RunFailed | None:
        """Attempt after attempt, until the winner is content with its final answer or no restart is left.

        A further attempt that comes to nothing leaves the answer of the one before standing.
        """
        policy = self._run_spec.policy
        begun = self._past.attempt or AttemptStarted(attempt=1)
        if self._past.attempt is None:
            self._floor.record(begun)
        while True:
            self._open(begun)
            failure = await self._attempt_once()
            if failure is not None:
                return None if self._final else failure
            if self._final is None or self._attempt > policy.max_restarts or self._is_closing():
                return None
            judgement = await self._judge(self._final)
            if judgement.sufficient:
                return None
            begun = AttemptStarted(
                attempt=self._attempt + 1, reason=judgement.reason, instructions=judgement.instructions
            )
            self._past = Past(final=self._final, before=self._final)
            self._floor.record(begun)

    def _is_closing(self) -> bool:
        return self._floor.state.finish_requested or self._floor.reservations.budget.reached

    def _open(self, begun: AttemptStarted) -> None:
        """A further attempt knows what the one before came to."""
        self._attempt = begun.attempt
        if before := self._past.before:
            self._briefing = Briefing(before.answer, begun.reason, begun.instructions)

    async def _judge(self, final: Final) -> AnswerEvaluated:
        """The winner's judgement, from the journal as far as it is there."""
        if self._past.judged:
            return self._past.judged
        member = self._run_spec.member(final.agent)
        if self._past.judging:
            judgement = verdict(member, self._past.judging)
        else:
            judgement = await evaluate(member, final.answer, self._this_attempt())
        self._floor.record(judgement)
        return judgement

    async def _attempt_once(self) -> RunFailed | None:
        """One coordination and its final answer, which `_final` is then."""
        if self._past.presented:
            return None
        if self._run_spec.policy.skip_coordination:
            return await self._first_agent_presents()
        winner = await self._coordinate()
        if winner is None:
            return self._nobody_left()
        answer, reused = await self._final_answer(winner)
        self._floor.record(AnswerPresented(agent=winner.agent, answer=answer, reused=reused))
        self._final = Final(winner.agent, winner.outcome, answer)
        return None

    async def _first_agent_presents(self) -> RunFailed | None:
        """Without coordination there is nothing to fall back on."""
        member = self._run_spec.team[0]
        try:
            answer = await present(member, self._this_attempt(), self._past.presentation)
        except BackendError as error:
            self._drop(member.name, error)
            return self._nobody_left()
        self._floor.record(AnswerPresented(agent=member.name, answer=answer))
        self._final = Final(member.name, "best_so_far", answer)
        return None

    def _this_attempt(self) -> Attempt:
        return Attempt(self._run_spec, self._floor, self._attempt, self._briefing)

    # -- coordination ---------------------------------------------------------------------------------------------

    async def _coordinate(self) -> WinnerChosen | None:
        """Let everybody work until a winner is decided. None when nobody is left and there is no answer."""
        if self._floor.state.winner is not None:
            return self._floor.state.winner
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._close_first_answers)
            for member in self._run_spec.team:
                tasks.start_soon(self._take_part, member)
            while self._floor.state.winner is None and self._floor.state.live:
                await self._floor.change()
            tasks.cancel_scope.cancel()
        return self._floor.state.winner

    async def _take_part(self, member: Member) -> None:
        """One agent's part. If it fails, the agent is dropped; its answers stay, and the others go on."""
        try:
            await self._play_rounds(member)
        except Exception as error:  # noqa: BLE001 - one agent's fault is one agent's
            self._drop(member.name, self._floor.fault(error))

    async def _play_rounds(self, member: Member) -> None:
        """Round after round, until the agent has nothing to do any more."""
        rounds = self._past.rounds.get(member.name, 0)
        if events := self._past.open_rounds.get(member.name):
            await self._play(Round.resume(member, self._this_attempt(), events))
        while True:
            match self._floor.state.duty(member.name):
                case Rest():
                    return
                case Wait():
                    await self._floor.change()
                case Work() as work:
                    rounds += 1
                    await self._play(Round.begin(member, self._this_attempt(), rounds, work))

    async def _play(self, play: Round) -> None:
        """A round within its time."""
        seconds = self._run_spec.limits.round_seconds
        with anyio.move_on_after(seconds) as scope:
            await play.play()
        if scope.cancelled_caught:
            raise BackendError("timeout", f"round_timeout_seconds: no accepted action within {seconds:g} s")

    def _drop(self, agent: str, fault: BackendError) -> None:
        self._floor.record(self._floor.state.drop(agent, fault.reason, str(fault)))

    async def _close_first_answers(self) -> None:
        """Give the stragglers `first_answer_wait_seconds` from the first answer on."""
        while not self._floor.state.answered:
            await self._floor.change()
        await anyio.sleep(self._run_spec.limits.first_answer_wait_seconds)
        if unanswered := self._floor.state.unanswered:
            self._floor.record(FirstAnswersClosed(awaited=unanswered))

    # -- the final answer -----------------------------------------------------------------------------------------

    async def _final_answer(self, winner: WinnerChosen) -> tuple[str, bool]:
        """The final answer, and whether it is the winner's answer as it stood. If the winner cannot write it, its
        latest answer stands in, on the record.
        """
        standing = self._floor.state.content(winner.label)
        debug = self._run_spec.policy.debug_final_answer
        if debug is not None and self._attempt == 1:
            return debug, True
        if self._may_reuse(winner):
            return standing, True
        past = self._past.presentation
        if past and isinstance(past[-1], PresentationFailed):
            return standing, True
        try:
            return await present(self._run_spec.member(winner.agent), self._this_attempt(), past), False
        except BackendError as error:
            self._floor.record(PresentationFailed(agent=winner.agent, reason=error.reason, message=str(error)))
            return standing, True

    def _may_reuse(self, winner: WinnerChosen) -> bool:
        """Whether writing the final answer anew could add nothing, or is not wanted."""
        policy = self._run_spec.policy
        if policy.planning_instruction is not None:
            return False  # what was planned is still to be executed
        if policy.final_answer_strategy == "winner_reuse" or len(self._run_spec.team) == 1:
            return True
        agreed = winner.outcome == "consensus" or len(self._floor.state.answered) == 1
        return policy.final_answer_strategy == "auto" and agreed

    # -- ends that are no completion --------------------------------------------------------------------------------

    def _cut_short(self) -> RunCancelled | RunTimedOut:
        winner, answer = self.best()
        if self._cancel_requested:
            return RunCancelled(winner=winner, answer=answer)
        seconds = self._run_spec.limits.run_seconds
        message = f"orchestrator_timeout_seconds: the run took longer than {seconds:g} s"
        return RunTimedOut(message=message, winner=winner, answer=answer)

    def best(self) -> tuple[str | None, str | None]:
        """The best answer so far and whose it is; None for both where there is none."""
        return best_of(self._final, self._floor.state)

    def _nobody_left(self) -> RunFailed:
        """The reason is the one that all agents share, else no_quorum; the message tells every cause."""
        dropped = self._floor.dropped
        reasons: set[FailureReason] = {_AS_FAILURE.get(drop.reason, "no_quorum") for drop in dropped}
        causes = "; ".join(f"{drop.agent}: {drop.message}" for drop in dropped)
        reason = "budget" if "budget" in reasons else reasons.pop() if len(reasons) == 1 else "no_quorum"
        winner, answer = self.best()
        return RunFailed(reason=reason, message=f"no agent is left: {causes}", winner=winner, answer=answer)


def _reservations(run_spec: RunSpec) -> Reservations:
    config = run_spec.budget
    if config is None:
        return Reservations()
    return Reservations(Budget(config.max_usd, config.max_tokens), asks_first=config.at_cap == "ask")


_AS_FAILURE: dict[DropReason, FailureReason] = {
    "auth": "auth",
    "quota_exhausted": "quota_exhausted",
    "rate_limited": "rate_limited",
    "model_not_found": "model_not_found",
    "timeout": "timeout",
    "no_action": "no_answer",
    "budget": "budget",
    "bad_reply": "no_answer",
    "internal": "internal",
}
