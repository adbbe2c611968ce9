"""What others do to a person's directory while an apply goes on, or after one was cut off in the middle.

`python -m tests.changes.apply_races DIRECTORY KIND [EVERY]`, as `apply_faults`.
"""

import ctypes
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from massgen_mcp.runs.patches.applying import apply_patch
from tests.changes.apply_cases import FIRST, Case
from tests.changes.apply_faults import Child, apply, under_fault
from tests.changes.apply_play import Stage, everything_in, prepared

CASE = Case(
    "two files and a new one",
    "sed -i 's/^9$/last/' lines.txt; echo team >> src/a.txt; echo x > new; rm docs/alone.txt",
    before=FIRST,
)
HALF = "signal=KILL:when=6"
"""At this move `lines.txt` is changed, and `src/a.txt` is not."""
CALLS = ("renameat2", "openat2")
MINE = "mine\n"
ORDINARY, STRANGER = 65534, 4242
CAPABILITIES_VERSION, CAP_CHOWN = 0x20080522, 1


def an_editor_saves(directory: Path, every: int = 1, *, taking_back: bool) -> str:
    """After every step, or one of so many, of an apply, or of the taking back of one that was killed."""
    stage = prepared(CASE, directory)
    if taking_back:
        half(stage)
    begun = directory / "begun"
    keep(stage, begun)
    tried, bad = 0, list[str]()
    for call in CALLS:
        for k in itertools.count(1, every):
            child = Child(partial(apply, stage, dry_run=taking_back))
            with child.stopped_at(call, k, directory) as stopped:
                if stopped:
                    save(stage.root / "lines.txt")
            child.state()
            if not stopped:
                break
            tried += 1
            apply(stage, dry_run=True)
            found = (stage.root / "lines.txt").read_text()
            others = [(stage.root / name).exists() for name in ("new", "docs/alone.txt")]
            if found != MINE or others not in ([True, False], [False, True]):
                bad.append(f"{call} {k}: {found!r}, {others}")
            restore(stage, begun)
        restore(stage, begun)
    return f"{tried} moments; {len(bad)} bad {bad}"


def save(file: Path) -> None:
    """As editors do."""
    written = file.with_name(f"{file.name}~")
    written.write_text(MINE)
    written.replace(file)


def half(stage: Stage) -> None:
    assert under_fault(partial(apply, stage), "renameat2", HALF) == "killed"


def keep(stage: Stage, begun: Path) -> None:
    for place in (stage.root.parent, stage.home.path):
        if place.exists():
            shutil.copytree(place, begun / place.name, symlinks=True)


def restore(stage: Stage, begun: Path) -> None:
    for place in (stage.root.parent, stage.home.path):
        shutil.rmtree(place, ignore_errors=True)
        if (begun / place.name).exists():
            shutil.copytree(begun / place.name, place, symlinks=True)
    (stage.patch.changes.directory / "applied.json").unlink(missing_ok=True)


def laid_aside_files_are_gone(directory: Path) -> str:
    """Moved away, and back; deleted, and what they held taken from the run by its record."""
    stage = prepared(CASE, directory)
    before = everything_in(stage.root.parent)
    told: list[str] = []
    half(stage)
    (staging,) = stage.root.glob(".massgen-apply-*")
    staging.rename(directory / "elsewhere")
    told += [lost(stage), lost(stage)]
    (directory / "elsewhere").rename(staging)
    told.append(f"{lost(stage)}, as before: {everything_in(stage.root.parent) == before}")

    half(stage)
    (staging,) = stage.root.glob(".massgen-apply-*")
    shutil.rmtree(staging)
    (settled,) = apply(stage, dry_run=True).settled
    document = json.loads(settled.file.read_text())
    objects = stage.patch.changes.repository.directory
    for part in document["parts"]:
        for path, old, _, _ in part["steps"]:
            place = Path(part["root"], path)
            if old is None:
                place.unlink(missing_ok=True)
            else:
                place.parent.mkdir(exist_ok=True)
                shown = subprocess.run(
                    ["git", "-C", objects, "cat-file", "blob", old[1]], capture_output=True, check=True
                )
                place.write_bytes(shown.stdout)
    told.append(f"{lost(stage)}, as before: {everything_in(stage.root.parent) == before}")
    return "; ".join(told)


