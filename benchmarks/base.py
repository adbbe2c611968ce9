"""The base of a run: its time and disk for this project and for a tree of 50,000 files, beside git and a plain copy.

`python -m benchmarks.base` prints one table; a number after it makes the large tree of so many files. All rows are
measured in one run on one machine, one after the other, each in every round.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.table import Table, machine
from massgen_mcp.changes.base import Base, ContextDirectory
from massgen_mcp.changes.copies import shares_blocks
from massgen_mcp.changes.run_changes import RunChanges
from massgen_mcp.workspace.snapshot import remove_tree

ROOT = Path(__file__).parents[1]
FILES, PER_DIRECTORY, LINES = 50_000, 50, 60
ROUNDS = 2
MIB = 1024 * 1024


def tree_of(path: Path, files: int) -> Path:
    """A committed repository with so many files of about 2.5 KB, none like another."""
    for number in range(files):
        directory = path / f"part-{number // (PER_DIRECTORY * 20)}" / f"module-{number // PER_DIRECTORY}"
        if not number % PER_DIRECTORY:
            directory.mkdir(parents=True)
        lines = (f"value_{number}_{line} = {number * line % 9973}  # of no meaning\n" for line in range(LINES))
        (directory / f"file_{number}.py").write_text("".join(lines))
    committed(path)
    return path


def committed(path: Path) -> None:
    who = ("-c", "user.name=b", "-c", "user.email=b@localhost", "-c", "gc.auto=0")
    for command in (("init", "--quiet"), ("add", "--all"), (*who, "commit", "--quiet", "-m", "all")):
        subprocess.run(["git", *command], cwd=path, check=True)


def disk(path: Path) -> int:
    """Bytes on disk of everything below a path."""
    found = (Path(directory, name) for directory, _, names in os.walk(path) for name in names)
    return sum(file.lstat().st_blocks * 512 for file in found)


def measure(table: Table, name: str, work: Path, act: Callable[[Path], object]) -> None:
    """Add the time that it takes, and the disk that the directory that it is given uses then."""
    place = work / "round"
    place.mkdir()
    os.sync()
    begun = time.perf_counter()
    act(place)
    table.add(name, "ms", time.perf_counter() - begun)
    table.add(name, "MiB", disk(place) / MIB)
    remove_tree(place)


def begin(source: Path, place: Path, agents: int) -> tuple[RunChanges, Base, list[Path]]:
    workspaces = [place / "workspaces" / f"agent-{number}" for number in range(agents)]
    for workspace in workspaces:
        workspace.mkdir(parents=True)
    changes = RunChanges(place / "changes")
    base, refused = changes.begin([ContextDirectory(source.name, source)], workspaces)
    if base is None:
        raise SystemExit(f"no base of {source}: {refused}")
    return changes, base, workspaces


def worktree(source: Path, place: Path) -> None:
    subprocess.run(["git", "worktree", "add", "--quiet", "--detach", place / "tree"], cwd=source, check=True)


def copied(source: Path, place: Path) -> None:
    subprocess.run(["cp", "-r", source, place / "tree"], check=True)


def measure_patch(table: Table, name: str, source: Path, work: Path) -> None:
    """Add the time of finding the one changed file in a copy."""
    changes, base, (workspace,) = begin(source, work / "held", 1)
    changed = min((workspace / source.name).rglob("*.py"))
    changed.write_text(f"{changed.read_text()}# one more line\n")
    begun = time.perf_counter()
    outcome = changes.outcome(base, workspace)
    table.add(name, "ms", time.perf_counter() - begun)
    assert len(outcome.files) == 1
    remove_tree(work / "held")


def measure_all(table: Table, source: Path, files: int, work: Path) -> None:
    named = f"{source.name} ({files:,} files): "
    measure(table, f"{named}base alone", work, lambda place: begin(source, place, 0))
    measure(table, f"{named}base, and a copy for one agent", work, lambda place: begin(source, place, 1))
    measure(table, f"{named}base, and copies for three agents", work, lambda place: begin(source, place, 3))
    measure_patch(table, f"{named}patch of an answer", source, work)
    measure(table, f"{named}git worktree add", work, lambda place: worktree(source, place))
    subprocess.run(["git", "worktree", "prune"], cwd=source, check=True)
    measure(table, f"{named}cp -r", work, lambda place: copied(source, place))


def main(files: int = FILES) -> None:
    with tempfile.TemporaryDirectory(prefix="massgen-base-") as directory:
        work = Path(directory)
        own = work / "this project"
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout
        for name in filter(None, listed.decode().split("\0")):
            (own / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, own / name)
        committed(own)
        large = work / "large tree"
        large.mkdir()
        tree_of(large, files)
        table = Table()
        for _ in range(ROUNDS):
            measure_all(table, own, len(listed.split(b"\0")) - 1, work)
            measure_all(table, large, files, work)
        shared = "share their blocks" if shares_blocks(work) else "do not share blocks"
        print(machine(ROUNDS), f"Copies {shared} on disk here.", table, sep="\n\n")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
