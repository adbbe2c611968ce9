"""Unpacks an image that lies on this machine, so that its programs can be used without Docker or Podman.

An image is a directory in OCI layout, a tar file of one, or a file as `docker save` writes it. It is not trusted: what
it holds stays below one new directory, whatever its names and links say; there are no devices, no rights of others and
no more bytes and files than are allowed. Must not run anything of it.
"""

import gzip
import hashlib
import io
import json
import os
import platform
import secrets
import stat
import tarfile
import time
import zlib
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, cast

from massgen_mcp.sandbox.policy import Image, ImageRefused

MAX_BYTES = 16 * 1024**3
"""Of all layers together, unpacked."""
MAX_FILES = 1_000_000
MAX_LAYERS = 200
MAX_LINKS = 40
"""Symbolic links on the way to one name."""
MAX_DOCUMENT_BYTES = 4 * 1024**2
MAX_HEADER_BYTES = 1024**2
"""Of what a layer says of one name beside its content."""
DAY = 86_400.0
CHUNK_BYTES = 1024**2
WHITEOUT, OPAQUE, OF_AUFS = ".wh.", ".wh..wh..opq", ".wh..wh."
USUAL_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_NOT_TAKEN_OVER = frozenset({"HOME", "TMPDIR", "USER"})
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
_DAMAGED = (
    *(OSError, EOFError, ValueError, LookupError, TypeError, AttributeError, RecursionError),
    *(tarfile.TarError, zlib.error),
)
"""What reading something else than an image leads to."""
_ZSTANDARD = b"\x28\xb5\x2f\xfd"
_GZIP = b"\x1f\x8b"


def unpacked(source: Path, kept_in: Path) -> Image:
    """The image at `source`, from `kept_in` if it was unpacked there before. Raises `ImageRefused`."""
    try:
        with _opened(source) as store:
            return _kept(store, kept_in)
    except _DAMAGED as error:
        raise ImageRefused(f"it cannot be unpacked: {type(error).__name__}: {str(error)[:200]}") from error


# -- where the parts of an image lie ----------------------------------------------------------------------------------


