"""The record of who did what: `coordination_events.json` for programs, `coordination_table.txt` for people; and
the votes and answers in it, which MassGen's programmatic API gives, too. Agents under their public names.

Only what belongs to the coordination: no streamed text, no model calls, no tools. Event names are those of MassGen
where it has one for the same thing.
"""

import textwrap
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from massgen_mcp.events.record import LogRecord
from massgen_mcp.run_state.state import RunState
from massgen_mcp.views.checks import checks
from massgen_mcp.views.names import replace_names
from massgen_mcp.views.nested_runs import nested_runs
from massgen_mcp.views.plain_text import plain, preview
from massgen_mcp.views.sentences import Sentence, count_votes, sentence_of
from massgen_mcp.views.spent import spent_json, spent_text


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


WIDTH = 100
MIN_WIDTH = 40
_TIME, _AGENT = 9, 9
_MAX_DETAIL = 120


def is_recorded(record: LogRecord) -> bool:
    """Whether the two records tell of it."""
    return sentence_of(record.event).record is not None


def coordination_events(run: RunState, records: Iterable[LogRecord]) -> dict[str, Any]:
    """`{session_metadata, vote_results, camps, answers, events}`; an event has timestamp, event_type, agent_id (or
    null), details (one sentence) and context (the facts). Paths are relative to the run directory.
    """
    work = run.work_done
    return {
        "session_metadata": {
            "run_id": run.run_id,
            "user_prompt": run.question,
            "agent_mapping": agent_mapping(run),
            "start_time": run.started_at,
            "end_time": run.ended_at,
            "state": run.state,
            "outcome": run.outcome,
            "decided_by": [*work.decided_by],
            "challenge": run.winner.challenge if run.winner else None,
            "weak": [*work.weak],
            "failure": work.failure,
            "final_winner": run.winner.agent if run.winner else None,
            "attempts": run.attempt,
            "spent": spent_json(run.spent),
            **({"parent_run_id": run.parent} if run.parent else {}),
        },
        **({"checks": checked} if (checked := checks(run)) else {}),
        **({"nested_runs": nested_runs(run)} if run.nested_runs else {}),
        "vote_results": vote_results(run),
        "camps": [camp.model_dump(mode="json") for camp in run.camps],
        "answers": answers(run),
        "events": [
            {
                "timestamp": record.time,
                "event_type": sentence.record,
                "agent_id": getattr(record.event, "agent", None),
                "details": _details(sentence),
                "context": record.event.model_dump(mode="json", exclude={"type", "agent"}),
            }
            for record in records
            if (sentence := sentence_of(record.event)).record
        ],
    }


def draw_history(run: RunState, records: Iterable[LogRecord], *, width: int) -> str:
    """Return the table of the run as people read it: with the names of agents and answers that every screen has."""
    return _draw_table(run, records, width, partial(replace_names, run))


def coordination_table(run: RunState, records: Iterable[LogRecord], *, width: int = WIDTH) -> str:
    """The run as a table of at most `width` columns (between 40 and 100): seconds since its start, who, and what."""
    return _draw_table(run, records, width, str)


def _draw_table(run: RunState, records: Iterable[LogRecord], width: int, named: Callable[[str], str]) -> str:
    width = max(MIN_WIDTH, min(WIDTH, width))
    lines = [f"Question: {preview(run.question, width - 10)}"]
    infos = (view.info for view in run.agents.values())
    lines += [preview(f"{info.name} = {info.id} ({info.backend}/{info.model})", width) for info in infos]
    lines += ["", f"{'seconds':>{_TIME}}  {'agent':<{_AGENT}}  what happened", "-" * width]
    for record in records:
        if (sentence := sentence_of(record.event)).record:
            seconds = record.time - (run.started_at or record.time)
            agent = named(getattr(record.event, "agent", None) or "")
            said = replace(sentence, text=named(sentence.text))
            lines += _row(f"{seconds:.2f}", agent, _details(said), width)
    lines.append("-" * width)
    if run.winner:
        lines += textwrap.wrap(named(f"Votes: {count_votes(run.winner)}"), width)
    lines.append(f"Spent: {spent_text(run.spent)}")
    if run.nested_ends:
        lines.append(f"Spent in nested runs (included): {spent_text(run.budget.spending.nested)}")
    lines.append(f"End: {run.state}" + (f" ({run.outcome})" if run.outcome else ""))
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _row(seconds: str, agent: str, text: str, width: int) -> list[str]:
    first, *rest = textwrap.wrap(plain(text), width - _TIME - _AGENT - 4) or [""]
    head = f"{seconds:>{_TIME}}  {agent[:_AGENT]:<{_AGENT}}  {first}"
    return [head, *(f"{'':<{_TIME + _AGENT + 4}}{line}" for line in rest)]


def _details(sentence: Sentence) -> str:
    return f"{sentence.text}: {preview(sentence.detail, _MAX_DETAIL)}" if sentence.detail else sentence.text
