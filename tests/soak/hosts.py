"""The five processes that execute runs, each as its callers use it: what a run comes to, and what its caller is told.

The runner of the background and the worker of a cluster execute the runs of others; `massgen`, a Python program and
LiteLLM execute their own. The last three are forked from a process that has imported all of them.
"""

import asyncio
import hashlib
import json
import multiprocessing
import os
import re
import signal
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib import import_module
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from typing import Any, Literal, Protocol

import anyio

from massgen_mcp.errors import MassgenError
from massgen_mcp.events.record import LogRecord
from massgen_mcp.home import Home
from massgen_mcp.run_state.status import TERMINAL_STATES
from massgen_mcp.runs.engine import Action
from massgen_mcp.runs.service import RunService
from massgen_mcp.runs.store.opening import local_engine
from massgen_mcp.runs.view.run_view import RunView
from tests.cluster.stage import Cluster
from tests.commands import starting_by
from tests.harness import RUNNER_MODULE, TempHome
from tests.soak.commands_here import run

HostName = Literal["runner", "worker", "massgen", "python", "litellm"]
HOSTS: tuple[HostName, ...] = ("runner", "worker", "massgen", "python", "litellm")
OWN_PROCESSES: tuple[HostName, ...] = ("massgen", "python", "litellm")
"""The hosts whose process is the caller's own."""
LOADED = [
    "massgen_mcp.api.notebook",
    "massgen_mcp.api.performing",
    "massgen_mcp.api.request",
    "massgen_mcp.backends.chatcompletion",
    "massgen_mcp.cli.massgen.one_run",
    "massgen_mcp.integrations.litellm_provider",
    "massgen_mcp.runs.host.assembly",
    "openai.resources.chat",
]
"""What the own processes have imported when they begin."""
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else LiteLLM fetches prices from the network
OF_TIME = ("model_call_waiting", "model_call_admitted", "text_delta")
"""Events of a moment: a worker waits for its part of the limits of an address that no worker has asked before, and a
text comes in as many pieces as time allows.
"""
LONGEST_SECONDS = 120.0


@dataclass(frozen=True)
class Told:
    """The last words to a caller. `code`: an exit code, a signal, or an exception with the facts that programs read.
    `cause`: the code of our error behind an exception.
    """

    code: str
    words: str = ""
    cause: str = ""


class Host(Protocol):
    """One process that executes a run."""

    name: HostName
    home: TempHome

    def begin(self, config: str, question: str) -> None:
        """Have the run started. If that is refused, `finish` returns the refusal."""
        ...

    @property
    def pid(self) -> int:
        """The process that executes the run."""
        ...

    def finish(self) -> Told:
        """Wait for the end of the run, as a caller does, or for the end of its process."""
        ...

    def resume(self) -> Told:
        """Continue an interrupted run as the documentation says, and wait for its end."""
        ...

    def look(self) -> RunView | None:
        """Read the run as one more process would; None if there is none."""
        ...

    def control(self, action: Action) -> None:
        """Request a control of the run from another process."""
        ...


# -- runs of others ---------------------------------------------------------------------------------------------------


@dataclass
class Background:
    """A run that `massgen --background` starts."""

    home: TempHome
    name: HostName = "runner"
    run_id: str = ""
    _refusal: Told | None = None

    @property
    def pid(self) -> int:
        (pid,) = self.home.processes(RUNNER_MODULE)
        return pid

    def begin(self, config: str, question: str) -> None:
        with starting_by(self.home.python):
            said = run(self.home, "--background", "--config", config, question)
        self.run_id = said.out.strip()
        self._refusal = Told(str(said.code), said.err) if said.code else None

    def finish(self) -> Told:
        if self._refusal is not None:
            return self._refusal
        with starting_by(self.home.python):
            self._await_end()
            code = run(self.home, self.run_id, verb="wait").code
        return Told(str(code), run(self.home, self.run_id, "--view", "full", verb="result").out)

    def _await_end(self) -> None:
        """Return as soon as the end is in the store: a little later than in the record of the run."""

        async def wait() -> None:
            watcher = self._service().watcher
            with anyio.fail_after(LONGEST_SECONDS):
                while (await watcher.wait(self.run_id, until="terminal", seconds=30, cursor=None)).row.state not in (
                    TERMINAL_STATES
                ):
                    await anyio.sleep(0.05)

        anyio.run(wait)

    def resume(self) -> Told:
        return self.finish()  # looking at the run starts the next runner

    def look(self) -> RunView | None:
        return anyio.run(self._service().watcher.get_run, self.run_id) if self.run_id else None

    def control(self, action: Action) -> None:
        anyio.run(self._service().control, self.run_id, action)

    def _service(self) -> RunService:
        return RunService(local_engine(Home(self.home.path).ensure()), self.home.environ)


@dataclass
class InCluster(Background):
    """A run of a store in PostgreSQL, which a worker executes."""

    machines: Cluster = field(kw_only=True)
    name: HostName = "worker"

    @property
    def pid(self) -> int:
        return self.machines.workers[-1].pid

    def _service(self) -> RunService:
        return self.machines.service()


# -- runs of one's own ------------------------------------------------------------------------------------------------


