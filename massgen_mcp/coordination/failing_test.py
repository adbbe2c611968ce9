"""The steps before anybody answers: an agent writes a failing test, and two others confirm it (see `written_tests`).

If the test is void, or its author falls out, one more agent may write one. After that agents answer without. Pure.
"""

from typing import Literal

from massgen_mcp.coordination.count import drawn
from massgen_mcp.coordination.state import Coordination
from massgen_mcp.coordination.written_tests import BEFORE_ANSWERS
from massgen_mcp.events.coordination import StageOpened
from massgen_mcp.events.parts import CHECK_WRITERS, CONFIRM, StageKind, StageReason


def before_answers(state: Coordination) -> StageOpened | Literal["enough"] | None:
    """What is due before anybody is asked for an answer; `enough`: nothing more."""
    stopped = state.finish_requested or state.closing or not state.rules.can_run
    later = state.answered or any(stage.kind not in BEFORE_ANSWERS for stage in state.stages)
    if not state.rules.write_check or stopped or later or state.checks.telling:
        return "enough"
    if not state.begun:
        return None
    stage = state.stage
    if stage is None:
        return _ask_for_test(state, "wanted")
    number = len(state.stages)
    if any(agent in state.live and (number, agent) not in state.submitted for agent in stage.agents):
        return None
    newest = state.checks.failing_tests[-1] if state.checks.failing_tests else None
    if stage.kind == "check" and newest is not None and (number, newest.author) in state.submitted:
        if not newest.ran:
            return None
        if newest.void is None:
            return _confirm(state, newest.author)
    return _ask_for_test(state, "void")


def _ask_for_test(state: Coordination, because: StageReason) -> StageOpened | Literal["enough"]:
    writers = [stage.agents[0] for stage in state.stages if stage.kind == "check"]
    able = [agent for agent in state.live if agent not in writers]
    if len(writers) == CHECK_WRITERS or not able or len(state.live) <= CONFIRM:
        return "enough"
    return _stage_opened("check", (drawn(state.rules.seed, able),), because)


def _confirm(state: Coordination, author: str) -> StageOpened | Literal["enough"]:
    others, agents = [agent for agent in state.live if agent != author], list[str]()
    while len(agents) < CONFIRM and (left := [agent for agent in others if agent not in agents]):
        agents.append(drawn(state.rules.seed, left))
    return _stage_opened("confirm", tuple(agents), "fails_before") if len(agents) == CONFIRM else "enough"


def _stage_opened(kind: StageKind, agents: tuple[str, ...], because: StageReason) -> StageOpened:
    return StageOpened(kind=kind, subjects=(), agents=agents, because=because)
