"""Names of files that commonly hold secrets, and what stands in those whose name does not decide. The one rule for all
that agents see of a person's files: projects (`workspace`) and the directories of tools (`sandbox`).

A file is judged by every component of its path, in any case of letters. Pure, but for `is_from_package`.
"""

import os
import re
import unicodedata
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from contextlib import suppress
from fnmatch import fnmatchcase, translate
from functools import lru_cache
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

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
    *((".subversion", "auth"), (".codex", "auth.json"), (".gemini", "oauth_creds.json"), ("keyrings", "*")),
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


def is_noticed(above: str, name: str) -> bool:
    """Return whether a component of a path, with the one above it, may matter to `is_secret` or `depends_on_content`.
    Quick: for directories with very many files.
    """
    return not name.isascii() or _NOTICED.match(name) is not None or above.casefold() in _FIRSTS


def is_secret(parts: Sequence[str]) -> bool:
    """Return whether a path of these components is hidden whatever stands in it."""
    judged = [_judge_name(part) for part in parts]
    if any(hidden for _, hidden in judged) or any(fnmatchcase(name, PEM) for name, _ in judged[:-1]):
        return True
    return any(
        fnmatchcase(one, first) and fnmatchcase(two, second)
        for (one, _), (two, _) in pairwise(judged)
        if one in _FIRSTS
        for first, second in HIDDEN_WITHIN
    )


def depends_on_content(parts: Sequence[str]) -> bool:
    """Return whether a path of these components is hidden or not by what stands in the file."""
    return _find_credential(parts) is not None


def holds_credential(parts: Sequence[str], content: bytes) -> bool:
    """Return whether the file at a path of these components is hidden for its content, which is all of it or its first
    `EXAMINED_BYTES`.
    """
    credential = _find_credential(parts)
    return credential is not None and (len(content) > _MAX_EXAMINED_BYTES or credential.search(content) is not None)


def _find_credential(parts: Sequence[str]) -> re.Pattern[bytes] | None:
    """Return the expression that hides a path of these components if the file holds it; None: any content is fine."""
    if not parts:
        return None
    *above, name = (_judge_name(part)[0] for part in parts)
    if name in ("config", "config.worktree") and any(part.endswith(".git") for part in above):
        return _URL_CREDENTIAL
    return next((credential for pattern, credential in _BY_CONTENT if fnmatchcase(name, pattern)), None)


_FIRSTS = frozenset(first for first, _ in HIDDEN_WITHIN)
NOTICED = "|".join(
    translate(name) for name in (*HIDDEN, *(name for name, _ in _BY_CONTENT), "config", "config.worktree", "*[. ]")
)
"""An expression for names, in any case of letters, that alone may matter."""
_NOTICED = re.compile(NOTICED, re.IGNORECASE)


@lru_cache(maxsize=8192)
def _judge_name(name: str) -> tuple[str, bool]:
    """A component as `fold_name`, and whether that alone is hidden."""
    known = fold_name(name)
    return known, _fits(known, HIDDEN) and not _fits(known, SHOWN)


def fold_name(name: str) -> str:
    """A component as the most forgiving file systems compare names, without case, invisible characters and dots at the
    end.
    """
    visible = "".join(letter for letter in name if unicodedata.category(letter) != "Cf")
    return unicodedata.normalize("NFKC", visible).casefold().rstrip(". ")


def _fits(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def is_from_package(file: Path) -> bool:
    """Return whether an installed package of Python brought this very file from an index: what everybody can have, such
    as the keys of a test server, is no secret.
    """
    site = next((above for above in file.parents if above.name == "site-packages"), None)
    with suppress(OSError):
        if site is not None and file.is_file() and file.stat().st_size < EXAMINED_BYTES:
            digest = urlsafe_b64encode(sha256(file.read_bytes()).digest()).rstrip(b"=")
            line = b"%b,sha256=%b," % (os.fsencode(file.relative_to(site)), digest)
            records = site.glob("*.dist-info/RECORD")
            return any(line in one.read_bytes() for one in records if not one.with_name("direct_url.json").exists())
    return False
