"""Whether a config can be run here as it is meant: which sandbox its commands and its MCP servers get on this machine,
whether checks have files to judge, a judge has whom to judge, and directories that a run may change lie apart.

Starts nothing. What is known of the machine is kept in the state directory.
"""

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import combinations
from pathlib import Path

from massgen_mcp.config.access.members import lack, vendor_of
from massgen_mcp.config.diagnostics import show_name
from massgen_mcp.config.models.commands import CommandsConfig
from massgen_mcp.config.models.config import Config, HttpMcpServer, McpServer, StdioServer
from massgen_mcp.errors import MassgenError
from massgen_mcp.events.parts import STRATEGIES
from massgen_mcp.home import find_home, known_levels
from massgen_mcp.sandbox import SandboxChoice, Wishes, choose

_RUNS_MASSGEN = re.compile(r"(?:^|[\s`'\"(])massgen(?:-mcp)?\s+(?:-|@|[\"']|run\b|ask\b)", re.MULTILINE)


def unusable(server: StdioServer, choice: SandboxChoice) -> str | None:
    """Why the server cannot be started here, in words; None if it may be."""
    if not shutil.which(server.command):
        return f"program not found: {server.command}"
    if not server.sandbox:
        return None
    if choice.level is None:
        return f"{choice.why}; or set `sandbox: false` for this MCP server"
    return None


def server_places(config: Config, choices: Mapping[tuple[str, ...], SandboxChoice]) -> tuple[str, ...]:
    """Each server of each agent with where it runs, or why it cannot be started."""
    return tuple(
        f"{name} of {agent.id} ({_where(server, choices)})"
        for agent in config.agents
        for name, server in agent.mcp_servers.items()
    )


def _where(server: McpServer, choices: Mapping[tuple[str, ...], SandboxChoice]) -> str:
    match server:
        case HttpMcpServer():
            return "over HTTP"
        case StdioServer():
            choice = choices.get(server.network, SandboxChoice(None))
            if why := unusable(server, choice):
                return f"not started: {why}"
            return f"in {choice.level}" if server.sandbox else "outside the sandbox"


async def chosen_sandboxes(config: Config, environ: Mapping[str, str]) -> dict[CommandsConfig, SandboxChoice]:
    """The level for what is said of commands, for each thing that is said of agents who have any.

    Raises `MassgenError` for an unusable variable.
    """
    return {commands: await _chosen(commands, environ) for commands in config.all_commands}


async def sandbox_of_checks(config: Config, environ: Mapping[str, str]) -> SandboxChoice:
    """The level for checks, by what is said of the team's commands. Raises as `chosen_sandboxes`."""
    return await _chosen(config.orchestrator.commands, environ)


async def sandboxes_of_servers(config: Config, environ: Mapping[str, str]) -> dict[tuple[str, ...], SandboxChoice]:
    """The sandbox for the MCP servers that run in one, by what they may connect to. Raises as `chosen_sandboxes`."""
    servers = [server for agent in config.agents for server in agent.mcp_servers.values()]
    wanted = dict.fromkeys(one.network for one in servers if isinstance(one, StdioServer) and one.sandbox)
    return {network: await choose(Wishes(network=network), known_levels(environ)) for network in wanted}


async def require_programs(config: Config, environ: Mapping[str, str]) -> None:
    """Raises `MassgenError("config_invalid")` where a container or an image is asked for that is not to be had: agents
    count on its programs, so they are not started without.
    """
    for commands in filter(_has_own_programs, config.all_commands):
        choice = await _chosen(commands, environ)
        if choice.level is None:
            raise MassgenError("config_invalid", f"no container is available for agents' commands: {choice.why}")


def _has_own_programs(commands: CommandsConfig) -> bool:
    return commands.in_container or commands.image_archive is not None


async def _chosen(commands: CommandsConfig, environ: Mapping[str, str]) -> SandboxChoice:
    archive = None if commands.image_archive is None else Path(commands.image_archive)
    images = find_home(environ).path / "images"
    wishes = Wishes(
        commands.sandbox, commands.network, commands.open_network, commands.image, archive, images if archive else None
    )
    return await choose(wishes, known_levels(environ))


