"""What a config asks for: whom it asks with which keys, what it reads, writes and starts, how much it may spend; and
what a run may be that is started inside another one, which reaches, spends and takes no more than that.

A function of the config, the environment and the project's directory. Must not judge it.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

from massgen_mcp.config.access import members
from massgen_mcp.config.access.acceptances import Pair
from massgen_mcp.config.access.permissions import (
    APPLIES_UNASKED,
    ApplyChanges,
    AskHost,
    AskServer,
    CommandPlace,
    Execution,
    Permission,
    ReadPath,
    RunCheck,
    RunCommands,
    RunScripts,
    RunSetup,
    SendFields,
    SendKey,
    SetPrice,
    SetVariable,
    SpendMoney,
    SpendTokens,
    StartServer,
    TakeTime,
    UseNetwork,
    WritePath,
    describe,
    describe_program,
    describe_server,
)
from massgen_mcp.config.adjusted import rechecked, without_caller, without_scripts
from massgen_mcp.config.diagnostics import on_one_line
from massgen_mcp.config.environment import variables_in
from massgen_mcp.config.models.backends import BackendConfig
from massgen_mcp.config.models.commands import CommandsConfig
from massgen_mcp.config.models.common import ListedBackendConfig
from massgen_mcp.config.models.config import AgentSettings, Config, HttpMcpServer, StdioServer
from massgen_mcp.config.models.http_backends import HttpBackendConfig
from massgen_mcp.config.models.orchestrator import ContextPath
from massgen_mcp.errors import MassgenError
from massgen_mcp.events.parts import STRATEGIES


@dataclass(frozen=True, slots=True)
class Reach:
    """Everything that a config may do, without repetitions: hosts, keys, paths, programs, servers, settings, amounts,
    each in the order of the agents.
    """

    permissions: tuple[Permission, ...]

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(one.host for one in self.permissions if isinstance(one, AskHost))

    @property
    def keys(self) -> tuple[Pair, ...]:
        """Variables, by name, and the hosts that their values are sent to."""
        return tuple(Pair(key=one.key, host=one.host) for one in self.permissions if isinstance(one, SendKey))

    @property
    def reads(self) -> tuple[Path, ...]:
        return tuple(one.path for one in self.permissions if isinstance(one, ReadPath))

    @property
    def writes(self) -> tuple[Path, ...]:
        return tuple(one.path for one in self.permissions if isinstance(one, WritePath))

    @property
    def optional_scripts(self) -> tuple[RunScripts, ...]:
        """The permissions that the run can do without."""
        return tuple(one for one in self.permissions if isinstance(one, RunScripts) and one.optional)

    @property
    def tokens(self) -> SpendTokens:
        return next(one for one in self.permissions if isinstance(one, SpendTokens))

    def lines(self) -> tuple[str, ...]:
        """Describe every permission, one line each, as a person accepts it."""
        return tuple(map(describe, self.permissions))

    def __str__(self) -> str:
        """On one line, what people want to know before the first call: hosts, keys by name, writable paths, programs.
        Scripts that the run can do without are left out.
        """
        started = (one for one in self.permissions if isinstance(one, Execution) and one not in self.optional_scripts)
        parts = {
            "hosts": self.hosts,
            "keys": dict.fromkeys(pair.key for pair in self.keys),
            "writes": map(on_one_line, self.writes),
            "applies": (APPLIES_UNASKED for one in self.permissions if isinstance(one, ApplyChanges)),
            "starts": map(describe_program, started),
            "MCP servers": (
                describe_server(one) for one in self.permissions if isinstance(one, StartServer | AskServer)
            ),
        }
        parts_with_names = [f"{name} {', '.join(listed)}" for name, values in parts.items() if (listed := [*values])]
        return "; ".join(parts_with_names) or "no hosts, no keys, no changes to your files"


def reach_of(config: Config, environ: Mapping[str, str], project: Path) -> Reach:
    """What a run of this config reaches. `project` is what relative paths start from."""
    backends = [agent.backend for agent in config.agents]
    found: list[Permission] = [AskHost(host) for backend in backends for host in members.hosts(backend, environ)]
    found += [SendKey(pair.key, pair.host) for backend in backends for pair in members.keys(backend, environ)]
    found += [ReadPath(path.as_uri()) for path in _read_paths(config, project)]
    contexts = _context_paths(config)
    found += [WritePath((project / one.path).resolve().as_uri()) for one in contexts if one.permission == "write"]
    if config.apply == "always":
        found.append(ApplyChanges())
    found += [program for backend in backends for program in members.start_permissions(backend)]
    found += _command_permissions(config)
    found += _script_permissions(config)
    found += [_server_permission(agent, name) for agent in config.agents for name in agent.mcp_servers]
    found += _setting_permissions(config, environ)
    uncounted = not config.budget.bounds_prices and any(may_lack_price(one, environ) for one in backends)
    found += [
        SpendMoney(config.budget.max_usd),
        SpendTokens(config.budget.most_tokens, uncounted),
        TakeTime(config.timeout_settings.orchestrator_timeout_seconds),
    ]
    return Reach(tuple(dict.fromkeys(found)))


def _context_paths(config: Config) -> Sequence[ContextPath]:
    return config.orchestrator.context_paths if config.orchestrator.enable_filesystem else ()


def _read_paths(config: Config, project: Path) -> Iterator[Path]:
    """Absolute, and free of links."""
    for context in _context_paths(config):
        yield (project / context.path).resolve()
    for agent in config.agents:
        yield from (Path(tool.path).resolve() for tool in agent.custom_tools)
    for commands in _all_commands(config):
        yield from (Path(path).resolve() for path in commands.readable)
        if commands.image_archive:
            yield Path(commands.image_archive).resolve()
    coordination = config.orchestrator.coordination
    skills = (project / coordination.skills_directory).resolve() if coordination.use_skills else None
    if skills is not None and skills.is_dir():
        yield skills


def may_lack_price(backend: BackendConfig, environ: Mapping[str, str]) -> bool:
    """Return whether the backend's calls may have to be paid for at a price that is unknown beforehand."""
    return backend.price is None and members.get_unknown_price(backend, environ) is not None


