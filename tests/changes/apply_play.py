"""Plays a case of `apply_cases`: a person's directory, a run that takes its base there, the team's work, and the apply.

What a run does is done by the same functions, without agents; `tests/changes/test_apply.py` has whole runs.
"""

import hashlib
import os
import shutil
import subprocess
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from massgen_mcp.changes.base import ContextDirectory
from massgen_mcp.changes.choosing import Patch
from massgen_mcp.changes.run_changes import RunChanges
from massgen_mcp.home import Home
from massgen_mcp.runs.patches.application import Application
from massgen_mcp.runs.patches.applying import RunPatch, apply_patch, undo_patch
from tests.changes.apply_cases import TEMPLATE, Case

ENVIRON = {
    "PATH": os.environ["PATH"],
    "HOME": "/dev/null/home",
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{role}_{what}": "person@localhost" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}
PERSON = "person"
"""The name of the directory."""


@dataclass(frozen=True)
class Sizes:
    """`huge`: bytes of a huge file; `many`: files of a large tree; `some`: files of a large patch."""

    huge: int = 1_000_000
    many: int = 300
    some: int = 100


@dataclass(frozen=True)
class Stage:
    """A person's directory with a patch that is ready to be applied."""

    root: Path
    given: Path
    home: Home
    patch: RunPatch


@dataclass(frozen=True)
class Played:
    stage: Stage
    application: Application
    before: dict[str, str]
    after: dict[str, str]
    seconds: float


def play(case: Case, directory: Path, sizes: Sizes = Sizes()) -> Played:
    stage = prepared(case, directory, sizes)
    before = everything_in(directory / "place")
    began = time.monotonic()
    paths = [path.format(person=stage.root) for path in case.paths]
    application = apply_patch(stage.home, stage.patch, dry_run=False, paths=paths)
    seconds = time.monotonic() - began
    return Played(stage, application, before, everything_in(directory / "place"), seconds)


def undone(played: Played) -> dict[str, str]:
    undo_patch(played.stage.home, played.stage.patch, dry_run=False)
    return everything_in(played.stage.root.parent)


def prepared(case: Case, directory: Path, sizes: Sizes = Sizes()) -> Stage:
    """What the person does is done, and the run has ended."""
    root = directory / "place" / PERSON
    if not root.exists():
        shutil.copytree(template(), root, symlinks=True)
    put = {"huge": sizes.huge, "many": sizes.many, "some": sizes.some}
    shell("git update-index -q --refresh", root)
    shell(_filled(case.before, put), root)
    given = root / case.given
    changes = RunChanges(directory / "run" / "changes")
    workspace = directory / "run" / "workspace"
    workspace.mkdir(parents=True)
    base, refused = changes.begin([ContextDirectory(given.name, given, writable=True)], [workspace])
    assert base is not None, refused
    shell(_filled(case.team, put), workspace / given.name)
    outcome = changes.outcome(base, workspace)
    shutil.rmtree(workspace)
    shell(case.person, root)
    patch = RunPatch("run", changes, Patch(base.directories, base.id, outcome.tree))
    return Stage(root, given, Home(directory / "home"), patch)


def _filled(script: str, sizes: dict[str, int]) -> str:
    for name, size in sizes.items():
        script = script.replace(f"{{{name}}}", str(size))
    return script


def shell(script: str, directory: Path) -> None:
    if script:
        subprocess.run(["sh", "-euc", script], cwd=directory, env=ENVIRON, check=True)


@cache
def template() -> Path:
    """Made once for each process."""
    import atexit
    import tempfile

    path = Path(tempfile.mkdtemp(prefix="massgen-apply-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    path.chmod(0o755)
    shell(TEMPLATE, path)
    return path


def everything_in(directory: Path) -> dict[str, str]:
    """Kind, permissions, owner, attributes and content of all that lies there, git's own files included."""
    found: dict[str, str] = {}
    for above, names, files in os.walk(directory):
        for name in (*names, *files):
            path = Path(above, name)
            status = path.lstat()
            if path.is_symlink():
                content = str(path.readlink())
            elif path.is_file():
                content = hashlib.sha256(path.read_bytes()).hexdigest()
            else:
                content = ""
            named = os.listxattr(path, follow_symlinks=False)
            attributes = {one: os.getxattr(path, one, follow_symlinks=False) for one in sorted(named)}
            told = f"{status.st_mode:o} {status.st_uid}:{status.st_gid} {attributes or ''} {content}"
            found[str(path.relative_to(directory))] = told
    return found


def held(root: Path, path: str) -> str | None:
    """What lies there, as `Case.holds` has it; without the permissions."""
    place = root / path
    if place.is_symlink():
        return f"-> {place.readlink()}"
    return os.fsdecode(place.read_bytes()) if place.is_file() else None
