"""From what a door was given to a request that can be executed: the one way of MCP, both command lines, Python and
LiteLLM.

Whatever is wrong is a `MassgenError` here, before a run is begun or a model asked.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

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
    with_system_message,
    without_caller,
    without_files,
)
from massgen_mcp.config.loader import check_credentials, require_keys
from massgen_mcp.config.massgen import commands as massgen_commands
from massgen_mcp.config.models.orchestrator import ContextPath
from massgen_mcp.request.checkable import require_files, require_sandbox
from massgen_mcp.request.harm import granted_by
from massgen_mcp.request.question import check_question, check_text
from massgen_mcp.request.run_request import RunRequest, Terms
from massgen_mcp.request.sandboxes import require_programs
from massgen_mcp.request.team import Named, Team, choose_team
from massgen_mcp.request.trust import Consent
from massgen_mcp.request.writable import require_apart


@dataclass(frozen=True, slots=True)
class Given(Terms):
    """What somebody wants of a run. What was not said is left as it is here."""

    question: str
    team: Named | Team
    """What names a team, or one that was chosen before."""
    cwd: Path
    environ: Mapping[str, str]
    consent: Consent = field(default_factory=Consent)
    context_paths: Sequence[ContextPath] = ()
    """Those of the call, besides the config's."""
    checks: Sequence[str] = ()
    """The same of checks."""
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


async def build_request(given: Given) -> RunRequest:
    """Raises `MassgenError`: invalid_arguments, config_not_found, config_invalid, config_untrusted, no_default_team,
    key_refused, missing_key, sandbox_denied.
    """
    check_question(given.question)
    if given.idempotency_key is not None:
        check_text("idempotency_key", given.idempotency_key)
    if given.output_file is not None:
        given.output_file.check()
    team = await adjusted_team(given)
    await require_programs(team.config, team.environ)
    redactor = redactor_for(team.environ, [agent.backend for agent in team.config.agents])
    terms: dict[str, Any] = {term.name: getattr(given, term.name) for term in fields(Terms)}
    return RunRequest(redactor.text(given.question), team, **terms)


async def adjusted_team(given: Given) -> Team:
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
    config = rechecked(with_sampling(with_limits(config, given.limits), given.sampling))
    require_files(config)
    require_apart(config)
    if given.only_plan:
        check_credentials(config, team.environ)
    else:
        require_keys(config, team.environ)
        await require_sandbox(config, team.environ)
    return replace(team, config=config)


async def _chosen(given: Given) -> Team:
    if isinstance(given.team, Team):
        return given.team
    granted = granted_by(given.context_paths, given.checks, given.limits)
    return await choose_team(given.team, cwd=given.cwd, environ=given.environ, consent=given.consent, granted=granted)
