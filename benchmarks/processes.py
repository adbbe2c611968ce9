"""Processes: their CPU time, their memory, their end; and which one is the runner of a state directory. Linux only.

Must not know MCP or models.
"""

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from massgen_mcp.home import HOME_VARIABLE, IDLE_VARIABLE

RUNNER_MODULES = {b"massgen_mcp.runs.host.runner", b"massgen_mcp.runs.runner"}
"""As it is called now, and was until November 2026."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A command that has ended. Seconds, and the peak of its resident memory in MiB: never less than ours when we
    started it (a child begins in its parent's memory), so it says nothing about small commands.
    """

    wall: float
    cpu: float
    peak: float
    output: str


def environment(home: Path) -> dict[str, str]:
    """The environment of processes: this state directory, whose configs are the person's own, and nothing of ours that
    could change what they do (proxies, keys).

    A runner that we should ever lose leaves by itself after the idle time.
    """
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(home),
        "MASSGEN_CONFIG_HOME": str(home),
        HOME_VARIABLE: str(home),
        IDLE_VARIABLE: "30",
    }


def finish(command: Sequence[str], *, directory: Path, environ: dict[str, str], quiet: bool = False) -> Finished:
    """Run a command to its end; `quiet`: what it says on standard error is lost. Raises `RuntimeError` if it fails."""
    began = time.perf_counter()
    unheard = subprocess.DEVNULL if quiet else None
    with subprocess.Popen(
        command, cwd=directory, env=environ, stdout=subprocess.PIPE, stderr=unheard, text=True
    ) as process:
        assert process.stdout is not None
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} exited with {process.returncode}:\n{output}")
    return Finished(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, output)


def cpu_seconds(pid: int) -> float:
    """CPU time of a living process so far, all its threads, in seconds: the clock of `clock_getcpuclockid(3)`."""
    return time.clock_gettime((~pid << 3) | 2)


def tree_cpu_seconds(pid: int) -> float:
    """CPU time of a process and of its children so far, ended ones included, in seconds."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[13:15]  # of those that ended
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    ended = (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
    living = 0.0
    for each in (pid, *map(int, children)):
        with suppress(OSError):
            living += cpu_seconds(each)
    return ended + living


def peak_mib(pid: int) -> float:
    """The most memory that was ever resident at once in a living process (VmHWM), in MiB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"process {pid} has no memory any more")


def runner_pids(home: Path) -> list[int]:
    """The runners of this state directory.

    They are nobody's children and write their process id nowhere, so they are told by their command line and by the
    state directory in their environment.
    """
    wanted = f"{HOME_VARIABLE}={home}".encode()
    found: list[int] = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command = (process / "cmdline").read_bytes().split(b"\0")
            if not RUNNER_MODULES.isdisjoint(command) and wanted in (process / "environ").read_bytes().split(b"\0"):
                found.append(int(process.name))
    return found


def end(pid: int, patience: float = 10.0) -> None:
    """End a process that is not our child: ask, then after `patience` seconds force it."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + patience
        while _lives(pid):
            if time.monotonic() > deadline:
                os.kill(pid, signal.SIGKILL)
                return
            time.sleep(0.01)


def _lives(pid: int) -> bool:
    """A zombie does not live; whose it is has to bury it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
