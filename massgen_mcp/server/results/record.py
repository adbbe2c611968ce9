"""What led to an answer: the votes with their reasons, dissent, who was dropped, what was used."""

from collections.abc import Iterator
from dataclasses import dataclass

from massgen_mcp.events.coordination import FilesChecked
from massgen_mcp.run_state.state import RunState
from massgen_mcp.runs.view.run_view import RunView
from massgen_mcp.server.results.reply import ResultPart, listed, name_value, number
from massgen_mcp.server.results.words import shortened
from massgen_mcp.views.names import name_agent

SOURCE_CHARACTERS = 80
COMMAND_CHARACTERS = 100


class VoteLine(ResultPart):
    voter: str
    """Id of the agent that voted."""
    voted_for: str
    """Id of the agent whose answer it voted for."""
    label: str
    """The label of that answer."""
    reason: str
    """Why, in the voter's words."""


class Dissent(ResultPart):
    """An answer that says something else than the winner's and had votes."""

    agent: str
    """Id of its author."""
    label: str
    """Its label."""
    votes: int
    """How many it had."""
    preview: str
    """Its beginning."""


class Dropped(ResultPart):
    agent: str
    """Its id."""
    reason: str
    """Why, in one word of a closed list."""
    message: str | None = None
    """Why, in words. Absent where the run's own `reason` has them."""
    unfinished: str | None = None
    """What it had changed in files when it was dropped; view=diff with `agent` shows it."""

    def text(self) -> str:
        why = f": {self.message}" if self.message is not None else ""
        left = (
            f"; get_result view=diff agent={self.agent} shows its unfinished work: {self.unfinished}"
            if self.unfinished
            else ""
        )
        return f"dropped {self.agent} ({self.reason}){why}{left}"


class CheckLine(ResultPart):
    """How one check came out on the files of `of`."""

    of: str
    """Whose files: `base`, the label of an answer, `final`, or `unfinished`: those that a dropped agent left."""
    agent: str | None = None
    """Id of their author."""
    command: str
    """The check."""
    result: str
    """`passed`, `failed` or `not_run`."""
    how: str
    """How it ended, in words."""
    seconds: float
    """How long it took."""
    not_passed_before: bool | None = None
    """True where it does not pass on the base."""
    with_own_files: str | None = None
    """Where the answer changed protected files, which are judged as in the base: how it comes out with its own."""
    flaky: bool | None = None
    """True where it passed once and failed once on the same files: it counts for nobody."""
    excerpt: str | None = None
    """What of its output tells why it failed."""

    def text(self) -> str:
        whose = self.of if self.agent is None else f"{self.agent} ({self.of})"
        return listed(
            f"check of {whose}: {self.result}: {self.command} ({self.how}, {number(self.seconds)} s)",
            self._before(),
            "flaky: it both passed and failed on the same files" if self.flaky else None,
            f"with the answer's versions of protected files: {self.with_own_files}" if self.with_own_files else None,
            self.excerpt,
        )

    def _before(self) -> str | None:
        if not self.not_passed_before:
            return None
        return "failed before" if self.result == "passed" else "also failed before"


class TestLine(ResultPart):
    """A test that an agent of the team wrote, and how it came out on the answers' files."""

    __test__ = False
    title: str
    """What the question demands."""
    by: str
    """Id of the agent that wrote it; it does not judge that one's answer."""
    passed: list[str]
    """Labels of the answers that pass it."""
    failed: list[str]
    """Labels of the answers that fail it."""
    void: str | None = None
    """Why it does not count; absent where it does."""
    script: str | None = None
    """The shell script."""
    expected: str | None = None
    """What it has to print."""

    def text(self) -> str:
        return listed(
            f"test by {self.by}: {self.title}: passed by {', '.join(self.passed) or 'none'}",
            f"failed by {', '.join(self.failed) or 'none'}",
            f"not counted: {self.void}" if self.void else None,
            f"script: {self.script}" if self.script else None,
            f"expected: {self.expected}" if self.expected else None,
        )


