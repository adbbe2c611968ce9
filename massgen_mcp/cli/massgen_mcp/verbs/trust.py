"""`massgen validate`: one look at a config: what is wrong with it, its team, what it asks for, and the person's yes."""

import argparse
import json
import os
import shlex
from contextlib import suppress
from pathlib import Path

from massgen_mcp.cli.asking import confirm, on_terminal
from massgen_mcp.cli.exits import EXIT_FAILED, EXIT_OK
from massgen_mcp.cli.output import print_either, print_error, print_line, print_lines
from massgen_mcp.config.access.acceptances import acceptance_of, acceptances, forget
from massgen_mcp.config.loader import (
    EXAMPLE_PREFIX,
    check_credentials,
    config_path,
    config_places,
    is_config,
    is_team,
    load_notify,
    load_parsed,
    missing_keys,
)
from massgen_mcp.errors import MassgenError
from massgen_mcp.name_lists import join_names
from massgen_mcp.request.harm import outside
from massgen_mcp.request.runnable import hindrances, require_apart
from massgen_mcp.request.trust import ConfigFile, new_since, project_of, read_file, remember


async def validate_config(options: argparse.Namespace) -> int:
    """Returns the exit code. Raises `MassgenError` with every problem of the config and its line."""
    if options.list:
        return _list(as_json=options.json)
    if options.forget is not None:
        return _forget(options.forget, as_json=options.json)
    source = _source(options.path)
    if options.trust:
        return _accept(source, as_json=options.json)
    code = _say_valid(source, as_json=options.json)
    if options.tries and not options.json:
        from massgen_mcp.cli.massgen_mcp.verbs.doctor import describe_check, try_config_checks

        for check in await try_config_checks(source, Path.cwd()):
            print_lines(describe_check(check))
            code = EXIT_FAILED if check.level == "fail" else code
    return code


def _accept(source: str, *, as_json: bool) -> int:
    file = _read_asking(source)
    digest = file.digest()
    if not as_json:
        _show(file, digest)
        if on_terminal() and not confirm("Accept", default=False):
            print_line("Nothing was accepted.")
            return EXIT_FAILED
    accepted = remember(file, digest, os.environ)
    now = f"Accepted in its current version: {accepted.digest}"
    print_either([now], accepted.model_dump_json(), as_json=as_json)
    return EXIT_OK


def _say_valid(source: str, *, as_json: bool) -> int:
    """Say that the config can be run, and what a person should know of it."""
    if is_config(path := config_path(source)) and not is_team(path):
        notify = shlex.join(load_notify(path, os.environ))
        document = json.dumps({"config": source, "agents": {}, "notify": notify})
        print_either([f"OK: {source}: it sets notify ({notify}) but defines no team"], document, as_json=as_json)
        return EXIT_OK
    parsed = load_parsed(source, environ=os.environ)
    config = parsed.config
    check_credentials(config, os.environ)
    require_apart(config)
    agents = {agent.id: agent.models for agent in config.agents}
    notes = [*filter(None, [parsed.note]), *hindrances(config, os.environ)]
    missing = missing_keys(config, os.environ)
    file = _read_asking(source)
    known = acceptance_of(file.path, os.environ)
    is_accepted = known is not None and known.digest == file.digest()
    asks = () if source.startswith(EXAMPLE_PREFIX) else file.reach.lines()
    document = {"config": source, "agents": agents, "notes": notes, "missing_keys": missing}
    document |= {"asks_for": asks, "accepted": is_accepted}
    lines = [f"OK: {source}: {', '.join(f'{name} ({models})' for name, models in agents.items())}"]
    lines += [f"Note: {note}" for note in notes]
    if missing:
        lines.append(f"Not set here: {', '.join(missing)}")
    lines += [f"Asks for: {line}" for line in asks]
    if asks:
        once = f"no; accept this version with `massgen validate {shlex.quote(source)} --trust`"
        lines.append(f"Accepted: {'yes, in its current version' if is_accepted else once}")
    print_either(lines, json.dumps(document), as_json=as_json)
    return EXIT_OK


def _read_asking(source: str) -> ConfigFile:
    return read_file(source, os.environ, project_of(config_path(source), Path.cwd()))


def _source(path: str | None) -> str:
    """The config that a file, a directory or `@examples/NAME` means; of nothing the one that is used here."""
    if path is None:
        used = next((place for place in config_places(Path.cwd(), os.environ) if is_config(place)), None)
        if used is None:
            places = join_names(map(str, config_places(Path.cwd(), os.environ)), "or")
            message = f"no config found at {places}, so massgen uses the default team"
            raise MassgenError("config_not_found", f"{message}; create one with `massgen init`")
        return str(used)
    with suppress(OSError):  # no name of a file is so long
        if not path.startswith(EXAMPLE_PREFIX) and Path(path).is_dir():
            return str(config_places(Path(path).absolute(), os.environ)[0])
    return path


def _show(file: ConfigFile, digest: str) -> None:
    known = acceptance_of(file.path, os.environ)
    print_line(f"{file.path} asks for:")
    print_lines(f"  {line}" for line in file.reach.lines())
    print_lines(new_since(file, known) if known and known.digest != digest else ())
    if paths := outside(file.reach, file.project):
        listed = ", ".join(map(str, paths))
        print_line(f"Not within {file.project}: {listed}. massgen uses this config only if you name it with --config.")


def _list(*, as_json: bool) -> int:
    found = acceptances(os.environ)
    lines: list[str] = []
    for one in found:
        lines.append(f"{one.path}  {one.digest}")
        lines += [f"  key: {pair.key} to {pair.host}" for pair in one.pairs]
    document = {"accepted": [one.model_dump(mode="json") for one in found]}
    print_either(lines, json.dumps(document), as_json=as_json)
    return EXIT_OK


def _forget(path: str, *, as_json: bool) -> int:
    file = config_path(_source(path)).resolve()
    forgotten = forget(file, os.environ)
    if as_json:
        print_line(json.dumps({"path": str(file), "forgotten": forgotten}))
    elif forgotten:
        print_line(f"Forgotten: {file}")
    else:
        print_error(f"{file} was not accepted")
    return EXIT_OK if forgotten else EXIT_FAILED
