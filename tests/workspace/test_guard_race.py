"""A directory and a link to a secret change places all the time: the guard never follows, a naive guard does.

The exchange runs in a process of its own, so that it really happens between two system calls of the reader.
"""

import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from massgen_mcp.workspace import openat
from massgen_mcp.workspace.guard import PathRefused, Root

ATTEMPTS = 20_000
TWIN_ATTEMPTS = 400_000
OPENERS = sorted({openat.best_opener(), openat.open_by_walking}, key=lambda opener: opener.__name__)

SWAPPER = """
import ctypes, os, sys
os.chdir(sys.argv[1])
libc = ctypes.CDLL(None)
def exchange():
    return libc.renameat2(-100, b"dir", -100, b"link", 2)
if not hasattr(libc, "renameat2") or exchange() != 0:
    def exchange():
        os.rename("dir", "spare")
        os.rename("link", "dir")
        os.rename("spare", "link")
print("ready", flush=True)
while True:
    exchange()
"""


@contextmanager
def swapping(ws: Path) -> Generator[None, None, None]:
    command = [sys.executable, "-I", "-S", "-c", SWAPPER, str(ws)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield
        finally:
            process.kill()


@pytest.fixture
def ws(tmp_path: Path) -> Path:
    """`ws/dir` holds a file, `ws/link` leads to a directory outside that holds a file of the same name."""
    for directory, content in (("ws/dir", b"inside"), ("outside", b"secret")):
        (tmp_path / directory).mkdir(parents=True)
        (tmp_path / directory / "file").write_bytes(content)
    (tmp_path / "ws" / "link").symlink_to("../outside")
    return tmp_path / "ws"


def tally(act: Callable[[], bytes | None], attempts: int, *, until_escape: bool = False) -> dict[str, int]:
    counts = {"inside": 0, "refused": 0, "escaped": 0}
    for _ in range(attempts):
        try:
            outcome = "escaped" if act() == b"secret" else "inside"
        except (PathRefused, OSError):
            outcome = "refused"
        counts[outcome] += 1
        if until_escape and counts["escaped"]:
            break
    return counts


def naive(ws: Path, path: str) -> Path:
    """The pattern that loses: look where the path leads, find it good, then use the path once more."""
    if not (ws / path).resolve().is_relative_to(ws):
        raise PathRefused(path)
    return ws / path


@pytest.mark.parametrize("opener", OPENERS, ids=lambda opener: opener.__name__)
def test_no_read_escapes(ws: Path, opener: openat.Opener) -> None:
    with Root.open(ws, "", opener=opener) as root, swapping(ws):
        counts = tally(lambda: root.read_bytes("dir/file", 100), ATTEMPTS)

    assert counts["escaped"] == 0
    assert counts["inside"] > 0
    assert counts["refused"] > 0


@pytest.mark.parametrize("opener", OPENERS, ids=lambda opener: opener.__name__)
def test_no_write_and_no_delete_escapes(ws: Path, opener: openat.Opener) -> None:
    outside = ws.parent / "outside"
    with Root.open(ws, "", opener=opener) as root, swapping(ws):
        written = tally(lambda: root.write_bytes("dir/new", b"x"), ATTEMPTS)
        deleted = tally(lambda: root.delete("dir/file"), ATTEMPTS)
        listed = tally(lambda: b"".join(e.path.encode() for e in root.walk("dir", 9).entries), ATTEMPTS // 10)

    assert [path.name for path in outside.iterdir()] == ["file"]
    assert (outside / "file").read_bytes() == b"secret"
    assert written["inside"] > 0
    assert written["refused"] > 0
    assert deleted["inside"] == 1
    assert listed["inside"] > 0


def test_a_tree_is_removed_without_touching_what_is_swapped_into_it(ws: Path) -> None:
    outside = ws.parent / "outside"
    with Root.open(ws.parent, "") as root, swapping(ws):
        tally(lambda: root.delete("ws/dir"), ATTEMPTS)

    assert (outside / "file").read_bytes() == b"secret"


def test_the_same_harness_catches_a_naive_read(ws: Path) -> None:
    with swapping(ws):
        counts = tally(lambda: naive(ws, "dir/file").read_bytes(), TWIN_ATTEMPTS, until_escape=True)

    assert counts["escaped"] == 1


def test_the_same_harness_catches_a_naive_write(ws: Path) -> None:
    outside = ws.parent / "outside"

    def write() -> bytes | None:
        naive(ws, "dir/new").write_bytes(b"x")
        return b"secret" if (outside / "new").exists() else None

    with swapping(ws):
        counts = tally(write, TWIN_ATTEMPTS, until_escape=True)

    assert counts["escaped"] == 1
