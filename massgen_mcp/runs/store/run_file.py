"""A run in one file, for another store: a `.tar.gz` that ordinary programs read, too.

`manifest.json` comes first, then per run a directory of its id: its files, and `events.jsonl`, whose lines are those of
the event log. `SHA256SUMS` comes last, of every file before it. What is read is input from another machine: nothing but
files, directories and, where agents work, links, all of them below the directory that it is unpacked into.
"""

import gzip
import hashlib
import json
import os
import shutil
import tarfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from massgen_mcp.errors import MassgenError, storage_error, storage_fault
from massgen_mcp.home import sync_directory
from massgen_mcp.run_state.status import RunStatus
from massgen_mcp.runs.engine import NewRun, RunFiles, Wish
from massgen_mcp.runs.engine.files import RUN_ID
from massgen_mcp.runs.store.kept_files import is_work, places
from massgen_mcp.statistics.digest import Mark

VERSION = 1
MOST_BYTES = 16 * 2**30
MOST_FILES = 200_000
EVENTS = "events.jsonl"
_MANIFEST, _SUMS = "manifest.json", "SHA256SUMS"
_AT_ONCE = 2**26
_IN_MEMORY = {"": _AT_ONCE, "config.json": _AT_ONCE, EVENTS: 2**30}
"""So long are files at most that are read as a whole, by their place in a run."""
_ROOM = 2**29
"""Bytes of the disk that are left free."""
_REPOSITORY = "changes/objects.git/"


class MovedRun(BaseModel):
    """What the store that a run comes from said of it, beside its files. Its `fingerprint` stays there."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    run: NewRun
    state: RunStatus
    created: float
    marks: dict[str, Mark]
    controls: tuple[tuple[Wish, str], ...]


class Manifest(BaseModel):
    """The first run is the one that the others are nested in."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    format: Literal["massgen-mcp run"] = "massgen-mcp run"
    v: int = VERSION
    runs: tuple[MovedRun, ...] = Field(min_length=1)


def write_run_file(target: Path, runs: Sequence[tuple[MovedRun, RunFiles]]) -> None:
    """The file is whole and on disk, or it is not there. Raises `MassgenError` disk_full, store_unavailable."""
    fresh = target.with_name(f".{target.name}.new")
    try:
        with TemporaryDirectory(dir=target.parent, prefix=".export-") as directory, fresh.open("wb") as file:
            own = Path(directory, "own")
            with tarfile.open(fileobj=file, mode="w:gz", compresslevel=6) as archive:
                own.write_text(Manifest(runs=tuple(moved for moved, _ in runs)).model_dump_json(indent=1))
                sums = [_added(archive, _MANIFEST, own)]
                for moved, files in runs:
                    with own.open("wb") as lines:
                        lines.writelines(line + b"\n" for line in files.event_log.follow().lines())
                    sums.append(_added(archive, f"{moved.run.run_id}/{EVENTS}", own))
                    for place in _file_places(files.path):
                        with suppress(FileNotFoundError):  # what is written for people is replaced now and then
                            sums.append(_added(archive, f"{moved.run.run_id}/{place}", files.path / place))
                own.write_bytes("".join(sums).encode("utf-8", "surrogateescape"))
                _added(archive, _SUMS, own)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(target)
        sync_directory(target.parent)
    except OSError as error:
        raise storage_error(f"cannot write {target}", error) from error
    finally:
        with suppress(OSError):  # what could not be written has been said
            fresh.unlink(missing_ok=True)


def _file_places(root: Path) -> Iterator[str]:
    for place, _ in places(root, everything=True):
        if place != EVENTS and not place.startswith(".") and _travels(place, link=(root / place).is_symlink()):
            yield place


def _travels(place: str, *, link: bool) -> bool:
    """Links only where agents work; of a git repository its objects alone: what it obeys is made anew."""
    objects = f"{place}/".startswith(f"{_REPOSITORY}objects/") and not place.endswith("/info/alternates")
    return (objects or not place.startswith(_REPOSITORY)) and (is_work(place) or not link)


def _added(archive: tarfile.TarFile, name: str, path: Path) -> str:
    """The line that tells what of a file is in the archive."""
    if path.is_dir() or path.is_symlink():
        archive.addfile(archive.gettarinfo(path, name))
    elif path.is_file():
        with path.open("rb") as file:
            info, found = tarfile.TarInfo(name), os.fstat(file.fileno())
            info.size, info.mode, info.mtime = found.st_size, found.st_mode & 0o777, found.st_mtime
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            file.seek(0)
            archive.addfile(info, file)
            return f"{digest}  {name}\n"
    return ""