def require_apart(config: Config) -> None:
    """Agents have a copy of each directory, so one that lies in another one would be changed twice, and differently.
    Raises `MassgenError` invalid_arguments.
    """
    given = [context.path for context in config.orchestrator.context_paths if context.permission == "write"]
    for one, other in combinations(given, 2):
        around_one, around_other = _holds(other, one), _holds(one, other)
        if not (around_one or around_other):
            continue
        outer, inner = (other, one) if around_one else (one, other)
        where = "is the same as" if around_one and around_other else "is inside"
        message = f"{show_name(inner)} {where} {show_name(outer)}, but both have permission: write"
        raise MassgenError("invalid_arguments", f"context_paths: {message}; list only {show_name(outer)}")


def _holds(outer: str, inner: str) -> bool:
    """Whether one is the other or lies in it, whatever names and links lead there."""
    with suppress(OSError, RuntimeError):  # of what is not there any more
        real, wanted = Path(inner).resolve(), Path(outer).stat()
        return any(os.path.samestat(wanted, place.stat()) for place in (real, *real.parents))
    return False


def hindrances(config: Config, environ: Mapping[str, str]) -> list[str]:
    """A sentence each."""
    missing = [f"{agent.id}: {fault}." for agent in config.agents if (fault := lack(agent.backend, environ))]
    return [*dict.fromkeys(missing), *_without_nested_runs(config)]


def _without_nested_runs(config: Config) -> Iterator[str]:
    found = [
        agent.id
        for agent in config.agents
        if config.commands_of(agent).enabled and agent.system_message and _RUNS_MASSGEN.search(agent.system_message)
    ]
    if found and config.nested is None:
        yield (
            f"{', '.join(found)}: the instructions mention running massgen, but massgen isn't in the command "
            "sandbox. For nested runs, add `nested: {}`, which gives agents the `delegate` tool "
            "(docs/nested-runs.md)."
        )


def require_files(config: Config) -> None:
    """Checks need something to judge. Raises `MassgenError` invalid_arguments."""
    if config.orchestrator.checks and not config.orchestrator.context_paths:
        raise MassgenError(
            "invalid_arguments",
            "`checks` test changes to your directories; add a directory to context_paths, or remove `checks`",
        )


def require_copyable(config: Config, environ: Mapping[str, str]) -> None:
    """Refuse to copy a whole machine or home directory for agents to change, or for checks to judge. Raises
    `MassgenError` invalid_arguments.
    """
    orchestrator = config.orchestrator
    if not orchestrator.enable_filesystem:
        return
    home = environ.get("HOME")
    for context in orchestrator.context_paths:
        if not (context.permission == "write" or orchestrator.checks):
            continue
        path = Path(context.path)
        if path.resolve() == Path(path.anchor or "/"):
            what = "the whole file system"
        elif home and path.is_dir() and path.resolve() == Path(home).resolve():
            what = "your home directory"
        else:
            continue
        message = f"massgen doesn't copy the context path {show_name(context.path)} for agents, because it is {what}"
        ways = (
            "run massgen in your project's directory, or pass that directory; if agents only read, set permission: read"
        )
        raise MassgenError("invalid_arguments", f"{message}; {ways} and remove checks")


_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_PLAIN_WORD = re.compile(r"[\w./+@-]+")
_OF_THE_SHELL = frozenset(
    (
        *("!", ".", ":", "[", "alias", "bg", "break", "builtin", "case"),
        *("cd", "command", "continue", "declare", "echo", "eval", "exec", "exit", "export"),
        *("false", "fc", "fg", "for", "function", "getopts", "hash", "if", "jobs"),
        *("kill", "let", "local", "printf", "pwd", "read", "readonly", "return", "select"),
        *("set", "shift", "source", "test", "time", "times", "trap", "true", "type"),
        *("typeset", "ulimit", "umask", "unalias", "unset", "until", "wait", "while", "{"),
    )
)


