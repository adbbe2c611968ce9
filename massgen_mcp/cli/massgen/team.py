"""What a command line says about the team, and what its person is asked before a run: to consent, where the rule in
`request` says so, and whether to go on with checks that say nothing here.
"""

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from massgen_mcp.cli.asking import confirm, on_terminal
from massgen_mcp.cli.command_line import AS_IT_IS
from massgen_mcp.cli.massgen.display import shown_live
from massgen_mcp.cli.massgen.options import Options
from massgen_mcp.cli.output import print_line, print_lines
from massgen_mcp.config.adjusted import RequestedLimits, given_path
from massgen_mcp.config.models.http_backends import AUTO_MODEL
from massgen_mcp.config.providers.catalog import PROVIDERS, WITHOUT_PROVIDER, named_provider
from massgen_mcp.errors import MassgenError
from massgen_mcp.home import STORE_VARIABLE, find_home
from massgen_mcp.request.build import CallerRequest, adjusted_team
from massgen_mcp.request.output_file import OutputFile
from massgen_mcp.request.runnable import require_check_programs
from massgen_mcp.request.team import NamedTeam, Team
from massgen_mcp.request.trust import Consent
from massgen_mcp.runs.doctor.preflight import MODEL_LISTS, require_models, require_room

MODELS_ALONE = MappingProxyType(
    {
        "scripted": "scripted",
        "claude_code": "default",
        **dict.fromkeys((row.type for row in PROVIDERS if row.is_local), AUTO_MODEL),
    }
)
"""What a backend that knows no strongest model asks when nobody names one."""


def given_of(options: Options, question: str, *, cwd: Path, environ: Mapping[str, str]) -> CallerRequest:
    """Return the request that the options of the command line make. Raises `MassgenError` config_invalid."""
    models = tuple(_models(options)) if options.models or options.backend else ()
    ask = _consents if on_terminal() and not (options.automation or options.dry_run) else None
    as_it_is = options.trust == AS_IT_IS
    return CallerRequest(
        question,
        NamedTeam(config=options.config, models=models, num_agents=options.num_agents),
        cwd=cwd,
        environ=environ,
        consent=Consent(ask=ask, as_it_is=as_it_is, digest=None if as_it_is else options.trust, options=True),
        limits=RequestedLimits(max_usd=options.max_usd),
        checks=options.checks,
        decide=options.decide,
        checked=cwd,
        system_message=options.system_message,
        replaces_system_messages=True,
        caller_answers=options.background or shown_live(options, environ),
        output_file=output_file(options),
        idempotency_key=options.idempotency_key,
        changes_of=options.changes_of if question else None,
        project=None if options.no_logs else cwd,
        listed=not options.no_logs,
    )


def given_for_workers(options: Options, question: str, *, cwd: Path, environ: Mapping[str, str]) -> CallerRequest:
    """Return the same for the workers of a shared store, which get the directories of this machine as uploads. Raises
    `MassgenError` config_invalid, invalid_arguments.
    """
    if options.session_id is not None or options.changes_of is not None:
        message = (
            "--session and --changes-of need runs on this machine. Leave them out, or unset "
            f"{STORE_VARIABLE} to start the run here."
        )
        raise MassgenError("invalid_arguments", message)
    given = given_of(options, question, cwd=cwd, environ=environ)
    paths = [given_path(str(directory.resolve()), "write") for directory in options.context]
    return replace(
        given,
        consent=replace(given.consent, grants_paths=True),
        context_paths=paths,
        checked=None,
        project=None,
        elsewhere=True,
        uploads=bool(paths),
    )


async def look_before(options: Options, team: Team) -> list[str]:
    """Before a cent is spent. Returns what a person should know of the team. Raises `MassgenError` invalid_arguments,
    config_invalid for what would fail then.
    """
    require_check_programs(options.checks, team.config, team.environ)
    require_room(Path(tempfile.gettempdir()) if options.no_logs else Path.cwd())
    kept = None if options.no_logs else find_home(team.environ).path / MODEL_LISTS
    return [note for note in (team.note, await require_models(team.config, team.environ, kept)) if note]


def agreed_to_place(options: Options, cwd: Path, environ: Mapping[str, str]) -> bool:
    """Ask a person who is in `/` or at home whether that is meant. Elsewhere, and without a terminal, it is."""
    home = environ.get("HOME")
    at_home = cwd == Path("/") or (home is not None and cwd == Path(home).resolve())
    only_sets_up = options.init and options.question is None
    unasked = options.yes or options.dry_run or options.automation or only_sets_up
    if not at_home or unasked or not on_terminal():
        return True
    print_line(f"{cwd} isn't a project directory; massgen would save your runs there, in .massgen/.")
    return confirm("Continue here", default=False)


async def find_team(options: Options, *, cwd: Path, environ: Mapping[str, str]) -> Team:
    """The team of a conversation that has no question yet. Raises as `build_request`."""
    return await adjusted_team(given_of(options, "", cwd=cwd, environ=environ))


def output_file(options: Options) -> OutputFile | None:
    return None if options.output_file is None else OutputFile(options.output_file.absolute(), "--output")


def _consents(text: str) -> bool:
    print_lines(text.splitlines())
    print_line("Permissions marked with ! need your consent. massgen remembers your consent until the file changes.")
    return confirm("Allow this", default=False)


def _models(options: Options) -> list[str]:
    """`backend/model` for each agent or each model to be dealt out."""
    if options.backend is None:
        return list(options.models)
    if options.models:
        return [f"{options.backend}/{model}" for model in options.models]
    if options.backend in MODELS_ALONE:
        return [f"{options.backend}/{MODELS_ALONE[options.backend]}"]
    row = None if options.backend in WITHOUT_PROVIDER else named_provider(options.backend)
    if row is None or row.strong_model is None:
        name = options.backend if row is None else row.type
        raise MassgenError("config_invalid", f"--backend {name}: also name the model, with --model")
    return [f"{row.type}/{row.strong_model}"]


CHECKS_SECONDS = 600.0
"""For all checks together; what has not run then runs in the run."""


async def agreed_to_checks(team: Team, say: Callable[[str], None], *, yes: bool = False) -> bool:
    """Return whether the run may begin. `say` tells a person; `yes`: it may, even if checks fail."""
    config = team.config
    if not config.orchestrator.checks:
        return True
    from massgen_mcp.runs.host.setting_up import try_checks

    say("Trying the checks on your unchanged files; no model has been called yet.")
    tried = await try_checks(config, team.environ, seconds=CHECKS_SECONDS)
    for one in tried:
        say(f"Check {one}")
    void = [one for one in tried if one.state == "void"]
    if not void:
        return True
    say(f"{len(void)} of {len(tried)} checks can't test the answers in this environment.")
    if yes:
        return True
    try:
        return confirm("Start anyway", default=False)
    except KeyboardInterrupt:
        return False
