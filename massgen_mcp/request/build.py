"""From what a door was given (`CallerRequest`) to a request that can be executed (`RunRequest`): the one way of MCP,
both command lines, Python and LiteLLM.

Whatever is wrong is a `MassgenError` here, before a run is begun or a model asked.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from massgen_mcp.config.access.held_keys import redactor_for
from massgen_mcp.config.access.prices import operators_price_as
from massgen_mcp.config.adjusted import (
    RequestedLimits,
    given_path,
    rechecked,
    with_checks,
    with_containers,
    with_context_paths,
    with_limits,
    with_sampling,
    with_strategy,
    with_system_message,
    without_caller,
    without_files,
)
from massgen_mcp.config.given import GivenDecide
from massgen_mcp.config.loader import check_credentials, require_keys
from massgen_mcp.config.massgen import commands as massgen_commands
from massgen_mcp.config.models.config import Config
from massgen_mcp.config.models.orchestrator import ContextPath
from massgen_mcp.errors import MassgenError
from massgen_mcp.redaction import Redactor
from massgen_mcp.request.harm import granted_by
from massgen_mcp.request.kind import RunKind
from massgen_mcp.request.output_file import OutputFile
from massgen_mcp.request.question import EarlierTurn, check_question, check_text
from massgen_mcp.request.runnable import (
    describe_ignored,
    describe_media,
    require_apart,
    require_copyable,
    require_files,
    require_neutral_judge,
    require_programs,
    require_sandbox,
)
from massgen_mcp.request.team import NamedTeam, Team, choose_team, describe_start
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
    kind: RunKind = "single"
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


async def build_request(given: CallerRequest) -> RunRequest:
    """Raises `MassgenError`: invalid_arguments, config_not_found, config_invalid, config_untrusted, no_default_team,
    key_refused, missing_key, sandbox_denied.
    """
    check_question(given.question)
    if given.idempotency_key is not None:
        check_text("idempotency_key", given.idempotency_key)
    if given.output_file is not None:
        given.output_file.check()
    if given.changes_of is not None and given.session_id is None:
        raise MassgenError("invalid_arguments", "changes_of needs the earlier turn's session; pass its session_id")
    team = await adjusted_team(given)
    if not given.elsewhere:
        await require_programs(team.config, team.environ)
    redactor = redactor_for(team.environ, [agent.backend for agent in team.config.agents])
    return RunRequest(replace(given, question=redactor.text(given.question)), team)


async def adjusted_team(given: CallerRequest) -> Team:
    """The team with everything in its config that the call adds. Raises as `build_request`."""
    team = await _chosen(given)
    operators_price_as(team.environ)
    config = with_checks(with_context_paths(team.config, given.context_paths), given.checks)
    if given.checked is not None and config.orchestrator.checks and not config.orchestrator.context_paths:
        config = with_context_paths(config, (given_path(str(given.checked)),))
    if not given.enable_filesystem:
        config = without_files(config)
    if given.use_docker:
        config = with_containers(config, massgen_commands.SUDO_IMAGE)
    if given.system_message is not None:
        config = with_system_message(config, given.system_message, replaces=given.replaces_system_messages)
    if not given.caller_answers:
        config = without_caller(config)
    config = with_strategy(config, given.decide)
    config = rechecked(with_sampling(with_limits(config, given.limits), given.sampling))
    require_files(config)
    if not given.elsewhere:
        require_copyable(config, team.environ)
    require_neutral_judge(config)
    require_apart(config)
    if given.only_plan or given.elsewhere:
        check_credentials(config, team.environ)
    else:
        require_keys(config, team.environ)
        await require_sandbox(config, team.environ)
    told = [] if team.note is None else [team.note]
    known = team.note or ""
    told += [note for note in (*describe_media(config), *describe_ignored(config)) if note not in known]
    return replace(team, config=config, note=" ".join(told) or None)


async def _chosen(given: CallerRequest) -> Team:
    if isinstance(given.team, Team):
        return given.team
    granted = granted_by(given.context_paths, given.checks, given.decide, given.limits)
    return await choose_team(given.team, cwd=given.cwd, environ=given.environ, consent=given.consent, granted=granted)
