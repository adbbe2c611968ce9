"""One run without a fault and with 38 of them, on all five hosts: the same events, words and codes, or a documented
difference.

`python -m tests.soak.host_faults [FAULT ...]` prints a table: for each fault and host the end of the run, what its
caller was told, a digest of the events, and the words; then all that differs, with exit code 1 if there is any.
"""

import re
import resource
import signal
import sqlite3
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event
from time import sleep
from typing import Any

import anyio

from massgen_mcp.run_state.state import RunState
from massgen_mcp.runs.engine import Action
from tests.checks.project import commit
from tests.cluster.stage import Cluster, cluster
from tests.harness import TempHome, agent, end, poll_until
from tests.postgres import PostgresServer
from tests.raw_double import Flow, Seen
from tests.soak.false_green import FAULTS, QUESTION, TEAM, Models, Phase, refusal, serving
from tests.soak.false_green import Fault as Reply
from tests.soak.hosts import (
    HOSTS,
    OWN_PROCESSES,
    Background,
    Host,
    HostName,
    InCluster,
    OwnProcess,
    Told,
    digest_events,
    order_events,
    remove_accidents,
)

HELD_SECONDS = 3.0
"""For so long a model says nothing while something happens to the process that asks it."""
LARGEST_FILE = 10
"""Bytes, on a disk that is full."""
KEY_VARIABLE = "STRANGE_KEY"
MORE_REPLIES: dict[str, Reply] = {
    "404": lambda _: refusal("404 Not Found", "no such model"),
    "529": lambda _: refusal("529 Overloaded"),
}
REPLIES = FAULTS | MORE_REPLIES


# -- expectations -----------------------------------------------------------------------------------------------------

LITELLM_CLASSES = {
    "auth": "AuthenticationError",
    "missing_key": "AuthenticationError",
    "quota_exhausted": "RateLimitError",
    "rate_limited": "RateLimitError",
    "model_not_found": "NotFoundError",
    "context_too_small": "ContextWindowExceededError",
    "content_filter": "ContentPolicyViolationError",
    "config_invalid": "BadRequestError",
    "key_refused": "BadRequestError",
}
"""See docs/python.md; all other errors are an InternalServerError."""


MASSGEN_CODES = {"completed": "2", "failed": "2", "timed_out": "3", "cancelled": "4"}


def find_code(host: HostName, state: str, reason: str) -> str:
    """Return what the documentation says that a caller of this host is told (docs/cli.md, docs/python.md)."""
    completed = state == "completed"
    match host:
        case "runner" | "worker":
            return "0" if completed and not reason else "1"
        case "massgen":
            return "0" if completed and not reason else MASSGEN_CODES.get(state, "1")
        case "python" if not completed:
            fact = "timeout" if state == "timed_out" else reason
            return f"MassgenError {reason}" if state == "refused" else f"RunNotCompleted {state} {fact}".strip()
        case "litellm" if not completed:
            return "Timeout" if state == "timed_out" else LITELLM_CLASSES.get(reason, "InternalServerError")
        case _:
            return "returned"


def each(others: str, own: str, **apart: str) -> dict[HostName, str]:
    """Return the ends of a run for hosts that execute runs of others, and for those that execute their caller's.
    `apart`: of single hosts.
    """
    return {name: apart.get(name, own if name in OWN_PROCESSES else others) for name in HOSTS}


def same(ending: str, **apart: str) -> dict[HostName, str]:
    return each(ending, ending, **apart)


# -- faults -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class HostFault:
    """Something that goes wrong in a run. `reply`: in place of the replies of `victims` in a phase. `act`: what happens
    to the process while a model is asked. `ends`: for each host the state and reason in which the run ends; before `>`
    what the caller was told when its process was lost first.
    """

    name: str
    ends: Mapping[HostName, str]
    reply: str = ""
    victims: tuple[str, ...] = TEAM
    phase: Phase = "answer"
    act: "Callable[[Host, Cluster], object] | None" = None
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])
    backend: Mapping[str, Any] = field(default_factory=dict[str, Any])
    apart: tuple[HostName, ...] = ()
    """Hosts whose events differ, for the reason that stands there."""
    team: tuple[dict[str, Any], ...] = ()
    """Agents with scripts, in place of those that ask the models' server."""
    prepare: Callable[[TempHome, dict[str, Any]], object] = lambda _home, _settings: None


def send(sign: signal.Signals) -> Callable[[Host, Cluster], None]:
    """Send a signal to the process. A worker that leaves has a successor, as on another machine."""

    def act(host: Host, machines: Cluster) -> None:
        end(host.pid, sign)
        if host.name == "worker":
            machines.add_worker()

    return act


