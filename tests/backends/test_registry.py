"""From an agent's config to its backend: the right wire, the right key, and a clear word where a key is missing."""

import pytest

from massgen_mcp.backends.base import Backend
from massgen_mcp.backends.registry import make_backend
from massgen_mcp.config.models.http_backends import ProviderBackendConfig
from massgen_mcp.errors import BackendError
from tests.backends.wires import WIRES, Wire, ask, parts_of, text_in
from tests.raw_double import raw_server, reply, sse

every_wire = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)


def config(wire: Wire, **settings: object) -> ProviderBackendConfig:
    return ProviderBackendConfig.model_validate({"type": wire.name, "model": "some-model", **settings})


async def head_sent(wire: Wire, environ: dict[str, str], **settings: object) -> str:
    async with raw_server(reply(sse(*wire.whole))) as server:
        backend: Backend = make_backend(config(wire, base_url=server.url + wire.suffix, **settings), environ)
        assert text_in(await parts_of(backend, ask("?"))) == "Paris"
        assert backend.model == "some-model"
        return server.heads[0]


def header_with(wire: Wire, key: str) -> str:
    own = {"claude": "x-api-key", "gemini": "x-goog-api-key"}.get(wire.name)
    return f"{own}: {key}" if own else f"authorization: Bearer {key}"


@every_wire
async def test_the_key_comes_from_the_variable_that_the_config_names(wire: Wire) -> None:
    head = await head_sent(wire, {"MY_KEY": "sk-mine", "OPENAI_API_KEY": "sk-other"}, api_key_env="MY_KEY")
    assert header_with(wire, "sk-mine") in head
    assert head.startswith(f"POST {wire.path} ")


@every_wire
async def test_a_local_server_needs_no_key(wire: Wire) -> None:
    assert header_with(wire, "not-needed") in await head_sent(wire, {})


@every_wire
async def test_keys_of_the_process_reach_only_who_is_meant(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
    for name in (*keys, "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, "sk-of-the-process")
    for name in ("OPENAI_CUSTOM_HEADERS", "ANTHROPIC_CUSTOM_HEADERS"):
        monkeypatch.setenv(name, "Authorization: Bearer sk-of-the-process\nX-Gateway: sk-of-the-process")
    head = await head_sent(wire, {"MY_KEY": "sk-mine"}, api_key_env="MY_KEY")
    assert "sk-of-the-process" not in head
    assert header_with(wire, "sk-mine") in head
    assert head.count("sk-mine") == 1


@every_wire
def test_a_key_that_the_config_names_has_to_be_there(wire: Wire) -> None:
    wanted = config(wire, base_url="http://127.0.0.1:1/v1", api_key_env="MY_KEY")
    with pytest.raises(BackendError, match="set MY_KEY"):
        make_backend(wanted, {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"})


@pytest.mark.parametrize(("kind", "variable"), [("openai", "OPENAI_API_KEY"), ("claude", "ANTHROPIC_API_KEY")])
def test_a_missing_key_is_named(kind: str, variable: str) -> None:
    wanted = ProviderBackendConfig.model_validate({"type": kind, "model": "m"})
    with pytest.raises(BackendError, match=f"set {variable}") as caught:
        make_backend(wanted, {})
    assert caught.value.reason == "auth"
    named = ProviderBackendConfig.model_validate({"type": kind, "model": "m", "api_key_env": "MY_KEY"})
    with pytest.raises(BackendError, match="set MY_KEY"):
        make_backend(named, {variable: "k"})
