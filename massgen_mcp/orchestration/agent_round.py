"""One agent's round: from a ballot to exactly one accepted action.

A step is one model call. Its ordinary tool calls are run, its workflow call is put to the coordination rules; whatever
breaks a rule goes back to the model as a tool result, in this one place. Must not know other agents or providers.
"""

import anyio

from massgen_mcp.backends.base import (
    AssistantMessage,
    Message,
    ModelRequest,
    ToolCall,
    ToolResultMessage,
    ToolSpec,
    UserMessage,
)
from massgen_mcp.backends.calling import Reply
from massgen_mcp.coordination.guidance import Violation, Work
from massgen_mcp.errors import BackendError
from massgen_mcp.events import AnswerSubmitted, BallotChanged, RoundStarted, RuleViolated
from massgen_mcp.orchestration import prompts
from massgen_mcp.orchestration.attempt import Attempt
from massgen_mcp.orchestration.model_calls import ask
from massgen_mcp.orchestration.team import Member
from massgen_mcp.orchestration.tool_calls import run_tools
from massgen_mcp.tools.base import ToolRefused
from massgen_mcp.tools.workflow import WORKFLOW_TOOLS, NewAnswer, parse_action


class Round:
    """`play` it once. The conversation lives as long as the round: every round begins with the same stable prefix
    (system message, question), to which the ballot is appended.
    """

    def __init__(self, member: Member, attempt: Attempt, number: int, work: Work) -> None:
        self._member = member
        self._assignment = attempt.assignment
        self._floor = attempt.floor
        self._attempt = attempt.number
        self._number = number
        self._ballot = work.ballot
        self._messages: list[Message] = [*attempt.opening]
        self._violations = 0
        """In a row; a valid tool call sets it back."""

    async def play(self) -> None:
        """Work until one action is accepted.

        Raises `BackendError`: with reason `no_action` when no action is accepted within the agent's bounds, with any
        other reason when its model failed for good.
        """
        name, ballot, limits = self._member.name, self._ballot, self._assignment.limits
        self._floor.record(
            RoundStarted(agent=name, round=self._number, revision=ballot.revision, ballot=ballot.entries)
        )
        if shared := self._assignment.shared_notes():
            self._messages.append(UserMessage(shared))
        self._show_ballot(prompts.BALLOT_FIRST)
        for step in range(1, limits.steps_per_round + 1):
            self._catch_up()
            reply = await self._ask(f"{name}.{self._attempt}.{self._number}.{step}")
            if reply is None:
                continue
            self._messages.append(AssistantMessage(reply.text, reply.tool_calls, reply.replay))
            if await self._act(reply):
                return
            if self._violations > limits.enforcement_retries:
                raise BackendError("no_action", f"no accepted action in {self._violations} attempts in a row")
        raise BackendError("no_action", f"no accepted action in {limits.steps_per_round} steps (max_steps_per_round)")

    async def _ask(self, call_id: str) -> Reply | None:
        """The model's next reply; None if it could not count any more and was cut off.

        That is so when an agent that may only vote has an outdated ballot: its vote would be refused as stale.
        """
        request = ModelRequest(self._system(), tuple(self._messages), self._tools(), must_call_tool=True)
        reply: Reply | BackendError | None = None
        async with anyio.create_task_group() as tasks:
            if not self._floor.state.may_answer(self._member.name):
                tasks.start_soon(self._when_outdated, tasks.cancel_scope)
            try:
                reply = await ask(
                    self._member,
                    request,
                    call_id=call_id,
                    purpose="coordinate",
                    floor=self._floor,
                    limits=self._assignment.limits,
                )
            except BackendError as error:
                reply = error
            tasks.cancel_scope.cancel()
        if isinstance(reply, BackendError):
            raise reply
        return reply

    async def _when_outdated(self, scope: anyio.CancelScope) -> None:
        while not self._floor.state.outdated(self._member.name):
            await self._floor.change()
        scope.cancel()

    # -- what the model sees ------------------------------------------------------------------------------------

    def _system(self) -> str:
        alone = len(self._assignment.team) == 1
        style = self._assignment.style
        notes: list[str] = []
        if not alone and (criterion := prompts.CONTENT_WITH[style.voting_sensitivity]):
            notes.append(criterion)
        if style.planning_instruction is not None:
            notes.append(style.planning_instruction)
        notes.extend(self._member.notes)
        if self._member.workspace is not None:
            notes.append(prompts.FILES if alone else f"{prompts.FILES} {prompts.PEER_FILES}")
            if names := self._assignment.context_names:
                notes.append(prompts.CONTEXT_FILES.format(names=", ".join(names)))
        task = prompts.COORDINATE_ALONE if alone else prompts.COORDINATE
        return prompts.system_prompt(task, self._member.system_message, notes)

    def _tools(self) -> tuple[ToolSpec, ...]:
        """Only what is valid now: no vote without answers, no new answer beyond the limit."""
        workflow: list[ToolSpec] = []
        if self._floor.state.may_answer(self._member.name):
            workflow.append(prompts.NEW_ANSWER)
        if self._ballot.entries:
            workflow.append(prompts.vote_tool(self._ballot))
        return (*(tool.spec for tool in self._member.tools), *workflow)

    def _catch_up(self) -> None:
        """Show the current ballot to an agent whose own one is outdated; it goes on with its work."""
        name, state = self._member.name, self._floor.state
        if not state.outdated(name):
            return
        self._ballot = state.ballot(name)
        self._floor.record(BallotChanged(agent=name, revision=self._ballot.revision, ballot=self._ballot.entries))
        self._show_ballot(prompts.BALLOT_CHANGED)

    def _show_ballot(self, heading: str) -> None:
        """Put the ballot before the agent, and the answers' files within its reach."""
        state, entries = self._floor.state, self._ballot.entries
        if not entries:
            return
        text = prompts.ballot_block(heading, [(entry.name, state.content(entry.label)) for entry in entries])
        if not state.may_answer(self._member.name):
            text = f"{text}\n\n{prompts.VOTE_ONLY}"
        self._messages.append(UserMessage(text))
        if self._member.workspace is not None:
            self._member.workspace.set_peers(self._floor.files_of(entries, self._assignment.gallery))

    # -- what the model does ------------------------------------------------------------------------------------

    async def _act(self, reply: Reply) -> bool:
        """Do what the reply asks for. True when an action was accepted and the round is over."""
        workflow = [call for call in reply.tool_calls if call.name in WORKFLOW_TOOLS]
        others = tuple(call for call in reply.tool_calls if call.name not in WORKFLOW_TOOLS)
        only_plan = self._assignment.style.planning_instruction is not None
        outcomes = await run_tools(self._member, others, self._floor, only_plan=only_plan)
        self._messages.extend(outcome.message for outcome in outcomes)
        if len(workflow) == 1:
            return await self._put(workflow[0])
        if workflow:
            self._messages.extend(_refusal(call, prompts.ONE_ACTION) for call in workflow)
            self._violated("one_action", prompts.ONE_ACTION)
        elif not outcomes:
            names = " and ".join(f"`{tool.name}`" for tool in self._tools() if tool.name in WORKFLOW_TOOLS)
            self._messages.append(UserMessage(prompts.ENFORCE.format(names=names)))
            self._violated("no_action", "replied without a tool call")
        elif any(outcome.valid for outcome in outcomes):
            self._violations = 0
        else:
            self._violated("invalid_call", outcomes[0].message.text)
        return False

    async def _put(self, call: ToolCall) -> bool:
        """Put a workflow call to the rules. True if it was accepted."""
        try:
            action = parse_action(call)
        except ToolRefused as error:
            return self._refused(call, "bad_arguments", str(error))
        if isinstance(action, NewAnswer):
            verdict = await self._submit(action)
        else:
            verdict = self._floor.state.vote(self._member.name, action.agent_id, action.reason)
        if isinstance(verdict, Violation):
            return self._refused(call, verdict.code, prompts.refusal(verdict), counts=verdict.counts)
        self._floor.record(verdict)
        await self._floor.settle()
        return True

    async def _submit(self, action: NewAnswer) -> AnswerSubmitted | Violation:
        """The answer's text and files are kept before it stands, so that whoever sees it can read them."""
        name = self._member.name
        verdict = self._floor.state.answer(name, action.content)
        if isinstance(verdict, Violation):
            return verdict
        path = await self._assignment.gallery.keep(self._attempt, name, action.content, self._member.workspace)
        verdict = self._floor.state.answer(name, action.content)
        return verdict if isinstance(verdict, Violation) else verdict.model_copy(update={"path": path})

    def _refused(self, call: ToolCall, code: str, message: str, *, counts: bool = True) -> bool:
        self._messages.append(_refusal(call, message))
        self._violated(code, message, counts=counts)
        return False

    def _violated(self, code: str, message: str, *, counts: bool = True) -> None:
        self._floor.record(RuleViolated(agent=self._member.name, code=code, message=message, counts=counts))
        self._violations += counts


def _refusal(call: ToolCall, message: str) -> ToolResultMessage:
    return ToolResultMessage(call.id, call.name, message, is_error=True)
