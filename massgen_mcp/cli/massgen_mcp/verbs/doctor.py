"""`massgen doctor`: is everything there that runs and clients need, and what to do where it is not.
`massgen check-adapter NAME`: does an adapter behave as a run needs it?
"""

import argparse
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path

import anyio.to_thread

from massgen_mcp.api.calls import run as run_team
from massgen_mcp.cli.exits import EXIT_FAILED, EXIT_OK
from massgen_mcp.cli.massgen_mcp.install.check import check_clients
from massgen_mcp.cli.output import print_either
from massgen_mcp.config.loader import config_places, is_team
from massgen_mcp.errors import MassgenError
from massgen_mcp.home import STORE_VARIABLE, find_home
from massgen_mcp.request.build import CallerRequest, adjusted_team
from massgen_mcp.request.team import NamedTeam
from massgen_mcp.runs.doctor.adapters import check_adapter, find_adapter
from massgen_mcp.runs.doctor.checks import check_all
from massgen_mcp.runs.doctor.command_sandbox import sandbox_checks, server_checks
from massgen_mcp.runs.doctor.connections import check_connections
from massgen_mcp.runs.doctor.members import check_members
from massgen_mcp.runs.doctor.result import DoctorCheck
from massgen_mcp.runs.host.setting_up import try_checks
from massgen_mcp.runs.store.opening import local_engine, open_cluster
from massgen_mcp.runs.store.rebuild import Rebuilt, rebuild

CHECKS_SECONDS = 300.0
LOST = (
    "not restored: marks (`massgen mark`) and the names of expired runs. Retention periods start over.\nThe list "
    "doesn't show runs started with `massgen`; they remain in the .massgen directories of their projects"
)

_QUESTION = "What is six times seven?"
PLAYED = {"ok": "pass", "warn": "skip", "fail": "FAIL"}
"""How `check-adapter` says how it went."""


async def check_setup(options: argparse.Namespace) -> int:
    checks = await _check_all(options)
    return _show(checks, chain.from_iterable(map(describe_check, checks)), as_json=options.json)


async def check_one_adapter(options: argparse.Namespace) -> int:
    adapter = find_adapter(options.name)
    checks = await check_adapter(adapter, os.environ)
    if (config := adapter.rehearse("answers")) is not None:
        checks.append(await _try_whole_run(options.name, config.model_dump(mode="json")))
    lines = [f"{PLAYED[check.level]}  {check.name}: {check.message}" for check in checks]
    return _show(checks, lines, as_json=options.json)


def _show(checks: Sequence[DoctorCheck], lines: Iterable[str], *, as_json: bool) -> int:
    print_either(lines, json.dumps({"checks": [asdict(check) for check in checks]}), as_json=as_json)
    return EXIT_FAILED if any(check.level == "fail" for check in checks) else EXIT_OK


async def _try_whole_run(name: str, settings: dict[str, object]) -> DoctorCheck:
    """A team of two of them, from the question to the final answer."""
    backend = {"type": "installed", "adapter": name, "settings": settings}
    agents = [{"id": each, "backend": backend} for each in ("one", "two")]
    limits = {"orchestrator_timeout_seconds": 60}
    try:
        await run_team(_QUESTION, config_dict={"agents": agents, "timeout_settings": limits})
    except MassgenError as error:
        return DoctorCheck("run", "fail", f"a team of two didn't reach a final answer: {error}")
    return DoctorCheck("run", "ok", "a team of two reached a final answer")


async def _check_all(options: argparse.Namespace) -> Sequence[DoctorCheck]:
    engine = local_engine(find_home(os.environ))
    rebuilt = [_check_of(await anyio.to_thread.run_sync(rebuild, engine))] if options.rebuild else []
    return [
        *rebuilt,
        *check_all(engine, os.environ),
        *await check_connections(Path.cwd(), os.environ),
        *await _check_shared(),
        *await check_members(Path.cwd(), os.environ),
        *await sandbox_checks(),
        *await server_checks(Path.cwd(), os.environ),
        *await try_config_checks(options.config, Path.cwd()),
        *check_clients(Path.cwd(), os.environ),
    ]


async def _check_shared() -> list[DoctorCheck]:
    """The store of several machines, where one is set."""
    if not os.environ.get(STORE_VARIABLE):
        return []
    try:
        engine = open_cluster(find_home(os.environ), os.environ)
        return [DoctorCheck(*found) for found in await anyio.to_thread.run_sync(engine.checks)]
    except MassgenError as error:
        return [DoctorCheck("shared store", "fail", str(error), f"see {STORE_VARIABLE}")]


async def try_config_checks(named: str | None, cwd: Path) -> list[DoctorCheck]:
    """Try the checks of the named config, else of the one that is found, on the files as they are. The latter
    may run commands only if a person accepted it.
    """
    if named is None and not any(is_team(place) for place in config_places(cwd, os.environ)):
        return []
    given = CallerRequest("", NamedTeam(config=named), cwd=cwd, environ=os.environ, checked=cwd, only_plan=True)
    try:
        team = await adjusted_team(given)
        tried = await try_checks(team.config, team.environ, seconds=CHECKS_SECONDS)
    except MassgenError as error:
        why, *rest = str(error).splitlines()
        return [DoctorCheck("checks", "warn" if named is None else "fail", f"not tried: {why}", "\n".join(rest))]
    return [
        DoctorCheck("checks", "warn", str(one))
        if one.state == "void"
        else DoctorCheck("checks", "ok", f"can run; on your unchanged files: {one}")
        for one in tried
    ]


def _check_of(rebuilt: Rebuilt) -> DoctorCheck:
    """What was found again, and what is not to be found in directories."""
    message = f"{len(rebuilt.entered)} runs are back in the list"
    if rebuilt.put_away is not None:
        message += f"; the damaged store is now {rebuilt.put_away.name}"
    if not rebuilt.entered:
        return DoctorCheck("rebuild", "ok", message)
    waiting = ", ".join(row.run_id for row in rebuilt.waiting)
    advice = f"to continue these runs, use `massgen resume ID`: {waiting}\n" if waiting else ""
    return DoctorCheck("rebuild", "ok", message, f"{advice}{LOST}")


def describe_check(check: DoctorCheck) -> list[str]:
    advice = [f"      {line}" for line in check.advice.splitlines()]
    return [f"{check.level:<4}  {check.name}: {check.message}", *advice]
