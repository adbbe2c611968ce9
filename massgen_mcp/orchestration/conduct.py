"""One run from the question to its final answer. Read this to know what happens in a run.

Composes the phases; must not know providers, stores, servers or views.
"""

import anyio

from massgen_mcp.coordination.state import Coordination, Rest, Wait, Work
from massgen_mcp.errors import BackendError, DropReason, FailureReason
from massgen_mcp.events import (
    AgentDropped,
    FinishRequested,
    FirstAnswersClosed,
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunTimedOut,
    WinnerChosen,
)
from massgen_mcp.orchestration.agent_round import Round
from massgen_mcp.orchestration.floor import Floor, Journal
from massgen_mcp.orchestration.presentation import present
from massgen_mcp.orchestration.team import Assignment, Member


class Conductor:
    """Conducts one run. `conduct` it once; `finish_now` and `cancel` may be called from the same event loop."""

    def __init__(self, assignment: Assignment, journal: Journal) -> None:
        self._assignment = assignment
        names = tuple(member.name for member in assignment.team)
        self._floor = Floor(Coordination.begin(names, assignment.rules), journal)
        self._run = anyio.CancelScope()
        self._cancel_requested = False

    def finish_now(self) -> None:
        """End coordination with the answers that are there; with none yet, at the first one."""
        if not self._floor.state.finish_requested and self._floor.state.winner is None:
            self._floor.record(FinishRequested())

    def cancel(self) -> None:
        """Abort what is in flight; the best answer so far is kept."""
        self._cancel_requested = True
        self._run.cancel()

    async def conduct(self) -> None:
        """Take the run to its terminal event. Never raises for a failure of the run itself.

        If the surrounding task is cancelled (the process is leaving) no terminal event is recorded.
        """
        limits = self._assignment.limits
        self._run.deadline = anyio.current_time() + limits.run_seconds
        with self._run:
            winner = await self._coordinate()
            if winner is None:
                self._floor.record(_failure(self._floor.dropped))
            else:
                answer = await self._final_answer(winner)
                workspace = self._assignment.member(winner.agent).workspace
                await self._assignment.gallery.keep_final(winner.agent, answer, workspace)
                self._floor.record(RunCompleted(winner=winner.agent, outcome=winner.outcome, answer=answer))
        if self._run.cancelled_caught:
            self._floor.record(self._cut_short())
        with anyio.CancelScope(shield=True):
            await self._floor.settle()

    async def _coordinate(self) -> WinnerChosen | None:
        """Let everybody work until a winner is decided. None when nobody is left and there is no answer."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._close_first_answers)
            for member in self._assignment.team:
                tasks.start_soon(self._take_part, member)
            while self._floor.state.winner is None and self._floor.state.live:
                await self._floor.change()
            tasks.cancel_scope.cancel()
        return self._floor.state.winner

    async def _take_part(self, member: Member) -> None:
        """One agent's part: round after round, until it has nothing to do any more."""
        rounds = 0
        while True:
            match self._floor.state.duty(member.name):
                case Rest():
                    return
                case Wait():
                    await self._floor.change()
                case Work() as work:
                    rounds += 1
                    await self._play(member, rounds, work)

    async def _play(self, member: Member, number: int, work: Work) -> None:
        """A round within its time; an agent that fails in it is dropped, its answers stay."""
        seconds = self._assignment.limits.round_seconds
        try:
            with anyio.fail_after(seconds):
                await Round(member, self._assignment, self._floor, number, work).play()
        except TimeoutError:
            error = BackendError("timeout", f"round_timeout_seconds: no accepted action within {seconds:g} s")
        except BackendError as caught:
            error = caught
        else:
            return
        self._floor.record(self._floor.state.drop(member.name, error.reason, str(error)))

    async def _close_first_answers(self) -> None:
        """Give the stragglers `first_answer_wait_seconds` from the first answer on."""
        while not self._floor.state.answered:
            await self._floor.change()
        await anyio.sleep(self._assignment.limits.first_answer_wait_seconds)
        if unanswered := self._floor.state.unanswered:
            self._floor.record(FirstAnswersClosed(awaited=unanswered))

    async def _final_answer(self, winner: WinnerChosen) -> str:
        """The winner presents; a team of one has nothing to merge, so its answer is the final one."""
        if len(self._assignment.team) == 1:
            return self._floor.state.content(winner.label)
        return await present(winner, self._assignment, self._floor)

    def _cut_short(self) -> RunCancelled | RunTimedOut:
        state = self._floor.state
        winner = state.winner or state.best_so_far()
        best = winner.label if winner else None
        if self._cancel_requested:
            return RunCancelled(best=best)
        seconds = self._assignment.limits.run_seconds
        return RunTimedOut(message=f"orchestrator_timeout_seconds: the run took longer than {seconds:g} s", best=best)


_AS_FAILURE: dict[DropReason, FailureReason] = {
    "auth": "auth",
    "quota_exhausted": "quota_exhausted",
    "rate_limited": "rate_limited",
    "model_not_found": "model_not_found",
    "timeout": "timeout",
    "no_action": "no_answer",
    "bad_reply": "no_answer",
    "internal": "internal",
}


def _failure(dropped: tuple[AgentDropped, ...]) -> RunFailed:
    """Nobody is left. The reason is the one that all agents share, else no_quorum; the message tells every cause."""
    reasons: set[FailureReason] = {_AS_FAILURE.get(drop.reason, "no_quorum") for drop in dropped}
    causes = "; ".join(f"{drop.agent}: {drop.message}" for drop in dropped)
    reason = reasons.pop() if len(reasons) == 1 else "no_quorum"
    return RunFailed(reason=reason, message=f"no agent is left: {causes}")
