"""What one agent does in its rounds: what it is shown, which models and tools it calls, which rules it breaks."""

from typing import Any, Literal

from massgen_mcp.errors import DropReason
from massgen_mcp.events.parts import (
    BallotEntry,
    CitationRecord,
    Cost,
    Event,
    RoundKind,
    ShortenedText,
    ShownReason,
    ToolCallRecord,
    Usage,
)

CallPurpose = Literal["coordinate", "present", "evaluate", "condense"]

WaitReason = Literal["concurrency", "requests_per_minute", "retry_after", "circuit"]
"""Why a call is not sent yet: limits of ours, a provider that asked for a pause, or one that is down."""

OWN_QUEUE: frozenset[WaitReason | None] = frozenset({"concurrency", "requests_per_minute"})
"""Obstacles that we put up ourselves. Whoever waits for one of them must not be blamed for the time."""


class CallEvent(Event):
    """Base class of all events of a model or tool call: readers of calls handle each of them, and skip all others."""


class RoundStarted(Event):
    """An agent was shown a ballot and begins to work on it."""

    type: Literal["round_started"] = "round_started"
    agent: str
    round: int
    """Its number, from 1 in every attempt."""
    revision: int
    ballot: tuple[BallotEntry, ...]
    """The answers, as the agent sees them."""
    heard: int = 0
    """How many of the caller's messages the round begins with."""
    notes: str = ""
    """What the team shared with the agent besides answers, as it was shown."""
    opening: str = ""
    """The nonce of the markers around the question and what precedes it; all rounds of agents of one model share it."""
    nonce: str = ""
    """The nonce of the markers around everything else that the round begins with."""
    kind: RoundKind = "answer_or_vote"
    """What ends the round."""
    reasons: tuple[ShownReason, ...] = ()
    """Those of void votes, where `show_reasons` lets the agent see them."""
    most: int | None = None
    """So many characters of the question, of each earlier turn and of each answer were shown, because the model cannot
    read more. None: all of them.
    """
    task: str = ""
    """The task of the round, as the agent read it. Empty in older records."""
    shortened: tuple[ShortenedText, ...] = ()
    """The kinds of text of which the agent was shown a part. Empty: all were shown whole."""


class MessagesShown(Event):
    """In the middle of its round an agent was shown the caller's messages up to the `heard`-th one."""

    type: Literal["messages_shown"] = "messages_shown"
    agent: str
    heard: int
    """So many of the caller's messages the agent has been shown by now."""
    nonce: str = ""
    """Of the markers around them."""


class BallotChanged(Event):
    """In the middle of its round an agent was shown a newer ballot."""

    type: Literal["ballot_changed"] = "ballot_changed"
    agent: str
    revision: int
    ballot: tuple[BallotEntry, ...]
    """The answers, as the agent sees them now."""
    nonce: str = ""
    """Of the markers around its answers."""
    reasons: tuple[ShownReason, ...] = ()
    """As in `RoundStarted`."""
    most: int | None = None
    """As in `RoundStarted`, for each answer."""
    task: str = ""
    """As in `RoundStarted`, where it changed because there were no answers before."""
    shortened: tuple[ShortenedText, ...] = ()
    """As in `RoundStarted`."""


class ModelCallStarted(CallEvent):
    """A model is about to be asked; this is on disk before it is."""

    type: Literal["model_call_started"] = "model_call_started"
    agent: str
    call_id: str
    purpose: CallPurpose
    repeated: bool = False
    """The call was in flight when a runner was lost; it may have been paid for before."""
    usage_if_lost: Usage | None = None
    """What the call uses, by our estimate, if its process is lost before it ends: then the run is charged for it."""
    cost_if_lost: Cost | None = None
    """What that costs."""
    usage: Usage | None = None
    """In older journals: what the lost call that this one repeats used, by our estimate."""
    cost: Cost | None = None
    """What that cost."""


class ModelCallWaiting(CallEvent):
    """A call, or its next try, has to wait before it is sent: for its provider, or for room in the budget."""

    type: Literal["model_call_waiting"] = "model_call_waiting"
    agent: str
    call_id: str
    obstacle: Literal["concurrency", "requests_per_minute", "retry_after", "circuit", "budget"]
    """Why it waits. `budget`: what is reserved for other calls leaves too little for it."""
    message: str = ""
    """The amount that it waits for, with the keys that change it, where it waits for the budget."""


class ModelCallAdmitted(CallEvent):
    """A call that had to wait is sent now. `queued_seconds`: how long it waited in our own queue, since it began to."""

    type: Literal["model_call_admitted"] = "model_call_admitted"
    agent: str
    call_id: str
    queued_seconds: float
    """How long it waited in our own queue, since it began to."""


class TextDelta(CallEvent):
    """A piece of streamed text, several deltas of the provider put together. For display only."""

    type: Literal["text_delta"] = "text_delta"
    agent: str
    call_id: str
    text: str
    """The piece."""


class ModelCallRetried(CallEvent):
    """A call failed and will be tried again; text streamed by the failed try is void."""

    type: Literal["model_call_retried"] = "model_call_retried"
    agent: str
    call_id: str
    attempt: int
    """Number of the try that failed, from 1."""
    reason: DropReason
    message: str
    wait_seconds: float
    """So long until the next try."""
    usage: Usage | None = None
    """What the failed try used, by our estimate. None: it was refused before the model worked on it."""
    cost: Cost | None = None


