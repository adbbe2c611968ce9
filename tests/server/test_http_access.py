"""HTTP for others: addresses beyond this machine, tokens of the operator and of an authorization server, open pages."""

import time
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import jwt
import pytest

from massgen_mcp.certificates import trusted
from tests.commands import run_command
from tests.harness import PATIENCE_SECONDS, SERVER_MODULE, HttpServer, TempHome, http_server
from tests.server.authorization_server import CLIENT, SECRET, AuthorizationServer, authorization_server
from tests.server.test_http import ACCEPT, INITIALIZE

TOKEN = "a-token-of-the-operator-0123456789"
RESOURCE = "https://massgen.example/mcp"
USAGE = 64


@pytest.fixture
def token_file(home: TempHome) -> Path:
    file = home.work / "token"
    file.write_text(f"{TOKEN}\n")
    (home.work / "HOLDS_KEYS").touch()
    return file


@pytest.fixture
def issuer() -> Generator[AuthorizationServer]:
    with authorization_server() as server:
        yield server


@asynccontextmanager
async def knocking() -> AsyncGenerator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(verify=trusted(), trust_env=False, timeout=PATIENCE_SECONDS, headers=ACCEPT) as http:
        yield http


async def knock(server: HttpServer, token: str | None, **headers: str) -> httpx2.Response:
    """An `initialize` with this token."""
    shown = {"Authorization": f"Bearer {token}"} if token is not None else {}
    async with knocking() as http:
        return await http.post(server.url, json=INITIALIZE, headers={**shown, **headers})


async def look(server: HttpServer, path: str, **headers: str) -> httpx2.Response:
    async with knocking() as http:
        return await http.get(f"http://{server.authority}{path}", headers=headers)


def refusal(home: TempHome, *options: str, code: int = 1) -> str:
    """What the server says that does not start."""
    done = run_command(home, SERVER_MODULE, *options)
    assert done.returncode == code, done.stdout
    assert "ERROR invalid_arguments" in done.stderr
    assert done.stdout == ""
    return done.stderr


def oauth(issuer: AuthorizationServer, *more: str) -> Sequence[str]:
    return ("--oauth-issuer", issuer.url, "--oauth-subject", "ann", "--public-url", RESOURCE, *more)


# -- addresses and the operator's token -------------------------------------------------------------------------------


async def test_any_address_is_served_with_a_token_of_the_operator(home: TempHome, token_file: Path) -> None:
    options = ("--host", "0.0.0.0", "--token-file", str(token_file), "--allowed-host", "Massgen.example")  # noqa: S104
    async with http_server(home, *options) as server:
        port = server.authority.rpartition(":")[2]
        assert (await knock(server, TOKEN)).status_code == 200
        assert (await knock(server, None)).status_code == 401
        assert (await knock(server, f"{TOKEN}x")).status_code == 401
        for name in ("massgen.example", "MASSGEN.example", f"massgen.example:{port}"):
            assert (await knock(server, TOKEN, Host=name)).status_code == 200, name
        for name in ("evil.example", "massgen.example.evil", "massgen.example:1", f"0.0.0.0:{port}"):
            assert (await knock(server, TOKEN, Host=name)).status_code == 421, name
        page = {"Host": "massgen.example", "Origin": "https://massgen.example"}
        assert (await knock(server, TOKEN, **page)).status_code == 200
        assert (await knock(server, TOKEN, **{**page, "Origin": "https://evil.example"})).status_code == 403
        log = (home.work / "http.log").read_text()
        assert "TLS" in log
        assert TOKEN not in log
        assert not list(home.path.glob("*http-token*")), "no other token is made"


async def test_the_token_may_come_from_a_variable(home: TempHome) -> None:
    async with http_server(home.with_variables(MASSGEN_MCP_HTTP_TOKEN=TOKEN)) as server:
        assert (await knock(server, TOKEN)).status_code == 200
        assert "bearer token in MASSGEN_MCP_HTTP_TOKEN\n" in (home.work / "http.log").read_text()


