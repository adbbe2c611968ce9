"""One agent's talk with its model in one piece of work: a round, or the writing of the final answer.

What the model has been told is a fold over events: while a run goes on the same `take_in` builds the conversation that
rebuilds it when a lost run is resumed.
"""

from typing import assert_never

from massgen_mcp.backends.base import (
    AssistantMessage,
    Message,
    ModelRequest,
    ToolCall,
    ToolResultMessage,
    ToolSpec,
    UserMessage,
)
from massgen_mcp.events.agent_work import (
    BallotChanged,
    CallPurpose,
    MessagesShown,
    ModelCallAborted,
    ModelReplied,
    RoundStarted,
    RuleViolated,
    ToolFinished,
    ToolStarted,
    WorkEvent,
)
from massgen_mcp.events.coordination import PresentationStarted
from massgen_mcp.markers import draw_nonce
from massgen_mcp.orchestration import prompts
from massgen_mcp.orchestration.attempt import Attempt
from massgen_mcp.orchestration.model_calls import ask
from massgen_mcp.orchestration.team import Member
from massgen_mcp.orchestration.tool_calls import run_tools

WARNED_STEPS = 5
"""So many replies before the last one an agent is told how many there are."""


class Conversation:
    def __init__(self, member: Member, attempt: Attempt, name: str, opened: RoundStarted | PresentationStarted) -> None:
        """`name` begins the ids of its calls."""
        self.messages: list[Message] = [*attempt.opening(opened.opening)]
        self.steps = 0
        """Model calls that have ended."""
        self.reply: ModelReplied | None = None
        """The last reply, as long as it has not been acted upon wholly."""
        self.results: list[ToolFinished] = []
        """The results of its ordinary tool calls, in order."""
        self._begun: set[str] = set()
        """Ids of its tool calls that were begun and have no result."""
        self._native: set[str] = set()
        """Ids of the calls of the last reply that are no text."""
        self._fruitless = 0
        """`fruitless` before the last reply."""
        self._member = member
        self._live_run = attempt.live_run
        self._limits = attempt.run_spec.limits
        self._name = name
        self._heard = 0
        self._add_messages_heard(opened.heard, opened.nonce)

    @property
    def fruitless(self) -> int:
        """Replies in a row, the last one included, that called tools and none of them validly."""
        return self._fruitless + 1 if self.results and not any(result.valid for result in self.results) else 0

    def take_in(self, event: WorkEvent) -> None:
        """Let an event of this agent be part of the talk."""
        match event:
            case ModelReplied():
                called = native_calls(event)
                self.messages.append(AssistantMessage(event.text, called, event.replay))
                self._native = {call.id for call in called}
                self.steps += 1
                self._fruitless = self.fruitless
                self.reply, self.results, self._begun = event, [], set()
            case ModelCallAborted():
                self.steps += 1
            case ToolStarted():
                self._begun.add(event.call_id)
            case ToolFinished():
                self._begun.discard(event.call_id)
                text = prompts.result_block(event.name, event.result, event.nonce)
                self.reply_to(ToolCall(event.call_id, event.name, ""), text, is_error=event.is_error)
                self.results.append(event)
            case MessagesShown():
                self._add_messages_heard(event.heard, event.nonce)
            case BallotChanged() | RuleViolated():
                pass  # the round says of these what its rules are
            case _:
                assert_never(event)

    def tell(self, text: str) -> None:
        self.messages.append(UserMessage(text))

    def reply_to(self, call: ToolCall, text: str, *, is_error: bool) -> None:
        """Tell what came of a call of the last reply: as its result, or in words where it was only written."""
        if call.id in self._native:
            self.messages.append(ToolResultMessage(call.id, call.name, text, is_error))
        else:
            self.tell(prompts.written_result(call.name, text))

    def listen(self) -> None:
        """Show the agent what the caller has said since."""
        if new := self._live_run.caller.messages[self._heard :]:
            nonce = draw_nonce(new)
            shown = MessagesShown(agent=self._member.name, heard=len(self._live_run.caller.messages), nonce=nonce)
            self._live_run.record(shown)
            self.take_in(shown)

    async def ask(
        self, system: str, tools: tuple[ToolSpec, ...], purpose: CallPurpose, *, must_call_tool: bool = False
    ) -> None:
        """Have the model reply. Raises `BackendError`."""
        reply = await ask(
            self._member,
            ModelRequest(
                system,
                (*self.messages, *self._warning()),
                tools,
                must_call_tool=must_call_tool,
                ends_with_call=purpose == "coordinate",
            ),
            call_id=f"{self._name}.{self.steps + 1}",
            purpose=purpose,
            live_run=self._live_run,
            limits=self._limits,
        )
        self.take_in(reply)

    def _warning(self) -> tuple[Message, ...]:
        """That few steps are left: for the next call alone, since it is another one each time."""
        left = self._limits.steps_per_round - self.steps
        if not self.steps or left > WARNED_STEPS:
            return ()
        return (UserMessage(prompts.LAST_STEPS.format(left=left) if left > 1 else prompts.LAST_STEP),)

    async def use_tools(self, calls: tuple[ToolCall, ...], *, only_plan: bool = False) -> None:
        """Run those of the reply's ordinary tool calls that have no result yet."""
        if self.reply is None:
            return
        ran = run_tools(
            self._member,
            calls,
            self._live_run,
            reply_id=self.reply.call_id,
            done=len(self.results),
            begun=frozenset(self._begun),
            only_plan=only_plan,
        )
        async for event in ran:
            self.take_in(event)

    def _add_messages_heard(self, heard: int, nonce: str) -> None:
        new = self._live_run.caller.messages[self._heard : heard]
        self._heard = max(self._heard, heard)
        if new:
            self.tell(prompts.caller_block(new, nonce))


def calls_of(reply: ModelReplied) -> tuple[ToolCall, ...]:
    """All calls of a reply, written ones included."""
    return tuple(ToolCall(call.id, call.name, call.arguments) for call in reply.tool_calls)


def native_calls(reply: ModelReplied) -> tuple[ToolCall, ...]:
    """Those that are no part of the text."""
    calls = zip(calls_of(reply), reply.tool_calls, strict=True)
    return tuple(call for call, record in calls if record.form == "tool_call")
