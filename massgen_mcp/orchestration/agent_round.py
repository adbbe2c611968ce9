"""One agent's round: from a ballot to exactly one accepted action.

A step is one model call. Its ordinary tool calls are run, its workflow call is put to the coordination rules; whatever
breaks a rule goes back to the model as a tool result, in this one place.
"""

from collections.abc import Sequence
from typing import assert_never

import anyio

from massgen_mcp.backends.base import WORKFLOW_TOOLS, ModelRequest, ToolCall, ToolSpec, rest
from massgen_mcp.backends.thoughts import thoughts_apart
from massgen_mcp.coordination.agent_view import AgentView
from massgen_mcp.coordination.agreement import find_agreeing
from massgen_mcp.coordination.answer_text import is_visible
from massgen_mcp.coordination.guidance import Ballot, Violation, Work
from massgen_mcp.errors import BackendError
from massgen_mcp.events.agent_work import (
    BallotChanged,
    ConversationCondensed,
    ConversationShortened,
    MessagesShown,
    ModelCallAborted,
    ModelCallFailed,
    ModelReplied,
    RoundStarted,
    RuleViolated,
    ToolFinished,
    ToolStarted,
    WorkEvent,
)
from massgen_mcp.events.coordination import ActionForm, AnswerSubmitted, WrittenTestsSubmitted
from massgen_mcp.events.parts import CitationRecord, Claim, WrittenTest
from massgen_mcp.markers import draw_nonce, strip_markers
from massgen_mcp.orchestration import prompts
from massgen_mcp.orchestration.admission import can_pay_votes
from massgen_mcp.orchestration.answer_form import formed
from massgen_mcp.orchestration.attempt import Attempt
from massgen_mcp.orchestration.call_repair import resolve_choice
from massgen_mcp.orchestration.conversation import Conversation, calls_of
from massgen_mcp.orchestration.evidence_text import goal_text
from massgen_mcp.orchestration.round_request import (
    ROUND_FORMS,
    BallotContents,
    answers_by_name,
    ballot_message,
    ballot_texts,
    find_repeated,
    get_own_task,
    list_standing_tools,
    make_task,
    plain_question,
    shown_changes,
    shown_reasons,
    system_message,
    text_variant,
    works_on_files,
)
from massgen_mcp.orchestration.run_end import MAX_SAME_REFUSALS, check_bounds, never_acted
from massgen_mcp.orchestration.team import Member
from massgen_mcp.orchestration.window import abilities_of, list_texts, measure_shortened
from massgen_mcp.orchestration.written_actions import read_vote, shown_texts
from massgen_mcp.tools.base import ToolRefused
from massgen_mcp.tools.workflow import (
    ClaimArguments,
    NewAnswer,
    SubmittedOutputs,
    SubmittedTests,
    Synthesis,
    VoteArguments,
    parse_action,
)

MAX_UNKNOWN_NAMES = 20
"""So many replies in a row that only call tools that there are not drop no agent."""


