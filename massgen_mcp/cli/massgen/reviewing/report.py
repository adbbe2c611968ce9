"""A review in Markdown, JSON or SARIF. Pure.

Titles and reasons are words of models, which have read the change: in Markdown they can be no markup, link or mention,
and no line begins with them.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from massgen_mcp import __version__
from massgen_mcp.cli.exits import EXIT_EXECUTION, EXIT_FINDINGS, EXIT_OK
from massgen_mcp.cli.massgen.reviewing.findings import Earlier, Review, Reviewed, anchor, kept, marker
from massgen_mcp.cli.massgen.reviewing.options import FailOn, Format
from massgen_mcp.views.plain_text import counted, plain
from massgen_mcp.views.spent import spent_text

HOME = "https://github.com/massgen-mcp/massgen-mcp"
SARIF = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
VERDICTS: Mapping[int, str] = {EXIT_OK: "pass", EXIT_FINDINGS: "findings", EXIT_EXECUTION: "unclear"}
_LEVELS = {"blocker": "error", "major": "warning", "minor": "note"}
_CODE = re.compile(r"(?<!`)(`[^`]+`)(?!`)")
_MARKUP = re.compile(r"([\\`*_\[\]<>!#|~$&])")


def drawn(review: Review, form: Format, fail_on: FailOn) -> str:
    match form:
        case "markdown":
            return "\n".join(_markdown(review, fail_on)) + "\n"
        case "json":
            return _document(_json(review, fail_on))
        case "sarif":
            return _document(_sarif(review))


def shown_finding(number: int, one: Reviewed) -> str:
    """For those who try to refute it, or who read why it is refuted; who found it is not said."""
    data: dict[str, Any] = {"finding": number, **one.finding.model_dump()}
    if one.script is not None:
        data |= {"script": one.script, "prints": one.printed, "ran and printed this": one.shown}
    if one.refuted:
        data |= {"refuted because": one.reason}
    return json.dumps(data, ensure_ascii=False, indent=1)


def _document(data: Mapping[str, Any]) -> str:
    return json.dumps(data, indent=1) + "\n"


# -- Markdown ---------------------------------------------------------------------------------------------------------


def _markdown(review: Review, fail_on: FailOn) -> Iterator[str]:
    found = [one for one in review.findings if one.status != "refuted"]
    refuted = [one for one in review.findings if one.status == "refuted"]
    yield f"## Review: {VERDICTS[review.code(fail_on)]}"
    yield ""
    proven = sum(one.status == "proven" for one in found)
    yield (
        f"{counted(len(found), 'finding')} ({proven} proven), {len(refuted)} refuted; {review.change.size}; "
        f"{counted(len(review.agents), 'agent')}, {spent_text(review.spent)}."
    )
    for outcome in review.outcomes:
        yield f"\nOutcome: {words(outcome)}."
    for why in (*review.unclear, *review.notes):
        yield f"\n- **Note:** {words(why)}"
    for one in found:
        if not one.known_before:
            yield from _full(one)
    yield from _listed("Reported before and found again", [_finding_line(one) for one in found if one.known_before])
    yield from _listed(
        "Reported before; the line is unchanged, but no agent found the problem again", map(_earlier, review.still)
    )
    yield from _listed("Gone: the change no longer contains the reported line", map(_earlier, review.gone))
    yield from _listed("Refuted", [f"{_finding_line(one)}: {words(one.reason)}{_second(one)}" for one in refuted])
    yield ""
    yield marker(review)


def _full(one: Reviewed) -> Iterator[str]:
    yield f"\n### {words(one.finding.title)}\n"
    yield f"{_finding_place(one.finding.file, one.finding.line)}, {one.finding.severity}, **{one.status}**\n"
    yield f"Why: {words(one.finding.detail)}\n"
    if one.finding.fix:
        yield f"Fix: {words(one.finding.fix)}\n"
    if one.script is not None:
        ran = "Shown by a script" if one.shown else "The script did not run or did not show the problem"
        fence = "`" * (3 + max(map(len, re.findall(r"`+", one.script)), default=0))
        yield f"{ran}:\n\n{fence}sh\n{one.script.rstrip()}\n{fence}\n"
    tried = "; no other agent has checked it"
    if one.tried_by is not None:
        tried = f"; {words(one.tried_by)} {'considers it refuted' if one.refuted else 'could not refute it'}"
        tried += f": {words(one.reason)}" if one.reason else ""
        tried += _second(one)
    yield f"Found by {words(', '.join(one.found_by))}{tried}"


def _second(one: Reviewed) -> str:
    """Tell what a second agent says of a refutation."""
    if not one.refuted:
        return ""
    if one.judged_by is None:
        return "; no second agent has accepted the refutation"
    verb = "accepts" if one.accepted else "does not accept"
    objection = f": {words(one.objection)}" if one.objection and not one.accepted else ""
    return f"; {words(one.judged_by)} {verb} the refutation{objection}"


def _listed(title: str, lines: Iterable[str]) -> Iterator[str]:
    if lines := [*lines]:
        yield f"\n### {title}\n"
        yield from (f"- {line}" for line in lines)


def _finding_line(one: Reviewed) -> str:
    return f"{_finding_place(one.finding.file, one.finding.line)}: {words(one.finding.title)} ({one.status})"


def _earlier(one: Earlier) -> str:
    return f"{_finding_place(one.file, None)}: {words(one.title)} ({one.severity}, {words(one.status)})"


def _finding_place(file: str, line: int | None) -> str:
    return f"`{plain(file).replace('`', chr(39))}{'' if line is None else f':{line}'}`"


def words(text: str) -> str:
    """On one line, as nothing but words; what stands between backticks stays code."""
    parts = _CODE.split(" ".join(plain(text).split()))
    return "".join(part if place % 2 else _inert(part) for place, part in enumerate(parts))


def _inert(text: str) -> str:
    text = _MARKUP.sub(r"\\\1", text).replace("://", ":\\//").replace("@", "@\u200b")
    return re.sub(r"(?i)\bwww\.", "www\\.", text)


# -- JSON -------------------------------------------------------------------------------------------------------------


def _json(review: Review, fail_on: FailOn) -> dict[str, Any]:
    code = review.code(fail_on)
    return {
        "verdict": VERDICTS[code],
        "exit_code": code,
        "outcomes": [*review.outcomes],
        "change": {"source": review.change.source, "files": [*review.change.lines]},
        "findings": [_finding(review, one) for one in review.findings],
        "still": [one.model_dump() for one in review.still],
        "gone": [one.model_dump() for one in review.gone],
        "unclear": [*review.unclear],
        "notes": [*review.notes],
        "agents": review.agents,
        "usd": review.spent.rounded_usd,
        "calls": review.spent.calls,
        "runs": [*review.runs],
        "kept": [one.model_dump() for one in kept(review)],
    }


def _finding(review: Review, one: Reviewed) -> dict[str, Any]:
    return {
        **one.finding.model_dump(),
        "status": one.status,
        "found_by": [*one.found_by],
        "tried_by": one.tried_by,
        "reason": one.reason,
        "judged_by": one.judged_by,
        "accepted": one.accepted if one.judged_by is not None else None,
        "objection": one.objection,
        "script": one.script,
        "prints": one.printed,
        "said_before": one.known_before,
        "fingerprint": anchor(review.change, one.finding),
    }


# -- SARIF 2.1.0 ------------------------------------------------------------------------------------------------------


def _sarif(review: Review) -> dict[str, Any]:
    """What is refuted is no result."""
    rules = [
        {"id": severity, "shortDescription": {"text": f"A finding of severity {severity}"},
         "defaultConfiguration": {"level": level}}
        for severity, level in _LEVELS.items()
    ]  # fmt: skip
    notes = [{"level": "warning", "message": {"text": why}} for why in (*review.unclear, *review.notes)]
    return {
        "$schema": SARIF,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "massgen", "version": __version__, "informationUri": HOME, "rules": rules}},
                "invocations": [
                    {"executionSuccessful": not review.unclear, "toolExecutionNotifications": notes},
                ],
                "columnKind": "unicodeCodePoints",
                "results": [_finding_fields(review, one) for one in review.findings if one.status != "refuted"],
            }
        ],
    }


def _finding_fields(review: Review, one: Reviewed) -> dict[str, Any]:
    finding = one.finding
    text = f"{finding.title} ({one.status})\n\n{finding.detail}" + (f"\n\n{finding.fix}" if finding.fix else "")
    result: dict[str, Any] = {
        "ruleId": finding.severity,
        "level": _LEVELS[finding.severity],
        "message": {"text": text},
        "partialFingerprints": {"massgen/v1": anchor(review.change, finding)},
        "baselineState": "unchanged" if one.known_before else "new",
        "properties": {"status": one.status, "foundBy": [*one.found_by], "triedBy": one.tried_by},
    }
    if finding.file in review.change.lines:  # else it is a path that nobody but a model has named
        place: dict[str, Any] = {"artifactLocation": {"uri": quote(finding.file), "uriBaseId": "%SRCROOT%"}}
        if finding.line is not None:
            place["region"] = {"startLine": finding.line}
        result["locations"] = [{"physicalLocation": place}]
    return result
