"""What a config asks for: whom it asks with which keys, what it reads, writes and starts, how much it may spend; and
what a run may be that is started inside another one, which reaches, spends and takes no more than that.

A function of the config, the environment and the project's directory. Must not judge it.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

from massgen_mcp.config.access import members
from massgen_mcp.config.access.acceptances import Pair
from massgen_mcp.config.adjusted import rechecked, without_caller, without_scripts
from massgen_mcp.config.diagnostics import on_one_line
from massgen_mcp.config.environment import variables_in
from massgen_mcp.config.models.backends import BackendConfig
from massgen_mcp.config.models.commands import CommandsConfig
from massgen_mcp.config.models.common import ListedBackendConfig
from massgen_mcp.config.models.config import Config, HttpMcpServer, StdioServer
from massgen_mcp.config.models.http_backends import HttpBackendConfig
from massgen_mcp.config.models.orchestrator import ContextPath
from massgen_mcp.errors import MassgenError

SETS = "sets: "

KEY = "key: "
READS = "reads: "
WRITES = "writes: "
COMMANDS = "agents' commands in "
CHECKS = "checks in "
SCRIPTS = "scripts that agents write, in "
NETWORK = "that may reach "
SANDBOX = "a sandbox"


@dataclass(frozen=True, slots=True)
class Reach:
    """Each without repetitions, in the order of the agents. Paths are absolute and free of links."""

    hosts: tuple[str, ...]
    keys: tuple[Pair, ...]
    """Variables, by name, and the hosts that their values are sent to."""
    reads: tuple[Path, ...]
    writes: tuple[Path, ...]
    commands: tuple[str, ...]
    scripts: tuple[str, ...]
    """Where scripts of agents run that the run can do without; where it cannot, `commands` says so."""
    servers: tuple[str, ...]
    """MCP servers: what is started or asked, and the variables, by name, that it is given."""
    settings: tuple[str, ...]
    """What else a stranger could do harm with."""
    max_usd: float
    max_tokens: int
    max_seconds: float
    uncounted: bool = False
    """Whether calls of unknown price count for `max_tokens` alone, because the config sets that."""

    def demands(self) -> tuple[str, ...]:
        """Every part of it in words, one line each, as a person accepts it."""
        return (
            *(f"host: {host}" for host in self.hosts),
            *(f"{KEY}{pair.key} to {pair.host}" for pair in self.keys),
            *(f"{READS}{on_one_line(path)}" for path in self.reads),
            *(f"{WRITES}{on_one_line(path)}" for path in self.writes),
            *(f"starts: {command}" for command in self.commands),
            *self.spared(),
            *self.server_demands(),
            *(f"sets: {setting}" for setting in self.settings),
            *self.amounts(),
        )

    def spared(self) -> tuple[str, ...]:
        """The part of the demands that the run can do without."""
        return tuple(f"starts: {line}" for line in self.scripts)

    def amounts(self) -> tuple[str, ...]:
        """The part of the demands that money, tokens and time are."""
        tokens = f"spends: up to {self.max_tokens} tokens"
        if self.uncounted:
            tokens += ", and calls without a known price count for that alone"
        return (
            f"spends: up to {self.max_usd:g} US dollars",
            tokens,
            f"takes: up to {self.max_seconds:g} seconds",
        )

    def server_demands(self) -> tuple[str, ...]:
        """The part of the demands that the MCP servers are."""
        return tuple(f"MCP server: {server}" for server in self.servers)

    def __str__(self) -> str:
        """On one line, what people want to know before the first call: hosts, keys by name, writable paths."""
        parts = {
            "hosts": self.hosts,
            "keys": dict.fromkeys(pair.key for pair in self.keys),
            "writes": map(on_one_line, self.writes),
            "starts": self.commands,
            "MCP servers": self.servers,
        }
        parts_with_names = [f"{name} {', '.join(listed)}" for name, values in parts.items() if (listed := [*values])]
        return "; ".join(parts_with_names) or "no hosts, no keys, writes nothing of yours"


def reach_of(config: Config, environ: Mapping[str, str], project: Path) -> Reach:
    """What a run of this config reaches. `project` is what relative paths start from."""
    backends = [agent.backend for agent in config.agents]
    orchestrator = config.orchestrator
    contexts = orchestrator.context_paths if orchestrator.enable_filesystem else ()
    reads = [(project / context.path).resolve() for context in contexts]
    writes = [(project / context.path).resolve() for context in contexts if context.permission == "write"]
    reads += [Path(tool.path).resolve() for agent in config.agents for tool in agent.custom_tools]
    for commands in _all_commands(config):
        reads += [Path(path).resolve() for path in commands.readable]
        reads += [Path(commands.image_archive).resolve()] if commands.image_archive else []
    if orchestrator.coordination.use_skills:
        skills = (project / orchestrator.coordination.skills_directory).resolve()
        reads += [skills] if skills.is_dir() else []
    return Reach(
        hosts=tuple(dict.fromkeys(host for backend in backends for host in members.hosts(backend, environ))),
        keys=tuple(dict.fromkeys(pair for backend in backends for pair in members.keys(backend, environ))),
        reads=tuple(dict.fromkeys(reads)),
        writes=tuple(dict.fromkeys(writes)),
        commands=tuple(_commands(config)),
        scripts=tuple(_scripts(config, wanted=False)),
        servers=tuple(dict.fromkeys(_servers(config))),
        settings=tuple(_settings(config, environ)),
        max_usd=config.budget.max_usd,
        max_tokens=config.budget.most_tokens,
        max_seconds=config.timeout_settings.orchestrator_timeout_seconds,
        uncounted=not config.budget.bounds_prices and any(may_lack_price(one, environ) for one in backends),
    )


def may_lack_price(backend: BackendConfig, environ: Mapping[str, str]) -> bool:
    """Return whether the backend's calls may have to be paid for at a price that is unknown beforehand."""
    return backend.price is None and members.get_unknown_price(backend, environ) is not None


