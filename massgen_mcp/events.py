"""What can happen in a run: a closed union of immutable, typed facts.

The sequence of these, as `events.jsonl`, *is* the run; every status, view and record is a fold over it. Knows nothing
of who emits or who reads. Agents appear under their public names (`agent_a`, `agent_b`, …; see `public_agent_name`).
"""

from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from massgen_mcp.errors import DropReason, FailureReason

JOURNAL_VERSION = 1
"""Of the lines of `events.jsonl` that this program writes, and the highest that it goes on from. 0: lines without one.
Raised with the release that adds an event, a field, or a value of a closed list.
"""

Outcome = Literal["consensus", "plurality", "tie_broken", "single", "single_survivor", "best_so_far"]
"""How good a completed run's agreement was: all votes for one camp; most votes; decided by lot, because a run-off was
tied, too; of a team of one; of the only agent that was left; the best there was when the run was cut short.
"""

CallPurpose = Literal["coordinate", "present", "evaluate"]

WrittenForm = Literal["json", "fenced_json", "tool_call_tag", "function_tag", "python_tag", "function_call"]
"""How a model wrote a call into its text: as a JSON object, in a code block, between `<tool_call>` (and the like) or
`<function=…>`, in Llama's way, or as `functions.NAME({…})`.
"""

ActionForm = Literal["tool_call", "text", "vote_line"] | WrittenForm
"""How a model acted: by calling a tool, by a call written as text, by plain text taken as its answer, or by a line such
as `vote: agent2`.
"""

PriceSource = Literal["config", "provider", "genai-prices", "estimate"]
"""Who said what a call cost: the user's config, the provider's reply, or a public price list. In an estimate the list
says what the model's own provider takes, and nobody what the gateway takes that was asked.
"""

InputKind = Literal["budget_reached", "question", "permission"]
"""What the caller may have to decide before a run continues."""

Obstacle = Literal["concurrency", "requests_per_minute", "retry_after", "circuit"]
"""Why a call is not sent yet: limits of ours, a provider that asked for a pause, or one that is down."""

OWN_QUEUE: frozenset[Obstacle | None] = frozenset({"concurrency", "requests_per_minute"})
"""Obstacles that we put up ourselves. Whoever waits for one of them must not be blamed for the time."""


def public_agent_name(place: int) -> str:
    """The public name of the agent at `place` (0-based) in the config: agent_a, agent_b, …, agent_z, agent_aa."""
    letters = ""
    place += 1
    while place:
        place, digit = divmod(place - 1, 26)
        letters = chr(ord("a") + digit) + letters
    return f"agent_{letters}"


