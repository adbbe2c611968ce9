"""The pages on a port of this machine: for people who have the address with its token, and for no others.

The token is made anew for each process. It stands in the fragment of the address, which browsers send to nobody, and
the page shows it with every request in a header. There is no cookie, because browsers give those of one port to every
other port of this machine, too. So no other page can make a browser ask for anything in this one's name.
"""

import os
import secrets
import webbrowser
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path

from starlette.types import ASGIApp

from massgen_mcp.home import Home
from massgen_mcp.redaction import Redactor
from massgen_mcp.server.build import BuiltServer
from massgen_mcp.server.http.connections import LimitedConfig, Strangers
from massgen_mcp.server.http.gate import Admission, Gate
from massgen_mcp.server.http.serving import LOOPBACK, HttpServer, HttpSettings, bound, names
from massgen_mcp.server.http.tokens import Tokens
from massgen_mcp.threads import in_thread
from massgen_mcp.web.app import API, api, is_asked, pages

OPENER = "web-address.html"


async def serve_web(
    built: BuiltServer, redactor: Redactor, home: Home, port: int, on_ready: Callable[[str], Awaitable[None]]
) -> None:
    """Serve until a signal, on which the process ends here. No reply holds a key that `redactor` knows. `on_ready` is
    told the address. Raises `MassgenError` invalid_arguments for a port that is taken.
    """

    def leaving() -> None:
        built.stop_waiting()
        with suppress(OSError):
            (home.path / OPENER).unlink()

    token = secrets.token_urlsafe(32)
    with bound(LOOPBACK, port) as listener:
        shown, hosts = names(LOOPBACK, listener.getsockname()[1], HttpSettings())
        hosts = hosts[:1]  # `localhost` may lead to somebody else, who listens on this port of ::1
        strangers = Strangers()
        async with api(built, redactor) as app:
            server = HttpServer(
                LimitedConfig(web_gate(app, token, hosts, strangers), strangers),
                on_ready=lambda: on_ready(f"http://{shown}/#token={token}"),
                on_leaving=leaving,
            )
            await server.serve_until_signal(listener)


def web_gate(app: ASGIApp, token: str, hosts: Sequence[str], strangers: Strangers) -> Gate:
    """The pages for everybody who names one of these hosts, and `app` below them for who shows the token."""
    tokens = Tokens(token.encode(), None, f"http://{hosts[0]}{API}")
    admission = Admission(tokens, hosts, [f"http://{host}" for host in hosts], strangers)
    return Gate(app, admission, guards=is_asked, public=pages())


@in_thread
def open_browser(home: Home, address: str) -> bool:
    """Show the page. The address goes through a file of this user alone, because everybody on the machine sees the
    command line of a browser; it is deleted when the server ends. False: no browser could be started.
    """
    file = home.path / OPENER
    html = f'<!doctype html><title>massgen</title><meta http-equiv="refresh" content="0;url={address}">'
    file.unlink(missing_ok=True)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as written:
        written.write(html)
    return webbrowser.open(Path(file).as_uri())
