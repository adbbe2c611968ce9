"""A coordination as one agent meets it: what it should do next, and its actions.

An action is asked for (`answer`, `vote`, ...) and answered by an event or a `Violation`; nothing changes before the
event is folded into the state (`Coordination.after`).
"""

from collections.abc import Sequence
from typing import assert_never

from massgen_mcp.coordination.answer_text import MAX_OVERLAP, is_visible, overlap
from massgen_mcp.coordination.guidance import Ballot, Duty, Rest, Violation, Wait, Work
from massgen_mcp.coordination.state import STAGE_TOOLS, Coordination
from massgen_mcp.coordination.written_tests import BEFORE_ANSWERS
from massgen_mcp.errors import DropReason, LimitKey
from massgen_mcp.events.coordination import (
    AgentDropped,
    AnswerSubmitted,
    StageOpened,
    VoteCast,
    WrittenTestsSubmitted,
)
from massgen_mcp.events.parts import Changes, Claim, RoundKind, WrittenTest


class AgentView:
    """One agent's side of a coordination, at one moment."""

    def __init__(self, state: Coordination, agent: str) -> None:
        self._state, self._agent = state, agent
        self._seat, self._stage = state.seats[agent], state.stage

    def get_duty(self) -> Duty:
        """Return what the agent should do now, if it is not in the middle of a round."""
        if self._seat.dropped or self._state.winner is not None:
            return Rest()
        if self._agent not in self._state.asked and self._agent != self._state.rules.judge:
            return Wait()
        if self._stage is not None:
            takes_part = (
                self._seat.answers or self._agent == self._state.rules.judge or self._stage.kind in BEFORE_ANSWERS
            )
            return self._get_duty_in_stage(self._stage) if takes_part else Rest()
        if self._agent == self._state.rules.judge:
            return Wait()
        if not self._seat.answers:
            return Work(Ballot(self._agent, 0, ()))
        if self._answers_once or self._seat.vote is not None:
            return Wait()
        if self._state.unanswered and not self._state.stragglers_given_up:
            return Wait()
        ballot = self._state.ballot(self._agent)
        return Wait() if len(ballot.entries) < 2 or self._state.checks.is_pending else Work(ballot)

    def _get_duty_in_stage(self, stage: StageOpened) -> Duty:
        match stage.kind:
            case "test":
                done = self._seat.tests is not None or self._state.closing
            case "vote" | "answer":
                done = (self._seat.vote if self._state.run_off is None else self._seat.run_off_vote) is not None
            case "synthesise":
                done = self._state.synthesis is not None
            case "compare":
                done = stage.subjects in self._state.verdicts
            case "refute" | "settle" | "revise":
                done = True  # of journals of before
            case "check" | "confirm":
                done = (len(self._state.stages), self._agent) in self._state.submitted
            case _:
                assert_never(stage.kind)
        if done or self._agent not in stage.agents:
            return Wait()
        return Work(self._state.ballot(self._agent), self._get_round_kind(stage))

    def is_overtaken(self, kind: RoundKind) -> bool:
        """Check whether a round of this kind can no longer count: a stage asks for something else now, or the stage
        has ended. The agent has answered, or doesn't answer in such a round.
        """
        now = "answer_or_vote" if self._stage is None else self._get_round_kind(self._stage)
        acts = self._seat.answers or self._agent == self._state.rules.judge or kind in BEFORE_ANSWERS
        return kind != now and bool(acts)

    def is_outdated(self) -> bool:
        """Check whether the agent needs a newer ballot before the next step of its round."""
        return (
            bool(self._seat.answers)
            and self._seat.shown is not None
            and self._seat.shown.revision != self._state.revision
        )

    def is_late(self) -> bool:
        """Check whether the others have stopped waiting for the agent's first answer, or are deciding already."""
        deciding = self._stage is not None and self._stage.kind not in BEFORE_ANSWERS
        return (
            not self._seat.answers
            and self._agent != self._state.rules.judge
            and (deciding or self._state.stragglers_given_up)
        )

    @property
    def _answers_once(self) -> bool:
        """Each agent gives one answer: tests compare those, or a stage has asked for them or about them."""
        return self._state.rules.strategy.stage == "test" or bool(self._state.stages)

    def has_answers_left(self) -> bool:
        """Check whether the agent may give a further answer."""
        limit = 1 if self._answers_once else self._state.rules.max_answers
        return limit is None or len(self._seat.answers) < limit

    def _get_round_kind(self, stage: StageOpened) -> RoundKind:
        if stage.kind == "vote" or stage.kind == "answer":
            return "answer_or_vote" if self._state.run_off is None else "run_off"
        return stage.kind

    def may_answer(self) -> bool:
        """Check whether the agent may begin an answer now: at the end of the budget, only with nothing to vote for."""
        closed = self._state.closing and bool(self._seat.answers or (self._seat.shown and self._seat.shown.entries))
        return not closed and self._stage is None and self.has_answers_left()

    def answer(
        self, content: str, claims: tuple[Claim, ...] | None = None, *, can_pay_votes: bool = True
    ) -> AnswerSubmitted | Violation:
        """Give a new answer; with `claims` (see `cite_answers`) one that is written from all answers. `can_pay_votes`:
        the budget has room for the votes that a late answer costs.
        """
        shown = self._seat.shown or Ballot(self._agent, 0, ())
        text = content.strip()
        if not is_visible(text):
            return Violation("empty_answer")
        asked_for = self._stage is not None and self._agent in self._stage.agents and self._stage.kind
        if claims is not None and asked_for != "synthesise":
            return self._refuse_other()
        if claims is None and (problem := self._refuse_answer(text, shown, can_pay_votes=can_pay_votes)):
            return problem
        place = tuple(self._state.seats).index(self._agent) + 1
        return AnswerSubmitted(
            agent=self._agent,
            label=f"agent{place}.{len(self._seat.answers) + 1}",
            content=content,
            based_on_revision=shown.revision,
            revision=self._state.revision + 1,
            voided_votes=tuple(
                name for name, other in self._state.seats.items() if other.vote is not None and not asked_for
            ),
            claims=claims,
        )

    def _refuse_answer(self, text: str, shown: Ballot, *, can_pay_votes: bool) -> Violation | None:
        """Return why this is no new answer."""
        if self.is_late():
            costs_votes = self._stage is not None or bool(self._state.choices)
            if costs_votes and (self._state.closing or self._state.finish_requested or not can_pay_votes):
                return Violation("too_late")
        elif self._stage is not None:
            return self._refuse_other()
        if not self.has_answers_left():
            return Violation("answer_limit")
        for entry in shown.entries:
            if self._state.content(entry.label).strip() == text:
                return Violation("duplicate_answer", {"name": entry.name})
        if text in (earlier.content.strip() for earlier in self._seat.answers):
            return Violation("repeated_answer")
        return self._refuse_similar(text, shown)

    def _refuse_other(self) -> Violation:
        """Return why another action than that of the stage is refused."""
        if self._stage is not None and self._stage.kind in STAGE_TOOLS:
            return Violation("only_this", {"tool": STAGE_TOOLS[self._stage.kind]})
        return Violation("only_votes")

    def cite_answers(self, claims: Sequence[Claim], *, refused_before: bool) -> tuple[Claim, ...] | Violation:
        """Return these claims with labels in place of the names that stand on the agent's ballot. Every claim has to
        name an answer that it stands in; `refused_before`: once refused, they stand with the names that there are.
        """
        shown = self._seat.shown or Ballot(self._agent, 0, ())
        named = [name for claim in claims for name in (*claim.answers, *claim.contradicted_by)]
        unknown = [name for name in named if shown.label_of(name) is None]
        if not refused_before and (unknown or not all(claim.answers for claim in claims)):
            choices = ", ".join(entry.name for entry in shown.entries)
            return Violation("unknown_source", {"names": ", ".join(unknown)[:200] or "no answer", "choices": choices})

        def labels(names: tuple[str, ...]) -> tuple[str, ...]:
            found = (shown.label_of(name) for name in names)
            return tuple(dict.fromkeys(label for label in found if label is not None))

        return tuple(
            claim.model_copy(
                update={"answers": labels(claim.answers), "contradicted_by": labels(claim.contradicted_by)}
            )
            for claim in claims
        )

    def _refuse_similar(self, text: str, shown: Ballot) -> Violation | None:
        """Compared with what the author was shown; its own earlier answer is on that ballot, too."""
        limit = MAX_OVERLAP[self._state.rules.novelty]
        if limit is None:
            return None
        for entry in shown.entries:
            found = overlap(text, self._state.content(entry.label))
            if found > limit:
                return Violation("not_novel", {"name": entry.name, "overlap": found, "limit": limit})
        return None

    def vote(self, name: str, reason: str, same_as: Sequence[str] | None = None) -> VoteCast | Violation:
        """Vote for the answer that stands under `name` on the ballot that this agent was shown.

        `same_as`: names of the others on it that say the same; what names none of the others is left out. None: the
        voter does not say.
        """
        if self._stage is not None and self._stage.kind in STAGE_TOOLS:
            return self._refuse_other()
        shown = self._seat.shown
        if shown is None or not shown.entries:
            return Violation("nothing_to_vote_for")
        if shown.revision != self._state.revision:
            return Violation("stale_ballot", counts=False)
        label = shown.label_of(name)
        if label is None:
            choices = ", ".join(entry.name for entry in shown.entries)
            return Violation("unknown_answer", {"name": name[:60], "choices": choices})
        if label in self._state.checks.excluded:
            left = ", ".join(entry.name for entry in self._state.checks.get_votable(shown).entries)
            return Violation("checks_fail", {"name": name, "choices": left})
        if not is_visible(reason):
            return Violation("empty_reason")
        if self._state.run_off is not None:
            return VoteCast(agent=self._agent, label=label, reason=reason, revision=shown.revision, run_off=True)
        named = None
        if same_as is not None:
            named = tuple(entry.label for entry in shown.entries if entry.name in same_as and entry.name != name)
        return VoteCast(agent=self._agent, label=label, reason=reason, revision=shown.revision, same_as=named)

    def submit_tests(self, tests: Sequence[WrittenTest]) -> WrittenTestsSubmitted | Violation:
        """Submit tests that tell the answers apart; none, if the agent knows none."""
        if self._stage is None or STAGE_TOOLS.get(self._stage.kind) != "submit_tests":
            return self._refuse_other()
        tests = tests[:1] if self._stage.kind == "check" else tests
        if not all(is_visible(text) for test in tests for text in (test.title, test.script, test.expected)):
            return Violation("no_expectation")
        return WrittenTestsSubmitted(agent=self._agent, tests=tuple(tests))

    def submit_outputs(self, outputs: Sequence[str]) -> WrittenTestsSubmitted | Violation:
        """Submit what a failing test has to print; nothing, if that is not known."""
        if self._stage is None or STAGE_TOOLS.get(self._stage.kind) != "submit_outputs":
            return self._refuse_other()
        tests = self._state.checks.to_settle
        filled = (test.model_copy(update={"expected": one}) for test, one in zip(tests, outputs, strict=False))
        return WrittenTestsSubmitted(agent=self._agent, tests=tuple(filled))

    def drop(
        self,
        reason: DropReason,
        message: str,
        changes: Changes | None = None,
        limit: LimitKey | None = None,
    ) -> AgentDropped:
        """Let the agent leave. `changes`: what its copies hold. An agent that leaves what it answered leaves nothing
        unfinished.
        """
        known = [answer.changes.tree for answer in self._seat.answers[-1:] if answer.changes is not None]
        unfinished = changes if changes is not None and changes.count and changes.tree not in known else None
        return AgentDropped(agent=self._agent, reason=reason, message=message, changes=unfinished, limit=limit)