class NestedRun(ResultPart):
    """A run that was started inside this one. Its costs are a part of `ResultUsage`."""

    run_id: str
    """Of the nested run."""
    status: str
    """Where it stands."""
    source: str
    """Where its team came from."""
    started_by: str | None = None
    """Absent where a program did it that works inside the run."""
    cost_usd: float | None = None
    """Absent where no price is known, or it goes on."""
    tokens: int | None = None
    """Input and output of all its calls."""

    def text(self) -> str:
        return listed(
            f"nested {self.run_id}: {self.status}",
            self.source,
            f"started by {self.started_by}" if self.started_by else None,
            name_value("cost_usd", self.cost_usd),
            _count(self.tokens, "tokens"),
        )


def _count(number: int | None, of: str) -> str | None:
    return f"{number} {of}" if number is not None else None


class ResultUsage(ResultPart):
    model_calls: int
    """All calls of models, nested ones and those that were cut off included."""
    cut_off_calls: int | None = None
    """Calls that had to be paid for and brought no whole reply; their tokens are counted by the length of the texts."""
    input_tokens: int
    """Of all calls."""
    cached_input_tokens: int | None = None
    """Those of them that came from the provider's cache; absent without any."""
    output_tokens: int
    """Of all calls, reasoning included."""
    calls_without_usage: int | None = None
    """Calls whose provider reported no tokens; they are counted by the length of the texts. Absent without any."""
    partly_counted_calls: int | None = None
    """Calls of which an agent told a part of the tokens only; absent without any."""
    cost_usd: float | None = None
    """Absent where no price is known."""
    saved_by_cache_usd: float | None = None
    """What providers' prompt caches saved; absent where that is nothing or not known."""
    unpriced_calls: int | None = None
    """Calls whose price is unknown; absent without any."""
    nested_calls: int | None = None
    """How many of the calls were made in nested runs; absent without any."""
    nested_cost_usd: float | None = None
    """What those cost."""
    nested_tokens: int | None = None
    """Their tokens."""

    def text(self) -> str:
        return listed(
            name_value("cost_usd", self.cost_usd) or "price unknown",
            f"{self.model_calls} calls",
            _count(self.cut_off_calls, "of them incomplete"),
            f"{self.input_tokens} input tokens",
            _count(self.cached_input_tokens, "of them cached"),
            f"{self.output_tokens} output tokens",
            _count(self.calls_without_usage, "calls without usage"),
            _count(self.partly_counted_calls, "partly counted calls"),
            name_value("saved_by_cache_usd", self.saved_by_cache_usd),
            _count(self.unpriced_calls, "unpriced"),
            name_value("including nested runs:", _count(self.nested_calls, "calls")),
            name_value("nested_cost_usd", self.nested_cost_usd),
            _count(self.nested_tokens, "tokens"),
        )


@dataclass(frozen=True, slots=True)
class Detail:
    """How many characters of what led to an answer are told, how many nested runs and files; None: all."""

    reason: int | None
    dissent: int | None
    message: int | None
    nested: int | None = None
    paths: bool = True
    excerpt: int | None = None
    """Characters of the output of a check that failed."""
    files: int | None = None
    """How many changed files are listed."""


ALL = Detail(None, None, None)
DETAILS = (
    Detail(500, 1_000, 300, 20, files=40, excerpt=500),
    Detail(200, 300, 200, 10, files=20, excerpt=200),
    Detail(80, 100, 80, 5, files=10, excerpt=0),
    Detail(20, 20, 20, 0, paths=False, files=3, excerpt=0),
)


def nested_of(view: RunView) -> list[NestedRun]:
    run = view.snapshot
    lines: list[NestedRun] = []
    for run_id, started in run.nested_runs.items():
        ended = run.nested_ends.get(run_id)
        spent = ended.spent if ended else None
        lines.append(
            NestedRun(
                run_id=run_id,
                status=ended.state if ended else "running",
                source=shortened(started.source, SOURCE_CHARACTERS),
                started_by=name_agent(run, started.agent) if started.agent else None,
                cost_usd=spent and spent.rounded_usd,
                tokens=spent and spent.tokens,
            )
        )
    return lines


