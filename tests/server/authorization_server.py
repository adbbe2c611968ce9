"""An OAuth 2 authorization server on loopback, as far as a resource server asks it: metadata, keys, introspection; and
where browsers sign in (OpenID Connect): a page on which one chooses who one is, codes, ID tokens.
"""

import base64
import json
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey, generate_private_key
from jwt.algorithms import ECAlgorithm

CLIENT = ("massgen", "its-secret")
SECRET = b"a secret that is published with the keys by mistake"


class AuthorizationServer:
    """`opaque`: tokens that are no JWTs, with what introspection says of them. `asked` counts requests by path. `name`:
    by which it is called. `clients`: who may have people sign in, with the secret, empty for a public one, and the one
    address to which they are sent back. `writes` makes an ID token of its claims; `grants`: the scope that it says to
    have granted, None for that which was asked for.
    """

    def __init__(self) -> None:
        self.name = "127.0.0.1"
        self.clients: dict[str, tuple[str, str]] = {}
        self.codes: dict[str, dict[str, str]] = {}
        self.writes: Callable[[dict[str, Any]], str] = self.signed
        self.grants: str | None = None
        self.opaque: dict[str, dict[str, Any]] = {}
        self.asked: Counter[str] = Counter()
        self.refuses = False
        self._keys: dict[str, EllipticCurvePrivateKey] = {}
        self.new_key("first")
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path.startswith("/authorize?"):
                    return self._page(outer.wrong_with(dict(parse_qsl(urlsplit(self.path).query))))
                return self._reply(outer.document(self.path))

            def do_POST(self) -> None:
                form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
                if self.path.startswith("/authorize?"):
                    asked = dict(parse_qsl(urlsplit(self.path).query))
                    self.send_response(400 if outer.wrong_with(asked) else 302)
                    self.send_header("Location", outer.decided(asked, form["who"][0]))
                    self.send_header("Content-Length", "0")
                    return self.end_headers()
                if self.path == "/token":
                    outer.asked[self.path] += 1
                    given = {name: values[0] for name, values in form.items()}
                    return self._reply(*outer.redeemed(given, self.headers["Authorization"]))
                known = f"Basic {base64.b64encode(':'.join(CLIENT).encode()).decode()}"
                outer.asked[self.path] += 1
                right = self.headers["Authorization"] == known
                return self._reply(outer.opaque.get(form["token"][0], {"active": False}) if right else None)

            def _page(self, wrong: str) -> None:
                named = ("ann", "bob", "eve", "nobody")
                who = "".join(f"<button name=who value={name}>{name}</button>" for name in named)
                body = (wrong or f"<!doctype html><title>Sign in</title><form method=post>{who}</form>").encode()
                self.send_response(400 if wrong else 200)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def _reply(self, document: dict[str, Any] | None, status: int = 200) -> None:
                body = json.dumps(document or {}).encode()
                self.send_response(503 if outer.refuses or document is None else status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
                """Nobody reads it."""

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://{self.name}:{self.http.server_port}"

    def document(self, path: str) -> dict[str, Any] | None:
        self.asked[path] += 1
        match path:
            case "/.well-known/oauth-authorization-server":
                return {
                    "issuer": self.url,
                    "jwks_uri": f"{self.url}/keys",
                    "authorization_endpoint": f"{self.url}/authorize",
                    "token_endpoint": f"{self.url}/token",
                }
            case "/keys":
                published = {kid: json.loads(ECAlgorithm.to_jwk(key.public_key())) for kid, key in self._keys.items()}
                secret = {"kty": "oct", "k": base64.urlsafe_b64encode(SECRET).decode().rstrip("="), "kid": "secret"}
                return {"keys": [*({**key, "kid": kid} for kid, key in published.items()), secret]}
            case _:
                return None

    def wrong_with(self, asked: dict[str, str]) -> str:
        """Why nobody may sign in so, as the page says it."""
        known = self.clients.get(asked.get("client_id", ""))
        if known is None or known[1] != asked.get("redirect_uri"):
            return "unknown client or address"
        right = asked.get("response_type") == "code" and "openid" in asked.get("scope", "").split()
        proof = asked.get("code_challenge_method") == "S256" and len(asked.get("code_challenge", "")) == 43
        return "" if right and proof and asked.get("state") and asked.get("nonce") else "invalid request"

    def decided(self, asked: dict[str, str], who: str) -> str:
        """Where the browser goes of somebody who has chosen who he is."""
        said = {"state": asked["state"], "iss": self.url}
        if who == "nobody":
            said["error"] = "access_denied"
        else:
            said["code"] = secrets.token_urlsafe(16)
            self.codes[said["code"]] = {**asked, "who": who}
        return f"{asked['redirect_uri']}?{urlencode(said)}"

    def redeemed(self, form: dict[str, str], authorization: str | None) -> tuple[dict[str, Any] | None, int]:
        """What there is for a code, once, and the status."""
        asked = self.codes.pop(form.get("code", ""), {})
        client, secret = form.get("client_id", ""), self.clients[asked["client_id"]][0] if asked else ""
        proof = f"Basic {base64.b64encode(f'{client}:{secret}'.encode()).decode()}" if secret else None
        verified = base64.urlsafe_b64encode(sha256(form["code_verifier"].encode()).digest()).decode().rstrip("=")
        same = all(asked.get(name) == form.get(name) for name in ("client_id", "redirect_uri"))
        if not asked or not same or asked["code_challenge"] != verified or form["grant_type"] != "authorization_code":
            return {"error": "invalid_grant"}, 400
        if authorization != proof:
            return {"error": "invalid_client"}, 401
        now = time.time()
        claims = {"iss": self.url, "aud": client, "sub": asked["who"], "iat": int(now), "exp": int(now) + 300}
        token, scope = self.writes({**claims, "nonce": asked["nonce"]}), self.grants or asked["scope"]
        return {"id_token": token, "access_token": "opaque", "token_type": "Bearer", "scope": scope}, 200

    def signed(self, claims: dict[str, Any]) -> str:
        return jwt.encode(claims, self._keys["first"], algorithm="ES256", headers={"kid": "first"})

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
