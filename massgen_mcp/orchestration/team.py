"""A run's team and its limits, as the composition root hands them to orchestration.

Must not know how backends, workspaces or journals are made.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from massgen_mcp.backends.base import Backend
from massgen_mcp.backends.calling import RetryPolicy
from massgen_mcp.coordination.state import Rules
from massgen_mcp.tools.base import Tool
from massgen_mcp.workspace.directory import Workspace


@dataclass(frozen=True, slots=True)
class Member:
    """One agent at work: its public name, its model, its instructions, its tools."""

    name: str
    backend: Backend
    system_message: str | None = None
    tools: tuple[Tool, ...] = ()
    workspace: Workspace | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """All in seconds, except the counts."""

    run_seconds: float = 1800
    round_seconds: float = 900
    call_seconds: float = 300
    first_answer_wait_seconds: float = 300
    enforcement_retries: int = 3
    steps_per_round: int = 50
    retry: RetryPolicy = field(default_factory=RetryPolicy)


class Gallery(Protocol):
    """Where answers are kept with the files that belong to them."""

    async def keep(self, agent: str, content: str, workspace: Workspace | None) -> str:
        """Keep an answer's text and a read-only snapshot of its workspace; returns its path in the run directory."""
        ...

    async def keep_final(self, agent: str, content: str, workspace: Workspace | None) -> None:
        """Keep the final answer; it is whole on disk before the run is called completed."""
        ...

    def files(self, path: str) -> Path | None:
        """The snapshot directory of a kept answer; None if it has no files."""
        ...


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a team is asked to do, and under which rules."""

    question: str
    team: tuple[Member, ...]
    rules: Rules
    limits: Limits
    gallery: Gallery
    context_names: tuple[str, ...] = ()
    """Virtual paths of the asker's files, for the prompts."""

    def member(self, name: str) -> Member:
        return next(member for member in self.team if member.name == name)
