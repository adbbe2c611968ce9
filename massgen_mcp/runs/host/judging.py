"""Makes what judges the files of a run's answers: its checks, their sandbox, and what they see beside a tree; and what
a config lets them, and agents' commands, have of this machine.
"""

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

import anyio.to_thread

from massgen_mcp.checks.judge import BaseOutcomes, CheckRules, FileJudge
from massgen_mcp.checks.protected import Protection
from massgen_mcp.config.access.held_keys import redactor_for
from massgen_mcp.config.models.commands import CommandsConfig
from massgen_mcp.config.models.config import Config
from massgen_mcp.config.models.orchestrator import OrchestratorConfig
from massgen_mcp.home import find_home
from massgen_mcp.request.reach import scripts_may_run
from massgen_mcp.request.runnable import no_sandbox, sandbox_of_checks
from massgen_mcp.runs.engine import RunFiles
from massgen_mcp.runs.host.working_copies import WorkingCopies
from massgen_mcp.sandbox import NO_TOOLS, Image, LevelName, ProjectTools, ResourceLimits, VisiblePath
from massgen_mcp.sandbox.specification import MIB
from massgen_mcp.workspace.guard import PathRefused, Root
from massgen_mcp.workspace.snapshot import remove_tree

NO_COPIES = "there is nothing to check, since agents have no copies of the context paths"


@dataclass(frozen=True, slots=True)
class Judging:
    judge: FileJudge | None = None
    denied: str = ""
    """Why the run must not go on: its checks have no sandbox."""
    problem: str = ""
    """Why it goes on without checks, although it has some."""


async def prepare_judging(
    run: RunFiles,
    config: Config,
    environ: Mapping[str, str],
    copies: WorkingCopies | None,
    tools: ProjectTools,
    problem: str,
) -> Judging:
    """What judges the answers of a run, where its config has checks, or scripts of agents may be run. `problem`: why
    they say nothing, if that is known. Without a sandbox only checks must run. Raises `MassgenError` for an unusable
    variable.
    """
    checks = config.orchestrator.checks
    runs = scripts_may_run(config)
    if not checks and (not runs or copies is None or problem):
        return Judging()
    choice = await sandbox_of_checks(config, environ)
    if choice.level is None and not checks:
        return Judging()
    if choice.level is None:
        return Judging(denied=no_sandbox(config, choice))
    if copies is None:
        return Judging(problem=NO_COPIES)
    if problem:
        return Judging(problem=problem)
    rules = check_rules(config.orchestrator, choice.level, choice.image, (find_home(environ).path, run.path), tools)
    return Judging(await anyio.to_thread.run_sync(_judge, run, config, environ, copies, rules))


def _judge(
    run: RunFiles,
    config: Config,
    environ: Mapping[str, str],
    copies: WorkingCopies,
    rules: CheckRules,
) -> FileJudge:
    redactor = redactor_for(environ, [agent.backend for agent in config.agents], config.server_variables)
    place = run.path / "checks"
    remove_tree(place)  # of a process that was lost
    shown: list[VisiblePath] = []
    secret: list[Path] = []
    for one in copies.shared:
        found = _secrets_in(one.host)
        if found is not None:
            shown.append(replace(one, layered=True))
            secret += found
    rules = replace(rules, hidden=(*rules.hidden, *secret))
    places = [*(one.host for one in shown), *rules.tools.readable]
    environment = environment_of(rules, places, config.orchestrator.setup)
    kept = BaseOutcomes(kept_file(find_home(environ).path, config), copies.base.tree, environment, redactor)
    return FileJudge(copies.kept, copies.base, place, rules, shown=(*shown, *copies.installed), kept=kept)


def check_rules(
    config: OrchestratorConfig,
    level: LevelName,
    unpacked: Image | None,
    hidden: tuple[Path, ...],
    tools: ProjectTools,
) -> CheckRules:
    """What the config says of checks; the sandbox is that of commands. `hidden`: what no check ever sees."""
    commands = config.commands
    return CheckRules(
        level=level,
        bounds=bounds_of(commands).with_seconds(float(config.checks_timeout_seconds)),
        protection=Protection(config.protect, config.checks),
        network=commands.network,
        open_network=commands.open_network,
        tools=tools_of(commands, tools),
        hidden=hidden,
        image=commands.image,
        unpacked=unpacked,
    )


def kept_file(home: Path, config: Config) -> Path:
    """Where it is kept what the checks of this config said of its directories."""
    orchestrator = config.orchestrator
    asked = orchestrator.model_dump_json(
        include={"context_paths", "setup", "checks", "checks_timeout_seconds", "protect", "commands"}
    )
    return home / "checks" / f"{sha256(asked.encode()).hexdigest()[:32]}.json"


def environment_of(rules: CheckRules, places: Iterable[Path], setup: str | None) -> str:
    """A digest of what checks find beside the files: the sandbox, its limits, the programs, the state of the places
    shown, and what prepared them.
    """
    parts: list[object] = [
        rules.level,
        os.environ.get("PATH"),
        setup,
        repr(rules.bounds),
        repr(sorted(rules.tools.environ.items())),
        rules.image,
        rules.unpacked,
    ]
    parts += [rules.network, rules.open_network, *(f"{place} {_changed(place)}" for place in places)]
    return sha256(repr(parts).encode()).hexdigest()


def _changed(place: Path) -> list[int]:
    """When packages were installed or removed there last, as package managers leave it to be seen."""
    with suppress(OSError):
        found = (path for pattern in _WRITTEN_BY_INSTALLERS for path in sorted(place.glob(pattern)))
        return [path.stat().st_mtime_ns for path in (place, *found)]
    return []


_WRITTEN_BY_INSTALLERS = ("bin", "lib*/python*/site-packages", ".package-lock.json", ".yarn-integrity", ".modules.yaml")


def _secrets_in(directory: Path) -> list[Path] | None:
    """Files that commonly hold secrets; None if not all of them can be found, so that it must not be shown."""
    try:
        with Root.open(directory, "", above=directory.parts) as root:
            found, whole = root.hidden.paths()
    except PathRefused:
        return None
    return [directory / path for path in found] if whole else None


def bounds_of(config: CommandsConfig) -> ResourceLimits:
    return ResourceLimits(
        memory_bytes=config.max_memory_mb * MIB,
        processes=config.max_processes,
        disk_bytes=config.max_disk_mb * MIB,
        processors=config.max_cpus,
    )


def tools_of(config: CommandsConfig, found: ProjectTools) -> ProjectTools:
    """With what the config lets commands read and have; an image brings tools of its own."""
    of_machine = NO_TOOLS if config.in_container or config.image_archive else found
    readable = (*of_machine.readable, *map(Path, config.readable))
    return replace(of_machine, readable=readable, environ={**of_machine.environ, **config.env})
