"""What comes next in a coordination: a stage, the winner, or nothing yet. Pure."""

from collections.abc import Mapping

from massgen_mcp.coordination.effort import next_asked
from massgen_mcp.coordination.procedures.by_judge import DecideByJudge
from massgen_mcp.coordination.procedures.by_synthesis import DecideBySynthesis
from massgen_mcp.coordination.procedures.by_tests import DecideByTests, DecideByTestsOrVotes
from massgen_mcp.coordination.procedures.by_votes import DecideByVotes, NextStep, Procedure
from massgen_mcp.coordination.procedures.challenge import challenged, next_against
from massgen_mcp.coordination.procedures.failing_test import before_answers
from massgen_mcp.coordination.state import Coordination, Decide
from massgen_mcp.events.coordination import WinnerChosen

PROCEDURES: Mapping[Decide, Procedure] = {
    "auto": DecideByTestsOrVotes(),
    "vote": DecideByVotes(),
    "checks": DecideByTests(),
    "synthesise": DecideBySynthesis(),
    "judge": DecideByJudge(),
}


def next_step(state: Coordination) -> NextStep:
    """What is due now: a failing test is written, others are asked for an answer, or the procedure goes on with those
    that are there.
    """
    if state.winner is not None:
        return None
    if state.stage is not None and state.stage.elected is not None:
        return next_against(state, state.stage, state.stage.elected)
    due = before_answers(state)
    if due == "enough":
        due = next_asked(state)
    if due == "enough":
        due = PROCEDURES[state.rules.decide].next(state) if state.answered else None
    return challenged(state, due) if isinstance(due, WinnerChosen) and state.rules.refute else due
