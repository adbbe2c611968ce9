"""What each event means: the one place with its level, its sentence and the views that show it.

The log, `watch`, the live view, the table and the records all take their words from here. A new event type has to get
its sentence here before the type checker and the tests pass.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, assert_never

from massgen_mcp.events.agent_work import (
    OWN_QUEUE,
    BallotChanged,
    ConversationCondensed,
    ConversationShortened,
    MessagesShown,
    ModelCallAborted,
    ModelCallAdmitted,
    ModelCallFailed,
    ModelCallRetried,
    ModelCallStarted,
    ModelCallWaiting,
    ModelReplied,
    RoundStarted,
    RuleViolated,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from massgen_mcp.events.coordination import (
    ActionForm,
    AgentDropped,
    AnswerEvaluated,
    AnswerPresented,
    AnswerSubmitted,
    CheckFinished,
    FilesChecked,
    FirstAnswersClosed,
    ModelReplaced,
    PresentationFailed,
    PresentationStarted,
    StageOpened,
    VoteCast,
    WinnerChosen,
    WrittenTestsSubmitted,
)
from massgen_mcp.events.parts import DECIDED_BY_RUNS, BallotEntry, Changes, CheckOutcome, Cost, StageKind, StageReason
from massgen_mcp.events.record import AnyEvent, UnknownEvent
from massgen_mcp.events.run import (
    AttemptStarted,
    BaseTaken,
    BudgetMark,
    BudgetRaised,
    BudgetReached,
    CallerMessage,
    FinishRequested,
    InputGiven,
    InputRequired,
    NestedRunEnded,
    NestedRunStarted,
    ReservationExceeded,
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunResumed,
    RunStarted,
    RunTimedOut,
    ServerLost,
    SetupFinished,
    TimeReturned,
)
from massgen_mcp.name_lists import join_names
from massgen_mcp.views.plain_text import counted
from massgen_mcp.views.spent import dollars

LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR"]

Tone = Literal["plain", "quiet", "busy", "good", "bad", "notice", "headline"]
"""What a line of the live view is about; each display has its own colours for it."""

WORKFLOW_TOOLS = ("new_answer", "vote")


@dataclass(frozen=True, slots=True)
class Sentence:
    """What an event says to people and to models, and where it is shown.

    `text` is what happened, without the agent's name; `detail` is what somebody wrote (an answer, a reason, an error),
    of any length and with any characters: a view cuts it to its own size.
    """

    text: str
    detail: str = ""
    level: LogLevel | None = "INFO"
    """Level of its line in the log and in `watch`; None: it has none."""
    record: str | None = None
    """Its name in `coordination_events.json` and the table, MassGen's where it has one; None: it is not in them."""
    live: Tone | None = None
    """How the live view shows it; None: not at all."""
    mark: str = ""
    """A sign in front of it in the live view."""
    doing: str | None = None
    """What the agent is doing from now on, in a few words; "" nothing known; None: this event does not tell."""


