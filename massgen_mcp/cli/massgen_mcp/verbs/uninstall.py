"""`massgen-mcp uninstall CLIENT`: takes our entry out of the settings of an MCP client."""

import argparse
import json

from massgen_mcp.cli.exits import EXIT_OK
from massgen_mcp.cli.massgen_mcp.install.config_file import take_entry
from massgen_mcp.cli.massgen_mcp.install.place import place_of
from massgen_mcp.cli.output import print_line


async def run(options: argparse.Namespace) -> int:
    place = place_of(options)
    change = take_entry(place.file, place.client.section, options.name)
    if options.json:
        copy = str(change.copy) if change.copy else None
        document = {"client": place.client.name, "file": str(change.file), "changed": change.changed, "copy": copy}
        print_line(json.dumps(document))
    elif not change.changed:
        print_line(f"{place.client.title} does not have {options.name!r} in {change.file}")
    else:
        print_line(f"{place.client.title}: {options.name!r} is no longer in {change.file}")
        if change.copy:
            print_line(f"The file as it was before: {change.copy}")
        print_line(f"Next: start {place.client.title} anew.")
    return EXIT_OK
