"""The companies behind the HTTP backends, as data: wire format, key variables, addresses, strongest model.

Must not make a request, nor know what a config says; for one of its backends ask `access.key_hosts`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal
from urllib.parse import urlsplit

from massgen_mcp.config.providers.addresses import host_in, is_loopback, ollama_address, port_in, same_address
from massgen_mcp.errors import MassgenError
from massgen_mcp.name_lists import join_names
from massgen_mcp.nearest import nearest

NativeTool = Literal["web_search", "x_search", "code_execution", "code_interpreter"]

Wire = Literal["chat", "responses", "messages", "gemini", "ollama"]
CostField = Literal["cost", "cost_in_usd_ticks"]
"""What a provider calls the money in its usage: OpenRouter's US dollars, xAI's tenths of a billionth of one."""

MESSAGES_OUTPUT = 16_000
"""The Messages API insists on a limit of tokens for every reply; this is ours where the config sets none."""

GEMINI_COMPATIBLE = "/openai"
"""How the address of Google's compatible endpoint ends."""


NEWEST: Mapping[str, str] = MappingProxyType(
    {
        "openai": "gpt-6.2-sol",
        "claude": "claude-opus-5-5",
        "gemini": "gemini-4-argon",
        "grok": "grok-4.7",
    }
)
"""The newest strong model of each provider that default teams take one of: the only place that names them."""


@dataclass(frozen=True, slots=True)
class Provider:
    """One row of the table, or what `key_hosts.provider_for` makes of it for one backend."""

    type: str
    """Name of the row: the `type` of a backend, and the prefix of slash models."""
    wire: Wire
    key_variables: tuple[str, ...]
    """Environment variables that may hold the key; the first one set is used."""
    base_url: str
    """Empty when every customer has an address of their own."""
    key_required: bool = True
    strong_model: str | None = None
    """What a default team takes from this provider. None: the provider is never taken by default."""
    hosts: tuple[str, ...] = ()
    """Hosts of this provider; the hosts below them are its own too."""
    base_url_variable: str | None = None
    """Environment variable with which an operator moves the default address. The SDKs' own variable where it means the
    same; else one of ours, since the same name with another path behind it would be asked in vain."""
    aliases: tuple[str, ...] = ()
    cost_field: CostField | None = None
    """Where its replies say what they cost; None if they do not."""
    lists_all: bool = True
    """False: customers have models there which its list of models leaves out."""
    start: str | None = None
    """The command that starts a model server of one's own."""
    plain_models: str | None = None
    """Pattern of the model names that are known to be this provider's without a slash prefix."""

    @property
    def is_local(self) -> bool:
        """Whether it is a model server of one's own, which can be asked what it has."""
        return is_loopback(self.base_url)


def _local(
    name: str, wire: Wire, base_url: str, start: str, variable: str | None = None, aliases: tuple[str, ...] = ()
) -> Provider:
    """A model server of one's own, at its usual port."""
    moved = variable or f"MASSGEN_{name.upper()}_BASE_URL"
    return Provider(name, wire, (), base_url, key_required=False, base_url_variable=moved, aliases=aliases, start=start)


