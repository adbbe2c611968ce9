"""Parts of the page of a run, as it draws them: what answers make of the caller's files and what checks say of that,
what was spent (an unknown price is never drawn as nothing), the time line, and what an agent was sent at one moment.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from massgen_mcp.events import parts
from massgen_mcp.events.agent_work import BallotChanged, MessagesShown, RoundStarted
from massgen_mcp.events.coordination import PresentationStarted
from massgen_mcp.events.parts import BallotEntry, ChecksPolicy, RoundKind, Spent
from massgen_mcp.money.budget import Spending
from massgen_mcp.page.data import (
    Checked,
    CheckResult,
    Checks,
    PageChanges,
    PageCheck,
    PagePhase,
    PagePrompt,
    PageTest,
    ShownAnswer,
    Sum,
    Sums,
    Tests,
    Text,
    TimeLine,
    TimeLinePlace,
)
from massgen_mcp.page.history import PastChecked, Sent, key_of
from massgen_mcp.page.left_out import TextRoom
from massgen_mcp.redaction import Redactor
from massgen_mcp.run_state.state import RunState
from massgen_mcp.views.checks import MISUNDERSTANDING, standing_in_tests
from massgen_mcp.views.names import name_answer
from massgen_mcp.views.spent import cost_of, count, money_notes

MOST_PATCH_BYTES = 300_000
"""So much of one patch is in a page."""
MOST_FILES = 500
"""So many changed files of an answer are named."""

MOST_TITLE = 300
"""Characters of what a test is about."""

_CANNOT_WIN = "an answer can't win if another answer passes the same checks and more"
_POLICIES: Mapping[ChecksPolicy, str] = {
    "informative": "Informative: voters saw the results and decided.",
    "required": f"Required: {_CANNOT_WIN}.",
    "goal": f"Goal: {_CANNOT_WIN}; the final files must also pass the checks that fail on the unchanged files.",
}

PatchOf = Callable[[parts.Changes, int], bytes]
"""At most so many bytes of a patch, the beginning of every file's difference; none where it cannot be read any more."""


@dataclass
class Patches:
    """The patches of a page: each once, whoever has the same files."""

    read: PatchOf
    room: TextRoom
    redactor: Redactor
    """A patch is read from a file as it is: lines that the team took out may hold what nobody may see."""
    texts: dict[str, Text] = field(default_factory=dict[str, Text])

    def changes(self, changes: parts.Changes | None) -> PageChanges | None:
        if changes is None:
            return None
        redacted = self.room.redacted
        files = () if redacted else changes.files[:MOST_FILES]
        if changes.patch is not None and changes.tree not in self.texts:
            self.texts[changes.tree] = self._text(changes)
        return PageChanges(
            say=str(changes),
            files=files,
            more=changes.count - len(files),
            notes=() if redacted else changes.notes,
            patch=None if changes.patch is None else changes.tree,
        )

    def _text(self, changes: parts.Changes) -> Text:
        if self.room.redacted:
            return Text(text="", left_out=changes.patch_bytes)
        data = self.read(changes, MOST_PATCH_BYTES)
        kept = self.room.take(self.redactor.text(data.decode(errors="replace")))
        return Text(text=kept.text, left_out=kept.left_out + max(0, changes.patch_bytes - len(data)))


def checks_of(run: RunState, policy: ChecksPolicy, past: Sequence[PastChecked], room: TextRoom) -> Checks | None:
    """None where the run has none."""
    if not past:
        return None
    return Checks(
        policy=_POLICIES[policy],
        decided=tuple(_describe_decisions(run, policy)),
        checked=tuple(_past_checks(one, room) for one in sorted(past, key=lambda one: one.event.subject != "base")),
    )


def tests_of(run: RunState, room: TextRoom) -> Tests | None:
    """None where no test has run on all answers."""

    def keys(labels: Sequence[str]) -> tuple[str, ...]:
        return tuple(key_of(run.attempt, label) for label in labels)

    tests = tuple(
        PageTest(
            by=one.author,
            title=room.beginning(one.test.title, MOST_TITLE),
            script=room.take(one.test.script),
            expected=room.take(one.test.expected),
            passed=keys(one.passed),
            failed=keys(one.failed),
            void=one.why_void,
        )
        for one in run.judged_tests
    )
    say = tuple(f"{part}." for part in (standing_in_tests(run), MISUNDERSTANDING) if part)
    return Tests(say=say, tests=tests) if tests else None


def _past_checks(past: PastChecked, room: TextRoom) -> Checked:
    event = past.event
    own: dict[str, CheckResult] = {outcome.command: outcome.result for outcome in event.own}
    return Checked(
        subject=event.subject,
        agent=event.agent,
        answer=None if event.label is None else key_of(past.attempt, event.label),
        checks=tuple(
            PageCheck(
                command=outcome.command,
                result=outcome.result,
                how=outcome.how,
                seconds=outcome.seconds,
                lines=room.take(outcome.excerpt) if outcome.excerpt else None,
                failed_before=outcome.command in event.fails_before,
                own=own.get(outcome.command),
                flaky=outcome.flaky,
                tests=outcome.tests,
                warnings=outcome.warnings,
                cure=outcome.cure,
            )
            for outcome in event.outcomes
        ),
        restored=event.restored,
        problem=event.problem,
    )