class Round:
    """`begin` it with its duty, or `resume` it with its events, then `play` it once.

    The conversation lives as long as the round: every round begins with the same stable prefix (tools, system message,
    question), to which its task and the ballot are appended. The round is a fold over its events, as the conversation.
    """

    def __init__(self, member: Member, attempt: Attempt, opened: RoundStarted) -> None:
        self.number = opened.round
        self._opened = opened
        self._member = member
        self._run_spec = attempt.run_spec
        self._live_run = attempt.live_run
        self._attempt = attempt
        self._ballot = Ballot(member.name, opened.revision, opened.ballot)
        self._form = ROUND_FORMS[opened.kind]
        self.awaits_checks = False
        """It cannot go on before checks of ours have run; that takes nothing of its time."""
        self._violations = 0
        """In a row; a valid tool call sets it back."""
        self._violation: RuleViolated | None = None
        """The last one."""
        self._same_refusals = 0
        """Actions in a row that were refused for the same reason, whatever tools were called between them."""
        self._unknown_names = 0
        """Replies in a row that called only tools that there are not."""
        self._reminded = False
        """Told since the last valid tool call that its turn is not over, and how to act in plain text."""
        form = attempt.live_run.state.agents[member.name].acted_in
        self._writes = form == "vote_line" or (form == "text" and bool(member.tools))
        """It has acted in plain text after a reminder, so it is told at once how to."""
        self._first_text: str | None = None
        """What a model without tools wrote first, whole or not: its answer, if nothing better comes."""
        self._talk = Conversation(member, attempt, f"{member.name}.{attempt.number}.{opened.round}", opened)
        self._judges = bool(opened.ballot)
        """It has been told how to judge answers."""
        self._tell_task(opened.task or make_task(member, attempt, opened.kind, judges=self._judges))
        if opened.notes:
            self._talk.tell(opened.notes, "lasting")
        self._show_ballot(self._form.heading, opened, notes=attempt.live_run.state.agents[member.name].working_notes)

    @classmethod
    def begin(cls, member: Member, attempt: Attempt, number: int, work: Work) -> "Round":
        live_run, notes = attempt.live_run, attempt.run_spec.shared_notes
        reasons = shown_reasons(attempt, work.ballot)
        shown = ballot_texts(live_run, work.ballot, reasons, attempt.run_spec.answer_store)
        texts = list_texts(shown)
        opening, nonce = attempt.nonces(member.name, [*texts, *live_run.caller.messages, notes("")])
        opened = RoundStarted(
            agent=member.name,
            round=number,
            revision=work.ballot.revision,
            ballot=work.ballot.entries,
            heard=len(live_run.caller.messages),
            notes=notes(nonce),
            opening=opening,
            nonce=nonce,
            kind=work.kind,
            reasons=reasons,
            most=(most := attempt.most_shown(member, texts)),
            shortened=attempt.measure_shares(shown, most),
            task=make_task(member, attempt, work.kind, judges=bool(work.ballot.entries)),
        )
        live_run.record(opened)
        return cls(member, attempt, opened)

    @classmethod
    def resume(cls, member: Member, attempt: Attempt, events: Sequence[RoundStarted | WorkEvent]) -> "Round":
        """A round that stands where its events, from `RoundStarted` on, have led it."""
        opened, *later = events
        if not isinstance(opened, RoundStarted):
            raise TypeError("a round begins with RoundStarted")
        resumed = cls(member, attempt, opened)
        for event in later:
            if not isinstance(event, RoundStarted):
                resumed._take_in(event)
        return resumed

    async def play(self) -> None:
        """Work until one action is accepted.

        Raises `BackendError`: with reason `no_action` when no action is accepted within the agent's bounds, with any
        other reason when its model failed for good.
        """
        await self._member.ready()
        while not (self._overtaken or (self._talk.reply and await self._act(self._talk.reply))):
            self._talk.reply = None
            if self._is_out_of_tries and await self._submit_first_text():
                break
            self._check_bounds()
            await self._catch_up()
            await self._member.ready()
            await self._step()
        await rest(self._member.backend)

    @property
    def _is_out_of_tries(self) -> bool:
        retries = self._run_spec.limits.enforcement_retries
        return self._violations > retries or self._same_refusals > max(MAX_SAME_REFUSALS, retries)

    async def _submit_first_text(self) -> bool:
        """Submit what a model without tools wrote first, as nothing better came. True if it stands."""
        if self._first_text is None or self._ballot.entries:
            return False
        text, self._first_text = self._first_text, None
        return await self._submit(None, text, (), "text")

    @property
    def _view(self) -> AgentView:
        return AgentView(self._live_run.coordination, self._member.name)

    @property
    def _overtaken(self) -> bool:
        return self._view.is_overtaken(self._opened.kind)

    @property
    def could_show_less(self) -> bool:
        """Whether a round that begins now would open with less: what the model can read was learned in this one."""
        ballot = self._live_run.coordination.ballot(self._member.name)
        shown = ballot_texts(self._live_run, ballot, self._opened.reasons, self._run_spec.answer_store)
        most = self._attempt.most_shown(self._member, list_texts(shown))
        return most is not None and (self._opened.most is None or most < self._opened.most)

    def _check_bounds(self) -> None:
        if self._is_out_of_tries:
            raise never_acted(max(self._violations, self._same_refusals), self._violation)
        check_bounds(self._talk, self._run_spec.limits, "no accepted action")

    async def _step(self) -> None:
        """Have the model reply, unless its reply could not count any more: then the call is cut off.

        That is so when an agent that may only vote has an outdated ballot: its vote would be refused as stale.
        """
        failure: BackendError | None = None
        might_answer = self._view.may_answer()
        system = system_message(self._member, self._attempt, get_own_task(self._member, self._opened.kind))
        tools = (*self._member.listed, *self._workflow_tools())
        votes_or_answers = self._opened.kind == "answer_or_vote"
        standing = list_standing_tools(self._member, self._attempt) if votes_or_answers else ()
        in_text = text_variant(self._member, self._attempt, self._opened.kind, tools, self._ballot)
        # The last try is made in another way: who failed to call tools may write what it means.
        calls_in_text = self._violations == self._run_spec.limits.enforcement_retries > 1
        may_call = calls_in_text and abilities_of(self._member).takes_tools
        if not (may_call or self._ballot.entries or self._talk.has_calls):
            was_cut = self._violation is not None and self._violation.code == "cut_off"
            in_text = plain_question(self._member, self._attempt, self._opened, brief=was_cut) or in_text
        async with anyio.create_task_group() as tasks:
            if not might_answer:
                tasks.start_soon(self._when_outdated, tasks.cancel_scope)
            try:
                # A model may think aloud first; it is forced when it had to be told that its turn is not over.
                request = ModelRequest(
                    system,
                    (),
                    tools,
                    must_call_tool=self._violations > 0,
                    standing_tools=standing,
                    in_text=in_text,
                    calls_in_text=calls_in_text,
                )
                await self._talk.ask(request, "coordinate")
            except BackendError as error:
                failure = error
            tasks.cancel_scope.cancel()
        must_vote_now = might_answer and not self._view.may_answer()
        if failure and failure.reason == "budget" and must_vote_now and self._ballot.entries:
            return  # no answer is begun any more; a vote may still fit
        if failure:
            raise failure
        if self._talk.reply is None:
            self._talk.steps += 1

    async def _when_outdated(self, scope: anyio.CancelScope) -> None:
        while not (self._overtaken or self._view.is_outdated()):
            await self._live_run.change()
        scope.cancel()

    def _take_in(self, event: WorkEvent) -> None:
        """Let an event of this round have its effect on what the agent knows."""
        if isinstance(event, ModelReplied):
            self._forgive()
        self._talk.take_in(event)
        match event:
            case BallotChanged():
                self._ballot = Ballot(self._member.name, event.revision, event.ballot)
                if event.ballot and not self._judges:
                    self._judges = True
                    self._tell_task(event.task or self._judging)
                self._show_ballot(prompts.BALLOT_CHANGED, event)
            case RuleViolated():
                self._violations += event.counts
                is_same = self._violation is not None and self._violation.code == event.code
                is_refusal = event.counts and bool(event.calls)
                self._same_refusals = is_refusal + (self._same_refusals if is_same else 0)
                self._unknown_names += event.code == "unknown_tool"
                self._violation = event
                self._reminded = self._reminded or event.code in ("no_action", "unclear_vote")
                self._tell_violation(event)
                self._talk.reply = None
            case ModelReplied() | ModelCallAborted() | ModelCallFailed() | ToolStarted() | ToolFinished():
                pass
            case MessagesShown() | ConversationShortened() | ConversationCondensed():
                pass  # the conversation has taken it in
            case _:
                assert_never(event)

    # -- what the model sees ------------------------------------------------------------------------------------

    def _workflow_tools(self) -> tuple[ToolSpec, ...]:
        return self._form.tools(self._live_run.coordination, self._ballot)

    async def _catch_up(self) -> None:
        """Show the agent what the caller said, and, if its ballot is outdated, the current one; it goes on working."""
        self._talk.listen()
        name = self._member.name
        if self._view.is_outdated():
            await self._all_checked()
            ballot = self._live_run.coordination.ballot(name)
            reasons = shown_reasons(self._attempt, ballot)
            shown = ballot_texts(self._live_run, ballot, reasons, self._run_spec.answer_store)
            texts = list_texts(shown)
            changed = BallotChanged(
                agent=name,
                revision=ballot.revision,
                ballot=ballot.entries,
                nonce=draw_nonce(texts),
                reasons=reasons,
                most=(most := self._attempt.most_shown(self._member, texts)),
                shortened=measure_shortened(shown, most),
                task="" if self._judges or not ballot.entries else self._judging,
            )
            self._record(changed)

    @property
    def _judging(self) -> str:
        """The task from when there are answers on."""
        return make_task(self._member, self._attempt, self._opened.kind, judges=True)

    def _tell_task(self, task: str) -> None:
        """The user's own words may leave nothing to say."""
        if task:
            self._talk.tell(task, "lasting")

    async def _all_checked(self) -> None:
        """Until the checks of every answer on the ballot have run."""
        self.awaits_checks = self._live_run.coordination.checks.is_pending
        self._live_run.look_at_limits()
        while self._live_run.coordination.checks.is_pending:
            await self._live_run.change()
        self.awaits_checks = False
        self._live_run.look_at_limits()

    def _show_ballot(self, heading: str, shown: RoundStarted | BallotChanged, *, notes: str = "") -> None:
        """Put the ballot before the agent, and the answers' files within its reach."""
        entries, state = self._ballot.entries, self._live_run.coordination
        if not entries and self._opened.kind == "answer_or_vote":
            if goal := goal_text(state):
                self._talk.tell(prompts.tests_block(goal, shown.nonce, prompts.GOAL), "lasting")
            return
        changes = shown_changes(self._live_run, entries, self._run_spec.answer_store)
        contents = BallotContents(self._ballot, state, changes, self._live_run.state.checked_base)
        text = ballot_message(contents, shown, heading=heading, request=self._form.request, notes=notes)
        if self._writes and self._form.votes:
            text = f"{text}\n\n{prompts.IF_UNABLE}{prompts.text_vote(self._choices)}."
        self._talk.tell(text, "ballot")
        if self._member.workspace is not None:
            self._member.workspace.set_peers(self._live_run.files_of(entries, self._run_spec.answer_store))

    # -- what the model does ------------------------------------------------------------------------------------

    async def _act(self, reply: ModelReplied) -> bool:
        """Do what the reply asks for, as far as it is not done. True when an action was accepted: the round is over."""
        workflow = [call for call in calls_of(reply) if call.name in WORKFLOW_TOOLS]
        ordinary = tuple(call for call in calls_of(reply) if call.name not in WORKFLOW_TOOLS)
        only_plan = self._run_spec.policy.coordination.planning_instruction is not None
        ending = [tool.name for tool in self._workflow_tools()]
        await self._talk.use_tools(ordinary, only_plan=only_plan, ending=ending)
        results = self._talk.results
        same = len({(call.name, call.arguments) for call in workflow}) == 1
        if workflow and reply.stop in ("length", "refusal"):
            # What was cut off may still read like a whole answer.
            self._violated("cut_off", prompts.CUT_OFF, tuple(call.id for call in workflow))
        elif same:
            return await self._put(workflow[0], reply)
        elif workflow:
            self._violated("one_action", prompts.ONE_ACTION, tuple(call.id for call in workflow))
        elif not results:
            return await self._act_in_text(reply)
        elif not self._forgive():
            offered = {tool.spec.name for tool in self._member.offered}
            if offered.isdisjoint(call.name for call in ordinary):
                # A model may need some steps to give up the names that it learned: it is asked in text, not dropped.
                tries_on = self._violations == self._run_spec.limits.enforcement_retries
                is_patient = self._unknown_names < MAX_UNKNOWN_NAMES
                self._violated("unknown_tool", results[0].result, counts=not (tries_on and is_patient))
            else:
                self._violated("invalid_call", results[0].result)
        return False

    async def _act_in_text(self, reply: ModelReplied) -> bool:
        """Take a reply without a call for an action, where it can only be meant as one."""
        text = reply.text.strip()
        may_answer = self._view.may_answer()
        takes_none = reply.tools_as_text and not abilities_of(self._member).takes_tools
        if takes_none and text and may_answer and not reply.unreadable_call:
            self._first_text = self._first_text or text
        if reply.stop in ("length", "refusal"):
            self._violated("cut_off", prompts.CUT_OFF_TEXT)
            return False
        if reply.unreadable_call:
            self._violated("unreadable_call", prompts.UNREADABLE)
            return False
        knows_how_to_vote = self._reminded or self._writes or reply.tools_as_text
        if text and self._ballot.entries and self._form.votes and knows_how_to_vote:
            vote = read_vote(text, self._ballot_names, shown_texts(self._talk.messages, of_caller=True))
            if vote == "unclear":
                self._violated("unclear_vote", prompts.unclear_vote(self._choices))
                return False
            if vote is not None:
                return self._vote(
                    reply, None, VoteArguments(agent_id=vote.name, reason=vote.reason or prompts.NO_REASON), "vote_line"
                )
        own = find_repeated(self._live_run.coordination, self._ballot, text)
        if reply.tools_as_text and self._form.votes and own in self._choices:
            return self._vote(reply, None, VoteArguments(agent_id=str(own)), "vote_line", repeated=True)
        no_tools = takes_none and not works_on_files(self._member, self._attempt)
        only_answers = not self._ballot.entries and (no_tools or not self._member.offered)
        if text and may_answer and (self._reminded or only_answers):
            return await self._submit(None, text, reply.citations, "text")
        workflow = [tool.name for tool in self._workflow_tools()]
        own = self._member.templates.enforcement_message
        choices = self._choices if self._form.votes else []
        is_empty = not (text or reply.reasoning)
        code = ("no_action", "empty_reply")[is_empty]
        is_first_text = bool(self._unknown_names) and not self._reminded
        reminder = prompts.enforcement(workflow, choices, may_answer=may_answer, own=own)
        self._violated(code, reminder, counts=not is_first_text)
        return False

    @property
    def _ballot_names(self) -> list[str]:
        """The names on the ballot."""
        return [entry.name for entry in self._ballot.entries]

    @property
    def _choices(self) -> list[str]:
        """Those of them that may be voted for."""
        return [entry.name for entry in self._live_run.coordination.checks.get_votable(self._ballot).entries]

    def _forgive(self) -> bool:
        """A valid tool call in a reply without an action sets the count of violations back."""
        reply = self._talk.reply
        if reply is None or any(call.name in WORKFLOW_TOOLS for call in reply.tool_calls):
            return False
        if not any(result.valid for result in self._talk.results):
            return False
        self._violations, self._unknown_names, self._reminded = 0, 0, False
        return True

    async def _put(self, call: ToolCall, reply: ModelReplied) -> bool:
        """Put a workflow call to the rules. True if it was accepted."""
        try:
            action = parse_action(call)
        except ToolRefused as error:
            return self._refuse(call, "bad_arguments", str(error))
        form: ActionForm = next(record.form for record in reply.tool_calls if record.id == call.id)
        match action:
            case NewAnswer():
                return await self._submit(call, action.content, reply.citations, form)
            case VoteArguments():
                return self._vote(reply, call, action, form)
            case SubmittedTests():
                tests = [WrittenTest(title=one.title, script=one.script, expected=one.expected) for one in action.tests]
                return self._record_tests(call, self._view.submit_tests(tests), form)
            case SubmittedOutputs():
                submitted = self._view.submit_outputs(action.outputs)
                return self._record_tests(call, submitted, form)
            case Synthesis():
                refused_before = self._violation is not None and self._violation.code == "unknown_source"
                named = [_claim(one) for one in action.claims]
                claims = self._view.cite_answers(named, refused_before=refused_before)
                if isinstance(claims, Violation):
                    return self._refuse(call, claims.code, prompts.refusal(claims))
                return await self._submit(call, action.content, reply.citations, form, claims)
            case _:
                assert_never(action)

    def _vote(
        self,
        reply: ModelReplied,
        call: ToolCall | None,
        action: VoteArguments,
        form: ActionForm,
        *,
        repeated: bool = False,
    ) -> bool:
        """Put a vote to the rules. True if it was accepted. `repeated`: the reply is the agent's own answer."""
        state = self._live_run.coordination
        chosen = resolve_choice(action.agent_id, self._ballot_names)
        reason = action.reason
        if not is_visible(reason):
            reason = prompts.NO_REASON
        same_as = action.same_as and [resolve_choice(one, self._ballot_names) for one in action.same_as]
        takes_none = reply.tools_as_text and not abilities_of(self._member).takes_tools
        constrained = takes_none and not works_on_files(self._member, self._attempt)
        if constrained and same_as is None:
            same_as = find_agreeing(answers_by_name(state, self._ballot), chosen, self._run_spec.question)
        vote = self._view.vote(chosen, reason, same_as)
        if isinstance(vote, Violation):
            return self._refuse(call, vote.code, prompts.refusal(vote), counts=vote.counts)
        self._live_run.record(vote.model_copy(update={"form": form, "constrained": constrained, "repeated": repeated}))
        return True

    def _record_tests(self, call: ToolCall, submitted: WrittenTestsSubmitted | Violation, form: ActionForm) -> bool:
        if isinstance(submitted, Violation):
            return self._refuse(call, submitted.code, prompts.refusal(submitted))
        self._live_run.record(submitted.model_copy(update={"form": form}))
        return True

    async def _submit(
        self,
        call: ToolCall | None,
        answer: str,
        citations: Sequence[CitationRecord],
        form: ActionForm,
        claims: tuple[Claim, ...] | None = None,
    ) -> bool:
        """The answer's text and files are kept before it stands, so that whoever sees it can read them. If they cannot
        be kept the answer stands without them, because it was paid for, and the agent falls out.
        """
        name = self._member.name
        _, content = thoughts_apart(answer)
        content = strip_markers(content)
        if prompts.is_echo(content):
            return self._refuse(call, "echo", prompts.ECHO)
        try:
            content = formed(content, citations, self._run_spec.policy, claims)
        except ToolRefused as refused:
            return self._refuse(call, "wrong_format", str(refused))
        verdict = self._put_answer(content, claims)
        kept, fault = None, None
        if not isinstance(verdict, Violation):
            try:
                kept = await self._run_spec.answer_store.keep(
                    self._attempt.number, name, content, self._member.workspace
                )
            except Exception as error:  # noqa: BLE001 - one agent's fault is one agent's
                fault = self._live_run.fault(error)
            verdict = self._put_answer(content, claims)
        if isinstance(verdict, Violation) and verdict.code == "too_late":
            raise BackendError("cut_off", prompts.refusal(verdict))
        if isinstance(verdict, Violation):
            return self._refuse(call, verdict.code, prompts.refusal(verdict), counts=verdict.counts)
        where = {"path": kept.path, "changes": kept.changes} if kept is not None else {}
        self._live_run.record(verdict.model_copy(update={**where, "form": form}))
        if fault is not None:
            raise fault
        return True

    def _put_answer(self, content: str, claims: tuple[Claim, ...] | None) -> AnswerSubmitted | Violation:
        """Put an answer to the rules; a late one counts if the budget has room for the votes that it costs."""
        state, name = self._live_run.coordination, self._member.name
        pays = not AgentView(state, name).is_late() or can_pay_votes(self._live_run)
        return self._view.answer(content, claims, can_pay_votes=pays)

    def _refuse(self, call: ToolCall | None, code: str, message: str, *, counts: bool = True) -> bool:
        ids: tuple[str, ...] = ()
        if call and self._talk.reply:  # the same call twice is refused twice
            ids = tuple(one.id for one in calls_of(self._talk.reply) if one.name in WORKFLOW_TOOLS)
        self._violated(code, message, ids, counts=counts)
        return False

    def _violated(self, code: str, message: str, calls: tuple[str, ...] = (), *, counts: bool = True) -> None:
        self._record(RuleViolated(agent=self._member.name, code=code, message=message, calls=calls, counts=counts))

    def _tell_violation(self, event: RuleViolated) -> None:
        """Refused calls are told so as their results; a reply without any call, in a message. What is wrong with a
        call of an ordinary tool is in its result.
        """
        calls = calls_of(self._talk.reply) if self._talk.reply else ()
        for call in calls:
            if call.name in WORKFLOW_TOOLS and call.id in event.calls:
                self._talk.reply_to(call, event.message, is_error=True)
        if not event.calls and event.code not in ("invalid_call", "unknown_tool"):
            self._talk.tell(event.message)

    def _record(self, event: WorkEvent) -> None:
        self._live_run.record(event)
        self._take_in(event)


def _claim(one: ClaimArguments) -> Claim:
    test = WrittenTest(title=one.claim, script=one.script, expected=one.prints) if one.script and one.prints else None
    return Claim(text=one.claim, answers=one.answers, contradicted_by=one.contradicted_by, test=test)
