"""Models behind an HTTP API: of providers, of servers of one's own, of Azure."""

from typing import Any, Literal, Self, get_args

from pydantic import Field, ValidationInfo, field_validator, model_validator

from massgen_mcp.config.models.common import (
    VARIABLE_PATTERN,
    ListedBackendConfig,
    ModelAddress,
    ModelName,
    ProviderType,
)
from massgen_mcp.config.providers.catalog import BY_HOST, NativeTool, flags_text, refusal, tools_at

AUTO_MODEL = "auto"
"""As `model` of a local server: whatever it serves."""


class HttpBackendConfig(ListedBackendConfig, frozen=True):
    """What all models behind an HTTP API have in common. `type` picks wire format and defaults (see `providers`)."""

    type: str
    """Picks the wire format and the defaults."""
    model: ModelName
    """The model's name, as the provider spells it."""
    api_key_env: str | None = Field(default=None, pattern=VARIABLE_PATTERN)
    """Environment variable that holds the API key. Default: the provider's usual variable."""
    temperature: float | None = Field(default=None, ge=0, le=2)
    """Sampling temperature. Default: the provider's."""
    top_p: float | None = Field(default=None, gt=0, le=1)
    """Nucleus sampling. Default: the provider's."""
    max_output_tokens: int | None = Field(default=None, ge=1, le=1_000_000)
    """Maximum number of tokens in one reply, including reasoning. Default: the provider's."""
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    """How long the model thinks, for models with this setting. Default: the provider's."""
    verbosity: Literal["low", "medium", "high"] | None = None
    """How much the model writes, for OpenAI models."""
    enable_web_search: bool = False
    """The provider's own web search. massgen rejects this and the next three keys for providers that
    lack the tool.
    """
    enable_x_search: bool = False
    """The provider's tool that searches X (Twitter)."""
    enable_code_execution: bool = False
    """The provider's tool that runs code on its servers."""
    enable_code_interpreter: bool = False
    """The same tool, under the name that OpenAI and xAI use."""
    extra_body: dict[str, Any] = Field(default_factory=dict[str, Any])
    """Additional fields for the request body, passed unchanged."""

    @property
    def asked_tools(self) -> tuple[NativeTool, ...]:
        return tuple(tool for tool in get_args(NativeTool) if getattr(self, f"enable_{tool}"))

    @field_validator("enable_web_search", "enable_x_search", "enable_code_execution", "enable_code_interpreter")
    @classmethod
    def _offered(cls, wanted: bool, info: ValidationInfo) -> bool:
        backend_type = info.data.get("type")
        if wanted and backend_type and (reason := refusal(backend_type, info.field_name or "")):
            raise ValueError(reason)
        return wanted


class ProviderBackendConfig(HttpBackendConfig, frozen=True):
    """A model of a provider on the internet, or (`chatcompletion`) of any server that speaks like OpenAI's."""

    type: ProviderType
    """The provider, or `chatcompletion` for any server with an OpenAI-compatible API."""
    base_url: ModelAddress | None = None
    """The API's root address, without credentials. Default: the provider's. At any other address, massgen accepts any
    model name."""

    @model_validator(mode="after")
    def _offered_there(self) -> Self:
        offered = tools_at(self.type, self.base_url)
        if missing := [f"enable_{tool}" for tool in self.asked_tools if tool not in offered]:
            where, has = self.base_url or "its default address", flags_text([f"enable_{tool}" for tool in offered])
            way_out = "" if self.base_url is None or self.type == BY_HOST else "; to use this, remove base_url"
            raise ValueError(
                f"{', '.join(missing)}: {self.type} doesn't offer this at {where}; it offers {has}{way_out}"
            )
        return self


class LocalServerConfig(HttpBackendConfig, frozen=True):
    """A local model server. It needs no key."""

    model: ModelName = AUTO_MODEL
    """`auto`: the server's largest chat model that fits this machine, chosen at the first call."""
    base_url: ModelAddress | None = None
    """The API's root address, without credentials. Default: this machine, on the server's usual port."""


class LocalBackendConfig(LocalServerConfig, frozen=True):
    """A local model server with an OpenAI-compatible API."""

    type: Literal["lmstudio", "vllm", "sglang", "llamacpp"]
    """The program that serves the model."""


class OllamaBackendConfig(LocalServerConfig, frozen=True):
    """Ollama with its own API, which can set the context length of each request."""

    type: Literal["ollama"]
    """Ollama."""
    context_length: int | None = Field(default=None, ge=512, le=10_000_000)
    """Context length in tokens. Default: 16,384, or the length the model is already loaded with if
    that is larger, but at most the model's maximum.
    """
    keep_alive: str | None = Field(default=None, pattern=r"^(-1|0|(\d+(\.\d+)?(ms|s|m|h))+)$")
    """How long the model stays loaded after a call, such as 30m; -1 means forever. Default: the server's."""


class AzureBackendConfig(HttpBackendConfig, frozen=True):
    """A deployment of Azure OpenAI."""

    type: Literal["azure_openai"]
    """Azure OpenAI."""
    endpoint: ModelAddress | None = None
    """The resource's root address, such as https://NAME.openai.azure.com. Default: AZURE_OPENAI_ENDPOINT."""
    api_version: str = Field(default="v1", pattern=r"^[A-Za-z0-9.-]{1,40}$")
    """`v1` for all current models, or the date of an older API, such as 2024-10-21."""
    deployment: str | None = Field(default=None, pattern=r"^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,63}$")
    """The deployment's name. Default: `model`."""


AnyHttpBackend = ProviderBackendConfig | LocalBackendConfig | OllamaBackendConfig | AzureBackendConfig
