"""Every backend that an agent can have, as one closed union."""

from typing import Annotated, Any, Literal, get_args

from pydantic import ConfigDict, Field, StringConstraints, TypeAdapter, model_validator

from massgen_mcp.config.models.ag2 import Ag2BackendConfig
from massgen_mcp.config.models.common import (
    VARIABLE_PATTERN,
    HostPort,
    ModelName,
    Price,
    PricedBackendConfig,
    PrintableName,
    Settings,
)
from massgen_mcp.config.models.http_backends import (
    AzureBackendConfig,
    LocalBackendConfig,
    OllamaBackendConfig,
    ProviderBackendConfig,
)


class ClaudeCodeBackendConfig(PricedBackendConfig, frozen=True):
    """The Claude Code CLI as an agent, with the team's tools in place of its own. Needs the CLI and a login."""

    type: Literal["claude_code"]
    """The Claude Code CLI."""
    model: ModelName = Field(default="default", pattern=r"^[A-Za-z0-9][^\s]*$")
    """`default`: the CLI's own choice."""
    api_key_env: str | None = Field(default=None, pattern=VARIABLE_PATTERN)
    """Environment variable that holds the API key. Default: ANTHROPIC_API_KEY or CLAUDE_CODE_OAUTH_TOKEN."""
    reasoning_effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    """How long the model thinks. Default: the CLI's setting."""
    use_login: bool = False
    """Allow your own Claude Code login if no key or token is set."""
    max_thinking_tokens: int | None = Field(default=None, ge=0, le=1_000_000)
    """Thinking budget, for models without `reasoning_effort`. Default: the CLI's setting."""
    max_turns: int = Field(default=200, ge=1, le=1000)
    """Maximum number of model calls in one Claude Code conversation. A round can include several conversations."""


AcpPreset = Literal["codex", "claude_code", "gemini_cli", "opencode", "copilot"]
ACP_PRESETS: tuple[str, ...] = get_args(AcpPreset)


