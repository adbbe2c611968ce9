"""`massgen install CLIENT`: our entry in the settings of a client. `massgen uninstall CLIENT` takes it out."""

import argparse
import json
import os
from dataclasses import dataclass
from pathlib import Path

from massgen_mcp.cli.exits import EXIT_OK
from massgen_mcp.cli.massgen_mcp.install.clients import CLIENTS, Client, ServerEntry
from massgen_mcp.cli.massgen_mcp.install.codex_hooks import put_hooks, take_hooks
from massgen_mcp.cli.massgen_mcp.install.config_file import Change, put_entry, shown, take_entry
from massgen_mcp.cli.massgen_mcp.install.ours import own_command
from massgen_mcp.cli.output import print_error, print_line, print_text
from massgen_mcp.errors import MassgenError


@dataclass(frozen=True, slots=True)
class _Entry:
    client: Client
    file: Path
    name: str
    content: ServerEntry
    passed_on: tuple[str, ...]

    def text(self) -> str:
        return shown(self.file, self.client.section, self.name, self.content)


async def install(options: argparse.Namespace) -> int:
    client = CLIENTS[options.client]
    file = _file(client, options)
    if options.hook and (client.name != "codex" or options.scope != "user"):
        raise MassgenError("invalid_arguments", "--hook works only for Codex with --scope user; remove --hook")
    command = own_command(os.environ, options.key, shared=options.scope == "project")
    entry = _Entry(client, file, options.name, client.entry(command), tuple(command.passed_on) * client.hands_on)
    if "name" in entry.content:
        entry.content["name"] = options.name
    if options.print:
        change = Change(file, changed=False)
    else:
        try:
            change = put_entry(file, client.section, entry.name, entry.content, within=_project(options))
        except MassgenError as error:
            raise MassgenError(error.code, f"{error}\nAdd this entry by hand:\n{entry.text()}") from error
    hooks = None
    if options.hook and not options.print:
        hooks = put_hooks(file, command)
    _print_outcome(entry, change, hooks, options)
    return EXIT_OK


def _print_outcome(entry: _Entry, change: Change, hooks: Change | None, options: argparse.Namespace) -> None:
    if options.json:
        document = _document(entry, change)
        if hooks is not None:
            document["hooks"] = str(hooks.file)
        print_line(json.dumps(document))
    elif options.print:
        print_text(entry.text())
        print_error(f"This entry is for {entry.file}, which is unchanged")
    else:
        _print_change(entry, change)
        if hooks is not None:
            _print_hooks(hooks)
        elif entry.client.known and not entry.client.known.tasks:
            _print_how_to_wait(entry.client)


def _print_hooks(hooks: Change) -> None:
    state = {True: "are in", False: "were already in"}[hooks.changed]
    print_line(f"The hooks that give Codex a run's result {state} {hooks.file}")
    if hooks.copy:
        print_line(f"Backup of the file: {hooks.copy}")
    print_line("The next time you start Codex in a terminal, it asks whether you trust the hooks; /hooks lists them.")
    print_line("Codex and `codex exec` run them only after you trust them. Until then, Codex must call wait_run.")


def _print_how_to_wait(client: Client) -> None:
    print_line(f"{client.title} isn't notified when a run ends; massgen's replies tell it to call wait_run.")
    if client.name == "codex":
        print_line("To have Codex notified, run `massgen install codex --hook`, then trust the hook in Codex.")


def _file(client: Client, options: argparse.Namespace) -> Path:
    """Raises `MassgenError` invalid_arguments where the client has no such scope, or the user no home."""
    home = Path(os.environ.get("HOME") or "")
    if options.scope == "user" and not (home.is_absolute() and home.is_dir()):
        raise MassgenError("invalid_arguments", f"cannot find your home directory: HOME is {str(home)!r}")
    file = client.file(options.scope, home, Path.cwd(), os.environ)
    if file is None:
        raise MassgenError("invalid_arguments", f"{client.title} has no project settings for servers; use --scope user")
    return file


def _project(options: argparse.Namespace) -> Path | None:
    """The directory that the settings of a project have to lie in."""
    return Path.cwd() if options.scope == "project" else None


def _print_change(entry: _Entry, change: Change) -> None:
    title = entry.client.title
    if not change.changed:
        print_line(f"{title} already has this entry: {change.file}")
    else:
        print_line(f"{title}: {entry.name!r} is in {change.file}")
    if change.copy:
        print_line(f"Backup of the file: {change.copy}")
    if not entry.client.hands_on:
        print_line(
            f"{title} doesn't pass keys to servers. If a provider needs a key, use the bundle, which asks for it."
        )
    elif entry.passed_on:
        print_line(f"{title} passes these variables on from its environment: {', '.join(entry.passed_on)}")
    else:
        print_line("No provider key is set, so the server gets none. Set a key and repeat the command, or use --key.")
    print_line(f"Next: {entry.client.afterwards}")


def _document(entry: _Entry, change: Change) -> dict[str, object]:
    return {
        "client": entry.client.name,
        "file": str(change.file),
        "changed": change.changed,
        "copy": str(change.copy) if change.copy else None,
        "name": entry.name,
        "entry": entry.content,
        "passed_on": list(entry.passed_on),
        "next": entry.client.afterwards,
    }


async def uninstall(options: argparse.Namespace) -> int:
    client = CLIENTS[options.client]
    file = _file(client, options)
    change = take_entry(file, client.section, options.name, within=_project(options))
    if client.name == "codex" and options.scope == "user":
        hooks = take_hooks(file)
        if hooks.changed and not options.json:
            print_line(f"Removed the hooks from {hooks.file}")
    if options.json:
        copy = str(change.copy) if change.copy else None
        print_line(
            json.dumps({"client": client.name, "file": str(change.file), "changed": change.changed, "copy": copy})
        )
    elif not change.changed:
        print_line(f"{client.title} has no entry {options.name!r} in {change.file}")
    else:
        print_line(f"{client.title}: removed {options.name!r} from {change.file}")
        if change.copy:
            print_line(f"Backup of the file: {change.copy}")
        print_line(f"Next: start {client.title} anew.")
    return EXIT_OK
