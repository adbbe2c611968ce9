"""The votes of a run as sentences for people, dissent first. Pure."""

from massgen_mcp.run_state.agents import Vote
from massgen_mcp.run_state.state import RunState
from massgen_mcp.views.names import name_answer, replace_names
from massgen_mcp.views.plain_text import unmarked
from massgen_mcp.views.sentences import decided_beyond_votes
from massgen_mcp.views.styled import Line, Span, wrap


def votes_lines(run: RunState, width: int) -> list[Line]:
    """One sentence for each standing vote, with its reason, in lines of at most `width` columns. With a winner known
    those come first that wanted something else; until then they stand in the order of voting.
    """
    dissent = [vote for vote in _votes(run) if run.winner and vote.label not in run.agreed]
    rest = [vote for vote in _votes(run) if vote not in dissent]
    lines = [_vote_lines(run, vote, width, dissent=True) for vote in dissent]
    lines += [_vote_lines(run, vote, width, dissent=False) for vote in rest]
    lines += [_wrapped(f"{sentence[0].upper()}{sentence[1:]}.", width, "") for sentence in list_decisions(run)]
    return [row for rows in lines for row in rows]


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
        return f"The votes were tied and no agent was left for a run-off, so this is only {run.author}'s answer."
    if run.winner is not None and run.winner.agreeing:
        agreeing, asked = len(run.winner.agreeing), len(run.coordination.asked)
        return f"No agent could vote; {agreeing} of {asked} agents gave the same answer."
    return f"No agent voted or reviewed this answer: it is only {run.author}'s."


def name_of(run: RunState, agent: str) -> str:
    """As the config calls it."""
    return run.agents[agent].info.id


def _votes(run: RunState) -> list[Vote]:
    """Of those who stayed with their vote in a run-off one."""
    again = run.run_off_votes
    changed = [vote for name, vote in run.votes.items() if name not in again or again[name].label != vote.label]
    return [*changed, *again.values()]


def _vote_lines(run: RunState, vote: Vote, width: int, *, dissent: bool) -> list[Line]:
    whose = name_answer(run, vote.label)
    if run.coordination.author(vote.label) == vote.voter:
        whose = whose.replace(f"{name_of(run, vote.voter)}'s", "its own", 1)
    verb = "disagrees and votes for" if dissent else "votes for"
    reason = f": {reason_text}" if (reason_text := unmarked(vote.reason)) else ""
    again = ""
    if vote == run.run_off_votes.get(vote.voter):
        before = run.votes.get(vote.voter)
        again = ", as before the run-off" if before and before.label == vote.label else " in the run-off"
    sentence = f"{name_of(run, vote.voter)} {verb} {whose}{again}{reason}"
    return _wrapped(sentence, width, "busy" if dissent else "good")


def _wrapped(text: str, width: int, style: str) -> list[Line]:
    mark = {"busy": "≠ ", "good": "✓ "}.get(style, "• ")
    head, *rest = wrap(text, width - 2, indent=0)
    first: Line = (Span(mark, "busy" if style == "busy" else "good" if style == "good" else "dim"), Span(head))
    return [first, *((Span(f"  {row}"),) for row in rest)]
