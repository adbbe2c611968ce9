"""The final answer of an attempt: the winner writes it, knowing all answers and votes, or its answer stands as it was.
It judges what it wrote if another attempt is possible.
"""

from collections.abc import Sequence
from contextlib import suppress

from massgen_mcp.backends.base import ModelRequest, UserMessage
from massgen_mcp.config.findings import Findings, SourcedFinding
from massgen_mcp.config.models.orchestrator import OrchestratorConfig
from massgen_mcp.coordination.answer_text import is_visible
from massgen_mcp.coordination.state import Coordination
from massgen_mcp.coordination.written_tests import shown_by_script
from massgen_mcp.countdown import Countdown
from massgen_mcp.errors import BackendError
from massgen_mcp.events.agent_work import ModelReplied, WorkEvent
from massgen_mcp.events.coordination import (
    AnswerEvaluated,
    AnswerPresented,
    AnswerSubmitted,
    PresentationFailed,
    PresentationStarted,
    WinnerChosen,
)
from massgen_mcp.events.parts import DECIDED_BY_RUNS, Changes, Claim
from massgen_mcp.orchestration import prompts
from massgen_mcp.orchestration.answer_form import formed
from massgen_mcp.orchestration.attempt import Attempt
from massgen_mcp.orchestration.conversation import Conversation, calls_of
from massgen_mcp.orchestration.evidence_text import evidence_of
from massgen_mcp.orchestration.live_run import LiveRun
from massgen_mcp.orchestration.model_calls import ask
from massgen_mcp.orchestration.round_request import (
    describe_checks,
    has_file_tools,
    list_standing_tools,
    shown_changes,
    system_message,
)
from massgen_mcp.orchestration.run_end import check_bounds
from massgen_mcp.orchestration.team import Member, get_acting, make_replacement
from massgen_mcp.orchestration.window import Texts, all_within, list_texts, within
from massgen_mcp.run_state.agents import Vote
from massgen_mcp.run_state.state import RunState
from massgen_mcp.tools.base import Arguments, ToolRefused, WellFormedText, decoded, parse_arguments
from massgen_mcp.tools.workflow import NewAnswer

PresentationEvent = PresentationStarted | PresentationFailed | WorkEvent


async def final_answer(attempt: Attempt, winner: WinnerChosen) -> AnswerPresented:
    """If the winner cannot write it, its latest answer stands in, on the record."""
    run_spec, live_run, state = attempt.run_spec, attempt.live_run, attempt.live_run.state
    standing = next(one for one in state.agents[winner.agent].answers if one.label == winner.label)
    text, tied = with_claims(standing, live_run.coordination, run_spec.policy), state.work_done.tied
    if tied and run_spec.policy.answer_format == "text":
        text = _state_positions(state, tied)
    as_it_stood = AnswerPresented(agent=winner.agent, answer=text, reused=True, changes=standing.changes)
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


def _state_positions(state: RunState, tied: Sequence[str]) -> str:
    """Return the tied answers as one text, for where no agent writes the final answer: each alone would hide the
    others.
    """
    coordination = state.coordination
    parts = [prompts.TIED_BEGINNING]
    for label in tied:
        author = state.agents[coordination.author(label)].info.id
        parts.append(f"{prompts.TIED_POSITION.format(name=author)}\n\n{coordination.content(label).strip()}")
    return "\n\n".join([*parts, prompts.TIED_END])


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
    if winner.agreeing:
        return True  # no agent is left that could write
    coordination = attempt.live_run.coordination
    stages = [coordination.rules.strategy.stage, *(stage.kind for stage in coordination.stages)]
    if winner.outcome in DECIDED_BY_RUNS or winner.outcome == "synthesised" or "test" in stages:
        return True  # the files that were tested are the final ones, and what was written from all was written for it
    if attempt.live_run.state.work_done.tied:
        return False  # one of the tied answers alone would hide the others
    member = attempt.run_spec.member(winner.agent)
    if not has_file_tools(member, attempt):
        return True  # who cannot call tools gains nothing by writing once more what it wrote with the same means
    agreed = winner.outcome == "consensus" or len(attempt.live_run.coordination.answered) == 1
    return policy.final_answer_strategy == "auto" and agreed


async def present(member: Member, attempt: Attempt, past: Sequence[PresentationEvent] = ()) -> str:
    """The final answer, never empty. `past`: the events of its writing, `PresentationStarted` first, where it goes on.
    If the member's model fails, its fallback goes on.

    Raises `BackendError` if the member cannot write one, with reason `internal` where the fault is ours.
    """
    member = get_acting(member, attempt.live_run.state)
    try:
        try:
            return await _present(member, attempt, past)
        except BackendError as error:
            if error.reason != "context_too_small":
                raise
            return await _present(member, attempt, ())  # what the model can read is known now
    except Exception as error:  # noqa: BLE001 - one agent's fault is one agent's
        fault = attempt.live_run.fault(error)
        if (replaced := make_replacement(member, fault)) is None:
            raise fault from None
        attempt.live_run.record(replaced)
    return await present(member, attempt, tuple(attempt.live_run.state.resume_point.presentation))


