"""The Claude Code CLI as a backend."""

from typing import Literal

from pydantic import Field

from massgen_mcp.config.models.backend_base import PricedBackendConfig
from massgen_mcp.config.models.common import VARIABLE_PATTERN, ModelName


class ClaudeCodeBackendConfig(PricedBackendConfig, frozen=True):
    """The Claude Code CLI as an agent, with the team's tools in place of its own. Needs the CLI and a login."""

    type: Literal["claude_code"]
    """The Claude Code CLI."""
    model: ModelName = Field(default="default", pattern=r"^[A-Za-z0-9][^\s]*$")
    """`default`: whatever the CLI takes."""
    api_key_env: str | None = Field(default=None, pattern=VARIABLE_PATTERN)
    """Name of the environment variable that holds an API key. Default: ANTHROPIC_API_KEY or CLAUDE_CODE_OAUTH_TOKEN,
    whichever is set.
    """
    reasoning_effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    """How long the model thinks. Default: as the CLI has it."""
    use_login: bool = False
    """Whether it may use your own login to Claude Code, where no key or token is set."""
    max_thinking_tokens: int | None = Field(default=None, ge=0, le=1_000_000)
    """For models that think by a budget; the others have `reasoning_effort`. Default: as the CLI has it."""
    max_turns: int = Field(default=50, ge=1, le=1000)
    """Model calls within one step; it needs a second one only where it tries a tool that it has not."""
