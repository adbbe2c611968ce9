"""What reviewers found, put together; what became of each finding, and what follows from all of them. Pure."""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from pydantic import BaseModel, ValidationError

from massgen_mcp.cli.exits import EXIT_EXECUTION, EXIT_FINDINGS, EXIT_OK
from massgen_mcp.cli.massgen.reviewing.change import ReviewedChange
from massgen_mcp.cli.massgen.reviewing.options import FailOn
from massgen_mcp.config.findings import SEVERITIES, Finding, Severity
from massgen_mcp.errors import MassgenError
from massgen_mcp.events.parts import Spent
from massgen_mcp.views.found import TeamFinding

ReviewStatus = Literal["proven", "unproven", "disputed", "refuted"]
NEAR = 2
"""Lines between two places that are the same one: reviewers count differently."""
TITLE = "title:"
"""Begins the anchor of a finding whose line is not known."""
MARKER = "<!-- massgen-review "
"""Begins the last line of a report in Markdown."""


@dataclass(frozen=True, slots=True)
class Reviewed(TeamFinding):
    """A finding with the verdicts of other agents."""

    due: bool = False
    """Whether somebody is there who could refute it."""
    tried_by: str | None = None
    refuted: bool = False
    reason: str = ""
    """Why it is refuted, or stands, in the words of who tried."""
    judged_by: str | None = None
    """Who read the reason of a refutation."""
    accepted: bool = False
    """Whether that agent accepts the refutation."""
    objection: str = ""
    """Why it does or does not, in its own words."""
    known_before: bool = False

    @property
    def status(self) -> ReviewStatus:
        """What a script shows no word refutes, and neither does a reason that no second agent accepts; and what nobody
        else has looked at a script does not prove.
        """
        if self.refuted and not self.accepted:
            return "disputed"
        if self.refuted:
            return "unproven" if self.shown else "refuted"
        return "proven" if self.shown and self.tried_by is not None else "unproven"

    @property
    def needs_second(self) -> bool:
        """True while no second agent has read the reason of the refutation."""
        return self.refuted and bool(self.reason.strip()) and self.judged_by is None

    @property
    def undecided(self) -> bool:
        return self.due and self.tried_by is None


class Earlier(BaseModel, frozen=True, strict=True, extra="forbid", hide_input_in_errors=True):
    """What an earlier report said, as it is kept in that."""

    file: str
    anchor: str
    """Of the text of its line, so that it is found when lines before it move."""
    title: str
    severity: str
    status: str


@dataclass(frozen=True, slots=True)
class Review:
    """All there is to tell."""

    change: ReviewedChange
    findings: tuple[Reviewed, ...] = ()
    gone: tuple[Earlier, ...] = ()
    """Said before, and the line is not there any more."""
    still: tuple[Earlier, ...] = ()
    """Said before, the line is there, and nobody found it this time."""
    outcomes: tuple[str, ...] = ()
    """The outcome sentences of the runs that found them: one, or one for each part of a long change."""
    unclear: tuple[str, ...] = ()
    """Why more may be wrong than was found."""
    notes: tuple[str, ...] = ()
    agents: Mapping[str, str] = field(default_factory=dict[str, str])
    """The model of each agent."""
    spent: Spent = field(default_factory=Spent)
    runs: tuple[str, ...] = ()

    def code(self, fail_on: FailOn) -> int:
        """The exit code."""
        counted = [one for one in self.findings if _counts(one.status, one.finding.severity, fail_on)]
        proven = any(one.status == "proven" and fail_on != "never" for one in self.still)
        if proven or not all(one.undecided for one in counted):
            return EXIT_FINDINGS
        return EXIT_EXECUTION if counted or self.unclear else EXIT_OK


def _counts(status: ReviewStatus, severity: Severity, fail_on: FailOn) -> bool:
    if status == "proven":
        return fail_on != "never"
    severe = fail_on in SEVERITIES and SEVERITIES.index(severity) <= SEVERITIES.index(fail_on)
    return status in ("unproven", "disputed") and severe


# -- one finding of many ----------------------------------------------------------------------------------------------


def merged(first: Sequence[Reviewed], each: Mapping[str, Sequence[Finding]]) -> tuple[Reviewed, ...]:
    """`first`, as one agent put it together from all, and whatever of `each` agent's own findings stands in none of
    these: nothing that a reviewer found is lost. The worst first.
    """
    found = [*first]
    for agent, findings in each.items():
        others = range(len(found))  # two findings of one reviewer are two, however near they are
        for finding in findings:
            far = {at: away for at in others if (away := _away(found[at].finding, finding)) is not None}
            place = min(far, key=far.__getitem__, default=None)
            if place is None:
                found.append(Reviewed(finding, (agent,)))
            elif agent not in found[place].found_by:
                found[place] = _merged(found[place], finding, agent, keep_words=place < len(first))
    return tuple(sorted(found, key=lambda one: SEVERITIES.index(one.finding.severity)))


def _away(one: Finding, other: Finding) -> int | None:
    """How many lines lie between two findings. None: they are not about the same."""
    if one.file != other.file:
        return None
    if one.line is None or other.line is None:
        return 0 if one.line == other.line and _lower_words(one.title) == _lower_words(other.title) else None
    return away if (away := abs(one.line - other.line)) <= NEAR else None


