"""The parts of a round's requests: the system message, the task, and the workflow tools that are valid now."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from massgen_mcp.backends.base import VOTE, TextVariant, ToolSpec, UserMessage
from massgen_mcp.coordination.agent_view import AgentView
from massgen_mcp.coordination.agreement import find_agreeing
from massgen_mcp.coordination.guidance import Ballot
from massgen_mcp.coordination.state import Coordination
from massgen_mcp.events.agent_work import BallotChanged, RoundStarted
from massgen_mcp.events.coordination import FilesChecked
from massgen_mcp.events.parts import BallotEntry, Changes, RoundKind, ShownReason
from massgen_mcp.orchestration import prompts
from massgen_mcp.orchestration.attempt import Attempt
from massgen_mcp.orchestration.evidence_text import evidence_of, goal_text, tests_text
from massgen_mcp.orchestration.live_run import AnswerStore, LiveRun
from massgen_mcp.orchestration.team import Member
from massgen_mcp.orchestration.window import Texts, abilities_of, all_within, within
from massgen_mcp.tools.files import FILE_TOOLS
from massgen_mcp.views.plain_text import counted


def system_message(member: Member, attempt: Attempt, own_task: str | None) -> str:
    """The system message of an agent, the same in all its rounds and as far as possible for all agents. `own_task`: the
    user's words for this phase, which are its beginning.
    """
    policy = attempt.run_spec.policy
    notes = [own_task] if own_task else []
    if member.offered:
        notes.append(prompts.USE_TOOLS)
    if plan := policy.coordination.planning_instruction:
        notes.append(plan)
    notes.extend(member.notes)
    notes.extend(file_notes(member, attempt))
    if policy.answer_format == "findings":
        notes.append(prompts.FINDINGS)
    return prompts.system_message(member.system_message, notes, today=attempt.today)


def get_own_task(member: Member, kind: RoundKind) -> str | None:
    """The user's words for what is asked in rounds of this kind, in place of ours."""
    return member.templates.evaluation_system_message if kind in ("answer_or_vote", "run_off") else None


def make_task(member: Member, attempt: Attempt, kind: RoundKind, *, judges: bool) -> str:
    """The task of a round. It stands behind the question, so that a round begins with the same bytes as the one before.
    `judges`: there are answers on its ballot.
    """
    run_spec, coordination = attempt.run_spec, attempt.live_run.coordination
    first = kind == "answer_or_vote" and not judges
    usual = ROUND_FORMS[kind].task
    if len(run_spec.team) == 1:
        usual = prompts.ANSWER_ALONE
    elif first:
        usual = prompts.FIRST_ANSWER
    notes = [] if get_own_task(member, kind) else [usual]
    criterion = prompts.CONTENT_WITH[run_spec.policy.voting_sensitivity]
    if criterion and judges and AgentView(coordination, member.name).may_answer():
        notes.append(criterion)
    if not judges and member.perspective is not None:
        notes.append(member.perspective)
    notes.extend(describe_checks(member, attempt))
    if judges and member.workspace is not None and has_file_tools(member, attempt):
        notes.append(prompts.PEER_FILES)
    if judges and run_spec.copies:
        notes.append(HOW_TO_JUDGE)
    if judges and (checks := coordination.rules.checks) is not None:
        notes.append(prompts.evidence_note(checks))
    return "\n\n".join(notes)


def text_variant(
    member: Member, attempt: Attempt, kind: RoundKind, tools: Sequence[ToolSpec], ballot: Ballot
) -> TextVariant | None:
    """Return what a model that takes no tools is asked: without file tools where there are no files to work on. If
    other answers say the same as its own, it chooses among these: such models judge worse than they answer.
    """
    if works_on_files(member, attempt):
        return None
    state = attempt.live_run.coordination
    own = next((entry.name for entry in ballot.entries if state.author(entry.label) == member.name), None)
    texts = answers_by_name(state, ballot)
    agreeing = find_agreeing(texts, own or "", attempt.run_spec.question)
    choices = tuple(entry for entry in ballot.entries if not agreeing or entry.name in (own, *agreeing))
    held = replace(ballot, entries=choices)
    given = [tool for tool in tools if tool.name not in (*FILE_TOOLS, VOTE)]
    given += [prompts.vote_tool(state.checks.get_votable(held)) for tool in tools if tool.name == VOTE]
    bare = replace(member, tools=(), toolbox=None, workspace=None)
    system = system_message(bare, attempt, get_own_task(bare, kind))
    return TextVariant(system, tuple(given))


