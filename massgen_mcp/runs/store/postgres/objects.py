"""The files of runs in an object store: S3, GCS, Azure, or a directory that several machines mount.

A run has archives there. Each holds what was written since the one before, and tells what is gone. They are read in the
order of their names, which begin with the epoch of whoever wrote them: what a worker still writes that has lost its run
comes before what its successor wrote.
"""

import io
import json
import secrets
import tarfile
import tempfile
from collections.abc import Collection, Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from stat import S_ISDIR, S_ISLNK, S_ISREG
from typing import Literal

import obstore
from obstore.exceptions import BaseError
from obstore.store import ObjectStore, from_url

from massgen_mcp.errors import MassgenError, storage_error
from massgen_mcp.runs.engine import Expirable
from massgen_mcp.runs.engine.files import locked
from massgen_mcp.runs.store.kept_files import PULLED, PULLING, is_work, places
from massgen_mcp.workspace.snapshot import remove_tree

LAST_EPOCH = 10**8 - 1
"""Of what is written of a run that has ended, when its worker was lost."""
IN_MEMORY = 1 << 20
PULL_SECONDS = 60.0
_GONE = ".gone"

Kind = Literal["files", "work"]
"""`work`: the agents' workspaces, for whoever goes on with the run; `files`: the rest, for everybody."""
KINDS: Mapping[Expirable, tuple[Kind, ...]] = {"workspaces": ("work",), "results": ("files", "work")}


class RunObjects:
    """Blocks. Raises `MassgenError` invalid_arguments for an address that nothing can be kept at, store_unavailable."""

    def __init__(self, url: str) -> None:
        self.url = f"file://{url}" if url.startswith("/") else url

    @cached_property
    def _store(self) -> ObjectStore:
        with suppress(OSError):  # where it cannot be made the store says so
            if self.url.startswith("file://"):
                Path(self.url.removeprefix("file://")).mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            return from_url(self.url)
        except (BaseError, ValueError) as error:
            message = f"cannot store files at {self.url.partition('?')[0]}: {_first_line(error)}"
            raise MassgenError("invalid_arguments", message) from error

    def archives(self, run_id: str, kinds: Collection[Kind] = ("files",)) -> list[tuple[str, int]]:
        """Names and sizes, in order."""
        with _translated():
            batches = obstore.list(self._store, f"runs/{run_id}")  # pyright: ignore[reportUnknownMemberType]
            found = [one for batch in batches for one in batch]
        return sorted((one["path"], one["size"]) for one in found if _kind(one["path"]) in kinds)

    def put(self, name: str, root: Path, there: Iterable[str], gone: Iterable[str]) -> None:
        """Write an archive of this name with what is at these places below `root`."""
        with tempfile.SpooledTemporaryFile(IN_MEMORY) as file:
            with tarfile.open(fileobj=file, mode="w:gz", compresslevel=1) as archive:
                _add(archive, _GONE, json.dumps(sorted(gone)).encode())
                for place in there:
                    _add_file(archive, root, place)
            file.seek(0)
            with _translated():
                obstore.put(self._store, name, file)

    def pull(self, run_id: str, root: Path, kinds: Collection[Kind] = ("files",), *, only: str | None = None) -> None:
        """Bring a directory up to date. `only`: nothing but the file of this name."""
        marker = root / PULLED
        try:
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            with locked(root / PULLING, patience=PULL_SECONDS):
                seen = marker.read_text() if marker.exists() and only is None else ""
                for name, _ in self.archives(run_id, kinds):
                    if name > seen:
                        self._unpack(name, root, only)
                        if only is None:
                            marker.write_text(name)
                        elif (root / only).exists():
                            break
        except OSError as error:
            raise storage_error(f"cannot load the files of {run_id}", error) from error

    def _unpack(self, name: str, root: Path, only: str | None) -> None:
        with tempfile.SpooledTemporaryFile(IN_MEMORY) as file:
            with _translated():
                for chunk in obstore.get(self._store, name):
                    file.write(chunk)
            file.seek(0)
            with tarfile.open(fileobj=file, mode="r:gz") as archive:
                for member in archive:
                    if member.name == _GONE:
                        _remove(root, json.loads(archive.extractfile(member).read()))  # pyright: ignore[reportOptionalMemberAccess]
                    elif only in (None, member.name):
                        with suppress(tarfile.FilterError):  # a link of an agent's that leads out of the run
                            _replace(archive, member, root)

    def remove(self, run_id: str, part: Expirable) -> None:
        with _translated():
            obstore.delete(self._store, [name for name, _ in self.archives(run_id, KINDS[part])])

    def probe(self) -> None:
        """Whether something can be written, read and deleted there."""
        name, written = f"probe-{secrets.token_hex(8)}", b"massgen doctor"
        with _translated():
            obstore.put(self._store, name, written)
            read = bytes(obstore.get(self._store, name).bytes())
            obstore.delete(self._store, name)
        if read != written:
            raise MassgenError("store_unavailable", f"{self.url} doesn't return the data that massgen wrote")


