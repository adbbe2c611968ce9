"""`get_result`: the answer first, and on its first page what led to it. Later pages, and those of a difference, are the
text and nothing else.
"""

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, assert_never

from massgen_mcp.errors import MassgenError
from massgen_mcp.events.parts import Challenge, Changes, ChecksVerdict
from massgen_mcp.run_state.agents import find_agent
from massgen_mcp.run_state.status import RunStatus
from massgen_mcp.runs.view.run_view import RunView
from massgen_mcp.runs.view.status_file import read_application
from massgen_mcp.server.results.apply import Files, files_of, patch_text
from massgen_mcp.server.results.record import (
    ALL,
    DETAILS,
    CheckLine,
    Detail,
    Dissent,
    Dropped,
    NestedRun,
    ResultUsage,
    TestLine,
    VoteLine,
    checks_of,
    degraded_of,
    list_dissenting_answers,
    nested_of,
    tests_of,
    usage_of,
    votes_of,
)
from massgen_mcp.server.results.reply import (
    MAX_BYTES,
    ToolReply,
    as_json,
    json_bytes,
    lines,
    listed,
    name_value,
    number,
    page_of,
)
from massgen_mcp.server.results.words import (
    NOT_WOKEN,
    REASON_CHARACTERS,
    after_the_end,
    bringing_in,
    meanwhile,
    note_on_result,
    reason_of,
    salvage,
    team_of_run,
    team_text,
)
from massgen_mcp.views.ending import describe_loss
from massgen_mcp.views.names import name_agent, name_answer
from massgen_mcp.views.outcome import describe_outcome

ResultView = Literal["summary", "full", "votes", "diff", "agent"]

ANSWER_BYTES = 6_000
"""An answer has so much room on its first page if it needs it; what led to it is shortened for that."""
REPORT_SECONDS = 30
"""So long after the end of a run its report may still be on its way."""
LEAST_BYTES = 400
"""Whatever else there is, a page has so much room for its text."""


_VERDICTS: dict[ChecksVerdict, str] = {
    "passed": "checks passed",
    "failed": "checks failed",
    "nothing_checked": "nothing was checked",
}


