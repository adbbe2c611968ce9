"""How a person brings a patch in that `apply` refuses: the run was given the directory to read only."""

import shlex
from pathlib import Path

from massgen_mcp.events.parts import Changes
from massgen_mcp.run_state.state import RunState


def patch_command(run: RunState, changes: Changes | None, directory: Path) -> str | None:
    """Of what an answer changes. None where `apply` does it, or no single command would. `directory`: the run's."""
    base = run.base
    if changes is None or changes.patch is None or base is None:
        return None
    names = {file.path.split("/")[0] for file in changes.files}
    changed = [one for one in base.directories if one.name in names]
    if len(changed) != 1 or changed[0].writable:
        return None
    return shlex.join(["git", "-C", changed[0].path, "apply", "-p2", str(directory / changes.patch)])
