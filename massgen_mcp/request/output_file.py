"""The file that a caller wants the final answer in: whether it can be written, found out before a model is asked."""

import os
from dataclasses import dataclass
from pathlib import Path

from massgen_mcp.config.diagnostics import show_name
from massgen_mcp.errors import MassgenError
from massgen_mcp.home import write_durably

MAX_NAME_BYTES = 250
"""Of a file that is written whole: file systems take 255, and beside it one of five more is written first."""


@dataclass(frozen=True, slots=True)
class OutputFile:
    """An absolute path, and what the caller calls it."""

    path: Path
    option: str

    def check(self) -> None:
        """Raises `MassgenError` invalid_arguments if the file cannot be made there."""
        try:
            directory = self._target.parent
            if self.path.is_dir():
                problem = "is a directory; give a file name"
            elif not directory.is_dir():
                problem = f"the directory {directory} doesn't exist; create it first"
            elif self._is_whole and not os.access(directory, os.W_OK):
                problem = (
                    f"cannot create a file in the directory {directory}; change its permissions, or use another "
                    "directory"
                )
            elif "\0" in self.path.name:
                problem = "a file name can't contain a null character"
            elif len(os.fsencode(self.path.name)) > MAX_NAME_BYTES:
                problem = f"its name is longer than {MAX_NAME_BYTES} bytes"
            else:
                return
        except OSError as error:
            problem = error.strerror
        raise MassgenError("invalid_arguments", f"{self.option} {show_name(str(self.path))}: {problem}")

    def write(self, data: bytes) -> None:
        """The file is whole and on disk, or as it was; a device or a pipe just gets `data`. Raises `OSError`."""
        if self._is_whole:
            write_durably(self._target, data)
        else:
            self.path.write_bytes(data)

    @property
    def _target(self) -> Path:
        """What is written: of a link, what it points to."""
        return self.path.resolve() if self.path.is_symlink() else self.path

    @property
    def _is_whole(self) -> bool:
        """Whether it is a file, or will be one; not `/dev/null` and the like."""
        return self.path.is_file() or not self.path.exists()
