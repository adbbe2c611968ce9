"""Proxies, firewalls and an encrypted model server of this machine, for tests of what stands between us and a model."""

import http.server
import json
import select
import socket
import ssl
import threading
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

FAR = "models.example.org"
"""A host that is not on this machine: only a proxy reaches it."""
ANSWER = "Paris is the capital."


@dataclass
class Double:
    """A server of this machine. `requests` are those that it got: method and target, with what authorized them."""

    port: int
    requests: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def asked(self) -> int:
        """Calls of a model."""
        return sum(method == "POST" for method, _, _ in self.requests)


class _Handler(http.server.BaseHTTPRequestHandler):
    double: Double

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        pass

    def _answer(self, status: int, kind: str, body: str, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body.encode())), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body.encode())

    def _read(self) -> Any:
        length = int(self.headers.get("content-length") or 0)
        said = self.headers.get("proxy-authorization") or self.headers.get("authorization") or ""
        self.double.requests.append((self.command, self.path, said))
        return json.loads(self.rfile.read(length)) if length else {}


class _Model(_Handler):
    """Chat Completions, also as a plain proxy that answers for the server behind it."""

    def do_GET(self) -> None:
        self._read()
        self._answer(200, "application/json", json.dumps({"object": "list", "data": [{"id": "m", "object": "model"}]}))

    def do_POST(self) -> None:
        offered: list[dict[str, Any]] = self._read().get("tools") or []
        tools = [tool["function"]["name"] for tool in offered]
        delta: dict[str, Any] = {"content": ANSWER}
        if "new_answer" in tools:
            call = {"name": "new_answer", "arguments": json.dumps({"content": ANSWER})}
            delta = {"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": call}]}
        end = "tool_calls" if "tool_calls" in delta else "stop"
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        chunks = [_chunk(delta, None), {**_chunk({}, end), "usage": usage}]
        body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks)
        self._answer(200, "text/event-stream", f"{body}data: [DONE]\n\n")


def _chunk(delta: dict[str, Any], end: str | None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": end}
    return {"id": "x", "object": "chat.completion.chunk", "model": "m", "choices": [choice]}


@contextmanager
def model(certificate: Path | None = None) -> Generator[Double]:
    """A model server, encrypted where it has a certificate; a proxy, too, for addresses that are not encrypted."""
    with _serving(_Model, certificate) as double:
        yield double


@contextmanager
def page(status: int, **headers: str) -> Generator[Double]:
    """A proxy, or a firewall, that answers every request with this status and a web page."""

    class Page(_Handler):
        def _refuse(self) -> None:
            self._read()
            self._answer(status, "text/html", "<html><body>Not allowed here</body></html>", **headers)

        do_GET = do_POST = do_CONNECT = _refuse  # noqa: N815 - the base class's names

    with _serving(Page) as double:
        yield double


@contextmanager
def tunnel(port: int, login: str | None = None) -> Generator[Double]:
    """A proxy that carries encrypted connections, to whichever host, to this port; `login` is what it wants for it."""

    class Tunnel(_Handler):
        def do_CONNECT(self) -> None:
            self._read()
            if login is not None and self.headers.get("proxy-authorization") != login:
                self._answer(407, "text/html", "<html>Log in</html>", Proxy_Authenticate='Basic realm="office"')
                return
            self.send_response(200)
            self.end_headers()
            with socket.create_connection(("127.0.0.1", port)) as far:
                _relay(self.connection, far)

    with _serving(Tunnel) as double:
        yield double


def _relay(one: socket.socket, other: socket.socket) -> None:
    ends = {one: other, other: one}
    while True:
        readable, _, _ = select.select(list(ends), [], [], 20)
        for end in readable:
            if not (data := end.recv(65536)):
                return
            ends[end].sendall(data)
        if not readable:
            return


@contextmanager
def nobody() -> Generator[int]:
    """A port where nothing listens, kept as long as this lasts."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


@contextmanager
def _serving(handler: type[_Handler], certificate: Path | None = None) -> Generator[Double]:
    with ExitStack() as stack:
        server = stack.enter_context(http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler))
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        double = Double(server.server_address[1])
        server.RequestHandlerClass = type("Handler", (handler,), {"double": double})
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        stack.callback(server.shutdown)
        yield double


def write_certificates(directory: Path) -> tuple[Path, Path]:
    """Write an authority's certificate, and the certificate with the key of the far host; returns both files."""
    authority_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Office inspection")])
    is_authority = x509.BasicConstraints(ca=True, path_length=None)
    root = _certificate(authority, authority, authority_key.public_key(), is_authority).sign(
        authority_key, hashes.SHA256()
    )
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, FAR)])
    names = x509.SubjectAlternativeName([x509.DNSName(FAR)])
    own = _certificate(subject, authority, key.public_key(), names).sign(authority_key, hashes.SHA256())
    trusted, served = directory / "office.pem", directory / "server.pem"
    trusted.write_bytes(root.public_bytes(serialization.Encoding.PEM))
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    served.write_bytes(own.public_bytes(serialization.Encoding.PEM) + private)
    return trusted, served


def _certificate(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, extension: x509.ExtensionType
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(subject_name=subject, issuer_name=issuer, public_key=key)
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=2))
    return builder.add_extension(extension, critical=True)
