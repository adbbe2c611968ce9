"""Contents of files go into a private repository as one pack, however many they are; what is there already does not."""

import subprocess
from collections.abc import Callable, Generator, Iterable
from contextlib import ExitStack, contextmanager, suppress
from typing import IO

from massgen_mcp.changes.files import Found, TreeFile
from massgen_mcp.changes.git import Git, GitFailed, limited

_ASKED_AT_ONCE = 400
"""Ids that are asked for before the replies are read: fewer than fill a pipe."""
_HELD_BYTES = 16 * 1024 * 1024
"""Content that is held in memory until it is known what of it is there already."""


def store(git: Git, found: Iterable[Found]) -> dict[bytes, TreeFile]:
    """Store the contents that are not there yet. Returns what each path is in a tree. Raises `GitFailed`."""
    files: dict[bytes, TreeFile] = {}
    waiting: dict[str, bytes] = {}
    size = 0
    with ExitStack() as cleanup:
        contents = _Contents(git, cleanup)
        for one in found:
            files[one.path] = one.file
            if one.content is None:
                continue
            waiting[one.file.blob] = one.content
            size += len(one.content)
            if len(waiting) == _ASKED_AT_ONCE or size > _HELD_BYTES:
                contents.take(waiting)
                waiting, size = {}, 0
        contents.take(waiting)
        contents.finish()
    return files


class _Contents:
    def __init__(self, git: Git, cleanup: ExitStack) -> None:
        self._git = git
        self._cleanup = cleanup
        self._asked: _Talk | None = None
        self._stored: _Talk | None = None

    def take(self, contents: dict[str, bytes]) -> None:
        """Store those of the contents that are not there."""
        if not contents:
            return
        self._asked = self._asked or self._talk("cat-file", "--batch-check=%(objectname)")
        missing = self._asked.ask("".join(f"{blob}\n" for blob in contents).encode(), len(contents))
        for (_, content), reply in zip(contents.items(), missing, strict=True):
            if reply.endswith(b" missing"):
                self._stored = self._stored or self._talk("fast-import", "--quiet", "--done")
                self._stored.tell(b"blob\ndata %d\n" % len(content), content, b"\n")

    def finish(self) -> None:
        """From here on all contents are there, on disk."""
        if self._stored is not None:
            self._stored.tell(b"done\n")
            self._stored.finish()

    def _talk(self, *arguments: str) -> "_Talk":
        return self._cleanup.enter_context(_talk(self._git, *arguments))


class _Talk:
    """A git that goes on while it is told more."""

    def __init__(self, name: str, process: "subprocess.Popen[bytes]", stdin: IO[bytes], stdout: IO[bytes]) -> None:
        self._name = name
        self._process = process
        self._stdin = stdin
        self._stdout = stdout

    def tell(self, *parts: bytes) -> None:
        try:
            for part in parts:
                self._stdin.write(part)
        except OSError as error:
            raise GitFailed(f"git {self._name} stopped unexpectedly") from error

    def ask(self, lines: bytes, replies: int) -> list[bytes]:
        self.tell(lines)
        self._stdin.flush()
        replied = [self._stdout.readline().rstrip(b"\n") for _ in range(replies)]
        if not all(replied):
            raise GitFailed(f"git {self._name} stopped unexpectedly")
        return replied

    def read(self, line: bytes) -> bytes:
        """The one content that is asked for."""
        (head,) = self.ask(line, 1)
        if head.endswith(b" missing"):
            raise GitFailed("a file's contents are missing from the run's repository")
        size = int(head.rpartition(b" ")[2])
        content = self._stdout.read(size + 1)
        if len(content) != size + 1:
            raise GitFailed(f"git {self._name} stopped unexpectedly")
        return content[:-1]

    def finish(self) -> None:
        try:
            self._stdin.close()
        except OSError as error:
            raise GitFailed(f"git {self._name} stopped unexpectedly") from error
        if code := self._process.wait():
            raise GitFailed(f"git {self._name} failed with exit code {code}; is the disk full?")


@contextmanager
def _talk(git: Git, name: str, *arguments: str) -> Generator[_Talk]:
    """Ended with the block at the latest, and when it takes too long."""
    try:
        process = subprocess.Popen(  # noqa: S603 - a program of our own choice, no shell
            git.command(name, *arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=git.directory,
            env=git.environ(),
        )
    except OSError as error:
        raise GitFailed(f"cannot start git {name}: {error.strerror}") from error
    stdin, stdout = process.stdin, process.stdout
    assert stdin is not None and stdout is not None  # noqa: S101, PT018 - asked for above
    try:
        with limited(process):
            yield _Talk(name, process, stdin, stdout)
    finally:
        process.kill()
        process.wait()
        stdout.close()
        with suppress(OSError):  # it did not live to read the rest
            stdin.close()


@contextmanager
def reading(git: Git) -> Generator[Callable[[TreeFile], bytes]]:
    """Reads one content after the other. Raises `GitFailed`."""
    with _talk(git, "cat-file", "--batch") as talk:
        yield lambda file: talk.read(f"{file.blob}\n".encode())
