"""The votes of a run as sentences for people, dissent first. Pure."""

from massgen_mcp.run_state.agents import Vote
from massgen_mcp.run_state.state import RunState
from massgen_mcp.views.names import name_agent, name_answer, replace_names
from massgen_mcp.views.plain_text import unmarked
from massgen_mcp.views.sentences import decided_beyond_votes
from massgen_mcp.views.styled import Line, Span, wrap

MAX_REASON = 160
"""Characters of a reason in the sentence of an outcome."""


def votes_lines(run: RunState, width: int, *, below_outcome: bool = False) -> list[Line]:
    """One sentence for each standing vote, with its reason, in lines of at most `width` columns. With a winner known
    those come first that wanted something else; until then they stand in the order of voting. `below_outcome`: the
    reader knows `describe_outcome`, so what it says of the dissent isn't repeated.
    """
    dissent = [vote for vote in _votes(run) if run.winner and vote.label not in run.agreed]
    rest = [vote for vote in _votes(run) if vote not in dissent]
    known = list_dissent(run) if below_outcome else []
    lines: list[list[Line]] = []
    for vote in dissent:
        verb = "votes for" if vote in known else "disagrees and votes for"
        has_known_reason = vote in known[:1] and len(unmarked(vote.reason)) <= MAX_REASON
        reason = "" if has_known_reason else vote.reason
        lines.append(_wrap_sentence(_describe_vote(run, vote, verb, reason), width, "busy"))
    lines += [_wrap_sentence(_describe_vote(run, vote, "votes for", vote.reason), width, "good") for vote in rest]
    lines += [_wrap_sentence(f"{sentence[0].upper()}{sentence[1:]}.", width, "") for sentence in list_decisions(run)]
    return [row for rows in lines for row in rows]


def list_dissent(run: RunState) -> list[Vote]:
    """Return each agent's last vote that is for something else than the winner says; first those for the answer that
    got the most of them.
    """
    if run.winner is None:
        return []
    last = {**run.votes, **run.run_off_votes}
    standing = [last[agent] for agent in run.agents if agent in last]
    most_voted = [label for label, _ in run.work_done.others]
    others = [vote for vote in standing if vote.label not in run.agreed]
    return sorted(others, key=lambda vote: vote.label not in most_voted[:1])


def list_decisions(run: RunState) -> list[str]:
    """Return what decided beyond the votes, in clauses with the names that people read."""
    if run.winner is None:
        return []
    return [replace_names(run, clause) for clause in decided_beyond_votes(run.winner)]


def votes_won(run: RunState) -> str | None:
    """How many of the votes that decided the winner got, with those for answers that say the same. None: there is no
    winner yet, or nobody voted.
    """
    if run.winner is None:
        return None
    votes = run.winner.run_off or run.winner.votes
    won = f"{sum(votes.get(label, 0) for label in run.agreed)} of {sum(votes.values())} votes"
    return (won if votes is run.winner.votes else f"{won} in the run-off") if any(votes.values()) else None


def nobody_voted(run: RunState) -> str | None:
    """That an ended run's answer is one agent's alone, or unfinished, where it is; None otherwise."""
    if run.outcome == "unfinished":
        return f"No agent answered. These are the unfinished files of {run.author}."
    if not run.work_done.unreviewed:
        return None
    if run.coordination.run_off is not None:
        return f"The votes were tied and no agent was left for a run-off, so {run.author}'s answer has no majority."
    if run.winner is not None and run.winner.agreeing:
        agreeing, asked = len(run.winner.agreeing), len(run.coordination.asked)
        return f"No agent could vote; {agreeing} of {asked} agents gave the same answer."
    return f"No agent voted for or reviewed {run.author}'s answer."


def _votes(run: RunState) -> list[Vote]:
    """Of those who stayed with their vote in a run-off one."""
    again = run.run_off_votes
    changed = [vote for name, vote in run.votes.items() if name not in again or again[name].label != vote.label]
    return [*changed, *again.values()]


def _describe_vote(run: RunState, vote: Vote, verb: str, reason: str) -> str:
    whose = name_answer(run, vote.label)
    if run.coordination.author(vote.label) == vote.voter:
        whose = whose.replace(f"{name_agent(run, vote.voter)}'s", "its own", 1)
    because = f": {reason_text}" if (reason_text := unmarked(reason)) else ""
    again = ""
    if vote == run.run_off_votes.get(vote.voter):
        before = run.votes.get(vote.voter)
        again = ", as before the run-off" if before and before.label == vote.label else " in the run-off"
    return f"{name_agent(run, vote.voter)} {verb} {whose}{again}{because}"


def _wrap_sentence(text: str, width: int, style: str) -> list[Line]:
    mark = {"busy": "≠ ", "good": "✓ "}.get(style, "• ")
    head, *rest = wrap(text, width - 2, indent=0)
    first: Line = (Span(mark, "busy" if style == "busy" else "good" if style == "good" else "dim"), Span(head))
    return [first, *((Span(f"  {row}"),) for row in rest)]