class Result(ToolReply):
    answer: str | None = None
    """The final answer, or the best one there was; of other views their text."""
    truncated: bool
    """Whether a text in this reply is cut; `next_step` tells how to read on."""
    next_offset: int | None = None
    """`offset` of the next page. Absent on the last one."""
    run_id: str
    """Of this run."""
    status: RunStatus
    """Where it stands."""
    summary: str | None = None
    """Its outcome as a sentence: who agrees, what checks say, and who disagrees for which reason."""
    outcome: str | None = None
    """How the winner was found; absent without one."""
    decided_by: list[str] | None = None
    """What did: `checks`, `files`, `tests`, `synthesis`, `reading`, `votes`, `judge`, `agreement`."""
    challenge: Challenge | None = None
    """What came of tests against the winner; absent where none were to be written."""
    weak: list[str] | None = None
    """Why the decision is a weak one, the gravest first; absent where nothing is known to speak against it."""
    checked: ChecksVerdict | None = None
    """What checks say of the final files; absent where there was nothing to check."""
    reason: str | None = None
    """Why it ended otherwise than completed."""
    winner: str | None = None
    """Id of the agent whose answer it is."""
    team: dict[str, str] | None = None
    """Each agent's id, and its model as provider/model. This field and those below stand on the first page only, and
    not beside a difference; but `files` stands beside that of a named agent.
    """
    files: Files | None = None
    """What the answer changes of the caller's files; absent where agents had no copies of any."""
    checks: list[CheckLine] | None = None
    """How the checks came out."""
    tests: list[TestLine] | None = None
    """Those that the agents wrote about each other's answers; they may share a misunderstanding."""
    vote_counts: dict[str, int] | None = None
    """Votes by label of an answer."""
    votes: list[VoteLine] | None = None
    """Each vote."""
    dissent: list[Dissent] | None = None
    """Answers that say something else and had votes."""
    degraded: list[Dropped] | None = None
    """Agents that were dropped."""
    parent: str | None = None
    """Of a nested run: the run in which it was started."""
    nested: list[NestedRun] | None = None
    """Runs that were started inside it."""
    usage: ResultUsage | None = None
    """What it used."""
    note: str | None = None
    """How it was decided beyond the votes, and what else is worth knowing."""
    resumed: int | None = None
    """How often it went on after its process was lost."""
    seconds: float | None = None
    """How long it took."""
    paths: dict[str, str] | None = None
    """Absolute paths: `run_directory`, and where they exist `final_answer`, `patch`, `report`, `agent_answer`."""
    next_step: str
    """What to call next."""

    def body(self) -> str:
        """All but what to do next."""
        answer = [] if self.answer is None else [self.answer, "---"]
        return lines(*answer, self.summary, self._about(), *self._whatled_to_it())

    def text(self) -> str:
        return lines(self.body(), self.next_step)

    def _about(self) -> str:
        cut = "truncated" if self.truncated else "whole"
        return listed(
            f"{self.run_id}: {self.status}",
            self.outcome,
            f"decided by {', '.join(self.decided_by)}" if self.decided_by else None,
            f"challenge: {self.challenge}" if self.challenge else None,
            f"weak: {', '.join(self.weak)}" if self.weak else None,
            _VERDICTS[self.checked] if self.checked is not None else None,
            name_value("winner", self.winner),
            f"{number(self.seconds)} s" if self.seconds is not None else None,
            name_value("resumed", self.resumed),
            cut if self.next_offset is None else f"{cut}, next_offset {self.next_offset}",
        )

    def _whatled_to_it(self) -> Iterator[str | None]:
        yield self.reason
        yield self.note
        yield f"team: {team_text(self.team)}" if self.team else None
        yield from self.files.lines() if self.files is not None else ()
        yield from (check.text() for check in self.checks or ())
        yield from (test.text() for test in self.tests or ())
        counts = ", ".join(f"{label} {votes}" for label, votes in (self.vote_counts or {}).items())
        yield f"votes: {counts}" if counts else None
        for vote in self.votes or ():
            yield f"{vote.voter} for {vote.voted_for} ({vote.label}): {vote.reason}"
        for other in self.dissent or ():
            yield f"dissent {other.agent} ({other.label}, {other.votes}): {other.preview}"
        for fallen in self.degraded or ():
            yield fallen.text()
        yield name_value("nested in", self.parent)
        yield from (run.text() for run in self.nested or ())
        yield self.usage.text() if self.usage is not None else None
        for name, path in (self.paths or {}).items():
            yield f"{name} {path}"


def result(
    view: RunView,
    what: ResultView,
    agent: str | None,
    offset: int,
    limit: int | None = None,
    going_on: str = NOT_WOKEN,
) -> Result:
    """A page of at most `limit` characters and `MAX_BYTES`. `going_on`: what its caller should do while the run works.

    Raises `MassgenError` not_finished while there is nothing to show, invalid_arguments for an agent that is
    unknown or named with another view, run_damaged where the record is damaged; one agent's answer is shown if it came
    before the damage.
    """
    return _paged_result(view, what, agent, _Bounds(offset, limit or sys.maxsize), going_on)


def whole_result(view: RunView, what: ResultView, agent: str | None) -> Result:
    """The same in one piece, however large it is."""
    return _paged_result(view, what, agent, _Bounds(most_bytes=sys.maxsize))


def render_result(view: RunView, result: Result) -> str:
    """Return the JSON that commands print: the reply, and what became of the changes to the caller's files."""
    document = result.structured()
    if applied := read_application(view.directory, view.snapshot):
        document["applied"] = applied
    return as_json(document)


