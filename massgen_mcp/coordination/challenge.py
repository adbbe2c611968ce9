"""The steps against a winner that was voted for, on request (`refute`); what its scripts come to is in `testing`. Pure.

Whoever fails in it leaves the winner standing. What is proven is told, whatever becomes of it.
"""

from collections.abc import Iterable

from massgen_mcp.coordination.count import drawn
from massgen_mcp.coordination.deciding import NextStep
from massgen_mcp.coordination.state import Coordination
from massgen_mcp.coordination.testing import due_runs, mended_passes, objections, proven, ran
from massgen_mcp.events.coordination import StageOpened, WinnerChosen
from massgen_mcp.events.parts import BY_VOTES, DECIDED_WITHOUT_VOTES, Challenge, StageKind, StageReason

VOTED = BY_VOTES | {"agreed"}


def challenged(state: Coordination, winner: WinnerChosen) -> NextStep:
    """The first step against a winner, or the winner, if there is none."""
    if winner.outcome in DECIDED_WITHOUT_VOTES:
        return winner
    vendor = state.rules.vendor(winner.agent)
    able = () if _stopped(state) or state.changed_tree(winner.label) is None else state.live
    others = [agent for agent in able if agent in state.answered and state.rules.vendor(agent) != vendor]
    if winner.outcome not in VOTED or not others:
        return _after(winner, "not_challenged")
    return _stage(state, "refute", others, "voted", winner)


def next_against(state: Coordination, stage: StageOpened, winner: WinnerChosen) -> NextStep:
    """What is due in a challenge of which this stage is open."""
    stopped = _stopped(state)
    gone = stopped or stage.agents[0] not in state.live
    match stage.kind:
        case "refute" if stage.kind not in state.proofs or stopped:
            return _after(winner, "not_challenged") if gone else None
        case "refute":
            return None if due_runs(state) else _objected(state, stage, winner)
        case "settle" if stage.kind not in state.proofs:
            return _after(winner, "not_challenged") if gone else None
        case "settle" if not proven(state):
            return _after(winner, "unproven")
        case "settle":
            able = not stopped and winner.agent in state.live
            return _stage(state, "revise", [winner.agent], "proven", winner) if able else _after(winner, "refuted")
        case _:
            mended = state.mended
            if not stopped and (due_runs(state) or state.checking if mended else not gone):
                return None
            if stopped or mended is None or not mended_passes(state):
                return _after(winner, "refuted")
            return _after(winner.model_copy(update={"label": mended.label}), "mended")


def _objected(state: Coordination, stage: StageOpened, winner: WinnerChosen) -> NextStep:
    """After the tests against the winner have run."""
    if not objections(state):
        return _after(winner, "withstood" if ran(state) else "not_challenged")
    thirds = [agent for agent in state.live if agent in state.answered and agent not in (winner.agent, *stage.agents)]
    return _stage(state, "settle", thirds, "failed", winner) if thirds else _after(winner, "not_challenged")


def _stopped(state: Coordination) -> bool:
    return state.finish_requested or state.closing or not state.rules.can_run


def _stage(
    state: Coordination, kind: StageKind, agents: Iterable[str], because: StageReason, winner: WinnerChosen
) -> StageOpened:
    agent = drawn(state.rules.seed, tuple(agents))
    return StageOpened(kind=kind, subjects=(winner.label,), agents=(agent,), because=because, elected=winner)


def _after(winner: WinnerChosen, challenge: Challenge) -> WinnerChosen:
    return winner.model_copy(update={"challenge": challenge})
