"""Hooks of Codex that wake it with the result of a run: a file of its own beside its configuration.

Codex runs them after the user has trusted them once, at its next start or by `/hooks`.
"""

import json
import shlex
from pathlib import Path
from typing import cast

from massgen_mcp.cli.massgen_mcp.install.clients import ServerCommand
from massgen_mcp.cli.massgen_mcp.install.config_file import Change, read_text, refuse_change, write_text

HOOKS_FILE = "hooks.json"
DATA_DIRECTORY = "massgen"
NOTE_SECONDS = 60
WAIT_SECONDS = 7 * 24 * 3600
WATCHED = r"mcp__.*massgen.*__(start_run|wait_run|get_status|get_result|control_run)"

Document = dict[str, object]


def build_hooks(command: str, directory: str) -> dict[str, list[Document]]:
    """Return the hooks by event: one notes which runs a session waits for, one wakes it. `directory`: for the notes."""
    line = f"{command} hook {directory}"
    note: Document = {"type": "command", "command": line, "timeout": NOTE_SECONDS}
    wait: Document = {"type": "command", "command": line, "timeout": WAIT_SECONDS}
    wait["statusMessage"] = "Waiting for the massgen run to end. Press Esc to stop waiting; the run continues."
    return {"PostToolUse": [{"matcher": WATCHED, "hooks": [note]}], "Stop": [{"hooks": [wait]}]}


def put_hooks(config: Path, command: ServerCommand) -> Change:
    """Write our hooks beside Codex's `config`, in place of earlier ones of ours; those of others stay.

    Raises `MassgenError` invalid_arguments for a file that cannot be understood or written.
    """
    program = shlex.join([command.path, *command.arguments])
    return _change_hooks(config, build_hooks(program, shlex.quote(str(config.parent / DATA_DIRECTORY))))


def take_hooks(config: Path) -> Change:
    """Remove our hooks. Raises as `put_hooks`."""
    return _change_hooks(config, {})


def _change_hooks(config: Path, ours: dict[str, list[Document]]) -> Change:
    file = config.with_name(HOOKS_FILE)
    before = read_text(file)
    document = _parse(file, before)
    events = cast("dict[str, list[Document]]", document.get("hooks") or {})
    kept = {event: [one for one in groups if not _is_ours(one)] for event, groups in events.items()}
    merged = {event: [*kept.get(event, []), *ours.get(event, [])] for event in dict.fromkeys([*kept, *ours])}
    hooks = {event: groups for event, groups in merged.items() if groups}
    if hooks == events:
        return Change(file, changed=False)
    if not hooks and set(document) <= {"hooks"}:
        file.unlink(missing_ok=True)
        return Change(file, changed=True)
    text = json.dumps({**document, "hooks": hooks}, indent=2, ensure_ascii=False) + "\n"
    return Change(file, changed=True, copy=write_text(file, before, text))


def _parse(file: Path, text: str) -> Document:
    try:
        document: object = json.loads(text or "{}")
    except ValueError as error:
        raise refuse_change(file, str(error)) from error
    if isinstance(document, dict):
        hooks = cast("Document", document).get("hooks", {})
        if isinstance(hooks, dict) and all(isinstance(one, list) for one in cast("Document", hooks).values()):
            return cast("Document", document)
    raise refuse_change(file, "it isn't a Codex hooks file")


def _is_ours(group: object) -> bool:
    """Return whether a group of hooks calls `massgen-mcp hook`."""
    if not isinstance(group, dict):
        return False
    hooks = cast("list[Document]", cast("Document", group).get("hooks") or [])
    commands = [str(one.get("command")) for one in hooks]
    return bool(commands) and all(" hook " in one and "massgen" in one for one in commands)