def sentence_of(event: AnyEvent | UnknownEvent) -> Sentence:  # noqa: C901 - one case per event, nothing else
    """The sentence of an event."""
    match event:
        case RunStarted():
            team = ", ".join(agent.name for agent in event.agents)
            commands = f"; agents' commands run in {event.sandbox}" if event.sandbox else ""
            servers = f"; MCP servers: {', '.join(event.servers)}" if event.servers else ""
            return Sentence(f"the run starts with {team}{commands}{servers}", event.question, record="session_start")
        case BaseTaken():
            names = (
                ", ".join(f"{one.name} ({counted(one.files, 'file')})" for one in event.directories) or "no directory"
            )
            notes = [f"{one.name}: {note}" for one in event.directories for note in one.notes]
            listing = "; ".join([*notes, *event.refused])
            level = "WARNING" if event.refused else "INFO"
            text = f"every agent has its own copy of {names}"
            if (earlier := event.begins_with) is not None:
                text += (
                    f", including the changes that {earlier.agent} made in run {earlier.run_id} "
                    f"(files: {earlier.files:,})"
                )
            return Sentence(text, listing, level, record="base_taken", live="quiet")
        case ServerLost():
            text = f"the MCP server {event.server} (for {', '.join(event.agents)}) is unavailable"
            return Sentence(text, event.message, "WARNING", record="server_lost", live="bad", mark="!")
        case AttemptStarted():
            again = event.attempt > 1
            detail = f"{event.reason}; now: {event.instructions}" if event.instructions else event.reason
            record = "restart" if again else "attempt_start"
            return Sentence(f"attempt {event.attempt} starts", detail, record=record, live="busy" if again else None)
        case RunResumed():
            repeated = f"; model calls to repeat: {', '.join(event.in_flight)}" if event.in_flight else ""
            text = f"the run continues in a new process{repeated}"
            return Sentence(text, level="WARNING", record="session_resumed", live="busy")
        case TimeReturned():
            return Sentence(
                f"the process was suspended for {event.seconds:.0f} s; this time doesn't count towards the limits"
            )
        case RunCompleted():
            text = f"completed with {event.winner}'s answer{_changing(event.changes)}"
            if event.failing_checks:
                text = f"{text}; its files fail {_commands(event.failing_checks)}"
            if event.unkept:
                return Sentence(
                    f"{text}; the answer's files couldn't be saved", event.unkept, "ERROR", record="session_end"
                )
            level: LogLevel = "WARNING" if event.failing_checks else "INFO"
            return Sentence(text, event.answer, level, record="session_end")
        case RunFailed():
            text = f"failed ({event.reason}); {_best(event.winner)}"
            return Sentence(text, event.message, "ERROR", record="session_end")
        case RunCancelled():
            return Sentence(f"cancelled; {_best(event.winner)}", level="WARNING", record="session_end")
        case RunTimedOut():
            return Sentence(f"timed out; {_best(event.winner)}", event.message, "ERROR", record="session_end")
        case FinishRequested():
            text = "you asked to finish with the existing answers"
            return Sentence(text, record="finish_requested", live="notice")
        case CallerMessage():
            return Sentence("your message to the team", event.message, record="asker_message", live="notice")
        case InputRequired():
            text = f"needs a decision ({_spaced(event.kind)})"
            return Sentence(text, event.text, "WARNING", record="input_required", live="notice", mark="?")
        case InputGiven():
            text = f"decision made ({_spaced(event.kind)})"
            return Sentence(text, event.text, record="input_given", live="notice")
        case NestedRunStarted():
            caps = _sum(event.max_usd, event.max_tokens)
            text = f"starts nested run {event.run_id} ({event.source}; at most {caps})"
            return Sentence(text, event.question, record="nested_run_started", live="busy")
        case NestedRunEnded():
            spent = event.spent
            used = _sum(None if spent.unpriced_calls and not spent.usd else spent.usd, spent.tokens)
            return Sentence(
                f"nested run {event.run_id} ended ({_spaced(event.state)}); it spent {used}",
                record="nested_run_ended",
                live="busy",
            )
        case BudgetMark():
            spent = _sum(event.usd, event.tokens)
            return Sentence(f"{event.percent}% of the budget spent: {spent}", live="busy")
        case BudgetReached():
            text = "the next call would exceed the budget, so the team votes on the existing answers"
            return Sentence(text, event.message, "WARNING", record="budget_reached", live="bad", mark="!")
        case BudgetRaised():
            return Sentence(f"the budget is now {dollars(event.max_usd)}", record="budget_raised", live="notice")
        case ReservationExceeded():
            used, reserved = _sum(event.usd, event.tokens), _sum(event.reserved_usd, event.reserved_tokens)
            return Sentence(f"{event.call_id} used {used}, more than the reserved {reserved}", level="WARNING")
        case ModelCallStarted():
            repeated = " again because its process ended" if event.repeated else ""
            return Sentence(f"model call {event.call_id} starts{repeated}", level="DEBUG", doing="thinking")
        case ModelCallWaiting():
            where = "waits in massgen's queue" if event.obstacle in OWN_QUEUE else "waits"
            why = _spaced(event.obstacle)
            text, doing = f"model call {event.call_id} {where} ({why})", f"{where}: {why}"
            if event.obstacle == "budget":
                return Sentence(text, event.message, "WARNING", doing="waits until the budget allows it", live="notice")
            return Sentence(text, level="DEBUG", doing=doing)
        case ModelCallAdmitted():
            queued = f" after waiting {event.queued_seconds:.1f} s in massgen's queue" if event.queued_seconds else ""
            return Sentence(f"model call {event.call_id} was sent{queued}", level="DEBUG", doing="thinking")
        case TextDelta():
            return Sentence("writes", event.text, level=None, doing="writing")
        case ModelCallRetried():
            wait = f"next attempt in {event.wait_seconds:.1f} s"
            return Sentence(
                f"attempt {event.attempt} of model call {event.call_id} failed ({event.reason}); {wait}",
                event.message,
                "WARNING",
                live="busy",
                mark="!",
                doing=f"{event.reason}; {wait}",
            )
        case ModelReplied():
            return _replied(event)
        case ModelCallFailed():
            text = f"model call {event.call_id} failed ({event.reason})"
            return Sentence(text, event.message, "ERROR", doing="")
        case ModelCallAborted():
            text = f"stopped model call {event.call_id}: its result no longer counts"
            return Sentence(text, level="DEBUG", doing="")
        case ToolStarted():
            doing = f"runs {event.shown}" if event.shown else f"uses {event.name}"
            return Sentence(f"tool {event.name} starts", event.shown, live="quiet", mark="$", doing=doing)
        case ToolFinished():
            state = "failed" if event.is_error else "finished"
            return Sentence(f"tool {event.name} {state}", level="DEBUG", doing="reads the result")
        case RoundStarted():
            text = f"starts round {event.round} and sees {_ballot(event.ballot)}"
            return Sentence(text, record="context_received")
        case MessagesShown():
            return Sentence("reads your message to the team", level="DEBUG")
        case BallotChanged():
            return Sentence(f"now sees {_ballot(event.ballot)}", record="update_injected")
        case ConversationShortened():
            text = "massgen shortened earlier tool results to make room in the model's context"
            return Sentence(text, record="conversation_shortened")
        case ConversationCondensed():
            text = "continues with a summary of its earlier work, to make room in the model's context"
            return Sentence(text, event.note, record="conversation_condensed", live="quiet", mark="~")
        case RuleViolated():
            live = "quiet" if event.counts else None
            text = f"action rejected ({event.code})"
            return Sentence(text, event.message, "WARNING", record="action_refused", live=live, mark="!")
        case AnswerSubmitted():
            voided = f"; voids the votes of {', '.join(event.voided_votes)}" if event.voided_votes else ""
            text = f"new answer {event.label}{_in_form(event.form)}{_changing(event.changes)}{voided}"
            return Sentence(text, event.content, record="new_answer", live="notice", mark="◆")
        case VoteCast():
            again = " in the run-off" if event.run_off else ""
            same = f"; same content: {join_names(event.same_as)}" if event.same_as else ""
            text = f"votes for {event.label}{again}{_in_form(event.form)}{same}"
            return Sentence(text, event.reason, record="vote_cast", live="good", mark="✓")
        case FirstAnswersClosed():
            text = f"the team continues without waiting for the first answers of {', '.join(event.awaited)}"
            return Sentence(text, level="WARNING", record="first_answers_closed", live="busy")
        case StageOpened():
            record = "run_off_started" if event.because == "tied" else "stage_opened"
            return Sentence(_stage_words(event), record=record, live="busy")
        case WrittenTestsSubmitted():
            text = f"writes {_tests(len(event.tests))}{_in_form(event.form)}"
            body = "\n\n".join(f"{one.title}\n{one.script}\nprints: {one.expected}" for one in event.tests)
            return Sentence(text, body, record="tests_written", live="notice", mark="◇")
        case CheckFinished():
            outcome = event.outcome
            what = "check" if outcome.expected is None else "test"
            text = f"{what} {_came_out(outcome)} after {outcome.seconds:.1f} s: {outcome.command} ({outcome.how})"
            return Sentence(text, outcome.excerpt, level="DEBUG")
        case SetupFinished():
            outcome, made = event.outcome, ", ".join(event.directories)
            level, live = ("INFO", "plain") if outcome.result == "passed" else ("WARNING", "bad")
            text = f"setup {_spaced(outcome.result)} after {outcome.seconds:.1f} s: {outcome.command} ({outcome.how})"
            return Sentence(
                text + (f"; created {made}" if made else ""), outcome.excerpt, level, "setup_finished", live
            )
        case FilesChecked():
            return _checks_sentence(event)
        case ModelReplaced():
            text = f"switches to {event.backend}/{event.model} because its own model failed ({event.reason})"
            return Sentence(text, event.message, "WARNING", record="model_replaced", live="bad", mark="!", doing="")
        case AgentDropped():
            record = "agent_timeout" if event.reason == "timeout" else "agent_error"
            unfinished = f"; unfinished work: {event.changes}" if event.changes is not None else ""
            text = f"dropped ({event.reason}){unfinished}"
            return Sentence(text, event.message, "ERROR", record=record, live="bad", mark="✗", doing="")
        case WinnerChosen():
            early = ", decided early" if event.early else ""
            early += "" if event.challenge is None else f", challenge: {_spaced(event.challenge)}"
            text = f"wins with {event.label} ({_spaced(event.outcome)}{early}); votes: {count_votes(event)}"
            return Sentence(text, record="final_agent_selected", live="headline", mark="★")
        case PresentationStarted():
            return Sentence("writes the final answer", record="final_round_start", live="plain")
        case AnswerPresented():
            text = "its answer becomes the final answer" if event.reused else "has written the final answer"
            return Sentence(text, event.answer, record="final_answer")
        case AnswerEvaluated():
            text = f"rates the final answer as {('sufficient' if event.sufficient else 'insufficient')}"
            live = None if event.sufficient else "busy"
            return Sentence(text, event.reason, record="final_answer_judged", live=live)
        case PresentationFailed():
            text = f"could not write the final answer ({event.reason})"
            return Sentence(text, event.message, "ERROR", record="final_answer_failed", live="bad", mark="✗")
        case UnknownEvent():
            return Sentence(
                f"{event.type}: a newer massgen-mcp wrote this event; this version can't show it", level="WARNING"
            )
        case _:
            assert_never(event)


