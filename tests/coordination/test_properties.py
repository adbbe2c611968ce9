"""Random coordinations keep the invariants, whatever models do and in whatever order they do it."""

import gc
from dataclasses import dataclass, field, replace
from random import Random

import pytest

from massgen_mcp.coordination.agent_view import AgentView
from massgen_mcp.coordination.count import drawn
from massgen_mcp.coordination.guidance import Violation, Wait, Work
from massgen_mcp.coordination.procedures import next_step
from massgen_mcp.coordination.state import Coordination, EarlyDecision, Rules
from massgen_mcp.events.agent_work import AgentEvent, BallotChanged, RoundStarted
from massgen_mcp.events.coordination import (
    AgentDropped,
    AnswerSubmitted,
    CoordinationEvent,
    FilesChecked,
    FirstAnswersClosed,
    StageOpened,
    VoteCast,
    WinnerChosen,
)
from massgen_mcp.events.parts import CheckOutcome, ChecksPolicy
from tests.coordination.reference import write_text
from tests.coordination.seeds import SEEDS

pytestmark = pytest.mark.uncounted


def most_actions(agents: int, answers: int) -> int:
    """Accepted actions of a coordination at most: every answer that may be given, and after each of them that completes
    or changes the field a vote by everybody, a run-off, and verdicts on what is tied after it.
    """
    changes = agents * answers - agents + 1
    return agents * answers + agents * changes + 2 * agents


@dataclass
class Play:
    """One random coordination: agents take random turns, see ballots when the rules say so, and act at random."""

    seed: int
    events: list[CoordinationEvent | AgentEvent] = field(default_factory=list[CoordinationEvent | AgentEvent])
    calls: int = 0
    accepted: int = 0
    stale: int = 0
    in_round: set[str] = field(default_factory=set[str])

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        agents = tuple(f"agent_{letter}" for letter in "abcdefg"[: self.random.randint(1, 7)])
        self.limit = self.random.randint(1, 4)
        early: EarlyDecision = self.random.choice(("off", "proven", "majority"))
        checks: ChecksPolicy | None = self.random.choice((None, "informative", "required", "goal"))
        self.rules = Rules(max_answers=self.limit, early_decision=early, seed=str(self.seed), checks=checks)
        self.state = Coordination.begin(agents, self.rules)

    def happen(self, event: CoordinationEvent | AgentEvent) -> None:
        self.events.append(event)
        self.state = self.state.after(event)
        if decided := next_step(self.state):
            self.events.append(decided)
            self.state = self.state.after(decided)

    def run(self) -> "Play":
        while self.state.winner is None and (live := self.state.live):
            if any(self._move(agent) for agent in self.random.sample(live, len(live))):
                continue
            if self.state.checks.is_pending:
                self._check()
            else:
                assert self.state.unanswered, "nobody can move and nobody is waited for: a deadlock"
                self.happen(FirstAnswersClosed(awaited=self.state.unanswered))
        return self

    def _move(self, agent: str) -> bool:
        """Whether there was anything for the agent to do."""
        if agent in self.in_round:
            self._go_on(agent)
        elif isinstance(duty := AgentView(self.state, agent).get_duty(), Work):
            ballot = duty.ballot
            self.happen(RoundStarted(agent=agent, round=1, revision=ballot.revision, ballot=ballot.entries))
            self.in_round.add(agent)
        else:
            return False
        return True

    def _go_on(self, agent: str) -> None:
        if AgentView(self.state, agent).is_outdated() and self.random.random() < 0.7:
            self._check()
            ballot = self.state.ballot(agent)
            self.happen(BallotChanged(agent=agent, revision=ballot.revision, ballot=ballot.entries))
        else:
            self._act(agent)

    def _act(self, agent: str) -> None:
        self.calls += 1
        dice = self.random.random()
        if dice < 0.03:
            verdict: CoordinationEvent | Violation = AgentView(self.state, agent).drop("provider_error", "bad luck")
        elif dice < 0.45:
            text = "what everybody says" if self.random.random() < 0.1 else write_text(self.calls)
            verdict = AgentView(self.state, agent).answer(text)
        else:
            verdict = self._vote(agent)
        if isinstance(verdict, Violation):
            if verdict.code == "stale_ballot":
                self.stale += 1
                self._check()
                ballot = self.state.ballot(agent)
                self.happen(BallotChanged(agent=agent, revision=ballot.revision, ballot=ballot.entries))
            return
        self.accepted += 1
        self.happen(verdict)
        self.in_round.discard(agent)

    def _check(self) -> None:
        """Whoever is shown a ballot waits until the checks of its answers have run."""
        for label in self.state.checks.unchecked:
            results = [self.random.choice(("passed", "failed", "not_run")) for _ in range(self.random.randint(0, 2))]
            outcomes = tuple(
                CheckOutcome.model_validate({"command": f"check {n}", "result": result, "how": "", "seconds": 1})
                for n, result in enumerate(results)
            )
            before = ("check 1",) if self.random.random() < 0.3 else ()
            self.happen(FilesChecked(subject="answer", label=label, outcomes=outcomes, fails_before=before))
        while again := self.state.checks.to_repeat:
            label, commands = self.random.choice([*again.items()])
            self.happen(self._repeated(self.state.evidence[label], commands))

    def _repeated(self, checked: FilesChecked, commands: tuple[str, ...]) -> FilesChecked:
        outcomes = tuple(
            one.model_copy(update={"runs": 2, "flaky": self.random.random() < 0.2}) if one.command in commands else one
            for one in checked.outcomes
        )
        return checked.model_copy(update={"outcomes": outcomes})

    def _vote(self, agent: str) -> CoordinationEvent | Violation:
        same = [f"agent{place}" for place in range(1, 8) if self.random.random() < 0.3]
        name = f"agent{self.random.randint(1, 8)}"
        return AgentView(self.state, agent).vote(name, "because", same if self.random.random() < 0.7 else None)


