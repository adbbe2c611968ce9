"""Which variable may go to which address, whatever a config says."""

import pytest
from pydantic import TypeAdapter

from massgen_mcp.backends.registry import make_backend
from massgen_mcp.config.access.agent_clis import find_login
from massgen_mcp.config.access.key_hosts import host_of, may_go
from massgen_mcp.config.environment import is_model_key
from massgen_mcp.config.loader import config_from_data, missing_keys, require_keys
from massgen_mcp.config.models.backends import BackendConfig, ClaudeCodeBackendConfig
from massgen_mcp.errors import BackendError, MassgenError

BACKEND: TypeAdapter[BackendConfig] = TypeAdapter(BackendConfig)
OPENAI, CLAUDE = "https://api.openai.com/v1", "https://api.anthropic.com"
HERE, FOREIGN = "http://127.0.0.1:8000/v1", "https://gateway.example.com/v1"


@pytest.fixture
def nobody(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of somebody who accepted nothing."""
    nowhere = str(tmp_path_factory.getbasetemp() / "nowhere")
    return {"MASSGEN_MCP_HOME": nowhere, "MASSGEN_CONFIG_HOME": nowhere}


ALLOWED = [
    ("OPENAI_API_KEY", OPENAI),
    ("OPENAI_API_KEY", HERE),
    ("MY_TEAM_KEY", OPENAI),
    ("HF_TOKEN", HERE),
    ("GEMINI_API_KEY", "https://generativelanguage.googleapis.com/v1beta/openai"),
    ("ANTHROPIC_AUTH_TOKEN", CLAUDE),
    ("HF_TOKEN", "https://router.huggingface.co/v1"),
    ("GITHUB_MODELS_TOKEN", "https://models.github.ai/inference"),
    ("QWEN_API_KEY", "https://dashscope.aliyuncs.com/compatible-mode/v1"),
    ("KIMI_API_KEY", "https://api.moonshot.cn/v1"),
]
REFUSED = [
    ("OPENAI_API_KEY", FOREIGN),
    ("OPENAI_API_KEY", CLAUDE),
    ("OPENAI_API_KEY", "http://api.openai.com/v1"),
    ("OPENAI_API_KEY", "https://api.openai.com.example.com/v1"),
    ("ANTHROPIC_API_KEY", OPENAI),
    ("GROQ_API_KEY", "https://openrouter.ai/api/v1"),
    ("MY_TEAM_KEY", FOREIGN),
    ("AWS_SECRET_ACCESS_KEY", HERE),
    ("GITHUB_TOKEN", OPENAI),
    ("GITHUB_TOKEN", HERE),
    ("GITHUB_TOKEN", "https://models.github.ai/inference"),
    ("GITHUB_MODELS_TOKEN", "https://models.github.ai.example.com/inference"),
    ("HF_TOKEN", OPENAI),
    ("DEEPSEEK_API_KEY", "https://api.mistral.ai/v1"),
    ("NEBIUS_API_KEY", "https://nebius.com/v1"),
    ("SSH_AUTH_SOCK", HERE),
    ("DB_PASSWORD", HERE),
    ("PATH", HERE),
    ("HOME", OPENAI),
]


@pytest.mark.parametrize(("variable", "url"), ALLOWED)
def test_a_key_may_go_home_to_this_machine_and_an_unowned_one_to_providers(
    variable: str, url: str, nobody: dict[str, str]
) -> None:
    assert may_go(variable, url, nobody)


@pytest.mark.parametrize(("variable", "url"), REFUSED)
def test_a_key_goes_nowhere_else_until_that_very_pair_is_allowed(
    variable: str, url: str, nobody: dict[str, str]
) -> None:
    assert not may_go(variable, url, nobody)
    pair = f"{variable}@{host_of(url)}"
    assert may_go(variable, url, nobody | {"MASSGEN_ALLOWED_KEYS": pair})
    near = (f"{variable}@other.example", f"X{pair}", f"{pair}.example", f"{variable}@{host_of(url)}:81", "@", variable)
    assert not may_go(variable, url, nobody | {"MASSGEN_ALLOWED_KEYS": " ".join(near)})


def test_the_operators_address_gets_its_own_keys_and_unowned_ones(nobody: dict[str, str]) -> None:
    moved = nobody | {"OPENAI_BASE_URL": f"{FOREIGN}/"}
    assert may_go("OPENAI_API_KEY", FOREIGN, moved)
    assert may_go("GATEWAY_API_KEY", FOREIGN, moved)
    assert not may_go("ANTHROPIC_API_KEY", FOREIGN, moved)
    assert not may_go("AWS_SECRET_ACCESS_KEY", FOREIGN, moved)
    assert not may_go("OPENAI_API_KEY", "https://gateway.example.com/other", moved)
    assert not may_go("OPENAI_API_KEY", "http://gateway.example.com/v1", moved)


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://API.Example.com./v1", "api.example.com"),
        ("https://example.com:443/v1", "example.com"),
        ("https://example.com:8443/v1", "example.com:8443"),
        ("http://example.com/v1", "http://example.com"),
        ("http://[::1]:8000/v1", "http://[::1]:8000"),
    ],
)
def test_a_host_tells_its_port_and_whether_it_is_encrypted(url: str, host: str) -> None:
    assert host_of(url) == host


@pytest.mark.parametrize(
    "name",
    [
        *("OPENAI_API_KEY", "MY_KEY", "THE_KEY_2", "GATEWAY_TOKEN", "HF_TOKEN", "MISTRAL_API_KEY", "LLM_APIKEY"),
        *("CLAUDE_CODE_OAUTH_TOKEN", "AZURE_OPENAI_API_KEY", "KEY", "UVICORN_LLM_KEY"),
    ],
)
def test_what_looks_like_a_key_of_a_model(name: str) -> None:
    assert is_model_key(name)


@pytest.mark.parametrize(
    "name",
    [
        *("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "GITHUB_TOKEN", "GH_TOKEN", "GITLAB_TOKEN", "SSH_PRIVATE_KEY"),
        *("NPM_TOKEN", "PGPASSWORD", "DATABASE_URL", "STRIPE_API_KEY", "SLACK_TOKEN", "DJANGO_SECRET_KEY", "MONKEY_X"),
        *("SIGNING_KEY", "VAULT_TOKEN", "AZURE_CLIENT_SECRET", "GOOGLE_APPLICATION_CREDENTIALS", "HOME", "KEYBOARD"),
    ],
)
def test_what_does_not_look_like_a_key_of_a_model(name: str) -> None:
    assert not is_model_key(name)


HTTP = {"type": "chatcompletion", "model": "m", "base_url": FOREIGN, "api_key_env": "MY_KEY"}
FOREIGN_BACKENDS = {
    "http": HTTP,
    "ag2": {"type": "ag2", "agent_config": {"llm_config": {k: v for k, v in HTTP.items() if k != "type"}}},
    "local": {**HTTP, "type": "vllm"},
    "azure": {"type": "azure_openai", "model": "m", "endpoint": "https://x.example.com", "api_key_env": "MY_KEY"},
    "claude_code": {"type": "claude_code", "api_key_env": "GITHUB_TOKEN"},
}


@pytest.mark.parametrize("data", FOREIGN_BACKENDS.values(), ids=FOREIGN_BACKENDS)
def test_no_backend_is_made_with_a_key_for_a_foreign_host(data: dict[str, object], nobody: dict[str, str]) -> None:
    """The last place before a model is asked, in a runner and after a resume as well."""
    environ = nobody | {"MY_KEY": "sk-mine", "GITHUB_TOKEN": "gh-mine"}
    with pytest.raises(
        BackendError, match=r"massgen doesn't send these keys to these hosts: (MY_KEY|GITHUB_TOKEN) to "
    ) as refused:
        make_backend(BACKEND.validate_python(data), environ)
    assert refused.value.reason == "auth"
    config = config_from_data({"agents": [{"backend": data}]}, "test")
    with pytest.raises(MassgenError) as told:
        require_keys(config, environ)
    assert told.value.code == "key_refused"
    assert "-mine" not in str(told.value) + str(refused.value)


def test_a_refused_key_is_not_called_missing(nobody: dict[str, str]) -> None:
    config = config_from_data({"agents": [{"backend": HTTP}]}, "test")
    assert missing_keys(config, nobody | {"MY_KEY": "sk-mine"}) == []
    assert missing_keys(config, nobody) == ["MY_KEY"]


def test_the_login_of_claude_code_is_no_other_variable(nobody: dict[str, str]) -> None:
    named = ClaudeCodeBackendConfig(type="claude_code", api_key_env="GITHUB_TOKEN")
    assert find_login(named, nobody | {"GITHUB_TOKEN": "gh-mine"}) is None
    own = ClaudeCodeBackendConfig(type="claude_code", api_key_env="TEAM_CLAUDE_KEY")
    assert find_login(own, nobody | {"TEAM_CLAUDE_KEY": "sk-mine"}) is not None
