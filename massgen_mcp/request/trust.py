"""Whether a config may run: asks the person where one is there, remembers a yes, and refuses everything else in words.

A yes is bound to the digest of the config and of the skills that it loads. Whoever wrote the directory may have put
anything there, so skills are read in pieces and within bounds, and no link is followed. Must not decide what is harmful
(`harm`), nor which config it is (`team`).
"""

import hashlib
import os
import shlex
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, assert_never

from massgen_mcp.config.access.acceptances import PAIRS_VARIABLE, Acceptance, accept, acceptance_of
from massgen_mcp.config.access.earlier_words import EarlierYes, read_lines
from massgen_mcp.config.access.permissions import Amount, Permission, ReadPath, SendKey, WritePath, describe
from massgen_mcp.config.diagnostics import on_one_line, show_name
from massgen_mcp.config.loader import config_path, config_places, parse_text, read_config_at, refused_keys
from massgen_mcp.config.models.config import Config
from massgen_mcp.errors import ErrorCode, MassgenError
from massgen_mcp.request.harm import Granted, beyond, harmful, outside, vouched_for
from massgen_mcp.request.reach import Reach, reach_of

MAX_SKILL_FILES = 10_000
"""Files and directories."""
MAX_SKILL_BYTES = 64 * 1024 * 1024
"""Of all files together."""
_PIECE = 1024 * 1024
_AS_A_FILE = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
"""Nothing waits for whoever writes to a pipe."""


def digest_of(text: bytes, skills: Path | None) -> str:
    """`sha256:` and 64 hexadecimal digits; without skills those of the text alone. A link counts for nothing, as no
    skill is read through one.

    Raises `MassgenError` config_invalid for skills that are too many or too large, and for what is no regular file.
    """
    whole, left = hashlib.sha256(text), MAX_SKILL_BYTES
    for file in sorted(_skill_files(skills)) if skills is not None else ():
        content, size = _hashed(file, left)
        left -= size
        name = file.relative_to(skills).as_posix() if skills is not None else ""
        whole.update(f"\0{name}\0{content}".encode(errors="surrogateescape"))
    return f"sha256:{whole.hexdigest()}"


def _skill_files(folder: Path) -> Iterator[Path]:
    waiting, seen = [folder] if folder.is_dir() else [], 0
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    seen += 1
                    if seen > MAX_SKILL_FILES:
                        raise _unfit(folder, f"has more than {MAX_SKILL_FILES:,} files and directories")
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(Path(entry.path))
                    elif not entry.is_symlink():
                        yield Path(entry.path)
        except OSError as error:
            raise _unfit(folder, f"cannot be read: {error.strerror}") from error


def _hashed(file: Path, most: int) -> tuple[str, int]:
    """The hash of a file in hexadecimal digits, and its bytes."""
    digest, size = hashlib.sha256(), 0
    try:
        with os.fdopen(os.open(file, _AS_A_FILE), "rb", buffering=0) as opened:
            if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
                raise _unfit(file, "isn't a regular file")
            while piece := opened.read(_PIECE):
                digest.update(piece)
                size += len(piece)
                if size > most:
                    raise _unfit(file, f"is too large: skills can total at most {MAX_SKILL_BYTES // 1024 // 1024} MiB")
    except OSError as error:
        raise _unfit(file, f"isn't a regular file, or can't be read: {error.strerror}") from error
    return digest.hexdigest(), size


def _unfit(place: Path, why: str) -> MassgenError:
    return MassgenError("config_invalid", f"cannot check the skills: {show_name(str(place))} {why}")


Origin = Literal["found", "person", "agent"]
"""Who chose the config: a command that looked in the working directory, a person, or an agent that calls a tool."""


