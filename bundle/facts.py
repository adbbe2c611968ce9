"""The documents, as data. No I/O but reading `pyproject.toml` and the plugin for Codex as it is."""

import json
import tomllib
from pathlib import Path
from typing import Any

from massgen_mcp import __version__
from massgen_mcp.cli.massgen_mcp.install.clients import CLIENTS, SERVER, ServerCommand
from massgen_mcp.config.access.prices import PRICE_AS_VARIABLE
from massgen_mcp.config.own_clis import OWN_LOGINS_VARIABLE
from massgen_mcp.config.providers.catalog import PROVIDERS, credential_variables
from massgen_mcp.home import HOME_VARIABLE

ROOT = Path(__file__).parent.parent
SERVER_JSON = ROOT / "server.json"
MANIFEST = ROOT / "bundle/manifest.json"
CODEX_PLUGIN = ROOT / "plugins/massgen/.codex-plugin/plugin.json"
SKILL = ROOT / "plugins/massgen/skills/ask-other-models/SKILL.md"
CODEX_SKILL = ROOT / "plugins/massgen/codex/skills/ask-other-models/SKILL.md"
IN_CODEX = """\
Tell the user in one line what runs, with the `run_id`, and go on with other work. Codex wakes you only by a hook that
   the user has trusted. If the newest reply says that you will be woken, end your turn. Else call `wait_run` again and
   again until the run has ended: an answer that comes after your turn is never delivered."""
REGISTRY_NAME = "io.github.massgen-mcp/massgen-mcp"
"""The registry asks for this name in the README, as proof that both belong to the same people."""
REGISTRY_SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"


def server_json() -> dict[str, Any]:
    project = _project()
    return {
        "$schema": REGISTRY_SCHEMA,
        "name": REGISTRY_NAME,
        "title": project["name"],
        "description": _short(project["description"]),
        "version": __version__,
        "packages": [
            {
                "registryType": "pypi",
                "identifier": project["name"],
                "version": __version__,
                "runtimeHint": "uvx",
                "transport": {"type": "stdio"},
                "environmentVariables": [
                    {"name": name, "description": told, "isRequired": False, "isSecret": True, "format": "string"}
                    for name, told in _keys().items()
                ],
            }
        ],
    }


def manifest() -> dict[str, Any]:
    project = _project()
    return {
        "manifest_version": "0.4",
        "name": project["name"],
        "display_name": project["name"],
        "version": __version__,
        "description": _short(project["description"]),
        "author": {"name": project["authors"][0]["name"]},
        "license": project["license"],
        "keywords": project["keywords"],
        "server": {
            "type": "uv",
            "entry_point": "massgen_mcp/cli/massgen_mcp/main.py",
            "mcp_config": {
                "command": "uv",
                "args": ["run", "--no-dev", "--directory", "${__dirname}", project["name"]],
                "env": {name: f"${{user_config.{name.lower()}}}" for name in _keys()},
            },
        },
        "tools_generated": True,
        "compatibility": {
            "platforms": ["darwin", "linux"],
            "runtimes": {"python": project["requires-python"]},
        },
        "user_config": {
            name.lower(): {
                "type": "string",
                "title": name,
                "description": told,
                "required": False,
                "sensitive": True,
                "default": "",  # without one the name would be taken for a key
            }
            for name, told in _keys().items()
        },
    }


def codex_plugin() -> dict[str, Any]:
    """With the variables that the server needs: Codex hands nothing else on."""
    names = [*credential_variables(), PRICE_AS_VARIABLE, OWN_LOGINS_VARIABLE, HOME_VARIABLE]
    entry = CLIENTS["codex"].entry(ServerCommand(SERVER, (), names))
    return {**json.loads(CODEX_PLUGIN.read_text()), "mcpServers": {"massgen": entry}}


def codex_skill() -> str:
    """The skill as Codex's model reads it: step 4 says what wakes Codex, which knows no tasks."""
    head, rest = SKILL.read_text().split("\n4. ", 1)
    return f"{head}\n4. {IN_CODEX}\n5. {rest.split(chr(10) + '5. ', 1)[1]}"


def written(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def _short(description: str) -> str:
    """What it does, without in what form; the registry takes 100 characters."""
    return description.partition(":")[0] + "."


def _keys() -> dict[str, str]:
    """The first key variable of every provider, with what it is."""
    keys: dict[str, str] = {}
    for provider in PROVIDERS:
        if provider.key_required and provider.key_variables:
            keys.setdefault(provider.key_variables[0], f"Key of {provider.type}; needed only for its models")
    return keys
