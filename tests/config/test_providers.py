"""Which company a backend asks, and which key may go there."""

import pytest

from massgen_mcp.config.models import HttpBackendConfig
from massgen_mcp.config.providers import (
    credential_variables,
    detect_backend,
    find_key,
    key_required,
    key_variables,
    provider_for,
)
from massgen_mcp.errors import MassgenError

KEYS = {name: name.lower() for name in credential_variables() if name.endswith("_API_KEY")} | {"MY_KEY": "my_key"}


def chat(base_url: str | None = None, api_key_env: str | None = None) -> HttpBackendConfig:
    return HttpBackendConfig(type="chatcompletion", model="m", base_url=base_url, api_key_env=api_key_env)


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
        ("https://generativelanguage.googleapis.com/v1beta/openai", "gemini_api_key"),
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
        "https://example.com/v1?x=.openrouter.ai",
        "https://example.com#.openrouter.ai",
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
def test_no_key_goes_to_a_foreign_host_unless_the_config_names_its_variable(base_url: str, kind: str) -> None:
    backend = HttpBackendConfig.model_validate({"type": kind, "model": "m", "base_url": base_url})
    assert find_key(backend, KEYS) is None
    assert key_variables(backend) == ()
    assert not key_required(backend)
    named = backend.model_copy(update={"api_key_env": "MY_KEY"})
    assert find_key(named, KEYS) == "my_key"
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
    assert find_key(gemini, {"GOOGLE_API_KEY": " g\n", "GEMINI_API_KEY": " "}) == "g"


def test_the_operators_base_url_is_the_default_and_gets_the_types_own_key() -> None:
    openai = HttpBackendConfig(type="openai", model="m")
    proxy = {"OPENAI_BASE_URL": "https://proxy.example.com/v1", "OPENAI_API_KEY": "k"}
    assert provider_for(openai, proxy).base_url == "https://proxy.example.com/v1"
    assert find_key(openai, proxy) == "k"
    assert find_key(chat("https://proxy.example.com/v1/"), proxy) == "k"
    assert find_key(chat("https://proxy.example.com.evil.org/v1"), proxy) is None
    claude = HttpBackendConfig(type="claude", model="m")
    assert provider_for(claude, {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}).base_url == "http://127.0.0.1:9"
    assert not key_required(claude, {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"})
    assert provider_for(claude, proxy).base_url == "https://api.anthropic.com"


def test_the_wire_follows_the_type_and_the_provider_the_host() -> None:
    assert provider_for(HttpBackendConfig(type="openai", model="m")).wire == "responses"
    assert provider_for(HttpBackendConfig(type="claude", model="m")).wire == "messages"
    at_openai, at_openrouter = provider_for(chat()), provider_for(chat("https://openrouter.ai/api/v1"))
    assert (at_openai.wire, at_openai.type) == ("chat", "openai")
    assert (at_openrouter.wire, at_openrouter.type) == ("chat", "openrouter")


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
