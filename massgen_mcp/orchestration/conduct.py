"""One run from the question to its final answer. Read this to know what happens in a run.

Composes the phases; must not know providers, stores, servers or views.
"""

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import assert_never

import anyio

from massgen_mcp.backends.abilities import Abilities
from massgen_mcp.backends.base import PastCall, ToolCall, fast_forward
from massgen_mcp.coordination.agent_view import AgentView
from massgen_mcp.coordination.evidence import failing
from massgen_mcp.coordination.guidance import Rest, Wait, Work
from massgen_mcp.coordination.written_tests import BEFORE_ANSWERS
from massgen_mcp.countdown import Countdown
from massgen_mcp.errors import BackendError
from massgen_mcp.events.agent_work import (
    CallEvent,
    ModelCallAborted,
    ModelCallAdmitted,
    ModelCallFailed,
    ModelCallRetried,
    ModelCallStarted,
    ModelCallWaiting,
    ModelReplied,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from massgen_mcp.events.coordination import AnswerEvaluated, FirstAnswersClosed, ModelReplaced, WinnerChosen
from massgen_mcp.events.parts import Changes, Usage
from massgen_mcp.events.record import AnyEvent, LogRecord, UnknownEvent
from massgen_mcp.events.run import (
    AttemptStarted,
    BudgetRaised,
    CallerMessage,
    FinishRequested,
    InputGiven,
    RunCompleted,
    RunFailed,
    RunResumed,
    TimeReturned,
)
from massgen_mcp.orchestration.agent_round import Round
from massgen_mcp.orchestration.answer_checks import AnswerChecks
from massgen_mcp.orchestration.attempt import Attempt, Briefing
from massgen_mcp.orchestration.conversation import calls_of, native_calls
from massgen_mcp.orchestration.final_answer import evaluate, final_answer, present, presented, verdict
from massgen_mcp.orchestration.live_run import WHOLE_RUN, Journal, LiveRun
from massgen_mcp.orchestration.run_end import cancelled, nobody_left, timed_out
from massgen_mcp.orchestration.team import Member, RunSpec, TeamLimits, get_acting, make_replacement
from massgen_mcp.orchestration.window import abilities_of, learn_window
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
        self._run = Countdown(run_spec.limits.run_seconds - self.state.resume_point.seconds, self._note_returned)
        self._cancel_requested = False

    async def resume(self) -> None:
        """Continue where the journal leads: no model call and no tool whose result is in it will be made again."""
        faults = {member.name: await self._fast_forward(member) for member in self._run_spec.team}
        self._past = ()
        if self._run_spec.nested_runs is not None:
            await self._run_spec.nested_runs.show_files()
        self._live_run.record(RunResumed(in_flight=tuple(self.state.resume_point.in_flight.values())))
        for name, fault in faults.items():
            if fault is not None and name in self._live_run.coordination.live:
                await drop_member(self._run_spec.member(name), self._run_spec, self._live_run, fault)
        self._live_run.decide()

    async def _fast_forward(self, member: Member) -> BackendError | None:
        """Bring what an agent keeps in memory to where it stood; the fault, if that cannot be done."""
        events = [record.event for record in self._past]
        used = past_work(member.name, events)[1]
        member = get_acting(member, self.state)
        events = events[_find_replacement(member.name, events) :]
        measure_past(member.name, events, abilities_of(member))
        tries = past_work(member.name, events)[0]
        try:
            fast_forward(member.backend, tries)
            for call in used:
                for tool in member.tools:
                    if tool.keeps_state and tool.spec.name == call.name:
                        await tool.run(decoded(call))
        except Exception as error:  # noqa: BLE001 - one agent's fault is one agent's
            return self._live_run.fault(error)
        return None

    def finish_now(self) -> None:
        """End coordination with the answers that are there; with none yet, at the first one. No attempt follows."""
        coordination = self._live_run.coordination
        is_last = self.state.attempt > self._run_spec.policy.coordination.max_orchestration_restarts
        if not coordination.finish_requested and not (coordination.winner is not None and is_last):
            if (asked := self._live_run.caller.asked) is not None:
                self._live_run.record(InputGiven(kind=asked.kind, text="finish with the existing answers"))
            self._live_run.record(FinishRequested())

    def raise_budget(self, control: int, max_usd: float) -> None:
        """Set the cap of the whole run, in US dollars. Does nothing unless it is above the present cap."""
        if self._live_run.caller.carried_out(control) or max_usd <= self.state.budget.max_usd:
            return
        asked = self._live_run.caller.asked
        self._live_run.record(BudgetRaised(control=control, max_usd=max_usd))
        if asked is not None and asked.kind == "budget_reached":
            self._live_run.record(InputGiven(kind="budget_reached", text=f"max_usd {max_usd:g}"))

    def steer(self, control: int, message: str) -> None:
        """Have every agent read this at its next step. The same `control` number twice is one message."""
        if not self._live_run.caller.carried_out(control):
            self._live_run.record(CallerMessage(control=control, message=message))

    async def admit(self, run_id: str) -> None:
        """Let a run begin that a program has prepared which works inside this run."""
        if self._run_spec.nested_runs is not None:
            await self._run_spec.nested_runs.admit(run_id)

    def answer(self, decision: str, question: int | None = None) -> None:
        """Tell the agent that asks what the caller decided. Does nothing if no agent asks any more, or if the open
        question isn't the one of this number.
        """
        caller = self._live_run.caller
        is_open = caller.asked is not None and caller.asked.kind == "question"
        if is_open and question in (None, caller.questions):
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
        with self._live_run.limited(self._run, lambda: self.state.resume_point.only_queued, of=WHOLE_RUN):
            async with self._checking():
                if failure := await self._attempts():
                    await self._keep_best(failure)
                    await self._end_nested_runs()
                    self._live_run.record(failure)
                elif final := self.state.final:
                    completed = await self._completed(final)
                    await self._end_nested_runs()
                    self._live_run.record(completed)
        if self._run.ended_early:
            with anyio.CancelScope(shield=True):
                await self._end_nested_runs()
                await drop_unanswered(self._run_spec, self._live_run, "the run ended before it answered")
            self._live_run.record(
                cancelled(self.state) if self._cancel_requested else timed_out(self.state, self._run_spec.limits)
            )
        with anyio.CancelScope(shield=True):
            await self._live_run.settle()

    def _note_returned(self, seconds: float) -> None:
        """For the process that goes on with the run after this one."""
        if self.state.end is None:
            self._live_run.record(TimeReturned(seconds=seconds))

    @asynccontextmanager
    async def _checking(self) -> AsyncGenerator[None]:
        """Where the run has checks, they run on the base before a model is asked, and on answers as they come."""
        if self._checks is None:
            yield
            return
        if self._checks.commands:
            await self._checks.base()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._checks.attend)
            yield
            tasks.cancel_scope.cancel()

    async def _completed(self, final: Final) -> RunCompleted:
        """The end of a run whose final answer is kept, and whose files are checked once more."""
        completed = await self._completed_run(final)
        if self._checks is None or not self._checks.commands or completed.unkept:
            return completed
        checked = await self._checks.final(final.agent, completed.changes)
        fails = failing(checked, self._live_run.coordination.evidence, self._run_spec.policy.checks_policy)
        return completed.model_copy(update={"failing_checks": fails})

    async def _end_nested_runs(self) -> None:
        """Before the run ends: what they cost is a part of it."""
        if self._run_spec.nested_runs is not None:
            await self._run_spec.nested_runs.end_all()

    async def _completed_run(self, final: Final) -> RunCompleted:
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

    async def _keep_best(self, failure: RunFailed) -> None:
        """Keep the best answer of a run that fails where a success has its final one."""
        if failure.winner is None or failure.answer is None or not self.state.answers:
            return
        workspace = self._run_spec.member(failure.winner).workspace
        try:
            await self._run_spec.answer_store.keep_final(
                failure.winner, failure.answer, workspace, self.state.best_changes
            )
        except Exception as error:  # noqa: BLE001 - the answer itself is in the journal
            self._live_run.fault(error)

    # -- attempts -------------------------------------------------------------------------------------------------

    async def _attempts(self) -> RunFailed | None:
        """Attempt after attempt, until the winner is content with its final answer or no restart is left.

        A further attempt that comes to nothing leaves the answer of the one before standing.
        """
        policy = self._run_spec.policy.coordination
        begun = self.state.attempt_started or self._live_run.record(AttemptStarted(attempt=1))
        while True:
            before = self.state.earlier_final
            briefing = Briefing(before.answer, begun.reason, begun.instructions) if before else None
            attempt = Attempt(self._run_spec, self._live_run, begun.attempt, briefing)
            failure = await self._attempt_once(attempt)
            final = self.state.final
            if failure is not None:
                return None if final else failure
            closing = self._live_run.coordination.finish_requested or self.state.budget_reached
            if final is None or begun.attempt > policy.max_orchestration_restarts or closing:
                return None
            judgement = await self._judge(final, attempt)
            if judgement.sufficient or self._live_run.coordination.finish_requested:
                return None
            begun = self._live_run.record(
                AttemptStarted(attempt=begun.attempt + 1, reason=judgement.reason, instructions=judgement.instructions)
            )

    async def _judge(self, final: Final, attempt: Attempt) -> AnswerEvaluated:
        """The winner's judgement, from the journal as far as it is there."""
        at = self.state.resume_point
        if at.judged:
            return at.judged
        member = self._run_spec.member(final.agent)
        if at.judging:
            judgement = verdict(member, at.judging)
        else:
            judgement = await evaluate(member, final.answer, attempt)
        return self._live_run.record(judgement)

    async def _attempt_once(self, attempt: Attempt) -> RunFailed | None:
        """One coordination and its final answer."""
        if self.state.resume_point.presented:
            return None
        if self._run_spec.policy.skip_coordination_rounds:
            return await self._first_agent_presents(attempt)
        winner = await coordinate(attempt)
        if winner is None:
            return await self._nobody_left()
        self._live_run.record(await final_answer(attempt, winner))
        return None

    async def _first_agent_presents(self, attempt: Attempt) -> RunFailed | None:
        """Without coordination there is nothing to fall back on."""
        member = self._run_spec.team[0]
        try:
            await learn_window(member)
            answer = await present(member, attempt, tuple(self.state.resume_point.presentation))
        except BackendError as error:
            await drop_member(member, self._run_spec, self._live_run, error)
            return await self._nobody_left()
        self._live_run.record(await presented(member, attempt, answer))
        return None

    async def _nobody_left(self) -> RunFailed:
        """Where nobody answered, checks say which of the unfinished files are the best."""
        if self._checks is not None and not self.state.answers:
            await self._checks.unfinished()
        return nobody_left(self.state)


