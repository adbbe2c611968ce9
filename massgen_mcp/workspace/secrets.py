"""Which files commonly hold secrets, and are hidden from agents unless a person names the very file.

The one rule for everything of a person's that agents may read or write. A file is judged by its path, every component
of it, in any case of letters; some are hidden only if a credential stands in them.
"""

import re
import unicodedata
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import pairwise

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