def unpack(file: Path, into: Path) -> Manifest:
    """Unpack a file into an empty directory, where each run then is in a directory of its id. Raises `MassgenError`
    invalid_arguments for a file that is not what was written, or none of ours, journal_newer, disk_full,
    store_unavailable; what was unpacked is for the caller to remove.
    """
    try:
        with _Bounded(file) as plain, tarfile.TarFile(fileobj=plain) as archive:
            archive.extractall(into, filter=_Filter(into))  # noqa: S202 - that is what the filter is for
            if plain.read(_AT_ONCE).strip(b"\0"):
                raise _not_importable("there is extra data after its end")
        if not (into / _SUMS).is_file():
            raise _not_importable("it is incomplete: its end is missing")
        if sorted((into / _SUMS).read_bytes().splitlines()) != sorted(b"".join(_sums(into)).splitlines()):
            raise _not_importable("it was changed: the checksums don't match")
        os.sync()
        return _manifest((into / _MANIFEST).read_bytes())
    except (EOFError, zlib.error, gzip.BadGzipFile, tarfile.TarError, RecursionError, ValueError) as error:
        raise _not_importable(f"it is incomplete or was changed ({str(error) or type(error).__name__})") from error
    except OSError as error:
        if (fault := storage_fault(error)) is not None:
            raise fault from error
        raise _not_importable(error.strerror or str(error)) from error


class _Bounded(gzip.GzipFile):
    """What a header says is read at once, however long it is said to be."""

    def read(self, size: int | None = -1) -> bytes:
        if size is None or not 0 <= size <= _AT_ONCE:
            raise _not_importable("one of its headers is too long")
        return super().read(size)


class _Filter:
    """What may be unpacked. Nothing is written through a link, nor over anything."""

    def __init__(self, into: Path) -> None:
        self._into = into
        self._seen, self._links = set[str](), set[str]()
        self._bytes = 0

    def __call__(self, member: tarfile.TarInfo, path: str) -> tarfile.TarInfo:  # noqa: ARG002 - tarfile's signature
        """Also called twice for a directory."""
        top, _, place = member.name.partition("/")
        parts = PurePosixPath(place).parts
        plain = member.isdir() or member.issym() or (member.isreg() and not member.issparse())
        within = RUN_ID.fullmatch(top) and "/".join(parts) == place and ".." not in parts
        own = member.isreg() and member.name in (_MANIFEST, _SUMS)
        through = any("/".join((top, *parts[:depth])) in self._links for depth in range(1, len(parts) + 1))
        again = member.name in self._seen and not member.isdir()
        if through or again or not (own or (plain and within and _travels(place, link=member.issym()))):
            raise _not_importable(f"it contains {member.name[:80]!r}, which isn't part of a run")
        self._seen.add(member.name)
        if member.issym():
            self._links.add(member.name)
        self._bytes += member.size
        if self._bytes > MOST_BYTES or len(self._seen) > MOST_FILES or member.size > _IN_MEMORY.get(place, MOST_BYTES):
            raise _not_importable(f"it exceeds {MOST_BYTES} bytes or {MOST_FILES} files, or has an oversized record")
        if shutil.disk_usage(self._into).free < member.size + _ROOM:
            raise MassgenError("disk_full", "there isn't enough disk space for the file's contents; free some space")
        mode = member.mode & 0o777 | (0o500 if member.isdir() else 0o400)
        return member.replace(mode=mode, uid=None, gid=None, uname=None, gname=None, deep=False)  # pyright: ignore[reportArgumentType]


def _sums(into: Path) -> Iterator[bytes]:
    for directory, _, names in os.walk(into):
        for name in names:
            path = Path(directory, name)
            if not path.is_symlink() and path != into / _SUMS:
                with path.open("rb") as file:
                    digest = hashlib.file_digest(file, "sha256").hexdigest()
                yield f"{digest}  {path.relative_to(into)}\n".encode("utf-8", "surrogateescape")


def _manifest(text: bytes) -> Manifest:
    try:
        if json.loads(text)["v"] != VERSION:
            message = "a newer massgen-mcp version wrote this file; upgrade massgen-mcp"
            raise MassgenError("journal_newer", message)
        return Manifest.model_validate_json(text)
    except (ValidationError, KeyError, TypeError) as error:
        raise _not_importable("its manifest isn't valid") from error


def _not_importable(why: str) -> MassgenError:
    return MassgenError("invalid_arguments", f"cannot import this file: {why}")
