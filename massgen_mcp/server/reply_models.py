"""What the tools return: pydantic models that become the published output schemas.

Small on purpose: a parent agent pays for every schema.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict

from massgen_mcp.run_state.status import Phase, RunStatus


class Model(BaseModel):
    model_config = ConfigDict(frozen=True)


class Member(Model):
    agent: str
    model: str


class Started(Model):
    run_id: str | None
    status: RunStatus | Literal["planned"]
    reused: bool = False
    team: list[Member]
    source: str
    reach: str
    missing_keys: list[str] = []
    estimate: str
    answer: str | None = None
    truncated: bool = False
    poll_after_ms: int | None
    next_step: str


class Status(Model):
    run_id: str
    status: RunStatus
    phase: Phase
    progress_percent: int
    elapsed_seconds: float
    model_calls: int
    tokens: int
    spent_usd: float | None
    max_usd: float | None
    note: str | None = None
    agents: list[str]
    reason: str | None = None
    poll_after_ms: int | None
    next_step: str


class Controlled(Model):
    run_id: str
    status: RunStatus
    next_step: str


class Waited(Status):
    changed: bool
    cursor: int


class VoteLine(Model):
    voter: str
    voted_for: str
    label: str
    reason: str


class Dissent(Model):
    """A losing answer that had votes."""

    label: str
    votes: int
    preview: str


class Dropped(Model):
    agent: str
    reason: str
    message: str


class Usage(Model):
    model_calls: int
    input_tokens: int
    cached_input_tokens: int
    output_tokens: int
    calls_without_usage: int
    cost_usd: float | None
    unpriced_calls: int


class Result(Model):
    run_id: str
    status: RunStatus
    answer: str | None
    truncated: bool
    next_offset: int | None = None
    outcome: str | None = None
    reason: str | None = None
    winner: str | None = None
    vote_counts: dict[str, int]
    votes: list[VoteLine]
    dissent: list[Dissent]
    degraded: list[Dropped]
    usage: Usage
    note: str | None = None
    resumed: int = 0
    seconds: float
    paths: dict[str, str]
    next_step: str


class RunLine(Model):
    run_id: str
    status: RunStatus
    question: str
    source: str
    started: float
    winner: str | None = None
    expired: bool = False


class RunList(Model):
    runs: list[RunLine]
    next_cursor: int | None = None


class ConfigLine(Model):
    name: str
    description: str
    agents: list[Member]
    missing_keys: list[str]


class ConfigList(Model):
    configs: list[ConfigLine]
    yaml: str | None = None
    next_step: str