async def _present(member: Member, attempt: Attempt, past: Sequence[PresentationEvent]) -> str:
    started, *later = past or [_started(member, attempt)]
    if not isinstance(started, PresentationStarted):
        raise TypeError("a presentation begins with PresentationStarted")
    if not past:
        attempt.live_run.record(started)
    talk = Conversation(member, attempt, f"{member.name}.{attempt.number}.present", started)
    if task := started.task or _make_task(member, attempt):
        talk.tell(task, "lasting")
    if attempt.live_run.coordination.answered:
        talk.tell(_record(member, attempt, started), "lasting")
    for event in later:
        if not isinstance(event, PresentationStarted | PresentationFailed):
            talk.take_in(event)
    seconds = attempt.run_spec.limits.round_seconds
    limit, live_run = Countdown(seconds), attempt.live_run
    with live_run.limited(
        limit, lambda: live_run.asks or member.name in live_run.state.resume_point.queued, of=member.name
    ):
        try:
            return await _write_answer(member, attempt, talk)
        finally:
            await member.end_commands()
    message = f"round_timeout_seconds: no final answer within {seconds:g} s; raise it in timeout_settings"
    raise BackendError("timeout", message)


def _started(member: Member, attempt: Attempt) -> PresentationStarted:
    live_run = attempt.live_run
    ballot = live_run.coordination.ballot(member.name, whole=True)
    answers = [live_run.coordination.content(entry.label) for entry in ballot.entries]
    shown: Texts = {
        "answers": [*answers, *(vote.reason for vote in _votes(live_run))],
        "changes": [*shown_changes(live_run, ballot.entries, attempt.run_spec.answer_store).values()],
        "evidence": [*evidence_of(ballot, live_run.coordination, live_run.state.checked_base).values()],
    }
    texts = [*list_texts(shown), *live_run.caller.messages]
    opening, nonce = attempt.nonces(member.name, texts)
    return PresentationStarted(
        agent=member.name,
        heard=len(live_run.caller.messages),
        opening=opening,
        nonce=nonce,
        most=(most := attempt.most_shown(member, texts)),
        shortened=attempt.measure_shares(shown, most),
        task=_make_task(member, attempt),
    )


def _make_task(member: Member, attempt: Attempt) -> str:
    """The task of writing the final answer."""
    usual = prompts.PRESENT if attempt.live_run.coordination.answered else prompts.PRESENT_AT_ONCE
    if attempt.live_run.state.work_done.tied:
        usual = prompts.PRESENT_TIE
    tasks = [] if member.templates.final_presentation_system_message else [usual]
    return "\n\n".join([*tasks, *describe_checks(member, attempt)])


async def _write_answer(member: Member, attempt: Attempt, talk: Conversation) -> str:
    limits = attempt.run_spec.limits
    await member.ready()
    system = system_message(member, attempt, member.templates.final_presentation_system_message)
    tools = member.listed
    while True:
        if reply := talk.reply:
            if not reply.tool_calls:
                return _complete(reply.text, reply, attempt.run_spec.policy)
            if written := _written_answer(reply):
                return _complete(written, reply, attempt.run_spec.policy)
            await talk.use_tools(calls_of(reply))
            talk.reply = None
        if talk.fruitless > limits.enforcement_retries:
            raise BackendError("no_action", f"no valid tool call in {talk.fruitless} replies in a row")
        check_bounds(talk, limits, "no final answer")
        talk.listen()
        request = ModelRequest(system, (), tools, standing_tools=list_standing_tools(member, attempt))
        await talk.ask(request, "present")


def _written_answer(reply: ModelReplied) -> str | None:
    """The answer, where a model goes on to submit it by a call, as it did in the rounds."""
    match reply.tool_calls:
        case (call,) if call.name == prompts.NEW_ANSWER.name:
            with suppress(ToolRefused):
                return parse_arguments(NewAnswer, decoded(calls_of(reply)[0])).content
        case _:
            pass
    return None


def _complete(text: str, reply: ModelReplied, policy: OrchestratorConfig) -> str:
    """A final answer is whole, or it is none."""
    if reply.stop in ("length", "refusal"):
        raise BackendError("bad_reply", "the final answer was cut off at the model's output limit")
    if not is_visible(text):
        raise BackendError("bad_reply", "the model wrote an empty final answer")
    try:
        return formed(text, reply.citations, policy)
    except ToolRefused as refused:
        raise BackendError("bad_reply", f"the final answer: {refused}") from None