_WHY_OPENED: Mapping[StageReason, str] = {
    "tied": "the votes are tied",
    "still_tied": "the run-off is tied again",
    "differ": "the answers' files differ",
    "few_answers": "there are too few answers to test",
    "no_sandbox": "no sandbox is available for tests",
    "no_tests": "no agent wrote a test",
    "tests_tell_nothing": "the tests don't show which answer is best",
    "tests_tied": "the best answers pass the same number of tests",
    "start": "massgen asks the agents in groups",
    "check_tells": "a check fails on the unchanged files, so massgen asks one agent at a time",
    "none_passes": "no answer passes the checks",
    "no_proof": "the first answers aren't proven right yet",
    "disagreement": "the answers differ",
    "dropped": "an agent was dropped",
    "compare": "massgen compares the first answers",
    "unchanged": "no answer changes files",
    "answered": "all have answered",
    "writer_failed": "no agent could merge the answers",
    "compared": "massgen compares two answers",
    "no_verdict": "the judge found no single best answer",
    "voted": "the team has voted for a winner",
    "failed": "the winner's files fail tests",
    "proven": "the tests are confirmed",
    "wanted": "the run needs a failing test first",
    "fails_before": "a test fails on the unchanged files",
    "void": "no test fails on the unchanged files yet",
}


