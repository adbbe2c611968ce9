"""The words for where a run and its agents stand."""

from typing import Literal

RunStatus = Literal[
    "queued", "running", "input_required", "completed", "failed", "cancelled", "timed_out", "interrupted"
]
Phase = Literal["answering", "voting", "presenting", "evaluating"]
AgentStatus = Literal["waiting", "streaming", "answered", "voted", "restarting", "error", "timeout", "completed"]

TERMINAL_STATES: frozenset[RunStatus] = frozenset({"completed", "failed", "cancelled", "timed_out"})
