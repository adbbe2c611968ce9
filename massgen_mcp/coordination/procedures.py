"""How a winner is found: a class for each strategy, and `next_step`, which asks the one that the rules name.

A strategy is pure and without memory. It reads the state and says what is due: a stage, the winner, or nothing yet.
What it says is recorded, and so becomes a part of the state.
"""

from collections.abc import Iterable, Mapping
from typing import Literal, Protocol

from massgen_mcp.coordination.count import drawn, lot
from massgen_mcp.coordination.deciding import NextStep, best_so_far, decision, won
from massgen_mcp.coordination.effort import next_asked
from massgen_mcp.coordination.state import Coordination
from massgen_mcp.coordination.testing import (
    awaited_writers,
    chosen,
    due_runs,
    files_of,
    list_best,
    list_trees,
    tests_of,
)
from massgen_mcp.coordination.written_tests import BEFORE_ANSWERS
from massgen_mcp.events.coordination import StageOpened
from massgen_mcp.events.parts import CHECK_WRITERS, CONFIRM, LEAST_ANSWERS, Decide, StageReason

MOST_WRITERS = 2


class StrategyRules(Protocol):
    def next(self, state: Coordination) -> NextStep:
        """What is due in this state, in which some answer stands and no winner is chosen."""
        ...


class DecideByVotes:
    """As the votes decide: see `deciding`."""

    def next(self, state: Coordination) -> NextStep:
        if state.stage is not None and state.stage.kind == "test" and not state.finish_requested:
            return open_vote(state, files_of(state), "no_sandbox")  # the process before this one had a sandbox
        return decision(state)


def is_voting(stage: StageOpened | None) -> bool:
    """Return whether votes decide in this stage, or what is tied after them is judged."""
    return stage is not None and (stage.kind == "vote" or stage.because == "still_tied")


def open_vote(state: Coordination, subjects: Iterable[str], because: StageReason) -> StageOpened:
    """A vote on these answers, by label, after which no answer is accepted any more."""
    return StageOpened(kind="vote", subjects=tuple(subjects), agents=state.live_authors, because=because)


class DecideByTests:
    """Tests that the team writes find the winner, and votes where those do not tell.

    Every agent answers once. Answers that required checks exclude are out. Where the files of the others differ, the
    agents write tests that tell them apart (see `written_tests`). The answer that passes at least two thirds of the
    others' tests, and more than every other one, wins. Where tests do not tell, the agents vote, with what the tests
    showed on the ballot: about the best answers if those are tied, else about all.
    """

    def next(self, state: Coordination) -> NextStep:
        stage = state.stage
        if state.finish_requested or state.has_lone_author or is_voting(stage):
            return decision(state)
        return _first_step(state) if stage is None else _by_tests(state, stage)


class DecideByTestsOrVotes(DecideByTests):
    """By tests, where the first answers are three or more, and change files differently; else by votes."""

    def next(self, state: Coordination) -> NextStep:
        stage = state.stage
        differ = len(set(list_trees(state, state.standing).values())) > 1
        first = len(state.answered) >= LEAST_ANSWERS and all(len(seat.answers) < 2 for seat in state.seats.values())
        apt = state.complete and differ and first and not state.closing
        due = stage is None and (bool(state.stages) or apt)
        tested = stage is not None and stage.kind == "test"
        return super().next(state) if due or tested else decision(state)


def _first_step(state: Coordination) -> NextStep:
    """After the answers and their checks."""
    if not state.live:
        return decision(state)
    if not state.complete:
        return None
    labels = [label for label in state.standing if label not in state.checks.excluded]
    if len(labels) == 1 and state.checks.excluded:
        return won(state, state.author(labels[0]), "checked")
    trees = list_trees(state, labels)
    unchanged = {*trees.values()} == {state.base}
    if len(trees) > 1 and len(set(trees.values())) == 1 and not unchanged:
        return won(state, state.author(drawn(state.rules.seed, trees)), "same_files", drawn_among=tuple(trees))
    if state.closing:
        return best_so_far(state)
    if unchanged or len(state.answered) < LEAST_ANSWERS or len(trees) < 2:
        return open_vote(state, labels, "unchanged" if unchanged else "few_answers")
    agents = tuple(agent for agent in state.live_authors if agent not in state.late)
    if not agents:
        return open_vote(state, labels, "no_tests")
    return StageOpened(kind="test", subjects=tuple(trees), agents=agents, because="differ")


def _by_tests(state: Coordination, stage: StageOpened) -> NextStep:
    if not state.live:
        return decision(state)  # no agent is left that a run of tests could help
    if (awaited_writers(state, stage) and not state.closing) or due_runs(state):
        return None
    if (label := chosen(state)) is not None:
        return won(state, state.author(label), "tested")
    if state.closing:
        return best_so_far(state)
    if best := list_best(state):
        return open_vote(state, best, "tests_tied")
    return open_vote(state, stage.subjects, "tests_tell_nothing" if tests_of(state) else "no_tests")


