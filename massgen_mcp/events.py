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
    """Its public name, `agent_a`."""
    id: str
    """Its id in the config."""
    backend: str
    """The type of its backend."""
    model: str
    """The model as the config has it."""


class BallotEntry(Event):
    """One answer on a ballot: the neutral name the viewer sees, and the answer's label that the name stands for."""

    name: str
    """The neutral name that the viewer sees."""
    label: str
    """The label of the answer that the name stands for."""


class ShownReason(Event):
    """A reason as a later reader of the answers saw it: `name` is the neutral name of the author's present answer on
    the reader's own ballot.
    """

    name: str
    reason: str
    """The reason, as its author wrote it."""


class Camp(Event):
    """Answers, by label, that say the same in the voters' eyes, and the votes for all of them together."""

    answers: tuple[str, ...]
    """Labels of the answers."""
    votes: int
    """For all of them together."""


class CheckOutcome(Event):
    """How one check, a command of the config, came out on one state of the files."""

    command: str
    """The check."""
    result: Literal["passed", "failed", "not_run"]
    """`not_run`: the sandbox could not start it, which says nothing of the files."""
    how: str
    """How it ended, in words: `exit code 1`."""
    code: int | None = None
    """Its exit code; None where it was ended, or did not run."""
    seconds: float
    """How long it took."""
    excerpt: str = ""
    """The lines of its output that tell why it failed, at most `checks.excerpt.MAX_CHARACTERS`."""


class Usage(Event):
    """Tokens of one model call. Cached and cache-written ones are part of the input, reasoning of the output."""

    input_tokens: int = 0
    """What the model read."""
    cached_input_tokens: int = 0
    """Those of them that came from the provider's cache."""
    cache_write_tokens: int = 0
    """Those of them that were written to the provider's cache."""
    output_tokens: int = 0
    """What the model wrote."""
    reasoning_tokens: int = 0
    """Those of them that were thoughts."""
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
    """US dollars; None: nobody knows a price, which is not the same as nothing."""
    source: PriceSource | None = None
    """Who said the price."""


class NestedSpending(Event):
    """What a nested run has spent, with the runs nested in it; as `money.spending.Spent`."""

    calls: int = 0
    """Calls of models that came to a reply."""
    calls_without_usage: int = 0
    """Those whose provider told no tokens."""
    lost_calls: int = 0
    """Tries without a reply that have to be paid for."""
    input_tokens: int = 0
    """What models read."""
    cached_input_tokens: int = 0
    """Those of them that came from providers' caches."""
    cache_write_tokens: int = 0
    """Those of them that were written to providers' caches."""
    output_tokens: int = 0
    """What models wrote."""
    reasoning_tokens: int = 0
    """Those of them that were thoughts."""
    usd: float = 0.0
    """US dollars, as far as prices are known."""
    unpriced_calls: int = 0
    """Calls whose price nobody knows."""
    estimated_calls: int = 0
    """Calls whose price is an estimate."""
    seconds: float = 0.0
    """Of all calls together."""


class ToolCallRecord(Event):
    """`arguments` is the JSON text as the model wrote it."""

    id: str
    """Of the call."""
    name: str
    """Of the tool."""
    arguments: str
    """The JSON text as the model wrote it."""
    form: Literal["tool_call"] | WrittenForm = "tool_call"
    """How the call was written."""


class CitationRecord(Event):
    """A page that the provider's own search found for a reply. `title` may be empty."""

    url: str
    """Its address."""
    title: str = ""
    """It may be empty."""


class ChangedFile(Event):
    """A file that an answer changes. `path` begins with the name of the directory (`NAME/src/a.py`); what is no text in
    it is escaped. `added` and `removed` are lines; None for a binary file.
    """

    path: str
    """It begins with the name of the directory (`NAME/src/a.py`); what is no text in it is escaped."""
    kind: Literal["added", "deleted", "modified", "renamed"]
    """What happened to it."""
    added: int | None = None
    """Lines; None for a binary file."""
    removed: int | None = None
    """Lines; None for a binary file."""
    earlier_path: str | None = None
    """Where a renamed file was before."""

    def __str__(self) -> str:
        renamed = f" (was {self.earlier_path})" if self.earlier_path is not None else ""
        lines = "binary" if self.added is None else f"+{self.added} -{self.removed}"
        return f"{self.kind} {self.path}{renamed} {lines}"