def _all_commands(config: Config) -> tuple[CommandsConfig, ...]:
    """What holds for agents' commands, and for checks, which every call can add."""
    return (*config.all_commands, config.orchestrator.commands)


def _servers(config: Config) -> Iterator[str]:
    for agent in config.agents:
        for name, server in agent.mcp_servers.items():
            match server:
                case StdioServer():
                    values, what = server.env, shlex.join([server.command, *server.args])
                    where = [] if server.sandbox else ["outside the sandbox, with all your rights"]
                    where += [f"connects to {', '.join(server.network)}"] if server.network else []
                    where += [f"reads {', '.join(server.readable)}"] if server.readable else []
                case HttpMcpServer():
                    values, what, where = server.headers, server.url, []
                case _:
                    assert_never(server)
            given = variables_in(values.values())
            where += [f"is given {', '.join(given)}"] if given else []
            places = f" ({'; '.join(where)})" if where else ""
            yield on_one_line(f"{name} of {agent.id}: {what}{places}")


def _commands(config: Config) -> Iterator[str]:
    yield from dict.fromkeys(line for agent in config.agents for line in members.starts(agent.backend))
    commands_named = [
        line
        for commands in config.all_commands
        for line in (f"{COMMANDS}{_where(commands)}", *_reaches(COMMANDS, commands))
    ]
    commands, checks = config.orchestrator.commands, config.orchestrator.checks
    if setup := config.orchestrator.setup:
        commands_named.append(f"the setup {on_one_line(setup)} in {_where(commands)}")
    commands_named += [check_in(command, _where(commands)) for command in checks]
    commands_named += _scripts(config, wanted=True)
    if not checks and not commands.enabled and _where(commands) != SANDBOX:
        commands_named.append(f"{CHECKS}{_where(commands)}")
    commands_named += list(_reaches(CHECKS, commands)) if checks or not commands.enabled else []
    yield from dict.fromkeys(commands_named)


def scripts_may_run(config: Config) -> bool:
    """Whether agents may be asked for scripts that run on the files of answers."""
    orchestrator = config.orchestrator
    allowed = orchestrator.enable_filesystem and orchestrator.run_scripts
    procedure = orchestrator.procedure(len(config.agents), can_run=allowed)
    return allowed and (
        procedure in ("auto", "checks", "synthesise") or orchestrator.refute or orchestrator.write_check
    )