def plain_question(member: Member, attempt: Attempt, opened: RoundStarted, *, brief: bool) -> TextVariant | None:
    """Return what a model that takes no tools is asked for its first answer: the question alone, without the date, as
    small models answer whatever stands beside it. None where there is more to read. `brief`: its reply was cut off
    before.
    """
    spec = attempt.run_spec
    further = (spec.history, spec.commented, attempt.briefing, attempt.live_run.caller.messages, opened.notes)
    if opened.kind != "answer_or_vote" or opened.ballot or any(further) or works_on_files(member, attempt):
        return None
    if member.notes or spec.policy.answer_format != "text" or spec.policy.coordination.planning_instruction:
        return None
    asked = [spec.question, *([prompts.IN_TWO_SENTENCES] * brief)]
    return TextVariant(member.system_message or "", (), messages=(UserMessage("\n\n".join(asked)),))


def answers_by_name(state: Coordination, ballot: Ballot) -> dict[str, str]:
    """Return the texts of the answers on a ballot, by their neutral names."""
    return {entry.name: state.content(entry.label) for entry in ballot.entries}


def find_repeated(state: Coordination, ballot: Ballot, text: str) -> str | None:
    """Return the name of the viewer's own answer on the ballot, if the text repeats that word for word."""
    for entry in ballot.entries:
        if state.author(entry.label) == ballot.viewer and text.split() == state.content(entry.label).split():
            return entry.name
    return None


def works_on_files(member: Member, attempt: Attempt) -> bool:
    """Return whether there are files or commands for the agent to work with, besides what it would write itself."""
    spec = attempt.run_spec
    others = [tool for tool in member.offered if tool.spec.name not in FILE_TOOLS]
    return bool(spec.copies or spec.context_names or others)


def has_file_tools(member: Member, attempt: Attempt) -> bool:
    """Return whether the agent is offered file tools: a model that takes no tools is, where there are files."""
    return abilities_of(member).takes_tools or works_on_files(member, attempt)


def file_notes(member: Member, attempt: Attempt) -> Iterator[str]:
    """Describe to an agent with a workspace its files, the caller's files, and work on copies of them."""
    run_spec = attempt.run_spec
    if member.workspace is None:
        return
    yield prompts.FILES
    if run_spec.context_names:
        yield prompts.CONTEXT_FILES.format(names=", ".join(run_spec.context_names))
    if not_copied := attempt.live_run.state.work_done.not_copied:
        yield prompts.NOT_COPIED.format(names="; ".join(not_copied))
    taken = attempt.live_run.state.base
    earlier = taken.begins_with.files if taken is not None and taken.begins_with is not None else 0
    yield from code_notes(run_spec.copies, earlier=earlier, commands=member.commands is not None)


def describe_checks(member: Member, attempt: Attempt) -> Iterator[str]:
    """Describe the checks to an agent with a copy of what they check. What they say of the original may come late."""
    run_spec = attempt.run_spec
    if member.workspace is None or not run_spec.copies or run_spec.judge is None or not run_spec.judge.commands:
        return
    listed = _listed(run_spec.judge.commands, attempt.live_run.state.checked_base)
    yield "\n".join([CHECKS.format(of=f"context/{run_spec.copies[0]}"), *listed, PROTECTED])


def list_standing_tools(member: Member, attempt: Attempt) -> tuple[ToolSpec, ...]:
    """All tools of an agent that answers, votes, and writes the final answer, in an order that never changes. Empty: it
    is always the same ones.
    """
    agents = len(attempt.run_spec.team)
    if agents == 1:
        return ()
    vote = prompts.make_vote_tool(f"agent{place}" for place in range(1, agents + 1))
    return (*member.listed, prompts.NEW_ANSWER, vote)


def _answer_or_vote(coordination: Coordination, ballot: Ballot) -> tuple[ToolSpec, ...]:
    """No vote without answers, no new answer beyond the limit."""
    answer = (prompts.NEW_ANSWER,) if AgentView(coordination, ballot.viewer).may_answer() else ()
    return (*answer, prompts.vote_tool(coordination.checks.get_votable(ballot))) if ballot.entries else answer


def _run_off(coordination: Coordination, ballot: Ballot) -> tuple[ToolSpec, ...]:
    return (prompts.vote_tool(coordination.checks.get_votable(ballot), run_off=True),)


def _only(tool: ToolSpec) -> Callable[[Coordination, Ballot], tuple[ToolSpec, ...]]:
    return lambda _, __: (tool,)


class RoundForm(NamedTuple):
    """What a round of one kind says and offers; `tools.workflow` reads what comes back."""

    task: str
    """What its system message begins with, if there are answers."""
    heading: str
    """Above the answers that it begins with."""
    request: str
    """What is asked below them."""
    tools: Callable[[Coordination, Ballot], tuple[ToolSpec, ...]]
    """Those that end it."""
    votes: bool = True
    """Whether a line of text can be its vote."""


