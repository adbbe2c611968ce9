"""Pages, and the figures of one. `massgen result --page`: the page of a run, drawn from its record as it
is now. `massgen stats`: what all runs that have ended come to, as text, as JSON or as a page.
"""

import argparse
import os
import webbrowser
from collections.abc import Callable
from functools import partial
from pathlib import Path

import anyio.to_thread

from massgen_mcp.cli.exits import EXIT_OK
from massgen_mcp.cli.named_runs import find_run_to_read
from massgen_mcp.cli.output import print_either, print_error
from massgen_mcp.cli.run_service import run_service
from massgen_mcp.errors import storage_error
from massgen_mcp.home import find_home
from massgen_mcp.page.document import report, statistics_page
from massgen_mcp.request.output_file import OutputFile
from massgen_mcp.runs.engine.files import replace_file
from massgen_mcp.server.results.reply import as_json
from massgen_mcp.statistics.sums import StatisticsFilter
from massgen_mcp.statistics.words import statistics_lines


async def write_report(options: argparse.Namespace) -> int:
    output = None if options.output is None else OutputFile(options.output.absolute(), "--output")
    if output is not None:
        output.check()
    with run_service() as service:
        view = await service.watcher.get_run(await find_run_to_read(service, options.run_id))
        if view.damage is not None and not view.directory.path.exists():
            raise view.damage
        html = report(await service.pages.draw(view, redacted=options.redact))
    own = view.directory.report
    place = own.with_stem(f"{own.stem}-redacted") if options.redact else own
    target, write = (output.path, output.write) if output else (place, partial(replace_file, place))
    await _write(target, partial(write, html))
    document = {"run_id": view.row.run_id, "report": str(target), "bytes": len(html)}
    print_either([str(target)], as_json(document), as_json=options.json)
    return await _open(options, target)


async def _open(options: argparse.Namespace, page: Path | None) -> int:
    if options.open and page is not None and not await anyio.to_thread.run_sync(webbrowser.open, page.as_uri()):
        print_error("cannot start a browser")
    return EXIT_OK


async def show_statistics(options: argparse.Namespace) -> int:
    output = _statistics_file(options)
    with run_service() as service:
        statistics = await service.outcomes.sum_up(
            StatisticsFilter(options.since, options.config, options.team, options.model, options.kind)
        )
    if output is not None:
        await _write(output.path, lambda: output.write(statistics_page(statistics)))
    lines = statistics_lines(statistics) if output is None else [str(output.path)]
    print_either(lines, as_json(statistics.model_dump(mode="json")), as_json=options.json)
    return await _open(options, output.path if output else None)


def _statistics_file(options: argparse.Namespace) -> OutputFile | None:
    """Where the page is to be written; None: nowhere."""
    if options.html is None and not options.open:
        return None
    if options.html in (None, Path()):
        return OutputFile(find_home(os.environ).path / "stats.html", "--open")
    output = OutputFile(options.html.absolute(), "--output")
    output.check()
    return output


async def _write(target: Path, write: Callable[[], object]) -> None:
    try:
        await anyio.to_thread.run_sync(write)
    except OSError as error:
        raise storage_error(f"cannot write {target}", error) from error