@pytest.fixture(scope="module")
def plays() -> list[Play]:
    gc.disable()  # nothing of a play is garbage, and looking for some takes a third of the time
    try:
        return [Play(seed).run() for seed in range(SEEDS)]
    finally:
        gc.enable()


def test_folding_the_events_equals_the_live_state(plays: list[Play]) -> None:
    for play in plays:
        state = Coordination.begin(tuple(play.state.seats), play.rules)
        for event in play.events:
            state = state.after(event)
        assert state == play.state, f"seed {play.seed}"


def test_no_vote_is_ever_credited_to_an_answer_that_its_voter_did_not_see(plays: list[Play]) -> None:
    for play in plays:
        shown: dict[str, set[str]] = {}
        for event in play.events:
            match event:
                case RoundStarted() | BallotChanged():
                    shown[event.agent] = {entry.label for entry in event.ballot}
                case VoteCast():
                    assert event.label in shown[event.agent], f"seed {play.seed}"
                case _:
                    pass


def test_every_counted_vote_was_cast_after_the_last_new_answer_by_a_live_agent_once(plays: list[Play]) -> None:
    for play in plays:
        votes: dict[str, str] = {}
        run_off: dict[str, str] = {}
        verdict = False
        for event in play.events:
            match event:
                case StageOpened():
                    verdict = event.because == "still_tied"
                case VoteCast() if verdict:
                    pass
                case AnswerSubmitted():
                    assert set(event.voided_votes) == set(votes), f"seed {play.seed}"
                    votes.clear()
                case VoteCast():
                    cast = run_off if event.run_off else votes
                    assert event.agent not in cast, f"seed {play.seed}"
                    cast[event.agent] = event.label
                case AgentDropped():
                    votes.pop(event.agent, None)
                    run_off.pop(event.agent, None)
                case WinnerChosen():
                    counted = {label: list(votes.values()).count(label) for label in event.votes}
                    assert event.votes == counted, f"seed {play.seed}"
                    again = event.run_off and {label: list(run_off.values()).count(label) for label in event.run_off}
                    assert event.run_off == again, f"seed {play.seed}"
                case _:
                    pass


def test_the_winner_is_the_most_voted_answer_of_the_most_voted_camp(plays: list[Play]) -> None:
    for play in plays:
        winner = play.state.winner
        if winner is None or winner.run_off is not None or not any(winner.votes.values()):
            continue
        camp = next(camp for camp in winner.camps if winner.label in camp.answers)
        assert camp.votes == max(other.votes for other in winner.camps), f"seed {play.seed}"
        assert winner.votes[winner.label] == max(winner.votes[label] for label in camp.answers), f"seed {play.seed}"
        assert play.state.author(winner.label) == winner.agent


def test_an_answer_whose_checks_fail_never_wins_or_gets_a_vote_while_another_one_passes(plays: list[Play]) -> None:
    excluded = 0
    for play in plays:
        out, winner = play.state.checks.excluded, play.state.winner
        if winner is None or not out:
            continue
        excluded += 1
        assert winner.label not in out, f"seed {play.seed}"
        assert not any(winner.votes[label] for label in out), f"seed {play.seed}"
        assert play.rules.checks in ("required", "goal")
        assert not out.issuperset(winner.votes), f"seed {play.seed}"
        steady = {one.command for label in out for one in play.state.evidence[label].outcomes if not one.flaky}
        failed = {one.command for label in out for one in play.state.evidence[label].outcomes if one.result == "failed"}
        assert steady & failed, f"seed {play.seed}"
    assert excluded > SEEDS // 20


