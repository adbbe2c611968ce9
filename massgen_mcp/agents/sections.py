"""What Python callers say of an agent, as sections of a config. There is no other way to the engine than this config.

Whatever the engine cannot honour is refused here or by the config's parser, by name; nothing is dropped. A key never
enters a config: it is replaced by the name of the variable that holds it. A key that a program gives as text stays in
the memory of this process, under the name of a variable that nobody has set: a config may hold such a name, and a run
of this process finds the key there.
"""

import copy
import os
import re
from collections.abc import Mapping
from itertools import count
from typing import Any

from massgen_mcp.agents.settings import UnsupportedSettingError, mapping
from massgen_mcp.config.access.acceptances import PAIRS_VARIABLE, Pair
from massgen_mcp.config.access.key_hosts import host_of
from massgen_mcp.config.massgen import claude_code_agents
from massgen_mcp.config.massgen.backends import SYSTEM_KEYS
from massgen_mcp.config.models.common import VARIABLE_PATTERN, Settings
from massgen_mcp.config.providers.catalog import (
    BY_HOST,
    NativeTool,
    credential_variables,
    named_provider,
    native_tools_of,
)
from massgen_mcp.config.providers.model_names import detect_backend
from massgen_mcp.errors import MassgenError
from massgen_mcp.name_lists import join_names

_NAMES_OF_KEYS = (f"MASSGEN_GIVEN_KEY_{number}" for number in count(1))
_given_keys: dict[str, str] = {}
"""Names by key."""
_hosts_of_keys: dict[Pair, None] = {}
"""Where each may go: whoever writes a key and an address side by side means it so."""


def name_of_key(key: str, address: str | None) -> str:
    """The name for this key, which may go to this address; without one, where keys of its kind may go."""
    name = _given_keys.get(key) or _given_keys.setdefault(key, next(_NAMES_OF_KEYS))
    if address:
        _hosts_of_keys[Pair(key=name, host=host_of(address))] = None
    return name


def with_given_keys(environ: Mapping[str, str]) -> Mapping[str, str]:
    """The environment of a run in this process."""
    if not _given_keys:
        return environ
    pairs = " ".join([environ.get(PAIRS_VARIABLE, ""), *map(str, _hosts_of_keys)]).strip()
    return {**environ, **{name: key for key, name in _given_keys.items()}, PAIRS_VARIABLE: pairs}


CLAUDE_CODE = "claude_code"
DEFAULT_MODELS = ("gpt-4o", "gpt-4o-mini")
"""Of the factories per kind of task, whatever their backend."""

DISALLOWED_TOOLS = ("Bash(rm*)", "Bash(sudo*)", "Bash(su*)", "Bash(chmod*)", "Bash(chown*)")
"""What a Claude Code agent may not do unless its config says otherwise."""


def section(backend_type: str, model: str | None, extra: dict[str, object], **settings: object) -> dict[str, Any]:
    """A backend section. Settings that are None or False are at their default and left out, as is a model of None.

    Raises `MassgenError("invalid_arguments")` when `extra` sets what the factory itself decides.
    """
    own = {"type": backend_type, "model": model, **settings}
    if taken := sorted(own.keys() & extra.keys()):
        raise MassgenError("invalid_arguments", f"{', '.join(taken)}: set by this factory, not a further parameter")
    return {**{key: value for key, value in own.items() if value is not None and value is not False}, **extra}


def with_tool(backend: str, model: str, *wanted: NativeTool) -> dict[str, Any]:
    """A section with the first of the wanted tools that the backend has.

    Raises `MassgenError("config_invalid")` if it has none of them, or if there is no such backend.
    """
    backend_type = type_of(backend)
    # Without an address of its own the compatible type is at OpenAI.
    offered = native_tools_of("openai" if backend_type == BY_HOST else backend_type)
    tool = next((tool for tool in wanted if tool in offered), None)
    if tool is None:
        flags = join_names((f"enable_{name}" for name in wanted), "or")
        raise MassgenError("config_invalid", f"{backend_type} offers no {flags} here; take another backend")
    return section(backend_type, _model_of(backend_type, model), {}, **{f"enable_{tool}": True})


