"""Which company a backend asks, and which key may go there."""

from typing import get_args

import pytest
from pydantic import TypeAdapter, ValidationError

from massgen_mcp.config.access.key_hosts import (
    find_key,
    host_of,
    key_required,
    key_variables,
    missing_variables,
    provider_for,
)
from massgen_mcp.config.models.backends import BackendConfig
from massgen_mcp.config.models.http_backends import (
    AzureBackendConfig,
    LocalBackendConfig,
    OllamaBackendConfig,
    ProviderBackendConfig,
)
from massgen_mcp.config.providers.addresses import host_in, is_loopback, repair_base_url
from massgen_mcp.config.providers.catalog import (
    NATIVE_TOOLS,
    PROVIDERS,
    NativeTool,
    Provider,
    credential_variables,
    named_provider,
    native_tools_of,
)
from massgen_mcp.config.providers.model_names import detect_backend
from massgen_mcp.errors import MassgenError

HTTP_MODELS = (ProviderBackendConfig, LocalBackendConfig, OllamaBackendConfig, AzureBackendConfig)
BACKEND: TypeAdapter[BackendConfig] = TypeAdapter(BackendConfig)
KEYS = {name: name.lower() for name in credential_variables() if name.endswith(("_KEY", "_TOKEN"))} | {
    "MY_KEY": "my_key"
}


def chat(base_url: str | None = None, api_key_env: str | None = None) -> ProviderBackendConfig:
    return ProviderBackendConfig(type="chatcompletion", model="m", base_url=base_url, api_key_env=api_key_env)


