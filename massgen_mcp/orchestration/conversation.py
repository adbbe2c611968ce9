"""One agent's talk with its model in one piece of work: a round, or the writing of the final answer.

What the model has been told is a fold over events: while a run goes on the same `take_in` builds the conversation that
rebuilds it when a lost run is resumed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from massgen_mcp.backends.base import (
    AssistantMessage,
    Message,
    ModelRequest,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from massgen_mcp.errors import BackendError
from massgen_mcp.events.agent_work import (
    BallotChanged,
    CallPurpose,
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
from massgen_mcp.events.coordination import PresentationStarted
from massgen_mcp.markers import draw_nonce
from massgen_mcp.orchestration import prompts
from massgen_mcp.orchestration.attempt import Attempt
from massgen_mcp.orchestration.model_calls import ask
from massgen_mcp.orchestration.team import FALLBACK_REASONS, Member
from massgen_mcp.orchestration.tool_calls import ToolUse, run_tools
from massgen_mcp.orchestration.window import (
    FULL,
    LONGEST_NOTE,
    NOTED_CHARACTERS,
    NOTED_WITHIN,
    ROOM_STEPS,
    ROOMY,
    RoomStep,
    Transcript,
    WindowPart,
    abilities_of,
    most_of_each,
    window_of,
    within,
)

# ---------------------------------------------------------------------------------------------------------------------
# Notices to an agent about what it has left. They stay in its conversation, because a provider's cache serves only
# what never changes; so each is given again only when much less is left.


WARNED_STEPS = 5
"""So many replies before the last one an agent is told how many there are."""
WARNED_SHARE = 0.6
"""Of the budget, when that is gone; at 0.8 no answer is begun any more."""
WARNED_FAILURES = 3
"""After the same failing call so many times in a row an agent is told to try something else."""
_SHARE_AGAIN = 0.05
_SECONDS_AGAIN = 0.6


@dataclass(frozen=True, slots=True)
class RepeatedFailure:
    """The same call that failed in so many replies in a row."""

    name: str
    arguments: str
    result: str
    reply: str
    """The id of the last of these replies."""
    times: int = 1


@dataclass(frozen=True, slots=True)
class Remainder:
    """The rest of an agent's limits. `seconds` None: enough. `share`: of the budget, that is gone. `missing`: servers
    of tools that do not answer. `failure`: the last tool call, if it failed.
    """

    steps: int
    seconds: float | None = None
    share: float = 0.0
    missing: tuple[str, ...] = ()
    failure: RepeatedFailure | None = None


@dataclass(slots=True)
class Notices:
    """The notices of one conversation."""

    seconds: float | None = None
    share: float = 0.0
    missing: tuple[str, ...] = ()

    def get_due(self, rest: Remainder) -> str:
        """The text of what should be said now; empty for nothing."""
        notes: list[str] = []
        if rest.steps == 1:
            notes.append(prompts.LAST_STEP)
        elif rest.steps <= WARNED_STEPS:
            notes.append(prompts.LAST_STEPS.format(left=rest.steps))
        if rest.failure is not None and rest.failure.times >= WARNED_FAILURES:
            notes.append(prompts.SAME_FAILURE.format(name=rest.failure.name, times=rest.failure.times))
        if rest.seconds is not None and self._is_much_less(rest.seconds):
            notes.append(prompts.LAST_SECONDS.format(seconds=f"{max(0.0, rest.seconds):.0f}"))
        if self._is_much_more(rest.share):
            notes.append(prompts.LAST_MONEY.format(percent=f"{rest.share:.0%}"))
        if rest.missing and rest.missing != self.missing:
            notes.append(prompts.MISSING_SERVERS.format(names=", ".join(rest.missing)))
        return " ".join(notes)

    def remember(self, rest: Remainder) -> None:
        """Take it that what was due has been said."""
        if rest.seconds is not None and self._is_much_less(rest.seconds):
            self.seconds = rest.seconds
        if self._is_much_more(rest.share):
            self.share = rest.share
        self.missing = rest.missing

    def _is_much_less(self, seconds: float) -> bool:
        return self.seconds is None or seconds <= _SECONDS_AGAIN * self.seconds

    def _is_much_more(self, share: float) -> bool:
        return share >= max(WARNED_SHARE, self.share + _SHARE_AGAIN)


# ---------------------------------------------------------------------------------------------------------------------
# The conversation


class Conversation:
    def __init__(self, member: Member, attempt: Attempt, name: str, opened: RoundStarted | PresentationStarted) -> None:
        """`name` begins the ids of its calls."""
        self._attempt = attempt
        self._opening: str = opened.opening
        self._most = opened.most
        self._transcript = Transcript(attempt.opening(opened.opening, opened.most))
        self._shared = len(self._transcript.messages)
        """Messages of the opening."""
        self._searched = self._shared
        """So many messages do not hold the opening's nonce."""
        self._new_opening = ""
        """The opening's nonce, where it was drawn anew and no reply's event has it yet."""
        self._notices = Notices()
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
        self.has_calls = False
        """True once a reply called a tool, or a call that it wrote as text was made."""
        self.repeated_failure: RepeatedFailure | None = None
        """The last tool call, if it failed."""
        self._member = member
        self._live_run = attempt.live_run
        self._limits = attempt.run_spec.limits
        self._name = name
        self._heard = 0
        self._notes = 0
        """Calls for a note of its earlier work that have ended."""
        self._note: str | None = None
        """What came of the last one, until it stands in the conversation."""
        self._abilities = abilities_of(member)
        self._add_messages_heard(opened.heard, opened.nonce)

    @property
    def messages(self) -> tuple[Message, ...]:
        """What the model is told, besides its instructions."""
        return self._transcript.messages

    @property
    def fruitless(self) -> int:
        """Replies in a row, the last one included, that called tools and none of them validly."""
        return self._fruitless + 1 if self.results and not any(result.valid for result in self.results) else 0

    def take_in(self, event: WorkEvent) -> None:  # noqa: C901 - one case per event, nothing else
        """Let an event of this agent be part of the talk."""
        match event:
            case ModelReplied(purpose="condense"):
                self._notes += 1
                self._note = event.text.strip()
            case ModelReplied():
                called = native_calls(event)
                self._reopen(event.opening)
                self._new_opening = ""
                if event.notice:
                    self.tell(event.notice)
                own = event.by_fallback == self._member.is_fallback
                self._transcript.add(AssistantMessage(event.text, called, event.replay if own else ()))
                self._native = {call.id for call in called}
                self.has_calls = self.has_calls or bool(called)
                self.steps += 1
                self._fruitless = self.fruitless
                self.reply, self.results, self._begun = event, [], set()
            case ModelCallAborted() | ModelCallFailed() if self._is_for_note(event.call_id):
                self._notes += 1
            case ModelCallAborted():
                self.steps += 1
            case ModelCallFailed():
                self.steps += event.reason in ("context_too_small", *FALLBACK_REASONS)  # there is one more call
            case ToolStarted():
                self._begun.add(event.call_id)
            case ToolFinished():
                self.has_calls = True
                self._begun.discard(event.call_id)
                self._add_result(event)
                self.repeated_failure = self._count_failure(event)
                self.results.append(event)
            case MessagesShown():
                self._add_messages_heard(event.heard, event.nonce)
            case ConversationShortened():
                self._replace(self._transcript.shortened(event.kept_replies, event.characters))
            case ConversationCondensed():
                self._note = None
                note = prompts.notes_block(event.note, event.nonce, prompts.NOTED) if event.note else None
                self._replace(self._transcript.condensed(note, event.kept_replies))
            case BallotChanged() | RuleViolated():
                pass  # the round says of these what its rules are
            case _:
                assert_never(event)

    def _count_failure(self, event: ToolFinished) -> RepeatedFailure | None:
        """Return the failure that this result is, counted with those of the same call just before it."""
        if not event.is_error or self.reply is None:
            return None
        calls = {call.id: call.arguments for call in self.reply.tool_calls}
        failure = RepeatedFailure(event.name, calls.get(event.call_id, ""), event.result, self.reply.call_id)
        before = self.repeated_failure
        if before is None or (before.name, before.arguments) != (failure.name, failure.arguments):
            return failure
        return replace(failure, times=before.times + int(before.reply != failure.reply))

    def tell(self, text: str, part: WindowPart = "work") -> None:
        self._transcript.add(UserMessage(text), part)

    def reply_to(self, call: ToolCall, text: str, *, is_error: bool) -> None:
        """Tell what came of a call of the last reply: as its result, or in words where it was only written."""
        self._transcript.add(_result_message(call, text, is_error=is_error, native=call.id in self._native))

    def _add_result(self, event: ToolFinished) -> None:
        call, native = ToolCall(event.call_id, event.name, ""), event.call_id in self._native

        def result(characters: int | None = None) -> Message:
            text = prompts.result_block(event.name, within(event.result, characters), event.nonce)
            return _result_message(call, text, is_error=event.is_error, native=native)

        self._transcript.add(result(), shortened=result)

    def listen(self) -> None:
        """Show the agent what the caller has said since."""
        if new := self._live_run.caller.messages[self._heard :]:
            nonce = draw_nonce(new)
            shown = MessagesShown(agent=self._member.name, heard=len(self._live_run.caller.messages), nonce=nonce)
            self._record(shown)

    async def ask(self, empty: ModelRequest, purpose: CallPurpose) -> None:
        """Have the model reply to a request that has no messages yet, with as much of the conversation as it can read.
        Raises `BackendError`.
        """
        empty = replace(
            empty,
            ends_with_call=purpose == "coordinate",
            shared_ends=self._attempt.shared_ends,
            cache_scope=self._live_run.coordination.rules.seed,
            long_waits=self._attempt.has_long_waits,
        )
        self._renew_opening()
        if not self._repeats(purpose):
            await self._make_room(empty, FULL)
        try:
            reply = await self._ask(self._request(empty), purpose)
        except BackendError as error:
            if error.reason != "context_too_small" or not await self._make_room(empty, 1.0):
                raise
            self.steps += 1
            reply = await self._ask(self._request(empty), purpose)
        self.take_in(reply)

    def _request(self, empty: ModelRequest) -> ModelRequest:
        notice = self._notices.get_due(self._get_remainder())
        last = (UserMessage(notice),) if notice else ()
        return replace(empty, messages=(*self.messages, *last), notice=notice, opening=self._new_opening)

    def _renew_opening(self) -> None:
        """Draw another nonce for the opening if a text of others has come to hold it: its author could close the
        question, or speak as the caller.
        """
        if self._opening and self._holds_opening():
            self._new_opening = draw_nonce([one.text for one in self.messages])
            self._reopen(self._new_opening)

    def _holds_opening(self) -> bool:
        later, self._searched = self.messages[self._searched :], len(self.messages)
        texts = (one.text for one in later if not isinstance(one, AssistantMessage))
        return any(self._opening in text.casefold() for text in texts)

    def _reopen(self, nonce: str) -> None:
        if nonce and nonce != self._opening:
            self._opening = nonce
            self._transcript = self._transcript.reopen(self._attempt.opening(nonce, self._most))

    def _replace(self, transcript: Transcript) -> None:
        self._transcript, self._searched = transcript, self._shared

    def _call_id(self, purpose: CallPurpose) -> str:
        number = f"note{self._notes + 1}" if purpose == "condense" else f"{self.steps + 1}"
        return f"{self._name}.{number}"

    def _repeats(self, purpose: CallPurpose) -> bool:
        """Whether the call was in flight when the process was lost: it is made again word for word."""
        return self._live_run.state.resume_point.in_flight.get(self._member.name) == self._call_id(purpose)

    async def _ask(self, request: ModelRequest, purpose: CallPurpose) -> ModelReplied:
        if request.notice:
            self._notices.remember(self._get_remainder())
        return await ask(
            self._member,
            request,
            call_id=self._call_id(purpose),
            purpose=purpose,
            live_run=self._live_run,
            limits=self._limits,
        )

    async def _make_room(self, empty: ModelRequest, most: float) -> bool:
        """If the conversation takes a larger part of the window than `most`, leave out what is oldest, until it takes
        little. Whether anything was left out.
        """
        window = window_of(self._member, self._abilities)
        if window is None or self._abilities.tokens(self._request(empty)) <= most * window:
            return False
        before = self.messages
        for step in ROOM_STEPS:
            if self._is_roomy(self._transcript, empty, window):
                break
            if step.characters is not None or self._needs_note(step, empty, window):
                await self._leave_out(step, empty, window)
        return self.messages != before

    def _is_roomy(self, transcript: Transcript, empty: ModelRequest, window: int) -> bool:
        notice = UserMessage(self._notices.get_due(self._get_remainder()))
        request = replace(empty, messages=(*transcript.messages, notice))
        return self._abilities.tokens(request) <= ROOMY * window

    def _needs_note(self, step: RoomStep, empty: ModelRequest, window: int) -> bool:
        """Unless a note would not make room enough, and shorter results would: a note is a call that is paid for."""
        if self._note is not None or self._repeats("condense"):
            return True
        if self._is_roomy(self._transcript.condensed("", step.kept_replies), empty, window):
            return True
        shorter = (
            self._transcript.shortened(one.kept_replies, one.characters)
            for one in ROOM_STEPS
            if one.characters is not None and 0 < one.kept_replies < step.kept_replies
        )
        return not any(self._is_roomy(transcript, empty, window) for transcript in shorter)

    async def _leave_out(self, step: RoomStep, empty: ModelRequest, window: int) -> None:
        kept, name = step.kept_replies, self._member.name
        if step.characters is not None:
            if self._transcript.shortened(kept, step.characters).messages != self.messages:
                self._record(ConversationShortened(agent=name, kept_replies=kept, characters=step.characters))
        elif self._transcript.has_earlier(kept):
            note = self._note if self._note is not None else await self._written_note(empty, window)
            note = within(note, most_of_each([note], self._abilities.bytes_of(LONGEST_NOTE * window)))
            nonce = draw_nonce([note])
            self._record(ConversationCondensed(agent=name, note=note, nonce=nonce, kept_replies=kept))

    async def _written_note(self, empty: ModelRequest, window: int) -> str:
        """The model's own note of its work; "" where it cannot write one."""
        free = replace(empty, must_call_tool=False, ends_with_call=False)
        for messages in (self.messages, self._transcript.shortened(0, NOTED_CHARACTERS).messages):
            request = replace(free, messages=(*messages, UserMessage(prompts.CONDENSE)))
            if self._abilities.tokens(request) <= NOTED_WITHIN * window:
                break
        else:
            return ""
        try:
            reply = await self._ask(request, "condense")
        except BackendError:
            self._notes += 1
            return ""
        self.take_in(reply)
        return self._note or ""

    def _record(self, event: MessagesShown | ConversationShortened | ConversationCondensed) -> None:
        self._live_run.record(event)
        self.take_in(event)

    def _is_for_note(self, call_id: str) -> bool:
        return call_id.startswith(f"{self._name}.note")

    def _get_remainder(self) -> Remainder:
        toolbox, left = self._member.toolbox, self._limits.steps_per_round - self.steps
        return Remainder(
            steps=left if self.steps else max(left, WARNED_STEPS + 1),
            seconds=self._live_run.seconds_left(self._member.name),
            share=self._live_run.state.budget.share,
            missing=tuple(toolbox.missing()) if toolbox is not None else (),
            failure=self.repeated_failure,
        )

    async def use_tools(
        self, calls: tuple[ToolCall, ...], *, only_plan: bool = False, ending: Sequence[str] = ()
    ) -> None:
        """Run those of the reply's ordinary tool calls that have no result yet. `ending`: names of the tools that end
        the turn.
        """
        if self.reply is None:
            return
        ran = run_tools(
            ToolUse(self._member, self._live_run, only_plan, ending),
            calls,
            reply_id=self.reply.call_id,
            done=len(self.results),
            begun=frozenset(self._begun),
        )
        async for event in ran:
            self.take_in(event)

    def _add_messages_heard(self, heard: int, nonce: str) -> None:
        new = self._live_run.caller.messages[self._heard : heard]
        self._heard = max(self._heard, heard)
        if new:
            self.tell(prompts.caller_block(new, nonce), "lasting")


def _result_message(call: ToolCall, text: str, *, is_error: bool, native: bool) -> Message:
    if native:
        return ToolResultMessage(call.id, call.name, text, is_error)
    return UserMessage(prompts.written_result(call.name, text))


def calls_of(reply: ModelReplied) -> tuple[ToolCall, ...]:
    """All calls of a reply, written ones included."""
    return tuple(ToolCall(call.id, call.name, call.arguments) for call in reply.tool_calls)


def native_calls(reply: ModelReplied) -> tuple[ToolCall, ...]:
    """Those that are no part of the text."""
    calls = zip(calls_of(reply), reply.tool_calls, strict=True)
    return tuple(call for call, record in calls if record.form == "tool_call")
