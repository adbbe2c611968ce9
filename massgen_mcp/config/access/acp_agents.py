"""Agent CLIs that speak the Agent Client Protocol: whether one is installed here, and what it is given to log in.

Must not start one. Reads a login file of the user's only for a config that says `login: own`.
"""

import json
import shlex
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

from massgen_mcp.config.access.acceptances import Pair
from massgen_mcp.config.access.acp_presets import PRESETS, Preset
from massgen_mcp.config.access.key_hosts import is_model_key, is_own_key
from massgen_mcp.config.diagnostics import on_one_line
from massgen_mcp.config.models.backends import AcpBackendConfig
from massgen_mcp.config.providers.keys import is_set
from massgen_mcp.config.variables import called_a_secret

MAX_LOGIN_BYTES = 1 << 20
SECRET_LENGTH = 16


def preset_of(config: AcpBackendConfig) -> Preset:
    """What is known of this CLI; for a command of the config's own, nothing but its command."""
    if config.preset is not None:
        return PRESETS[config.preset]
    program, *arguments = config.command or ("",)
    return Preset(program, tuple(arguments))


def shown_name(config: AcpBackendConfig) -> str:
    return config.preset or Path(preset_of(config).program).name


def find_program(config: AcpBackendConfig, environ: Mapping[str, str]) -> str | None:
    return shutil.which(preset_of(config).program, path=environ.get("PATH"))


def hosts_of(config: AcpBackendConfig) -> tuple[str, ...]:
    """All that an enclosed one can reach."""
    return (*preset_of(config).hosts, *config.hosts)


def variables_of(config: AcpBackendConfig) -> tuple[str, ...]:
    """Names of the variables that it is given."""
    keys = preset_of(config).key_variables if config.login == "key" else ()
    return tuple(dict.fromkeys((*keys, *config.env)))


def login_variables(config: AcpBackendConfig) -> tuple[str, ...]:
    """Names of the variables that decide whose login it uses."""
    return tuple(filter(None, (*variables_of(config), preset_of(config).directory[0])))


def pairs_of(config: AcpBackendConfig, environ: Mapping[str, str]) -> Iterator[Pair]:
    """The keys that are passed on and set, each with every host that it can be sent to."""
    for name in variables_of(config):
        if is_set(environ, name) and (is_model_key(name) or called_a_secret(name)):
            hosts = (host.removesuffix(":443") for host in hosts_of(config))
            yield from (Pair(key=name, host=host) for host in hosts)


def own_login(config: AcpBackendConfig, environ: Mapping[str, str]) -> Path | None:
    """The file of the user's own login, if there is one."""
    preset, home = preset_of(config), environ.get("HOME")
    variable, usual = preset.directory
    if not preset.login_file or not home:
        return None
    moved = environ.get(variable, "") if variable else ""
    file = Path(moved, preset.login_file.removeprefix(f"{usual}/")) if moved else Path(home, preset.login_file)
    return file if file.is_file() else None


def login_secrets(config: AcpBackendConfig, environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The login that it uses, to be kept out of everything that is said."""
    file = own_login(config, environ) if config.login == "own" else None
    if file is None:
        return
    try:
        with file.open("rb") as opened:
            texts = [*_long_texts(json.loads(opened.read(MAX_LOGIN_BYTES)))]
    except (OSError, ValueError, RecursionError):
        return
    yield from ((f"of your login to {shown_name(config)}", text) for text in texts)


def starts(config: AcpBackendConfig) -> tuple[str, ...]:
    preset = preset_of(config)
    words = ["the agent CLI", on_one_line(shlex.join([preset.program, *preset.arguments]))]
    words += ["with your own login, so your subscription pays"] if config.login == "own" else []
    words += [f"given {', '.join(given)}"] if (given := variables_of(config)) else []
    words += ["outside the sandbox, with all your rights"] if config.outside else []
    return (" ".join(words),)


def destination(config: AcpBackendConfig, environ: Mapping[str, str]) -> tuple[str, str]:
    given = [environ.get(name, "") for name in login_variables(config)]
    return f"acp/{shown_name(config)}", "\0".join(given)


def _long_texts(value: object) -> Iterator[str]:
    match value:
        case str() if len(value) >= SECRET_LENGTH and value.isprintable() and " " not in value:
            yield value
        case dict():
            for each in cast("dict[str, object]", value).values():
                yield from _long_texts(each)
        case list():
            for each in cast("list[object]", value):
                yield from _long_texts(each)
        case _:
            pass


def lack(config: AcpBackendConfig, environ: Mapping[str, str]) -> str | None:
    """What has to be installed, or said otherwise, before it can work here; None: nothing."""
    preset, name = preset_of(config), shown_name(config)
    if find_program(config, environ) is None:
        how = f": {preset.install}" if preset.install else ""
        return f"acp needs the program {preset.program}{how}"
    if config.login == "own" and own_login(config, environ) is None:
        return f"login: own, but {name} has no login of yours here; log in with it first, or write login: key"
    for key in config.env:
        if is_model_key(key) and key not in preset.key_variables and not _may_have(config, key, environ):
            return f"env: {key} is the key of a model's provider, and {name} can send it to hosts that are not its own"
    return None


def _may_have(config: AcpBackendConfig, key: str, environ: Mapping[str, str]) -> bool:
    hosts = hosts_of(config)
    enclosed = config.enclosure == "required" and bool(hosts)
    return enclosed and all(is_own_key(key, f"https://{host}", environ) for host in hosts)


def missing_login(config: AcpBackendConfig, environ: Mapping[str, str]) -> list[tuple[str, ...]]:
    """What keeps a run with it from starting: groups of variables, of each of which one has to be set."""
    keys = preset_of(config).key_variables if config.login == "key" else ()
    groups = [*([(*keys, *config.env)] if keys else []), *((name,) for name in config.env)]
    return [names for names in groups if not any(is_set(environ, name) for name in names)]