class AcpBackendConfig(PricedBackendConfig, frozen=True):
    """An agent CLI that speaks the Agent Client Protocol, in a sandbox of its own, with the team's tools. It has either
    a `preset` or a `command`.
    """

    type: Literal["acp"]
    """An agent CLI over ACP."""
    preset: AcpPreset | None = None
    """A supported CLI."""
    command: tuple[PrintableName, ...] | None = Field(default=None, min_length=1, max_length=50)
    """Another CLI: a program and its arguments."""
    model: ModelName = "default"
    """`default`: the CLI's own choice. Choosing another model requires a preset."""
    reasoning_effort: Literal["minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    """How long the model thinks, for `codex` and `claude_code`. Default: the CLI's setting."""
    login: Literal["own", "key"] = "key"
    """`own`: your own CLI login and its subscription. `key`: an API key from an environment variable."""
    env: tuple[Annotated[str, StringConstraints(pattern=VARIABLE_PATTERN)], ...] = Field(default=(), max_length=50)
    """Additional environment variables to pass to the CLI, which otherwise gets only its key."""
    hosts: tuple[HostPort, ...] = Field(default=(), max_length=50)
    """Hosts that the CLI may connect to in addition to the preset's, as `host:port`."""
    enclosure: Literal["required", "off"] = "required"
    """`off`: the CLI runs outside the sandbox with your full permissions. Allowed only in your own config."""

    @model_validator(mode="after")
    def _fits(self) -> "AcpBackendConfig":
        if (self.preset is None) == (self.command is None):
            raise ValueError(f"expected one of: preset ({', '.join(ACP_PRESETS)}), command")
        if self.command is not None and self.login == "own":
            raise ValueError("login: own needs a preset, which defines where the login is stored")
        if self.model != "default" and self.preset is None:
            raise ValueError("model: massgen can't set the model for your own command; set it in the CLI's settings")
        if self.reasoning_effort is not None and self.preset not in ("codex", "claude_code"):
            raise ValueError("reasoning_effort works only with codex and claude_code")
        return self

    @property
    def outside(self) -> str | None:
        return "enclosure" if self.enclosure == "off" else None


class ScriptStep(Settings, frozen=True):
    """One model call of a scripted agent. Exactly one of `answer`, `vote`, `say`, `call`, `fail` and `hang` is set."""

    answer: str | None = None
    """Submit this text with `new_answer`."""
    vote: str | None = None
    """Vote for the answer whose text contains this, or for the `own`, `first` or `last` answer shown."""
    reason: str = "It answers the question best."
    """With `vote`: the reason that is given."""
    same_as: tuple[str, ...] | None = None
    """With `vote`: the other answers that say the same, each named like the one that is voted for."""
    say: str | None = None
    """Reply with text and no tool call: the final answer in a presentation, a rule violation elsewhere."""
    call: str | None = None
    """Call the tool of this name."""
    arguments: dict[str, Any] = Field(default_factory=dict[str, Any])
    """With `call`: the arguments of the call."""
    fail: (
        Literal[
            "auth",
            "quota_exhausted",
            "rate_limited",
            "model_not_found",
            "unreachable",
            "provider_error",
            "broken_stream",
        ]
        | None
    ) = None
    """Fail as a provider would."""
    hang: bool = False
    """Never answer."""
    delay_seconds: float = Field(default=0.0, ge=0, le=3600)
    """Wait this long before the step."""
    after_file: str | None = None
    """Wait until a file with this path exists before the step."""

    @model_validator(mode="after")
    def _exactly_one_action(self) -> "ScriptStep":
        chosen = [name for name in ("answer", "vote", "say", "call", "fail") if getattr(self, name) is not None]
        if len(chosen) + self.hang != 1:
            raise ValueError("a script step needs exactly one of: answer, vote, say, call, fail, hang")
        return self


class ScriptedBackendConfig(PricedBackendConfig, frozen=True):
    """A deterministic stand-in for a model, for demos, tests and documentation."""

    type: Literal["scripted"]
    """A script instead of a model."""
    model: ModelName = "scripted"
    """The displayed model name."""
    price: Price | None = Price(input_usd_per_million=0, output_usd_per_million=0)
    """A simulated price. `null`: an unknown price."""
    script: tuple[ScriptStep, ...] = ()
    """One step per model call. After the last step, or without a script, the agent answers once, votes for the
    alphabetically first answer, writes no tests, and presents its own answer.
    """
    presentation: str | None = None
    """The agent's final answer if it wins. Default: its latest answer."""
    chunk_delay_seconds: float = Field(default=0.0, ge=0, le=60)
    """Pause between chunks of streamed text, so that a demo looks live."""


class InstalledBackendConfig(PricedBackendConfig, frozen=True):
    """An agent that uses an adapter you installed."""

    type: Literal["installed"]
    """An installed adapter."""
    adapter: PrintableName = Field(min_length=1, max_length=64)
    """The adapter's name."""
    settings: dict[str, Any] = Field(default_factory=dict[str, Any])
    """The adapter's settings."""

    @property
    def model(self) -> str:
        return str(self.settings.get("model", self.adapter))


BackendConfig = Annotated[
    ScriptedBackendConfig
    | ProviderBackendConfig
    | LocalBackendConfig
    | OllamaBackendConfig
    | AzureBackendConfig
    | ClaudeCodeBackendConfig
    | AcpBackendConfig
    | Ag2BackendConfig
    | InstalledBackendConfig,
    Field(discriminator="type"),
]
BACKENDS: TypeAdapter[BackendConfig] = TypeAdapter(BackendConfig, config=ConfigDict(defer_build=True))
"""Validates any of them."""

LIMITED_TYPES: tuple[str, ...] = tuple(
    name
    for model in (
        ProviderBackendConfig,
        LocalBackendConfig,
        OllamaBackendConfig,
        AzureBackendConfig,
        ClaudeCodeBackendConfig,
        AcpBackendConfig,
        Ag2BackendConfig,
        InstalledBackendConfig,
    )
    for name in get_args(model.model_fields["type"].annotation)
)
"""The backend types that call somebody."""
CONFIGURED_TYPES = ("scripted", *LIMITED_TYPES)
"""The backend types that have keys of their own in a config."""
