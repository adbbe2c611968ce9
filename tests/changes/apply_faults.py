"""What happens when an apply is cut off at any of its steps: a program of its own, which forks.

`python -m tests.changes.apply_faults DIRECTORY KIND [EVERY|mount]` applies one patch again and again, each time with a
fault at the next of the system calls that change something; `strace` puts it in. Afterwards the next command must find
the person's directory as it was before, or with the whole patch.
"""

import ctypes
import itertools
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import NamedTemporaryFile

from massgen_mcp.changes.apply_records import AppliedRecords
from massgen_mcp.changes.base import ContextDirectory
from massgen_mcp.changes.choosing import Patch
from massgen_mcp.changes.run_changes import RunChanges
from massgen_mcp.errors import MassgenError
from massgen_mcp.home import Home
from massgen_mcp.runs.patches.application import Application
from massgen_mcp.runs.patches.applying import RunPatch, apply_patch, undo_patch
from tests.changes.apply_cases import ATTRIBUTES, Case
from tests.changes.apply_play import Stage, everything_in, prepared, template
from tests.faults import can_mount, no_larger_files_than

CALLS = ("rename", "renameat2", "mkdirat", "unlinkat", "symlinkat", "fchmod", "fsync", "syncfs")
"""Those that change something, and those that make it last."""
TWICE = "kill while it is taken back"
FAULTS = {
    "kill": "signal=KILL:when={k}",
    TWICE: "signal=KILL:when={k}",
    "full": "error=ENOSPC:when={k}",
    "full for ever": "error=ENOSPC:when={k}+",
    "broken": "error=EIO:when={k}",
}
CASE = Case(
    "all kinds of steps",
    "sed -i 's/^9$/last/' lines.txt; rm -r docs; echo x > docs; rm link; mkdir link; echo x > link/x; "
    "chmod +x open.txt; ln -s lines.txt new; mv src/a.txt moved.txt; rm src/deep/only.txt",
    person="sed -i 's/^1$/first/' lines.txt; git add lines.txt; echo mine > mine",
    before=f"{ATTRIBUTES}",
)
_PR_SET_PTRACER, _ANYBODY = 0x59616D61, -1
POLL_SECONDS = 0.001
ROOM = 2 * 1024 * 1024
LAYERS = {"lowerdir": "image", "upperdir": "layer", "workdir": "work"}


