"""Findings of a review: the form of answers where a config says `answer_format: findings`. Pure."""

import re
from typing import Annotated, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

MAX_LISTED = 5
"""So many of the things that are wrong with a document are told at once."""
_FENCED = re.compile(r"\A```(?:json)?[ \t]*\n(.*)\n```\Z", re.DOTALL)

Severity = Literal["blocker", "major", "minor"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""The worst first."""
NonEmpty = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class _Document(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class Finding(_Document):
    file: NonEmpty
    line: Annotated[int, Field(ge=1)] | None
    """None: it is about the whole file."""
    severity: Severity
    title: NonEmpty
    detail: NonEmpty
    """Why it is wrong, and how that shows."""
    fix: str = ""


class SourcedFinding(Finding):
    """As it stands in a document that was written from all answers."""

    answers: tuple[str, ...]
    """Labels of the answers that it stands in."""
    contradicted_by: tuple[str, ...]
    """Labels of those that say otherwise."""
    standing: NonEmpty
    """How it stands, in words."""


class Findings(_Document):
    """The worst first."""

    summary: NonEmpty
    findings: tuple[Finding, ...] = Field(max_length=200)


def unfenced(text: str) -> str:
    """A document without the code block around it."""
    found = _FENCED.match(text.strip())
    return found[1] if found else text


def as_findings(text: str) -> str:
    """The document in one form, whether or not it stands in a code block. Raises `ValueError` with what is wrong."""
    try:
        document = Findings.model_validate_json(unfenced(text))
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_input=False)[:MAX_LISTED]
        faults = [f"{'.'.join(map(str, one['loc'])) or 'the document'}: {one['msg']}" for one in wrong]
        raise ValueError("; ".join(faults)) from None
    return document.model_dump_json(indent=1)