def _scripts(config: Config, *, wanted: bool) -> Iterator[str]:
    """How `Reach` names them. `wanted`: the config asks for them, and does not only take them where they may run.
    Agents' commands are as much.
    """
    orchestrator = config.orchestrator
    asked_for = orchestrator.decide == "checks" or orchestrator.refute or orchestrator.write_check
    if scripts_may_run(config) and not orchestrator.commands.enabled and wanted == asked_for:
        yield f"{SCRIPTS}{_where(orchestrator.commands)}"


def check_in(command: str, where: str = SANDBOX) -> str:
    """How `Reach.commands` names a check."""
    return f"the check {on_one_line(command)} in {where}"


def _reaches(whose: str, commands: CommandsConfig) -> Iterator[str]:
    where = _where(commands)
    yield from (f"{whose}{where} {NETWORK}{endpoint}" for endpoint in commands.network)
    if commands.open_network:
        yield f"{whose}{where} {NETWORK}every host"


def _where(commands: CommandsConfig) -> str:
    image = f" of the image {on_one_line(commands.image)}" if commands.image else ""
    where = f"a {commands.sandbox} container{image}" if commands.in_container else SANDBOX
    if commands.image_archive:
        where += f" with the programs of {on_one_line(commands.image_archive)}"
    return where


def _settings(config: Config, environ: Mapping[str, str]) -> Iterator[str]:
    variables = (variable for commands in _all_commands(config) for variable in commands.env.items())
    yield from (on_one_line(f"{name}={value} for commands and checks") for name, value in dict.fromkeys(variables))
    for agent in config.agents:
        backend = agent.backend
        if members.destination(backend, environ) is None:
            continue  # it calls nobody
        if isinstance(backend, ListedBackendConfig) and backend.price_as is not None:
            yield f"{agent.id}: the prices of {backend.price_as}, by which the money limit counts"
        if backend.price is not None:
            yield f"{agent.id}: a price of its own, by which the money limit counts"
        if isinstance(backend, HttpBackendConfig) and backend.extra_body:
            names = ", ".join(sorted(backend.extra_body))
            yield f"{agent.id}: further fields of its requests ({on_one_line(names)})"


@dataclass(frozen=True, slots=True)
class NestedRunLimits:
    """What a nested run may spend and take, at most."""

    usd: float
    tokens: int
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
    if reach_of(config, environ, root).scripts and not (scripts_may_run(outer) or outer.orchestrator.commands.enabled):
        config = without_scripts(config)
    config = config.model_copy(
        update={
            "orchestrator": config.orchestrator.model_copy(update={"context_paths": _read_by_both(outer, own)}),
            "budget": config.budget.model_copy(
                update={
                    "max_usd": min(config.budget.max_usd, bounds.usd),
                    "max_tokens": min(config.budget.most_tokens, bounds.tokens),
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
            f"a run inside another one reaches no more than that one does; this team also asks for {'; '.join(beyond)}",
        )
    return config


def _read_by_both(outer: Config, own: Config | None) -> tuple[ContextPath, ...]:
    paths = [path.path for config in (outer, own) if config is not None for path in config.orchestrator.context_paths]
    files = (outer if own is None else own).orchestrator.enable_filesystem
    return tuple(ContextPath(path=path) for path in dict.fromkeys(paths)) if files else ()


def _beyond(outer: Reach, inner: Reach, granted: Sequence[Path], *, of_itself: bool) -> list[str]:
    """What the inner run reaches and the outer one does not, in the words of `Reach.demands`. A setting of another team
    is never the same one, whatever it is called.
    """
    may_read = (*outer.reads, *granted)
    readable = {
        f"reads: {on_one_line(path)}" for path in inner.reads if any(path.is_relative_to(one) for one in may_read)
    }
    within = readable | {line for line in outer.demands() if of_itself or not line.startswith(SETS)}
    within |= {*inner.spared()}
    return [line for line in inner.demands() if line not in within and line not in inner.amounts()]