ROUND_FORMS: Mapping[RoundKind, RoundForm] = {
    "answer_or_vote": RoundForm(prompts.JUDGE, prompts.BALLOT_FIRST, prompts.DECIDE_BY_VOTE, _answer_or_vote),
    "run_off": RoundForm(prompts.JUDGE, prompts.BALLOT_RUN_OFF, prompts.DECIDE_RUN_OFF, _run_off),
    "test": RoundForm(
        prompts.WRITE_TESTS, prompts.BALLOT_TEST, prompts.DECIDE_TEST, _only(prompts.SUBMIT_TESTS), votes=False
    ),
    "synthesise": RoundForm(
        prompts.SYNTHESISE, prompts.BALLOT_ALL, prompts.DECIDE_SYNTHESISE, _only(prompts.SUBMIT_SYNTHESIS), votes=False
    ),
    "compare": RoundForm(prompts.COMPARE, prompts.BALLOT_PAIR, prompts.DECIDE_COMPARE, _run_off),
    "check": RoundForm(prompts.WRITE_CHECK, "", prompts.DECIDE_CHECK, _only(prompts.SUBMIT_TESTS), votes=False),
    "confirm": RoundForm(prompts.SETTLE, "", prompts.DECIDE_SETTLE, _only(prompts.SUBMIT_OUTPUTS), votes=False),
}


# ---------------------------------------------------------------------------------------------------------------------
# The message that puts a ballot before an agent: its notes, the answers, reasons of void votes, and the request.
# Made of what the round's events hold, so that a resumed round shows the same.


def shown_reasons(attempt: Attempt, ballot: Ballot) -> tuple[ShownReason, ...]:
    """Reasons of votes that a new answer voided, for the viewer of this ballot: none unless the config shows them, and
    none if it may only vote.
    """
    state = attempt.live_run.coordination
    if not attempt.run_spec.policy.show_reasons or not AgentView(state, ballot.viewer).may_answer():
        return ()
    names = {state.author(entry.label): entry.name for entry in ballot.entries}
    return tuple(
        ShownReason(name=names[author], reason=vote.reason)
        for vote in attempt.live_run.state.void_votes
        if (author := state.author(vote.label)) in names
    )


def ballot_texts(live_run: LiveRun, ballot: Ballot, reasons: tuple[ShownReason, ...], store: AnswerStore) -> Texts:
    """Everything by others that the message will hold: no marker may occur in it."""
    state = live_run.coordination
    answers = [state.content(entry.label) for entry in ballot.entries]
    evidence = evidence_of(ballot, state, live_run.state.checked_base).values()
    return {
        "answers": [*answers, *(shown.reason for shown in reasons)],
        "changes": [*shown_changes(live_run, ballot.entries, store).values()],
        "evidence": [*evidence, tests_text(state), goal_text(state)],
        "notes": [live_run.state.agents[ballot.viewer].working_notes],
    }


@dataclass(frozen=True, slots=True)
class BallotContents:
    """A ballot, and what there is to read of its answers."""

    ballot: Ballot
    state: Coordination
    changes: Mapping[str, str]
    """Patches of the answers, by their names."""
    base: FilesChecked | None
    """The checks of the unchanged files."""


def ballot_message(
    contents: BallotContents, shown: RoundStarted | BallotChanged, *, heading: str, request: str, notes: str = ""
) -> str:
    """`shown` is the event that tells of the ballot, `request` what is asked of its viewer, `notes` what that one wrote
    on the way to its first answer. Of each text at most as much as the event says.
    """
    ballot, state, most = contents.ballot, contents.state, shown.most
    answers = [(entry.name, within(state.content(entry.label), most)) for entry in ballot.entries]
    own = next((entry.name for entry in ballot.entries if state.author(entry.label) == ballot.viewer), None)
    if state.stage is not None and state.stage.by_fallback:
        own, notes = None, ""  # another model judges, and must not know whose answers these are
    parts = [prompts.notes_block(within(notes, most), shown.nonce, prompts.OWN_NOTES)] if notes else []
    changes = all_within(contents.changes, most)
    evidence = all_within(evidence_of(ballot, state, contents.base), most)
    if answers:
        parts.append(prompts.ballot_block(heading, answers, shown.nonce, own=own, changes=changes, evidence=evidence))
    if shown.reasons:
        reasons = [(reason.name, within(reason.reason, most)) for reason in shown.reasons]
        parts.append(prompts.reasons_block(prompts.VOID_REASONS, reasons, shown.nonce))
    if answers and (goal := goal_text(state)):
        parts.append(prompts.tests_block(within(goal, most), shown.nonce, prompts.GOAL))
    if tests := tests_text(state):
        confirms = state.stage is not None and state.stage.kind == "confirm"
        heading = prompts.SCRIPTS_TO_SETTLE if confirms else prompts.WRITTEN_TESTS
        parts.append(prompts.tests_block(within(tests, most), shown.nonce, heading))
    parts.append(prompts.DECIDE if AgentView(state, ballot.viewer).may_answer() else request)
    return "\n\n".join(parts)