def _record(member: Member, attempt: Attempt, started: PresentationStarted) -> str:
    """All answers and votes under the presenter's own neutral names, and what to do with them."""
    live_run, nonce = attempt.live_run, started.nonce
    state = live_run.coordination
    ballot = state.ballot(member.name, whole=True)
    entries = ballot.entries
    names = {entry.label: entry.name for entry in entries}
    answers = [(entry.name, within(state.content(entry.label), started.most)) for entry in entries]
    reasons = [(names[vote.label], within(vote.reason, started.most)) for vote in _votes(live_run)]
    changes = all_within(shown_changes(live_run, entries, attempt.run_spec.answer_store), started.most)
    evidence = all_within(evidence_of(ballot, state, live_run.state.checked_base), started.most)
    own = names[state.label(member.name)]
    parts = [prompts.ballot_block(prompts.ALL_ANSWERS, answers, nonce, own=own, changes=changes, evidence=evidence)]
    if reasons:
        parts.append(prompts.reasons_block(prompts.VOTES, reasons, nonce))
    tied = [names[label] for label in live_run.state.work_done.tied]
    parts.append(prompts.write_block(others=len(answers) > 1, reasons=bool(reasons), tied=tied))
    return "\n\n".join(parts)


def _votes(live_run: LiveRun) -> list[Vote]:
    """The standing votes, in the order of the config, then those of a run-off."""
    state = live_run.state
    return [
        votes[agent]
        for votes in (state.votes, state.run_off_votes)
        for agent in live_run.coordination.seats
        if agent in votes
    ]


class _Restart(Arguments):
    reason: WellFormedText
    instructions: WellFormedText


async def evaluate(member: Member, answer: str, attempt: Attempt) -> AnswerEvaluated:
    """The winner's judgement of the final answer, in one call. Whatever is no clear wish for a restart is content."""
    member = get_acting(member, attempt.live_run.state)
    nonce, most = attempt.opening_nonce(member.name, [answer]), attempt.most_shown(member, [answer])
    request = ModelRequest(
        prompts.system_prompt(prompts.EVALUATE, member.system_message, (), today=attempt.today),
        (*attempt.opening(nonce, most), UserMessage(prompts.final_block(within(answer, most), nonce))),
        (prompts.SUBMIT, prompts.RESTART),
        must_call_tool=True,
    )
    try:
        reply = await ask(
            member,
            request,
            call_id=f"{member.name}.{attempt.number}.evaluate",
            purpose="evaluate",
            live_run=attempt.live_run,
            limits=attempt.run_spec.limits,
        )
        return verdict(member, reply)
    except Exception as error:  # noqa: BLE001 - the final answer stands, whatever goes wrong with its judgement
        fault = attempt.live_run.fault(error)
        return _judged(member, f"the judgement failed ({fault.reason}): {fault}")


def verdict(member: Member, reply: ModelReplied) -> AnswerEvaluated:
    """What the reply to being asked for a judgement amounts to."""
    for call in calls_of(reply):
        if call.name == prompts.RESTART.name:
            try:
                wish = parse_arguments(_Restart, decoded(call))
            except ToolRefused as refused:
                return _judged(member, f"the wish for a restart could not be read: {refused}")
            return AnswerEvaluated(
                agent=member.name, sufficient=False, reason=wish.reason, instructions=wish.instructions
            )
    return _judged(member, "submitted" if reply.tool_calls else "no decision was made")


def _judged(member: Member, reason: str) -> AnswerEvaluated:
    return AnswerEvaluated(agent=member.name, sufficient=True, reason=reason)


# -- how the claims of an answer stand that was written from all answers, as the caller reads it. Pure ----------------


CLAIMS = "Its claims, and the answers of the team that they stand in:"


_SHOWN = {None: "not tried", True: "shown by a script", False: "a script did not show it"}


def with_claims(answer: AnswerSubmitted, state: Coordination, policy: OrchestratorConfig) -> str:
    """The answer with a line for each claim below it; of findings, with three fields more in each."""
    claims = answer.claims or ()
    if not claims:
        return answer.content
    standing = [_standing(claim, state) for claim in claims]
    if policy.answer_format == "text":
        lines = (f"- {claim.text} ({how})" for claim, how in zip(claims, standing, strict=True))
        return "\n".join([answer.content.rstrip(), "", CLAIMS, *lines])
    document = Findings.model_validate_json(answer.content)
    found = tuple(
        SourcedFinding(**one.model_dump(), answers=claim.answers, contradicted_by=claim.contradicted_by, standing=how)
        for one, claim, how in zip(document.findings, claims, standing, strict=True)
    )
    return document.model_copy(update={"findings": found}).model_dump_json(indent=1, serialize_as_any=True)


def _standing(claim: Claim, state: Coordination) -> str:
    count, of = len(claim.answers), next(len(one.subjects) for one in state.stages if one.kind == "synthesise")
    named = f"in {count} of {of}: {', '.join(claim.answers)}" if count > 1 else f"in {claim.answers[0]} alone"
    parts = [named if count else "in none of them"]
    parts += [f"contradicted by {', '.join(claim.contradicted_by)}"] if claim.contradicted_by else []
    if claim.test is not None:
        shown = shown_by_script(claim.test, state.base, state.test_outcomes)
        parts.append(_SHOWN[shown])
    return "; ".join(parts)
