"""From what a door was given to a request that can be executed: the one way of MCP, both command lines, Python and
LiteLLM.

Whatever is wrong is a `MassgenError` here, before a run is begun or a model asked.
"""

from dataclasses import replace

from massgen_mcp.config.access.held_keys import redactor_for
from massgen_mcp.config.access.prices import operators_price_as
from massgen_mcp.config.adjusted import (
    given_path,
    rechecked,
    with_checks,
    with_containers,
    with_context_paths,
    with_limits,
    with_procedure,
    with_sampling,
    with_system_message,
    without_caller,
    without_files,
)
from massgen_mcp.config.loader import check_credentials, require_keys
from massgen_mcp.config.massgen import commands as massgen_commands
from massgen_mcp.errors import MassgenError
from massgen_mcp.request.checkable import require_apart, require_files, require_neutral_judge, require_sandbox
from massgen_mcp.request.harm import granted_by
from massgen_mcp.request.question import check_question, check_text
from massgen_mcp.request.run_request import CallerRequest, RunRequest
from massgen_mcp.request.sandboxes import require_programs
from massgen_mcp.request.team import Team, choose_team


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
        raise MassgenError("invalid_arguments", "changes_of goes on with an earlier turn of a session; give session_id")
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
    config = with_procedure(config, given.decide)
    config = rechecked(with_sampling(with_limits(config, given.limits), given.sampling))
    require_files(config)
    require_neutral_judge(config)
    require_apart(config)
    if given.only_plan or given.elsewhere:
        check_credentials(config, team.environ)
    else:
        require_keys(config, team.environ)
        await require_sandbox(config, team.environ)
    return replace(team, config=config)


async def _chosen(given: CallerRequest) -> Team:
    if isinstance(given.team, Team):
        return given.team
    granted = granted_by(given.context_paths, given.checks, given.decide, given.limits)
    return await choose_team(given.team, cwd=given.cwd, environ=given.environ, consent=given.consent, granted=granted)
