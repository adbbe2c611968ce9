"""One coordination: every agent works round after round, until a winner is decided or nobody is left.

An agent that fails is dropped, and the others go on. Must not know what a round is made of, nor what comes after.
"""

import anyio

from massgen_mcp.coordination.agent_view import AgentView
from massgen_mcp.coordination.guidance import Rest, Wait, Work
from massgen_mcp.coordination.written_tests import BEFORE_ANSWERS
from massgen_mcp.countdown import Countdown
from massgen_mcp.errors import BackendError
from massgen_mcp.events.coordination import FirstAnswersClosed, WinnerChosen
from massgen_mcp.events.parts import Changes
from massgen_mcp.orchestration.agent_round import Round
from massgen_mcp.orchestration.attempt import Attempt
from massgen_mcp.orchestration.live_run import LiveRun
from massgen_mcp.orchestration.team import Member, RunSpec, TeamLimits, get_acting, make_replacement
from massgen_mcp.orchestration.window import learn_window


async def coordinate(attempt: Attempt) -> WinnerChosen | None:
    """Let everybody work until a winner is decided. None when nobody is left to vote, or to answer."""
    live_run = attempt.live_run
    if live_run.coordination.winner is not None:
        return live_run.coordination.winner
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_close_first_answers, attempt)
        for member in attempt.run_spec.team:
            tasks.start_soon(_take_part, member, attempt)
        while live_run.coordination.winner is None and (live_run.coordination.live or live_run.awaits_caller):
            await live_run.change()
        tasks.cancel_scope.cancel()
    await drop_unanswered(attempt.run_spec, live_run, "the run was decided before it answered")
    return live_run.coordination.winner


async def drop_unanswered(run_spec: RunSpec, live_run: LiveRun, why: str) -> None:
    """Drop the agents that never answered and have changed files: what they left is kept so."""
    answered = {answer.agent for answer in live_run.state.answers}
    for member in run_spec.team:
        if member.name in live_run.coordination.live and member.name not in answered:
            changes = await left_behind(member, run_spec, live_run)
            if changes is not None and changes.count:
                live_run.drop(member.name, BackendError("cut_off", why), changes)


async def _take_part(member: Member, attempt: Attempt) -> None:
    """One agent's part. If its model fails, its fallback goes on where it stood. Without one the agent is dropped; its
    answers stay, and the others go on.
    """
    member = get_acting(member, attempt.live_run.state)
    try:
        await _play_rounds(member, attempt)
    except Exception as error:  # noqa: BLE001 - one agent's fault is one agent's
        fault = attempt.live_run.fault(error)
        if replaced := make_replacement(member, fault):
            attempt.live_run.record(replaced)
            return await _take_part(member, attempt)
        attempt.live_run.drop(member.name, fault, await left_behind(member, attempt.run_spec, attempt.live_run))


async def left_behind(member: Member, run_spec: RunSpec, live_run: LiveRun) -> Changes | None:
    """What its copies of the caller's files hold, kept. None: nothing, or it cannot be kept."""
    try:
        return await run_spec.answer_store.keep_patch(member.name, member.workspace)
    except Exception as error:  # noqa: BLE001 - it is dropped for another reason
        live_run.fault(error)
        return None


async def _play_rounds(member: Member, attempt: Attempt) -> None:
    """Round after round, until the agent has nothing to do any more."""
    live_run = attempt.live_run
    await learn_window(member)
    if events := live_run.state.resume_point.open_rounds.get(member.name):
        await _play(member, attempt, Round.resume(member, attempt, tuple(events)))
    while True:
        match AgentView(live_run.coordination, member.name).get_duty():
            case Rest():
                return
            case Wait():
                await live_run.change()
            case Work() as work:
                number = live_run.state.agents[member.name].round + 1
                await _play(member, attempt, Round.begin(member, attempt, number, work))


async def _play(member: Member, attempt: Attempt, play: Round) -> None:
    """A round within its time."""
    live_run = attempt.live_run
    setting, seconds = _round_limit(attempt.run_spec.limits, play.number)
    limit = Countdown(seconds)
    with live_run.limited(
        limit,
        lambda: play.awaits_checks or live_run.asks or member.name in live_run.state.resume_point.queued,
        of=member.name,
    ):
        try:
            await play.play()
        except BackendError as error:
            if error.reason != "context_too_small" or not play.could_show_less:
                raise
        finally:
            await member.end_commands()
    if limit.ended_early:
        message = f"{setting}: no accepted action within {seconds:g} s; raise it in timeout_settings"
        raise BackendError("timeout", message)


def _round_limit(limits: TeamLimits, number: int) -> tuple[str, float]:
    """The name of the setting, and the seconds."""
    if number == 1 and limits.first_round_seconds is not None:
        return "first_round_timeout_seconds", limits.first_round_seconds
    return "round_timeout_seconds", limits.round_seconds


async def _close_first_answers(attempt: Attempt) -> None:
    """Give the stragglers `first_answer_wait_seconds` from the first answer on, our own queue and a person's thinking
    not counted. Agents that are asked later have their own time.
    """
    live_run, before = attempt.live_run, tuple[str, ...]()

    def stands() -> bool:
        queued = live_run.state.resume_point.queued
        return live_run.asks or not queued.isdisjoint(live_run.coordination.unanswered)

    while True:
        while live_run.coordination.stage is not None and live_run.coordination.stage.kind in BEFORE_ANSWERS:
            await live_run.change()
        asked = live_run.coordination.asked
        newest = [agent for agent in asked if agent not in before]
        while asked == live_run.coordination.asked and not {*newest} & {*live_run.coordination.answered}:
            await live_run.change()
        with live_run.limited(Countdown(attempt.run_spec.limits.first_answer_wait_seconds), stands):
            while asked == live_run.coordination.asked:
                await live_run.change()
        if asked == live_run.coordination.asked and (unanswered := live_run.coordination.unanswered):
            live_run.record(FirstAnswersClosed(awaited=unanswered))
        while asked == live_run.coordination.asked:
            await live_run.change()
        before = asked
