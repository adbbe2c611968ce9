"""Servers of this machine under names that only the test knows, for commands that may reach some of them."""

import datetime as dt
import http.server
import socket
import ssl
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

NAMES = ("secure.test", "plain.test", "refuses.test", "secret.test")


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> None:
    """`NAMES` lead to this machine, for this process alone; inside a sandbox nothing resolves them."""
    real = socket.getaddrinfo

    def resolved(host: Any, *rest: Any, **options: Any) -> Any:
        return real("127.0.0.1" if host in NAMES else host, *rest, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolved)


class _Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        said = f"{self.server.said} at {self.path}".encode()  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name there
        pass


@contextmanager
def answering(said: str, certificate: Path | None = None) -> Generator[int]:
    """The port of a server that answers every request with this text, with a certificate over TLS."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Answers) as server:
        server.said = said  # type: ignore[attr-defined]
        if certificate is not None:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def free_port() -> int:
    """A port on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as made:
        return int(made.getsockname()[1])


def certificate_of(path: Path, name: str) -> Path:
    """A file with a certificate for this name, signed by itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    form = serialization.Encoding.PEM
    private = key.private_bytes(form, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.write_bytes(private + made.public_bytes(form))
    return path
