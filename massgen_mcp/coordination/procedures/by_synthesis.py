"""An agent writes the answer from all answers, on request and of findings. Pure.

The agent that the config names writes, else the one that is drawn. If it fails, one more is drawn; after that the
agents vote. What it claims is tried where a script can show it, and stands whatever comes of that.
"""

from massgen_mcp.coordination.count import drawn
from massgen_mcp.coordination.deciding import best_so_far, decision, won
from massgen_mcp.coordination.procedures.by_votes import NextStep, vote_on
from massgen_mcp.coordination.state import Coordination
from massgen_mcp.coordination.testing import due_runs
from massgen_mcp.events.coordination import StageOpened

MOST_WRITERS = 2


class DecideBySynthesis:
    def next(self, state: Coordination) -> NextStep:
        stage, text = state.stage, state.synthesis
        stopped = state.finish_requested or state.closing
        if text is not None:
            return None if due_runs(state) and not stopped else won(state, text.agent, "synthesised")
        alone = len(state.live) == 1 and state.answered == state.live
        if state.finish_requested or alone or not state.live or (stage is not None and stage.kind == "vote"):
            return decision(state)
        if (stage is None and not state.complete) or (
            stage is not None and stage.agents[0] in state.live and not stopped
        ):
            return None
        if stopped:
            return best_so_far(state)
        return _next_writer(state)


def _next_writer(state: Coordination) -> StageOpened:
    able = tuple(agent for agent in state.live if agent in state.answered)
    if sum(stage.kind == "synthesise" for stage in state.stages) == MOST_WRITERS or not able:
        return vote_on(state, state.standing, "writer_failed")
    writer = state.rules.writer if state.rules.writer in able else drawn(state.rules.seed, able)
    return StageOpened(kind="synthesise", subjects=state.standing, agents=(writer,), because="answered")