_DOES: Mapping[StageKind, str] = {
    "test": "write tests to compare the answers",
    "synthesise": "merges {answers}",
    "compare": "judges {answers}",
    "refute": "tries to refute {answers}",
    "settle": "predicts what the tests for {answers} print, without seeing the answer",
    "revise": "may correct {answers} once",
    "check": "writes one",
    "confirm": "predict the test's output from its script",
}


def _stage_words(event: StageOpened) -> str:
    agents, answers = ", ".join(event.agents), join_names(event.subjects, "or")
    known = f" ({event.lead} to {event.rival})" if event.lead else ""
    match event.kind:
        case "answer":
            does = f"{('is' if len(event.agents) == 1 else 'are')} asked now; {event.left} more may be asked later"
        case "vote":
            again = " once more" if event.because == "tied" else ""
            does = f"{'votes' if len(event.agents) == 1 else 'vote'}{again}, for {answers}"
        case _:
            does = _DOES[event.kind].format(answers=answers)
    return f"{_WHY_OPENED[event.because]}{known}: {agents} {does}"


def _tests(count: int) -> str:
    return "no tests" if not count else "one test" if count == 1 else f"{count} tests"


def _checks_sentence(event: FilesChecked) -> Sentence:
    whose = {"base": "the unchanged files", "answer": f"the files of {event.label}", "final": "the final files"}
    whose["unfinished"] = "the agent's unfinished files"
    if event.problem:
        text = f"{whose[event.subject]} could not be checked"
        return Sentence(text, event.problem, "WARNING", record="files_checked", live="bad", mark="!")
    if not event.outcomes:
        return Sentence(f"{whose[event.subject]} are unchanged: nothing to check", record="files_checked")
    outcomes = ", ".join(f"{outcome.command}: {_came_out(outcome)}" for outcome in event.outcomes)
    failed = [outcome for outcome in event.outcomes if outcome.result != "passed"]
    before = [outcome.command for outcome in failed if outcome.command in event.fails_before]
    notes = f"; also failed before: {', '.join(before)}" if before and event.subject != "base" else ""
    if event.subject == "base":
        notes += "".join(f"; fix for {outcome.command}: {outcome.cure}" for outcome in failed if outcome.cure)
    if event.restored:
        own = ", ".join(f"{outcome.command}: {_came_out(outcome)}" for outcome in event.own)
        notes += (
            f"; protected files restored for the checks: {', '.join(event.restored)}"
            f"; results with the answer's versions of these files: {own}"
        )
    notes += "".join(f"; warning: {warning}" for outcome in event.outcomes for warning in outcome.warnings)
    notes += "".join(f"; {sentence}" for sentence in event.unfollowed)
    why, _, more = failed[0].excerpt.partition("\n") if failed else ("", "", "")
    return Sentence(
        f"checks of {whose[event.subject]}: {f'{why}; ' if why else ''}{outcomes}{notes}",
        more,
        "WARNING" if failed else "INFO",
        record="files_checked",
        live=_tone_of_checks(failed, before),
        mark="✗" if failed else "✓",
    )