def another_directory_is_in_its_place(directory: Path) -> str:
    """As where a disk is not mounted, or nothing is."""
    stage = prepared(CASE, directory)
    before = everything_in(stage.root.parent)
    half(stage)
    away = stage.root.rename(directory / "away")
    told = [lost(stage)]
    stage.root.mkdir()
    told += [lost(stage)]
    stage.root.rmdir()
    away.rename(stage.root)
    told.append(f"{lost(stage)}, as before: {everything_in(stage.root.parent) == before}")
    return "; ".join(told)


def lost(stage: Stage) -> str:
    """What the next command tells of, and whether it stays for the one after."""
    application = apply(stage, dry_run=True)
    (settled,) = application.settled
    assert bool(settled.lost) == ("can't be undone" in (application.note or ""))
    paths = [os.path.relpath(path, stage.root) for path in settled.lost]
    return f"lost {paths}" if settled.file.exists() else "settled"


def files_of_others(_: Path) -> str:
    """What an ordinary user, whom the superuser plays, is told of files that belong to another one or to a group. In a
    directory that such a user may enter.
    """
    directory = Path(tempfile.mkdtemp(prefix="massgen-others-"))
    directory.chmod(0o755)
    try:
        stage = prepared(
            Case("two files", "echo team | tee -a lines.txt src/a.txt src/b.txt src/c.txt >/dev/null"), directory
        )
        subprocess.run(["chown", "-R", f"{ORDINARY}:{ORDINARY}", directory], check=True)
        os.chown(stage.root / "lines.txt", 0, ORDINARY)
        os.chown(stage.root / "src" / "a.txt", ORDINARY, 0)
        os.chown(stage.root / "src" / "b.txt", ORDINARY, STRANGER)
        reading, writing = os.pipe()
        if os.fork() == 0:
            os.setgroups([STRANGER])
            os.setresgid(ORDINARY, ORDINARY, ORDINARY)
            os.setresuid(ORDINARY, ORDINARY, ORDINARY)
            refused = apply(stage, dry_run=True).refused
            done = apply_patch(stage.home, stage.patch, dry_run=False, paths=["person/src/b.txt", "person/src/c.txt"])
            os.write(writing, f"{[(one.path, one.reason) for one in refused]}; {done.state}".encode())
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as told:
            found = told.read()
        return f"{found} {[(stage.root / 'src' / name).stat().st_gid for name in ('b.txt', 'c.txt')]}"
    finally:
        shutil.rmtree(directory)


def files_that_cannot_be_given_away(directory: Path) -> str:
    """What a superuser without that right, as in some containers, is told of files of another user."""
    stage = prepared(Case("a file and new ones", "cd src; echo team >> a.txt; echo x > new; ln -s new link"), directory)
    for path in ("src", "src/a.txt"):
        os.chown(stage.root / path, ORDINARY, ORDINARY)
    give_up_chown()
    refused = apply(stage, dry_run=True).refused
    done = apply_patch(stage.home, stage.patch, dry_run=False, paths=["person/src/new", "person/src/link"])
    owners = [(stage.root / "src" / name).lstat().st_uid for name in ("new", "link")]
    return f"{[(one.path, one.reason) for one in refused]}; {done.state} {owners}"


def give_up_chown() -> None:
    """For the rest of this process."""
    libc = ctypes.CDLL(None)
    header, sets = (ctypes.c_uint32 * 2)(CAPABILITIES_VERSION, 0), (ctypes.c_uint32 * 6)()
    assert libc.capget(header, sets) == 0
    sets[0] &= ~CAP_CHOWN
    sets[1] &= ~CAP_CHOWN
    assert libc.capset(header, sets) == 0


def main() -> None:
    directory, kind, *rest = sys.argv[1:]
    match kind:
        case "saves" | "saves while it is taken back":
            print(an_editor_saves(Path(directory), *map(int, rest), taking_back=kind != "saves"))
        case "gone":
            print(laid_aside_files_are_gone(Path(directory)))
        case "another":
            print(another_directory_is_in_its_place(Path(directory)))
        case "no right to give":
            print(files_that_cannot_be_given_away(Path(directory)))
        case _:
            print(files_of_others(Path(directory)))


if __name__ == "__main__":
    main()
