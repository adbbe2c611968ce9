"""`massgen configs [NAME]`: the ready-made teams and whether their keys are set, or the JSON schema of a config."""

import argparse
import json
import os

from massgen_mcp.cli.exits import EXIT_OK
from massgen_mcp.cli.output import print_line, print_lines, print_text
from massgen_mcp.config.examples import list_examples
from massgen_mcp.server.results import config_list


async def run(options: argparse.Namespace) -> int:
    if options.schema:
        from massgen_mcp.config.schema import config_schema  # it reads sources, which nothing else needs

        print_text(json.dumps(config_schema(), indent=1))
        return EXIT_OK
    found = await config_list(options.name, os.environ, in_full=True)
    if options.json:
        print_line(found.as_json())
    elif found.yaml is not None:
        print_text(found.yaml)
    else:
        described = {example.name: example.description for example in list_examples()}
        for name, config in found.configs.items():
            print_lines([f"{name}: {described[name]}", f"    {config.text()}"])
        print_lines(f"{name}: {described[name]}" for name in found.copy_from or ())
    return EXIT_OK
