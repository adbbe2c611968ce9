"""What is told of the sandbox that the commands of a run get on this machine."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from massgen_mcp.config.loader import config_places, is_team, load_config
from massgen_mcp.config.models.config import Config
from massgen_mcp.errors import MassgenError
from massgen_mcp.request.runnable import (
    chosen_sandboxes,
    describe_missing_sandbox,
    hindrances,
    sandbox_of_checks,
    sandboxes_of_servers,
    server_places,
)
from massgen_mcp.runs.doctor.result import DoctorCheck
from massgen_mcp.sandbox import LevelReport, SandboxChoice, how_to_get_one, present, survey


def sandbox_names(choices: Iterable[SandboxChoice]) -> str:
    """In words, for the record of a run and for whoever starts it; empty where there are no commands."""
    return ", ".join(dict.fromkeys(_level_name(choice) for choice in choices))


def _level_name(choice: SandboxChoice) -> str:
    if choice.level is None:
        return f"none: {choice.why}"
    return f"{choice.level}, with programs from an image" if choice.image else choice.level


async def sandbox_note(config: Config, environ: Mapping[str, str]) -> str:
    """For whoever starts a run: where its commands and checks run and what does not work there, or why they do not and
    how to get them; where its MCP servers do; and what else stands in the way. Empty where there is nothing to say.
    Raises `MassgenError` for an unusable variable.
    """
    choices = (await chosen_sandboxes(config, environ)).values()
    there = [choice for choice in choices if choice.level is not None]
    lines = [
        f"massgen won't start this run: {describe_missing_sandbox(choice)}."
        for choice in choices
        if choice.level is None
    ]
    if there:
        lines.append(f"Agents run commands in this sandbox: {_with_what_is_broken(there)}.")
    if config.orchestrator.checks:
        checking = await sandbox_of_checks(config, environ)
        where = (
            f"run in the sandbox {_with_what_is_broken([checking])}"
            if checking.level
            else f"can't run, so massgen won't start this run: {checking.why}"
        )
        lines.append(f"Checks {where}.")
    servers = server_places(config, await sandboxes_of_servers(config, environ))
    lines += [f"MCP servers: {'; '.join(servers)}."] if servers else []
    lines += hindrances(config, environ)
    return " ".join(lines)


def _with_what_is_broken(choices: list[SandboxChoice]) -> str:
    broken = "; ".join(dict.fromkeys(note for choice in choices for note in choice.broken))
    return f"{sandbox_names(choices)}{f'; {broken}' if broken else ''}"


async def sandbox_checks() -> list[DoctorCheck]:
    """For `doctor`: each level that this machine could have is tried now, whatever is known of it."""
    reports = await survey(None)
    if not any(report.holds for report in reports):
        missing = "; ".join(f"{report.level}: {report.why}" for report in reports)
        summary = f"no sandbox works here, so massgen rejects configs with commands or checks ({missing})"
        return [DoctorCheck("commands of agents", "warn", summary, f"{how_to_get_one()}.")]
    return [_check(report) for report in reports if report.outcomes or present(report.level) is None]


def _check(report: LevelReport) -> DoctorCheck:
    if not report.holds:
        return DoctorCheck(
            "commands of agents", "ok", f"{report.level} isn't secure here, so massgen doesn't use it: {report.why}"
        )
    tried = len(report.outcomes)
    noted = f"; {'; '.join(report.notes)}" if report.notes else ""
    return DoctorCheck("commands of agents", "ok", f"{report.level} works; {tried} attempts to break out failed{noted}")


async def server_checks(cwd: Path, environ: Mapping[str, str]) -> list[DoctorCheck]:
    """For `doctor`: where the MCP servers of the project's config run, or of the user's own, or why they cannot."""
    for path in filter(is_team, config_places(cwd, environ)):
        try:
            config = load_config(path, environ=environ, base_dir=cwd)
        except MassgenError:
            return []  # whoever starts a run with it is told what is wrong
        places = server_places(config, await sandboxes_of_servers(config, environ))
        level = "warn" if any("(not started: " in one for one in places) else "ok"
        return [DoctorCheck("MCP servers", level, f"{path}: {'; '.join(places)}", "")] if places else []
    return []
