"""What a config lets commands have of this machine: agents' commands, and checks."""

from dataclasses import replace
from pathlib import Path

from massgen_mcp.config.models.commands import CommandsConfig
from massgen_mcp.sandbox import NO_TOOLS, ProjectTools, ResourceLimits

MIB = 1024 * 1024


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