@dataclass
class OwnProcess:
    """A process that executes its caller's run."""

    home: TempHome
    name: HostName
    _process: ForkServerProcess | None = None
    _output: "Future[str] | None" = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        assert self._process.pid is not None
        return self._process.pid

    def begin(self, config: str, question: str) -> None:
        self._start(self.name, [config, question])

    def _start(self, role: str, arguments: Sequence[str]) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(LOADED)
        ours, theirs = context.Pipe(duplex=False)
        call = (role, arguments, str(self.home.work), dict(self.home.environ), theirs)
        self._process = context.Process(target=call_as, args=call)
        self._process.start()
        theirs.close()
        self._output = ThreadPoolExecutor(1).submit(_read_all, ours)

    def finish(self) -> Told:
        code, words = self._wait()
        if self.name == "massgen" or code != "0":
            return Told(code, words)
        ended = json.loads(words.splitlines()[-1])
        return Told(**ended)

    def _wait(self) -> tuple[str, str]:
        assert self._process is not None
        assert self._output is not None
        self._process.join(LONGEST_SECONDS)
        if self._process.exitcode is None:
            self._process.kill()
        code, words = self._process.exitcode, self._output.result()
        if code is None:
            raise TimeoutError(f"{self.name} didn't end: {words}")
        return (signal.Signals(-code).name if code < 0 else str(code)), words

    def resume(self) -> Told:
        view = self.look()
        assert view is not None
        self._start(RESUMED, [view.row.run_id])
        return Told(*self._wait())

    def look(self) -> RunView | None:
        watcher = self._service().watcher

        async def look() -> RunView | None:
            newest = await watcher.list_runs(limit=1)
            return await watcher.get_run(newest[0].row.run_id) if newest else None

        return anyio.run(look)

    def control(self, action: Action) -> None:
        view = self.look()
        assert view is not None
        anyio.run(self._service().control, view.row.run_id, action)

    def _service(self) -> RunService:
        return RunService(local_engine(Home(self.home.path).ensure()), self.home.environ)


RESUMED = "massgen, resumed"


def _read_all(reader: Connection) -> str:
    with os.fdopen(os.dup(reader.fileno()), "rb") as file:
        reader.close()
        return file.read().decode(errors="replace")


def call_as(role: str, arguments: Sequence[str], work: str, environ: dict[str, str], output: Connection) -> None:
    """Be such a process, from the call to its end."""
    os.setsid()
    os.environ.clear()
    os.environ.update(environ)
    os.chdir(work)
    for number in (1, 2):
        os.dup2(output.fileno(), number)
    output.close()
    sys.stdout, sys.stderr = os.fdopen(1, "w", buffering=1), os.fdopen(2, "w", buffering=1)
    if role in ("massgen", RESUMED):
        from massgen_mcp.cli.massgen.main import main

        main(["--automation", "--resume" if role == RESUMED else "--config", *arguments])
    config, question = arguments
    try:
        words = (_ask_by_python if role == "python" else _ask_by_litellm)(config, question)
        ended = {"code": "returned", "words": words}
    except BaseException as error:  # noqa: BLE001 - all that the caller of a program may see
        ended = {"code": name_exception(error), "words": str(error), "cause": find_cause(error)}
    sys.stdout.write(f"\n{json.dumps(ended)}\n")


def find_cause(error: BaseException | None) -> str:
    """Return the code of our error that an exception was made of, if there is one."""
    while error is not None and not isinstance(error, MassgenError):
        error = error.__cause__ or error.__context__
    return "" if error is None else error.code


def name_exception(error: BaseException) -> str:
    """Return the class of an exception, and the facts that a program reads of one of ours."""
    facts: list[object] = [getattr(error, name, None) for name in ("state", "reason")]
    if not any(facts) and isinstance(error, MassgenError):
        facts = [error.code]
    return " ".join([type(error).__name__, *(str(fact) for fact in facts if fact)])


def _ask_by_python(config: str, question: str) -> str:
    import massgen_mcp as massgen

    result = asyncio.run(massgen.run(question, config=config, enable_logging=True))
    return " ".join(str(result[name]) for name in ("outcome", "weak", "failure", "degraded", "final_answer"))


def _ask_by_litellm(config: str, question: str) -> str:
    import massgen_mcp as massgen

    litellm: Any = import_module("litellm")
    litellm.suppress_debug_info = True
    massgen.register_with_litellm()
    asked = [{"role": "user", "content": question}]
    logged = {"enable_logging": True}
    response = litellm.completion(model=f"massgen/path:{config}", messages=asked, optional_params=logged)
    told = response._hidden_params
    parts = [told[f"massgen_{name}"] for name in ("outcome", "weak", "failure", "degraded")]
    return " ".join(map(str, [*parts, response.choices[0].message.content]))


# -- what can be compared ---------------------------------------------------------------------------------------------


def order_events(records: Iterable[LogRecord]) -> dict[str, list[str]]:
    """Return, for each agent, its events and those of the run itself in their order. Agents work at the same time, so
    the order of two events of different agents means nothing.
    """
    found: list[tuple[str, str]] = []
    for record in records:
        if record.event.type in OF_TIME:
            continue
        facts = [str(getattr(record.event, name, "")) for name in ("type", "purpose", "reason")]
        found.append((getattr(record.event, "agent", None) or "", " ".join(filter(None, facts))))
    agents = sorted({agent for agent, _ in found} - {""}) or [""]
    return {agent: [event for owner, event in found if owner in ("", agent)] for agent in agents}


def digest_events(events: dict[str, list[str]]) -> str:
    return hashlib.sha256(json.dumps(events).encode()).hexdigest()[:8]


def remove_accidents(text: str, home: TempHome) -> str:
    """Return words without what differs from run to run: paths, ids, addresses, numbers of seconds."""
    for path in (str(home.work), str(home.path)):
        text = text.replace(path, "PLACE")
    text = re.sub(r"/\S*/massgen-index[\w/.-]+", "PLACE", re.sub(r"PLACE/\S+", "PLACE", text))
    text = re.sub(r"run-[a-z0-9]{8,}", "RUN", text)
    text = re.sub(r"127\.0\.0\.1:\d+/\d+", "SERVER", text)
    return " ".join(re.sub(r"\d+(\.\d+)? ?s\b", "N s", text).split())