def _tone_of_checks(failed: Sequence[CheckOutcome], before: Sequence[str]) -> Tone:
    """Return the colour: that a check fails as it did before is no news."""
    if not failed:
        return "good"
    return "busy" if len(failed) == len(before) else "bad"


def _came_out(outcome: CheckOutcome) -> str:
    if outcome.flaky:
        return "flaky (both passed and failed on the same files)"
    times = " twice" if outcome.runs > 1 else ""
    return f"{_spaced(outcome.result)}{times}{f' ({_spaced(outcome.obstacle)})' if outcome.obstacle else ''}"


def _commands(commands: Sequence[str]) -> str:
    return ", ".join(f"`{command}`" for command in commands)


def _replied(event: ModelReplied) -> Sentence:
    names = [call.name for call in event.tool_calls]
    price = _format_price(event.cost)
    called = f"calls {', '.join(names)}" if names else "no tool call"
    used = list(dict.fromkeys(name for name in names if name not in WORKFLOW_TOOLS))
    text = f"{event.model} replied after {event.seconds:.2f} s ({price}): {called}"
    return Sentence(text, level="DEBUG", doing=f"uses {', '.join(used)}" if used else "")


def _format_price(cost: Cost) -> str:
    if cost.usd is None:
        return "price unknown"
    if cost.source == "free":
        return "free"
    sources = {"estimate": "an estimate", "bound": "an upper limit because the price is unknown"}
    return f"{dollars(cost.usd)}, {sources.get(cost.source or '', f'price from {cost.source}')}"


def count_votes(event: WinnerChosen) -> str:
    """The votes by label, and what decided beyond them."""
    return "; ".join([_counts(event.votes), *decided_beyond_votes(event)])


def decided_beyond_votes(event: WinnerChosen) -> list[str]:
    """Which answers say the same, the votes of a run-off, a tie, and how many agents were asked; nothing of what was
    not.
    """
    camps = [camp for camp in event.camps if len(camp.answers) > 1]
    parts = [
        f"same content: {' = '.join(camp.answers)} ({camp.votes} vote{('' if camp.votes == 1 else 's')} combined)"
        for camp in camps
    ]
    if event.run_off is not None:
        parts.append(f"run-off: {_counts(event.run_off)}")
    if event.drawn:
        parts.append(_describe_equals(event))
    if event.judge is not None:
        parts.append(f"tie decided by {event.judge}, which compared the answers in both orders")
    if event.asked is not None:
        parts.append(f"asked {event.asked} of {event.of}")
    return parts


def _describe_equals(event: WinnerChosen) -> str:
    """Say why several answers are as good as the winner."""
    named = ", ".join(event.drawn)
    if event.outcome in DECIDED_BY_RUNS:
        return f"the same files: {named}"
    same = any({*event.drawn} <= {*camp.answers} for camp in event.camps)
    return f"tied, with the same content: {named}" if same else f"tied: {named}"


def _counts(votes: Mapping[str, int]) -> str:
    return ", ".join(f"{label}: {count}" for label, count in votes.items()) or "none"


def _in_form(form: ActionForm) -> str:
    """How an action came, where it was no call of a tool."""
    match form:
        case "tool_call":
            return ""
        case "json" | "fenced_json" | "tool_call_tag" | "function_tag" | "python_tag" | "function_call":
            return f" (a tool call written as text: {_spaced(form)})"
        case "text":
            return " in plain text"
        case "vote_line":
            return " (in a line of text)"


def _changing(changes: Changes | None) -> str:
    return f"; {changes}" if changes is not None else ""


def _best(winner: str | None) -> str:
    return f"best answer so far: {winner}" if winner else "no answer yet"


def _spaced(name: str) -> str:
    return name.replace("_", " ")


def _sum(usd: float | None, tokens: int) -> str:
    return f"{'an unknown amount' if usd is None else dollars(usd)} and {tokens:,} tokens"


def _ballot(entries: Sequence[BallotEntry]) -> str:
    return ", ".join(f"{entry.name} = {entry.label}" for entry in entries) or "no answers yet"