PROVIDERS = (
    Provider(
        "openai",
        "responses",
        ("OPENAI_API_KEY",),
        "https://api.openai.com/v1",
        strong_model=NEWEST["openai"],
        hosts=("api.openai.com",),
        base_url_variable="OPENAI_BASE_URL",
        plain_models=r"gpt-(?!oss|j-|neo)\S+|o\d(-\S+)?|chatgpt-\S+|codex-\S+",
    ),
    Provider(
        "claude",
        "messages",
        ("ANTHROPIC_API_KEY",),
        "https://api.anthropic.com",
        strong_model=NEWEST["claude"],
        hosts=("api.anthropic.com",),
        base_url_variable="ANTHROPIC_BASE_URL",
        aliases=("anthropic",),
        plain_models=r"claude-\S+",
    ),
    Provider(
        "chatcompletion",
        "chat",
        ("OPENAI_API_KEY",),
        "https://api.openai.com/v1",
        base_url_variable="OPENAI_BASE_URL",
    ),
    Provider(
        "gemini",
        "gemini",
        ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
        "https://generativelanguage.googleapis.com/v1beta",
        strong_model=NEWEST["gemini"],
        hosts=("generativelanguage.googleapis.com",),
        base_url_variable="MASSGEN_GEMINI_BASE_URL",
        aliases=("google",),
        plain_models=r"gemini-\S+",
    ),
    Provider(
        "grok",
        "responses",
        ("XAI_API_KEY",),
        "https://api.x.ai/v1",
        strong_model=NEWEST["grok"],
        hosts=("api.x.ai",),
        base_url_variable="MASSGEN_GROK_BASE_URL",
        aliases=("xai",),
        cost_field="cost_in_usd_ticks",
        plain_models=r"grok-\S+",
    ),
    Provider(
        "groq",
        "chat",
        ("GROQ_API_KEY",),
        "https://api.groq.com/openai/v1",
        hosts=("api.groq.com",),
        base_url_variable="MASSGEN_GROQ_BASE_URL",
    ),
    Provider(
        "cerebras",
        "chat",
        ("CEREBRAS_API_KEY",),
        "https://api.cerebras.ai/v1",
        hosts=("api.cerebras.ai",),
        base_url_variable="MASSGEN_CEREBRAS_BASE_URL",
    ),
    Provider(
        "together",
        "chat",
        ("TOGETHER_API_KEY",),
        "https://api.together.xyz/v1",
        hosts=("api.together.xyz", "api.together.ai"),
        base_url_variable="MASSGEN_TOGETHER_BASE_URL",
        lists_all=False,
    ),
    Provider(
        "fireworks",
        "chat",
        ("FIREWORKS_API_KEY",),
        "https://api.fireworks.ai/inference/v1",
        hosts=("api.fireworks.ai",),
        base_url_variable="MASSGEN_FIREWORKS_BASE_URL",
        lists_all=False,
    ),
    Provider(
        "openrouter",
        "chat",
        ("OPENROUTER_API_KEY",),
        "https://openrouter.ai/api/v1",
        hosts=("openrouter.ai",),
        base_url_variable="MASSGEN_OPENROUTER_BASE_URL",
        cost_field="cost",
    ),
    Provider(
        "zai",
        "chat",
        ("ZAI_API_KEY",),
        "https://api.z.ai/api/paas/v4",
        hosts=("api.z.ai",),
        base_url_variable="MASSGEN_ZAI_BASE_URL",
    ),
    Provider(
        "deepseek",
        "chat",
        ("DEEPSEEK_API_KEY",),
        "https://api.deepseek.com",
        hosts=("api.deepseek.com",),
        base_url_variable="MASSGEN_DEEPSEEK_BASE_URL",
    ),
    Provider(
        "mistral",
        "chat",
        ("MISTRAL_API_KEY",),
        "https://api.mistral.ai/v1",
        hosts=("api.mistral.ai",),
        base_url_variable="MASSGEN_MISTRAL_BASE_URL",
    ),
    Provider(
        "moonshot",
        "chat",
        ("MOONSHOT_API_KEY", "KIMI_API_KEY"),
        "https://api.moonshot.ai/v1",
        hosts=("api.moonshot.ai", "api.moonshot.cn"),
        base_url_variable="MASSGEN_MOONSHOT_BASE_URL",
        aliases=("kimi",),
    ),
    Provider(
        "qwen",
        "chat",
        ("DASHSCOPE_API_KEY", "QWEN_API_KEY"),
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        hosts=("dashscope-intl.aliyuncs.com", "dashscope-us.aliyuncs.com", "dashscope.aliyuncs.com"),
        base_url_variable="MASSGEN_QWEN_BASE_URL",
    ),
    Provider(
        "nebius",
        "chat",
        ("NEBIUS_API_KEY",),
        "https://api.tokenfactory.nebius.com/v1",
        hosts=(
            "api.tokenfactory.nebius.com",
            "api.tokenfactory.us-central1.nebius.com",
            "api.tokenfactory.eu-west1.nebius.com",
            "api.studio.nebius.com",
            "api.studio.nebius.ai",
        ),
        base_url_variable="MASSGEN_NEBIUS_BASE_URL",
    ),
    Provider(
        "perplexity",
        "chat",
        ("PERPLEXITY_API_KEY",),
        "https://api.perplexity.ai",
        hosts=("api.perplexity.ai",),
        base_url_variable="MASSGEN_PERPLEXITY_BASE_URL",
    ),
    Provider(
        "huggingface",
        "chat",
        ("HF_TOKEN", "HUGGINGFACE_API_KEY"),
        "https://router.huggingface.co/v1",
        hosts=("router.huggingface.co",),
        base_url_variable="MASSGEN_HUGGINGFACE_BASE_URL",
        lists_all=False,
    ),
    Provider(
        "github",
        "chat",
        # Not GITHUB_TOKEN: that one may write repositories, and stands in many environments for other ends.
        ("GITHUB_MODELS_TOKEN",),
        "https://models.github.ai/inference",
        hosts=("models.github.ai",),
        base_url_variable="MASSGEN_GITHUB_BASE_URL",
    ),
    Provider(
        "azure_openai",
        "chat",
        ("AZURE_OPENAI_API_KEY",),
        "",
        hosts=("openai.azure.com", "openai.azure.us", "cognitiveservices.azure.com", "services.ai.azure.com"),
        base_url_variable="AZURE_OPENAI_ENDPOINT",
    ),
    _local("ollama", "ollama", "http://127.0.0.1:11434", "ollama serve", "OLLAMA_HOST"),
    _local("lmstudio", "chat", "http://127.0.0.1:1234/v1", "lms server start"),
    _local("vllm", "chat", "http://127.0.0.1:8000/v1", "vllm serve MODEL", aliases=("inference",)),
    _local("sglang", "chat", "http://127.0.0.1:30000/v1", "python -m sglang.launch_server --model-path MODEL"),
    _local("llamacpp", "chat", "http://127.0.0.1:8080/v1", "llama-server -m FILE.gguf"),
)


