"""The user's own repository, where a directory lies in one: which files it tracks and which it ignores.

Its files are read; git itself never works in it, so none of its settings, hooks and filters has a chance.
"""

import os
import re
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from massgen_mcp.changes.files import MIB, small_file
from massgen_mcp.changes.git import Git, GitFailed
from massgen_mcp.workspace import openat

_SHA256 = re.compile(rb"^\s*objectformat\s*=\s*sha256\s*$", re.IGNORECASE | re.MULTILINE)
_SUBMODULE = b"160000"
MAX_INDEX_BYTES = 256 * MIB
"""An index of two million files has about as much."""
_ESCAPED = re.compile(r"\\(.)")


class Tracked(NamedTuple):
    """What a repository tracks below a directory, relative to that."""

    files: tuple[bytes, ...]
    submodules: tuple[bytes, ...]
    absent: tuple[bytes, ...]
    """Files that a sparse checkout leaves out."""


@dataclass(frozen=True, slots=True)
class UserRepository:
    """`top` is the directory of its working tree; `git_dir` that of this working tree, `common_dir` that of all."""

    top: Path
    git_dir: Path
    common_dir: Path

    @classmethod
    def around(cls, directory: Path) -> "UserRepository | None":
        """The repository that a directory lies in; None if it lies in none. One that another user put into a directory
        of a third one's, such as `/tmp/.git`, is none.
        """
        for place in (directory, *directory.parents):
            git_dir = _git_dir(place / ".git")
            if git_dir is not None and _belongs_there(place):
                common = git_dir
                with suppress(OSError):
                    common = (git_dir / os.fsdecode(small_file(git_dir / "commondir")).strip()).resolve()
                return cls(place, git_dir, common)
        return None

    @property
    def objects(self) -> Path | None:
        """Its object store, if a private repository can make use of it."""
        store = self.common_dir / "objects"
        return store if store.is_dir() and self.object_format == "sha1" else None

    def tracked(self, directory: Path) -> Tracked:
        """What it tracks in a directory below its top, read from a copy of its index. Raises `GitFailed`."""
        if not os.path.lexists(self.git_dir / "index"):
            return Tracked((), (), ())
        with tempfile.TemporaryDirectory(prefix="massgen-index-") as scratch:
            place = Path(scratch) / "listing.git"
            store = self.common_dir / "objects"
            git = Git.create(place, alternates=[store], object_format=self.object_format)
            self.copy_index(place)
            listed = git.run("ls-files", "-z", "--stage", "-t")
        prefix = b"".join(part.encode("utf-8", "surrogateescape") + b"/" for part in self._path_parts(directory))
        files: dict[bytes, None] = {}
        submodules: dict[bytes, None] = {}
        absent: list[bytes] = []
        for record in filter(None, listed.split(b"\0")):
            about, _, path = record.partition(b"\t")
            if not path.startswith(prefix):
                continue
            below = path.removeprefix(prefix)
            if about.split(b" ")[1] == _SUBMODULE:
                submodules[below] = None
            elif about.startswith(b"S ") and not os.path.lexists(os.path.join(os.fsencode(directory), below)):  # noqa: PTH118 - bytes
                absent.append(path.removeprefix(prefix))
            else:
                files[below] = None
        return Tracked(tuple(files), tuple(submodules), tuple(absent))

    def ignored_below(self, directory: Path) -> bytes:
        """What the repository ignores below a directory, apart from the `.gitignore` files in it, as lines of one."""
        parts = self._path_parts(directory)
        lines = [*_rerooted(self.common_dir / "info" / "exclude", parts)]
        for depth in range(len(parts)):
            lines += _rerooted(self.top.joinpath(*parts[:depth], ".gitignore"), parts[depth:])
        return b"".join(line + b"\n" for line in lines)

    def copy_index(self, into: Path) -> None:
        """Copy its index, in all its parts. Raises `GitFailed` for one that is too large or no regular file.

        A copy keeps the time of change: git reads a file again that was changed when its index was written, or later.
        """
        for part in (self.git_dir / "index", *self.git_dir.glob("sharedindex.*")):
            with suppress(FileNotFoundError):
                changed = part.lstat().st_mtime_ns
                copy_file(part, into / part.name, MAX_INDEX_BYTES)
                os.utime(into / part.name, ns=(changed, changed))

    def _path_parts(self, directory: Path) -> tuple[str, ...]:
        return directory.relative_to(self.top).parts

    @property
    def object_format(self) -> str:
        config = b""
        with suppress(OSError):
            config = small_file(self.common_dir / "config")
        return "sha256" if _SHA256.search(config) else "sha1"


