"""What is hidden from agents: files that commonly hold secrets, unless a person names the very file, and names that are
left out.

The one rule for everything of a person's that agents may read or write. A file is judged by its path, every component
of it, in any case of letters; some are hidden only if a credential stands in them. It is looked at only through the
guard, which hands in how it is opened.
"""

import io
import os
import re
import stat
import unicodedata
from base64 import urlsafe_b64encode
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from fnmatch import fnmatchcase
from functools import lru_cache
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

from massgen_mcp.workspace import openat
from massgen_mcp.workspace.names import PathHidden, PathRefused

MAX_LOOKED_AT = 200_000
"""Entries of a directory, in a search for all that is hidden in it."""


def came_with_a_package(file: Path) -> bool:
    """Whether an installed package of Python brought this very file from an index: what everybody can have, such as the
    keys of a test server, is no secret.
    """
    site = next((above for above in file.parents if above.name == "site-packages"), None)
    with suppress(OSError):
        if site is not None and file.is_file() and file.stat().st_size < EXAMINED_BYTES:
            digest = urlsafe_b64encode(sha256(file.read_bytes()).digest()).rstrip(b"=")
            line = b"%b,sha256=%b," % (os.fsencode(file.relative_to(site)), digest)
            records = site.glob("*.dist-info/RECORD")
            return any(line in one.read_bytes() for one in records if not one.with_name("direct_url.json").exists())
    return False


class Hidden:
    """`directory` opens one by the components of its path, `open_file` a regular file, and refuses a hidden one.
    `above` and `without` as `Root` has them.
    """

    def __init__(
        self,
        directory: Callable[[list[str]], AbstractContextManager[int]],
        open_file: Callable[[str], io.FileIO],
        above: tuple[str, ...] | None,
        without: frozenset[str],
    ) -> None:
        self._directory = directory
        self._open_file = open_file
        self._above = above
        self._without = without
        self._secret_files: frozenset[tuple[int, int]] | None = None

    @property
    def has_secrets(self) -> bool:
        """Whether the directory is a person's, in which secrets are hidden."""
        return self._above is not None

    def hides(self, parts: Sequence[str], *, content: bool = False) -> bool:
        """Whether the path is hidden by its names, or, where that is to be looked at, for what stands in the file."""
        if parts and parts[0] in self._without:
            return True
        if self._above is None:
            return False
        whole = (*self._above, *parts)
        if is_secret(whole):
            return True
        if not content or not depends_on_content(whole):
            return False
        try:
            self._open_file("/".join(parts)).close()
        except PathHidden:
            return True
        except PathRefused:
            return False  # no regular file, or none that can be read
        return False

    def is_secret_file(self, fd: int, parts: Sequence[str]) -> bool:
        """Whether an open file holds a credential where its name makes that matter, or is also called like a secret."""
        if self._above is None:
            return False
        whole = (*self._above, *parts)
        if depends_on_content(whole) and holds_credential(whole, os.pread(fd, EXAMINED_BYTES, 0)):
            return True
        return self._has_secret_name(os.fstat(fd))

    def paths(self) -> tuple[tuple[str, ...], bool]:
        """The paths of everything hidden below the directory, and of its sockets, for whoever shows it in another way;
        and whether that is all: no more than `MAX_LOOKED_AT` entries are looked at.
        """
        found: list[str] = []
        pending: deque[list[str]] = deque([[]])
        seen = 0
        while pending:
            parts = pending.popleft()
            with suppress(OSError), self._directory(parts) as directory, os.scandir(directory) as items:
                for item in items:
                    seen += 1
                    if seen > MAX_LOOKED_AT:
                        return tuple(found), False
                    path = [*parts, item.name]
                    if self._conceals(path, item):
                        found.append("/".join(path))
                    elif item.is_dir(follow_symlinks=False):
                        pending.append(path)
        return tuple(found), True

    def _conceals(self, parts: list[str], item: "os.DirEntry[str]") -> bool:
        if self.hides(parts, content=True):
            return not came_with_a_package(Path(*(self._above or ()), *parts))
        if item.is_dir(follow_symlinks=False) or item.is_symlink():
            return False
        found = item.stat(follow_symlinks=False)
        return stat.S_ISSOCK(found.st_mode) or (self._above is not None and self._has_secret_name(found))

    def _has_secret_name(self, found: os.stat_result) -> bool:
        """Whether another name of this file is hidden."""
        return found.st_nlink > 1 and (found.st_dev, found.st_ino) in self._other_names()

    def _other_names(self) -> frozenset[tuple[int, int]]:
        """Device and inode of the hidden files below this directory, looked up once."""
        if self._secret_files is None:
            found: set[tuple[int, int]] = set()
            pending: deque[list[str]] = deque([[]])
            seen = 0
            while pending and seen < MAX_LOOKED_AT:
                parts = pending.popleft()
                with suppress(OSError), self._directory(parts) as directory, os.scandir(directory) as items:
                    for item in items:
                        seen += 1
                        path = [*parts, item.name]
                        if item.is_dir(follow_symlinks=False):
                            pending.append(path)
                        elif self._is_secret_entry(directory, path, item):
                            status = item.stat(follow_symlinks=False)
                            found.add((status.st_dev, status.st_ino))
            self._secret_files = frozenset(found)
        return self._secret_files

    def _is_secret_entry(self, directory: int, path: list[str], item: "os.DirEntry[str]") -> bool:
        """Whether a file is hidden by its names, or by what stands in it and can be seen under another name, too."""
        whole = (*(self._above or ()), *path)
        if is_secret(whole):
            return True
        if not depends_on_content(whole) or item.stat(follow_symlinks=False).st_nlink == 1:
            return False
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        try:
            with openat.closing(os.open(item.name, flags, dir_fd=directory)) as fd:
                return holds_credential(whole, os.pread(fd, EXAMINED_BYTES, 0))
        except OSError:
            return True


