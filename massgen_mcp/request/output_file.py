"""The file that a caller wants the final answer in: whether it can be written, found out before a model is asked."""

import os
from dataclasses import dataclass
from pathlib import Path

from massgen_mcp.config.diagnostics import show_name
from massgen_mcp.errors import MassgenError

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
            if self.path.is_dir():
                problem = "is a directory; name a file in it"
            elif not self.path.parent.is_dir():
                problem = f"the directory {self.path.parent} does not exist; make it first"
            elif "\0" in self.path.name:
                problem = "no file's name has a null character"
            elif len(os.fsencode(self.path.name)) > MAX_NAME_BYTES:
                problem = f"its name has more than {MAX_NAME_BYTES} bytes"
            else:
                return
        except OSError as error:
            problem = error.strerror
        raise MassgenError("invalid_arguments", f"{self.option} {show_name(str(self.path))}: {problem}")
