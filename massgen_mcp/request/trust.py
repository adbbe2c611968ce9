"""Whether a config may run: asks the person where one is there, remembers a yes, and refuses everything else in words.

Must not decide what is harmful (`harm`), nor which config it is (`team`).
"""

import hashlib
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, assert_never

from massgen_mcp.config.acceptances import PAIRS_VARIABLE, Acceptance, accept, acceptance_of
from massgen_mcp.config.loader import config_path, config_places, parse_text, read_config, refused_keys
from massgen_mcp.config.models.config import Config
from massgen_mcp.errors import ErrorCode, MassgenError
from massgen_mcp.request.harm import beyond, harmful, outside
from massgen_mcp.request.reach import KEY, Reach, on_one_line, reach_of

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
    granted: tuple[Path, ...] = ()
    """Paths that the call itself names: what a config that an agent names may read."""
    writable: tuple[Path, ...] = ()
    """Those of them that it may have changed."""
    options: bool = False
    """Whether this door has the option --trust."""


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A config as it was read once. `project` is the directory that its relative paths start from."""

    path: Path
    text: bytes
    config: Config
    project: Path
    reach: Reach
    note: str | None
    """What of it was ignored, and why."""

    def digest(self) -> str:
        """Of the file and of the skills that it loads, which are instructions as well."""
        whole = hashlib.sha256(self.text)
        coordination = self.config.orchestrator.coordination
        if coordination.use_skills:
            folder = Path(coordination.skills_directory)
            for file in sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()):
                content = hashlib.sha256(file.read_bytes()).hexdigest()
                whole.update(f"\0{file.relative_to(folder).as_posix()}\0{content}".encode(errors="surrogateescape"))
        return f"sha256:{whole.hexdigest()}"


def read_file(source: str | Path, environ: Mapping[str, str], project: Path) -> ConfigFile:
    """Read and check a config. Raises `MassgenError` config_not_found, config_invalid."""
    text = read_config(source)
    parsed = parse_text(text, str(source), environ, base_dir=project)
    root = project.resolve()
    reach = reach_of(parsed.config, environ, root)
    return ConfigFile(config_path(source).resolve(), text, parsed.config, root, reach, parsed.note)


def project_of(path: Path, cwd: Path) -> Path:
    """The directory that the config at `path` belongs to: the one in whose `.massgen` it lies, else `cwd`."""
    directory = path.absolute().parent.parent
    return directory if path.absolute() == config_places(directory, {})[0] else cwd


def remember(file: ConfigFile, environ: Mapping[str, str]) -> Acceptance:
    """Accept the config as it is now, with everything that it asks for."""
    acceptance = Acceptance(
        path=str(file.path),
        digest=file.digest(),
        demands=file.reach.demands(),
        pairs=refused_keys(file.config, environ),
    )
    accept(acceptance, environ)
    return acceptance


def require_trust(file: ConfigFile, origin: Origin, environ: Mapping[str, str], consent: Consent) -> dict[str, str]:
    """The environment for the run; it differs from `environ` by the pairs that were accepted for this call alone.

    Raises `MassgenError` config_untrusted, key_refused.
    """
    demands = _demands(file, origin, environ, consent)
    if origin == "found" and outside(file.reach, file.project):
        raise _reaches_out(file, demands, consent)
    if not demands or _is_remembered(file, demands, environ):
        return dict(environ)
    if consent.digest is not None:
        if consent.digest != file.digest():
            raise _refusal(file, origin, demands, f"Its digest is {file.digest()}, not the one that --trust names.")
        pairs = " ".join(map(str, refused_keys(file.config, environ)))
        return {**environ, PAIRS_VARIABLE: f"{environ.get(PAIRS_VARIABLE, '')} {pairs}".strip()}
    if consent.as_it_is or (consent.ask is not None and consent.ask(question(file, demands))):
        remember(file, environ)
        return dict(environ)
    raise _refusal(file, origin, demands, _ways(file, consent))


def question(file: ConfigFile, demands: Sequence[str]) -> str:
    """What a person reads before saying yes or no."""
    return "\n".join([f"{on_one_line(file.path)} asks for what needs your consent:", *_listed(file, demands)])


def _demands(file: ConfigFile, origin: Origin, environ: Mapping[str, str], consent: Consent) -> tuple[str, ...]:
    keys = [f"{KEY}{pair.key} to {pair.host}" for pair in refused_keys(file.config, environ)]
    match origin:
        case "found":
            others = harmful(file.config, file.reach, environ, file.project)
        case "agent":
            others = beyond(file.reach, consent.granted, consent.writable)
        case "person":
            others = ()
        case _:
            assert_never(origin)
    return tuple(dict.fromkeys((*others, *keys)))


def _is_remembered(file: ConfigFile, demands: Sequence[str], environ: Mapping[str, str]) -> bool:
    known = acceptance_of(file.path, environ)
    return known is not None and set(demands) <= set(known.demands) and known.digest == file.digest()


def _reaches_out(file: ConfigFile, demands: Sequence[str], consent: Consent) -> MassgenError:
    path = _quoted(file.path)
    way = f"--config {path}" if consent.options else f"as `config` (over MCP after `massgen-mcp trust {path}`)"
    listed = "\n".join(_listed(file, demands))
    return MassgenError(
        "config_untrusted",
        f"{on_one_line(file.path)} came with this directory and reaches out of it; nothing was started. It asks for "
        f"(! could harm):\n{listed}\nA config that is found in a directory stays within "
        f"{on_one_line(file.project)}, accepted or not. If you mean it, name the config: {way}",
    )


def _listed(file: ConfigFile, demands: Sequence[str]) -> list[str]:
    """Everything that the config asks for; what needs a yes is marked."""
    return [f"  {'!' if line in demands else ' '} {line}" for line in file.reach.demands()]


def _ways(file: ConfigFile, consent: Consent) -> str:
    by_option = f", with --trust, or in CI with --trust={file.digest()}" if consent.options else ""
    return f"Accept it as it is now with `massgen-mcp trust {_quoted(file.path)}`{by_option}."


def _quoted(path: Path) -> str:
    """For a shell."""
    return on_one_line(shlex.quote(str(path)))


def _refusal(file: ConfigFile, origin: Origin, demands: Sequence[str], ways: str) -> MassgenError:
    code: ErrorCode = "config_untrusted"
    if origin == "found":
        what = "came with this directory, and nobody accepted what it asks for"
    elif all(line.startswith(KEY) for line in demands):
        code, what = "key_refused", "sends a key to a host that is not its own, and nobody accepted that"
    else:
        what = "reaches more than the paths that this call names in context_paths, and nobody accepted that"
    listed = "\n".join(_listed(file, demands))
    return MassgenError(
        code, f"{on_one_line(file.path)} {what}; nothing was started. It asks for (! needs consent):\n{listed}\n{ways}"
    )
