"""An OAuth 2 authorization server on loopback, as far as a resource server asks it: metadata, keys, introspection."""

import base64
import json
import threading
import time
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

import jwt
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey, generate_private_key
from jwt.algorithms import ECAlgorithm

CLIENT = ("massgen", "its-secret")
SECRET = b"a secret that is published with the keys by mistake"


class AuthorizationServer:
    """`opaque`: tokens that are no JWTs, with what introspection says of them. `asked` counts requests by path."""

    def __init__(self) -> None:
        self.opaque: dict[str, dict[str, Any]] = {}
        self.asked: Counter[str] = Counter()
        self.refuses = False
        self._keys: dict[str, EllipticCurvePrivateKey] = {}
        self.new_key("first")
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._reply(outer.document(self.path))

            def do_POST(self) -> None:
                form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
                known = f"Basic {base64.b64encode(':'.join(CLIENT).encode()).decode()}"
                outer.asked[self.path] += 1
                right = self.headers["Authorization"] == known
                self._reply(outer.opaque.get(form["token"][0], {"active": False}) if right else None)

            def _reply(self, document: dict[str, Any] | None) -> None:
                body = json.dumps(document or {}).encode()
                self.send_response(503 if outer.refuses or document is None else 200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
                """Nobody reads it."""

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http.server_port}"

    def document(self, path: str) -> dict[str, Any] | None:
        self.asked[path] += 1
        match path:
            case "/.well-known/oauth-authorization-server":
                return {"issuer": self.url, "jwks_uri": f"{self.url}/keys"}
            case "/keys":
                published = {kid: json.loads(ECAlgorithm.to_jwk(key.public_key())) for kid, key in self._keys.items()}
                secret = {"kty": "oct", "k": base64.urlsafe_b64encode(SECRET).decode().rstrip("="), "kid": "secret"}
                return {"keys": [*({**key, "kid": kid} for kid, key in published.items()), secret]}
            case _:
                return None

    def new_key(self, kid: str) -> None:
        self._keys[kid] = generate_private_key(SECP256R1())

    def token(self, resource: str, *, kid: str = "first", signed_by: str = "first", **claims: Any) -> str:
        """A signed token for `resource`, right unless `claims` make it wrong; None leaves one out."""
        said = {"iss": self.url, "aud": resource, "sub": "ann", "exp": time.time() + 600, "scope": "runs", **claims}
        said = {name: value for name, value in said.items() if value is not None}
        return jwt.encode(said, self._keys[signed_by], algorithm="ES256", headers={"kid": kid})


@contextmanager
def authorization_server() -> Generator[AuthorizationServer]:
    server = AuthorizationServer()
    thread = threading.Thread(target=server.http.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.http.shutdown()
        server.http.server_close()
        thread.join()