def copy_file(source: Path, target: Path, most: int) -> None:
    """Copy a regular file of at most so many bytes; nothing where there is none. Its place may hold
    another thing. Raises `GitFailed`.
    """
    try:
        opened = os.open(source, openat.READING_FLAGS)
    except FileNotFoundError:
        return
    except OSError as error:
        raise GitFailed(f"{source} cannot be read: {error.strerror}") from error
    with os.fdopen(opened, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise GitFailed(f"{source} isn't a regular file")
        if status.st_size > most:
            raise GitFailed(f"{source} is larger than {most // MIB} MiB")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.read(most))


def _belongs_there(place: Path) -> bool:
    """Check that `.git` belongs to this user, or to the owner of the directory it lies in."""
    with suppress(OSError):
        return (place / ".git").lstat().st_uid in (os.geteuid(), place.stat().st_uid)
    return False


def _git_dir(found: Path) -> Path | None:
    if found.is_dir():
        return found if (found / "HEAD").exists() else None
    try:
        first = small_file(found).decode("utf-8", "surrogateescape")
    except OSError:
        return None
    if not first.startswith("gitdir:"):
        return None
    named = (found.parent / first.removeprefix("gitdir:").strip()).resolve()
    return named if named.is_dir() else None


def _rerooted(file: Path, parts: Sequence[str]) -> Iterator[bytes]:
    """The rules of a file for what lies below the directory `parts`, as the same rules are written there."""
    try:
        text = small_file(file).removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")
    except OSError:
        return
    for line in text.split("\n"):
        if line and not line.startswith("#"):
            for rule in reroot(_trimmed(line.removesuffix("\r")), parts):
                yield rule.encode("utf-8", "surrogateescape")


def _trimmed(line: str) -> str:
    """Without the spaces at its end, as far as no backslash keeps them."""
    bare = line.rstrip(" ")
    backslashes = len(bare) - len(bare.rstrip("\\"))
    return f"{bare} " if bare != line and backslashes % 2 else bare


def reroot(line: str, parts: Sequence[str]) -> list[str]:
    """A line of a `.gitignore` as it has to stand in the directory `parts` below. Nothing, if it says nothing there, or
    names the directory itself: who gives a directory that git ignores wants what is in it.
    """
    sign, pattern = ("!", line[1:]) if line.startswith("!") else ("", line)
    names = pattern.strip("/").split("/")
    if not parts or (len(names) == 1 and not pattern.startswith("/")):
        return [line]
    at = {0}
    for part in parts:
        at = {after for place in at for after in _after(names, place, part)}
    end = "/" if pattern.endswith("/") else ""
    return [f"{sign}/{'/'.join(names[place:])}{end}" for place in sorted(at)]


def _after(names: Sequence[str], place: int, part: str) -> Iterator[int]:
    """Where in a pattern one may be behind the directory `part`, with something of the pattern left."""
    last = len(names) - 1
    if place < last and names[place] == "**":
        yield place
        yield from _after(names, place + 1, part)
    elif place < last and _matches(names[place], part):
        yield place + 1


def _matches(name: str, part: str) -> bool:
    """`fnmatch` knows neither a backslash nor `[^a]`."""
    plain = _ESCAPED.sub(lambda found: f"[{found[1]}]" if found[1] in "*?[" else found[1], name)
    return fnmatchcase(part, plain.replace("[^", "[!"))
