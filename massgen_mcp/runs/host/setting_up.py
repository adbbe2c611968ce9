"""Runs the config's setup once on the base of a run, in the sandbox of its checks, and gives what it made to all."""

import secrets
import shlex
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import anyio.to_thread
from pydantic import ValidationError

from massgen_mcp.changes.copies import copy_ignored, known_as
from massgen_mcp.changes.files import TooLarge
from massgen_mcp.changes.git import GitFailed
from massgen_mcp.changes.run_changes import RunChanges
from massgen_mcp.checks.judge import USED_SECONDS, CheckRules, FileJudge, kept_in
from massgen_mcp.checks.output import excerpt_of
from massgen_mcp.config.models.commands import CommandsConfig
from massgen_mcp.config.models.config import Config
from massgen_mcp.events.parts import CheckOutcome, public_agent_name
from massgen_mcp.events.run import SetupFinished
from massgen_mcp.home import find_home, write_durably
from massgen_mcp.request.runnable import sandbox_of_checks
from massgen_mcp.runs.engine import RunFiles
from massgen_mcp.runs.host.judging import check_rules, environment_of, kept_file, prepare_judging
from massgen_mcp.runs.host.working_copies import WorkingCopies, prepare_base
from massgen_mcp.sandbox import OFFLINE, LevelName, Policy, ProjectTools, SandboxFailed, project_tools, spawn
from massgen_mcp.sandbox.process import Output, how_ended, take
from massgen_mcp.views.checks import HINDRANCES, TriedCheck
from massgen_mcp.workspace.snapshot import remove_tree

_KEPT, _KEY = "finished.json", "key"


async def set_up_copies(
    run: RunFiles,
    config: Config,
    environ: Mapping[str, str],
    copies: WorkingCopies | None,
    tools: ProjectTools,
    on_setup: Callable[[Callable[[], None]], None] = lambda _: None,
) -> tuple[WorkingCopies | None, SetupFinished | None]:
    """The copies with what the setup made, and how it ended; None where there is none. What it made in an earlier
    process of this run is used again, and what it made of the same base for a trial or run that has ended. `on_setup`
    is given what cuts the setup short. Raises `MassgenError` for an unusable variable, `OSError`.
    """
    command = config.orchestrator.setup
    if command is None or copies is None:
        return copies, None
    kept = await anyio.to_thread.run_sync(_earlier_setup, copies.kept.setup / _KEPT)
    if kept is not None:
        return copies, kept
    choice = await sandbox_of_checks(config, environ)
    outcome = CheckOutcome(command=command, result="not_run", how=f"did not run: {choice.why}", seconds=0)
    if choice.level is not None:
        rules = check_rules(
            config.orchestrator,
            choice.level,
            choice.image,
            (find_home(environ).path, run.path),
            _tools(config.orchestrator.commands, tools),
        )
        key = _key(rules, command, copies)
        earlier = await anyio.to_thread.run_sync(_taken_up, copies, find_home(environ).path, key)
        if earlier is not None:
            outcome = earlier.outcome
        else:
            policy = await anyio.to_thread.run_sync(_lay_out, rules, config.orchestrator.setup_timeout_seconds, copies)
            (copies.kept.setup / _KEY).write_text(key)
            outcome = outcome.model_copy(update={"how": "cut short"})
            with anyio.CancelScope() as scope:
                on_setup(scope.cancel)
                outcome = await _ran(command, copies.names[0], policy, choice.level)
    return await anyio.to_thread.run_sync(_installed, run, config, copies, outcome, choice.has_no_layers)


def failed_setup(finished: SetupFinished | None) -> str:
    """Why checks say nothing; empty if they may."""
    if finished is None or finished.outcome.result == "passed":
        return ""
    return f"the setup `{finished.outcome.command}` failed ({finished.outcome.how}), so massgen ran no checks"


def hand_on_setup(run: RunFiles, home: Path) -> None:
    """What it made is kept for who needs the same next, as long as an outcome of a check stands. Blocking."""
    kept = RunChanges(run.changes)
    finished = _earlier_setup(kept.setup / _KEPT)
    if finished is not None and finished.outcome.result == "passed":
        with suppress(OSError):
            place = _handed_on(home) / (kept.setup / _KEY).read_text()
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            kept.setup.rename(place)
            kept.setup.mkdir(mode=0o700)
            write_durably(kept.setup / _KEPT, finished.model_dump_json().encode())
    remove_tree(kept.made)


