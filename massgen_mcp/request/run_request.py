"""What a run is asked to do, whichever door it came in by. `build` makes one."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from massgen_mcp.config.access.held_keys import redactor_for
from massgen_mcp.config.models.config import Config
from massgen_mcp.redaction import Redactor
from massgen_mcp.request.earlier_turn import EarlierTurn
from massgen_mcp.request.output_file import OutputFile
from massgen_mcp.request.team import Team, describe_start

OnConflict = Literal["use_existing", "fail", "cancel_existing"]
"""What a start does when its idempotency key is taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a door says of a run besides its question and its team."""

    session_id: str | None = None
    """Whose turn it is."""
    begins_session: bool = False
    """In the foreground: it is the first turn of a session that has no id yet."""
    history: tuple[EarlierTurn, ...] = ()
    """What was said before the question, if the caller tells it; a session's turns need not be told."""
    idempotency_key: str | None = None
    on_conflict: OnConflict = "use_existing"
    output_file: OutputFile | None = None
    project: Path | None = None
    """Where the files of a run in the foreground are kept, below `.massgen`; None: nowhere, once it has ended."""
    listed: bool = False
    """Whether a run in the foreground is in the run store."""


@dataclass(frozen=True, slots=True)
class RunRequest(Terms):
    """A question without keys, for a team whose keys are there and whose config holds to its limits."""

    question: str
    team: Team
    """Its config is what the run executes."""

    @property
    def config(self) -> Config:
        return self.team.config

    @property
    def source(self) -> str:
        """Where the team came from, in words."""
        return self.team.source

    @property
    def redactor(self) -> Redactor:
        """What takes the keys of the run's environment out of text."""
        return redactor_for(self.team.environ, [agent.backend for agent in self.config.agents])

    def describe_start(self, cwd: Path) -> str:
        return describe_start(self.config, self.source, self.team.environ, cwd)