def _merged(known: Reviewed, other: Finding, agent: str, *, keep_words: bool) -> Reviewed:
    """`keep_words`: whoever put `known` together has read the other one's words."""
    one = known.finding
    if not keep_words:
        worse = min(one.severity, other.severity, key=SEVERITIES.index)
        detail = one.detail
        if _lower_words(one.title) != _lower_words(other.title):
            detail += f"\n\n{other.title}: {other.detail}"
        one = one.model_copy(update={"severity": worse, "detail": detail})
    return replace(known, finding=one, found_by=(*known.found_by, agent))


def _lower_words(text: str) -> list[str]:
    return text.casefold().split()


# -- who tries to refute it -------------------------------------------------------------------------------------------


def choose_refuter(one: Reviewed, vendors: Mapping[str, str], load: Mapping[str, int]) -> str | None:
    """Choose the least busy agent of a vendor that has not found it; else one that has not; else one of another vendor
    than the agent that named it first. Return None if there is no such agent.
    """
    finders = {vendors.get(agent) for agent in one.found_by}
    ways = (
        [agent for agent, vendor in vendors.items() if vendor not in finders],
        [agent for agent in vendors if agent not in one.found_by],
        [agent for agent, vendor in vendors.items() if vendor != vendors.get(one.found_by[0])],
    )
    able = next(filter(None, ways), ())
    return min(able, key=lambda agent: load.get(agent, 0), default=None)


def choose_second_reader(one: Reviewed, vendors: Mapping[str, str], load: Mapping[str, int]) -> str | None:
    """Choose who reads a refutation: not its author; if possible one that has not found it, of another vendor than the
    author; else one that has not; else one that has. None: there is nobody.
    """
    others = [agent for agent in vendors if agent != one.tried_by]
    neutral = [agent for agent in others if agent not in one.found_by]
    author = vendors.get(one.tried_by or "")
    able = next(filter(None, ([agent for agent in neutral if vendors[agent] != author], neutral, others)), ())
    return min(able, key=lambda agent: load.get(agent, 0), default=None)


# -- what was said before ---------------------------------------------------------------------------------------------


def anchor(change: ReviewedChange, finding: Finding) -> str:
    near = [text for _, text in _near(change, finding)]
    if not near:  # it is about the whole file, or about a line that the change does not show
        return TITLE + _anchor(finding.file, " ".join(_lower_words(finding.title)))
    return _anchor(finding.file, near[0])


def _near(change: ReviewedChange, finding: Finding) -> list[tuple[int, str]]:
    """The lines around a finding that say something, the nearest first, each with how far away it is."""
    lines, at = change.lines.get(finding.file, {}), finding.line or -NEAR
    places = sorted(range(at - NEAR, at + NEAR + 1), key=lambda place: abs(place - at))
    return [(abs(place - at), lines[place]) for place in places if lines.get(place, "").strip()]


def _anchor(file: str, text: str) -> str:
    return hashlib.sha256(f"{file}\0{text.strip()}".encode("utf-8", "replace")).hexdigest()[:16]


def _distance(change: ReviewedChange, finding: Finding, earlier: Earlier) -> int | None:
    """How many lines lie between a finding and one that was said before. None: they are not the same."""
    if finding.file != earlier.file:
        return None
    near = (far for far, text in _near(change, finding) if _anchor(finding.file, text) == earlier.anchor)
    return 0 if anchor(change, finding) == earlier.anchor else next(near, None)


def compared(review: Review, earlier: Sequence[Earlier]) -> Review:
    """The review, with what of it was said before: of each finding that was, the one that is nearest to it now."""
    findings, left = [*review.findings], list[Earlier]()
    for before in dict.fromkeys(earlier):
        far = {
            place: distance
            for place, one in enumerate(findings)
            if (distance := _distance(review.change, one.finding, before)) is not None
        }
        if far:
            place = min(far, key=far.__getitem__)
            findings[place] = replace(findings[place], known_before=True)
        else:
            left.append(before)
    there = {_anchor(file, text) for file, lines in review.change.lines.items() for text in lines.values()}

    def is_there(one: Earlier) -> bool:
        return one.file in review.change.lines if one.anchor.startswith(TITLE) else one.anchor in there

    gone = tuple(one for one in left if not is_there(one))
    return replace(review, findings=tuple(findings), gone=gone, still=tuple(one for one in left if one not in gone))


def kept(review: Review) -> list[Earlier]:
    """What the next report has to know of this one."""
    now = (
        Earlier(
            file=one.finding.file,
            anchor=anchor(review.change, one.finding),
            title=one.finding.title,
            severity=one.finding.severity,
            status=one.status,
        )
        for one in review.findings
        if one.status != "refuted"
    )
    return [*now, *review.still]


def marker(review: Review) -> str:
    """What is kept, as a line of Markdown that shows nothing."""
    data = json.dumps([one.model_dump() for one in kept(review)]).encode()
    return f"{MARKER}{base64.b64encode(data).decode()} -->"


def earlier_findings(report: str) -> list[Earlier]:
    """What a report said, in Markdown or JSON; an empty one nothing. Raises `MassgenError` invalid_arguments."""
    last = next(iter(report.strip().splitlines()[-1:]), "")
    try:
        if last.startswith(MARKER):  # the last line alone: what stands before it may quote anything
            kept_there: list[object] = json.loads(base64.b64decode(last.removeprefix(MARKER).removesuffix("-->")))
        else:
            kept_there = json.loads(report)["kept"] if report.strip() else []
        return [Earlier.model_validate(one) for one in kept_there]
    except (ValueError, KeyError, TypeError, ValidationError) as error:
        raise MassgenError("invalid_arguments", "--previous: this file isn't a review report") from error