class Changes(Event):
    """What an answer makes of the base of the run."""

    tree: str
    """Id of the answer's own tree in the run's private repository."""
    files: tuple[ChangedFile, ...] = ()
    """The first of them, sorted by path."""
    more: int = 0
    """How many further files are changed."""
    added: int = 0
    """Lines, in all of them."""
    removed: int = 0
    """Lines, in all of them."""
    patch: str | None = None
    """The file with the whole difference, relative to the run directory; None: nothing is changed."""
    patch_bytes: int = 0
    """Size of that file."""
    notes: tuple[str, ...] = ()
    """What could not be taken, in words."""

    @property
    def count(self) -> int:
        """How many files are changed."""
        return len(self.files) + self.more

    def __str__(self) -> str:
        files = "1 file" if self.count == 1 else f"{self.count} files"
        return f"{files} changed, +{self.added} -{self.removed} lines" if self.count else "no file changed"


class CopiedDirectory(Event):
    """A directory of the caller's that every agent has a copy of, under this name. `notes` say what is not in it."""

    name: str
    """What agents call it."""
    path: str
    """Where it is on the caller's machine."""
    writable: bool
    """Whether changes may be applied to it."""
    files: int
    """How many files were copied."""
    notes: tuple[str, ...] = ()
    """What is not in the copy."""


# -- the run ----------------------------------------------------------------------------------------------------


class RunStarted(Event):
    """The run begins; this is its first event."""

    type: Literal["run_started"] = "run_started"
    run_id: str
    question: str
    """The caller's text."""
    agents: tuple[AgentInfo, ...]
    """Who works on it."""
    max_usd: float | None = None
    """The cap of its cost."""
    max_tokens: int | None = None
    """The cap of its tokens."""
    parent: str | None = None
    """Id of the run in which it was started, if it is a nested run."""
    sandbox: str = ""
    """The level of the sandbox that agents' commands run in; `none: …` where they were asked for and none holds here;
    empty where the run has no commands.
    """
    servers: tuple[str, ...] = ()
    """The MCP servers of agents, each with where it runs."""


class BaseTaken(Event):
    """The caller's directories were taken as they were then: agents change copies of them, and a patch is what differs.

    `tree` None: of none of them could a base be taken. `refused`: which ones agents can only read, and why.
    """

    type: Literal["base_taken"] = "base_taken"
    tree: str | None
    """Id of the state that was taken. None: of no directory could a base be taken."""
    directories: tuple[CopiedDirectory, ...] = ()
    """The directories that agents have copies of."""
    refused: tuple[str, ...] = ()
    """The directories that agents can only read, and why."""


class AttemptStarted(Event):
    """A whole coordination begins, from the first answers on. `instructions` come from judging the attempt before."""

    type: Literal["attempt_started"] = "attempt_started"
    attempt: int
    """Its number, from 1."""
    reason: str = ""
    """Why the attempt before was not enough."""
    instructions: str = ""
    """What the winner of the attempt before wants to be done."""


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
    """How much of it."""
    usd: float
    """US dollars spent so far, as far as prices are known."""
    tokens: int
    """Tokens used so far."""


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
    """The new cap."""


class ReservationExceeded(Event):
    """A call used more than was reserved for it. `usd` None: its price is unknown."""

    type: Literal["reservation_exceeded"] = "reservation_exceeded"
    agent: str
    call_id: str
    reserved_usd: float
    """What had been set aside for the call, in US dollars."""
    usd: float | None
    """What it cost. None: its price is unknown."""
    reserved_tokens: int
    """What had been set aside."""
    tokens: int
    """What it used."""


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
    """What the caller wrote."""


class InputRequired(Event):
    """The run, or one agent of it, cannot continue before the caller decides something."""

    type: Literal["input_required"] = "input_required"
    kind: InputKind
    """What kind of decision it is."""
    agent: str | None = None
    """Who asks; None: the run."""
    text: str
    """What is to be decided, in words for the caller."""


class InputGiven(Event):
    """The caller has decided, and the run goes on."""

    type: Literal["input_given"] = "input_given"
    kind: InputKind
    """What kind of decision it is."""
    text: str
    """What the caller said."""


