"""`massgen-mcp stats`: what all runs that have ended come to, as text, as JSON or as a page."""

import argparse
import os
import webbrowser
from pathlib import Path

import anyio.to_thread

from massgen_mcp.cli.exits import EXIT_OK
from massgen_mcp.cli.output import print_error, print_line
from massgen_mcp.cli.run_service import run_service
from massgen_mcp.errors import storage_error
from massgen_mcp.home import find_home
from massgen_mcp.request.output_file import OutputFile
from massgen_mcp.runs.directory import replace_file
from massgen_mcp.server.results.reply import as_json
from massgen_mcp.statistics.sums import Statistics
from massgen_mcp.statistics.text import statistics_lines
from massgen_mcp.statistics.wanted import Wanted


async def run(options: argparse.Namespace) -> int:
    target = _target(options)
    wanted = Wanted(options.since, options.config, options.team, options.model)
    with run_service() as service:
        statistics = await service.statistics(wanted)
    if target is not None:
        await anyio.to_thread.run_sync(_write, target, statistics)
    if options.json:
        print_line(as_json(statistics.model_dump(mode="json")))
    elif target is not None:
        print_line(str(target))
    else:
        for line in statistics_lines(statistics):
            print_line(line)
    if options.open and target is not None and not await anyio.to_thread.run_sync(webbrowser.open, target.as_uri()):
        print_error("no browser could be started")
    return EXIT_OK


def _target(options: argparse.Namespace) -> Path | None:
    """Where the page is to be written; None: nowhere."""
    if options.html is None and not options.open:
        return None
    if options.html in (None, Path()):
        return find_home(os.environ).path / "stats.html"
    target: Path = options.html.absolute()
    OutputFile(target, "--html").check()
    return target


def _write(target: Path, statistics: Statistics) -> None:
    from massgen_mcp.page.statistics import statistics_page  # only who wants a page needs it

    try:
        replace_file(target, statistics_page(statistics))
    except OSError as error:
        raise storage_error(f"cannot write {target}", error) from error
