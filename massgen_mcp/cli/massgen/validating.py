"""`massgen --validate`: whether a config could be run, with everything that is wrong with it. Runs nothing."""

import shlex
from collections.abc import Mapping

from massgen_mcp.cli.exits import EXIT_OK
from massgen_mcp.cli.output import print_line
from massgen_mcp.config.loader import (
    check_credentials,
    config_path,
    is_config,
    is_team,
    load_notify,
    load_parsed,
    missing_keys,
)
from massgen_mcp.request.runnable import hindrances, require_apart


def validate(source: str, *, environ: Mapping[str, str]) -> int:
    """Returns the exit code. Raises `MassgenError` with every problem and its line."""
    if is_config(path := config_path(source)) and not is_team(path):
        print_line(f"OK: {source}: notify ({shlex.join(load_notify(path, environ))}), and no team")
        return EXIT_OK
    parsed = load_parsed(source, environ=environ)
    config = parsed.config
    check_credentials(config, environ)
    require_apart(config)
    team = ", ".join(f"{agent.id} ({agent.models})" for agent in config.agents)
    print_line(f"OK: {source}: {team}")
    if parsed.note:
        print_line(f"Note: {parsed.note}")
    for hindrance in hindrances(config, environ):
        print_line(f"Note: {hindrance}")
    if missing := missing_keys(config, environ):
        print_line(f"Not set here: {', '.join(missing)}")
    return EXIT_OK
