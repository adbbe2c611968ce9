"""`massgen-mcp start QUESTION`: a run for the workers of a store of several machines, with directories of this one."""

import argparse
import os
from pathlib import Path

from massgen_mcp.cli.exits import EXIT_OK
from massgen_mcp.cli.massgen_mcp.options import how_to_ask
from massgen_mcp.cli.output import print_line
from massgen_mcp.config.adjusted import RequestedLimits, given_path
from massgen_mcp.errors import MassgenError
from massgen_mcp.home import STORE_VARIABLE, find_home
from massgen_mcp.request.build import CallerRequest, build_request
from massgen_mcp.request.team import NamedTeam
from massgen_mcp.request.trust import Consent
from massgen_mcp.runs.service import RunService
from massgen_mcp.runs.store.opening import open_cluster
from massgen_mcp.server.results.reply import as_json


async def run(options: argparse.Namespace) -> int:
    """Raises `MassgenError` for whatever keeps the run from beginning."""
    if not os.environ.get(STORE_VARIABLE):
        raise MassgenError(
            "invalid_arguments", how_to_ask('"QUESTION"') + "; start is for a --store of several machines"
        )
    service = RunService(open_cluster(find_home(os.environ), os.environ), os.environ)
    paths = [given_path(str(directory.resolve()), "write") for directory in options.context]
    given = CallerRequest(
        options.question,
        NamedTeam(config=options.config, models=tuple(options.model)),
        cwd=Path.cwd(),
        environ=os.environ,
        consent=Consent(grants_paths=True, options=True),
        context_paths=paths,
        checks=tuple(options.check),
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
    print_line(as_json({"run_id": view.row.run_id, "reused": reused}) if options.json else view.row.run_id)
    return EXIT_OK
