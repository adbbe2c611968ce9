"""What a round asks of the model at each step: the system message, and the workflow tools that are valid now."""

from collections.abc import Iterator

from massgen_mcp.backends.base import ToolSpec
from massgen_mcp.coordination.ballot import Ballot
from massgen_mcp.coordination.state import Coordination
from massgen_mcp.orchestration import prompts
from massgen_mcp.orchestration.attempt import Attempt
from massgen_mcp.orchestration.code_prompts import code_notes
from massgen_mcp.orchestration.team import Member


def system_message(member: Member, attempt: Attempt, *, judges: bool) -> str:
    """`judges`: there are answers on its ballot."""
    run_spec, coordination = attempt.run_spec, attempt.live_run.coordination
    alone, policy = len(run_spec.team) == 1, run_spec.policy
    notes: list[str] = []
    may_improve = judges and coordination.may_answer(member.name)
    if may_improve and (criterion := prompts.CONTENT_WITH[policy.voting_sensitivity]):
        notes.append(criterion)
    if not judges and member.perspective is not None:
        notes.append(member.perspective)
    if member.offered:
        notes.append(prompts.USE_TOOLS)
    if member.toolbox is not None and (missing := member.toolbox.missing()):
        notes.append(prompts.MISSING_SERVERS.format(names=", ".join(missing)))
    if plan := policy.coordination.planning_instruction:
        notes.append(plan)
    notes.extend(member.notes)
    notes += file_notes(member, attempt, judges=judges)
    if policy.answer_format == "findings":
        notes.append(prompts.FINDINGS)
    if judges and (checks := coordination.rules.checks) is not None:
        notes.append(prompts.evidence_note(checks))
    usual = prompts.ANSWER_ALONE if alone else prompts.JUDGE if judges else prompts.FIRST_ANSWER
    task = member.templates.evaluation_system_message or usual
    return prompts.system_prompt(task, member.system_message, notes, today=attempt.today)


def file_notes(member: Member, attempt: Attempt, *, judges: bool) -> Iterator[str]:
    """What an agent with a workspace is told of it, of the caller's files, and of work on them."""
    run_spec = attempt.run_spec
    if member.workspace is None:
        return
    yield f"{prompts.FILES} {prompts.PEER_FILES}" if judges else prompts.FILES
    if run_spec.context_names:
        yield prompts.CONTEXT_FILES.format(names=", ".join(run_spec.context_names))
    checks = () if run_spec.judge is None else run_spec.judge.commands
    base, commands = attempt.live_run.state.checked_base, member.commands is not None
    yield from code_notes(run_spec.copies, checks, base, commands=commands, judges=judges)


def workflow_tools(coordination: Coordination, ballot: Ballot, *, run_off: bool) -> tuple[ToolSpec, ...]:
    """No vote without answers, no new answer beyond the limit."""
    tools: list[ToolSpec] = []
    if coordination.may_answer(ballot.viewer):
        tools.append(prompts.NEW_ANSWER)
    if ballot.entries:
        tools.append(prompts.vote_tool(coordination.votable(ballot), run_off=run_off))
    return tuple(tools)
