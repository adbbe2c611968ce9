"""Commands that do their worst, ended in every way there is: is anything of them left, and is the host as it was?

Each is bounded by the sandbox it runs in. A command is told by a mark that stands in its arguments, and so in those of
every process that is forked from it.
"""

import secrets
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from massgen_mcp.sandbox import LevelName
from tests.commands import ROOT
from tests.harness import TempHome
from tests.sandbox.at_work import Hands, end_living, hands, living
from tests.sandbox.table import LEVELS

GONE_SECONDS = 2.0
PATIENCE_SECONDS = 30.0
HOSTILE = {
    "fork bomb": "f() { f | f & }; f; sleep 60",
    "disk filler": "i=0; while :; do i=$((i+1)); head -c 4000000 /dev/zero > fill$i; done",
    "output flood": "exec yes $(head -c 2000 /dev/zero | tr '\\0' x)",
    "session leaver": "for i in 1 2 3; do setsid sh -c 'sleep 60; : $0' $MARK & done; sleep 60",
    "deaf to signals": "trap '' TERM HUP INT QUIT; while :; do sleep 60 & wait; done",
    "daemon": "(setsid sh -c 'trap \"\" TERM HUP; (sleep 60; : $0) > /dev/null 2>&1 < /dev/null &' $MARK &) ; sleep 60",
}
End = Callable[["Trial"], Awaitable[None]]


@dataclass
class Toll:
    """What came of all trials; `slow` and `left` must be 0."""

    trials: int = 0
    seconds: list[float] = field(default_factory=list[float])
    slow: int = 0
    """Trials in which something lived on for longer than it may."""
    left: list[str] = field(default_factory=list[str])
    """Trials in which something lived on."""


@dataclass
class Trial:
    """One hostile command that runs, and how long its last process lived on after it was ended."""

    level: LevelName
    directory: Path
    command: str
    mark: str
    seconds: float = 0.0

    async def gone(self) -> None:
        """Wait until nothing of the command is left; ends it itself if that does not come."""
        began = time.monotonic()
        while living(self.mark) and time.monotonic() - began < PATIENCE_SECONDS:
            await anyio.sleep(0.005)
        self.seconds = time.monotonic() - began
        if self.seconds >= PATIENCE_SECONDS:
            end_living(self.mark)

    async def begun(self) -> None:
        """Wait until the command is at it."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not living(self.mark) and time.monotonic() < deadline:
            await anyio.sleep(0.005)
        await anyio.sleep(0.1)


async def by_cancelling(trial: Trial) -> None:
    began = 0.0
    async with hands(trial.directory, trial.level) as agent, anyio.create_task_group() as tasks:
        tasks.start_soon(_run, agent, trial.command, 60.0)
        await trial.begun()
        began = time.monotonic()
        tasks.cancel_scope.cancel()
    cancelled = time.monotonic() - began
    await trial.gone()
    trial.seconds += cancelled


async def by_its_time_limit(trial: Trial) -> None:
    async with hands(trial.directory, trial.level) as agent:
        began = time.monotonic()
        await _run(agent, trial.command, 0.3)
        late = max(0.0, time.monotonic() - began - 0.3)
    await trial.gone()
    trial.seconds += late


async def by_killing_whoever_runs_it(trial: Trial) -> None:
    await _kill(trial, trial.level)


async def by_killing_a_bare_shell(trial: Trial) -> None:
    """The known-bad twin: its commands are harmless, and bounded by nothing."""
    await _kill(trial, "bare")


ENDS: dict[str, End] = {
    "cancel": by_cancelling,
    "time limit": by_its_time_limit,
    "kill -9": by_killing_whoever_runs_it,
}


async def commands(
    home: TempHome,
    *,
    each: int,
    levels: Sequence[LevelName] = LEVELS,
    most_seconds: float = GONE_SECONDS,
    hostile: Mapping[str, str] = HOSTILE,
    ends: Mapping[str, End] = ENDS,
) -> str:
    """`each` trials of every hostile command in every level, the ways to end it in turn. Returns the figures. All the
    while a process of the host goes on, which nothing may harm.
    """
    toll = Toll()
    before = _groups()
    async with _host() as bystander:
        for level in levels:
            for name, command in hostile.items():
                for number in range(each):
                    way = [*ends][number % len(ends)]
                    await _try(home, toll, level, f"{name} in {level}, {way}", command, ends[way], most_seconds)
        assert bystander.poll() is None, "a process of the host was ended"
    await _until(lambda: _groups() <= before)  # a supervisor whose master was killed has a little left to do
    assert _groups() <= before, "control groups were left behind"
    assert not toll.left, toll.left
    assert not toll.slow, f"{toll.slow} of {toll.trials} were slow: {sorted(toll.seconds)[-10:]}"
    worst, middle = max(toll.seconds), statistics.median(toll.seconds)
    told = f"{toll.trials} hostile commands in {' and '.join(levels)}, each ended by {', '.join(ends)}"
    return f"{told}: 0 left, gone after {middle:.2f} s (median), {worst:.2f} s (worst); the host unharmed"


async def _try(
    home: TempHome, toll: Toll, level: LevelName, name: str, command: str, end: End, most_seconds: float
) -> None:
    directory = home.work / f"trial-{secrets.token_hex(4)}"
    mark = f"mark-{secrets.token_hex(8)}"
    trial = Trial(level, directory, f"MARK={mark}; {command}", mark)
    try:
        await end(trial)
    finally:
        end_living(mark)
        shutil.rmtree(directory, ignore_errors=True)
    toll.trials += 1
    toll.seconds.append(trial.seconds)
    toll.slow += trial.seconds > most_seconds
    if trial.seconds >= PATIENCE_SECONDS:
        toll.left.append(name)


async def _run(agent: Hands, command: str, seconds: float) -> None:
    await agent.run(command, timeout_seconds=seconds)


async def _kill(trial: Trial, level: str) -> None:
    holder = _start("-m", "tests.soak.hostile_holder", level, str(trial.directory), trial.command)
    try:
        # The mark stands in the holder's own arguments, too.
        await _until(lambda: set(living(trial.mark)) - {holder.pid} != set())
        await anyio.sleep(0.1)
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    await trial.gone()


async def _until(come: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not come() and time.monotonic() < deadline:
        await anyio.sleep(0.005)


@asynccontextmanager
async def _host() -> AsyncGenerator["subprocess.Popen[bytes]"]:
    """Somebody else's process."""
    bystander = _start("-c", "import time; time.sleep(86400)")
    try:
        yield bystander
    finally:
        bystander.kill()
        bystander.wait()