WITHOUT_PROVIDER = ("scripted", "claude_code", "acp", "ag2")
"""Backend types that are no model behind an HTTP API; they too may stand before the slash of a model."""


def named_provider(name: str) -> Provider:
    """The row of this name or alias. Raises `MassgenError("config_invalid")` with the nearest name."""
    for row in PROVIDERS:
        if name in (row.type, *row.aliases):
            return row
    if name in WITHOUT_PROVIDER:
        raise MassgenError("config_invalid", f"{name} has no default model; name one as {name}/MODEL")
    near = nearest(name, provider_names())
    hint = f"; did you mean {near!r}?" if near else f"; known: {', '.join(provider_names())}"
    for row in PROVIDERS:
        if row.plain_models and re.fullmatch(row.plain_models, name):
            hint = f"; this is a model: write {row.type}/{name}"
    raise MassgenError("config_invalid", f"unknown provider {name[:80]!a}{hint}")


def provider_names() -> list[str]:
    """What may stand before the slash of a model, aliases included."""
    return [*(name for row in PROVIDERS for name in (row.type, *row.aliases)), *WITHOUT_PROVIDER]


def owner_of(url: str) -> Provider | None:
    """The provider whose host this is, asked over an encrypted connection."""
    if not url.lower().startswith("https://"):
        return None
    host = host_in(url)
    for row in PROVIDERS:
        if any(host == known or host.endswith(f".{known}") for known in row.hosts):
            return row
    return None


def wire_at(row: Provider, url: str) -> Wire:
    """Gemini is asked in OpenAI's way at the address that Google has for it."""
    return "chat" if row.wire == "gemini" and url.rstrip("/").endswith(GEMINI_COMPATIBLE) else row.wire


def tools_at(backend_type: str, base_url: str | None) -> tuple[NativeTool, ...]:
    """The tools of its own that a provider has for backends of this type: by the type, or by the host. `base_url`: the
    address in the config, where it has one.
    """
    row = named_provider(backend_type)
    if row.type == BY_HOST:
        owner = owner_of(base_url or row.base_url)
        return native_tools_of(owner.type) if owner else ()
    return native_tools_of(row.type) if not base_url or wire_at(row, base_url) == row.wire else ()


def operators_address(row: Provider, environ: Mapping[str, str]) -> str:
    """Where the operator moved this provider to; empty: nowhere."""
    address = environ.get(row.base_url_variable or "", "").strip()
    return ollama_address(address) if row.base_url_variable == "OLLAMA_HOST" else address


def operators_rows(url: str, environ: Mapping[str, str]) -> list[Provider]:
    """The rows whose address the operator moved to this one."""
    moved = ((row, operators_address(row, environ)) for row in PROVIDERS)
    return [row for row, address in moved if address and same_address(url, address)]


def is_usual_server(url: str) -> bool:
    """Whether the address is the API of a model server at its usual port of this machine."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    ports = [port_in(row.base_url) for row in PROVIDERS if row.is_local]
    is_api = parts.path.rstrip("/") in ("", "/v1") and not any(sign in url for sign in "?#")
    return parts.scheme == "http" and is_loopback(url) and port in ports and is_api


def keys_of_default_teams() -> list[str]:
    """Variables of the providers of which a default team takes a model."""
    return [row.key_variables[0] for row in PROVIDERS if row.strong_model]


def credential_variables() -> tuple[str, ...]:
    """Every variable of the table that decides who is asked with which key: what a fingerprint must cover."""
    keys = {name for row in PROVIDERS for name in row.key_variables}
    addresses = {row.base_url_variable for row in PROVIDERS if row.base_url_variable}
    return tuple(sorted(keys | addresses))


# ---------------------------------------------------------------------------------------------------------------------
# Tools that a provider runs on its own machines, by backend type: what `enable_*` may ask for. How they are asked for
# is the wires' business.


NATIVE_TOOLS: Mapping[str, tuple[NativeTool, ...]] = MappingProxyType(
    {
        "openai": ("web_search", "code_interpreter"),
        "claude": ("web_search", "code_execution"),
        "gemini": ("web_search", "code_execution"),
        "grok": ("web_search", "x_search", "code_interpreter"),
        "openrouter": ("web_search",),
    }
)
"""Every other type has none on the wire that is used here."""

BY_HOST = "chatcompletion"
"""The type whose tools are those of whoever is at its address (`tools_at`)."""


def native_tools_of(backend_type: str) -> tuple[NativeTool, ...]:
    return NATIVE_TOOLS.get(backend_type, ())


def refusal(backend_type: str, flag: str) -> str | None:
    """Why a backend of this type cannot have the flag `enable_TOOL`, wherever it is; None when it can."""
    if backend_type == BY_HOST:
        return None
    flags = [f"enable_{tool}" for tool in native_tools_of(backend_type)]
    if flag in flags:
        return None
    return f"{backend_type} doesn't offer this; it offers {flags_text(flags)}"


def flags_text(flags: list[str]) -> str:
    """What is offered, in words."""
    return f"only {join_names(flags)}" if flags else "no built-in tools"
