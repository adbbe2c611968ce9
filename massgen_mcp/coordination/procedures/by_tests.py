"""Tests that the team writes find the winner, and votes where those do not tell. Pure.

Every agent answers once. Answers that required checks exclude are out. Where the files of the others differ, the agents
write tests that tell them apart (see `written_tests`). The answer that passes at least two thirds of the others' tests,
and more than every other one, wins. Where tests do not tell, the agents vote, with what the tests showed on the ballot:
about the best answers if those are tied, else about all.
"""

from collections.abc import Iterable

from massgen_mcp.coordination.count import drawn
from massgen_mcp.coordination.deciding import best_so_far, decision, won
from massgen_mcp.coordination.procedures.by_votes import NextStep, vote_on
from massgen_mcp.coordination.state import Coordination
from massgen_mcp.coordination.testing import awaited_writers, best_of, chosen, due_runs, tests_of
from massgen_mcp.events.coordination import StageOpened
from massgen_mcp.events.parts import LEAST_ANSWERS


class DecideByTests:
    def next(self, state: Coordination) -> NextStep:
        stage = state.stage
        alone = len(state.live) == 1 and state.answered == state.live
        if state.finish_requested or alone or (stage is not None and stage.kind == "vote"):
            return decision(state)
        return _first_step(state) if stage is None else _by_tests(state, stage)


class DecideByTestsOrVotes(DecideByTests):
    """By tests, where the first answers are three or more, and change files differently; else by votes."""

    def next(self, state: Coordination) -> NextStep:
        stage = state.stage
        differ = len(set(_trees(state, state.standing).values())) > 1
        first = len(state.answered) >= LEAST_ANSWERS and all(len(seat.answers) < 2 for seat in state.seats.values())
        apt = state.complete and differ and first and not state.closing
        due = stage is None and (bool(state.stages) or apt)
        tested = stage is not None and stage.kind == "test"
        return super().next(state) if due or tested else decision(state)


def _trees(state: Coordination, labels: Iterable[str]) -> dict[str, str]:
    """The files of these answers, by label."""
    changes = {label: state.answer_of(state.author(label)).changes for label in labels}
    return {label: made.tree for label, made in changes.items() if made is not None}


def _first_step(state: Coordination) -> NextStep:
    """After the answers and their checks."""
    if not state.live:
        return decision(state)
    if not state.complete:
        return None
    labels = [label for label in state.standing if label not in state.excluded]
    if len(labels) == 1 and state.excluded:
        return won(state, state.author(labels[0]), "checked")
    trees = _trees(state, labels)
    unchanged = {*trees.values()} == {state.base}
    if len(trees) > 1 and len(set(trees.values())) == 1 and not unchanged:
        return won(state, state.author(drawn(state.rules.seed, trees)), "same_files", drawn_among=tuple(trees))
    if state.closing:
        return best_so_far(state)
    if unchanged or len(state.answered) < LEAST_ANSWERS or len(trees) < 2:
        return vote_on(state, labels, "unchanged" if unchanged else "few_answers")
    agents = tuple(agent for agent in state.live if agent in state.answered)
    return StageOpened(kind="test", subjects=tuple(trees), agents=agents, because="differ")


def _by_tests(state: Coordination, stage: StageOpened) -> NextStep:
    if (awaited_writers(state, stage) and not state.closing) or due_runs(state):
        return None
    if (label := chosen(state)) is not None:
        return won(state, state.author(label), "tested")
    if state.closing:
        return best_so_far(state)
    if not state.live:
        return decision(state)
    if best := best_of(state):
        return vote_on(state, best, "tests_tied")
    return vote_on(state, stage.subjects, "tests_tell_nothing" if tests_of(state) else "no_tests")
