"""Our commands in this process, for harnesses that give many of them."""

import io
import json
import os
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from massgen_mcp.cli.massgen.main import main as massgen_main
from massgen_mcp.cli.massgen_mcp.main import main as server_main
from tests.harness import TempHome


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str = ""

    @property
    def document(self) -> Any:
        return json.loads(self.out)


def run(home: TempHome, *arguments: str, verb: str = "") -> Said:
    """Run a command in this process; with `verb` one of the server's."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    code = 0
    with (
        patch.dict(os.environ, home.environ | {"HOME": str(home.work)}, clear=True),
        chdir(home.work),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            (server_main if verb else massgen_main)([verb, *arguments] if verb else [*arguments])
        except SystemExit as end:
            code = int(str(end.code))
    texts = [(stream.flush(), stream.seek(0), stream.read())[-1] for stream in (out, err)]
    return Said(code, *texts)
