"""Which file of which client a command line means."""

import argparse
import os
from dataclasses import dataclass
from pathlib import Path

from massgen_mcp.cli.massgen_mcp.install.clients import CLIENTS, Client
from massgen_mcp.errors import MassgenError


@dataclass(frozen=True, slots=True)
class InstallTarget:
    client: Client
    file: Path


def place_of(options: argparse.Namespace) -> InstallTarget:
    """Raises `MassgenError` invalid_arguments where the client has no such scope, or the user no home."""
    client = CLIENTS[options.client]
    home = Path(os.environ.get("HOME") or "")
    if options.scope == "user" and not (home.is_absolute() and home.is_dir()):
        raise MassgenError("invalid_arguments", f"there is no home directory: HOME is {str(home)!r}")
    file = client.file(options.scope, home, Path.cwd(), os.environ)
    if file is None:
        raise MassgenError("invalid_arguments", f"{client.title} has no servers of a project; use --scope user")
    return InstallTarget(client, file)