def test_a_token_that_is_missing_or_no_token_is_named_without_its_value(home: TempHome, token_file: Path) -> None:
    http = ("--transport", "http")
    assert "no-such-file" in refusal(home, *http, "--token-file", "no-such-file")
    for wrong in ("short", "", "two lines 0123456789\nof it", "naïve-0123456789-0123"):
        token_file.write_text(wrong)
        told = refusal(home, *http, "--token-file", str(token_file))
        assert str(token_file) in told
        assert not wrong or wrong not in told
    assert "--token-file" in refusal(home, *http, "--host", "0.0.0.0")  # noqa: S104


def test_what_belongs_to_http_is_refused_without_it(home: TempHome) -> None:
    for option in ("--host", "--port", "--token-file", "--allowed-host", "--public-url", "--oauth-issuer"):
        assert "--transport http" in refusal(home, option, "1", code=USAGE)
    assert "--allowed-host" in refusal(home, "--transport", "http", "--allowed-host", "https://x/")
    assert "65535" in refusal(home, "--transport", "http", "--port", "99999")


# -- what is open -----------------------------------------------------------------------------------------------------


async def test_health_and_metadata_are_readable_without_a_token(home: TempHome, issuer: AuthorizationServer) -> None:
    async with http_server(home, *oauth(issuer, "--oauth-scope", "runs")) as server:
        health = await look(server, "/healthz", Host="10.1.2.3:80")
        assert (health.status_code, health.json()) == (200, {"status": "ok"})
        where = (await knock(server, None)).headers["WWW-Authenticate"].partition('resource_metadata="')[2].rstrip('"')
        assert where == "https://massgen.example/.well-known/oauth-protected-resource/mcp"
        page = {"Host": "massgen.example", "Origin": "https://inspector.example"}
        told = await look(server, "/.well-known/oauth-protected-resource/mcp", **page)
        assert told.status_code == 200
        assert told.headers["Access-Control-Allow-Origin"] == "*"
        assert told.json()["resource"] == RESOURCE
        assert told.json()["authorization_servers"] == [issuer.url]
        assert told.json()["scopes_supported"] == ["runs"]
        assert (await look(server, "/.well-known/oauth-protected-resource/mcp", Host="evil")).status_code == 421
        assert (await look(server, "/.well-known/else")).status_code == 404
        assert (await look(server, "/mcp")).status_code == 401


async def test_without_an_authorization_server_there_is_none_to_be_found(home: TempHome) -> None:
    async with http_server(home) as server:
        for path in ("oauth-protected-resource", "oauth-protected-resource/mcp", "oauth-authorization-server"):
            assert (await look(server, f"/.well-known/{path}")).status_code == 404, path
        async with knocking() as http:
            register = await http.post(f"http://{server.authority}/register", json={})
            assert register.status_code == 404, "no client is told that it needs a token to get one"
        assert "resource_metadata" not in (await knock(server, None)).headers["WWW-Authenticate"]
        assert (await look(server, "/healthz")).status_code == 200


# -- tokens of an authorization server --------------------------------------------------------------------------------


async def test_a_signed_token_is_right_for_this_server_its_subjects_and_its_time(
    home: TempHome, issuer: AuthorizationServer
) -> None:
    async with http_server(home, *oauth(issuer, "--oauth-scope", "runs")) as server:
        assert (await knock(server, issuer.token(RESOURCE))).status_code == 200
        assert (await knock(server, issuer.token(RESOURCE, aud=["else", RESOURCE]))).status_code == 200
        own = server.credentials["Authorization"].removeprefix("Bearer ")
        assert (await knock(server, own)).status_code == 200, "the operator's own token is as good as before"
        issuer.new_key("stolen")
        wrong: dict[str, str] = {
            "of another issuer": issuer.token(RESOURCE, iss="https://evil.example"),
            "for another server": issuer.token("https://else.example/mcp"),
            "for no server": issuer.token(RESOURCE, aud=None),
            "of a stranger": issuer.token(RESOURCE, sub="eve"),
            "of nobody": issuer.token(RESOURCE, sub=None),
            "run out": issuer.token(RESOURCE, exp=time.time() - 60),
            "without end": issuer.token(RESOURCE, exp=None),
            "not yet right": issuer.token(RESOURCE, nbf=time.time() + 600),
            "signed by another key": issuer.token(RESOURCE, signed_by="stolen"),
            "not signed": jwt.encode(claims(issuer), "", algorithm="none", headers={"kid": "first"}),
            "signed with a secret": jwt.encode(claims(issuer), SECRET, algorithm="HS256", headers={"kid": "secret"}),
            "no token": "x.y.z",
            "too long": "x" * 9000,
        }
        for kind, token in wrong.items():
            assert (await knock(server, token)).status_code == 401, kind
        assert (await knock(server, issuer.token(RESOURCE, scope="else"))).status_code == 403
        assert issuer.asked["/keys"] == 1, "the keys are kept"


