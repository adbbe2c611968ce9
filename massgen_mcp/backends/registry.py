"""Makes the backend that an agent's config asks for, and imports no other.

The one place that puts a config, a provider's defaults and the environment together for a model.
"""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from massgen_mcp.backends.adapter import Adapter
from massgen_mcp.backends.base import Backend, ModelRequest, Part, prepare, window
from massgen_mcp.backends.limiter import Destination
from massgen_mcp.backends.own_loop import AgentBackend, as_backend
from massgen_mcp.backends.redacted import RedactedBackend
from massgen_mcp.config.access import acp_agents
from massgen_mcp.config.access.agent_clis import find_cli, find_login, how_to_log_in
from massgen_mcp.config.access.held_keys import redactor_for
from massgen_mcp.config.access.key_hosts import (
    describe_refusal,
    find_key,
    key_variables,
    missing_variables,
    provider_for,
)
from massgen_mcp.config.access.members import (
    ACP,
    AG2,
    CLAUDE_CODE,
    HTTP,
    SCRIPTED,
    MemberKind,
    destination,
    lack,
    member_of,
    missing,
    or_else,
    refused_keys,
)
from massgen_mcp.config.environment import is_set
from massgen_mcp.config.models.ag2 import Ag2AgentConfig, Ag2BackendConfig
from massgen_mcp.config.models.backends import (
    AcpBackendConfig,
    BackendConfig,
    ClaudeCodeBackendConfig,
    InstalledBackendConfig,
    ScriptedBackendConfig,
)
from massgen_mcp.config.models.http_backends import (
    AnyHttpBackend,
    AzureBackendConfig,
    LocalServerConfig,
    OllamaBackendConfig,
)
from massgen_mcp.config.providers.catalog import named_provider
from massgen_mcp.errors import BackendError
from massgen_mcp.redaction import Redactor
from massgen_mcp.threads import Late

if TYPE_CHECKING:
    from massgen_mcp.backends.http import Endpoint


NO_KEY = "not-needed"
"""What servers are sent that need no key: the SDKs insist on one."""


def make_backend(
    config: BackendConfig,
    environ: Mapping[str, str],
    private: Path | None = None,
    redactor: Redactor | None = None,
) -> Backend:
    """The backend for `config`, with its key out of `environ`. What it says passes `redactor` first; without one, the
    one for the keys of `environ`. `private`: the directory for the files of an agent that is a program; it is deleted
    with the backend.

    Raises `BackendError` if a required key, or something that has to be installed, is missing, or if the key may not go
    where the config wants it, and `MassgenError` for a key that cannot be one.
    """
    if refused := refused_keys([config], environ):
        raise BackendError("auth", describe_refusal(refused))
    redactor = redactor or redactor_for(environ, [config])
    return RedactedBackend(_backend(config, environ, private, redactor), redactor)


def _backend(config: BackendConfig, environ: Mapping[str, str], private: Path | None, redactor: Redactor) -> Backend:
    """The only place that knows which code is behind which kind of member."""
    if isinstance(config, InstalledBackendConfig):
        return _installed(config, environ)
    member, own = member_of(config)
    make: Callable[..., Backend] = _MADE[member]
    return make(own, environ, private, redactor)


def destination_of(config: BackendConfig, environ: Mapping[str, str]) -> Destination | None:
    """Return the address and key that `ProviderLimiters` counts this backend's calls by; None if it makes none."""
    found = destination(config, environ)
    return found and Destination(*found)


def _require(config: BackendConfig, environ: Mapping[str, str]) -> None:
    """Raises `BackendError` if something has to be installed, or a key is missing."""
    if fault := lack(config, environ):
        raise BackendError("bad_request", fault)
    for names in missing(config, environ):
        raise BackendError(
            "auth", f"{config.type} {config.model} needs {' or '.join(names)} in the environment{or_else(config)}"
        )


def _installed(config: InstalledBackendConfig, environ: Mapping[str, str]) -> Backend:
    _require(config, environ)
    adapter, settings = member_of(config)
    if not isinstance(adapter, Adapter):
        raise BackendError("bad_request", f"the adapter {config.adapter} says nothing of how it is made")
    return as_backend(adapter.make(settings, environ))