def _start(*arguments: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, *arguments], cwd=ROOT)


def _groups() -> set[str]:
    return {str(path) for path in Path("/sys/fs/cgroup").glob("**/massgen-*")}


async def swaps(home: TempHome, *, each: int, levels: Sequence[LevelName] = LEVELS) -> str:
    """A command that swaps a directory for a link out, and back, while it reads and writes through it: `each` swaps in
    every level. Returns the figures; raises if one of them led out.
    """
    for level in levels:
        directory = home.work / f"swaps-{level}"
        outside = home.work / f"outside-{level}"
        outside.mkdir()
        (outside / "secret.txt").write_text("closed")
        before = (outside.stat().st_mtime_ns, (outside / "secret.txt").stat().st_mtime_ns)
        async with hands(directory, level) as agent:
            agent.workspace.root.write_bytes("swap.py", _SWAP.encode())
            told = await agent.run(f"python3 swap.py {outside} {each}", timeout_seconds=3600)
        assert told.endswith(f"{each} swaps, 0 out"), f"{level}: {told[-300:]}"
        after = (outside.stat().st_mtime_ns, (outside / "secret.txt").stat().st_mtime_ns)
        assert after == before, f"{level}: something was written outside"
        assert [path.name for path in outside.iterdir()] == ["secret.txt"]
    return f"{each} swaps in {' and in '.join(levels)}: 0 read or written outside"


_SWAP = """
import os, sys, threading
outside, swaps = sys.argv[1], int(sys.argv[2])
os.mkdir("fine"); open("fine/secret.txt", "w").write("fine"); os.symlink(outside, "out")
os.rename("fine", "door")
over = threading.Event()
def swap():
    for _ in range(swaps // 2):
        os.rename("door", "fine"); os.rename("out", "door")
        os.rename("door", "out"); os.rename("fine", "door")
    over.set()
threading.Thread(target=swap).start()
out = 0
while not over.is_set():
    for act in (lambda: open("door/secret.txt").read() == "closed", lambda: open("door/new.txt", "w").close(),
                lambda: os.chmod("door/secret.txt", 0o600), lambda: os.utime("door/secret.txt", (1, 1))):
        try:
            out += act() is True
        except OSError:
            pass
print(f"{swaps} swaps, {out} out")
"""
