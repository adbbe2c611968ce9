"""Which sandbox the commands of a run get on this machine; what is known of it is kept in the state directory."""

from collections.abc import Mapping

from massgen_mcp.config.models import Config
from massgen_mcp.request.checkable import sandbox_of
from massgen_mcp.runs.doctor import Check
from massgen_mcp.sandbox import HOW_TO_GET_ONE, Choice, LevelReport, survey


async def chosen_sandbox(config: Config, environ: Mapping[str, str]) -> Choice | None:
    """The level for the config's commands; None where it has none. Raises `MassgenError` for an unusable variable."""
    return await sandbox_of(config, environ) if config.has_commands else None


def told_of(choice: Choice | None) -> str:
    """In words, for the record of a run and for whoever starts it; empty where there are no commands."""
    if choice is None:
        return ""
    return choice.level or f"none: {choice.why}"


async def sandbox_note(config: Config, environ: Mapping[str, str]) -> str:
    """For whoever starts a run: where its commands and checks run, or why there are none and how to get them. Empty
    where the config asks for none.
    """
    commands, checks = config.has_commands, config.orchestrator.checks
    if not commands and not checks:
        return ""
    choice = await sandbox_of(config, environ)
    if choice.level is None:
        return f"{'Agents cannot run commands' if commands else 'Checks cannot run'}: {choice.why}."
    who = "Agents run commands, and checks run," if commands and checks else "Agents run commands" if commands else ""
    return f"{who or 'Checks run'} in the sandbox {choice.level}."


async def sandbox_checks() -> list[Check]:
    """For `doctor`: each level that this machine could have is tried now, whatever is known of it."""
    reports = await survey(None)
    if not any(report.holds for report in reports):
        missing = "; ".join(f"{report.level}: {report.why}" for report in reports)
        return [Check("commands of agents", "warn", f"no sandbox holds here ({missing})", HOW_TO_GET_ONE)]
    return [_check(report) for report in reports if report.holds or report.outcomes]


def _check(report: LevelReport) -> Check:
    if not report.holds:
        told = f"{report.level} does not hold, so it is not used: {report.why}"
        return Check("commands of agents", "warn", told, f"see docs/commands.md; {HOW_TO_GET_ONE}")
    tried = len(report.outcomes)
    noted = f"; {'; '.join(report.notes)}" if report.notes else ""
    seen = f"; can be seen: {', '.join(report.seen)}" if report.seen else ""
    return Check("commands of agents", "ok", f"{report.level} holds, {tried} attempts made{seen}{noted}")