def _scripted(config: ScriptedBackendConfig, *_: object) -> Backend:
    from massgen_mcp.backends.scripted import ScriptedBackend

    return ScriptedBackend(config)


def _claude_code(
    config: ClaudeCodeBackendConfig, environ: Mapping[str, str], private: Path | None, redactor: Redactor
) -> Backend:
    _require(config, environ)
    login, path = find_login(config, environ), find_cli(environ)
    if login is None or path is None:
        raise BackendError("auth", f"Claude Code isn't logged in: {how_to_log_in(config)}")
    from massgen_mcp.backends.frameworks.claude_code import ClaudeCodeAgent

    return AgentBackend(ClaudeCodeAgent(config, path, login, environ, private, redactor))


def _acp(config: AcpBackendConfig, environ: Mapping[str, str], private: Path | None, redactor: Redactor) -> Backend:
    _require(config, environ)
    from massgen_mcp.backends.acp.agent import AcpAgent

    program = acp_agents.find_program(config, environ) or ""
    return AgentBackend(AcpAgent(config, program, environ, private, redactor))


def _ag2(config: Ag2BackendConfig, environ: Mapping[str, str], _private: Path | None, redactor: Redactor) -> Backend:
    if fault := lack(config, environ):
        raise BackendError("bad_request", fault)
    for asked in config.asked:
        _check_variables(asked, environ)
    from massgen_mcp.backends.frameworks.ag2_agent import Ag2Agent, Ag2Api

    def agent(described: Ag2AgentConfig) -> Ag2Agent:
        execution = described.code_execution_config
        asked = config.asked_for(described.llm_config)
        endpoint = _endpoint(asked, environ, redactor)
        api: Ag2Api = "chat"
        if provider_for(asked, environ).wire == "messages":
            api = "messages"
        return Ag2Agent(endpoint, described.name, described.system_message, execution and execution.executor, api)

    if config.group_config is None:
        return AgentBackend(agent(config.agents[0]))
    from massgen_mcp.backends.frameworks.ag2_group import Ag2Group

    group = config.group_config
    manager = Ag2AgentConfig(name="manager", llm_config=group.pattern.group_manager_args.llm_config)
    return AgentBackend(Ag2Group(group, {each.name: agent(each) for each in config.agents}, agent(manager)))


def _http_backend(
    config: AnyHttpBackend, environ: Mapping[str, str], _private: Path | None, redactor: Redactor
) -> Backend:
    _check_variables(config, environ)
    given = dict(environ)  # as it is now, whenever the first call is
    return LateBackend(config.model, Late(lambda: _wire(config, given, redactor), "massgen_mcp.backends.http"))


_MADE: Mapping[MemberKind[Any], Callable[..., Backend]] = {
    SCRIPTED: _scripted,
    CLAUDE_CODE: _claude_code,
    ACP: _acp,
    AG2: _ag2,
    HTTP: _http_backend,
}


def _wire(config: AnyHttpBackend, environ: Mapping[str, str], redactor: Redactor) -> Backend:
    endpoint = _endpoint(config, environ, redactor)
    if isinstance(config, LocalServerConfig):
        from massgen_mcp.backends.local_server import LocalServerBackend

        return LocalServerBackend(config.type, endpoint, lambda asked: _of_wire(config, asked, environ))
    return _of_wire(config, endpoint, environ)


def _of_wire(config: AnyHttpBackend, endpoint: "Endpoint", environ: Mapping[str, str]) -> Backend:
    match provider_for(config, environ).wire:
        case "responses":
            from massgen_mcp.backends.openai_responses import ResponsesBackend

            return ResponsesBackend(endpoint)
        case "chat":
            from massgen_mcp.backends.chatcompletion import ChatCompletionBackend

            return ChatCompletionBackend(endpoint)
        case "messages":
            from massgen_mcp.backends.claude import ClaudeBackend

            return ClaudeBackend(endpoint)
        case "ollama":
            from massgen_mcp.backends.ollama import OllamaBackend, OllamaSettings

            settings = OllamaSettings()
            if isinstance(config, OllamaBackendConfig):
                settings = OllamaSettings(config.context_length, config.keep_alive)
            return OllamaBackend(endpoint, settings)
        case "gemini":
            from massgen_mcp.backends.gemini import GeminiBackend

            return GeminiBackend(endpoint)