def _all_commands(config: Config) -> tuple[CommandsConfig, ...]:
    """What holds for agents' commands, and for checks, which every call can add."""
    return (*config.all_commands, config.orchestrator.commands)


def _server_permission(agent: AgentSettings, name: str) -> StartServer | AskServer:
    server = agent.mcp_servers[name]
    match server:
        case StdioServer():
            return StartServer(
                agent=agent.id,
                name=name,
                command=(server.command, *server.args),
                sandboxed=server.sandbox,
                network=server.network,
                readable=server.readable,
                variables=variables_in(server.env.values()),
                environment=_digest(server.env),
            )
        case HttpMcpServer():
            variables = variables_in(server.headers.values())
            return AskServer(agent.id, name, server.url, variables, _digest(server.headers))
        case _:
            assert_never(server)


def _command_permissions(config: Config) -> Iterator[Permission]:
    commands, checks = config.orchestrator.commands, config.orchestrator.checks
    for enabled in config.all_commands:
        yield RunCommands("agents", _get_place(enabled))
        yield from (UseNetwork("agents", _get_place(enabled), endpoint) for endpoint in _endpoints(enabled))
    place = _get_place(commands)
    if config.orchestrator.setup:
        yield RunSetup(config.orchestrator.setup, place)
    yield from (RunCheck(command, place) for command in checks)
    if not checks and not commands.enabled and place != CommandPlace():
        yield RunCommands("checks", place)
    if checks or not commands.enabled:
        yield from (UseNetwork("checks", place, endpoint) for endpoint in _endpoints(commands))


def scripts_may_run(config: Config) -> bool:
    """Whether agents may be asked for scripts that run on the files of answers."""
    orchestrator = config.orchestrator
    allowed = orchestrator.enable_filesystem and orchestrator.run_scripts
    strategy = orchestrator.choose_strategy(len(config.agents), can_run=allowed)
    return allowed and (STRATEGIES[strategy].runs_scripts or orchestrator.write_check)


def _script_permissions(config: Config) -> Iterator[RunScripts]:
    """Optional where the config takes scripts only where they may run. Agents' commands are as much."""
    orchestrator = config.orchestrator
    asked_for = STRATEGIES[orchestrator.decide].stage == "test" or orchestrator.write_check
    if scripts_may_run(config) and not orchestrator.commands.enabled:
        yield RunScripts(_get_place(orchestrator.commands), optional=not asked_for)


def _endpoints(commands: CommandsConfig) -> tuple[str | None, ...]:
    return (*commands.network, *((None,) if commands.open_network else ()))


