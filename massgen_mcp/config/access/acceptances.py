"""What a person accepted: files with what they ask for, and hosts that may get a key which is not their own.

Kept in the user's state directory and in a list in the user's config directory, never in a project. Must not decide
what has to be accepted. Whatever cannot be read counts as not accepted.
"""

import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated

import platformdirs
from pydantic import BaseModel, Field, StringConstraints, ValidationError

from massgen_mcp.config.access.permissions import Permission
from massgen_mcp.config.yaml_reader import read_yaml
from massgen_mcp.errors import MassgenError, storage_error
from massgen_mcp.home import find_home, find_usual_path, written_beside

CONFIG_HOME_VARIABLE = "MASSGEN_CONFIG_HOME"
"""Directory of the user's own `config.yaml` and `keys.yaml`, instead of the operating system's usual place."""
PAIRS_VARIABLE = "MASSGEN_ALLOWED_KEYS"
"""Further pairs of the operator's, as VARIABLE@HOST, separated by blanks."""
PAIRS_FILE = "keys.yaml"
MAX_PAIRS_FILE = 1024 * 1024


class Pair(BaseModel, frozen=True, defer_build=True, extra="forbid"):
    """A variable, and a host that may get the key in it."""

    key: str = Field(min_length=1, max_length=200)
    """Name of the variable."""
    host: Annotated[str, StringConstraints(to_lower=True, min_length=1, max_length=300)]
    """As `key_hosts.host_of` writes it: with its port unless it is the usual one, with http:// if not encrypted."""

    def __str__(self) -> str:
        return f"{self.key}@{self.host}"


class Acceptance(BaseModel, frozen=True, defer_build=True, extra="forbid"):
    """A config that a person accepted, as it was then."""

    path: str
    """Absolute, without links."""
    digest: str
    """As `sha256:` and 64 hexadecimal digits, of the file and of what else it makes effective."""
    permissions: tuple[Permission, ...] | None = None
    """Everything that it asks for. None: an earlier version kept it, in `demands`."""
    demands: tuple[str, ...] = ()
    """The same in the words of an earlier version (see `config.access.earlier_words`)."""
    pairs: tuple[Pair, ...] = ()
    accepted: float = 0.0
    """Seconds since the epoch."""


class _Pairs(BaseModel, frozen=True, defer_build=True, extra="forbid"):
    allow: tuple[Pair, ...] = ()


def user_directory(environ: Mapping[str, str]) -> Path:
    """Where the user's own `config.yaml` and `keys.yaml` are."""
    chosen = environ.get(CONFIG_HOME_VARIABLE)
    usual = partial(platformdirs.user_config_path, "massgen")
    return (Path(chosen) if chosen else find_usual_path(usual)).absolute()


def accepted_pairs(environ: Mapping[str, str]) -> frozenset[Pair]:
    """Every pair that this user or operator accepted. Raises `MassgenError` config_invalid for a wrong `keys.yaml`."""
    kept = (pair for acceptance in acceptances(environ) for pair in acceptance.pairs)
    return frozenset([*kept, *_accepted_pairs(user_directory(environ) / PAIRS_FILE), *_of_the_environment(environ)])


def acceptances(environ: Mapping[str, str]) -> list[Acceptance]:
    """All of them, by path."""
    found: list[Acceptance] = []
    for file in _trust_directory(environ).glob("*.json"):
        with suppress(OSError, ValidationError):
            found.append(Acceptance.model_validate_json(file.read_bytes()))
    return sorted(found, key=lambda one: one.path)


def acceptance_of(path: Path, environ: Mapping[str, str]) -> Acceptance | None:
    """What was accepted of the file at `path`, whatever it is now."""
    with suppress(OSError, ValidationError):
        return Acceptance.model_validate_json(_file(path, environ).read_bytes())
    return None


def accept(acceptance: Acceptance, environ: Mapping[str, str]) -> None:
    """Remember it, in place of an earlier one of the same file. Raises `MassgenError` disk_full, store_unavailable."""
    file = _file(Path(acceptance.path), environ)
    dated = acceptance.model_copy(update={"accepted": time.time()})
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with written_beside(file, dated.model_dump_json(indent=1).encode()) as fresh:
            fresh.replace(file)
    except OSError as error:
        raise storage_error(f"cannot save your consent in {file.parent}", error) from error


def forget(path: Path, environ: Mapping[str, str]) -> bool:
    """Take the acceptance of a file back, its pairs too. False: there was none."""
    file = _file(path, environ)
    try:
        file.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise storage_error(f"cannot delete {file}", error) from error
    return True


def _trust_directory(environ: Mapping[str, str]) -> Path:
    return find_home(environ).path / "trust"


def _file(path: Path, environ: Mapping[str, str]) -> Path:
    """One file per config, so that two commands that accept at once lose nothing."""
    return _trust_directory(environ) / f"{hashlib.sha256(os.fsencode(path)).hexdigest()[:32]}.json"


def _accepted_pairs(file: Path) -> tuple[Pair, ...]:
    try:
        text = file.read_bytes()[: MAX_PAIRS_FILE + 1]
    except OSError:
        return ()
    try:
        return _Pairs.model_validate_json(json.dumps(read_yaml(text, str(file)).data or {})).allow
    except ValidationError:
        shown = "expected a list `allow` whose entries each have `key` (a variable name) and `host`"
        raise MassgenError("config_invalid", f"{file}: {shown}") from None


def _of_the_environment(environ: Mapping[str, str]) -> Iterator[Pair]:
    for word in environ.get(PAIRS_VARIABLE, "").split():
        key, at, host = word.partition("@")
        with suppress(ValidationError):
            if at:
                yield Pair(key=key, host=host)