def claims(issuer: AuthorizationServer) -> dict[str, Any]:
    return {"iss": issuer.url, "aud": RESOURCE, "sub": "ann", "exp": time.time() + 600, "scope": "runs"}


async def test_an_issuer_that_does_not_answer_is_no_reason_to_let_anybody_in_or_to_refuse_the_operator(
    home: TempHome, issuer: AuthorizationServer
) -> None:
    issuer.refuses = True
    async with http_server(home, *oauth(issuer)) as server:
        unknowable = await knock(server, issuer.token(RESOURCE))
        assert unknowable.status_code == 503
        assert unknowable.headers["Retry-After"]
        own = server.credentials["Authorization"].removeprefix("Bearer ")
        assert (await knock(server, own)).status_code == 200


async def test_an_opaque_token_is_asked_about_once(home: TempHome, issuer: AuthorizationServer) -> None:
    variables = dict(zip(("MASSGEN_MCP_OAUTH_CLIENT_ID", "MASSGEN_MCP_OAUTH_CLIENT_SECRET"), CLIENT, strict=True))
    told = {"active": True, **claims(issuer)}
    issuer.opaque = {
        "right": told,
        "foreign": {**told, "aud": "https://else.example"},
        "off": {**told, "active": False},
    }
    asks = oauth(issuer, "--oauth-introspection-url", f"{issuer.url}/introspect")
    async with http_server(home.with_variables(**variables), *asks) as server:
        for _ in range(3):
            assert (await knock(server, "right")).status_code == 200
        assert issuer.asked["/introspect"] == 1
        for token in ("foreign", "off", "unknown"):
            assert (await knock(server, token)).status_code == 401, token


@pytest.mark.parametrize("kind", ["signed", "asked about"])
async def test_a_right_new_token_is_let_in_after_many_wrong_ones_from_its_address(
    home: TempHome, issuer: AuthorizationServer, kind: str
) -> None:
    """Behind a proxy a stranger has the address of everybody."""
    variables, asks = {}, oauth(issuer)
    if kind == "asked about":
        variables = dict(zip(("MASSGEN_MCP_OAUTH_CLIENT_ID", "MASSGEN_MCP_OAUTH_CLIENT_SECRET"), CLIENT, strict=True))
        asks = oauth(issuer, "--oauth-introspection-url", f"{issuer.url}/introspect")
        issuer.opaque = {"right": {"active": True, **claims(issuer)}}
    async with http_server(home.with_variables(**variables), *asks) as server, knocking() as http:
        for number in range(80):
            headers = {"Authorization": f"Bearer wrong-{number}"}
            assert (await http.post(server.url, json=INITIALIZE, headers=headers)).status_code == 401
        right = "right" if kind == "asked about" else issuer.token(RESOURCE, jti="new")
        assert (await knock(server, right)).status_code == 200
        own = server.credentials["Authorization"].removeprefix("Bearer ")
        assert (await knock(server, own)).status_code == 200


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--oauth-issuer", "https://id.example", "--public-url", RESOURCE), "--oauth-subject"),
        (("--oauth-issuer", "https://id.example", "--oauth-subject", "ann"), "--public-url"),
        (("--oauth-issuer", "http://id.example", "--oauth-subject", "ann", "--public-url", RESOURCE), "https://"),
        (("--public-url", "massgen.example"), "https://"),
    ],
)
def test_an_authorization_server_that_is_half_described_is_refused(
    home: TempHome, options: Sequence[str], why: str
) -> None:
    assert why in refusal(home, "--transport", "http", *options)
