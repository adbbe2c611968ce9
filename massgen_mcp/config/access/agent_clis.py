"""Claude Code, the agent CLI that may be a team member: whether it is installed here, and whose login it would have.

Must not start it. Reads one file of the user's, the login that the CLI keeps, and writes none.
"""

import importlib.util
import json
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from massgen_mcp.config.access.acceptances import Pair
from massgen_mcp.config.access.key_hosts import CLAUDE_URL, CLAUDE_URL_VARIABLE, list_refused
from massgen_mcp.config.environment import read_key
from massgen_mcp.config.models.backends import ClaudeCodeBackendConfig

EXTRA = 'pip install "massgen-mcp[claude-code]"'
HOW_TO_GET_IT = f"npm install -g @anthropic-ai/claude-code, or {EXTRA}, which includes it (380 MB)"
API_KEY, TOKEN = "ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"
BASE_URL = CLAUDE_URL_VARIABLE
CONFIG_DIRECTORY = "CLAUDE_CONFIG_DIR"
CREDENTIAL_VARIABLES = (API_KEY, TOKEN, BASE_URL, CONFIG_DIRECTORY)
"""What decides who is asked with whose login."""

SPARE_SECONDS = 60.0
"""A login that ends sooner than this is as good as ended."""


@dataclass(frozen=True, slots=True)
class Login:
    """What the CLI is given to log in with: this value in this environment variable."""

    variable: str
    value: str = field(repr=False)


def address(environ: Mapping[str, str]) -> str:
    """Whom the CLI asks."""
    return environ.get(BASE_URL, "").strip() or CLAUDE_URL


def list_refused_keys(config: ClaudeCodeBackendConfig, environ: Mapping[str, str]) -> list[Pair]:
    """The pair of key and host that it wants and nobody accepted, if there is one."""
    return list_refused(config.api_key_env, address(environ), environ)


def find_login(config: ClaudeCodeBackendConfig, environ: Mapping[str, str]) -> Login | None:
    """The key or token in the environment, else, where the config says so, the token of the user's own login to Claude
    Code while it is valid.

    Of that login only the short-lived access token is used: whoever renewed it would log the user out elsewhere.
    Raises as `read_key` does.
    """
    if config.api_key_env is not None:
        key = None if list_refused_keys(config, environ) else read_key(environ, config.api_key_env)
        return Login(API_KEY, key) if key else None
    for variable in (API_KEY, TOKEN):
        if value := read_key(environ, variable):
            return Login(variable, value)
    token = own_login(environ) if config.use_login else None
    return Login(TOKEN, token) if token else None


def how_to_log_in(config: ClaudeCodeBackendConfig) -> str:
    """What somebody can do who has no login."""
    if config.api_key_env:
        return f"set {config.api_key_env}"
    own = "log in with `claude`" if config.use_login else "set use_login: true to use your own login"
    return f"set {API_KEY} or {TOKEN} (from `claude setup-token`), or {own}"


def find_cli(environ: Mapping[str, str]) -> str | None:
    """The CLI's path: the user's own on PATH, else the one that the extra brings."""
    if own := shutil.which("claude", path=environ.get("PATH")):
        return own
    spec = importlib.util.find_spec("claude_agent_sdk")
    if spec is None or spec.origin is None:
        return None
    bundled = Path(spec.origin).parent / "_bundled" / "claude"
    return str(bundled) if bundled.is_file() else None


def own_login(environ: Mapping[str, str]) -> str | None:
    """The access token of the user's own login to Claude Code; None where there is none or it is about to end."""
    home = environ.get("HOME")
    directory = environ.get(CONFIG_DIRECTORY) or (f"{home}/.claude" if home else None)
    if directory is None:
        return None
    try:
        stored: object = json.loads((Path(directory) / ".credentials.json").read_bytes())
    except (OSError, ValueError):
        return None
    login = cast("Mapping[str, object]", stored).get("claudeAiOauth") if isinstance(stored, dict) else None
    if not isinstance(login, dict):
        return None
    values = cast("Mapping[str, object]", login)
    token, ends = values.get("accessToken"), values.get("expiresAt")
    if not isinstance(token, str) or not isinstance(ends, int | float):
        return None
    return token if ends / 1000 > time.time() + SPARE_SECONDS else None