def first_page(view: RunView, *, spare: int) -> Result:
    """The first page that `get_result` gives of a run that has ended, `spare` bytes smaller. Raises as `result`."""
    return _paged_result(view, "summary", None, _Bounds(most_bytes=MAX_BYTES - spare))


@dataclass(frozen=True, slots=True)
class _Bounds:
    """The place and the size of a page."""

    offset: int = 0
    limit: int = sys.maxsize
    """Characters of its text."""
    most_bytes: int = MAX_BYTES
    """All of it."""


def _paged_result(
    view: RunView, what: ResultView, asked: str | None, bounds: _Bounds, going_on: str = NOT_WOKEN
) -> Result:
    if asked is not None and what not in ("agent", "diff"):
        raise MassgenError("invalid_arguments", "`agent` needs view=agent or view=diff")
    if view.damage is not None and what != "agent":
        raise MassgenError("run_damaged", f"{view.damage}. {salvage(view)}")
    agent = find_agent(view.snapshot.agents, asked) if what == "agent" or asked is not None else None
    pages = _Pages(view, what, agent, _paged_text(view, what, agent, going_on), bounds, going_on)
    if bounds.most_bytes == sys.maxsize:
        return pages.page(ALL)
    return pages.best(DETAILS if what != "votes" else (ALL, *DETAILS))


def _paged_text(view: RunView, what: ResultView, agent: str | None, going_on: str) -> str | None:
    """What is read in pages. None: nothing is."""
    run = view.snapshot
    match what:
        case "agent":
            answers = run.agents[agent].answers if agent is not None else ()
            if agent is None or not answers:
                raise MassgenError("not_finished", f"{name_agent(run, agent) if agent else 'it'} has not answered yet")
            return answers[-1].content
        case "votes":
            return None
        case "diff" if agent is not None:
            if not run.agents[agent].answers and run.agents[agent].latest_changes is None:
                raise MassgenError("not_finished", f"{name_agent(run, agent)} has not answered yet")
            return patch_text(view, run.agents[agent].latest_changes)
        case "summary" | "full" | "diff":
            if not view.ended:
                moved = f"was {view.row.moved}" if view.row.moved else None
                stands = moved or f"is {view.state}. {meanwhile(view, going_on)}"
                raise MassgenError("not_finished", f"run {view.row.run_id} {stands}")
            if what == "diff":
                return patch_text(view, run.best_changes)
            return run.best_answer if what == "summary" else _everything(view)
        case _:
            assert_never(what)


def _everything(view: RunView) -> str:
    """The final answer, then whole and in full length all that led to it."""
    run = view.snapshot
    parts = [] if run.best_answer is None else [run.best_answer]
    parts += [f"## {name_answer(run, answer.label)}\n\n{answer.content}" for answer in run.answers]
    votes = votes_of(view, ALL)
    parts += [f"## Vote of {vote.voter} for {name_answer(run, vote.label)}\n\n{vote.reason}" for vote in votes]
    reason = reason_of(view, None)
    gone = degraded_of(view, ALL, reason)
    parts += ["\n\n".join(filter(None, (f"## {describe_loss(one.agent, one.reason)}", one.message))) for one in gone]
    if reason is not None:
        parts.append(f"## Why the run ended\n\n{reason}")
    return "\n\n".join(parts)


_Frame = tuple[Result, bool]