def test_a_run_off_is_held_once_among_tied_camps_and_its_most_voted_candidate_wins(plays: list[Play]) -> None:
    held = 0
    for play in plays:
        run_offs = [event for event in play.events if isinstance(event, StageOpened) and event.because == "tied"]
        assert len(run_offs) <= 1, f"seed {play.seed}"
        for run_off in run_offs:
            held += 1
            most = max(camp.votes for camp in run_off.camps)
            top = [camp for camp in run_off.camps if camp.votes == most]
            assert len(top) == len(run_off.subjects) > 1
            assert all(label in camp.answers for label, camp in zip(run_off.subjects, top, strict=True))
            writers = {play.state.author(label) for camp in top for label in camp.answers}
            assert not writers & {*run_off.agents} or {*run_off.agents} <= writers, f"seed {play.seed}"
            winner = play.state.winner
            if winner is None:
                assert not play.state.live, f"seed {play.seed}"
                continue
            assert winner.run_off is not None
            assert winner.run_off[winner.label] == max(winner.run_off.values()), f"seed {play.seed}"
    assert held > SEEDS // 20


def test_only_what_votes_leave_tied_is_drawn_and_the_lowest_lot_wins(plays: list[Play]) -> None:
    for play in plays:
        winner = play.state.winner
        if winner and winner.drawn:
            votes = winner.votes if winner.run_off is None or len(winner.run_off) < 2 else winner.run_off
            assert winner.label == drawn(play.rules.seed, winner.drawn), f"seed {play.seed}"
            assert len(winner.drawn) > 1
            assert votes is not None
        elif winner and winner.outcome == "tie_broken":
            assert winner.judge is not None, f"seed {play.seed}: what is tied is recorded"
            orders = (event.subjects for event in play.events if isinstance(event, StageOpened))
            chosen = [
                play.state.verdicts[order] for order in orders if winner.label in order and order in play.state.verdicts
            ]
            assert {*chosen[-2:]} == {winner.label}, f"seed {play.seed}"


def test_a_decision_before_all_votes_never_differs_from_what_the_remaining_votes_could_bring(plays: list[Play]) -> None:
    """Whatever the undecided agents of a proven early decision would have voted and said, the winner stays, and so does
    whether it has a majority.
    """
    proven = [p for p in plays if p.rules.early_decision == "proven" and p.state.winner and p.state.winner.early]
    assert len(proven) > SEEDS // 400
    for play in proven:
        winner = play.state.winner
        assert winner is not None
        labels = list(winner.votes)
        for _ in range(20):
            state = replace(play.state, winner=None, rules=replace(play.rules, early_decision="off"))
            for agent in play.state.live:
                if state.seats[agent].vote is None:
                    same = tuple(play.random.sample(labels, play.random.randint(0, len(labels))))
                    label = play.random.choice(labels)
                    vote = VoteCast(agent=agent, label=label, reason="x", revision=state.revision, same_as=same)
                    state = state.after(vote)
            whole = next_step(state)
            assert isinstance(whole, WinnerChosen), f"seed {play.seed}"
            assert whole.label == winner.label, f"seed {play.seed}"
            firm = [one.outcome in ("consensus", "majority") for one in (whole, winner)]
            assert firm[0] == firm[1], f"seed {play.seed}"


def test_the_number_of_model_calls_never_exceeds_the_stated_worst_case(plays: list[Play]) -> None:
    """The bound of docs/coordination.md, for agents whose every call is an action (a play has no enforcement)."""
    for play in plays:
        agents = len(play.state.seats)
        assert play.accepted <= most_actions(agents, play.limit), f"seed {play.seed}"
        assert play.stale <= agents * agents * play.limit, f"seed {play.seed}"


def test_answers_never_exceed_their_limit(plays: list[Play]) -> None:
    for play in plays:
        assert all(len(seat.answers) <= play.limit for seat in play.state.seats.values())


def test_revisions_rise_by_one_with_every_answer_and_labels_are_never_reused(plays: list[Play]) -> None:
    for play in plays:
        answers = [event for event in play.events if isinstance(event, AnswerSubmitted)]
        assert [event.revision for event in answers] == list(range(1, len(answers) + 1))
        assert len({event.label for event in answers}) == len(answers)


def test_every_coordination_ends_with_a_winner_unless_everybody_fell_out(plays: list[Play]) -> None:
    for play in plays:
        agreeing = len(play.state.agreement)
        agreed = agreeing > 1 and agreeing * 2 > len(play.state.asked)  # decides where no agent is left to vote
        expected = bool(play.state.answered and (play.state.live or agreed))
        assert (play.state.winner is not None) == expected, f"seed {play.seed}"
        assert all(not isinstance(AgentView(play.state, agent).get_duty(), Work | Wait) for agent in play.state.seats)