@dataclass(frozen=True, slots=True)
class Consent:
    """How somebody can say yes at this door."""

    ask: Callable[[str], bool] | None = None
    """Shows a text of several lines and asks. None: nobody is there."""
    as_it_is: bool = False
    """Somebody said yes already, to whatever the config is now; that is remembered."""
    digest: str | None = None
    """`sha256:…`, which accepts exactly that and remembers nothing."""
    options: bool = False
    """Whether this door has the option --trust."""
    grants_paths: bool = False
    """Whether an agent calls, who can name paths in `context_paths`."""


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A config as it was read once. `project` is the directory that its relative paths start from."""

    path: Path
    """Absolute, without links."""
    named: Path
    """The same as it was named: absolute, links and all."""
    text: bytes
    config: Config
    project: Path
    reach: Reach
    note: str | None
    """What of it was ignored, and why."""

    def digest(self) -> str:
        """Of the file and of the skills that it loads, which are instructions as well. Raises as `digest_of`."""
        coordination = self.config.orchestrator.coordination
        return digest_of(self.text, Path(coordination.skills_directory) if coordination.use_skills else None)


def read_file(source: str | Path, environ: Mapping[str, str], project: Path) -> ConfigFile:
    """Read and check a config. Raises `MassgenError` config_not_found, config_invalid."""
    path = config_path(source)
    text = read_config_at(path, source)
    parsed = parse_text(text, str(source), environ, base_dir=project)
    root = project.resolve()
    reach = reach_of(parsed.config, environ, root)
    return ConfigFile(path.resolve(), path, text, parsed.config, root, reach, parsed.note)


def project_of(path: Path, cwd: Path) -> Path:
    """The directory that the config at `path` belongs to: the one in whose `.massgen` it lies, else `cwd`."""
    directory = path.absolute().parent.parent
    return directory if path.absolute() == config_places(directory, {})[0] else cwd


def remember(file: ConfigFile, digest: str, environ: Mapping[str, str]) -> Acceptance:
    """Accept the config, with everything that it asks for. `digest`: what it had when the person was shown it."""
    acceptance = Acceptance(
        path=str(file.path),
        digest=digest,
        permissions=file.reach.permissions,
        pairs=refused_keys(file.config, environ),
    )
    accept(acceptance, environ)
    return acceptance


@dataclass(frozen=True, slots=True)
class Trusted:
    """How a config may run."""

    environ: Mapping[str, str]
    """It differs from the caller's by the pairs that were accepted for this call alone."""
    without: tuple[Permission, ...] = ()
    """What it asks for, can do without, and has no consent."""


def require_trust(
    file: ConfigFile, origin: Origin, environ: Mapping[str, str], consent: Consent, granted: Granted
) -> Trusted:
    """Raises `MassgenError` config_untrusted, key_refused."""
    demands = _demands(file, origin, environ, granted)
    if origin == "found" and outside(file.reach, file.project):
        raise _reaches_out(file, demands, consent)
    optional = tuple(one for one in file.reach.optional_scripts if one in demands)
    needed = frozenset(demands).difference(optional)
    known = acceptance_of(file.path, environ) if demands else None
    try:
        digest = file.digest() if demands else ""
    except MassgenError as error:
        if not needed:
            return Trusted(environ, optional)
        raise _trust_error(file, origin, demands, known, f"You can't accept this config yet: {error}") from error
    accepted = frozenset[Permission]()
    if known is not None and known.digest == digest:
        accepted = _collect_accepted(file, known)
    if accepted.issuperset(demands):
        return Trusted(environ)
    enough = accepted.issuperset(needed)
    given = _consented(file, digest, environ, replace(consent, ask=None) if enough else consent, demands, known)
    if given is not None:
        return Trusted(given)
    if enough:
        return Trusted(environ, optional)
    ways = _ways(file, digest, demands, consent)
    if consent.digest is not None:
        ways = f"Its digest is {digest}, not the one in --trust."
    raise _trust_error(file, origin, demands, known, ways)


def _earlier_yes(file: ConfigFile, known: Acceptance) -> EarlierYes:
    """Return the permissions that a stored acceptance names, whichever version stored it."""
    if known.permissions is None:
        return read_lines(known.demands, file.reach.permissions)
    return EarlierYes(known.permissions, ())


def _collect_accepted(file: ConfigFile, known: Acceptance) -> frozenset[Permission]:
    """Return the permissions that an acceptance of the same text gives. The text decides the amounts: another version
    that counts them in another way is no reason to ask again.
    """
    amounts = (one for one in file.reach.permissions if isinstance(one, Amount))
    return frozenset((*_earlier_yes(file, known).accepted, *amounts))


def _consented(
    file: ConfigFile,
    digest: str,
    environ: Mapping[str, str],
    consent: Consent,
    demands: Sequence[Permission],
    known: Acceptance | None,
) -> Mapping[str, str] | None:
    """The environment for the run, if somebody says yes to all that the config asks for now."""
    if consent.digest is not None:
        pairs = " ".join(map(str, refused_keys(file.config, environ)))
        given = {**environ, PAIRS_VARIABLE: f"{environ.get(PAIRS_VARIABLE, '')} {pairs}".strip()}
        return given if consent.digest == digest else None
    if consent.as_it_is or (consent.ask is not None and consent.ask(_question(file, demands, known))):
        remember(file, digest, environ)
        return environ
    return None