def _check_variables(config: AnyHttpBackend, environ: Mapping[str, str]) -> None:
    find_key(config, environ)  # raises for one that cannot be a key
    for names in missing_variables(config, environ):
        message = f"no key or address for the model {config.model!r}: set {' or '.join(names)} in the environment"
        raise BackendError("auth", message)
    row = named_provider(config.type)
    if row.wire == "gemini" and config.asked_tools and provider_for(config, environ).wire != row.wire:
        flags = ", ".join(f"enable_{tool}" for tool in config.asked_tools)
        raise BackendError(
            "bad_request", f"{flags}: the compatible endpoint, where {row.base_url_variable} is, doesn't offer this"
        )


def _endpoint(config: AnyHttpBackend, environ: Mapping[str, str], redactor: Redactor) -> "Endpoint":
    from massgen_mcp.backends.http import Endpoint

    provider, key = provider_for(config, environ), find_key(config, environ)
    endpoint = Endpoint(
        model=config.model,
        api_key=key or NO_KEY,
        key_variable=next(name for name in key_variables(config, environ) if is_set(environ, name)) if key else None,
        base_url=provider.base_url,
        temperature=config.temperature,
        top_p=config.top_p,
        max_output_tokens=config.max_output_tokens,
        reasoning_effort=config.reasoning_effort,
        verbosity=config.verbosity,
        effort_field="reasoning" if provider.type == "openrouter" else "reasoning_effort",
        native_tools=config.asked_tools,
        cost_field=provider.cost_field,
        of_xai=provider.type == "grok",
        extra_body=config.extra_body,
        start=provider.start,
        redactor=redactor,
    )
    return _at_azure(config, endpoint) if isinstance(config, AzureBackendConfig) else endpoint


def _at_azure(config: AzureBackendConfig, endpoint: "Endpoint") -> "Endpoint":
    """Where a deployment is: named in the request at the `v1` API, in the path with a version of the older one."""
    root = (endpoint.base_url or "").rstrip("/").removesuffix("/openai/v1")
    deployment = config.deployment or config.model
    if config.api_version == "v1":
        return replace(endpoint, base_url=f"{root}/openai/v1", deployment=deployment, key_header="api-key")
    return replace(
        endpoint,
        base_url=f"{root}/openai/deployments/{quote(deployment, safe='')}",
        query={"api-version": config.api_version},
        key_header="api-key",
    )


# ---------------------------------------------------------------------------------------------------------------------
# A backend that is built at its first call, after what it needs is imported: making one costs a run nothing.


class LateBackend:
    def __init__(self, model: str, backend: Late[Backend]) -> None:
        self._model, self._backend = model, backend

    @property
    def model(self) -> str:
        return self._model

    async def prepare(self) -> None:
        await prepare(await self._backend.get())

    async def window(self) -> int | None:
        return await window(await self._backend.get())

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Part]:
        async with aclosing((await self._backend.get()).stream(request)) as parts:
            async for part in parts:
                yield part

    async def aclose(self) -> None:
        if self._backend.made is not None:
            await self._backend.made.aclose()


# ---------------------------------------------------------------------------------------------------------------------
# The backend of an agent whose own one could not be made: the agent falls out at its first call, the others go on.


class UnusableBackend:
    def __init__(self, model: str, fault: BackendError) -> None:
        self._model = model
        self._fault = fault

    @property
    def model(self) -> str:
        return self._model

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Part]:
        del request
        raise BackendError(self._fault.reason, str(self._fault))
        yield  # an asynchronous generator, as every backend's

    async def aclose(self) -> None:
        """Nothing is open."""
