"""What happens to a run as a whole, from its start to its end."""

from typing import Literal

from massgen_mcp.errors import FailureReason
from massgen_mcp.events.parts import (
    AgentInfo,
    BegunWith,
    Changes,
    CheckOutcome,
    ChecksPolicy,
    CopiedDirectory,
    Event,
    Outcome,
    Spent,
)

BudgetCap = Literal["max_usd", "max_tokens", "max_calls"]
InputKind = Literal["budget_reached", "question", "permission"]
"""What the caller may have to decide before a run continues."""


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
    max_calls: int | None = None
    """The cap of its calls without a price. None: it has none."""
    weighs_cache: bool = False
    """Whether cached input counts for that cap by its price, and not in full."""
    parent: str | None = None
    """Id of the run in which it was started, if it is a nested run."""
    sandbox: str = ""
    """The level of the sandbox that agents' commands run in; `none: …` where they were asked for and none holds here;
    empty where the run has no commands.
    """
    servers: tuple[str, ...] = ()
    """The MCP servers of agents, each with where it runs."""
    checks_policy: ChecksPolicy | None = None
    """How much the checks decide. None: there are none, or the journal is older than this field."""


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
    begins_with: BegunWith | None = None
    """What the copies have beyond what was taken, where the run goes on with changes of an earlier turn."""


class SetupFinished(Event):
    """The config's setup ran once on the base: what it installed is there in every copy and for every check."""

    type: Literal["setup_finished"] = "setup_finished"
    outcome: CheckOutcome
    """Its command and how that ended, with its last lines also where it passed."""
    directories: tuple[str, ...] = ()
    """What it made that git ignores: `NAME/node_modules`."""


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
    """An MCP server of agents could not be started, ended by itself, or has not every tool that was asked for. It may
    have been started again since.
    """

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
    cap: BudgetCap = "max_usd"
    """The one of which more would be gone after that call."""


class BudgetRaised(Event):
    """The caller allowed more: `max_usd` is the new cap, and those of tokens and calls grew in proportion."""

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


class TimeReturned(Event):
    """The process of the run stood still, as in a paused container; that time counts for no limit of the run."""

    type: Literal["time_returned"] = "time_returned"
    seconds: float
    """How long, as far as it was noticed."""


class CallerMessage(Event):
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
    proposed_usd: float | None = None
    """A new cap in US dollars that would do for short replies, where that is asked for and known."""


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
    max_calls: int = 0
    """Its cap of calls without a price, out of the budget of this one."""


class NestedRunEnded(Event):
    """A nested run has ended, or is given up on with this one. Its costs are part of those of this run."""

    type: Literal["nested_run_ended"] = "nested_run_ended"
    run_id: str
    """Of the nested run."""
    state: Literal["completed", "failed", "cancelled", "timed_out"]
    """How it ended."""
    spent: Spent = Spent()
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
    """The run cannot go on. `answer` is the best one there was, by `winner`; it is no final answer."""

    type: Literal["run_failed"] = "run_failed"
    reason: FailureReason
    """Why, in one word of a closed list."""
    message: str
    winner: str | None = None
    answer: str | None = None


class RunCancelled(Event):
    """Somebody cancelled the run. `answer` is the best one there was, by `winner`; it is no final answer."""

    type: Literal["run_cancelled"] = "run_cancelled"
    winner: str | None = None
    answer: str | None = None


class RunTimedOut(Event):
    """The run's own time limit passed. `answer` is the best one there was, by `winner`; it is no final answer."""

    type: Literal["run_timed_out"] = "run_timed_out"
    message: str
    winner: str | None = None
    answer: str | None = None


RunEvent = (
    RunStarted
    | BaseTaken
    | SetupFinished
    | AttemptStarted
    | ServerLost
    | FinishRequested
    | TimeReturned
    | BudgetMark
    | BudgetReached
    | BudgetRaised
    | ReservationExceeded
    | RunResumed
    | CallerMessage
    | InputRequired
    | InputGiven
    | NestedRunStarted
    | NestedRunEnded
    | RunCompleted
    | RunFailed
    | RunCancelled
    | RunTimedOut
)
RunEnd = RunCompleted | RunFailed | RunCancelled | RunTimedOut
TERMINAL = (RunCompleted, RunFailed, RunCancelled, RunTimedOut)
"""After one of these nothing more happens in a run."""