def _handed_on(home: Path) -> Path:
    return home / "checks" / "setups"


def _key(rules: CheckRules, command: str, copies: WorkingCopies) -> str:
    """Of what a setup makes; unlike any other where it begins with ignored files of the user's."""
    directories = copies.base.directories
    own = secrets.token_hex(8) if any(one.copied for one in directories) else ""
    asked = [command, own, copies.base.tree, *((one.name, one.path) for one in directories)]
    return environment_of(rules, rules.tools.readable, repr(asked))


def _taken_up(copies: WorkingCopies, home: Path, key: str) -> SetupFinished | None:
    """What the same setup made for a trial or run that has ended becomes this run's."""
    setup, place = copies.kept.setup, _handed_on(home) / key
    remove_tree(setup)
    for one in _handed_on(home).glob("*"):
        with suppress(OSError):  # somebody else has taken it up
            made = one / copies.kept.made.name  # its time is not changed where it is moved
            if made.stat().st_mtime < time.time() - USED_SECONDS:
                remove_tree(one)
    finished = _earlier_setup(place / _KEPT)
    if finished is not None:
        with suppress(OSError):
            (place / _KEPT).unlink()  # it is written again once the copies have what was made
            place.rename(setup)
            return finished
    return None


def _earlier_setup(place: Path) -> SetupFinished | None:
    try:
        return SetupFinished.model_validate_json(place.read_bytes())
    except (OSError, ValidationError):
        return None


def _tools(commands: CommandsConfig, found: ProjectTools) -> ProjectTools:
    """Where the config gives it a network, tools are not kept off it."""
    if not (commands.network or commands.open_network):
        return found
    return replace(found, environ={name: value for name, value in found.environ.items() if name not in OFFLINE})


def _lay_out(rules: CheckRules, seconds: float, copies: WorkingCopies) -> Policy:
    """A check-out of the base, and what the setup may see and change."""
    kept, base = copies.kept, copies.base
    remove_tree(kept.setup)
    scratch = kept.setup / "scratch"
    scratch.mkdir(mode=0o700, parents=True)
    kept.repository.check_out(base.id, kept.made)
    for one in base.directories:
        copy_ignored(one, kept.made / one.name)
    policy = rules.make_policy(kept.made, scratch, (), known_as(base))
    return replace(policy, bounds=rules.bounds.with_seconds(seconds))


async def _ran(command: str, name: str, policy: Policy, level: LevelName) -> CheckOutcome:
    script = f"cd -- {shlex.quote(name)} || exit 125\n{command}"
    output = Output()
    try:
        async with spawn(["/bin/sh", "-c", script], policy, level) as process:
            too_much = await take(process, output)
            ended = await process.wait()
    except SandboxFailed as failed:
        return CheckOutcome(command=command, result="not_run", how=f"did not run: {failed}", seconds=0)
    passed = ended.reason == "exited" and ended.code == 0 and not too_much
    return CheckOutcome(
        command=command,
        result="passed" if passed else "failed",
        how=how_ended(ended, policy.bounds.seconds, too_much=too_much),
        code=ended.code,
        seconds=round(ended.seconds, 3),
        excerpt=excerpt_of(output.text()),
    )


def _installed(
    run: RunFiles, config: Config, copies: WorkingCopies, outcome: CheckOutcome, copied: bool
) -> tuple[WorkingCopies, SetupFinished]:
    """Only now is it written down that the setup is done."""
    found: dict[str, tuple[str, ...]] = {}
    if outcome.result == "passed":
        try:
            found = copies.kept.found_in_setup(copies.base)
        except (GitFailed, TooLarge) as error:
            outcome = outcome.model_copy(
                update={"result": "failed", "how": f"cannot use the files that the setup created: {error}"}
            )
    places = (run.workspace_of(public_agent_name(place)) for place in range(len(config.agents)))
    workspaces = [place for place in places if place.exists()]
    base = copies.kept.install(copies.base, found, workspaces, copied=copied)
    names = tuple(f"{name}/{below}" for name, belows in found.items() for below in belows)
    finished = SetupFinished(outcome=outcome, directories=names)
    remove_tree(copies.kept.setup / "scratch")
    copies.kept.setup.mkdir(mode=0o700, exist_ok=True)
    write_durably(copies.kept.setup / _KEPT, finished.model_dump_json().encode())
    return replace(copies, base=base), finished