class NestedRunStarted(Event):
    """A run is started inside this one. Until it has ended its caps are set aside in the budget of this one."""

    type: Literal["nested_run_started"] = "nested_run_started"
    agent: str | None = None
    """Who started it; None: a program that runs inside this run, over MCP."""
    key: str
    """What started it, so that it is started once: the agent's call, or the id of the run."""
    run_id: str
    """Of the nested run."""
    question: str
    """What it is asked."""
    source: str
    """Where its team came from, in words."""
    max_usd: float
    """Its cap, out of the budget of this one."""
    max_tokens: int
    """Its cap, out of the budget of this one."""


class NestedRunEnded(Event):
    """A nested run has ended, or is given up on with this one. Its costs are part of those of this run."""

    type: Literal["nested_run_ended"] = "nested_run_ended"
    run_id: str
    """Of the nested run."""
    state: Literal["completed", "failed", "cancelled", "timed_out"]
    """How it ended."""
    spent: NestedSpending = NestedSpending()
    """What it used, with the runs nested in it."""


class RunCompleted(Event):
    """The run has its final answer."""

    type: Literal["run_completed"] = "run_completed"
    winner: str
    outcome: Outcome
    """How good the agreement was."""
    answer: str
    """The final answer; never empty."""
    unkept: str = ""
    """Why the answer's files could not be kept. Empty: they are in `final/<winner>`."""
    failing_checks: tuple[str, ...] = ()
    """The checks that the final files do not pass. One that failed on the unchanged files, too, is among them only with
    `checks_policy: goal`.
    """
    changes: Changes | None = None
    """What it changes of the caller's files: the patch of the run. None: the run has no base."""


class RunFailed(Event):
    """`answer` is the best one there was, by `winner`; it is no final answer."""

    type: Literal["run_failed"] = "run_failed"
    reason: FailureReason
    """Why, in one word of a closed list."""
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
    """Its number, from 1 in every attempt."""
    revision: int
    ballot: tuple[BallotEntry, ...]
    """The answers, as the agent sees them."""
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


class ModelCallStarted(Event):
    """A model is about to be asked; this is on disk before it is."""

    type: Literal["model_call_started"] = "model_call_started"
    agent: str
    call_id: str
    purpose: CallPurpose
    repeated: bool = False
    """The call was in flight when a runner was lost; it may have been paid for before."""
    usage: Usage | None = None
    """What the lost call that this one repeats used, by our estimate."""
    cost: Cost | None = None
    """What that cost."""


class ModelCallWaiting(Event):
    """A call, or its next try, has to wait before it is sent; other calls are on their way to the same provider."""

    type: Literal["model_call_waiting"] = "model_call_waiting"
    agent: str
    call_id: str
    obstacle: Obstacle
    """Why it waits."""


class ModelCallAdmitted(Event):
    """A call that had to wait is sent now. `queued_seconds`: how long it waited in our own queue, since it began to."""

    type: Literal["model_call_admitted"] = "model_call_admitted"
    agent: str
    call_id: str
    queued_seconds: float
    """How long it waited in our own queue, since it began to."""


class TextDelta(Event):
    """A piece of streamed text, several deltas of the provider put together. For display only."""

    type: Literal["text_delta"] = "text_delta"
    agent: str
    call_id: str
    text: str
    """The piece."""


class ModelCallRetried(Event):
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


class ModelReplied(Event):
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
    tools_as_text: bool = False
    """The server refuses tools, so they were described in the text of the request."""
    citations: tuple[CitationRecord, ...] = ()
    """What the provider's own search found, as the provider tells it. They stand below the answer in this reply."""
    stop: Literal["end", "tool_calls", "length", "refusal"]
    """How the reply ended."""
    replay: tuple[dict[str, Any], ...] = ()
    """What the provider wants back with the next request, as it came."""
    usage: Usage | None = None
    """Tokens of the call. None: not even an estimate."""
    cost: Cost = Cost()
    """What the call cost."""
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
    """Of the tool."""
    shown: str = ""
    """What it is to do, in a few words."""


class ToolFinished(Event):
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


# -- coordination -----------------------------------------------------------------------------------------------


