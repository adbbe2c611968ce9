"""The winner writes the final answer, knowing all answers and all votes.

Must not know how the winner was found.
"""

import anyio

from massgen_mcp.backends.base import AssistantMessage, Message, ModelRequest, UserMessage
from massgen_mcp.errors import BackendError
from massgen_mcp.events import PresentationFailed, PresentationStarted, WinnerChosen
from massgen_mcp.orchestration import prompts
from massgen_mcp.orchestration.floor import Floor
from massgen_mcp.orchestration.model_calls import ask
from massgen_mcp.orchestration.team import Assignment, Member
from massgen_mcp.orchestration.tool_calls import run_tools


async def present(winner: WinnerChosen, assignment: Assignment, floor: Floor) -> str:
    """The final answer, never empty. If the winner cannot write it, its latest answer stands in, on the record."""
    member = assignment.member(winner.agent)
    floor.record(PresentationStarted(agent=member.name))
    limits = assignment.limits
    try:
        with anyio.fail_after(limits.round_seconds):
            return await _write(member, assignment, floor)
    except TimeoutError:
        error = BackendError("timeout", f"round_timeout_seconds: no final answer within {limits.round_seconds:g} s")
    except BackendError as caught:
        error = caught
    floor.record(PresentationFailed(agent=member.name, reason=error.reason, message=str(error)))
    return floor.state.content(winner.label)


async def _write(member: Member, assignment: Assignment, floor: Floor) -> str:
    notes = [prompts.FILES] if member.workspace is not None else []
    system = prompts.system_prompt(prompts.PRESENT, member.system_message, notes)
    messages: list[Message] = [
        UserMessage(prompts.question_block(assignment.question)),
        UserMessage(_record(member, floor)),
    ]
    tools = tuple(tool.spec for tool in member.tools)
    for step in range(1, assignment.limits.steps_per_round + 1):
        reply = await ask(
            member,
            ModelRequest(system, tuple(messages), tools),
            call_id=f"{member.name}.present.{step}",
            purpose="present",
            floor=floor,
            limits=assignment.limits,
        )
        if not reply.tool_calls:
            return _complete(reply.text, reply.stop)
        messages.append(AssistantMessage(reply.text, reply.tool_calls, reply.replay))
        messages.extend(outcome.message for outcome in await run_tools(member, reply.tool_calls, floor))
    raise BackendError(
        "no_action", f"no final answer in {assignment.limits.steps_per_round} steps (max_steps_per_round)"
    )


def _complete(text: str, stop: str) -> str:
    """A final answer is whole, or it is none."""
    if stop == "refusal":
        raise BackendError("bad_reply", "the model refused to write the final answer")
    if stop == "length":
        raise BackendError("bad_reply", "the final answer was cut off at the model's output limit")
    if not text.strip():
        raise BackendError("bad_reply", "the model wrote an empty final answer")
    return text


def _record(member: Member, floor: Floor) -> str:
    """All answers and votes under the presenter's own neutral names."""
    state = floor.state
    ballot = state.ballot(member.name)
    names = {entry.label: entry.name for entry in ballot.entries}
    own = names[state.label(member.name)]
    answers = prompts.ballot_block("The answers:", [(e.name, state.content(e.label)) for e in ballot.entries], own)
    votes = prompts.votes_block([(names[vote.label], vote.reason) for vote in floor.standing_votes])
    return f"{answers}\n\n{votes}"
