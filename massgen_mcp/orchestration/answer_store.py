"""Where the answers of a run are kept, as orchestration sees it."""

from pathlib import Path
from typing import NamedTuple, Protocol

from massgen_mcp.events.parts import Changes
from massgen_mcp.workspace.directory import Workspace


class StoredAnswer(NamedTuple):
    """An answer that is kept: its directory in that of the run, and what it changes of the base, if there is one."""

    path: str
    changes: Changes | None = None


class AnswerStore(Protocol):
    """Where answers are kept with the files that belong to them."""

    async def keep(self, attempt: int, agent: str, content: str, workspace: Workspace | None) -> StoredAnswer:
        """Keep an answer's text, a read-only snapshot of its workspace, and its patch."""
        ...

    async def keep_patch(self, agent: str, workspace: Workspace | None) -> Changes | None:
        """Keep the patch of a final answer: what the agent's workspace makes of the base now. None: there is none."""
        ...

    async def restore(self, agent: str, changes: Changes) -> None:
        """Make the agent's copies of the caller's files be what they were when it gave the answer with `changes`."""
        ...

    async def keep_final(
        self, agent: str, content: str, workspace: Workspace | None, changes: Changes | None
    ) -> Changes | None:
        """Keep the final answer; it is whole on disk before the run is called completed. Returns `changes` with the
        patch that was written.
        """
        ...

    def files(self, path: str) -> Path | None:
        """The snapshot directory of a kept answer; None if it has no files."""
        ...

    def patch(self, changes: Changes, most: int) -> str:
        """At most so many bytes of a kept patch, as text: of every file's difference the beginning."""
        ...
