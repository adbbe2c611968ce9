"""`massgen-mcp configs [NAME]`: the ready-made teams, and whether their keys are set."""

import argparse
import os

from massgen_mcp.cli.exits import EXIT_OK
from massgen_mcp.cli.saying import say, say_text
from massgen_mcp.cli.verbs.common import say_json
from massgen_mcp.server.results import config_list


async def run(options: argparse.Namespace) -> int:
    found = config_list(options.name, os.environ)
    if options.json:
        say_json(found)
    elif found.yaml is not None:
        say_text(found.yaml)
    else:
        for config in found.configs:
            needs = f" (set {', '.join(config.missing_keys)})" if config.missing_keys else ""
            say(f"{config.name}: {config.description}{needs}")
            say(f"    {', '.join(f'{member.agent}={member.model}' for member in config.agents)}")
    return EXIT_OK
