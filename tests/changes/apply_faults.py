"""What happens when an apply is cut off at any of its steps: a program of its own, which forks.

`python -m tests.changes.apply_faults DIRECTORY KIND [EVERY]` applies one patch again and again, each time with a fault at the
next of the system calls that change something; `strace` puts it in. Afterwards the next command must find the person's
directory as it was before, or with the whole patch.
"""

import ctypes
import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from massgen_mcp.changes.applied import AppliedRecords
from massgen_mcp.errors import MassgenError
from massgen_mcp.runs.applying import Application, apply_patch, undo_patch
from tests.changes.apply_cases import Case
from tests.changes.apply_play import Stage, everything_in, prepared

CALLS = ("rename", "renameat2", "mkdirat", "unlinkat", "symlinkat", "fchmod", "fsync", "syncfs")
"""Those that change something, and those that make it last."""
FAULTS = {
    "kill": "signal=KILL:when={k}",
    "full": "error=ENOSPC:when={k}",
    "full for ever": "error=ENOSPC:when={k}+",
    "broken": "error=EIO:when={k}",
}
CASE = Case(
    "all kinds of steps",
    "sed -i 's/^9$/last/' lines.txt; rm -r docs; echo x > docs; rm link; mkdir link; echo x > link/x; chmod +x open.txt; "
    "ln -s lines.txt new; mv src/a.txt moved.txt; rm src/deep/only.txt",
    person="sed -i 's/^1$/first/' lines.txt; git add lines.txt; echo mine > mine",
)
_PR_SET_PTRACER = 0x59616D61


@dataclass
class Found:
    tried: int = 0
    taken_back: int = 0
    happened: int = 0
    bad: list[str] = field(default_factory=list[str])

    def told(self, kind: str) -> str:
        return (
            f"{kind}: {self.tried} faults; nothing was changed after {self.taken_back}, all after {self.happened}; "
            f"{len(self.bad)} bad {self.bad}"
        )


def every_fault(kind: str, directory: Path, every: int = 1) -> Found:
    """At every step, or at one of so many of each kind."""
    stage = prepared(CASE, directory)
    before = everything_in(stage.root.parent)
    assert apply(stage).state == "applied"
    after = everything_in(stage.root.parent)
    undo_patch(stage.home, stage.patch, dry_run=False)
    found = Found()
    for call in CALLS:
        for k in itertools.count(1, every):
            if not under_fault(lambda: apply(stage), call, FAULTS[kind].format(k=k)):
                break
            found.tried += 1
            apply(stage, dry_run=True)  # the next command
            now = everything_in(stage.root.parent)
            applied = bool(AppliedRecords(stage.patch.changes.directory).read())
            if now == after and applied:
                found.happened += 1
            elif now == before and not applied:
                found.taken_back += 1
                continue
            else:
                found.bad.append(
                    f"{call} {k}: {sorted(path for path in now | before if now.get(path) != before.get(path))}"
                )
                return found
            undo_patch(stage.home, stage.patch, dry_run=False)
        undo_patch(stage.home, stage.patch, dry_run=False)  # the last one met no fault
    return found


def apply(stage: Stage, *, dry_run: bool = False) -> Application:
    return apply_patch(stage.home, stage.patch, dry_run=dry_run)


def under_fault(do: Callable[[], Application], call: str, fault: str) -> bool:
    """Whether the fault came to pass: the process died, or something was refused."""
    ready, go = os.pipe()
    child = os.fork()
    if child == 0:
        _traceable()
        os.close(go)
        os.read(ready, 1)
        try:
            state = do().state
        except MassgenError:
            state = "refused"
        os._exit(0 if state == "applied" else 3)
    os.close(ready)
    options = ["-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:{fault}"]
    with subprocess.Popen(["strace", *options, "-p", str(child)], stderr=subprocess.DEVNULL) as strace:
        while not traced(child) and strace.poll() is None:
            time.sleep(0.001)
        os.write(go, b"x")
        os.close(go)
        _, status = os.waitpid(child, 0)
    return status != 0


def traced(pid: int) -> bool:
    return "TracerPid:\t0\n" not in Path(f"/proc/{pid}/status").read_text()


def _traceable() -> None:
    """By a process that is not above this one."""
    ctypes.CDLL(None).prctl(_PR_SET_PTRACER, ctypes.c_ulong(-1), 0, 0, 0)


def main() -> None:
    found = every_fault(sys.argv[2], Path(sys.argv[1]), int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    print(found.told(sys.argv[2]))
    sys.exit(bool(found.bad))


if __name__ == "__main__":
    main()
