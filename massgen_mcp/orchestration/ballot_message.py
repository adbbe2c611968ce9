"""The message that puts a ballot before an agent: its notes, the answers, reasons of void votes, and the request.

Made of what the round's events hold, so that a resumed round shows the same.
"""

from collections.abc import Iterator, Mapping

from massgen_mcp.coordination.ballot import Ballot
from massgen_mcp.coordination.state import Coordination
from massgen_mcp.events.agent_work import BallotChanged, RoundStarted
from massgen_mcp.events.coordination import FilesChecked
from massgen_mcp.events.parts import ShownReason, StageKind
from massgen_mcp.orchestration import prompts
from massgen_mcp.orchestration.answer_store import AnswerStore
from massgen_mcp.orchestration.attempt import Attempt
from massgen_mcp.orchestration.evidence_text import evidence_of
from massgen_mcp.orchestration.live_run import LiveRun
from massgen_mcp.orchestration.shown_changes import shown_changes
from massgen_mcp.orchestration.tests_text import tests_text
from massgen_mcp.orchestration.window import within

_HEADINGS: Mapping[StageKind, str] = {"settle": prompts.SCRIPTS_TO_SETTLE, "revise": prompts.PROVEN_TESTS}


def shown_reasons(attempt: Attempt, ballot: Ballot) -> tuple[ShownReason, ...]:
    """Reasons of votes that a new answer voided, for the viewer of this ballot: none unless the config shows them, and
    none if it may only vote.
    """
    state = attempt.live_run.coordination
    if not attempt.run_spec.policy.show_reasons or not state.may_answer(ballot.viewer):
        return ()
    names = {state.author(entry.label): entry.name for entry in ballot.entries}
    return tuple(
        ShownReason(name=names[author], reason=vote.reason)
        for vote in attempt.live_run.state.void_votes
        if (author := state.author(vote.label)) in names
    )


def ballot_texts(
    live_run: LiveRun, ballot: Ballot, reasons: tuple[ShownReason, ...], store: AnswerStore
) -> Iterator[str]:
    """Everything by others that the message will hold: no marker may occur in it."""
    for entry in ballot.entries:
        yield live_run.coordination.content(entry.label)
    yield from evidence_of(ballot, live_run.coordination, live_run.state.checked_base).values()
    yield from shown_changes(live_run, ballot.entries, store).values()
    yield tests_text(live_run.coordination)
    for shown in reasons:
        yield shown.reason
    yield live_run.state.agents[ballot.viewer].working_notes


def ballot_message(
    heading: str,
    ballot: Ballot,
    state: Coordination,
    shown: RoundStarted | BallotChanged,
    request: str,
    *,
    notes: str = "",
    changes: Mapping[str, str],
    base: FilesChecked | None,
) -> str:
    """`shown` is the event that tells of the ballot, `request` what is asked of its viewer, `notes` what that one wrote
    on the way to its first answer, `changes` what the answers change, by their names, `base` what checks say of the
    unchanged files.
    """
    answers = [(entry.name, within(state.content(entry.label), shown.most)) for entry in ballot.entries]
    own = next((entry.name for entry in ballot.entries if state.author(entry.label) == ballot.viewer), None)
    parts = [prompts.working_notes_block(notes, shown.nonce)] if notes else []
    evidence = evidence_of(ballot, state, base)
    if answers:
        parts.append(prompts.ballot_block(heading, answers, shown.nonce, own=own, changes=changes, evidence=evidence))
    if shown.reasons:
        reasons = [(reason.name, reason.reason) for reason in shown.reasons]
        parts.append(prompts.reasons_block(prompts.VOID_REASONS, reasons, shown.nonce))
    if tests := tests_text(state):
        kind = state.stage.kind if state.stage is not None else "vote"
        parts.append(prompts.tests_block(tests, shown.nonce, _HEADINGS.get(kind, prompts.WRITTEN_TESTS)))
    parts.append(prompts.DECIDE if state.may_answer(ballot.viewer) else request)
    return "\n\n".join(parts)