def plain(backend: str, model: str) -> dict[str, Any]:
    """A section without tools. Raises `MassgenError("config_invalid")` if there is no such backend."""
    backend_type = type_of(backend)
    return section(backend_type, _model_of(backend_type, model), {})


def _model_of(backend_type: str, model: str) -> str:
    """The presets' default models are OpenAI's; another company that has only its own gives its strong one for them."""
    if model not in DEFAULT_MODELS or backend_type in (CLAUDE_CODE, "openai"):
        return model
    return named_provider(backend_type).strong_model or model


def type_of(backend: str) -> str:
    """The backend type of this name or alias. Raises `MassgenError("config_invalid")` with the nearest name."""
    if backend == CLAUDE_CODE:
        return CLAUDE_CODE
    return named_provider(backend).type


def expertise(domain: str, level: str) -> str:
    """Instructions for an agent that answers within one field."""
    return (
        f"Your field is {domain}, and you work in it as a {level}. Use its terms and methods precisely, rest claims on "
        "what the field has established, and say where it disagrees or does not know."
    )


_VARIABLE = r"\$\{[A-Z_][A-Z0-9_]*\}"


def instructions(custom: object, params: Mapping[str, object]) -> str | None:
    """The agent's own instructions: its custom ones, then those among its backend parameters. None: there are none.

    Raises `MassgenError("config_invalid")` for one that is not text.
    """
    parts = {"custom_instruction": custom, **{key: params.get(key) for key in SYSTEM_KEYS}}
    for name, part in parts.items():
        if not isinstance(part, str | None):
            raise MassgenError("config_invalid", f"{name}: expected text, not {type(part).__name__[:60]}")
    return "\n\n".join(part for part in parts.values() if isinstance(part, str) and part) or None


def backend_section(given: object, environ: Mapping[str, str]) -> dict[str, Any]:
    """Backend parameters under the names of a config. A value of None means that the parameter is not set."""
    params = mapping(given, "backend_params")
    backend = {
        key: copy.deepcopy(value) for key, value in params.items() if value is not None and key not in SYSTEM_KEYS
    }
    if "type" not in backend and isinstance(backend.get("model"), str):
        backend["type"], backend["model"] = detect_backend(backend["model"])
    if backend.get("type") == CLAUDE_CODE:
        backend, problems = claude_code_agents.translated(backend)
        for setting, message in problems.items():
            raise UnsupportedSettingError(setting, message)
    if (key := _written_key(backend)) is not None:
        del backend["api_key"]
        backend["api_key_env"] = _variable_of(key, environ, _address_in(params))
    return backend


def with_written_key(params: Mapping[str, Any], environ: Mapping[str, str]) -> Mapping[str, str]:
    """The environment in which a key that these backend parameters hold as text has a name."""
    if key := _written_key(params):
        name_of_key(key, _address_in(params))
    return with_given_keys(environ)


def changed(settings: Mapping[str, Any], engine: Settings) -> dict[str, Any]:
    """Those of the settings that differ from the engine's defaults."""
    default = engine.model_dump(mode="json")
    return {key: value for key, value in settings.items() if value != default[key]}


def _written_key(params: Mapping[str, Any]) -> str | None:
    """A key that stands there itself, and not the name of its variable."""
    key = params.get("api_key")
    return key if isinstance(key, str) and not re.fullmatch(_VARIABLE, key) else None


def _address_in(params: Mapping[str, Any]) -> str | None:
    address = params.get("endpoint") or params.get("base_url")
    return address if isinstance(address, str) else None


def _variable_of(key: str, environ: Mapping[str, str], address: str | None) -> str:
    """The name of a variable whose value is this key, the providers' own first. In the environment of this process any
    key has a name.
    """
    for name in (*credential_variables(), *sorted(environ)):
        if key and environ.get(name) == key and re.fullmatch(VARIABLE_PATTERN, name):
            return name
    if key and environ is os.environ:
        return name_of_key(key, address)
    raise MassgenError(
        "config_invalid",
        "api_key: a config holds names of variables and never a key. Set the key in the environment and leave api_key "
        "out, or name the variable with api_key_env.",
    )
