"""`massgen-mcp report ID`: the page of a run as one file, drawn from its record as it is now."""

import argparse
import webbrowser
from pathlib import Path

import anyio.to_thread

from massgen_mcp.cli.exits import EXIT_OK
from massgen_mcp.cli.output import print_error, print_line
from massgen_mcp.cli.run_service import run_service
from massgen_mcp.errors import storage_error
from massgen_mcp.page.document import report
from massgen_mcp.request.output_file import OutputFile
from massgen_mcp.runs.store.directory import replace_file
from massgen_mcp.runs.view.run_view import RunView
from massgen_mcp.server.results.reply import as_json


async def run(options: argparse.Namespace) -> int:
    output = None if options.output is None else OutputFile(options.output.absolute(), "--output")
    if output is not None:
        output.check()
    with run_service() as service:
        view = await service.look(await service.find(options.run_id))
        html = report(await service.page(view, redacted=options.redact))
    target = output.path if output else _own_place(view, redacted=options.redact)

    def write() -> None:
        try:
            if output is not None:
                output.write(html)
            else:
                replace_file(target, html)
        except OSError as error:
            raise storage_error(f"cannot write {target}", error) from error

    await anyio.to_thread.run_sync(write)
    print_line(
        as_json({"run_id": view.row.run_id, "report": str(target), "bytes": len(html)}) if options.json else str(target)
    )
    if options.open and not await anyio.to_thread.run_sync(webbrowser.open, target.as_uri()):
        print_error("no browser could be started")
    return EXIT_OK


def _own_place(view: RunView, *, redacted: bool) -> Path:
    report = view.directory.report
    return report.with_stem(f"{report.stem}-redacted") if redacted else report
