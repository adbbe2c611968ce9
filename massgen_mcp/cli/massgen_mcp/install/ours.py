"""How a client has to start this very installation, and which variables of this environment it has to pass on."""

import shutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from massgen_mcp.cli.massgen_mcp.install.clients import SERVER, ServerCommand
from massgen_mcp.config.access.prices import PRICE_AS_VARIABLE
from massgen_mcp.config.environment import is_set
from massgen_mcp.config.own_clis import OWN_LOGINS_VARIABLE
from massgen_mcp.config.providers.catalog import credential_variables
from massgen_mcp.home import HOME_VARIABLE


def own_command(environ: Mapping[str, str], more: Iterable[str], *, shared: bool = False) -> ServerCommand:
    """`more`: names of variables that are passed on although nothing is in them here. `shared`: by name, if that is
    this installation, for a file that people on other machines use.
    """
    known = (*credential_variables(), PRICE_AS_VARIABLE, OWN_LOGINS_VARIABLE, HOME_VARIABLE)
    names = dict.fromkeys([*(name for name in known if is_set(environ, name)), *more])
    started = shutil.which(sys.argv[0], path=environ.get("PATH"))
    beside = Path(sys.executable).with_name(SERVER)
    named = shutil.which(SERVER, path=environ.get("PATH"))
    if shared and named and Path(named).resolve() in (Path(started or beside).resolve(), beside.resolve()):
        return ServerCommand(SERVER, (), tuple(names))
    if started and Path(started).name == SERVER:
        return ServerCommand(str(Path(started).absolute()), (), tuple(names))
    if beside.is_file():
        return ServerCommand(str(beside), (), tuple(names))
    return ServerCommand(sys.executable, ("-m", "massgen_mcp.cli.massgen_mcp.main"), tuple(names))