# ---------------------------------------------------------------------------------------------------------------------
# What one agent had done before its run was resumed, for a backend and tools that keep their place in memory.
# Not the run's state but an agent's memory: read from the journal once, when a run is resumed.


def _find_replacement(agent: str, events: Sequence[AnyEvent | UnknownEvent]) -> int:
    """Return where the agent's present model began."""
    places = (place for place, event in enumerate(events) if isinstance(event, ModelReplaced) and event.agent == agent)
    return max(places, default=0)


def measure_past(agent: str, events: Iterable[AnyEvent | UnknownEvent], abilities: Abilities) -> None:
    """Let `abilities` know what the provider counted of the agent's calls, and which parts of them it refused."""
    sent = dict[str, int]()
    for event in events:
        if not isinstance(event, CallEvent) or event.agent != agent:
            continue
        match event:
            case ModelCallStarted(usage_if_lost=Usage() as estimated):
                sent[event.call_id] = estimated.input_tokens
            case ModelReplied() if event.call_id in sent:
                abilities.measure(sent[event.call_id], event.usage)
            case ModelCallRetried():
                abilities.recall(event.message)
            case ModelCallStarted() | ModelReplied() | ModelCallFailed() | ModelCallAborted():
                pass
            case ModelCallWaiting() | ModelCallAdmitted() | TextDelta() | ToolStarted() | ToolFinished():
                pass
            case _:
                assert_never(event)