class DecideBySynthesis:
    """An agent writes the answer from all answers, on request and of findings.

    The agent that the config names writes, else the one that is drawn. If it fails, one more is drawn; after that the
    agents vote. What it claims is tried where a script can show it, and stands whatever comes of that.
    """

    def next(self, state: Coordination) -> NextStep:
        stage, text = state.stage, state.synthesis
        stopped = state.finish_requested or state.closing
        if text is not None:
            return None if due_runs(state) and not stopped else won(state, text.agent, "synthesised")
        if state.finish_requested or state.has_lone_author or not state.live or is_voting(stage):
            return decision(state)
        if (stage is None and not state.complete) or (
            stage is not None and stage.agents[0] in state.live and not stopped
        ):
            return None
        if stopped:
            return best_so_far(state)
        return _next_writer(state)


def _next_writer(state: Coordination) -> StageOpened:
    able = state.live_authors
    if sum(stage.kind == "synthesise" for stage in state.stages) == MOST_WRITERS or not able:
        return open_vote(state, state.standing, "writer_failed")
    writer = state.rules.writer if state.rules.writer in able else drawn(state.rules.seed, able)
    return StageOpened(kind="synthesise", subjects=state.standing, agents=(writer,), because="answered")


class DecideByJudge:
    """A judge that the config names compares the answers, and gives none itself.

    A knock-out: each answer, in the order of lots, is compared with the one that is left of those before it, in both
    orders. Where both verdicts are for the same answer, the other one is out; else both stay. No verdict is asked about
    an answer whose author has a model of the judge's vendor. If one answer is left it wins, else their authors vote on
    those.
    """

    def next(self, state: Coordination) -> NextStep:
        stage, judge = state.stage, state.rules.judge
        if state.has_lone_author or not state.live or is_voting(stage):
            return decision(state)
        left, pair = _knock_out(state)
        if state.finish_requested or (state.closing and state.complete):
            return won(state, state.author(left[0]), "best_so_far")
        if not state.complete:
            return None
        if judge is not None and pair is not None and not state.seats[judge].dropped:
            due = StageOpened(kind="compare", subjects=pair, agents=(judge,), because="compared")
            return None if stage is not None and stage.subjects == pair else due
        if len(left) == 1 and state.verdicts:
            return won(state, state.author(left[0]), "judged")
        return open_vote(state, left, "no_verdict")


def _knock_out(state: Coordination) -> tuple[list[str], tuple[str, ...] | None]:
    """The answers that are not out, and the two that are to be compared now."""
    able = (label for label in state.standing if label not in state.checks.excluded)
    first, *others = sorted(able, key=lambda label: lot(state.rules.seed, label))
    left, due = [first], None
    for label in others:
        pair = left[-1], label
        verdicts = [state.verdicts.get(one) for one in (pair, pair[::-1])] if _neutral(state, pair) else []
        if due is None and None in verdicts:
            due = pair if verdicts[0] is None else pair[::-1]
        if not verdicts or None in verdicts or verdicts[0] != verdicts[1]:
            left.append(label)
        elif verdicts[0] == label:
            left[-1] = label
    return left, due


def _neutral(state: Coordination, pair: tuple[str, ...]) -> bool:
    vendor = state.rules.vendor(state.rules.judge or "")
    return all(state.rules.vendor(state.author(label)) != vendor for label in pair)


RULES: Mapping[Decide, StrategyRules] = {
    "auto": DecideByTestsOrVotes(),
    "vote": DecideByVotes(),
    "checks": DecideByTests(),
    "synthesise": DecideBySynthesis(),
    "judge": DecideByJudge(),
}


def next_step(state: Coordination) -> NextStep:
    """What is due now: a failing test is written, others are asked for an answer, or the strategy goes on with those
    that are there.
    """
    if state.winner is not None:
        return None
    if state.stage is not None and state.stage.elected is not None:
        return state.stage.elected  # an earlier version went on with tests against the winner
    due = before_answers(state)
    if due == "enough":
        due = next_asked(state)
    if due == "enough":
        due = RULES[state.rules.decide].next(state) if state.answered else None
    return due


# ---------------------------------------------------------------------------------------------------------------------
# The steps before anybody answers: an agent writes a failing test, and two others confirm it (see `written_tests`).
# If the test is void, or its author falls out, one more agent may write one. After that agents answer without.


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
    return StageOpened(kind="check", subjects=(), agents=(drawn(state.rules.seed, able),), because=because)


def _confirm(state: Coordination, author: str) -> StageOpened | Literal["enough"]:
    others, agents = [agent for agent in state.live if agent != author], list[str]()
    while len(agents) < CONFIRM and (left := [agent for agent in others if agent not in agents]):
        agents.append(drawn(state.rules.seed, left))
    if len(agents) < CONFIRM:
        return "enough"
    return StageOpened(kind="confirm", subjects=(), agents=tuple(agents), because="fails_before")
