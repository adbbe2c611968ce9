"""`massgen-mcp configs [NAME]`: the ready-made teams, and whether their keys are set."""

import argparse
import os

from massgen_mcp.cli.exits import EXIT_OK
from massgen_mcp.cli.massgen_mcp.verbs.common import print_json
from massgen_mcp.cli.output import print_line, print_text
from massgen_mcp.server.results import config_list


async def run(options: argparse.Namespace) -> int:
    found = config_list(options.name, os.environ)
    if options.json:
        print_json(found)
    elif found.yaml is not None:
        print_text(found.yaml)
    else:
        for config in found.configs:
            needs = f" (set {', '.join(config.missing_keys)})" if config.missing_keys else ""
            print_line(f"{config.name}: {config.description}{needs}")
            print_line(f"    {', '.join(f'{member.agent}={member.model}' for member in config.agents)}")
    return EXIT_OK
