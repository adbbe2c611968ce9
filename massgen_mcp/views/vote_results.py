"""Votes and answers of a run in the shape of MassGen's programmatic API. Agents under their public names.

Must not know where a run lies; paths in it are relative to the run directory unless the caller gives one.
"""

from pathlib import Path
from typing import Any

from massgen_mcp.run_state.state import RunState


def vote_results(run: RunState) -> dict[str, Any]:
    """The standing votes: vote_counts by agent (of everybody with an answer), voter_details, winner, is_tie (between
    answers that say different things), total_votes, agents_with_answers, agents_voted.
    """
    author = run.coordination.author
    counts = {author(label): votes for label, votes in run.tally.items()}
    details: dict[str, list[dict[str, str]]] = {}
    for vote in run.votes.values():
        details.setdefault(author(vote.label), []).append({"voter": vote.voter, "reason": vote.reason})
    in_camps = [camp.votes for camp in run.camps] or list(counts.values())
    top = max(in_camps, default=0)
    return {
        "vote_counts": counts,
        "voter_details": details,
        "winner": run.winner.agent if run.winner else None,
        "is_tie": top > 0 and in_camps.count(top) > 1,
        "total_votes": len(run.votes),
        "agents_with_answers": len(counts),
        "agents_voted": len(run.votes),
    }


def answers(run: RunState, directory: Path | None = None) -> list[dict[str, Any]]:
    """Every answer: label, agent_id (public), answer_path (its directory, below the run's `directory`), content."""
    return [
        {
            "label": answer.label,
            "agent_id": answer.agent,
            "answer_path": str(directory / answer.path) if directory and answer.path else answer.path,
            "content": answer.content,
        }
        for answer in run.answers
    ]


def agent_mapping(run: RunState) -> dict[str, str]:
    """Public name to the config's id."""
    return {name: view.info.id for name, view in run.agents.items()}
