"""What a run is asked to do, whichever door it came in by: what the door was given, and what `build` makes of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from massgen_mcp.config.access.held_keys import redactor_for
from massgen_mcp.config.adjusted import RequestedLimits
from massgen_mcp.config.decide import GivenDecide
from massgen_mcp.config.models.config import Config
from massgen_mcp.config.models.orchestrator import ContextPath
from massgen_mcp.redaction import Redactor
from massgen_mcp.request.earlier_turn import EarlierTurn
from massgen_mcp.request.output_file import OutputFile
from massgen_mcp.request.team import NamedTeam, Team, describe_start
from massgen_mcp.request.trust import Consent

OnConflict = Literal["use_existing", "fail", "cancel_existing"]
"""What a start does when its idempotency key is taken."""


@dataclass(frozen=True, slots=True)
class CallerRequest:
    """What somebody wants of a run. What was not said is left as it is here."""

    question: str
    team: NamedTeam | Team
    """What names a team, or one that was chosen before."""
    cwd: Path
    environ: Mapping[str, str]
    consent: Consent = field(default_factory=Consent)
    context_paths: Sequence[ContextPath] = ()
    """Those of the call, besides the config's."""
    checks: Sequence[str] = ()
    """The same of checks."""
    decide: GivenDecide | None = None
    """How the winner is found; None: as the config says."""
    checked: Path | None = None
    """The directory that checks judge where neither the call nor the config names one."""
    enable_filesystem: bool = True
    """False: agents have no files, whatever the config says."""
    use_docker: bool = False
    """True: agents run commands in Docker, whatever the config says."""
    system_message: str | None = None
    replaces_system_messages: bool = False
    """Whether `system_message` takes the place of those of the config; otherwise it comes after them."""
    limits: RequestedLimits = field(default_factory=RequestedLimits)
    sampling: Mapping[str, Any] = field(default_factory=dict[str, Any])
    caller_answers: bool = False
    """Whether somebody is there who can answer agents' questions, and raise a budget."""
    only_plan: bool = False
    """Nothing will be executed, so keys may be missing."""
    elsewhere: bool = False
    """Another machine executes it, so keys and programs are there."""
    uploads: bool = False
    """Its directories are on this machine, and go there with it."""
    session_id: str | None = None
    """Whose turn it is."""
    changes_of: str | None = None
    """Whose changes of an earlier turn of that session, not applied, the agents go on with: `winner`, or an agent; of
    another turn than the newest that changed files: `RUN/AGENT`."""
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
class RunRequest:
    """A question without keys, for a team whose keys are there and whose config holds to its limits."""

    given: CallerRequest
    """Its question has no keys in it any more."""
    team: Team
    """Its config is what the run executes."""

    @property
    def question(self) -> str:
        return self.given.question

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