@dataclass(slots=True)
class Mirror:
    """The directory of a run that is executed here, and its archives. From one thread at a time."""

    objects: RunObjects
    run_id: str
    root: Path
    epoch: int
    archives: int = 0
    """So many may be there already."""
    _known: dict[str, tuple[int, int, int]] = field(default_factory=dict[str, tuple[int, int, int]])

    def fetch(self) -> None:
        """Begin with what others have written."""
        remove_tree(self.root)
        self.objects.pull(self.run_id, self.root, KINDS["results"])
        self._known = dict(places(self.root, everything=True))

    def leave(self) -> None:
        """The run has ended: what is for people goes there as well, and nobody goes on with the workspaces."""
        self.keep(last=True)
        self.objects.remove(self.run_id, "workspaces")
        remove_tree(self.root)

    def keep(self, *, last: bool = False) -> None:
        """Write what is new. `last`: also what is written for people, who need it when the run has ended."""
        found = dict(places(self.root, everything=last))
        new = [place for place, mark in found.items() if self._known.get(place) != mark]
        gone = [place for place in self._known if place not in found and (last or "/" in place)]
        for kind in KINDS["results"]:
            there, lost = ([one for one in chosen if is_work(one) == (kind == "work")] for chosen in (new, gone))
            if (there or lost) and not (last and kind == "work"):
                self.archives += 1
                name = f"runs/{self.run_id}/{self.epoch:08d}-{self.archives:020d}-{kind}.tar.gz"
                self.objects.put(name, self.root, there, lost)
        for place in gone:
            del self._known[place]
        self._known |= found


def _kind(name: str) -> str:
    return name.removesuffix(".tar.gz").rpartition("-")[2]


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    archive.addfile(info, io.BytesIO(data))


def _add_file(archive: tarfile.TarFile, root: Path, place: str) -> None:
    """As it is now; it may change meanwhile."""
    path = root / place
    with suppress(FileNotFoundError):
        info = archive.gettarinfo(path, place)
        if not (S_ISREG(mode := path.lstat().st_mode) or S_ISDIR(mode) or S_ISLNK(mode)):
            return
        data = path.read_bytes() if S_ISREG(mode) else b""
        info.type, info.linkname = (tarfile.REGTYPE, "") if S_ISREG(mode) else (info.type, info.linkname)
        info.size = len(data)
        archive.addfile(info, io.BytesIO(data))


def _remove(root: Path, places: Iterable[str]) -> None:
    for place in places:
        if (path := root / place).parent.resolve().is_relative_to(root.resolve()):
            remove_tree(path)


def _replace(archive: tarfile.TarFile, member: tarfile.TarInfo, root: Path) -> None:
    """No link that lies in its place is followed, and whoever reads it sees the old content or the new one."""
    path = root / member.name
    if path.is_symlink() or path.is_dir() != member.isdir():
        _remove(root, [member.name])
    if not member.isreg():
        archive.extract(member, root, filter="data")
    elif path.parent.resolve().is_relative_to(root.resolve()):
        fresh = f".{secrets.token_hex(8)}.new"
        archive.extract(member.replace(name=fresh, deep=False), root, filter="data")
        (root / fresh).chmod(member.mode & 0o777)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        (root / fresh).replace(path)


@contextmanager
def _translated() -> Generator[None]:
    try:
        yield
    except (BaseError, OSError) as error:
        raise MassgenError("store_unavailable", f"the object store failed: {_first_line(error)}") from error


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]