@dataclass
class Found:
    tried: int = 0
    taken_back: int = 0
    happened: int = 0
    bad: list[str] = field(default_factory=list[str])

    def told(self) -> str:
        return (
            f"{self.tried} faults; nothing was changed after {self.taken_back}, all after {self.happened}; "
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
            if kind == TWICE:
                assert under_fault(partial(apply, stage), "renameat2", "signal=KILL:when=12")
            do = partial(apply, stage, dry_run=kind == TWICE)
            state = under_fault(do, call, FAULTS[kind].format(k=k))
            if state is None:
                break
            found.tried += 1
            now = everything_in(stage.root.parent)
            if (state == "refused" and now != before) or (state == "applied" and now != after):
                found.bad.append(f"{call} {k}: told {state}, which is not so")
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
        if kind != TWICE:
            undo_patch(stage.home, stage.patch, dry_run=False)  # the last one met no fault
    return found


def meanwhile(directory: Path) -> str:
    """What comes of an apply if the person changes a file while it goes on."""
    stage = prepared(CASE, directory)
    before = everything_in(stage.root.parent)
    child = Child(partial(apply, stage))
    with child.stopped_at("renameat2", 1, directory):
        (stage.root / "lines.txt").write_text("mine\n")
    state = child.state()
    now = everything_in(stage.root.parent)
    others = {path for path in now | before if now.get(path) != before.get(path)} - {"person/lines.txt"}
    return f"{state}; the file is {(stage.root / 'lines.txt').read_text()!r}, others changed: {sorted(others)}"


def changed_after_a_kill(directory: Path) -> str:
    """What comes of files that the person changes, and of a directory that is removed, after an apply was killed in the
    middle.
    """
    case = Case("two files", "sed -i 's/^9$/last/' lines.txt; echo team >> src/a.txt; echo team >> docs/alone.txt")
    stage = prepared(case, directory)
    before = everything_in(stage.root.parent)
    assert under_fault(partial(apply, stage), "renameat2", "signal=KILL:when=6")
    assert everything_in(stage.root.parent) != before
    (stage.root / "lines.txt").write_text("mine\n")
    shutil.rmtree(stage.root / "docs")
    (settled,) = apply(stage, dry_run=True).settled
    now = everything_in(stage.root.parent)
    others = {path for path in now | before if now.get(path) != before.get(path) and ".massgen-apply-" not in path}
    kept = [path.removeprefix(f"{stage.root}/") for path in settled.kept]
    aside = sorted(
        (stage.root / path).read_text().splitlines()[-1] for path in kept if path.startswith(".massgen-apply-")
    )
    kept = [*(path for path in kept if not path.startswith(".massgen-apply-")), *aside]
    return f"kept {kept}, {(stage.root / 'lines.txt').read_text()!r}; changed {sorted(others)}"


def replace_by_link(directory: Path) -> str:
    """Replace a directory by a link to another one while an apply goes on, and tell what comes of it."""
    stage = prepared(Case("two files", "echo team >> lines.txt; echo team >> src/a.txt"), directory)
    source, elsewhere = stage.root / "src", directory / "elsewhere"
    shutil.copytree(source, elsewhere)
    before = everything_in(elsewhere)
    child = Child(partial(apply, stage))
    with child.stopped_at("renameat2", 1, directory):
        source.rename(directory / "aside")
        source.symlink_to(elsewhere)
    return f"{child.state()}; elsewhere as before: {everything_in(elsewhere) == before}"


def two_at_once(directory: Path) -> str:
    """What comes of two applies of the same patch, the second of which begins in the middle of the first."""
    stage = prepared(CASE, directory)
    first = Child(partial(apply, stage))
    with first.stopped_at("renameat2", 1, directory):
        second = Child(partial(apply, stage))
        second.go()
    return (
        f"{first.state()}, {second.state()}; applied {len(AppliedRecords(stage.patch.changes.directory).read())} time"
    )


def kill_in_two_directories(directory: Path) -> str:
    """Kill a change in two directories at each of its renames, and tell what the next command leaves of it."""
    place, workspace = directory / "place", directory / "run" / "workspace"
    names = ("one", "two")
    for name in names:
        (place / name).mkdir(parents=True)
        (place / name / "file.txt").write_text("old\n")
    workspace.mkdir(parents=True)
    changes = RunChanges(directory / "run" / "changes")
    base, refused = changes.begin([ContextDirectory(name, place / name, writable=True) for name in names], [workspace])
    assert base is not None, refused
    for name in names:
        (workspace / name / "file.txt").write_text("new\n")
    tree = changes.outcome(base, workspace).tree
    stage = Stage(
        place, place, Home(directory / "home"), RunPatch("run", changes, Patch(base.directories, base.id, tree))
    )
    before, seen = everything_in(place), set[str]()
    for k in itertools.count(1):
        if under_fault(partial(apply, stage), "renameat2", f"signal=KILL:when={k}") is None:
            break
        new = [name for name in names if "new\n" in map(Path.read_text, (place / name).glob("file.txt"))]
        apply(stage, dry_run=True)
        seen.add(f"{new} new, then all as before: {everything_in(place) == before}")
    return "; ".join(sorted(seen))


def on_a_small_disk(directory: Path) -> str:
    """As `small_disk`, on a file system of its own where one can be mounted; else no file can grow beyond a limit."""
    program = [sys.executable, "-m", "tests.changes.apply_faults", str(directory), "small disk"]
    mounting = ["unshare", "--mount", *(["--user", "--map-root-user"] if os.geteuid() else [])] if can_mount() else []
    done = subprocess.run(
        [*mounting, *program, *(["mount"] if mounting else [])], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def small_disk(directory: Path, *, mount: bool) -> str:
    """What comes of a patch that is larger than the room there is."""
    place = directory / "place"
    if mount:
        place.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={ROOM}", "none", str(place)], check=True)
    stage = prepared(Case("too large", f"echo x > new; head -c {2 * ROOM} /dev/zero > large; rm src/a.txt"), directory)
    before = everything_in(place)
    with nullcontext() if mount else no_larger_files_than(ROOM):
        try:
            came = apply(stage).state
        except MassgenError as error:
            came = error.code
    return f"{came}; byte-identical: {everything_in(place) == before}"


def in_a_container(directory: Path) -> str:
    """As `image`, where a file system can be mounted."""
    program = [sys.executable, "-m", "tests.changes.apply_faults", str(directory), "image"]
    mounting = ["unshare", "--mount", *(["--user", "--map-root-user"] if os.geteuid() else [])]
    return subprocess.run([*mounting, *program], check=True, capture_output=True, text=True).stdout.strip()


def image(directory: Path) -> str:
    """What comes of a patch that removes the last files of directories that belong to a container's image, where no
    directory can be moved; and of one that makes a file of such a directory.
    """
    subprocess.run(["mount", "-t", "tmpfs", "none", str(directory)], check=True)
    told: list[str] = []
    for name, team in (("removed", "rm -r src/deep docs; echo x > new"), ("a file", "rm -r docs; echo x > docs")):
        place = directory / name / "place"
        for one in ("image", "layer", "work", "place"):
            (directory / name / one).mkdir(parents=True)
        shutil.copytree(template(), directory / name / "image" / "person", symlinks=True)
        layers = ",".join(f"{what}={directory / name / one}" for what, one in LAYERS.items())
        subprocess.run(["mount", "-t", "overlay", "-o", layers, "none", str(place)], check=True)
        stage = prepared(Case(name, team), directory / name)
        before = everything_in(place)
        try:
            came = apply(stage).state
        except MassgenError as error:
            came = str(error).split(";")[0]
        left = [path for path in ("src/deep", "docs") if (stage.root / path).is_dir()]
        told.append(f"{came}; byte-identical: {everything_in(place) == before}; left {left}")
    told.append(mounted_from_elsewhere(directory / "mounted"))
    return "\n".join(told)


def mounted_from_elsewhere(directory: Path) -> str:
    """What comes of a patch of files that cannot be moved: one is mounted, another lies below a mount."""
    (directory / "elsewhere").mkdir(parents=True)
    stage = prepared(
        Case("mounted", "for name in lines.txt src/a.txt docs/alone.txt; do echo x >> $name; done"), directory
    )
    for name in ("lines.txt", "src"):
        there = directory / "elsewhere" / name
        (shutil.copytree if name == "src" else shutil.copyfile)(stage.root / name, there)
        subprocess.run(["mount", "--bind", str(there), str(stage.root / name)], check=True)
    came = apply(stage)
    return f"{came.state} {sorted(f'{one.path}: {one.reason}' for one in came.refused)}"


def apply(stage: Stage, *, dry_run: bool = False) -> Application:
    return apply_patch(stage.home, stage.patch, dry_run=dry_run)


STATES = ("applied", "clean", "unchanged", "conflicts", "refused", "unsettled")
"""`refused`: with the words that nothing was changed."""


class Child:
    """A process that applies as soon as it is told to."""

    def __init__(self, do: Callable[[], Application]) -> None:
        ready, self._go = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            ctypes.CDLL(None).prctl(_PR_SET_PTRACER, ctypes.c_ulong(_ANYBODY), 0, 0, 0)
            os.close(self._go)
            os.read(ready, 1)
            try:
                state = do().state
            except MassgenError as error:
                state = "refused" if str(error).startswith("nothing was changed") else "unsettled"
            os._exit(STATES.index(state))
        os.close(ready)

    @contextmanager
    def traced(self, call: str, fault: str, log: str = "/dev/null") -> Generator[None]:
        """With this fault in these system calls. It is not told to begin yet."""
        options = ["-q", "-o", log, "-e", f"trace={call}", "-e", f"inject={call}:{fault}"]
        with subprocess.Popen(["strace", *options, "-p", str(self.pid)], stderr=subprocess.DEVNULL) as strace:
            while not self._is_traced() and strace.poll() is None:
                time.sleep(POLL_SECONDS)
            yield

    @contextmanager
    def stopped_at(self, call: str, k: int, directory: Path) -> Generator[bool]:
        """It stands still while this is open, after the k-th of these system calls, and goes on then; False if it ended
        before that.
        """
        log = directory / "log"
        with self.traced(call, f"signal=STOP:when={k}", str(log)):
            self.go()
            while not (stopped := "stopped by SIGSTOP" in log.read_text()) and "exited with" not in log.read_text():
                time.sleep(POLL_SECONDS)
            yield stopped
            os.kill(self.pid, signal.SIGCONT)

    def go(self) -> None:
        os.write(self._go, b"x")
        os.close(self._go)

    def state(self) -> str:
        """What came of it; `killed` if it did not live to tell."""
        _, status = os.waitpid(self.pid, 0)
        return STATES[os.WEXITSTATUS(status)] if os.WIFEXITED(status) else "killed"

    def _is_traced(self) -> bool:
        return "TracerPid:\t0\n" not in Path(f"/proc/{self.pid}/status").read_text()


def under_fault(do: Callable[[], Application], call: str, fault: str) -> str | None:
    """What came of it; None if there was no such step."""
    child = Child(do)
    with NamedTemporaryFile() as log:
        with child.traced(call, fault, log.name):
            child.go()
            state = child.state()
        return state if state == "killed" or b"(INJECTED)" in Path(log.name).read_bytes() else None


def main() -> None:
    directory, kind, *rest = sys.argv[1:]
    match kind:
        case "meanwhile":
            print(meanwhile(Path(directory)))
        case "changed after a kill":
            print(changed_after_a_kill(Path(directory)))
        case "two at once":
            print(two_at_once(Path(directory)))
        case "a link":
            print(replace_by_link(Path(directory)))
        case "two directories":
            print(kill_in_two_directories(Path(directory)))
        case "image":
            print(image(Path(directory)))
        case "small disk":
            print(small_disk(Path(directory), mount="mount" in rest))
        case _:
            print(every_fault(kind, Path(directory), *map(int, rest)).told())


if __name__ == "__main__":
    main()