def _get_place(commands: CommandsConfig) -> CommandPlace:
    match commands.sandbox:
        case "docker" | "podman" as container:
            return CommandPlace(container, commands.image, commands.image_archive)
        case "auto" | "bubblewrap" | "sandbox-exec":
            return CommandPlace(None, commands.image, commands.image_archive)


def _digest(values: object) -> str:
    text = json.dumps(values, sort_keys=True, default=str)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _setting_permissions(config: Config, environ: Mapping[str, str]) -> Iterator[Permission]:
    for commands in _all_commands(config):
        yield from (SetVariable(name, value) for name, value in commands.env.items())
    for agent in config.agents:
        backend = agent.backend
        if members.destination(backend, environ) is None:
            continue  # it calls nobody
        if isinstance(backend, ListedBackendConfig) and backend.price_as is not None:
            yield SetPrice(agent.id, backend.price_as, "")
        if backend.price is not None:
            yield SetPrice(agent.id, None, _digest(backend.price.model_dump(mode="json")))
        if isinstance(backend, HttpBackendConfig) and backend.extra_body:
            yield SendFields(agent.id, tuple(sorted(backend.extra_body)), _digest(backend.extra_body))


@dataclass(frozen=True, slots=True)
class NestedRunLimits:
    """What a nested run may spend and take, at most."""

    usd: float
    tokens: int
    calls: int
    """Without a price."""
    seconds: float


def nested_config(
    outer: Config, own: Config | None, bounds: NestedRunLimits, environ: Mapping[str, str], granted: Sequence[Path] = ()
) -> Config:
    """The config of a run that is started inside a run of config `outer`: `own`, or a team like that one, within the
    bounds. Its agents may read what those of the outer run may, and what `own` names below `granted`; they write
    nothing of the user's, and ask nobody.

    Raises `MassgenError` nesting_refused for what the outer run may not do itself, config_invalid.
    """
    config = outer if own is None else own
    root = Path("/")
    if reach_of(config, environ, root).optional_scripts and not (
        scripts_may_run(outer) or outer.orchestrator.commands.enabled
    ):
        config = without_scripts(config)
    config = config.model_copy(
        update={
            "orchestrator": config.orchestrator.model_copy(update={"context_paths": _read_by_both(outer, own)}),
            "budget": config.budget.model_copy(
                update={
                    "max_usd": min(config.budget.max_usd, bounds.usd),
                    "max_tokens": min(config.budget.most_tokens, bounds.tokens),
                    "max_calls": min(config.budget.max_calls, bounds.calls),
                }
            ),
            "timeout_settings": config.timeout_settings.model_copy(
                update={
                    "orchestrator_timeout_seconds": min(
                        config.timeout_settings.orchestrator_timeout_seconds, bounds.seconds
                    )
                }
            ),
            "limits": {**config.limits, **outer.limits},
        }
    )
    config = rechecked(without_caller(config))
    beyond = _beyond(reach_of(outer, environ, root), reach_of(config, environ, root), granted, of_itself=own is None)
    if beyond:
        raise MassgenError(
            "nesting_refused",
            "a nested run can't have more permissions than the run that starts it; this team also asks for "
            + "; ".join(map(describe, beyond)),
        )
    return config


def _read_by_both(outer: Config, own: Config | None) -> tuple[ContextPath, ...]:
    paths = [path.path for config in (outer, own) if config is not None for path in config.orchestrator.context_paths]
    files = (outer if own is None else own).orchestrator.enable_filesystem
    return tuple(ContextPath(path=path) for path in dict.fromkeys(paths)) if files else ()


def _beyond(outer: Reach, inner: Reach, granted: Sequence[Path], *, of_itself: bool) -> tuple[Permission, ...]:
    """Return what the inner run may do and the outer one may not. A setting of another team is never the same one."""
    may_read = (*outer.reads, *granted)
    allowed = frozenset(outer.permissions)

    def is_allowed(one: Permission) -> bool:
        match one:
            case ReadPath():
                return any(one.path.is_relative_to(path) for path in may_read)
            case SetVariable() | SetPrice() | SendFields():
                return of_itself and one in allowed
            case SpendMoney() | SpendTokens() | TakeTime():
                return True  # within the bounds
            case RunScripts(place=place):
                return one.optional or not allowed.isdisjoint(RunScripts(place, optional) for optional in (True, False))
            case _:
                return one in allowed

    return tuple(one for one in inner.permissions if not is_allowed(one))