@pytest.mark.parametrize(
    ("base_url", "key"),
    [
        (None, "openai_api_key"),
        ("https://api.openai.com/v1", "openai_api_key"),
        ("https://eu.api.openai.com/v1", "openai_api_key"),
        ("https://openrouter.ai/api/v1", "openrouter_api_key"),
        ("https://OpenRouter.ai:443/api/v1", "openrouter_api_key"),
        ("https://openrouter.ai./api/v1", "openrouter_api_key"),
        ("https://api.groq.com/openai/v1", "groq_api_key"),
        ("https://api.x.ai/v1", "xai_api_key"),
        ("https://api.cerebras.ai/v1", "cerebras_api_key"),
        ("https://api.together.xyz/v1", "together_api_key"),
        ("https://api.fireworks.ai/inference/v1", "fireworks_api_key"),
        ("https://api.z.ai/api/paas/v4", "zai_api_key"),
        ("https://generativelanguage.googleapis.com/v1beta/openai", "google_api_key"),
        ("https://api.deepseek.com", "deepseek_api_key"),
        ("https://api.mistral.ai/v1", "mistral_api_key"),
        ("https://api.moonshot.ai/v1", "moonshot_api_key"),
        ("https://api.moonshot.cn/v1", "moonshot_api_key"),
        ("https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "dashscope_api_key"),
        ("https://dashscope.aliyuncs.com/compatible-mode/v1", "dashscope_api_key"),
        ("https://api.tokenfactory.nebius.com/v1", "nebius_api_key"),
        ("https://api.studio.nebius.ai/v1", "nebius_api_key"),
        ("https://api.perplexity.ai", "perplexity_api_key"),
        ("https://router.huggingface.co/v1", "hf_token"),
        ("https://models.github.ai/inference", "github_models_token"),
        ("https://api.anthropic.com/v1", "anthropic_api_key"),
    ],
)
def test_the_key_is_chosen_by_the_host(base_url: str | None, key: str) -> None:
    assert find_key(chat(base_url), KEYS) == key
    assert key_required(chat(base_url))


@pytest.mark.parametrize(
    "base_url",
    [
        "https://evil-openrouter.ai.example.com/v1",
        "https://evil-openrouter.ai/v1",
        "https://openrouter.ai.example.com/v1",
        "https://example.com/openrouter.ai/v1",
        "http://openrouter.ai/api/v1",
        "http://api.openai.com/v1",
        "https://openai.com.example.org/v1",
        "http://192.168.0.7:8000/v1",
        "http://127.0.0.1:1234/v1",
        "http://localhost:11434/v1",
        "http://[::1]:8000/v1",
    ],
)
@pytest.mark.parametrize("kind", ["openai", "chatcompletion", "claude"])
def test_no_key_goes_to_a_foreign_host_also_if_the_config_names_its_variable(base_url: str, kind: str) -> None:
    backend = ProviderBackendConfig.model_validate({"type": kind, "model": "m", "base_url": base_url})
    assert find_key(backend, KEYS) is None
    assert key_variables(backend) == ()
    assert not key_required(backend)
    named = backend.model_copy(update={"api_key_env": "MY_KEY"})
    assert find_key(named, KEYS) == ("my_key" if is_loopback(base_url) else None)
    allowed = KEYS | {"MASSGEN_ALLOWED_KEYS": f"MY_KEY@{host_of(base_url)}"}
    assert find_key(named, allowed) == "my_key"
    assert find_key(named, {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}) is None
    assert key_required(named)


@pytest.mark.parametrize(
    "base_url",
    ["https://evil.com\\.openrouter.ai/v1", "https://:80/v1", "https://[::1", "https://h:99999/", "https://a%2e.b/"],
)
def test_an_address_that_parsers_could_read_differently_is_no_address(base_url: str) -> None:
    with pytest.raises(ValueError, match="plain host name"):
        chat(base_url)


def test_the_second_variable_of_a_provider_serves_when_the_first_is_not_set() -> None:
    gemini = chat("https://generativelanguage.googleapis.com/v1beta/openai")
    assert find_key(gemini, {"GEMINI_API_KEY": " g\n", "GOOGLE_API_KEY": " "}) == "g"


def test_the_operators_base_url_is_the_default_and_gets_the_types_own_key() -> None:
    openai = ProviderBackendConfig(type="openai", model="m")
    proxy = {"OPENAI_BASE_URL": "https://proxy.example.com/v1", "OPENAI_API_KEY": "k"}
    assert provider_for(openai, proxy).base_url == "https://proxy.example.com/v1"
    assert find_key(openai, proxy) == "k"
    assert find_key(chat("https://proxy.example.com/v1/"), proxy) == "k"
    assert find_key(chat("https://proxy.example.com.evil.org/v1"), proxy) is None
    claude = ProviderBackendConfig(type="claude", model="m")
    assert provider_for(claude, {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}).base_url == "http://127.0.0.1:9"
    assert not key_required(claude, {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"})
    assert provider_for(claude, proxy).base_url == "https://api.anthropic.com"


def test_our_own_variable_moves_a_default_address_even_where_a_config_spells_it_out() -> None:
    moved = {"MASSGEN_GROQ_BASE_URL": "http://127.0.0.1:9/v1", "GROQ_API_KEY": "k", "GROQ_BASE_URL": "https://else"}
    plain = ProviderBackendConfig(type="groq", model="m")
    spelt = ProviderBackendConfig(type="groq", model="m", base_url="https://api.groq.com/openai/v1/")
    elsewhere = ProviderBackendConfig(type="groq", model="m", base_url="https://eu.api.groq.com/openai/v1")
    assert [provider_for(one, moved).base_url for one in (plain, spelt)] == ["http://127.0.0.1:9/v1"] * 2
    assert [find_key(one, moved) for one in (plain, spelt, elsewhere)] == ["k"] * 3
    assert provider_for(elsewhere, moved).base_url == "https://eu.api.groq.com/openai/v1"
    bypass = chat("https://api.openai.com/v1")
    assert provider_for(bypass, {"OPENAI_BASE_URL": "https://proxy.example.com/v1"}).base_url == bypass.base_url


def test_the_wire_follows_the_type_and_the_provider_the_host() -> None:
    assert provider_for(ProviderBackendConfig(type="openai", model="m")).wire == "responses"
    assert provider_for(ProviderBackendConfig(type="claude", model="m")).wire == "messages"
    at_openai, at_openrouter = provider_for(chat()), provider_for(chat("https://openrouter.ai/api/v1"))
    assert (at_openai.wire, at_openai.type) == ("chat", "openai")
    assert (at_openrouter.wire, at_openrouter.type) == ("chat", "openrouter")


def test_gemini_is_asked_in_openais_way_where_google_has_an_address_for_that() -> None:
    compatible = "https://generativelanguage.googleapis.com/v1beta/openai"
    for url, wire in ((None, "gemini"), (compatible, "chat"), (f"{compatible}/", "chat")):
        asked = provider_for(ProviderBackendConfig(type="gemini", model="m", base_url=url))
        assert (asked.wire, asked.type) == (wire, "gemini")
    moved = {"MASSGEN_GEMINI_BASE_URL": "https://gateway.example.com/gemini/openai"}
    assert provider_for(ProviderBackendConfig(type="gemini", model="m"), moved).wire == "chat"


@pytest.mark.parametrize(
    ("base_url", "wire", "asked_at"),
    [
        (None, "responses", "https://api.openai.com/v1"),
        ("https://api.x.ai/v1", "responses", "https://api.x.ai/v1"),
        ("https://api.anthropic.com/v1", "messages", "https://api.anthropic.com/v1"),
        ("https://openrouter.ai/api/v1", "chat", "https://openrouter.ai/api/v1"),
        (
            "https://generativelanguage.googleapis.com/v1beta/openai/",
            "gemini",
            "https://generativelanguage.googleapis.com/v1beta",
        ),
    ],
)
def test_the_compatible_type_asks_for_tools_in_the_way_of_whoever_has_them(
    base_url: str | None, wire: str, asked_at: str
) -> None:
    searching = ProviderBackendConfig(type="chatcompletion", model="m", base_url=base_url, enable_web_search=True)
    assert (provider_for(searching).wire, provider_for(searching).base_url) == (wire, asked_at)
    assert provider_for(chat(base_url)).wire == "chat"


def test_every_row_of_the_table_is_a_type_and_every_type_a_row() -> None:
    kinds = {tag for model in HTTP_MODELS for tag in get_args(model.model_fields["type"].annotation)}
    assert kinds == {row.type for row in PROVIDERS}
    assert set(NATIVE_TOOLS) <= kinds


@pytest.mark.parametrize(
    "kind", [row.type for row in PROVIDERS if row.hosts and row.type not in ("openai", "claude", "azure_openai")]
)
def test_a_provider_by_its_type_has_its_own_address_and_key(kind: str) -> None:
    backend = ProviderBackendConfig.model_validate({"type": kind, "model": "m"})
    row = named_provider(kind)
    assert provider_for(backend).base_url == row.base_url
    assert find_key(backend, KEYS) == row.key_variables[0].lower()
    assert missing_variables(backend, {}) == [row.key_variables]
    elsewhere = backend.model_copy(update={"base_url": "https://example.com/v1"})
    assert find_key(elsewhere, KEYS) is None


@pytest.mark.parametrize("kind", ["ollama", "lmstudio", "vllm", "sglang", "llamacpp"])
def test_a_local_server_gets_no_key_that_nobody_named(kind: str) -> None:
    backend = BACKEND.validate_python({"type": kind})
    assert isinstance(backend, LocalBackendConfig | OllamaBackendConfig)
    assert is_loopback(provider_for(backend).base_url)
    assert find_key(backend, KEYS) is None
    assert missing_variables(backend, {}) == []
    named = backend.model_copy(update={"api_key_env": "MY_KEY"})
    assert missing_variables(named, {}) == [("MY_KEY",)]


def test_azures_key_goes_to_azure_and_to_the_operators_address_only() -> None:
    azure = AzureBackendConfig(type="azure_openai", model="m")
    keys = {"AZURE_OPENAI_API_KEY": "k"}
    assert find_key(azure.model_copy(update={"endpoint": "https://x.openai.azure.com/"}), keys) == "k"
    for foreign in (
        "https://x.openai.azure.com.evil.org",
        "https://evilopenai.azure.com",
        "https://x.westeurope.cloudapp.azure.com",
        "http://x.openai.azure.com",
    ):
        assert find_key(azure.model_copy(update={"endpoint": foreign}), keys) is None, foreign
    operators = {**keys, "AZURE_OPENAI_ENDPOINT": "https://gateway.example.com"}
    assert find_key(azure, operators) == "k"
    assert missing_variables(azure, operators) == []
    assert missing_variables(azure, {}) == [("AZURE_OPENAI_ENDPOINT",), ("AZURE_OPENAI_API_KEY",)]


@pytest.mark.parametrize("kind", sorted(row.type for row in PROVIDERS))
@pytest.mark.parametrize("tool", ["web_search", "x_search", "code_execution", "code_interpreter"])
def test_a_tool_of_the_provider_is_had_or_refused_by_name(kind: str, tool: NativeTool) -> None:
    data = {"type": kind, "model": "m", f"enable_{tool}": True}
    if tool in native_tools_of("openai" if kind == "chatcompletion" else kind):
        BACKEND.validate_python(data)
        return
    with pytest.raises(ValidationError, match=f"{kind} doesn't offer this.*; it offers (no|only enable_)"):
        BACKEND.validate_python(data)
    assert BACKEND.validate_python({**data, f"enable_{tool}": False})


def test_a_fingerprint_covers_keys_and_addresses() -> None:
    assert {"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"} <= set(
        credential_variables()
    )


@pytest.mark.parametrize(
    ("model", "found"),
    [
        ("gpt-5.2", ("openai", "gpt-5.2")),
        ("o3", ("openai", "o3")),
        ("o4-mini", ("openai", "o4-mini")),
        ("chatgpt-4o-latest", ("openai", "chatgpt-4o-latest")),
        ("claude-opus-5", ("claude", "claude-opus-5")),
        ("gemini-4-argon", ("gemini", "gemini-4-argon")),
        ("openai/gpt-5", ("openai", "gpt-5")),
        ("anthropic/claude-x", ("claude", "claude-x")),
        ("openrouter/meta/llama-4", ("openrouter", "meta/llama-4")),
        ("scripted/ada", ("scripted", "ada")),
        (" groq/llama ", ("groq", "llama")),
        ("groq/llama-3.3-70b", ("groq", "llama-3.3-70b")),
        ("openrouter/openai/gpt-5.1", ("openrouter", "openai/gpt-5.1")),
        ("grok-4.7", ("grok", "grok-4.7")),
        ("google/gemini-x", ("gemini", "gemini-x")),
        ("huggingface/meta/llama-4", ("huggingface", "meta/llama-4")),
        ("kimi/kimi-k2", ("moonshot", "kimi-k2")),
        ("inference/qwen3", ("vllm", "qwen3")),
        ("azure_openai/gpt-5", ("azure_openai", "gpt-5")),
        ("vllm/Qwen/Qwen3-8B", ("vllm", "Qwen/Qwen3-8B")),
    ],
)
def test_a_model_tells_its_provider(model: str, found: tuple[str, str]) -> None:
    assert detect_backend(model) == found


@pytest.mark.parametrize("model", ["llama-3", "gpt-oss-120b", "o5000", "", "/", "openai/", "/gpt-5", "gpt-", "mygpt-5"])
def test_a_model_that_does_not_tell_is_answered_with_the_slash_form(model: str) -> None:
    with pytest.raises(MassgenError, match="write provider/model") as caught:
        detect_backend(model)
    assert caught.value.code == "config_invalid"


def test_a_misspelt_provider_gets_the_nearest_one() -> None:
    with pytest.raises(MassgenError, match="unknown provider 'opnai'; did you mean 'openai'"):
        detect_backend("opnai/gpt-5")


HOSTS_OF_ANOTHER_ROW = {"chatcompletion": "openai", "azure_openai": None}
"""Whose address is that of another provider, or every customer's own."""


@pytest.mark.parametrize("row", [row for row in PROVIDERS if not row.is_local], ids=lambda row: row.type)
def test_a_provider_names_the_hosts_that_its_key_may_go_to_and_its_own_address_is_one(row: Provider) -> None:
    if row.type not in HOSTS_OF_ANOTHER_ROW:
        assert row.hosts, "a row that names none: its key could go nowhere"
        assert host_in(row.base_url) in row.hosts


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ("http://127.0.0.1:8000/v1/chat/completions", "http://127.0.0.1:8000/v1"),
        ("http://127.0.0.1:8000/v1/chat/completions/", "http://127.0.0.1:8000/v1"),
        ("http://127.0.0.1:8000//v1", "http://127.0.0.1:8000/v1"),
        ("https://host:8443/a//b/v1/responses", "https://host:8443/a/b/v1"),
        ("https://api.anthropic.com/v1/messages", "https://api.anthropic.com"),
        ("http://127.0.0.1:11434/api/chat", "http://127.0.0.1:11434"),
        ("https://host/v1/", "https://host/v1/"),
        ("https://host/v1?key=x", "https://host/v1?key=x"),
        ("no address", "no address"),
    ],
)
def test_a_whole_endpoint_is_asked_at_its_root_and_at_the_same_host(given: str, asked: str) -> None:
    assert repair_base_url(given) == asked


def test_a_local_server_that_is_given_without_a_path_is_asked_at_v1() -> None:
    assert repair_base_url("http://127.0.0.1:1234", versioned=True) == "http://127.0.0.1:1234/v1"
    assert repair_base_url("http://127.0.0.1:1234/other", versioned=True) == "http://127.0.0.1:1234/other"