def require_check_programs(checks: Iterable[str], config: Config, environ: Mapping[str, str]) -> None:
    """Refuse a check of this call whose program is neither on PATH nor a path inside the project, which agents may
    write. Raises `MassgenError` invalid_arguments.
    """
    orchestrator = config.orchestrator
    if orchestrator.setup or orchestrator.commands.in_container or orchestrator.commands.image_archive is not None:
        return  # what is there then, this machine does not tell
    projects = [Path(context.path) for context in orchestrator.context_paths]
    for check in checks:
        program = _find_program(check)
        if program is None or _is_there(program, projects, environ):
            continue
        message = f"check {show_name(check)}: program not found: {show_name(program)}"
        where = "(not on PATH)" if "/" not in program else "(no such path)"
        ways = "install it, or give the path of a script in your project, such as ./check.sh"
        raise MassgenError("invalid_arguments", f"{message} {where}; {ways}. No model was called")


def _find_program(check: str) -> str | None:
    """Return the first program that a command starts; None where only a shell could tell."""
    words = (word for word in check.split() if not _ASSIGNMENT.match(word))
    first = next(words, "")
    plain = _PLAIN_WORD.fullmatch(first) is not None
    return first if plain and first not in _OF_THE_SHELL else None


def _is_there(program: str, projects: Iterable[Path], environ: Mapping[str, str]) -> bool:
    if shutil.which(program, path=environ.get("PATH")):
        return True
    path = Path(program)
    if "/" in program and not path.is_absolute():
        return True  # inside the project
    if path.is_absolute():
        return any(path.is_relative_to(project) for project in projects)
    return any(next(project.glob(f"*/bin/{program}"), None) for project in projects)  # such as .venv/bin


_MEDIA = {
    "an image": (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".heic", ".avif"),
    "a PDF": (".pdf",),
    "an audio file": (".mp3", ".wav", ".ogg", ".flac", ".m4a", ".aac", ".opus"),
    "a video": (".mp4", ".mov", ".mkv", ".webm", ".avi", ".m4v"),
}


def describe_media(config: Config) -> list[str]:
    """Name the context paths that no model here can look at, in sentences."""
    kinds = {suffix: kind for kind, suffixes in _MEDIA.items() for suffix in suffixes}
    paths = [context.path for context in config.orchestrator.context_paths]
    return [
        f"{show_name(path)} is {kind}, but massgen sends only text to models: describe it in the question."
        for path in paths
        if (kind := kinds.get(Path(path).suffix.lower())) is not None and not Path(path).is_dir()
    ]


def describe_ignored(config: Config) -> list[str]:
    """Name the settings that have no effect any more, in sentences."""
    if not config.orchestrator.refute:
        return []
    return ["`refute` is ignored, because its tests rejected one in twenty correct winners. Remove it."]


def require_neutral_judge(config: Config) -> None:
    """Some answer has to be by a model that is not of the judge's vendor. Raises `MassgenError` config_invalid."""
    vendors = {agent.id: vendor_of(agent.backend) for agent in config.agents}
    judge = config.orchestrator.judge
    compares = STRATEGIES[config.orchestrator.decide].stage == "compare"
    if compares and judge is not None and len(set(vendors.values())) == 1:
        raise MassgenError(
            "config_invalid",
            f"orchestrator.judge: all agents are from the judge's vendor, {vendors[judge]}; choose a judge "
            "from another vendor",
        )


async def require_sandbox(config: Config, environ: Mapping[str, str]) -> None:
    """Refuse a run whose commands or checks cannot run here. Raises `MassgenError` sandbox_denied, and as
    `require_programs`.
    """
    await require_programs(config, environ)
    for choice in (await chosen_sandboxes(config, environ)).values():
        if choice.level is None:
            raise MassgenError("sandbox_denied", describe_missing_sandbox(choice))
    if config.orchestrator.checks:
        choice = await sandbox_of_checks(config, environ)
        if choice.level is None:
            raise MassgenError("sandbox_denied", no_sandbox(config, choice))


def describe_missing_sandbox(choice: SandboxChoice) -> str:
    """Return why a run is refused whose agents have commands."""
    return (
        f"agents' commands run only in a sandbox: {choice.why}. Without a sandbox, leave commands out: agents then "
        "have only file tools"
    )


def no_sandbox(config: Config, choice: SandboxChoice) -> str:
    """Why the checks cannot run."""
    named = ", ".join(f"`{command}`" for command in config.orchestrator.checks)
    return f"the checks {named} run only in a sandbox: {choice.why}"
