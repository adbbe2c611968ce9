"""Death, EIO and ENOSPC at the k-th write, sync or rename of everything that takes part in a run, for every k.

`strace` puts the fault into server-side start and runner alike (it counts per thread). Afterwards, without a fault, the
same start under the same key must give one whole run that completes.
"""

import random
import shutil
import signal
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio
import anyio.to_thread

from massgen_mcp.config.loader import load_config
from massgen_mcp.errors import MassgenError
from massgen_mcp.events.run import RunCompleted, RunFailed
from massgen_mcp.home import Home
from massgen_mcp.run_state.status import TERMINAL_STATES
from massgen_mcp.runs.engine.journal import JournalReader
from massgen_mcp.runs.service import RunService
from massgen_mcp.runs.store.opening import local_engine
from tests.commands import starting_by
from tests.harness import TempHome, agent, end
from tests.run_requests import asked
from tests.soak.subject import QUESTION

KINDS = {
    "write": "write,writev",
    "pwrite": "pwrite64",
    "sync": "fsync,fdatasync",
    "rename": "rename,renameat,renameat2",
    "make": "mkdir,mkdirat",
}
"""The calls that change what is stored."""
FAULTS = {
    "death": "signal=KILL:when={k}",
    "EIO once": "error=EIO:when={k}",
    "EIO for ever": "error=EIO:when={k}+",
    "ENOSPC once": "error=ENOSPC:when={k}",
    "ENOSPC for ever": "error=ENOSPC:when={k}+",
}
INTERPRETER = sys.executable
"""Of what a fault is put into: the calls of a copy are not seen by strace."""
PATIENCE = 60
SHORTEST = 6
AS_LONG_AS = 2
"""What a fault was put into is ended after so many seconds and so many times as long as a run without a fault took, if
it has not ended by itself."""
AT_ONCE = 2


@dataclass(frozen=True)
class Fault:
    kind: str
    name: str
    k: int

    def __str__(self) -> str:
        return f"{self.name} at {self.kind} {self.k}"


@dataclass
class Findings:
    tried: int = 0
    refused: int = 0
    """Starts that were refused with a typed error."""
    acknowledged: int = 0
    failed: int = 0
    """Runs that ended as failed, with a reason, and say so."""
    bad: list[str] = field(default_factory=list[str])

    def judged(self) -> str:
        told = (
            f"{self.tried} faults: {self.acknowledged} starts acknowledged, {self.refused} refused with a typed error, "
            f"{self.failed} runs failed with a reason, {len(self.bad)} bad states"
        )
        assert not self.bad, f"{told}: {'; '.join(self.bad)}"
        return told


def every_fault(most: dict[str, int]) -> list[Fault]:
    """All faults up to the highest k that a run reaches; `most` as `count_calls` gives it."""
    return [Fault(kind, name, k) for kind, last in most.items() for name in FAULTS for k in range(1, last + 1)]


async def storage_faults(home: TempHome, *, only: str = "", sample: int | None = None, seed: int = 1) -> str:
    """Try every fault whose name begins with `only`, or a random `sample` of them, up to the first bad state; returns
    the figures.
    """
    config = home.config(
        "team",
        agent("one", {"call": "write_file", "arguments": {"path": "a.txt", "content": "a"}}, {"answer": "42"}),
        agent("two", {"answer": "forty-two"}),
    )
    began = anyio.current_time()
    most = await count_calls(home, config)
    longest = SHORTEST + AS_LONG_AS * (anyio.current_time() - began)
    faults = [fault for fault in every_fault(most) if str(fault).startswith(only)]
    if sample is not None:
        faults = random.Random(seed).sample(faults, sample)
    findings = Findings()
    limiter = anyio.CapacityLimiter(AT_ONCE)

    async def trial(number: int, fault: Fault) -> None:
        async with limiter:
            place = replace(home, path=home.path / f"fault-{number}")
            try:
                await _try(place, config, fault, findings, longest=longest)
            finally:
                await anyio.to_thread.run_sync(place.close)
            shutil.rmtree(place.path, ignore_errors=True)
            if findings.bad:
                tasks.cancel_scope.cancel()

    with starting_by(home.python):  # what goes on without a fault
        async with anyio.create_task_group() as tasks:
            for number, fault in enumerate(faults):
                tasks.start_soon(trial, number, fault)
    return findings.judged()