class Event(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    def __deepcopy__(self, memo: object = None) -> Self:
        return self  # nobody changes it


EventT = TypeVar("EventT", bound=Event)


class AgentInfo(Event):
    """Who works on a run. `name` is public, `id` the config's."""

    name: str
    id: str
    backend: str
    model: str


class BallotEntry(Event):
    """One answer on a ballot: the neutral name the viewer sees, and the answer's label that the name stands for."""

    name: str
    label: str


class ShownReason(Event):
    """A reason as a later reader of the answers saw it: `name` is the neutral name of the author's present answer on
    the reader's own ballot.
    """

    name: str
    reason: str


class Camp(Event):
    """Answers, by label, that say the same in the voters' eyes, and the votes for all of them together."""

    answers: tuple[str, ...]
    votes: int


class Usage(Event):
    """Tokens of one model call. Cached and cache-written ones are part of the input, reasoning of the output."""

    input_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    web_searches: int = 0
    """Searches that the provider ran itself; they are billed apart."""
    estimated: bool = False
    """Counted by us from the length of the texts, because the provider told no numbers (see `money.metering`)."""

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


class Cost(Event):
    """What a model call cost. `usd` None: nobody knows a price, which is not the same as nothing."""

    usd: float | None = None
    source: PriceSource | None = None


class NestedSpending(Event):
    """What a nested run has spent, with the runs nested in it; as `money.spending.Spent`."""

    calls: int = 0
    calls_without_usage: int = 0
    lost_calls: int = 0
    input_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    usd: float = 0.0
    unpriced_calls: int = 0
    estimated_calls: int = 0
    seconds: float = 0.0


class ToolCallRecord(Event):
    """`arguments` is the JSON text as the model wrote it."""

    id: str
    name: str
    arguments: str
    form: Literal["tool_call"] | WrittenForm = "tool_call"


class CitationRecord(Event):
    """A page that the provider's own search found for a reply. `title` may be empty."""

    url: str
    title: str = ""


# -- the run ----------------------------------------------------------------------------------------------------


class RunStarted(Event):
    type: Literal["run_started"] = "run_started"
    run_id: str
    question: str
    agents: tuple[AgentInfo, ...]
    max_usd: float | None = None
    max_tokens: int | None = None
    parent: str | None = None
    """Id of the run in which it was started, if it is a nested run."""
    sandbox: str = ""
    """The level of the sandbox that agents' commands run in; `none: …` where they were asked for and none holds here;
    empty where the run has no commands.
    """
    servers: tuple[str, ...] = ()
    """The MCP servers of agents, each with where it runs."""


class AttemptStarted(Event):
    """A whole coordination begins, from the first answers on. `instructions` come from judging the attempt before."""

    type: Literal["attempt_started"] = "attempt_started"
    attempt: int
    reason: str = ""
    instructions: str = ""


class ServerLost(Event):
    """An MCP server of agents could not be started, or ended by itself. It may have been started again since."""

    type: Literal["server_lost"] = "server_lost"
    server: str
    """Its name in the config."""
    agents: tuple[str, ...]
    """Whose it is; several share one."""
    message: str


class FinishRequested(Event):
    """Somebody asked to end coordination with what is there."""

    type: Literal["finish_requested"] = "finish_requested"


class BudgetMark(Event):
    """This much of the budget is spent, of money or of tokens, whichever is more. `usd` is the known part."""

    type: Literal["budget_mark"] = "budget_mark"
    percent: int
    usd: float
    tokens: int


class BudgetReached(Event):
    """A call did not fit into what is left: no answer is begun any more, those that are there are voted on."""

    type: Literal["budget_reached"] = "budget_reached"
    agent: str
    """Whose call it was."""
    message: str


class BudgetRaised(Event):
    """The caller allowed more: `max_usd` is the new cap, and the cap of tokens grew in proportion."""

    type: Literal["budget_raised"] = "budget_raised"
    control: int
    """Number of the order: from the run store, or below 0 where it was typed. Carried out twice, it counts once."""
    max_usd: float


class ReservationExceeded(Event):
    """A call used more than was reserved for it. `usd` None: its price is unknown."""

    type: Literal["reservation_exceeded"] = "reservation_exceeded"
    agent: str
    call_id: str
    reserved_usd: float
    usd: float | None
    reserved_tokens: int
    tokens: int


class RunResumed(Event):
    """The process that worked on the run was lost; another one goes on from here."""

    type: Literal["run_resumed"] = "run_resumed"
    in_flight: tuple[str, ...] = ()
    """Ids of the model calls that had been made and not replied to: these are made once more."""


class CallerSaid(Event):
    """The caller sent the team a message; every agent is shown it at its next step."""

    type: Literal["asker_said"] = "asker_said"
    control: int
    """Number of the order: from the run store, or below 0 where it was typed. Carried out twice, it counts once."""
    message: str


class InputRequired(Event):
    """The run, or one agent of it, cannot continue before the caller decides something."""

    type: Literal["input_required"] = "input_required"
    kind: InputKind
    agent: str | None = None
    text: str
    """What is to be decided, in words for the caller."""


class InputGiven(Event):
    type: Literal["input_given"] = "input_given"
    kind: InputKind
    text: str


class NestedRunStarted(Event):
    """A run is started inside this one. Until it has ended its caps are set aside in the budget of this one."""

    type: Literal["nested_run_started"] = "nested_run_started"
    agent: str | None = None
    """Who started it; None: a program that runs inside this run, over MCP."""
    key: str
    """What started it, so that it is started once: the agent's call, or the id of the run."""
    run_id: str
    question: str
    source: str
    """Where its team came from, in words."""
    max_usd: float
    max_tokens: int


class NestedRunEnded(Event):
    """A nested run has ended, or is given up on with this one. Its costs are part of those of this run."""

    type: Literal["nested_run_ended"] = "nested_run_ended"
    run_id: str
    state: Literal["completed", "failed", "cancelled", "timed_out"]
    spent: NestedSpending = NestedSpending()


class RunCompleted(Event):
    type: Literal["run_completed"] = "run_completed"
    winner: str
    outcome: Outcome
    answer: str
    """The final answer; never empty."""
    unkept: str = ""
    """Why the answer's files could not be kept. Empty: they are in `final/<winner>`."""


class RunFailed(Event):
    """`answer` is the best one there was, by `winner`; it is no final answer."""

    type: Literal["run_failed"] = "run_failed"
    reason: FailureReason
    message: str
    winner: str | None = None
    answer: str | None = None


class RunCancelled(Event):
    """`answer` is the best one there was, by `winner`; it is no final answer."""

    type: Literal["run_cancelled"] = "run_cancelled"
    winner: str | None = None
    answer: str | None = None


class RunTimedOut(Event):
    """The run's own time limit passed. `answer` is the best one there was, by `winner`; it is no final answer."""

    type: Literal["run_timed_out"] = "run_timed_out"
    message: str
    winner: str | None = None
    answer: str | None = None


# -- one agent's work -------------------------------------------------------------------------------------------


class RoundStarted(Event):
    """An agent was shown a ballot and begins to work on it."""

    type: Literal["round_started"] = "round_started"
    agent: str
    round: int
    revision: int
    ballot: tuple[BallotEntry, ...]
    heard: int = 0
    """How many of the caller's messages the round begins with."""
    notes: str = ""
    """What the team shared with the agent besides answers, as it was shown."""
    opening: str = ""
    """The nonce of the markers around the question and what precedes it; an agent keeps it from round to round."""
    nonce: str = ""
    """The nonce of the markers around everything else that the round begins with."""
    run_off: bool = False
    """The ballot holds the answers of a run-off; only a vote for one of them ends the round."""
    reasons: tuple[ShownReason, ...] = ()
    """Those of void votes, where `show_reasons` lets the agent see them."""


class MessagesShown(Event):
    """In the middle of its round an agent was shown the caller's messages up to the `heard`-th one."""

    type: Literal["messages_shown"] = "messages_shown"
    agent: str
    heard: int
    nonce: str = ""
    """Of the markers around them."""


class BallotChanged(Event):
    """In the middle of its round an agent was shown a newer ballot."""

    type: Literal["ballot_changed"] = "ballot_changed"
    agent: str
    revision: int
    ballot: tuple[BallotEntry, ...]
    nonce: str = ""
    """Of the markers around its answers."""
    reasons: tuple[ShownReason, ...] = ()
    """As in `RoundStarted`."""


class ModelCallStarted(Event):
    type: Literal["model_call_started"] = "model_call_started"
    agent: str
    call_id: str
    purpose: CallPurpose
    repeated: bool = False
    """The call was in flight when a runner was lost; it may have been paid for before."""
    usage: Usage | None = None
    """What the lost call that this one repeats used, by our estimate."""
    cost: Cost | None = None


class ModelCallWaiting(Event):
    """A call, or its next try, has to wait before it is sent; other calls are on their way to the same provider."""

    type: Literal["model_call_waiting"] = "model_call_waiting"
    agent: str
    call_id: str
    obstacle: Obstacle


class ModelCallAdmitted(Event):
    """A call that had to wait is sent now. `queued_seconds`: how long it waited in our own queue, since it began to."""

    type: Literal["model_call_admitted"] = "model_call_admitted"
    agent: str
    call_id: str
    queued_seconds: float


class TextDelta(Event):
    """A piece of streamed text, several deltas of the provider put together. For display only."""

    type: Literal["text_delta"] = "text_delta"
    agent: str
    call_id: str
    text: str


class ModelCallRetried(Event):
    """A call failed and will be tried again; text streamed by the failed try is void."""

    type: Literal["model_call_retried"] = "model_call_retried"
    agent: str
    call_id: str
    attempt: int
    reason: DropReason
    message: str
    wait_seconds: float
    usage: Usage | None = None
    """What the failed try used, by our estimate. None: it was refused before the model worked on it."""
    cost: Cost | None = None


class ModelReplied(Event):
    """A whole reply, journaled before anything in it is acted upon."""

    type: Literal["model_replied"] = "model_replied"
    agent: str
    call_id: str
    purpose: CallPurpose
    model: str
    """The model as the provider reported it; the configured name where it reported none."""
    text: str
    reasoning: str = ""
    tool_calls: tuple[ToolCallRecord, ...] = ()
    """Those that are written in `text`, too; their `form` says so."""
    unreadable_call: bool = False
    """`text` ends with what is meant as a call, and cannot be read."""
    tools_as_text: bool = False
    """The server refuses tools, so they were described in the text of the request."""
    citations: tuple[CitationRecord, ...] = ()
    """What the provider's own search found, as the provider tells it. They stand below the answer in this reply."""
    stop: Literal["end", "tool_calls", "length", "refusal"]
    replay: tuple[dict[str, Any], ...] = ()
    usage: Usage | None = None
    cost: Cost = Cost()
    seconds: float
    """How long the call took, retries included; what it waited in our own queue is no part of that."""


class ModelCallFailed(Event):
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


class ModelCallAborted(Event):
    """A call was cut off by us because its result could not count any more."""

    type: Literal["model_call_aborted"] = "model_call_aborted"
    agent: str
    call_id: str
    usage: Usage | None = None
    """What was used until then, by our estimate."""
    cost: Cost | None = None
    seconds: float
    """As in `ModelReplied`."""


class ToolStarted(Event):
    """A tool that must not run twice is about to run; this is on disk before it does."""

    type: Literal["tool_started"] = "tool_started"
    agent: str
    call_id: str
    """As in `ToolFinished`."""
    name: str
    shown: str = ""
    """What it is to do, in a few words."""


class ToolFinished(Event):
    """A tool ran for a model and this text went back to it."""

    type: Literal["tool_finished"] = "tool_finished"
    agent: str
    call_id: str
    """The id of the tool call, as in `ModelReplied.tool_calls`."""
    name: str
    result: str
    is_error: bool
    valid: bool = True
    """The call named a tool that is there, with readable arguments; the tool itself may still have failed."""
    seconds: float
    nonce: str = ""
    """Of the markers between which the result was given to the model; "" where it was given without."""


class RuleViolated(Event):
    """A model broke a rule of the coordination and was told so."""

    type: Literal["rule_violated"] = "rule_violated"
    agent: str
    code: str
    message: str
    """What it was told."""
    calls: tuple[str, ...] = ()
    """Ids of the tool calls that were refused with it."""
    counts: bool
    """Whether it counts towards `max_enforcement_retries`; a vote on an outdated ballot does not."""


# -- coordination -----------------------------------------------------------------------------------------------


class AnswerSubmitted(Event):
    """A new answer stands. It voids every standing vote, since no voter had seen it."""

    type: Literal["answer_submitted"] = "answer_submitted"
    agent: str
    label: str
    content: str
    based_on_revision: int
    revision: int
    voided_votes: tuple[str, ...] = ()
    """The agents whose votes were voided."""
    path: str | None = None
    """Directory of the answer, relative to the run directory."""
    form: ActionForm = "tool_call"


class VoteCast(Event):
    """`label` is the answer that stood under the chosen name on the ballot that the voter saw."""

    type: Literal["vote_cast"] = "vote_cast"
    agent: str
    label: str
    reason: str
    revision: int
    same_as: tuple[str, ...] | None = None
    """Labels of the other answers that say the same as `label`, as the voter sees it. None: it did not say."""
    run_off: bool = False
    """It was cast in a run-off; the agent's vote before that stands beside it."""
    form: ActionForm = "tool_call"


class RunOffStarted(Event):
    """All votes are in and two or more camps are tied: `voters` vote once more, for one of `candidates`.

    Candidates are the most voted answers of the tied camps, one of each. Voters are the live agents that wrote no
    answer of a tied camp, or, where there are none, all live agents.
    """

    type: Literal["run_off_started"] = "run_off_started"
    candidates: tuple[str, ...]
    voters: tuple[str, ...]
    camps: tuple[Camp, ...]


class FirstAnswersClosed(Event):
    """Agents that have answered no longer wait for the others' first answers."""

    type: Literal["first_answers_closed"] = "first_answers_closed"
    awaited: tuple[str, ...]
    """The agents that were given up on for now; their answers still count when they come."""


class AgentDropped(Event):
    type: Literal["agent_dropped"] = "agent_dropped"
    agent: str
    reason: DropReason
    message: str


class WinnerChosen(Event):
    """Coordination is over. `votes` counts standing votes by answer label."""

    type: Literal["winner_chosen"] = "winner_chosen"
    agent: str
    label: str
    outcome: Outcome
    votes: dict[str, int]
    early: bool = False
    """Decided although live agents had not voted."""
    camps: tuple[Camp, ...] = ()
    """The standing answers by what they say, in the order of the config. Empty in journals of before there were any."""
    run_off: dict[str, int] | None = None
    """Votes of the run-off, by label of its candidates; None: there was none."""
    drawn: tuple[str, ...] = ()
    """The labels among which the run's lots decided (see `coordination.count.lot`); empty: votes did."""


class PresentationStarted(Event):
    type: Literal["presentation_started"] = "presentation_started"
    agent: str
    heard: int = 0
    """How many of the caller's messages it is written with."""
    opening: str = ""
    nonce: str = ""
    """As in `RoundStarted`."""


class AnswerPresented(Event):
    """An attempt's final answer, as the winner wrote it, or (`reused`) as it stood."""

    type: Literal["answer_presented"] = "answer_presented"
    agent: str
    answer: str
    reused: bool = False


class AnswerEvaluated(Event):
    """The winner's judgement of its own final answer. A judgement that failed counts as content, and says so."""

    type: Literal["answer_evaluated"] = "answer_evaluated"
    agent: str
    sufficient: bool
    reason: str
    instructions: str = ""


class PresentationFailed(Event):
    """The winner could not write the final answer; its latest answer is used instead."""

    type: Literal["presentation_failed"] = "presentation_failed"
    agent: str
    reason: DropReason
    message: str


AnyEvent = Annotated[
    RunStarted
    | AttemptStarted
    | ServerLost
    | FinishRequested
    | BudgetMark
    | BudgetReached
    | BudgetRaised
    | ReservationExceeded
    | RunResumed
    | CallerSaid
    | InputRequired
    | InputGiven
    | NestedRunStarted
    | NestedRunEnded
    | RunCompleted
    | RunFailed
    | RunCancelled
    | RunTimedOut
    | RoundStarted
    | MessagesShown
    | BallotChanged
    | ModelCallStarted
    | ModelCallWaiting
    | ModelCallAdmitted
    | TextDelta
    | ModelCallRetried
    | ModelReplied
    | ModelCallFailed
    | ModelCallAborted
    | ToolStarted
    | ToolFinished
    | RuleViolated
    | AnswerSubmitted
    | VoteCast
    | RunOffStarted
    | FirstAnswersClosed
    | AgentDropped
    | WinnerChosen
    | PresentationStarted
    | AnswerPresented
    | AnswerEvaluated
    | PresentationFailed,
    Field(discriminator="type"),
]


class UnknownEvent(Event):
    """What a newer version of this program wrote and this one does not know. `content`: all but the type."""

    type: str
    content: dict[str, Any]


LostTry = ModelCallStarted | ModelCallRetried | ModelCallFailed | ModelCallAborted
"""What may say that a try without a reply has to be paid for."""
RunEnd = RunCompleted | RunFailed | RunCancelled | RunTimedOut
TERMINAL = (RunCompleted, RunFailed, RunCancelled, RunTimedOut)
"""After one of these nothing more happens in a run."""


class LogRecord(BaseModel):
    """One line of `events.jsonl`: `seq` rises by one from 1, `time` is seconds since the epoch, `v` is the
    `JOURNAL_VERSION` of who wrote it.

    Pydantic would keep the last 16,384 short values that it read for reuse; here hardly one comes twice.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", cache_strings="keys")

    v: int = 0
    seq: int
    time: float
    event: Annotated[AnyEvent | UnknownEvent, Field(union_mode="left_to_right")]
    unread: tuple[str, ...] = Field(default=(), exclude=True)
    """Names of what was left out of the event, or is no known value, because a newer version wrote it."""

    @property
    def newer(self) -> bool:
        """Whether a newer version wrote it, so that it may mean more than what was read."""
        return self.v > JOURNAL_VERSION or bool(self.unread) or isinstance(self.event, UnknownEvent)
