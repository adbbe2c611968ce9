"""What answers make of the caller's files, and what checks say of that, as the page of a run draws it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from massgen_mcp.config.models.orchestrator import ChecksPolicy
from massgen_mcp.events import parts
from massgen_mcp.page.data import (
    Checked,
    CheckResult,
    Checks,
    File,
    PageChanges,
    PageCheck,
    PageTest,
    Tests,
    Text,
)
from massgen_mcp.page.history import PastChecked, key_of
from massgen_mcp.page.texts import TextRoom
from massgen_mcp.redaction import Redactor
from massgen_mcp.run_state.state import RunState
from massgen_mcp.views.written_tests import MISUNDERSTANDING, standing_in_tests

MOST_PATCH_BYTES = 300_000
"""So much of one patch is in a page."""
MOST_FILES = 500
"""So many changed files of an answer are named."""

MOST_TITLE = 300
"""Characters of what a test is about."""

_CANNOT_WIN = "an answer cannot win if another one passes a check that it fails, and fails none that it passes"
_POLICIES: Mapping[ChecksPolicy, str] = {
    "informative": "Informative: voters saw the evidence and decided.",
    "required": f"Required: {_CANNOT_WIN}.",
    "goal": f"Goal: {_CANNOT_WIN}; the final files have to pass what fails on the unchanged files, too.",
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
            files=tuple(
                File(path=file.path, change=file.kind, added=file.added, removed=file.removed, was=file.earlier_path)
                for file in files
            ),
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
        decided=tuple(_decided(run, policy)),
        checked=tuple(_checked(one, room) for one in sorted(past, key=lambda one: one.event.subject != "base")),
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


def _checked(past: PastChecked, room: TextRoom) -> Checked:
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
                cure=outcome.cure,
            )
            for outcome in event.outcomes
        ),
        restored=event.restored,
        problem=event.problem,
    )


def _decided(run: RunState, policy: ChecksPolicy) -> Iterable[str]:
    """Who could not win, by the rules of the run, which its journal does not hold."""
    rules = replace(run.coordination.rules, checks=policy)
    for label in sorted(replace(run.coordination, rules=rules).excluded):
        author = run.agents[run.coordination.author(label)].info.id
        yield f"{key_of(run.attempt, label)} of {author} could not win: checks fail that another answer passes."
    if run.failing_checks:
        yield "The final files do not pass all checks that count."