class ModelReplied(CallEvent):
    """A whole reply, journaled before anything in it is acted upon."""

    type: Literal["model_replied"] = "model_replied"
    agent: str
    call_id: str
    purpose: CallPurpose
    model: str
    """The model as the provider reported it; the configured name where it reported none."""
    text: str
    """What the model wrote besides calls and thoughts."""
    reasoning: str = ""
    """Its thoughts, as far as the provider shows them."""
    tool_calls: tuple[ToolCallRecord, ...] = ()
    """Those that are written in `text`, too; their `form` says so."""
    unreadable_call: bool = False
    """`text` ends with what is meant as a call, and cannot be read."""
    by_fallback: bool = False
    """The agent's fallback replied, and not its own model."""
    tools_as_text: bool = False
    """The server doesn't accept tools, so they were described in the text of the request."""
    citations: tuple[CitationRecord, ...] = ()
    """What the provider's own search found, as the provider tells it. They stand below the answer in this reply."""
    stop: Literal["end", "tool_calls", "length", "refusal"]
    """How the reply ended."""
    notice: str = ""
    """What we told the model last before this reply: that few steps, little time or little money is left."""
    opening: str = ""
    """The nonce around the question, where it was drawn anew because a text had come to hold the old one."""
    replay: tuple[dict[str, Any], ...] = ()
    """What the provider wants back with the next request, as it came."""
    usage: Usage | None = None
    """Tokens of the call. None: not even an estimate."""
    cost: Cost = Cost()
    """What the call cost."""
    seconds: float
    """How long the call took, retries included; what it waited in our own queue is no part of that."""


class ModelCallFailed(CallEvent):
    """A call failed for good, retries included."""

    type: Literal["model_call_failed"] = "model_call_failed"
    agent: str
    call_id: str
    reason: DropReason
    message: str
    usage: Usage | None = None
    """As in `ModelCallRetried`, for the last try."""
    cost: Cost | None = None
    seconds: float
    """As in `ModelReplied`."""


class ModelCallAborted(CallEvent):
    """A call was cut off by us because its result could not count any more."""

    type: Literal["model_call_aborted"] = "model_call_aborted"
    agent: str
    call_id: str
    usage: Usage | None = None
    """What was used until then, by our estimate."""
    cost: Cost | None = None
    seconds: float
    """As in `ModelReplied`."""


class ToolStarted(CallEvent):
    """A tool that must not run twice is about to run; this is on disk before it does."""

    type: Literal["tool_started"] = "tool_started"
    agent: str
    call_id: str
    """As in `ToolFinished`."""
    name: str
    """Of the tool."""
    shown: str = ""
    """What it is to do, in a few words."""


class ToolFinished(CallEvent):
    """A tool ran for a model and this text went back to it."""

    type: Literal["tool_finished"] = "tool_finished"
    agent: str
    call_id: str
    """The id of the tool call, as in `ModelReplied.tool_calls`."""
    name: str
    """Of the tool."""
    result: str
    """What went back to the model."""
    is_error: bool
    """Whether the tool failed."""
    valid: bool = True
    """The call named a tool that is there, with readable arguments; the tool itself may still have failed."""
    seconds: float
    """How long it took."""
    nonce: str = ""
    """Of the markers between which the result was given to the model; "" where it was given without."""


class RuleViolated(Event):
    """A model broke a rule of the coordination and was told so."""

    type: Literal["rule_violated"] = "rule_violated"
    agent: str
    code: str
    """Which rule, in one word."""
    message: str
    """What it was told."""
    calls: tuple[str, ...] = ()
    """Ids of the tool calls that were refused with it."""
    counts: bool
    """Whether it counts towards `max_enforcement_retries`; a vote on an outdated ballot does not."""


class ConversationShortened(Event):
    """In the middle of its work an agent was left less of what its earlier calls brought, to make room."""

    type: Literal["conversation_shortened"] = "conversation_shortened"
    agent: str
    kept_replies: int
    """What its last so many replies brought is whole."""
    characters: int
    """So many of each earlier result are left."""


class ConversationCondensed(Event):
    """In the middle of its work an agent's note took the place of the earlier part of its conversation."""

    type: Literal["conversation_condensed"] = "conversation_condensed"
    agent: str
    note: str
    """What its model wrote; "" where it wrote nothing."""
    nonce: str = ""
    """Of the markers around the note."""
    kept_replies: int
    """Its last so many replies are whole."""


BeforeReply = RoundStarted | ModelCallStarted | ModelCallWaiting | ModelCallAdmitted | TextDelta | ModelCallRetried
"""The beginning of a round, and what happens before a reply is there: after a loss the call is made anew."""
WorkEvent = (
    ModelReplied
    | ModelCallFailed
    | ModelCallAborted
    | ToolStarted
    | ToolFinished
    | BallotChanged
    | MessagesShown
    | RuleViolated
    | ConversationShortened
    | ConversationCondensed
)
"""What a round, or the writing of the final answer, goes on from when its process was lost, besides its beginning. An
event that stands here the round records with `_record`, or takes in as `Conversation` does, so that it knows after a
loss that it has happened; whatever else it records in its midst would be recorded again.
"""
AgentEvent = BeforeReply | WorkEvent
"""Every event of an agent stands in one of the two."""
LostTry = ModelCallStarted | ModelCallRetried | ModelCallFailed | ModelCallAborted
"""What may say that a try without a reply has to be paid for."""
