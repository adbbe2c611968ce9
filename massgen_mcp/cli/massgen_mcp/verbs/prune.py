"""`massgen prune`: delete what is older than the limits, or the named runs, or say what that would be."""

import argparse
import json
from dataclasses import asdict

from massgen_mcp.cli.exits import EXIT_FAILED, EXIT_OK
from massgen_mcp.cli.output import print_error, print_line
from massgen_mcp.cli.run_service import run_service

DAY = 24 * 3600.0


async def run(options: argparse.Namespace) -> int:
    older_than = None if options.older_than is None else options.older_than * DAY
    with run_service() as service:
        if options.run_ids:
            found = [await service.watcher.find_run_id(run_id, to_change=True) for run_id in options.run_ids]
            pruned = await service.upkeep.prune_named(found, dry_run=options.dry_run)
        else:
            pruned = await service.upkeep.prune(dry_run=options.dry_run, older_than=older_than)
    if options.json:
        failed = [{"run_id": run_id, "cause": cause} for run_id, cause in pruned.failed]
        removed = [asdict(one) for one in pruned.removed]
        document = {"dry_run": options.dry_run, "bytes": pruned.bytes, "removed": removed, "failed": failed}
        print_line(json.dumps(document))
    else:
        would = "would delete" if options.dry_run else "deleted"
        for one in pruned.removed:
            print_line(f"{would} {one.what} of {one.run_id}, {_size(one.bytes)}")
        print_line(f"{would} {_size(pruned.bytes)} in all")
        for run_id, cause in pruned.failed:
            print_error(f"{run_id}: {cause}")
    return EXIT_FAILED if pruned.failed else EXIT_OK


def _size(size: float) -> str:
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"
