"""What can happen in a run: a closed union of immutable, typed facts.

The sequence of these, as `events.jsonl`, *is* the run; every status, view and record is a fold over it. Knows nothing
of who emits or who reads. Agents appear under their public names (`agent_a`, `agent_b`, …; see
`parts.public_agent_name`).

- `parts`: the base class of all events, and what several of them say.
- `run`: what happens to the run as a whole.
- `agent_work`: what one agent is shown and does.
- `coordination`: answers, checks, votes, the winner, the final answer.
- `record`: the closed union of all events, the line of the journal, and the version of its format.
"""