# ---------------------------------------------------------------------------------------------------------------------
# What agents read of their work where they have copies of the caller's directories: how to go about it, which checks
# judge it, and what to look at in the work of others. Pure.
# Short on purpose, and the same during a phase as far as it can be: models read it with every call.


OWN_COPIES = """\
Your own copy of {of} is {names}: work there. What differs from the original in the end is your patch; it belongs to \
your answer, and the others read it. Do not repeat it in the text."""
BEGINS = """\
Your copy begins with what an earlier turn changed ({files}), which is not in the original. Go on from there: your \
patch holds that and what you change, so take back what is not wanted."""
HOW_TO_WORK = """\
Before you change files, read how they are built, tested and used elsewhere. Change what is asked for and nothing \
else, in the style that is there."""
HOW_TO_VERIFY = """\
Where something is broken, reproduce it first. After your change run it again, with the tests nearest to it, in your \
copy; say in the answer what you ran and what it showed. Git in your copy knows the original as its only commit."""
CHECKS = "Checks decide about the files of every answer. They are, run in your copy of {of}:"
PROTECTED = "Tests and what checks are configured by count as they were before, so changing them does not help."
HOW_TO_JUDGE = """\
Judge what an answer changes, not what it says of it: does it do all that is asked for; are tests or checks weakened, \
left out or served by a special case; does it change more than is asked for; does it leave dead code or break other \
callers?"""


def code_notes(copies: Sequence[str], *, earlier: int = 0, commands: bool) -> tuple[str, ...]:
    """Describe work on `copies` of directories, by name. `earlier`: so many files that copies begin with are changed
    already. `commands`: the agent can run some.
    """
    if not copies:
        return ()
    of = ", ".join(f"context/{name}" for name in copies)
    notes = [OWN_COPIES.format(of=of, names=", ".join(f"{name}/" for name in copies))]
    if earlier:
        notes.append(BEGINS.format(files=counted(earlier, "file")))
    notes.append(f"{HOW_TO_WORK} {HOW_TO_VERIFY}" if commands else HOW_TO_WORK)
    return tuple(notes)


def _listed(checks: Sequence[str], base: FilesChecked | None) -> Iterator[str]:
    known = {outcome.command: outcome for outcome in base.outcomes} if base is not None else {}
    for command in checks:
        outcome = known.get(command)
        stands = "" if outcome is None else f" ({outcome.result.replace('_', ' ')} on the original: {outcome.how})"
        if outcome is not None and outcome.obstacle is not None:
            stands = f" (it fails for the environment, also on the original, and will not count: {outcome.how})"
        yield f"- `{command}`{stands}"
    if base is not None:
        yield from (f"- {sentence}" for sentence in base.unfollowed)


# ---------------------------------------------------------------------------------------------------------------------
# What readers of answers are shown of the files that each changes: the list, and how each file's difference begins.
# Made of what an answer's event and its kept patch hold, so that a resumed round shows the same.


MAX_SHOWN_BYTES = 24_000
"""Of the differences of all answers together; each has an equal part of it, and in that each file."""
MAX_FILES = 40
"""Of each answer, by name."""


def shown_changes(live_run: LiveRun, entries: Iterable[BallotEntry], store: AnswerStore) -> Mapping[str, str]:
    """By the neutral name of each answer. Empty where the run has no base."""
    by_label = {answer.label: answer.changes for answer in live_run.state.answers}  # the last of a label is meant
    changes = {entry.name: found for entry in entries if (found := by_label.get(entry.label)) is not None}
    changing = sum(1 for one in changes.values() if one.patch is not None)
    part = MAX_SHOWN_BYTES // max(1, changing)
    return {name: _changes_text(name, one, store.patch(one, part)) for name, one in changes.items()}


def _changes_text(name: str, changes: Changes, patch: str) -> str:
    notes = [f"({note})" for note in changes.notes]
    if not changes.count:
        return "\n".join(["No file is changed.", *notes])
    files = [str(file) for file in changes.files[:MAX_FILES]]
    further = changes.count - len(files)
    lines = [f"{changes}:", *files, *([f"and {further} more"] if further else []), *notes, "", patch.rstrip()]
    if changes.patch_bytes > len(patch.encode()):
        lines.append(f"[cut here; all {changes.patch_bytes:,} bytes are in peers/{name}/changes.patch]")
    return "\n".join(lines)