class _Store:
    """The files of a layout, in a directory or in a tar file, by their names."""

    def __init__(self, directory: Path | None, archive: tarfile.TarFile | None) -> None:
        self._directory = directory
        self._archive = archive

    def open(self, name: str) -> IO[bytes] | None:
        if any(part in ("", ".", "..") for part in name.split("/")):
            raise ImageRefused(f"it names {name[:100]!a} as a part of itself")
        if self._directory is not None:
            with suppress(FileNotFoundError):
                found = os.open(self._directory / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
                file = os.fdopen(found, "rb")
                if stat.S_ISREG(os.fstat(found).st_mode):
                    return file
                file.close()
        elif self._archive is not None:
            for written in (name, f"./{name}"):
                with suppress(KeyError):
                    return self._archive.extractfile(self._archive.getmember(written))
        return None

    def document(self, name: str, digest: str | None = None) -> Any:  # noqa: ANN401 - as JSON has it
        file = self.open(name)
        if file is None:
            raise ImageRefused(f"its part {name[:100]!a} is missing")
        with file:
            text = file.read(MAX_DOCUMENT_BYTES + 1)
        if len(text) > MAX_DOCUMENT_BYTES:
            raise ImageRefused(f"its part {name[:100]!a} is too large")
        if digest is not None and f"sha256:{hashlib.sha256(text).hexdigest()}" != digest:
            raise ImageRefused(f"its part {name[:100]!a} is damaged")
        return json.loads(text)

    def blob(self, described: Mapping[str, Any]) -> Any:  # noqa: ANN401 - as above
        return self.document(_place(described["digest"]), described["digest"])


@contextmanager
def _opened(source: Path) -> Generator[_Store]:
    if source.is_dir():
        yield _Store(source, None)
        return
    try:
        archive = tarfile.open(source, "r:", tarinfo=_Header)  # noqa: SIM115 - closed below
    except tarfile.ReadError:
        why = "it is no directory in OCI layout, and no uncompressed file as `docker save` writes it"
        raise ImageRefused(why) from None
    with archive:
        yield _Store(None, archive)


def _place(digest: str) -> str:
    kind, _, value = str(digest).partition(":")
    if kind != "sha256" or len(value) != 64 or not value.isalnum():
        raise ImageRefused(f"it names its parts by {str(digest)[:100]!a}, and only sha256 is known")
    return f"blobs/sha256/{value}"


def _described(store: _Store) -> tuple[dict[str, Any], list[str]]:
    """What the image says of itself, and where its layers lie, the lowest first."""
    file = store.open("manifest.json")
    if file is not None:  # of `docker save`, which may have both
        file.close()
        images = store.document("manifest.json")
        if len(images) != 1:
            raise ImageRefused(f"it holds {len(images)} images; save one of them")
        return store.document(images[0]["Config"]), [str(layer) for layer in images[0]["Layers"]]
    manifest = _manifest(store, store.document("index.json"))
    return store.blob(manifest["config"]), [_place(layer["digest"]) for layer in manifest["layers"]]


def _manifest(store: _Store, index: Mapping[str, Any]) -> dict[str, Any]:
    """The one image for this machine."""
    for _ in range(4):  # an index may name others
        ours = [one for one in index["manifests"] if _is_for_this_machine(one.get("platform"))]
        if len(ours) != 1:
            raise ImageRefused(f"it holds {len(ours)} images for this machine; save one of them")
        found = store.blob(ours[0])
        if "layers" in found:
            return found
        index = found
    raise ImageRefused("its indexes lie too deep")


def _is_for_this_machine(config: Mapping[str, Any] | None) -> bool:
    if config is None:
        return True
    return config.get("os") == "linux" and config.get("architecture") == _MACHINES.get(platform.machine())


# -- unpacking --------------------------------------------------------------------------------------------------------


def _kept(store: _Store, kept_in: Path) -> Image:
    config, layers = _described(store)
    if not _is_for_this_machine(config):
        raise ImageRefused(f"it is for {config.get('os')}/{config.get('architecture')}")
    sums = [str(one) for one in config["rootfs"]["diff_ids"]]
    if len(sums) != len(layers) or len(layers) > MAX_LAYERS:
        raise ImageRefused(f"it has {len(layers)} layers, and sums of {len(sums)}; at most {MAX_LAYERS} are taken")
    whole = kept_in / hashlib.sha256("\0".join(sums).encode()).hexdigest()[:32]
    if not whole.is_dir():
        kept_in.mkdir(mode=0o700, parents=True, exist_ok=True)
        for left in kept_in.glob(".*"):  # by a process that was killed
            if left.stat().st_mtime < time.time() - DAY:
                _remove(left)
        fresh = kept_in / f".{secrets.token_hex(8)}"
        try:
            _Unpacking(fresh).take(store, list(zip(layers, sums, strict=True)))
            with suppress(FileExistsError, OSError):  # another one was quicker
                fresh.rename(whole)
        finally:
            _remove(fresh)
    return Image(whole, _environ(config.get("config") or {}))


def _environ(config: Mapping[str, Any]) -> dict[str, str]:
    given = [str(entry).partition("=") for entry in config.get("Env") or ()]
    named = {name: value for name, sign, value in given if sign and name not in _NOT_TAKEN_OVER and "\0" not in value}
    return {"PATH": USUAL_PATH, **named}


class _Unpacking:
    """Layers that become one tree. Nobody else writes into it, so what was looked at is still so when it is used."""

    def __init__(self, root: Path) -> None:
        root.mkdir(mode=0o700)
        self._root = root
        self._bytes = self._files = 0
        self._of_this_layer: set[Path] = set()

    def take(self, store: _Store, layers: Sequence[tuple[str, str]]) -> None:
        for name, expected in layers:
            file = store.open(name)
            if file is None:
                raise ImageRefused(f"its layer {name[:100]!a} is missing")
            self._of_this_layer = set()
            with file, _Summed(_plain(file)) as content:
                with tarfile.open(fileobj=content, mode="r|", tarinfo=_Header) as layer:
                    for member in layer:
                        self._add(layer, member)
                if content.sum() != expected:
                    raise ImageRefused(f"its layer {name[:100]!a} is damaged")

    def _add(self, layer: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        self._count(member.size if member.isreg() else 0)
        parts = _parts(member.name)
        if not parts:
            return  # the root itself
        parent = self._directory(parts[:-1])
        name = parts[-1]
        if name == OPAQUE:
            for below in [*parent.iterdir()]:
                if below not in self._of_this_layer:
                    _remove(below)
            return
        if name.startswith(OF_AUFS):
            return
        if name.startswith(WHITEOUT):
            _remove(parent / _parts(name.removeprefix(WHITEOUT))[0])
            return
        place = parent / name
        if self._make(layer, member, place):
            self._note(place)

    def _make(self, layer: tarfile.TarFile, member: tarfile.TarInfo, place: Path) -> bool:
        if member.isdir():
            if place.is_symlink() or not place.is_dir():
                _remove(place)
                place.mkdir()
            place.chmod(member.mode & 0o777 | 0o700)
        elif member.issym():
            _remove(place)
            place.symlink_to(member.linkname)
        elif member.islnk():
            target = _parts(member.linkname)
            original = self._directory(target[:-1]) / target[-1]
            if original.is_dir() and not original.is_symlink():
                raise ImageRefused(f"its link {member.name[:100]!a} is to a directory")
            if original != place:
                _remove(place)
                os.link(original, place, follow_symlinks=False)
        elif member.isreg():
            _remove(place)
            self._write(layer, member, place)
        else:
            return False  # a device or a pipe: whatever runs gets its own
        return True

    def _write(self, layer: tarfile.TarFile, member: tarfile.TarInfo, place: Path) -> None:
        content = cast("IO[bytes]", layer.extractfile(member))
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with content, os.fdopen(os.open(place, flags, 0o600), "wb") as file:
            while chunk := content.read(CHUNK_BYTES):
                file.write(chunk)
            os.fchmod(file.fileno(), member.mode & 0o777 | 0o600)

    def _directory(self, parts: Sequence[str]) -> Path:
        """The directory of that name, which is made if it is not there. Links lead from the image's own root."""
        here, left, links = self._root, [*parts], 0
        while left:
            part = left.pop(0)
            if part == "..":
                here = here if here == self._root else here.parent
                continue
            below = here / part
            if below.is_symlink():
                links += 1
                if links > MAX_LINKS:
                    raise ImageRefused(f"its links run in circles at {part[:100]!a}")
                target = str(below.readlink())
                here = self._root if target.startswith("/") else here
                left[:0] = [piece for piece in target.split("/") if piece not in ("", ".")]
                continue
            if not below.is_dir():
                below.mkdir()  # raises where a file is in the way
                below.chmod(0o755)
                self._count(0)
                self._of_this_layer.add(below)
            here = below
        return here

    def _note(self, place: Path) -> None:
        while place != self._root and place not in self._of_this_layer:
            self._of_this_layer.add(place)
            place = place.parent

    def _count(self, size: int) -> None:
        self._files += 1
        self._bytes += size
        if self._bytes > MAX_BYTES or self._files > MAX_FILES:
            raise ImageRefused(f"it has more than {MAX_BYTES // 1024**3} GiB or {MAX_FILES} files")


def _parts(name: str) -> list[str]:
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts or "\0" in name:
        raise ImageRefused(f"it holds the name {name[:100]!a}")
    return parts


def _remove(place: Path) -> None:
    """Whatever lies there, and nothing that a link in it leads to."""
    if place.is_symlink() or not place.is_dir():
        place.unlink(missing_ok=True)
        return
    for directory, below, files in os.walk(place, topdown=False):
        for name in files:
            Path(directory, name).unlink()
        for name in below:
            path = Path(directory, name)
            path.unlink() if path.is_symlink() else path.rmdir()
    place.rmdir()


class _Header(tarfile.TarInfo):
    """An entry whose own description is bounded: tarfile takes it into memory whole."""

    _LONG = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME)

    def _proc_member(self, tarfile_: tarfile.TarFile) -> tarfile.TarInfo | None:
        if self.type in (*self._LONG, tarfile.GNUTYPE_LONGLINK) and self.size > MAX_HEADER_BYTES:
            raise ImageRefused("it describes a file at too great length")
        if self.type == tarfile.GNUTYPE_SPARSE:
            raise ImageRefused("it holds files with holes")
        return super()._proc_member(tarfile_)  # type: ignore[misc]  # meant to be overridden, and in no stub


def _plain(file: IO[bytes]) -> IO[bytes]:
    """The layer as a tar file, whatever it is compressed with."""
    buffered = io.BufferedReader(cast("io.RawIOBase", file), CHUNK_BYTES)
    head = buffered.peek(4)[:4]
    if head == _ZSTANDARD:
        raise ImageRefused("its layers are compressed with zstd, which is not supported; save it with gzip")
    return cast("IO[bytes]", gzip.GzipFile(fileobj=buffered) if head[:2] == _GZIP else buffered)


class _Summed(io.RawIOBase):
    """Reads on, and knows the sum of what was read; at most so many bytes as an image may have."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._sum = hashlib.sha256()
        self._left = MAX_BYTES + MAX_FILES * 1024

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        chunk = self._file.read(CHUNK_BYTES if size < 0 else size)
        self._left -= len(chunk)
        if self._left < 0:
            raise ImageRefused(f"it has more than {MAX_BYTES // 1024**3} GiB")
        self._sum.update(chunk)
        return chunk

    def sum(self) -> str:
        """Of all that there is, read to its end."""
        while self.read(CHUNK_BYTES):
            pass
        return f"sha256:{self._sum.hexdigest()}"
