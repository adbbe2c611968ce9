"""`massgen-mcp check-adapter NAME`: does an adapter behave as a run needs it?"""

import argparse
import json
import os
from dataclasses import asdict

from massgen_mcp.api.calls import run as run_team
from massgen_mcp.cli.exits import EXIT_FAILED, EXIT_OK
from massgen_mcp.cli.output import print_line
from massgen_mcp.errors import MassgenError
from massgen_mcp.runs.doctor.adapters import check_adapter, find_adapter
from massgen_mcp.runs.doctor.result import DoctorCheck

WORDS = {"ok": "pass", "warn": "skip", "fail": "FAIL"}


async def run(options: argparse.Namespace) -> int:
    adapter = find_adapter(options.name)
    checks = await check_adapter(adapter, os.environ)
    if (config := adapter.rehearse("answers")) is not None:
        checks.append(await _whole_run(options.name, config.model_dump(mode="json")))
    failed = any(check.level == "fail" for check in checks)
    if options.json:
        print_line(json.dumps({"checks": [asdict(check) for check in checks]}))
    else:
        for check in checks:
            print_line(f"{WORDS[check.level]}  {check.name}: {check.message}")
    return EXIT_FAILED if failed else EXIT_OK


async def _whole_run(name: str, settings: dict[str, object]) -> DoctorCheck:
    """A team of two of them, from the question to the final answer."""
    backend = {"type": "installed", "adapter": name, "settings": settings}
    agents = [{"id": each, "backend": backend} for each in ("one", "two")]
    limits = {"orchestrator_timeout_seconds": 60}
    try:
        await run_team("What is six times seven?", config_dict={"agents": agents, "timeout_settings": limits})
    except MassgenError as error:
        return DoctorCheck("run", "fail", f"a team of two comes to no final answer: {error}")
    return DoctorCheck("run", "ok", "a team of two comes to a final answer")
