"""`massgen-mcp trust PATH`: what a config asks for, and the person's yes to it."""

import argparse
import json
import os
from pathlib import Path

from massgen_mcp.cli.asking import confirm, on_terminal
from massgen_mcp.cli.exits import EXIT_FAILED, EXIT_OK
from massgen_mcp.cli.output import print_error, print_line
from massgen_mcp.config.access.acceptances import acceptance_of, acceptances, forget
from massgen_mcp.config.loader import EXAMPLE_PREFIX, config_path, config_places
from massgen_mcp.request.harm import outside
from massgen_mcp.request.trust import ConfigFile, new_since, project_of, read_file, remember


async def run(options: argparse.Namespace) -> int:
    if options.list:
        return _list(as_json=options.json)
    if options.forget is not None:
        return _forget(options.forget, as_json=options.json)
    source = _source(options.path)
    file = read_file(source, os.environ, project_of(config_path(source), Path.cwd()))
    digest = file.digest()
    if not options.json:
        _show(file, digest)
        if on_terminal() and not confirm("Accept", default=False):
            print_line("Nothing was accepted.")
            return EXIT_FAILED
    accepted = remember(file, digest, os.environ)
    print_line(accepted.model_dump_json() if options.json else f"Accepted as it is now: {accepted.digest}")
    return EXIT_OK


def _source(path: str) -> str:
    """The config that a file, a directory or `@examples/NAME` means."""
    if path.startswith(EXAMPLE_PREFIX) or not Path(path).is_dir():
        return path
    return str(config_places(Path(path).absolute(), os.environ)[0])


def _show(file: ConfigFile, digest: str) -> None:
    known = acceptance_of(file.path, os.environ)
    print_line(f"{file.path} asks for:")
    for line in file.reach.lines():
        print_line(f"  {line}")
    for line in new_since(file, known) if known and known.digest != digest else ():
        print_line(line)
    if paths := outside(file.reach, file.project):
        listed = ", ".join(map(str, paths))
        print_line(f"Not within {file.project}: {listed}. So it only runs where it is named, with --config.")


def _list(*, as_json: bool) -> int:
    found = acceptances(os.environ)
    if as_json:
        print_line(json.dumps({"accepted": [one.model_dump(mode="json") for one in found]}))
        return EXIT_OK
    for one in found:
        print_line(f"{one.path}  {one.digest}")
        for pair in one.pairs:
            print_line(f"  key: {pair.key} to {pair.host}")
    return EXIT_OK


def _forget(path: str, *, as_json: bool) -> int:
    file = config_path(_source(path)).resolve()
    forgotten = forget(file, os.environ)
    if as_json:
        print_line(json.dumps({"path": str(file), "forgotten": forgotten}))
    elif forgotten:
        print_line(f"Forgotten: {file}")
    else:
        print_error(f"{file} was not accepted before")
    return EXIT_OK if forgotten else EXIT_FAILED
