"""Where the answers of a run are kept, as orchestration sees it."""

from pathlib import Path
from typing import Protocol

from massgen_mcp.workspace.directory import Workspace


class AnswerStore(Protocol):
    """Where answers are kept with the files that belong to them."""

    async def keep(self, attempt: int, agent: str, content: str, workspace: Workspace | None) -> str:
        """Keep an answer's text and a read-only snapshot of its workspace; returns its path in the run directory."""
        ...

    async def keep_final(self, agent: str, content: str, workspace: Workspace | None) -> None:
        """Keep the final answer; it is whole on disk before the run is called completed."""
        ...

    def files(self, path: str) -> Path | None:
        """The snapshot directory of a kept answer; None if it has no files."""
        ...