def _describe_decisions(run: RunState, policy: ChecksPolicy) -> Iterable[str]:
    """Yield which answers could not win, by the rules of the run, which its journal does not hold."""
    rules = replace(run.coordination.rules, checks=policy)
    for label in sorted(replace(run.coordination, rules=rules).checks.excluded):
        yield f"{name_answer(run, label)} couldn't win because it failed checks that another answer passed."
    if run.work_done.failing:
        yield "The final files fail some checks."


PHASES: tuple[PagePhase, ...] = (
    "First answers",
    "Reading, improving, voting",
    "Final answer",
    "Judging it",
    "Making room",
)


def sums_of(run: RunState, by_phase: Mapping[PagePhase, Spending]) -> Sums:
    spending = run.budget.spending
    in_dollars = not spending.total.unpriced_calls and spending.total.usd > 0
    nested = {"Nested runs": spending.nested} if run.nested_ends else dict[str, Spent]()
    by_agent = {agent.info.id: spending.by_agent.get(name, Spent()) for name, agent in run.agents.items()}
    phases = {phase: by_phase[phase].total for phase in PHASES if phase in by_phase}

    def rows(spent_by: Mapping[str, Spent]) -> tuple[Sum, ...]:
        sizes = [spent.usd if in_dollars else spent.tokens for spent in spent_by.values()]
        most = max(sizes, default=0)
        return tuple(
            Sum(
                name=name,
                calls=spent.calls + spent.lost_calls,
                tokens=count(spent.tokens),
                cost=cost_of(spent) if spent.calls + spent.lost_calls else "none",
                share=size / most if most else 0.0,
            )
            for (name, spent), size in zip(spent_by.items(), sizes, strict=True)
        )

    return Sums(
        measure="cost" if in_dollars else "tokens",
        by_agent=rows({**by_agent, **nested}),
        by_model=rows({**spending.by_model, **nested}),
        by_phase=rows({**phases, **nested}),
        notes=tuple(money_notes(run)),
    )


LONGEST_IDLE = 0.04
"""Of the time in which somebody worked: a longer stretch without work is drawn as long as this."""
SHORTEST_IDLE = 2.0
"""Seconds. A shorter stretch is drawn as it was."""


def time_line(work: Iterable[tuple[float, float]], end: float) -> TimeLine:
    """`work`: from when to when somebody worked, or something happened; `end`: of the run, or now."""
    spans = _merged_spans([(0.0, 0.0), *work, (end, end)])
    worked = sum(until - since for since, until in spans)
    longest = max(SHORTEST_IDLE, LONGEST_IDLE * worked)
    idle = [(before, after) for (_, before), (after, _) in pairwise(spans)]
    idle = [(before, after) for before, after in idle if after - before > longest]
    stops, drawn, last = [(0.0, 0.0)], 0.0, 0.0
    for before, after in idle:
        drawn += before - last
        stops.append((before, drawn))
        drawn += longest
        stops.append((after, drawn))
        last = after
    drawn += end - last
    stops.append((end, drawn))
    whole = drawn or 1.0
    return TimeLine(
        end=end, places=tuple(TimeLinePlace(at=at, place=place / whole) for at, place in stops), idle=tuple(idle)
    )


def _merged_spans(spans: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    joined: list[tuple[float, float]] = []
    for since, until in sorted(spans):
        if joined and since <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], until))
        else:
            joined.append((since, until))
    return joined


_KINDS: Mapping[RoundKind, str] = {
    "answer_or_vote": "",
    "run_off": " of the run-off",
    "test": ", to write tests",
    "check": ", to write a failing test",
    "confirm": ", to predict a script's output",
    "settle": ", to predict the output of scripts",
}


def shown_of(sent: Sent, messages: Sequence[str], room: TextRoom, at: float) -> PagePrompt:
    """`messages`: all that the caller has said; `at`: when it was sent, in seconds since the run began."""
    event, texts = sent.event, list[str]()
    ballot: tuple[BallotEntry, ...] = ()
    heard = [f"Message from the caller: {message}" for message in messages]
    match event:
        case RoundStarted():
            what = f"Round {event.round}{_KINDS.get(event.kind, '')}"
            ballot = event.ballot
            texts = [*_reasons(event), event.notes, *heard[: event.heard]]
        case BallotChanged():
            what, ballot = "Newer answers", event.ballot
            texts = _reasons(event)
        case MessagesShown():
            what = "Messages from the caller"
            texts = heard[: event.heard]
        case PresentationStarted():
            what = "all answers and votes, to write the final answer"
            texts = heard[: event.heard]
    return PagePrompt(
        at=at,
        agent=event.agent,
        what=what,
        ballot=tuple(ShownAnswer(name=entry.name, answer=key_of(sent.attempt, entry.label)) for entry in ballot),
        texts=tuple(room.take(text) for text in texts if text),
    )


def _reasons(event: RoundStarted | BallotChanged) -> list[str]:
    return [f"{reason.name}'s reason: {reason.reason}" for reason in event.reasons]
