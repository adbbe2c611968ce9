"""Stores between which a run moves, each as a home for commands: embedded ones, and one of PostgreSQL with a worker."""

import json
import signal
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from massgen_mcp.home import FILES_VARIABLE
from tests.cluster.stage import Cluster, cluster
from tests.commands import run_command
from tests.harness import RUNNER_MODULE, SERVER_MODULE, TempHome, end, poll_until
from tests.postgres import shared_server


@dataclass
class Stored:
    """A store; `verb` is a command of a person's at it, whose exit code has to be `code`."""

    home: TempHome
    cluster: Cluster | None = None

    def verb(self, *arguments: str | Path, code: int = 0) -> str:
        done = run_command(self.home, SERVER_MODULE, *map(str, arguments), seconds=120)
        assert done.returncode == code, (arguments, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def told(self, *arguments: str | Path, code: int = 0) -> dict[str, Any]:
        done = run_command(self.home, SERVER_MODULE, *map(str, arguments), "--json", seconds=120)
        assert done.returncode == code, (arguments, done.stdout, done.stderr)
        return json.loads(done.stdout)

    def start(self, config: str, *options: str) -> str:
        """A run of the question `six times seven?`. Returns its id."""
        module, begin = "massgen_mcp.cli.massgen.main", ["--background"]
        if self.cluster is not None:
            module, begin = SERVER_MODULE, ["start"]
        done = run_command(self.home, module, *begin, "--config", config, *options, "six times seven?")
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def work(self) -> None:
        """From now on somebody executes runs."""
        if self.cluster is not None:
            self.cluster.add_worker()

    def kill(self) -> None:
        """Whoever executes runs."""
        if self.cluster is not None:
            self.cluster.workers.pop().kill()
        else:
            for pid in self.home.processes(RUNNER_MODULE):
                end(pid, signal.SIGKILL)
            poll_until(lambda: not self.home.processes(RUNNER_MODULE))


@contextmanager
def stored(home: TempHome, kind: str, name: str) -> Generator[Stored]:
    """`kind`: embedded, or cluster with files in an object store. All persons work in the same directory."""
    own = replace(home, path=home.path.with_name(name))
    with ExitStack() as held:
        if kind == "embedded":
            made = Stored(own)
            held.callback(own.close)
        else:
            files = {FILES_VARIABLE: str(home.work / f"objects-{name}")}
            machines = held.enter_context(cluster(own, shared_server(), **files))
            made = Stored(machines.home, machines)
        yield made
