"""The digest of a config and of the skills that it loads: what a person's yes is bound to.

Whoever wrote the directory may have put anything there, so it is read in pieces and within bounds, and no link
is followed.
"""

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from massgen_mcp.config.diagnostics import show_name
from massgen_mcp.errors import MassgenError

MAX_ENTRIES = 10_000
"""Files and directories."""
MAX_BYTES = 64 * 1024 * 1024
"""Of all files together."""
_PIECE = 1024 * 1024
_AS_A_FILE = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
"""Nothing waits for whoever writes to a pipe."""


def digest_of(text: bytes, skills: Path | None) -> str:
    """`sha256:` and 64 hexadecimal digits; without skills those of the text alone. A link counts for nothing, as no
    skill is read through one.

    Raises `MassgenError` config_invalid for skills that are too many or too large, and for what is no regular file.
    """
    whole, left = hashlib.sha256(text), MAX_BYTES
    for file in sorted(_files(skills)) if skills is not None else ():
        content, size = _hashed(file, left)
        left -= size
        name = file.relative_to(skills).as_posix() if skills is not None else ""
        whole.update(f"\0{name}\0{content}".encode(errors="surrogateescape"))
    return f"sha256:{whole.hexdigest()}"


def _files(folder: Path) -> Iterator[Path]:
    waiting, seen = [folder] if folder.is_dir() else [], 0
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    seen += 1
                    if seen > MAX_ENTRIES:
                        raise _refusal(folder, f"has more than {MAX_ENTRIES:,} files and directories")
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(Path(entry.path))
                    elif not entry.is_symlink():
                        yield Path(entry.path)
        except OSError as error:
            raise _refusal(folder, f"cannot be read: {error.strerror}") from error


def _hashed(file: Path, most: int) -> tuple[str, int]:
    """The hash of a file in hexadecimal digits, and its bytes."""
    digest, size = hashlib.sha256(), 0
    try:
        with os.fdopen(os.open(file, _AS_A_FILE), "rb", buffering=0) as opened:
            if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
                raise _refusal(file, "is no regular file")
            while piece := opened.read(_PIECE):
                digest.update(piece)
                size += len(piece)
                if size > most:
                    raise _refusal(file, f"is too large: skills may have {MAX_BYTES // 1024 // 1024} MiB together")
    except OSError as error:
        raise _refusal(file, f"is no regular file, or cannot be read: {error.strerror}") from error
    return digest.hexdigest(), size


def _refusal(place: Path, why: str) -> MassgenError:
    return MassgenError("config_invalid", f"the skills cannot be checked: {show_name(str(place))} {why}")
