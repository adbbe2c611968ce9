"""Every backend that an agent can have, as one closed union."""

from typing import Annotated, Any, Literal, get_args

from pydantic import Field, StringConstraints, model_validator

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
    max_turns: int = Field(default=200, ge=1, le=1000)
    """Model calls within one conversation of a round."""


AcpPreset = Literal["codex", "claude_code", "gemini_cli", "opencode", "copilot"]
ACP_PRESETS: tuple[str, ...] = get_args(AcpPreset)


class AcpBackendConfig(PricedBackendConfig, frozen=True):
    """An agent CLI that speaks the Agent Client Protocol, in a sandbox of its own, with the team's tools. It has either
    a `preset` or a `command`.
    """

    type: Literal["acp"]
    """An agent CLI over ACP."""
    preset: AcpPreset | None = None
    """A product whose ways are known."""
    command: tuple[PrintableName, ...] | None = Field(default=None, min_length=1, max_length=50)
    """Any other: a program and its arguments."""
    model: ModelName = "default"
    """`default`: whatever the CLI takes. Only with a preset."""
    reasoning_effort: Literal["minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    """How long the model thinks; for `codex` and `claude_code`. Default: as the CLI has it."""
    login: Literal["own", "key"] = "key"
    """`own`: your own login to the CLI, and so your subscription. `key`: a key in a variable."""
    env: tuple[Annotated[str, StringConstraints(pattern=VARIABLE_PATTERN)], ...] = Field(default=(), max_length=50)
    """Names of further variables that it is given. It sees no others, but for its key."""
    hosts: tuple[HostPort, ...] = Field(default=(), max_length=50)
    """What it may reach besides the hosts of the preset, as `host:port`."""
    enclosure: Literal["required", "off"] = "required"
    """`off`: it runs outside the sandbox, with all your rights; only in your own config."""

    @model_validator(mode="after")
    def _fits(self) -> "AcpBackendConfig":
        if (self.preset is None) == (self.command is None):
            raise ValueError(f"expected one of: preset ({', '.join(ACP_PRESETS)}), command")
        if self.command is not None and self.login == "own":
            raise ValueError("login: own needs a preset, which says where the login is")
        if self.model != "default" and self.preset is None:
            raise ValueError("model: a command's own CLI is not told of one; choose it in its settings")
        if self.reasoning_effort is not None and self.preset not in ("codex", "claude_code"):
            raise ValueError("reasoning_effort: only codex and claude_code take one")
        return self

    @property
    def outside(self) -> str | None:
        return "enclosure" if self.enclosure == "off" else None


class ScriptStep(Settings, frozen=True):
    """One model call of a scripted agent. Exactly one of `answer`, `vote`, `say`, `call`, `fail` and `hang` is set."""

    answer: str | None = None
    """Submit this text with `new_answer`."""
    vote: str | None = None
    """Vote for the answer whose text contains this, or for `own`, `first` or `last` on the ballot."""
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
    """Wait until a file of this path is there before the step: whoever makes it lets the agent go on."""

    @model_validator(mode="after")
    def _exactly_one_action(self) -> "ScriptStep":
        chosen = [name for name in ("answer", "vote", "say", "call", "fail") if getattr(self, name) is not None]
        if len(chosen) + self.hang != 1:
            raise ValueError("a script step has exactly one of: answer, vote, say, call, fail, hang")
        return self


class ScriptedBackendConfig(PricedBackendConfig, frozen=True):
    """A deterministic stand-in for a model, for demos, tests and documentation. It calls nobody."""

    type: Literal["scripted"]
    """Calls nobody."""
    model: ModelName = "scripted"
    """The name that is shown as its model."""
    price: Price | None = Price(input_usd_per_million=0, output_usd_per_million=0)
    """It calls nobody. `null`: as if nobody knew the price."""
    script: tuple[ScriptStep, ...] = ()
    """Worked off one step per model call. When it is used up, or empty, the agent answers once, writes no tests,
    or its answer from all, votes for the answer that comes first in alphabetical order, and presents its own answer.
    """
    presentation: str | None = None
    """What a winner writes as the final answer; without it the winner repeats its latest answer."""
    chunk_delay_seconds: float = Field(default=0.0, ge=0, le=60)
    """Pause between streamed pieces of text, so that a demo looks alive."""


class InstalledBackendConfig(PricedBackendConfig, frozen=True):
    """A member by an adapter that you installed."""

    type: Literal["installed"]
    """An adapter that you installed."""
    adapter: PrintableName = Field(min_length=1, max_length=64)
    """Its name."""
    settings: dict[str, Any] = Field(default_factory=dict[str, Any])
    """What it wants to know."""

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
