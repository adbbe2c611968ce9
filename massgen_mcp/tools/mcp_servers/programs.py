"""Which files a server's own program consists of, so that it can be read in the sandbox. Reads the file system."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from massgen_mcp.config.models.mcp_servers import StdioServer

_SCRIPTS = frozenset({".py", ".js", ".mjs", ".cjs", ".ts", ".sh", ".rb", ".jar"})

_MAX_LINKS = 40
"""As many as the kernel follows."""


def own_files(server: StdioServer) -> tuple[Path, ...]:
    """The command and the scripts that its arguments name; of one in a virtual environment or in `node_modules` the
    whole of that.
    """
    return tuple(dict.fromkeys(_around(path) for path in _named(server)))


def _named(server: StdioServer) -> Iterator[Path]:
    if found := shutil.which(server.command):
        yield from _led_to(Path(found).absolute())
    for argument in server.args:
        path = Path(argument)
        if path.is_absolute() and path.suffix in _SCRIPTS and path.is_file():
            yield path


def _led_to(path: Path) -> Iterator[Path]:
    """The path and, while it is a link, where that leads."""
    for _ in range(_MAX_LINKS):
        yield path
        if not path.is_symlink():
            return
        path = Path(os.path.normpath(path.parent / path.readlink()))


def _around(path: Path) -> Path:
    for parent in reversed(path.parents):
        if parent.name == "node_modules":
            return parent
    prefix = path.parent.parent
    return prefix if (prefix / "pyvenv.cfg").is_file() else path