class AnswerSubmitted(Event):
    """A new answer stands. It voids every standing vote, since no voter had seen it."""

    type: Literal["answer_submitted"] = "answer_submitted"
    agent: str
    label: str
    content: str
    """The answer."""
    based_on_revision: int
    """The revision of the ballot that its author saw."""
    revision: int
    """The revision of the ballot with it."""
    voided_votes: tuple[str, ...] = ()
    """The agents whose votes were voided."""
    path: str | None = None
    """Directory of the answer, relative to the run directory."""
    form: ActionForm = "tool_call"
    changes: Changes | None = None
    """What it changes of the caller's files. None: the run has no base."""


class VoteCast(Event):
    """`label` is the answer that stood under the chosen name on the ballot that the voter saw."""

    type: Literal["vote_cast"] = "vote_cast"
    agent: str
    label: str
    reason: str
    """Why, in the voter's words."""
    revision: int
    """The revision of the ballot that the voter saw."""
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
    """Labels of the answers to choose from."""
    voters: tuple[str, ...]
    """The agents that vote."""
    camps: tuple[Camp, ...]
    """All camps, tied or not."""


class CheckFinished(Event):
    """A check has run. The same files (`tree`) are not checked with the same command again in this run."""

    type: Literal["check_finished"] = "check_finished"
    tree: str
    """Id of the files by their content."""
    outcome: CheckOutcome
    """How it came out."""


class FilesChecked(Event):
    """All checks have run on the base, on the files of an answer, or on those of the final answer."""

    type: Literal["files_checked"] = "files_checked"
    subject: Literal["base", "answer", "final"]
    """What was checked."""
    agent: str | None = None
    """Whose files; None for the base."""
    label: str | None = None
    """Of the answer."""
    outcomes: tuple[CheckOutcome, ...] = ()
    """In the order of the config. Empty: the files are those of the base, or could not be checked (`problem`)."""
    fails_before: tuple[str, ...] = ()
    """The commands that did not pass on the base."""
    restored: tuple[str, ...] = ()
    """Protected files that the answer changed, by path: they were checked as they are in the base."""
    own: tuple[CheckOutcome, ...] = ()
    """Where there are such: how the checks come out with the answer's versions of them."""
    problem: str = ""
    """Why the files could not be checked. Nobody is blamed for it."""


class FirstAnswersClosed(Event):
    """Agents that have answered no longer wait for the others' first answers."""

    type: Literal["first_answers_closed"] = "first_answers_closed"
    awaited: tuple[str, ...]
    """The agents that were given up on for now; their answers still count when they come."""


class AgentDropped(Event):
    """An agent takes no further part; its answers stay."""

    type: Literal["agent_dropped"] = "agent_dropped"
    agent: str
    reason: DropReason
    message: str


class WinnerChosen(Event):
    """Coordination is over. `votes` counts standing votes by answer label."""

    type: Literal["winner_chosen"] = "winner_chosen"
    agent: str
    label: str
    """The label of its answer."""
    outcome: Outcome
    votes: dict[str, int]
    """Standing votes by label."""
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
    """The final answer."""
    reused: bool = False
    """Whether it is the winner's answer as it stood."""
    changes: Changes | None = None
    """As in `RunCompleted`."""


class AnswerEvaluated(Event):
    """The winner's judgement of its own final answer. A judgement that failed counts as content, and says so."""

    type: Literal["answer_evaluated"] = "answer_evaluated"
    agent: str
    sufficient: bool
    """Whether it is good enough."""
    reason: str
    """Why."""
    instructions: str = ""
    """What a further attempt is to do."""


class PresentationFailed(Event):
    """The winner could not write the final answer; its latest answer is used instead."""

    type: Literal["presentation_failed"] = "presentation_failed"
    agent: str
    reason: DropReason
    message: str


AnyEvent = Annotated[
    RunStarted
    | BaseTaken
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
    | CheckFinished
    | FilesChecked
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
    """All of it but the type."""


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
    """The version of the format that wrote it; 0 in lines without one."""
    seq: int
    """Rises by one from 1."""
    time: float
    """Seconds since the epoch."""
    event: Annotated[AnyEvent | UnknownEvent, Field(union_mode="left_to_right")]
    """What happened."""
    unread: tuple[str, ...] = Field(default=(), exclude=True)
    """Names of what was left out of the event, or is no known value, because a newer version wrote it."""

    @property
    def newer(self) -> bool:
        """Whether a newer version wrote it, so that it may mean more than what was read."""
        return self.v > JOURNAL_VERSION or bool(self.unread) or isinstance(self.event, UnknownEvent)
