"""What is left of a directory after a power cut, at the worst: a file system that keeps nothing but what was synced.

Fed with the lines that strace writes about everybody who works in the directory. A file's content is what it was when
its last sync began, a directory's entries are those of its last sync; POSIX promises no more. Real ones lose less.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

_CALLS = (
    *("openat", "creat", "write", "writev", "pwrite64", "pwritev", "ftruncate", "truncate", "fsync", "fdatasync"),
    *("rename", "renameat", "renameat2", "link", "linkat", "unlink", "unlinkat", "rmdir", "mkdir", "mkdirat", "syncfs"),
)
OPTIONS = ("-f", "-qq", "--seccomp-bpf", "-y", "-xx", "-s", "100000000", "-e", f"trace={','.join(_CALLS)}")
"""Of strace, but for where it writes."""

_CALL = re.compile(r"(\d+) +(\w+)\((.*)\) += (\d+)(?:<.*>)?(?: \(.*\))?$")
_UNFINISHED = re.compile(r"(\d+) +((\w+)\(.*) <unfinished \.\.\.>$")
_RESUMED = re.compile(r"(\d+) +<\.\.\. (\w+) resumed>(.*)$")
_PART = re.compile(r'"((?:\\x[0-9a-f]{2})*)"|[\w-]+<((?:\\x[0-9a-f]{2}|[^>])*)>|iov_len=\d+|[^,\[\]{} ]+')


@dataclass(eq=False)
class File:
    content: bytearray = field(default_factory=bytearray)
    synced: bytes = b""


@dataclass(eq=False)
class Directory:
    entries: "dict[str, File | Directory]" = field(default_factory=dict[str, "File | Directory"])
    synced: "dict[str, File | Directory]" = field(default_factory=dict[str, "File | Directory"])


class Disk:
    """Everything below `root`, a directory that is there and empty when the power comes on."""

    def __init__(self, root: Path) -> None:
        self._root = PurePosixPath(root)
        self._top = Directory()
        self._begun: dict[str, tuple[str, File | Directory | None, bytes]] = {}

    def load(self, path: Path) -> None:
        """Take the files that are there as synced."""
        self._top = _read(path)

    def feed(self, lines: Iterable[str]) -> None:
        for line in lines:
            if unfinished := _UNFINISHED.match(line):
                pid, text, name = unfinished.groups()
                node = self._named(_parts(text.partition("(")[2])) if name in ("fsync", "fdatasync") else None
                self._begun[pid] = text, node, bytes(node.content) if isinstance(node, File) else b""
            elif resumed := _RESUMED.match(line):
                pid, name, rest = resumed.groups()
                text, node, content = self._begun.pop(pid, ("", None, b""))
                self._call(f"{pid} {text}{rest}", content if isinstance(node, File) else None)
            else:
                self._call(line, None)

    def now(self, path: Path) -> bytes:
        """A file as everybody sees it while the power is on."""
        node = self._find(PurePosixPath(path))
        return bytes(node.content) if isinstance(node, File) else b""

    def cut_power(self, target: Path) -> None:
        """Write what is left to `target`."""
        _write(self._top, target)

    def _call(self, line: str, when_begun: bytes | None) -> None:
        if (done := _CALL.match(line)) is None:
            return  # it failed, or is no call
        _, name, arguments, result = done.groups()
        parts = _parts(arguments)
        match name:
            case "openat":
                self._open(_path(parts[0], parts[1]), arguments)
            case "creat":
                self._open(_path("", parts[0]), "O_CREAT|O_TRUNC")
            case "write" | "writev" | "pwrite64" | "pwritev":
                self._write(name, parts, arguments, int(result))
            case "ftruncate" | "truncate":
                self._truncate(parts)
            case "syncfs":
                if self._named(parts) is not None:
                    _sync_all(self._top)
            case "fsync" | "fdatasync":
                self._sync(parts, when_begun)
            case _:
                self._change_names(name, parts)

    def _sync(self, parts: list[str], when_begun: bytes | None) -> None:
        match self._named(parts):
            case File() as node:
                node.synced = bytes(node.content) if when_begun is None else when_begun
            case Directory() as node:
                node.synced = dict(node.entries)
            case None:
                pass

    def _change_names(self, name: str, parts: list[str]) -> None:
        if "at" in name:
            path, *other = (_path(parts[place], parts[place + 1]) for place in range(0, len(parts) - 1, 2))
        else:
            path, *other = (_path("", part) for part in parts)
        if name.startswith("mkdir"):
            self._enter(path, Directory())
        elif name.startswith(("unlink", "rmdir")):
            self._enter(path, None)
        else:
            self._enter(other[0], self._find(path))
            if name.startswith("rename"):
                self._enter(path, None)

    def _truncate(self, parts: list[str]) -> None:
        if isinstance(node := self._named(parts), File):
            size = int(parts[1])
            node.content[:] = bytes(node.content[:size]).ljust(size, b"\0")

    def _open(self, path: PurePosixPath, arguments: str) -> None:
        node = self._find(path)
        if node is None and "O_CREAT" in arguments:
            self._enter(path, File())
        elif isinstance(node, File) and "O_TRUNC" in arguments:
            node.content.clear()

    def _write(self, name: str, parts: list[str], arguments: str, count: int) -> None:
        if not isinstance(node := self._named(parts), File):
            return
        data = b"".join(bytes.fromhex(found.replace("\\x", "")) for found in re.findall(r'"([^"]*)"', arguments))[
            :count
        ]
        offset = int(parts[-1]) if name.startswith("pwrite") else len(node.content)
        node.content.extend(bytes(max(0, offset - len(node.content))))
        node.content[offset : offset + len(data)] = data

    def _named(self, parts: list[str]) -> "File | Directory | None":
        """What the first argument of a call stands for."""
        return self._find(PurePosixPath(parts[0]))

    def _find(self, path: PurePosixPath) -> "File | Directory | None":
        node: File | Directory | None = self._top
        if not path.is_relative_to(self._root):
            return None
        for name in path.relative_to(self._root).parts:
            node = node.entries.get(name) if isinstance(node, Directory) else None
        return node

    def _enter(self, path: PurePosixPath, node: "File | Directory | None") -> None:
        """Let the name stand for this; None: for nothing."""
        if not isinstance(parent := self._find(path.parent), Directory):
            return
        if node is None:
            parent.entries.pop(path.name, None)
        else:
            parent.entries[path.name] = node


def _parts(arguments: str) -> list[str]:
    """The arguments of a call; a descriptor as the path it stands for, a text without its quotes."""
    parts: list[str] = []
    for found in _PART.finditer(arguments):
        text, path = found.groups()
        coded = path if path is not None else text
        parts.append(found.group() if coded is None else _decoded(coded))
    return parts


def _decoded(text: str) -> str:
    return re.sub(
        r"(?:\\x[0-9a-f]{2})+", lambda m: bytes.fromhex(m.group().replace("\\x", "")).decode(errors="replace"), text
    )


def _path(directory: str, name: str) -> PurePosixPath:
    return PurePosixPath(directory) / name


def _sync_all(directory: Directory) -> None:
    directory.synced = dict(directory.entries)
    for node in directory.entries.values():
        match node:
            case File():
                node.synced = bytes(node.content)
            case Directory():
                _sync_all(node)


def _read(path: Path) -> Directory:
    found = Directory()
    for entry in path.iterdir():
        if entry.is_dir():
            found.entries[entry.name] = _read(entry)
        else:
            content = entry.read_bytes()
            found.entries[entry.name] = File(bytearray(content), content)
    found.synced = dict(found.entries)
    return found


def _write(directory: Directory, target: Path) -> None:
    target.mkdir(mode=0o700)
    for name, node in directory.synced.items():
        match node:
            case File():
                (target / name).write_bytes(node.synced)
            case Directory():
                _write(node, target / name)