def request(action: Action) -> Callable[[Host, Cluster], None]:
    return lambda host, _: host.control(action)


def fill_disk(host: Host, _machines: Cluster) -> None:
    """Let no file of the process grow, until its run waits for room or has failed."""
    pid = host.pid
    _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (LARGEST_FILE, hard))
    sleep(HELD_SECONDS + 1)
    if host.name not in OWN_PROCESSES:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))


def lose_store(host: Host, machines: Cluster) -> None:
    """Take the store away for a moment: PostgreSQL stops as in a crash, the file of SQLite is locked."""
    if host.name == "worker":
        machines.server.stop(at_once=True)
        sleep(1)
        machines.server.start()
        return
    with closing(sqlite3.connect(host.home.path / "runs.sqlite3", isolation_level=None)) as db:
        db.execute("BEGIN EXCLUSIVE")
        sleep(HELD_SECONDS + 1)


def write_project(home: TempHome, settings: dict[str, Any]) -> Path:
    """Make a repository of the user's, in which the team may write."""
    place = home.work / "project"
    place.mkdir()
    (place / "lines.txt").write_text("line\n")
    commit(place)
    settings["context_paths"] = [{"path": str(place), "permission": "write"}]
    return place


def damage_index(home: TempHome, settings: dict[str, Any]) -> None:
    (write_project(home, settings) / ".git" / "index").write_bytes(b"no index")


def remove_project(home: TempHome, settings: dict[str, Any]) -> None:
    write_project(home, settings).rename(home.work / "moved")


REASONS = {
    "401": "auth",
    "402": "quota_exhausted",
    "403": "auth",
    "404": "model_not_found",
    "429": "rate_limited",
    "quota": "quota_exhausted",
    "filtered": "content_filter",
    "window": "context_too_small",
}


WRITE = {"call": "write_file", "arguments": {"path": "project/notes.txt", "content": "42"}}
ELSEWHERE = "refused invalid_arguments"
"""Workers of other machines have no directories of the caller."""


def limit_seconds(seconds: float) -> dict[str, Any]:
    return {"timeout_settings": {"orchestrator_timeout_seconds": seconds}}


FAULTS_OF_HOSTS: tuple[HostFault, ...] = (
    HostFault("none", same("completed")),
    *(HostFault(name, same(f"failed {reason}"), name) for name, reason in REASONS.items()),
    *(
        HostFault(name, same("completed"), name, ("ada",))
        for name in REPLIES
        if name not in (*REASONS, "late", "blank")
    ),
    HostFault("late", same("completed"), "late", ("ada",), settings={"first_answer_wait_seconds": 1.5}),
    HostFault("one agent lost", same("completed"), "401", ("cleo",)),
    HostFault("quorum lost", same("completed nobody_left"), "401", ("bo", "cleo")),
    HostFault("no votes", same("completed"), "401", phase="vote"),
    HostFault("time limit before an answer", same("timed_out"), "late", config=limit_seconds(2)),
    HostFault("time limit after answers", same("timed_out"), "late", phase="vote", config=limit_seconds(4)),
    HostFault("budget reached", same("failed budget"), config={"budget": {"max_usd": 0.000001}}),
    HostFault(  # a caller of workers needs no keys: they have their own
        "missing key",
        same("refused missing_key", worker="failed auth"),
        backend={"type": "openai", "base_url": None},
    ),
    HostFault(
        "refused key",
        same("refused key_refused"),
        backend={"base_url": "https://models.example.com/v1", "api_key_env": KEY_VARIABLE},
    ),
    HostFault("config invalid", same("refused config_invalid"), settings={"decide": "guess"}),
    HostFault("a directory that is gone", same("refused config_invalid"), prepare=remove_project),
    HostFault("a directory without a copy", same("failed config_invalid", worker=ELSEWHERE), prepare=damage_index),
    HostFault(
        "a check that can't run",
        same("completed unproven", worker=ELSEWHERE),
        team=(agent("ada", WRITE, {"answer": "It is written."}),),
        settings={"checks": ["no-such-program"], "checks_policy": "required"},
        prepare=write_project,
    ),
    HostFault("kill -9", each("completed, resumed", "SIGKILL > completed, resumed"), act=send(signal.SIGKILL)),
    HostFault(
        "SIGTERM",
        each("completed, resumed", "SIGTERM > completed, resumed", massgen="cancelled"),
        act=send(signal.SIGTERM),
    ),
    HostFault("Ctrl-C", each("completed, resumed", "cancelled"), act=send(signal.SIGINT)),
    HostFault(
        "hang-up",
        each("completed, resumed", "SIGHUP > completed, resumed", massgen="completed"),
        act=send(signal.SIGHUP),
    ),
    HostFault(
        "full disk",
        each(
            "completed, resumed",
            "2 > completed, resumed",
            python="disk_full > completed, resumed",
            litellm="InternalServerError > completed, resumed",
        ),
        act=fill_disk,
        apart=("worker",),  # its events are in PostgreSQL: it keeps the replies, and asks for none again
    ),
    HostFault("the store is away", same("completed"), act=lose_store),
    HostFault("cancel", same("cancelled"), act=request("cancel")),
    HostFault("cancel while voting", same("cancelled"), phase="vote", act=request("cancel")),
    HostFault("finish_now", same("completed"), phase="vote", act=request("finish_now")),
)


