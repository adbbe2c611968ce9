"""A store of several machines: `massgen store upgrade` makes its tables or brings them to this version,
`massgen worker` executes its runs until it is told to leave, and `massgen start QUESTION` starts one, with
directories of this machine.
"""

import argparse
import logging
import os
import sys
from pathlib import Path

import anyio.to_thread

from massgen_mcp.cli.exits import EXIT_OK
from massgen_mcp.cli.massgen.options import Options
from massgen_mcp.cli.output import print_either, print_line
from massgen_mcp.config.access.held_keys import redactor_for
from massgen_mcp.config.adjusted import RequestedLimits, given_path
from massgen_mcp.home import find_home
from massgen_mcp.open_files import allow_open_files
from massgen_mcp.redaction import redacted_output
from massgen_mcp.request.build import CallerRequest, build_request
from massgen_mcp.request.team import NamedTeam
from massgen_mcp.request.trust import Consent
from massgen_mcp.runs.service import RunService
from massgen_mcp.runs.store.opening import open_cluster
from massgen_mcp.server.log import JsonLog
from massgen_mcp.server.results.reply import as_json


async def upgrade_store(options: argparse.Namespace) -> int:  # noqa: ARG001 - every verb takes its options
    taken = await anyio.to_thread.run_sync(open_cluster(find_home(os.environ), os.environ).upgrade)
    print_line(f"upgraded: {len(taken)} steps" if taken else "up to date")
    return EXIT_OK


async def work_on_runs(options: argparse.Namespace) -> int:
    engine = open_cluster(find_home(os.environ).ensure(), os.environ)
    from massgen_mcp.runs.host.worker import work  # needs procrastinate, of the same extra

    allow_open_files()
    with redacted_output(redactor_for(os.environ)):
        logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
        if options.log_format == "json":
            logging.getLogger().handlers[0].setFormatter(JsonLog())
        await work(engine, os.environ, options.pools, options.concurrency)
    return EXIT_OK


async def start_elsewhere(options: Options) -> int:
    """Start a run for the workers of such a store, and print its id."""
    service = RunService(open_cluster(find_home(os.environ), os.environ), os.environ)
    paths = [given_path(str(directory.resolve()), "write") for directory in options.context]
    given = CallerRequest(
        options.question or "",
        NamedTeam(config=options.config, models=options.models),
        cwd=Path.cwd(),
        environ=os.environ,
        consent=Consent(grants_paths=True, options=True),
        context_paths=paths,
        checks=options.checks,
        limits=RequestedLimits(max_usd=options.max_usd),
        caller_answers=True,
        elsewhere=True,
        uploads=bool(paths),
        idempotency_key=options.idempotency_key,
    )
    try:
        view, reused = await service.start(await build_request(given))
    finally:
        service.close()
    document = as_json({"run_id": view.row.run_id, "reused": reused})
    print_either([view.row.run_id], document, as_json=options.json)
    return EXIT_OK
