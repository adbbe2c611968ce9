"""What is known of a run at one moment, and the questions that several readers ask of it.

A fact that the rules or the budget own is asked of them; a field here is a fact of its own.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from massgen_mcp.coordination.deciding import best_so_far
from massgen_mcp.coordination.evidence import excluded
from massgen_mcp.coordination.state import Coordination, Rules
from massgen_mcp.coordination.testing import tests_with_first
from massgen_mcp.coordination.written_tests import JudgedTest
from massgen_mcp.events.agent_work import ToolFinished
from massgen_mcp.events.coordination import (
    AgentDropped,
    AnswerSubmitted,
    FilesChecked,
    PresentationFailed,
    WinnerChosen,
)
from massgen_mcp.events.parts import Camp, Changes, CheckOutcome, ChecksPolicy, Outcome, Spent
from massgen_mcp.events.run import (
    AttemptStarted,
    BaseTaken,
    InputRequired,
    NestedRunEnded,
    NestedRunStarted,
    RunCompleted,
    RunEnd,
    SetupFinished,
)
from massgen_mcp.money.budget import Budget
from massgen_mcp.run_state.agents import WORKING_NOTES, AgentState, Vote
from massgen_mcp.run_state.caller import Caller
from massgen_mcp.run_state.resume_point import ResumePoint
from massgen_mcp.run_state.status import TERMINAL_STATES, Phase, RunStatus

LATE = "late"
"""The reason in `degraded` for an agent that was not waited for any longer."""
LATE_MESSAGE = "no first answer before the winner was chosen; to wait longer, raise first_answer_wait_seconds"


def best_left(agents: Mapping[str, AgentState], checked: Mapping[str, FilesChecked]) -> str | None:
    """Who left the best of it: files that checks speak against no more than against others', of these what was changed
    last.
    """
    left = [name for name, agent in agents.items() if agent.dropped is not None and agent.dropped.changes is not None]
    out = excluded({name: checked[name] for name in left if name in checked}, "required")
    able = [name for name in left if name not in out]
    return max(able, key=lambda name: agents[name].dropped_at or 0.0, default=None)


def text_of_unfinished(agent: AgentState) -> str:
    """What takes the place of an answer: whose files these are and why they are unfinished, with its last words."""
    why = agent.dropped.reason if agent.dropped is not None else ""
    facts = f"Unfinished: {agent.info.id} gave no answer ({why}). Its changes: {agent.latest_changes}."
    words = agent.working_notes[-WORKING_NOTES:].strip()
    return f"{facts}\n\nIts last words:\n\n{words}" if words else facts


_ENDED: dict[str, RunStatus] = {
    "run_completed": "completed",
    "run_failed": "failed",
    "run_cancelled": "cancelled",
    "run_timed_out": "timed_out",
}


@dataclass(frozen=True, slots=True)
class Final:
    """An attempt's final answer, and what the coordination that led to it came to."""

    agent: str
    outcome: Outcome
    answer: str
    changes: Changes | None = None
    voted: int = 0
    """So many agents had a standing vote."""


