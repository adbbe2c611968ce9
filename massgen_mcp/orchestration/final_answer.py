"""The final answer of an attempt, what the winner writes or its answer as it stood, and what its files change."""

from massgen_mcp.errors import BackendError
from massgen_mcp.events.coordination import AnswerPresented, PresentationFailed, WinnerChosen
from massgen_mcp.events.parts import Changes
from massgen_mcp.orchestration.attempt import Attempt
from massgen_mcp.orchestration.presentation import present
from massgen_mcp.orchestration.team import Member


async def final_answer(attempt: Attempt, winner: WinnerChosen) -> AnswerPresented:
    """If the winner cannot write it, its latest answer stands in, on the record."""
    run_spec, live_run, state = attempt.run_spec, attempt.live_run, attempt.live_run.state
    standing = state.agents[winner.agent].answers[-1]
    as_it_stood = AnswerPresented(agent=winner.agent, answer=standing.content, reused=True, changes=standing.changes)
    debug = run_spec.policy.debug_final_answer
    if debug is not None and attempt.number == 1:
        return as_it_stood.model_copy(update={"answer": debug})
    if _may_reuse(attempt, winner) or state.resume_point.presentation_broke_off:
        return as_it_stood
    member, past = run_spec.member(winner.agent), tuple(state.resume_point.presentation)
    try:
        if not past and standing.changes is not None:
            await _restore(member, attempt, standing.changes)
        answer = await present(member, attempt, past)
        return await presented(member, attempt, answer, standing.changes)
    except BackendError as error:
        live_run.record(PresentationFailed(agent=winner.agent, reason=error.reason, message=str(error)))
        return as_it_stood


async def presented(member: Member, attempt: Attempt, answer: str, before: Changes | None = None) -> AnswerPresented:
    """An answer that was just written, with what it changes of the caller's files; if that cannot be found out, with
    what its author's answer changed `before`.
    """
    changes = before
    try:
        changes = await attempt.run_spec.answer_store.keep_patch(member.name, member.workspace)
    except Exception as error:  # noqa: BLE001 - an answer that was paid for is not lost with its files
        attempt.live_run.fault(error)
    return AnswerPresented(agent=member.name, answer=answer, changes=changes)


async def _restore(member: Member, attempt: Attempt, changes: Changes) -> None:
    """The votes were for the files as they were with the answer: what its author did to them since is undone. Raises
    `BackendError`.
    """
    try:
        await attempt.run_spec.answer_store.restore(member.name, changes)
    except Exception as error:  # noqa: BLE001 - one agent's fault is one agent's
        raise attempt.live_run.fault(error) from None


def _may_reuse(attempt: Attempt, winner: WinnerChosen) -> bool:
    """Whether writing the final answer anew could add nothing, or is not wanted."""
    policy = attempt.run_spec.policy
    if policy.coordination.planning_instruction is not None:
        return False  # what was planned is still to be executed
    if policy.final_answer_strategy == "winner_reuse" or len(attempt.run_spec.team) == 1:
        return True
    agreed = winner.outcome == "consensus" or len(attempt.live_run.coordination.answered) == 1
    return policy.final_answer_strategy == "auto" and agreed
