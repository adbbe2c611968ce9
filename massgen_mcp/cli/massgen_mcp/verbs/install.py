"""`massgen-mcp install CLIENT`: our entry in the settings of an MCP client."""

import argparse
import json
import os
from dataclasses import dataclass

from massgen_mcp.cli.exits import EXIT_OK
from massgen_mcp.cli.massgen_mcp.install.clients import Entry
from massgen_mcp.cli.massgen_mcp.install.config_file import Change, put_entry, shown
from massgen_mcp.cli.massgen_mcp.install.ours import own_command
from massgen_mcp.cli.massgen_mcp.install.place import InstallTarget, place_of
from massgen_mcp.cli.output import print_error, print_line, print_text
from massgen_mcp.errors import MassgenError


@dataclass(frozen=True, slots=True)
class _Entry:
    place: InstallTarget
    name: str
    content: Entry
    passed_on: tuple[str, ...]

    def text(self) -> str:
        return shown(self.place.file, self.place.client.section, self.name, self.content)


async def run(options: argparse.Namespace) -> int:
    place = place_of(options)
    command = own_command(os.environ, options.key, shared=options.scope == "project")
    entry = _Entry(place, options.name, place.client.entry(command), tuple(command.passed_on))
    if options.print:
        change = Change(place.file, changed=False)
    else:
        try:
            change = put_entry(place.file, place.client.section, entry.name, entry.content)
        except MassgenError as error:
            raise MassgenError(error.code, f"{error}\nThe entry, to be put there by hand:\n{entry.text()}") from error
    if options.json:
        print_line(json.dumps(_document(entry, change)))
    elif options.print:
        print_text(entry.text())
        print_error(f"for {place.file}, which was not touched")
    else:
        _tell(entry, change)
    return EXIT_OK


def _tell(entry: _Entry, change: Change) -> None:
    title = entry.place.client.title
    if not change.changed:
        print_line(f"{title} has this entry already: {change.file}")
    else:
        print_line(f"{title}: {entry.name!r} is in {change.file}")
    if change.copy:
        print_line(f"The file as it was before: {change.copy}")
    if entry.passed_on:
        print_line(f"Passed on from the environment that {title} is started in: {', '.join(entry.passed_on)}")
    else:
        print_line("No key of a provider is set here, so none is passed on. Set one and install again, or use --key.")
    print_line(f"Next: {entry.place.client.afterwards}")


def _document(entry: _Entry, change: Change) -> dict[str, object]:
    return {
        "client": entry.place.client.name,
        "file": str(change.file),
        "changed": change.changed,
        "copy": str(change.copy) if change.copy else None,
        "name": entry.name,
        "entry": entry.content,
        "passed_on": list(entry.passed_on),
        "next": entry.place.client.afterwards,
    }