def past_work(agent: str, events: Iterable[AnyEvent | UnknownEvent]) -> tuple[list[PastCall], list[ToolCall]]:
    """Every try to call the agent's model that has ended, and every ordinary tool call that did what it should; both in
    order.
    """
    tries, used, unfinished, coordinates = list[PastCall](), list[ToolCall](), list[ToolCall](), False
    for event in events:
        if not isinstance(event, CallEvent) or event.agent != agent:
            continue
        match event:
            case ModelCallStarted():
                coordinates = event.purpose == "coordinate"
            case ModelReplied():
                unfinished = [*calls_of(event)]
                tries.append(PastCall(coordinates, native_calls(event)))
            case ModelCallRetried() | ModelCallFailed() | ModelCallAborted():
                tries.append(PastCall(coordinates))
            case ToolFinished():
                for call in [call for call in unfinished if (call.id, call.name) == (event.call_id, event.name)][:1]:
                    unfinished.remove(call)
                    used += [] if event.is_error else [call]
            case ModelCallWaiting() | ModelCallAdmitted() | TextDelta() | ToolStarted():
                pass
            case _:
                assert_never(event)
    return tries, used


# ---------------------------------------------------------------------------------------------------------------------
# One coordination: every agent works round after round, until a winner is decided or no agent is left. An agent that
# fails is dropped, and the others go on.


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
        await drop_member(member, attempt.run_spec, attempt.live_run, fault)