@dataclass
class RunFacts:
    """Mutable while being folded; treat it as read-only."""

    run_id: str = ""
    question: str = ""
    seq: int = 0
    phase: Phase = "answering"
    coordination: Coordination = field(default_factory=lambda: Coordination.begin((), Rules()))
    budget: Budget = field(default_factory=Budget)
    agents: dict[str, AgentState] = field(default_factory=dict[str, AgentState])
    caller: Caller = field(default_factory=Caller)
    resume_point: ResumePoint = field(default_factory=ResumePoint)
    base: BaseTaken | None = None
    """What was taken of the caller's directories; None: nothing yet, or there are none."""
    setup: SetupFinished | None = None
    attempt_started: AttemptStarted | None = None
    """The attempt that goes on, or went on last."""
    earlier_answers: list[AnswerSubmitted] = field(default_factory=list[AnswerSubmitted])
    """Those of the attempts before this one."""
    cast: dict[str, Vote] = field(default_factory=dict[str, Vote])
    """Each agent's last vote in this attempt, in the order of voting; the rules know which of them stand."""
    cast_in_run_off: dict[str, Vote] = field(default_factory=dict[str, Vote])
    final: Final | None = None
    """The latest final answer, of this attempt or an earlier one."""
    earlier_final: Final | None = None
    """The final answer of the attempts before this one."""
    checks_policy: ChecksPolicy | None = None
    """How much the checks of this run decide; None: it has none."""
    check_outcomes: dict[tuple[str, str], CheckOutcome] = field(default_factory=dict[tuple[str, str], CheckOutcome])
    """By the id of the files and the command."""
    checked_final: FilesChecked | None = None
    """What checks said of the files of the final answer; the rules know those of the base and of the answers."""
    checked_unfinished: dict[str, FilesChecked] = field(default_factory=dict[str, FilesChecked])
    """What they said of files that dropped agents left, by agent."""
    presentation_failed: PresentationFailed | None = None
    end: RunEnd | None = None
    started_at: float | None = None
    updated_at: float | None = None
    clock: float | None = None
    """That of the latest record, as `updated_at` is its time."""
    ended_at: float | None = None
    resumed: int = 0
    """How often another process had to go on with the run."""
    nested_runs: dict[str, NestedRunStarted] = field(default_factory=dict[str, NestedRunStarted])
    """Runs that were started inside this one, by id."""
    nested_ends: dict[str, NestedRunEnded] = field(default_factory=dict[str, NestedRunEnded])
    """How those of them ended that have, by id."""
    servers_lost: dict[tuple[str, tuple[str, ...]], str] = field(default_factory=dict[tuple[str, tuple[str, ...]], str])
    """Why an MCP server was not there at some time, by its name and the agents whose it is."""
    parent: str | None = None
    """Id of the run that it is nested in."""
    store_state: RunStatus | None = None
    """What the run store says where it knows better than the events: nobody has begun the run, or nobody goes on."""
    moved: str | None = None
    """Where to, in words, if the run goes on in another store: also that only the run store says."""

    # -- the run --------------------------------------------------------------------------------------------------

    @property
    def state(self) -> RunStatus:
        """`queued` until the run's first event."""
        if self.store_state is not None:
            return self.store_state
        if self.end is not None:
            return _ENDED[self.end.type]
        if self.caller.asked is not None:
            return "input_required"
        return "queued" if self.started_at is None else "running"

    @property
    def attempt(self) -> int:
        return self.attempt_started.attempt if self.attempt_started else 1

    @property
    def progress(self) -> int:
        """Percent of the way, 100 only when the run has ended. Restarts may take it back: votes that became void count
        as work to be done again.
        """
        if self.state in TERMINAL_STATES:
            return 100
        live = [agent for agent in self.agents.values() if agent.dropped is None]
        if not live:
            return 0
        done = sum(1 for agent in live if agent.answers) + len(self.votes)
        return min(99, round(100 * done / (2 * len(live) + 1))) if self.winner is None else 95

    def now(self, clock: float, time: float) -> float:
        """This moment in the time of the run's records, whoever has set the machine's clock meanwhile. `clock` as in
        `LogRecord`, `time` in seconds since the epoch.
        """
        if self.clock is None or self.updated_at is None:
            return time
        return self.updated_at + max(0.0, clock - self.clock)

    def elapsed(self, now: float) -> float:
        """How long it has been worked on, in seconds, at the moment `now` of its records' time; the time in which no
        process had it does not count.
        """
        since = 0.0
        if self.updated_at is not None and self.state in ("running", "input_required"):
            since = max(0.0, now - self.updated_at)
        return self.resume_point.elapsed + since

    @property
    def dropped(self) -> list[AgentDropped]:
        """Who takes part no more and why, in the order of time."""
        by_time = sorted(self.agents.values(), key=lambda agent: agent.dropped_at or 0.0)
        return [agent.dropped for agent in by_time if agent.dropped]

    @property
    def checked_base(self) -> FilesChecked | None:
        return self.coordination.base_checks

    # -- answers and votes ----------------------------------------------------------------------------------------

    @property
    def answers(self) -> list[AnswerSubmitted]:
        """Every answer ever given: earlier attempts first, agents in the order of the config."""
        return [*self.earlier_answers, *(answer for agent in self.agents.values() for answer in agent.answers)]

    @property
    def current_answers(self) -> list[AnswerSubmitted]:
        return [agent.answers[-1] for agent in self.agents.values() if agent.answers]

    @property
    def votes(self) -> dict[str, Vote]:
        """The standing votes by voter, in the order in which they were cast."""
        seats = self.coordination.seats
        return {agent: vote for agent, vote in self.cast.items() if seats[agent].vote is not None}

    @property
    def run_off_votes(self) -> dict[str, Vote]:
        """The same of a run-off; empty where there was none."""
        seats = self.coordination.seats
        return {agent: vote for agent, vote in self.cast_in_run_off.items() if seats[agent].run_off_vote is not None}

    @property
    def void_votes(self) -> list[Vote]:
        """Those that a new answer voided, whose voters still take part and have not voted since."""
        seats = self.coordination.seats
        return [vote for agent, vote in self.cast.items() if seats[agent].vote is None and not seats[agent].dropped]

    @property
    def tally(self) -> dict[str, int]:
        """Standing votes by label of the current answers; superseded votes are not there."""
        return dict(self.coordination.count.votes)

    @property
    def camps(self) -> tuple[Camp, ...]:
        """The current answers by what they say in the voters' eyes. Empty where the journal is older than camps."""
        return self.coordination.count.camps if self.winner is None else self.winner.camps

    @property
    def agreed(self) -> tuple[str, ...]:
        """Labels of the answers that say the same as the winner's, that one included; empty without a winner."""
        if self.winner is None:
            return ()
        label = self.winner.label
        return next((camp.answers for camp in self.winner.camps if label in camp.answers), (label,))

    @property
    def winner(self) -> WinnerChosen | None:
        return self.coordination.winner

    # -- nested runs ----------------------------------------------------------------------------------------------

    @property
    def open_nested_runs(self) -> list[NestedRunStarted]:
        """Those that have not ended, as far as this run knows."""
        return [started for run_id, started in self.nested_runs.items() if run_id not in self.nested_ends]

    # -- the end --------------------------------------------------------------------------------------------------

    def best(self) -> tuple[str | None, str | None]:
        """Whose answer is the best one so far, and its text: a presented one is better than a winner's draft, that is
        better than any other draft, and where there is none what was left unfinished. None for both where there is
        nothing.
        """
        if self.final is not None:
            return self.final.agent, self.final.answer
        winner = self.winner or best_so_far(self.coordination)
        if winner is not None:
            return winner.agent, self.coordination.content(winner.label)
        left = best_left(self.agents, self.checked_unfinished)
        return (None, None) if left is None else (left, text_of_unfinished(self.agents[left]))

    @property
    def final_answer(self) -> str | None:
        """Only a completed run has one."""
        return self.end.answer if isinstance(self.end, RunCompleted) else None

    @property
    def opening(self) -> str:
        """The nonce around the question, as an agent had it last; "" before any began."""
        return next((agent.opening for agent in self.agents.values() if agent.opening), "")

    @property
    def best_answer(self) -> str | None:
        """The final answer, or the best one that a run had which did not come to one."""
        return self.end.answer if self.end is not None else None

    @property
    def best_changes(self) -> Changes | None:
        """What the best answer changes of the caller's files; None where there is no answer, or no base."""
        if isinstance(self.end, RunCompleted):
            return self.end.changes
        if self.final is not None:
            return self.final.changes
        author = self.end.winner if self.end is not None else self.best()[0]
        if author not in self.agents:
            return None
        agent = self.agents[author]
        return self.coordination.answer_of(author).changes if agent.answers else agent.latest_changes

    @property
    def author(self) -> str | None:
        """Who wrote the answer that the run ended with, as the config calls it."""
        name = self.end.winner if self.end is not None else None
        return self.agents[name].info.id if name in self.agents else None

    @property
    def answered_by(self) -> str | None:
        """Whose answer is the final one. `winner` is the last attempt's, which may have come to nothing."""
        return self.end.winner if isinstance(self.end, RunCompleted) else None

    @property
    def unkept(self) -> str:
        """Why the final answer has no files of its own in the run directory; empty where it has."""
        return self.end.unkept if isinstance(self.end, RunCompleted) else ""

    @property
    def outcome(self) -> Outcome | None:
        """How good the agreement was; whatever a run had that did not complete is the best so far, or unfinished."""
        if isinstance(self.end, RunCompleted):
            return self.end.outcome
        if self.end is not None and self.end.winner in self.agents and not self.answers:
            return "unfinished"
        return "best_so_far" if self.best_answer is not None else None

    @property
    def voted(self) -> int:
        """How many agents' votes stood when the best answer was found, whatever they were for."""
        return self.final.voted if self.final is not None else len(self.votes)

    @property
    def late(self) -> tuple[str, ...]:
        """The agents that were left out of an ended run, because the others were judged before they had answered."""
        if self.end is None or self.winner is None:
            return ()
        return tuple(agent for agent in self.coordination.unanswered if agent not in self.cast)

    @property
    def left_out(self) -> tuple[str, ...]:
        """The agents without whose first answer a winner was chosen: those that are late, and those whose answer came
        when no more votes could be had.
        """
        if self.winner is None:
            return ()
        cut_off = [drop.agent for drop in self.dropped if drop.reason == "cut_off"]
        return (*self.late, *(agent for agent in cut_off if not self.agents[agent].answers))

    @property
    def degraded(self) -> list[tuple[str, str, str]]:
        """(agent, reason, message) of each agent that was dropped or too late, and of what else was lost on the way."""
        rows = [(d.agent, d.reason, d.message) for agent in self.agents.values() if (d := agent.dropped)]
        rows += [(agent, LATE, LATE_MESSAGE) for agent in self.late]
        if failed := self.presentation_failed:
            rows.append((failed.agent, failed.reason, f"presentation: {failed.message}"))
        if isinstance(self.end, RunCompleted) and self.unkept:
            rows.append((self.end.winner, "internal", f"the answer's files weren't saved: {self.unkept}"))
        return rows

    @property
    def server_losses(self) -> list[str]:
        """What to know of MCP servers that were not there, in words with the config's names for the agents."""
        return [
            f"MCP server {server} of {', '.join(self.agents[agent].info.id for agent in agents)}: {why}"
            for (server, agents), why in self.servers_lost.items()
        ]

    @property
    def judged_tests(self) -> tuple[JudgedTest, ...]:
        """The tests that the team wrote: those before anybody answered, and others as far as they have run on all
        answers.
        """
        return tests_with_first(self.coordination)

    @property
    def hears(self) -> bool:
        """Whether a message to the team can still be read: not while the final answer is written, unless with tools."""
        at = self.resume_point
        if at.presented:
            return self.phase == "evaluating"  # a further attempt may follow
        return not at.presentation or any(isinstance(event, ToolFinished) for event in at.presentation)

    # -- the caller and the budget --------------------------------------------------------------------------------

    @property
    def input_required(self) -> InputRequired | None:
        """What the caller has to decide before the run continues; None: nothing."""
        return self.caller.asked

    @property
    def max_usd(self) -> float | None:
        """The cap as it stands; None where the run has none."""
        return self.budget.max_usd if math.isfinite(self.budget.max_usd) else None

    @property
    def budget_reached(self) -> bool:
        """The run has been told to come to its end with what it has."""
        return self.coordination.closing

    @property
    def spent(self) -> Spent:
        return self.budget.spent