# ---------------------------------------------------------------------------------------------------------------------
# The checks of a config, tried on the unchanged files before a model is asked: what a check says there, or why it
# says nothing, and what helps. What comes of it is kept, and a run that begins soon after does not run it again.


NO_SANDBOX_CURE = "`massgen doctor` shows how to set up a sandbox"
UNFINISHED_CURE = "massgen runs this check at the start of the run, before it calls a model"
STALE_SECONDS = 86_400.0
"""What a trial that was killed left behind is removed after so long."""


async def last_tried(config: Config, environ: Mapping[str, str]) -> tuple[TriedCheck, ...]:
    """What the checks said when they ran last, whatever has changed since; runs none."""
    file = kept_file(find_home(environ).path, config)
    kept = await anyio.to_thread.run_sync(kept_in, file)
    known = {outcome.command: outcome for outcome in (kept.outcomes if kept is not None else ())}
    return tuple(
        _tried(known[command]) if command in known else TriedCheck(command, "untried")
        for command in config.orchestrator.checks
    )


async def try_checks(config: Config, environ: Mapping[str, str], *, seconds: float) -> tuple[TriedCheck, ...]:
    """Run them, for at most so many seconds in all. Raises `MassgenError` for an unusable variable."""
    commands = config.orchestrator.checks
    tried = {command: TriedCheck(command, "unfinished", cure=UNFINISHED_CURE) for command in commands}
    if not commands:
        return ()
    trials = find_home(environ).ensure().path / "checks" / "trials"
    run = RunFiles(trials / secrets.token_hex(8))
    try:
        with anyio.move_on_after(seconds):
            judge = await _judge(run, config, environ)
            for command in commands:
                tried[command] = (
                    replace(judge, command=command)
                    if isinstance(judge, TriedCheck)
                    else _tried(await judge.check_base(command))
                )
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(hand_on_setup, run, find_home(environ).path)
            await anyio.to_thread.run_sync(remove_tree, run.path)
    return tuple(tried.values())


async def _judge(run: RunFiles, config: Config, environ: Mapping[str, str]) -> FileJudge | TriedCheck:
    """What judges the base; or why nothing does, which holds for every check."""
    try:
        copies, tools = await anyio.to_thread.run_sync(_prepared, run, config, environ)
    except (GitFailed, OSError) as error:
        return TriedCheck("", "void", f"cannot read the files: {error}")
    copies, set_up = await set_up_copies(run, config, environ, copies, tools)
    judging = await prepare_judging(run, config, environ, copies, tools, failed_setup(set_up))
    if judging.judge is not None:
        return judging.judge
    return TriedCheck("", "void", judging.denied or judging.problem, NO_SANDBOX_CURE if judging.denied else "")


def _prepared(run: RunFiles, config: Config, environ: Mapping[str, str]) -> tuple[WorkingCopies | None, ProjectTools]:
    for left in run.path.parent.glob("*"):
        if left.stat().st_mtime < time.time() - STALE_SECONDS:
            remove_tree(left)
    run.path.mkdir(mode=0o700, parents=True)
    tools = project_tools([Path(one.path) for one in config.orchestrator.context_paths], environ)
    return prepare_base(run, config, (find_home(environ).path,)), tools


def _tried(outcome: CheckOutcome) -> TriedCheck:
    if outcome.obstacle is not None:
        how = f"{HINDRANCES[outcome.obstacle]}, {outcome.how}"
        return TriedCheck(outcome.command, "void", how, outcome.cure, outcome.excerpt)
    if outcome.result == "not_run":
        return TriedCheck(outcome.command, "void", outcome.how, NO_SANDBOX_CURE)
    how = "flaky: it passed and failed on the same files" if outcome.flaky else outcome.how
    cure = outcome.cure if outcome.speaks_against else ""
    return TriedCheck(outcome.command, outcome.result, how, cure, outcome.excerpt)