def checks_of(view: RunView, detail: Detail) -> list[CheckLine]:
    """The final files first, then those of the answers, then the base."""
    run = view.snapshot
    found = [run.checked_final, *run.coordination.evidence.values(), *run.checked_unfinished.values(), run.checked_base]
    return [line for checked in found if checked is not None for line in _check_lines(run, checked, detail)]


def tests_of(view: RunView, detail: Detail) -> list[TestLine]:
    """Those that the team wrote, in the order of its agents."""
    run = view.snapshot
    whole = detail.excerpt is None
    return [
        TestLine(
            title=shortened(one.test.title, COMMAND_CHARACTERS),
            by=name_agent(run, one.author),
            passed=list(one.passed),
            failed=list(one.failed),
            void=one.why_void or None,
            script=one.test.script if whole else None,
            expected=one.test.expected if whole else None,
        )
        for one in run.judged_tests
    ]


def _check_lines(run: RunState, checked: FilesChecked, detail: Detail) -> Iterator[CheckLine]:
    own = {outcome.command: outcome for outcome in checked.own}
    for outcome in checked.outcomes:
        excerpt = shortened(outcome.excerpt, detail.excerpt) if detail.excerpt != 0 else ""
        yield CheckLine(
            of=checked.label or checked.subject,
            agent=name_agent(run, checked.agent) if checked.agent else None,
            command=shortened(outcome.command, COMMAND_CHARACTERS),
            result=outcome.result,
            how=outcome.how,
            seconds=round(outcome.seconds, 1),
            not_passed_before=outcome.command in checked.fails_before or None,
            flaky=outcome.flaky or None,
            with_own_files=own[outcome.command].result if outcome.command in own else None,
            excerpt=excerpt or None,
        )


def votes_of(view: RunView, detail: Detail) -> list[VoteLine]:
    run = view.snapshot
    authors = {answer.label: answer.agent for answer in run.answers}
    return [
        VoteLine(
            voter=name_agent(run, vote.voter),
            voted_for=name_agent(run, authors[vote.label]),
            label=vote.label,
            reason=shortened(vote.reason, detail.reason),
        )
        for vote in run.votes.values()
    ]


def list_dissenting_answers(view: RunView, detail: Detail) -> list[Dissent]:
    run = view.snapshot
    if run.winner is None:
        return []
    return [
        Dissent(
            agent=name_agent(run, answer.agent),
            label=answer.label,
            votes=run.winner.votes[answer.label],
            preview=shortened(answer.content, detail.dissent),
        )
        for answer in run.current_answers
        if answer.label not in run.agreed and run.winner.votes.get(answer.label)
    ]


def degraded_of(view: RunView, detail: Detail, shown: str | None) -> list[Dropped]:
    """`shown`: the run's own reason; what stands there is not said again."""
    run = view.snapshot
    return [
        Dropped(
            agent=name_agent(run, agent),
            reason=reason,
            message=None if shortened(message, None) in (shown or "") else shortened(message, detail.message),
            unfinished=_unfinished(run, agent),
        )
        for agent, reason, message in run.degraded
    ]


def _unfinished(run: RunState, agent: str) -> str | None:
    dropped = run.agents[agent].dropped
    return str(dropped.changes) if dropped is not None and dropped.changes is not None else None


def usage_of(view: RunView) -> ResultUsage:
    spent = view.snapshot.spent
    nested = view.snapshot.budget.spending.nested if view.snapshot.nested_ends else None
    return ResultUsage(
        model_calls=spent.calls + spent.lost_calls,
        cut_off_calls=spent.lost_calls or None,
        input_tokens=spent.input_tokens,
        cached_input_tokens=spent.cached_input_tokens or None,
        output_tokens=spent.output_tokens,
        calls_without_usage=spent.calls_without_usage or None,
        partly_counted_calls=spent.partly_counted_calls or None,
        cost_usd=spent.rounded_usd,
        saved_by_cache_usd=round(max(0.0, spent.saved_usd), 9) or None,
        unpriced_calls=spent.unpriced_calls or None,
        nested_calls=nested and nested.calls + nested.lost_calls,
        nested_cost_usd=nested and nested.rounded_usd,
        nested_tokens=nested and nested.tokens,
    )
