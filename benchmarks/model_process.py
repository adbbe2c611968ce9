"""A model in a process of its own, from outside: it says its port on its first line."""

import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

ROOT = Path(__file__).resolve().parent.parent


class ModelProcess:
    """`python -m MODULE ARGUMENTS`. A context: the process ends with it."""

    def __init__(self, module: str, *arguments: str, host: str = "127.0.0.1") -> None:
        self.host = host
        command = [sys.executable, "-m", module, *arguments]
        self._process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.communicate(timeout=10)

    @property
    def root(self) -> str:
        return f"http://{self.host}:{self.port}"
