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
from massgen_mcp.server.results.reply import as_json
from massgen_mcp.statistics.sums import Statistics, StatisticsFilter
from massgen_mcp.statistics.words import statistics_lines


async def run(options: argparse.Namespace) -> int:
    output = _output(options)
    wanted = StatisticsFilter(options.since, options.config, options.team, options.model)
    with run_service() as service:
        statistics = await service.statistics(wanted)
    if output is not None:
        await anyio.to_thread.run_sync(_write_page, output, statistics)
    if options.json:
        print_line(as_json(statistics.model_dump(mode="json")))
    elif output is not None:
        print_line(str(output.path))
    else:
        for line in statistics_lines(statistics):
            print_line(line)
    if (
        options.open
        and output is not None
        and not await anyio.to_thread.run_sync(webbrowser.open, output.path.as_uri())
    ):
        print_error("no browser could be started")
    return EXIT_OK


def _output(options: argparse.Namespace) -> OutputFile | None:
    """Where the page is to be written; None: nowhere."""
    if options.html is None and not options.open:
        return None
    if options.html in (None, Path()):
        return OutputFile(find_home(os.environ).path / "stats.html", "--open")
    output = OutputFile(options.html.absolute(), "--html")
    output.check()
    return output


def _write_page(output: OutputFile, statistics: Statistics) -> None:
    from massgen_mcp.page.document import statistics_page  # only who wants a page needs it

    try:
        output.write(statistics_page(statistics))
    except OSError as error:
        raise storage_error(f"cannot write {output.path}", error) from error
