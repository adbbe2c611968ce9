"""`massgen-mcp mark ID right|wrong`: what a person says of a run's answer afterwards, for the statistics."""

import argparse

from massgen_mcp.cli.exits import EXIT_OK
from massgen_mcp.cli.output import print_line
from massgen_mcp.cli.run_service import run_service
from massgen_mcp.server.results.reply import as_json


async def run(options: argparse.Namespace) -> int:
    verdict = None if options.undo else options.verdict
    with run_service() as service:
        run_id = await service.find(options.run_id, to_change=True)
        await service.mark(run_id, verdict, agent=options.agent, note=options.note or "")
    if options.json:
        marked = {"run_id": run_id, "agent": options.agent, "verdict": verdict, "note": options.note}
        print_line(as_json({name: value for name, value in marked.items() if value is not None}))
    else:
        whose = f"{options.agent} of {run_id}" if options.agent else run_id
        print_line(f"{whose}: {f'marked {verdict}' if verdict else 'not marked any more'}")
    return EXIT_OK
