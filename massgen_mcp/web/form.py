"""What the form that starts a run has to offer, and how a run that there was is filled into it."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio.to_thread

from massgen_mcp.changes.applied import applied_at
from massgen_mcp.config.access.local_servers import find_local_servers
from massgen_mcp.config.default_team import reachable_models
from massgen_mcp.config.examples import list_examples
from massgen_mcp.config.models.config import Config
from massgen_mcp.errors import MassgenError
from massgen_mcp.request.team import NamedTeam, choose_team
from massgen_mcp.request.trust import Consent
from massgen_mcp.runs.service import RunService
from massgen_mcp.runs.view.run_view import RunView
from massgen_mcp.server.results.words import team_of

RUNS_READ = 50
MOST_DIRECTORIES = 8


async def offered(service: RunService, cwd: Path, environ: Mapping[str, str]) -> dict[str, Any]:
    """Models that can be asked now, the strong ones with a key first, and directories that runs were given last."""
    servers = await find_local_servers(environ)
    local = [f"{server.type}/{model.name}" for server in servers for model in server.models]
    recent = await service.recent(limit=RUNS_READ)
    directories = await anyio.to_thread.run_sync(_directories, recent)
    return {
        "models": [*reachable_models(environ), *local],
        "directories": list(dict.fromkeys((*directories, str(cwd))))[:MOST_DIRECTORIES],
    }


def _directories(recent: Sequence[RunView]) -> list[str]:
    found: list[str] = []
    for view in recent:
        with suppress(MassgenError):  # it has expired, or a newer version wrote it
            found += [one.path for one in view.directory.read_request().config.orchestrator.context_paths]
    return found


async def request_of(view: RunView, cwd: Path, environ: Mapping[str, str]) -> dict[str, Any]:
    """The arguments of `start_run` that ask the same again. `session_id`: of the conversation that the run is in, or
    begins; `unapplied`: it changed files, and nobody has applied that. Raises `MassgenError`.
    """
    request = await anyio.to_thread.run_sync(view.directory.read_request)
    settings, plain = request.config.orchestrator, Config(agents=request.config.agents)
    limits = {
        "max_usd": (request.config.budget.max_usd, plain.budget.max_usd),
        "max_seconds": (
            request.config.timeout_settings.orchestrator_timeout_seconds,
            plain.timeout_settings.orchestrator_timeout_seconds,
        ),
        "max_answers": (settings.max_new_answers_per_agent, plain.orchestrator.max_new_answers_per_agent),
        "decide": (settings.decide, plain.orchestrator.decide),
    }
    changes = view.snapshot.best_changes
    return {
        "question": request.question,
        **await _team(view.row.config, request.config, cwd, environ),
        "context_paths": [{"path": one.path, "permission": one.permission} for one in settings.context_paths],
        "checks": list(settings.checks),
        **{name: value for name, (value, usual) in limits.items() if value != usual},
        "session_id": view.row.session_id or view.row.run_id,
        "unapplied": bool(changes and changes.count and applied_at(view.directory.changes) is None),
    }


async def _team(source: str, config: Config, cwd: Path, environ: Mapping[str, str]) -> dict[str, Any]:
    """How a call names the team from there: not at all, by its config, or else by its models alone."""
    with suppress(MassgenError):
        unnamed = NamedTeam()
        if (await choose_team(unnamed, cwd=cwd, environ=environ, consent=Consent(grants_paths=True))).source == source:
            return {}
    name = source.removeprefix("@examples/")
    if Path(source).is_absolute() or name in {example.name for example in list_examples()}:
        return {"team": name}
    return {"models": list(team_of(config).values())}
