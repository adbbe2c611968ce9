"""The engines that the tests of this directory are run on, each with the faults that its storage can have."""

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from massgen_mcp.events.record import JOURNAL_VERSION
from massgen_mcp.home import Home
from massgen_mcp.runs.engine import Engine, FrozenRequest, RunFiles
from massgen_mcp.runs.store.directory import RunDirectory
from massgen_mcp.runs.store.journal import JOURNAL
from massgen_mcp.runs.store.journal_line import sealed
from massgen_mcp.runs.store.local import DATABASE, local_engine
from tests.faults import ROOT, no_larger_files_than
from tests.teams import silent_team


class Machine(Protocol):
    """Where runs are kept. Each `open` gives what one more process would have."""

    def open(self) -> Engine: ...

    def close(self) -> None:
        """Close everything that was opened."""
        ...

    def own_files(self, run_id: str) -> RunFiles:
        """Files of a run that a program executes itself, in a place of its own choice."""
        ...

    def tear(self, run: RunFiles) -> None:
        """The process that wrote the log was killed in the middle of an event."""
        ...

    def damage(self, run: RunFiles, seq: int) -> None:
        """This event is not what was written."""
        ...

    def lose(self, run: RunFiles, seq: int) -> None:
        """This event is gone, those after it are not."""
        ...

    def write_newer(self, run: RunFiles, seq: int) -> None:
        """A later version of this program wrote the event."""
        ...

    def damage_request(self, run: RunFiles) -> None: ...

    def no_room(self) -> AbstractContextManager[None]:
        """No file and no log can be written."""
        ...

    def damage_store(self) -> None:
        """The store cannot be read any more."""
        ...

    def outdate_store(self) -> None:
        """A later version of this program has brought the store to its own schema."""
        ...

    def contents(self) -> object:
        """The whole store, to compare."""
        ...

    def process(self, fingerprint: str, run_id: str) -> subprocess.Popen[str]:
        """Another process that does what `holder` says, and whose output is a pipe."""
        ...


@dataclass
class LocalMachine:
    """A state directory below `path`."""

    path: Path
    _engines: list[Engine] = field(default_factory=list[Engine])

    @property
    def home(self) -> Home:
        return Home(self.path / "home")

    def open(self) -> Engine:
        engine = local_engine(self.home.ensure())
        self._engines.append(engine)
        return engine

    def close(self) -> None:
        for engine in self._engines:
            engine.close()

    def own_files(self, run_id: str) -> RunDirectory:
        return RunDirectory.create(self.path / "project" / run_id, FrozenRequest("q", silent_team(1)))

    def tear(self, run: RunFiles) -> None:
        with _journal(run).open("ab") as file:
            file.write(b'{"seq":')

    def damage(self, run: RunFiles, seq: int) -> None:
        lines = _journal(run).read_bytes().splitlines(keepends=True)
        lines[seq - 1] = lines[seq - 1].replace(b'"time":', b'"time":1')
        _journal(run).write_bytes(b"".join(lines))

    def lose(self, run: RunFiles, seq: int) -> None:
        lines = _journal(run).read_bytes().splitlines(keepends=True)
        _journal(run).write_bytes(b"".join(lines[: seq - 1] + lines[seq:]))

    def write_newer(self, run: RunFiles, seq: int) -> None:
        record = {"v": JOURNAL_VERSION + 1, "seq": seq, "time": 1.0, "event": {"type": "agent_praised", "warmth": 3}}
        with _journal(run).open("ab") as file:
            file.write(sealed(json.dumps(record)))

    def damage_request(self, run: RunFiles) -> None:
        path = run.path / "config.json"
        path.write_bytes(path.read_bytes().replace(b'"question"', b'"questiom"'))

    @contextmanager
    def no_room(self) -> Generator[None]:
        with no_larger_files_than(1):
            yield

    def damage_store(self) -> None:
        (self.home.path / DATABASE).write_bytes(b"no SQLite file" * 500)

    def outdate_store(self) -> None:
        with closing(sqlite3.connect(self.home.path / DATABASE)) as db:
            db.execute("PRAGMA user_version=1000")

    def contents(self) -> dict[str, bytes]:
        """`-shm` is no content: readers write into it, too."""
        files = self.home.path.rglob("*")
        return {str(path): path.read_bytes() for path in files if path.is_file() and "-shm" not in path.name}

    def process(self, fingerprint: str, run_id: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tests.engine.holder", "local", str(self.path), fingerprint, run_id]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True, cwd=ROOT)


def _journal(run: RunFiles) -> Path:
    return run.path / JOURNAL


IMPLEMENTATIONS: dict[str, Callable[[Path], Machine]] = {"local": LocalMachine}
"""By name: what makes a machine in a directory of the test's own."""