def new_since(file: ConfigFile, known: Acceptance | None) -> list[str]:
    """Lines for a person who accepted this config before: what of it is new since then. None for who did not."""
    if known is None:
        return []
    earlier = _earlier_yes(file, known)
    new = [f"  + {describe(one)}" for one in file.reach.permissions if one not in earlier.accepted]
    gone = sorted(f"  - {describe(one)}" for one in earlier.accepted if one not in file.reach.permissions)
    then = f"since it was accepted on {time.strftime('%Y-%m-%d', time.localtime(known.accepted))}"
    if not new and gone:
        return [f"It asks for nothing new {then}, and no longer for:", *gone]
    if not new:
        return [f"Its permissions haven't changed {then}; only its text or skills have."]
    lines = [f"New {then}:", *new]
    if earlier.unclear:
        paths = ", ".join(on_one_line(one.path) for one in earlier.unclear if isinstance(one, ReadPath | WritePath))
        lines.append(
            f"Please confirm again for {paths}: an earlier version of massgen stored your consent as text that "
            "could match more than one path."
        )
    return lines


def _question(file: ConfigFile, demands: Sequence[Permission], known: Acceptance | None) -> str:
    """What a person reads before saying yes or no."""
    asks = "asks for" if known is None else "has changed since you accepted it, and asks for"
    first = f"{on_one_line(file.path)} {asks} permissions that need your consent:"
    return "\n".join([first, *_demand_lines(file, demands), *new_since(file, known)])


def _demands(file: ConfigFile, origin: Origin, environ: Mapping[str, str], granted: Granted) -> tuple[Permission, ...]:
    keys = [SendKey(pair.key, pair.host) for pair in refused_keys(file.config, environ)]
    match origin:
        case "found":
            others = harmful(file.config, file.reach, environ, file.project, granted, (file.project,))
        case "agent" if vouched_for(file.named, environ):
            others = beyond(file.reach, granted)
        case "agent":
            others = harmful(file.config, file.reach, environ, file.project, granted)
        case "person":
            others = ()
        case _:
            assert_never(origin)
    return tuple(dict.fromkeys((*others, *keys)))


def _reaches_out(file: ConfigFile, demands: Sequence[Permission], consent: Consent) -> MassgenError:
    path = _quoted(file.path)
    if consent.options:
        way = f"pass it explicitly: --config {path}"
    elif consent.grants_paths:
        way = f"run `massgen validate --trust {path}`, then pass the config as `team`"
    else:
        way = "pass the config's path as `config`; with LiteLLM, use the model `massgen/path:FILE`"
    listed = "\n".join(_demand_lines(file, demands))
    return MassgenError(
        "config_untrusted",
        f"{on_one_line(file.path)} came with this directory and asks for access outside it, so nothing was "
        f"started. It asks for these permissions (! means risky):\n{listed}\nA config found in a directory "
        f"is always confined to {on_one_line(file.project)}, even if you accept it. To allow this access, "
        f"{way}",
    )


def _demand_lines(file: ConfigFile, demands: Sequence[Permission]) -> list[str]:
    """Everything that the config asks for; what needs a yes is marked."""
    return [f"  {'!' if one in demands else ' '} {describe(one)}" for one in file.reach.permissions]


def _ways(file: ConfigFile, digest: str, demands: Sequence[Permission], consent: Consent) -> str:
    by_option = f", or add --trust to your command (in CI: --trust={digest})" if consent.options else ""
    ways = f"To accept its current version, run `massgen validate --trust {_quoted(file.path)}`{by_option}."
    if consent.grants_paths and all(isinstance(one, ReadPath | WritePath) for one in demands):
        ways += (
            " Or list these paths in the call's `context_paths`, with `permission: write` for those that the team "
            "may change."
        )
    return ways


def _quoted(path: Path) -> str:
    """For a shell."""
    return on_one_line(shlex.quote(str(path)))


def _trust_error(
    file: ConfigFile, origin: Origin, demands: Sequence[Permission], known: Acceptance | None, ways: str
) -> MassgenError:
    code: ErrorCode = "config_untrusted"
    listed = _demand_lines(file, demands)
    match origin:
        case "found":
            what = "came with this directory"
        case "agent":
            what, listed = "came from an agent", [f"  ! {describe(one)}" for one in demands]
        case "person":
            code, what = "key_refused", "sends a key to another provider's host"
        case _:
            assert_never(origin)
    what += ", and you haven't accepted its permissions" if known is None else ", and has changed since you accepted it"
    lines = [
        f"{on_one_line(file.path)} {what}; nothing was started. It asks for these permissions (! needs consent):",
        *listed,
        *new_since(file, known),
        ways,
    ]
    return MassgenError(code, "\n".join(lines))