# -- runs -------------------------------------------------------------------------------------------------------------


@dataclass
class StruckModels(Models):
    """The models' server, with one fault at a time. `reached`: a model is asked to which something happens; `passed`:
    it has happened.
    """

    fault: HostFault = FAULTS_OF_HOSTS[0]
    reached: Event = field(default_factory=Event)
    passed: Event = field(default_factory=Event)

    def begin(self, fault: HostFault) -> None:
        self.fault, self.whole = fault, Counter()
        self.reached, self.passed = Event(), Event()

    def respond(self, seen: Seen, _number: int) -> bytes | Flow:
        asked, fault = seen.body["model"], self.fault
        phase, good = self._work(asked, seen)
        struck = phase == fault.phase and asked in fault.victims
        if struck and fault.reply:
            return REPLIES[fault.reply](good)
        self.whole[asked, phase] += 1
        if not struck or fault.act is None or self.passed.is_set():
            return good
        self.reached.set()
        return Flow(lambda: [good], silence_seconds=HELD_SECONDS)


@dataclass(frozen=True)
class Observation:
    """One run on one host. `told`: what its caller was told at the end; `first`: when the process was lost before."""

    host: HostName
    state: str
    reason: str
    told: Told
    first: Told | None
    events: dict[str, list[str]]
    resumed: int
    message: str
    """What the run's record says of its end and of its agents."""

    @property
    def ending(self) -> str:
        lost = f"{self.first.code.rpartition(' ')[2]} > " if self.first else ""
        again = ", resumed" if self.resumed else ""
        return f"{lost}{self.state} {self.reason}".strip() + again

    def __str__(self) -> str:
        digest = digest_events(self.events) if self.events else "-"
        return f"{self.host:8} {self.ending:32} {self.told.code:34} {digest:8}  {self.message[:160]}"


@dataclass
class Stage:
    """All hosts, with a place of its own for each run."""

    home: TempHome
    machines: Cluster
    models: StruckModels
    _runs: int = 0

    def observe(self, name: HostName, fault: HostFault) -> Observation:
        """Have one run executed by a host, with one fault."""
        host = self._choose(name)
        try:
            return self._observe(host, fault)
        finally:
            if name != "worker":
                host.home.close()

    def _choose(self, name: HostName) -> Host:
        self._runs += 1
        work = self.home.work / str(self._runs)
        work.mkdir(parents=True)
        if name == "worker":
            return InCluster(replace(self.machines.home, work=work), machines=self.machines)
        own = replace(self.home, path=self.home.path.with_name(f"home-{self._runs}"), work=work)
        return Background(own) if name == "runner" else OwnProcess(own, name)

    def _observe(self, host: Host, fault: HostFault) -> Observation:
        self.models.begin(fault)
        host.begin(self._write_config(host.home, fault), QUESTION)
        if fault.act is not None:
            poll_until(self.models.reached.is_set)
            fault.act(host, self.machines)
        self.models.passed.set()
        told, first = host.finish(), None
        view = host.look()
        if view is not None and not view.ended:
            told, first = host.resume(), told
            view = host.look()
        if view is None:
            code = find_refusal(told)
            return Observation(host.name, "refused", code, told, None, {}, 0, remove_accidents(told.words, host.home))
        run = view.snapshot
        reason = str(getattr(run.end, "reason", "") or (run.state == "completed" and run.work_done.failure) or "")
        events = order_events(view.directory.event_log.read())
        message = remove_accidents(describe_end(run), host.home)
        return Observation(host.name, run.state, reason, told, first, events, run.resumed, message)

    def _write_config(self, home: TempHome, fault: HostFault) -> str:
        price = {"input_usd_per_million": 1, "output_usd_per_million": 1}
        address = f"{self.models.url}/{self._runs}"  # a worker remembers the limits and faults of an address
        backend = {"type": "chatcompletion", "base_url": address, "price": price, **fault.backend}
        backend = {name: value for name, value in backend.items() if value is not None}
        agents = fault.team or [{"id": name, "backend": {**backend, "model": name}} for name in TEAM]
        settings = dict(fault.settings)
        fault.prepare(home, settings)
        return home.config("team", *agents, orchestrator=settings, **fault.config)


