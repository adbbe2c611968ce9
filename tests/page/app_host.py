"""A host of MCP Apps to try the run's page in: the official bridge in a page of ours, and the SDK's client behind it.

The page of the host asks a small HTTP server here for everything; the App itself is shown as hosts do by default, in a
sandbox without an origin, under a policy that allows inline script and style and no network.
"""

import json
import mimetypes
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client
from mcp.client.extension import advertise
from mcp.types import CallToolResult, TextResourceContents

from tests.harness import Mode, TempHome
from tests.needs import npm_tool

SHOWS_APPS = advertise("io.modelcontextprotocol/ui", {"mimeTypes": ["text/html;profile=mcp-app"]})
URI = "ui://massgen/run.html"
POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "media-src 'self' data:; connect-src 'none'"
)
"""What a host allows where the App declares nothing."""
IMPORTS = {
    "@modelcontextprotocol/ext-apps/app-bridge": "@modelcontextprotocol/ext-apps/dist/src/app-bridge.js",
    "@modelcontextprotocol/client": "@modelcontextprotocol/client/dist/index.mjs",
    "@modelcontextprotocol/client/_shims": "@modelcontextprotocol/client/dist/shimsBrowser.mjs",
    "@modelcontextprotocol/core": "@modelcontextprotocol/core/dist/index.mjs",
    "@modelcontextprotocol/core/internal": "@modelcontextprotocol/core/dist/internal.mjs",
    "zod/v4": "zod/v4/index.js",
    "pkce-challenge": "pkce-challenge/dist/index.browser.js",
    "eventsource": "eventsource/dist/index.js",
    "eventsource-parser": "eventsource-parser/dist/index.js",
    "eventsource-parser/stream": "eventsource-parser/dist/stream.js",
}
"""Where the bridge and what it needs lie in node_modules."""
BRIDGE = IMPORTS["@modelcontextprotocol/ext-apps/app-bridge"]


@dataclass(frozen=True)
class Host:
    url: str
    portal: BlockingPortal
    client: Client

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The whole result of a call that the host's model makes, as it goes over the wire."""
        return _sent(self.portal.call(self.client.call_tool, tool, arguments))


def _sent(result: CallToolResult) -> dict[str, Any]:
    return result.model_dump(mode="json", by_alias=True, exclude_none=True)


@contextmanager
def app_host(home: TempHome, mode: Mode = "auto") -> Generator[Host]:
    """The host on a server process of its own; the client declares that it shows Apps."""
    npm_tool(BRIDGE)
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(home.client(mode, extensions=[SHOWS_APPS])) as client,
    ):
        (page,) = portal.call(client.read_resource, URI).contents
        assert isinstance(page, TextResourceContents)
        server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(portal, client, page.text))
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield Host(f"http://127.0.0.1:{server.server_address[1]}/", portal, client)
        finally:
            server.shutdown()
            thread.join()
            server.server_close()


def _handler(portal: BlockingPortal, client: Client, app: str) -> type[BaseHTTPRequestHandler]:
    imports = json.dumps({"imports": {name: f"/node_modules/{file}" for name, file in IMPORTS.items()}})
    host = (Path(__file__).parent / "app_host.html").read_text("utf-8").replace("@imports@", imports)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if self.path == "/":
                self._answer(host.encode(), "text/html")
            elif self.path == "/view":
                self._answer(app.encode(), "text/html", ("Content-Security-Policy", POLICY))
            else:
                file = Path(npm_tool(self.path.removeprefix("/node_modules/")))
                kind = "text/javascript" if file.suffix == ".mjs" else mimetypes.guess_type(file)[0]
                self._answer(file.read_bytes(), kind or "text/plain")

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            result = portal.call(client.call_tool, asked["name"], asked.get("arguments", {}))
            self._answer(json.dumps(_sent(result)).encode(), "application/json")

        def _answer(self, body: bytes, kind: str, *headers: tuple[str, str]) -> None:
            self.send_response(200)
            for name, value in (
                ("Content-Type", f"{kind}; charset=utf-8"),
                ("Content-Length", str(len(body))),
                *headers,
            ):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as in the library
            """Nothing: standard error is for what goes wrong."""

    return Handler