async def count_calls(home: TempHome, config: str) -> dict[str, int]:
    """How often the busiest thread makes the calls of each kind in a run without a fault."""
    place = replace(home, path=home.path / "counted")
    log = home.work / "calls"
    options = ["-ff", "-o", str(log), "-e", f"trace={','.join(KINDS.values())}"]
    await _under_strace(place, config, options, longest=PATIENCE)
    place.close()
    most: dict[str, int] = {}
    for kind, calls in KINDS.items():
        names = tuple(f"{call}(" for call in calls.split(","))
        made = [
            sum(line.startswith(names) for line in path.read_text(errors="replace").splitlines())
            for path in home.work.glob("calls.*")
        ]
        most[kind] = max(made)
    return most


async def _try(home: TempHome, config: str, fault: Fault, findings: Findings, *, longest: float) -> None:
    inject = f"inject={KINDS[fault.kind]}:{FAULTS[fault.name].format(k=fault.k)}"
    options = ["-o", "/dev/null", "-e", f"trace={KINDS[fault.kind]}", "-e", inject]
    told, complaints, code = await _under_strace(home, config, options, longest=longest)
    findings.tried += 1
    findings.acknowledged += bool(told)
    findings.refused += code == 3
    if "Traceback" in complaints:
        findings.bad.append(f"{fault}: untyped error {complaints[-300:]!r}")
    service = RunService(local_engine(Home(home.path, runner_idle_seconds=0.5)), home.environ)
    try:
        view, _ = await service.start(
            await service.prepare(asked(QUESTION, load_config(Path(config), environ={}), source=config, key="key"))
        )
        run_id = view.row.run_id
        if told and told[-1] != run_id:
            findings.bad.append(f"{fault}: the acknowledged run {told[-1]} is lost")
        with anyio.move_on_after(PATIENCE):
            while view.row.state not in TERMINAL_STATES:
                view = await service.watcher.wait(run_id, until="terminal", seconds=5, cursor=None)
        records = JournalReader(home.run_directory(run_id) / "events.jsonl").read()
        ends = [record.event for record in records if isinstance(record.event, RunCompleted | RunFailed)]
        if [record.seq for record in records] != list(range(1, len(records) + 1)) or len(ends) != 1:
            findings.bad.append(f"{fault}: {len(records)} events, {len(ends)} ends, state {view.row.state}")
        findings.failed += any(isinstance(end, RunFailed) for end in ends)
    except MassgenError as error:
        findings.bad.append(f"{fault}: {error.code} after the fault is gone: {error}")
    finally:
        service.close()


async def _under_strace(
    home: TempHome, config: str, options: list[str], *, longest: float
) -> tuple[list[str], str, int | None]:
    """What the subject printed, what it complained of, and its exit code; None if it, or its runner, had to be ended.

    A runner that waits for its storage to come back does not leave by itself.
    """
    command = ["strace", "-f", "-qq", "--seccomp-bpf", *options]
    subject = [INTERPRETER, "-m", "tests.soak.subject", config, "key"]
    environ = {**home.environ, "MASSGEN_MCP_RUNNER_IDLE_SECONDS": "0.5"}
    work = home.path.with_name(f"{home.path.name}-told")
    work.mkdir(parents=True, exist_ok=True)
    with (work / "out").open("wb") as out, (work / "err").open("wb") as err:
        process = await anyio.open_process([*command, *subject], env=environ, stdout=out, stderr=err)
        try:
            with anyio.move_on_after(longest):
                await process.wait()
            code = process.returncode
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(home.close)
                if process.returncode is None:
                    end(process.pid, signal.SIGKILL)
                await process.aclose()
    told = [(work / name).read_text(errors="replace") for name in ("out", "err")]
    shutil.rmtree(work)
    return told[0].split(), told[1], code