def find_refusal(told: Told) -> str:
    """Return the code of the error that kept a run from beginning."""
    return told.cause or told.words.partition("ERROR ")[2].partition(":")[0] or told.code


def describe_end(run: RunState) -> str:
    lost = [f"{name}: {reason} ({text})" for name, reason, text in run.degraded]
    return "; ".join(filter(None, [getattr(run.end, "message", ""), *run.work_done.weak, *lost]))


@contextmanager
def staged(home: TempHome) -> Generator[Stage]:
    """A worker with a PostgreSQL of its own, which may be stopped, and places for the other hosts."""
    server = PostgresServer()
    models = StruckModels()
    home = home.with_variables(**{KEY_VARIABLE: "strange-key-of-a-stranger"})
    with ExitStack() as cleanup:
        cleanup.callback(server.remove)
        cleanup.enter_context(serving(models))
        machines = cleanup.enter_context(cluster(replace(home, path=home.path.with_name("cluster")), server))
        machines.add_worker()
        yield Stage(home, machines, models)


# -- differences ------------------------------------------------------------------------------------------------------


def find_differences(fault: HostFault, seen: Sequence[Observation]) -> Iterator[str]:
    """Find where a host does otherwise than documented, or than the others that end a run in the same way."""
    for one in seen:
        if one.ending != fault.ends[one.host]:
            yield f"{one.host} ended with {one.ending!r} and not {fault.ends[one.host]!r}"
        code = find_code("massgen" if one.first else one.host, one.state, one.reason)
        if one.host in OWN_PROCESSES[1:] and one.state == "cancelled" and fault.name == "Ctrl-C":
            code = "KeyboardInterrupt"
        if one.told.code != code:
            yield f"{one.host} told {one.told.code!r} and not {code!r}"
    first = seen[0]
    for one in seen[1:]:
        if fault.ends[one.host].rpartition("> ")[2] != fault.ends[first.host].rpartition("> ")[2]:
            continue
        if not says_same(one.message, first.message):
            yield f"{one.host} says {one.message!r}, and {first.host} {first.message!r}"
        for name, events in one.events.items():
            if one.host not in fault.apart and (others := first.events.get(name)) != events:
                yield f"events of {name} on {one.host}: {events}; on {first.host}: {others}"


def says_same(one: str, other: str) -> bool:
    """A command adds to a refusal which of its options help."""
    shorter, longer = sorted(map(strip_refusal, (one, other)), key=len)
    return bool(shorter) == bool(longer) and longer.startswith(shorter)


def strip_refusal(words: str) -> str:
    """Return the words of a refusal without what a host puts before them."""
    return re.sub(r"^(ERROR \w+|litellm\.\w+): ", "", words)


async def compare_hosts(_: TempHome) -> str:
    """Compare the hosts in a process of its own: commands need its main thread."""
    done = await anyio.run_process([sys.executable, "-m", __name__], check=False)
    table = done.stdout.decode()
    assert done.returncode == 0, table + done.stderr.decode()
    return table.splitlines()[-1]


def main(arguments: Sequence[str]) -> int:
    chosen = [fault for fault in FAULTS_OF_HOSTS if not arguments or fault.name in arguments]
    differences = 0
    with tempfile.TemporaryDirectory(prefix="massgen-hosts-") as directory:
        home = TempHome(Path(directory) / "home", Path(directory) / "work")
        home.work.mkdir()
        with staged(home) as stage:
            for fault in chosen:
                seen: list[Observation] = []
                for name in HOSTS:
                    seen.append(stage.observe(name, fault))
                    print(f"{fault.name:28} {seen[-1]}", flush=True)
                for difference in find_differences(fault, seen):
                    differences += 1
                    print(f"  DIFFERS: {difference}", flush=True)
    print(f"{len(chosen)} faults x {len(HOSTS)} hosts, {differences} differences without a reason")
    return min(1, differences)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