async def drop_member(member: Member, run_spec: RunSpec, live_run: LiveRun, fault: BackendError) -> None:
    """Drop an agent, with what its copies of the caller's files hold."""
    live_run.drop(member.name, fault, await left_behind(member, run_spec, live_run))


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
        playing = _choose_model(member, live_run)
        await _play(playing, attempt, Round.resume(playing, attempt, tuple(events)))
    while True:
        match AgentView(live_run.coordination, member.name).get_duty():
            case Rest():
                return
            case Wait():
                await live_run.change()
            case Work() as work:
                number, playing = live_run.state.agents[member.name].round + 1, _choose_model(member, live_run)
                await _play(playing, attempt, Round.begin(playing, attempt, number, work))


def _choose_model(member: Member, live_run: LiveRun) -> Member:
    """Return the agent with the model that plays its next round: its fallback's, where that judges a tie."""
    stage = live_run.coordination.stage
    judges = stage is not None and stage.by_fallback and member.name in stage.agents
    return member.fallback if judges and member.fallback is not None else member


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
    """Give the stragglers their time from the first answer on (see `TeamLimits`), our own queue and a person's thinking
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
        waited = 0.0
        while asked == live_run.coordination.asked and (awaited := live_run.coordination.unanswered):
            limit = Countdown(attempt.run_spec.limits.get_first_answer_wait(awaited) - waited)
            with live_run.limited(limit, stands):
                while asked == live_run.coordination.asked and awaited == live_run.coordination.unanswered:
                    await live_run.change()
            if limit.ended_early:
                break
            waited += limit.seconds - limit.left
        if asked == live_run.coordination.asked and (unanswered := live_run.coordination.unanswered):
            live_run.record(FirstAnswersClosed(awaited=unanswered))
        while asked == live_run.coordination.asked:
            await live_run.change()
        before = asked