@dataclass(frozen=True, slots=True)
class _Pages:
    """The pages of a text, and what stands around it on the first one."""

    view: RunView
    what: ResultView
    agent: str | None
    text: str | None
    bounds: _Bounds
    going_on: str

    def best(self, details: tuple[Detail, ...]) -> Result:
        """The page with as much around its text as there is room for."""
        wanted = min(ANSWER_BYTES, json_bytes((self.text or "")[: self.bounds.limit]))
        frame = self._frame(details[0])
        for detail in details[1:]:
            if self.bounds.most_bytes - self._around(frame).size >= wanted:
                break
            frame = self._frame(detail)
        return self._page(frame)

    def page(self, detail: Detail) -> Result:
        return self._page(self._frame(detail))

    def _page(self, frame: _Frame) -> Result:
        if self.text is None:
            return self._page_with(None, None, frame)
        room = max(LEAST_BYTES, self.bounds.most_bytes - self._around(frame).size)
        page, next_offset = page_of(self.text, self.bounds.offset, self.bounds.limit, room)
        return self._page_with(page, next_offset, frame)

    def _around(self, frame: _Frame) -> Result:
        """The longest that there can be around a text."""
        return self._page_with(None if self.text is None else "", None if self.text is None else len(self.text), frame)

    def _page_with(self, page: str | None, next_offset: int | None, frame: _Frame) -> Result:
        result, short = frame
        following = self._next_step(page, next_offset, shortened=short)
        truncated = result.truncated or next_offset is not None
        changed = {"answer": page, "truncated": truncated, "next_offset": next_offset, "next_step": following}
        return result.model_copy(update=changed)

    def _frame(self, detail: Detail) -> _Frame:
        """A page without its text and what depends on that, and whether what led to the answer is shortened on it."""
        view, run = self.view, self.view.snapshot
        if self.bounds.offset > 0 or self.what == "diff":
            files = files_of(self._changes(), DETAILS[0].files) if self.agent and not self.bounds.offset else None
            rest = Result(truncated=False, run_id=view.row.run_id, status=view.state, files=files, next_step="")
            return rest, False
        if self.what == "agent":
            return self._build_agent_frame(detail)
        led = self._build_votes_page(detail)
        short = led != self._build_votes_page(ALL)
        if self.what == "votes":
            return led.model_copy(update={"truncated": short}), short
        work, files = run.work_done, files_of(self._changes(), detail.files)
        first = Result(
            truncated=short or (files is not None and files.of_files > len(files.listed)),
            run_id=view.row.run_id,
            status=view.state,
            summary=describe_outcome(run) or None,
            outcome=run.outcome or (run.winner.outcome if run.winner else None),
            decided_by=[*work.decided_by] or None,
            challenge=run.winner.challenge if run.winner else None,
            weak=[*work.weak] or None,
            checked=work.checked,
            reason=led.reason,
            winner=led.winner,
            team=team_of_run(run),
            files=files,
            checks=led.checks,
            tests=led.tests,
            vote_counts=led.vote_counts,
            votes=led.votes,
            dissent=led.dissent,
            degraded=led.degraded,
            parent=view.row.parent,
            nested=led.nested,
            usage=usage_of(view),
            note=note_on_result(view),
            resumed=run.resumed or None,
            seconds=round(view.elapsed, 3),
            paths=_paths(view, self.agent) if detail.paths else None,
            next_step="",
        )
        return first, short

    def _build_votes_page(self, detail: Detail) -> Result:
        """Return what led to the answer, without the parts that only the page of the answer has."""
        view = self.view
        reason = reason_of(view, None if detail is ALL else REASON_CHARACTERS)
        return Result(
            truncated=False,
            run_id=view.row.run_id,
            status=view.state,
            reason=reason,
            winner=self._winner,
            checks=checks_of(view, detail) or None,
            tests=tests_of(view, detail) or None,
            vote_counts=self._vote_counts(),
            votes=votes_of(view, detail),
            dissent=list_dissenting_answers(view, detail),
            degraded=degraded_of(view, detail, reason),
            nested=nested_of(view)[: detail.nested] or None,
            next_step="",
        )

    def _build_agent_frame(self, detail: Detail) -> _Frame:
        """Return what belongs to one agent's answer, without the parts that the page of the final answer has."""
        view = self.view
        page = Result(
            truncated=False,
            run_id=view.row.run_id,
            status=view.state,
            reason=reason_of(view) if view.damage is not None else None,
            winner=self._winner,
            files=files_of(self._changes(), detail.files),
            paths=_paths(view, self.agent) if detail.paths else None,
            next_step="",
        )
        return page, False

    def _vote_counts(self) -> dict[str, int] | None:
        run = self.view.snapshot
        counts = run.winner.votes if run.winner else run.tally
        if not any(counts.values()):
            return None
        return counts

    @property
    def _winner(self) -> str | None:
        run = self.view.snapshot
        if run.answered_by:
            return run.author
        return name_agent(run, run.winner.agent) if run.winner else None

    def _changes(self) -> Changes | None:
        """Of the answer that is shown."""
        run = self.view.snapshot
        if self.agent is None:
            return run.best_changes
        return run.agents[self.agent].latest_changes

    def _whole(self, page: str, longer: str) -> str:
        """Of the last page. `longer`: where what is shortened on it is whole."""
        if self.bounds.offset > 0 and not page:
            return f"There is no text at this offset: the text has {len(self.text or '')} characters."
        if self.what == "diff" or self.bounds.offset > 0:
            return "The diff is complete." if self.bounds.offset == 0 else "This is the last part."
        led = longer or "view=full or view=votes shows what led to this result."
        if self.what != "agent" and self.view.snapshot.outcome == "unfinished":
            return f"No agent answered; this is unfinished work. {led}"
        alone = self.what != "agent" and self.view.snapshot.work_done.unreviewed
        return (
            f"The answer is complete, but no agent voted for it; {led}" if alone else f"The answer is complete; {led}"
        )

    def _longer(self) -> ResultView:
        """Where everything that was shortened on this page is whole."""
        votes = replace(self, what="votes", agent=None, text=None, bounds=replace(self.bounds, most_bytes=MAX_BYTES))
        return "full" if self.what == "votes" or votes.page(ALL).size > MAX_BYTES else "votes"

    def _next_step(self, page: str | None, next_offset: int | None, *, shortened: bool) -> str:
        view = self.view
        named = "" if self.what == "summary" else f" view={self.what}"
        named += f" agent={name_agent(view.snapshot, self.agent)}" if self.agent is not None else ""
        rest = f"Call get_result with{named} offset={next_offset} for the rest." if next_offset is not None else ""
        longer = f"view={self._longer()} gives the full text." if shortened else ""
        changes = self._changes() if self.what != "diff" else None
        patch = "view=diff has the patch." if changes is not None and changes.patch is not None else ""
        asked = name_agent(view.snapshot, self.agent) if self.agent is not None else None
        bring = bringing_in(view, self._changes(), asked) if view.ended and not rest else ""
        if not view.ended:
            return " ".join(filter(None, (rest, longer, patch, meanwhile(view, self.going_on))))
        if view.damage is not None:
            return f"{rest} {salvage(view)}".strip()
        if page is None:
            return " ".join(filter(None, (longer, after_the_end(view)))) or "Nothing more to read."
        begin = rest or self._whole(page, longer)
        return " ".join(filter(None, (begin, longer if rest else "", patch, bring, after_the_end(view))))


def _paths(view: RunView, agent: str | None) -> dict[str, str]:
    """Absolute paths of what exists: the run directory, the final answer, the report, and the asked agent's answer."""
    run, directory = view.snapshot, view.directory
    paths = {"run_directory": str(directory.path)}
    if run.end is not None and run.end.winner and not run.unkept:
        kept = directory.final_of(run.end.winner) / "answer.txt"
        if run.answered_by or kept.exists():
            paths["final_answer"] = str(kept)
    if run.best_changes is not None and run.best_changes.patch is not None:
        paths["patch"] = str(directory.path / run.best_changes.patch)
    if run.ended_at is not None and (directory.report.exists() or time.time() < run.ended_at + REPORT_SECONDS):
        paths["report"] = str(directory.report)
    if agent is not None and (path := run.agents[agent].answers[-1].path):
        paths["agent_answer"] = str(directory.path / path)
    return paths