HIDDEN = (
    *(".env*", ".ssh", ".aws", ".azure", ".gnupg", ".oci", ".password-store", ".vault-token", ".vault_pass*"),
    *(".netrc", "_netrc", ".pgpass", "pgpass.conf", ".my.cnf", ".mylogin.cnf", ".pypirc", ".git-credentials"),
    *(".htpasswd", ".dockercfg", ".s3cfg", ".boto", "client_secret*.json"),
    *("*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.ppk", "*.kdbx"),
    *("id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*"),
    *(".*_history", "fish_history", ".histfile"),
)
"""Patterns of one component of a path: a file of that name, or everything below a directory of that name."""

HIDDEN_WITHIN = (
    *((".docker", "config.json"), (".kube", "config"), (".config", "gcloud"), (".config", "gh"), (".config", "hub")),
    *((".config", "rclone"), (".config", "op"), (".config", "containers"), (".streamlit", "secrets.toml")),
    *((".cargo", "credentials*"), (".gem", "credentials"), (".terraform.d", "credentials*"), (".claude", ".cred*")),
    *((".codex", "auth.json"), (".gemini", "oauth_creds.json"), ("keyrings", "*")),
)
"""Patterns of two components, the second right below the first."""

SHOWN = (".env*.example", ".env*.sample", ".env*.template")
"""Patterns of names that are shown although one of `HIDDEN` fits."""

PEM = "*.pem"
"""A file of that name may hold a private key, or certificates alone; everything below a directory of it is hidden."""

_URL_CREDENTIAL = re.compile(rb"https?://[^/\s\"'@]+@|^\s*extraheader\s*=", re.IGNORECASE | re.MULTILINE)
_NPM_CREDENTIAL = re.compile(rb"_auth|_password|npmAuth|^\s*(?:cert)?key\s*=", re.IGNORECASE | re.MULTILINE)
_NOT_PUBLIC = re.compile(
    rb"PRIVATE KEY|\A(?![\s\S]*-----BEGIN (?:(?:TRUSTED |X509 )?CERTIFICATE|CERTIFICATE REQUEST|X509 CRL|"
    rb"(?:RSA )?PUBLIC KEY|DH PARAMETERS)-----)",
    re.IGNORECASE,
)
"""A private key, or none of what is made to be handed out."""
_BY_CONTENT: tuple[tuple[str, re.Pattern[bytes]], ...] = (
    (PEM, _NOT_PUBLIC),
    (".npmrc", _NPM_CREDENTIAL),
    (".yarnrc*", _NPM_CREDENTIAL),
    ("pip.conf", _URL_CREDENTIAL),
    (".gitmodules", _URL_CREDENTIAL),
    (".gitconfig", _URL_CREDENTIAL),
)
_MAX_EXAMINED_BYTES = 1024 * 1024
"""A file that is judged by its content is hidden when it is larger. The certificates of all authorities are 300 KB."""
EXAMINED_BYTES = _MAX_EXAMINED_BYTES + 1
"""So much of a file is to be looked at."""

WHY = (
    "is hidden, such files commonly hold secrets; continue without it (the caller can allow it by naming this "
    "very file among the context paths)"
)


def is_secret(parts: Sequence[str]) -> bool:
    """Whether a path of these components is hidden whatever stands in it."""
    judged = [_judged(part) for part in parts]
    if any(hidden for _, hidden in judged) or any(fnmatchcase(name, PEM) for name, _ in judged[:-1]):
        return True
    return any(
        fnmatchcase(one, first) and fnmatchcase(two, second)
        for (one, _), (two, _) in pairwise(judged)
        if one in _FIRSTS
        for first, second in HIDDEN_WITHIN
    )


def depends_on_content(parts: Sequence[str]) -> bool:
    """Whether a path of these components is hidden or not by what stands in the file."""
    return _credential_in(parts) is not None


def holds_credential(parts: Sequence[str], content: bytes) -> bool:
    """Whether the file at a path of these components is hidden for what stands in it, which is all of it or its first
    `EXAMINED_BYTES`.
    """
    credential = _credential_in(parts)
    return credential is not None and (len(content) > _MAX_EXAMINED_BYTES or credential.search(content) is not None)


def _credential_in(parts: Sequence[str]) -> re.Pattern[bytes] | None:
    """What hides a path of these components if it stands in the file; None where the content does not matter."""
    if not parts:
        return None
    *above, name = (_judged(part)[0] for part in parts)
    if name in ("config", "config.worktree") and any(part.endswith(".git") for part in above):
        return _URL_CREDENTIAL
    return next((credential for pattern, credential in _BY_CONTENT if fnmatchcase(name, pattern)), None)


_FIRSTS = frozenset(first for first, _ in HIDDEN_WITHIN)


@lru_cache(maxsize=8192)
def _judged(name: str) -> tuple[str, bool]:
    """A component as `folded`, and whether that alone is hidden."""
    known = folded(name)
    return known, _fits(known, HIDDEN) and not _fits(known, SHOWN)


def folded(name: str) -> str:
    """A component as the most forgiving file systems compare names, without case, invisible characters and dots at the
    end.
    """
    visible = "".join(letter for letter in name if unicodedata.category(letter) != "Cf")
    return unicodedata.normalize("NFKC", visible).casefold().rstrip(". ")


def _fits(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
