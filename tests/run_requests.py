"""What a door asks of the run service, for programs of tests too: nothing else is imported here."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from massgen_mcp.config.models.config import Config
from massgen_mcp.request.build import CallerRequest, RunRequest
from massgen_mcp.request.team import Team


def asked(
    question: str,
    config: Config,
    *,
    environ: Mapping[str, str] | None = None,
    source: str = "test",
    key: str | None = None,
) -> RunRequest:
    """What a door asks of the run service."""
    return run_request(question, Team(config, source, environ or {}), idempotency_key=key)


def run_request(question: str, team: Team, **given: Any) -> RunRequest:
    """What a door makes of a question for a team that was chosen; `given` as in `CallerRequest`."""
    return RunRequest(CallerRequest(question, team, cwd=Path.cwd(), environ=team.environ, **given), team)
