"""`massgen prune`: delete what is older than the limits, or the named runs, or say what that would be."""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict

from massgen_mcp.cli.exits import EXIT_FAILED, EXIT_OK
from massgen_mcp.cli.output import print_either, print_error
from massgen_mcp.cli.run_service import run_service
from massgen_mcp.runs.access import RunAccess
from massgen_mcp.runs.store.retention import Pruned, prune, prune_named
from massgen_mcp.threads import in_thread

DAY = 24 * 3600.0


async def run(options: argparse.Namespace) -> int:
    with run_service() as service:
        found = [await service.watcher.find_run_id(run_id, to_change=True) for run_id in options.run_ids]
        pruned = await _prune(service.access, found, options)
    failed = [{"run_id": run_id, "cause": cause} for run_id, cause in pruned.failed]
    removed = [asdict(one) for one in pruned.removed]
    document = {"dry_run": options.dry_run, "bytes": pruned.bytes, "removed": removed, "failed": failed}
    would = "would delete" if options.dry_run else "deleted"
    lines = [f"{would} {one.what} of {one.run_id}, {_size(one.bytes)}" for one in pruned.removed]
    lines.append(f"{would} {_size(pruned.bytes)} in total")
    print_either(lines, json.dumps(document), as_json=options.json)
    if not options.json:
        print_error("\n".join(f"{run_id}: {cause}" for run_id, cause in pruned.failed))
    return EXIT_FAILED if pruned.failed else EXIT_OK


@in_thread
def _prune(access: RunAccess, run_ids: Sequence[str], options: argparse.Namespace) -> Pruned:
    if run_ids:
        rows = [access.get_watch(run_id).row() for run_id in run_ids]
        return prune_named(access.engine, rows, dry_run=options.dry_run)
    access.engine.home.ensure()
    older_than = None if options.older_than is None else options.older_than * DAY
    return prune(access.whole_engine, dry_run=options.dry_run, older_than=older_than)


def _size(size: float) -> str:
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"
