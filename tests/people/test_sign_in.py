"""People who have no token sign in at an authorization server: who gets in, who does not, and what they are told."""

import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import jwt
import pytest

from massgen_mcp.certificates import trusted
from tests.commands import run_command
from tests.harness import PATIENCE_SECONDS, SERVER_MODULE, TempHome, home
from tests.people.test_over_http import ask, bearer, knock, serving
from tests.server.authorization_server import SECRET, AuthorizationServer, authorization_server

__all__ = ["home"]

US = "massgen.example"
PUBLIC = "http://127.0.0.1:1/mcp"
"""As people know a server to which none of them gets by itself."""
COOKIE, KEPT = "massgen-token", "massgen-sign-in"
SUBJECTS: dict[str, Any] = {"ann": {"subject": "ann"}, "bob": {"subject": "bob"}}
WRITE = {"question": "q", "team": "scripted"}


@pytest.fixture
def issuer() -> Generator[AuthorizationServer]:
    with authorization_server() as server:
        yield server


@asynccontextmanager
async def signing_in(
    home: TempHome, issuer: AuthorizationServer, *options: str, secret: str = "", us: str = PUBLIC
) -> AsyncGenerator[str]:
    """The address of a server that is known to people as `us`."""
    ours = urlsplit(us)
    issuer.clients = {"massgen": (secret, f"{ours.scheme}://{ours.netloc}/login/callback")}
    variables = {"MASSGEN_MCP_OAUTH_CLIENT_ID": "massgen", "MASSGEN_MCP_OAUTH_CLIENT_SECRET": secret}
    given = ("--pages", "--oauth-issuer", issuer.url, "--public-url", us, *options)
    async with serving(home.with_variables(**variables), *given, **SUBJECTS) as url:
        yield url.removesuffix("/mcp")


@asynccontextmanager
async def browser() -> AsyncGenerator[httpx2.AsyncClient]:
    """As a browser keeps cookies; it follows nothing by itself."""
    async with httpx2.AsyncClient(verify=trusted(), trust_env=False, timeout=PATIENCE_SECONDS) as http:
        yield http


async def begun(http: httpx2.AsyncClient, base: str, to: str = "/") -> str:
    """Where the browser is sent."""
    reply = await http.get(f"{base}/login", params={"to": to})
    assert (reply.status_code, reply.headers["cache-control"]) == (303, "no-store"), reply.text
    return reply.headers["location"]


async def came_back(http: httpx2.AsyncClient, base: str, where: str, who: str = "ann") -> str:
    """The address to which the authorization server sends a browser, which reaches the server at `base`."""
    assert "<form" in (await http.get(where)).text
    back = urlsplit((await http.post(where, data={"who": who})).headers["location"])
    return f"{base}{back.path}?{back.query}"


async def signed_in(http: httpx2.AsyncClient, base: str, who: str = "ann", to: str = "/") -> httpx2.Response:
    return await http.get(await came_back(http, base, await begun(http, base, to), who))


def refused(reply: httpx2.Response, words: str) -> None:
    assert (reply.status_code, words in reply.text, COOKIE in str(reply.headers)) == (403, True, False), reply.text[
        -900:
    ]


async def test_each_person_who_signs_in_has_runs_of_his_own_until_he_signs_out(
    home: TempHome, issuer: AuthorizationServer
) -> None:
    async with signing_in(home, issuer) as base, browser() as bob, browser() as ann:
        assert (await bob.get(f"{base}/api/runs")).status_code == 401
        there = await signed_in(bob, base, "bob", "/new?again=run-x")
        assert (there.status_code, there.headers["location"]) == (303, "/new?again=run-x")
        assert [*bob.cookies] == [COOKIE], "what a sign-in needed is gone"
        assert (await signed_in(ann, base)).status_code == 303
        run_id = (await bob.post(f"{base}/api/tools/start_run", json=WRITE)).json()["run_id"]
        assert run_id in (await bob.get(f"{base}/api/runs")).text
        assert (await ann.get(f"{base}/api/runs")).json() == {"runs": []}
        assert (await ann.get(f"{base}/api/runs/{run_id}")).status_code == 404
        foreign = await bob.post(f"{base}/api/tools/start_run", json=WRITE, headers={"Origin": "http://evil.example"})
        assert foreign.status_code == 403
        assert (await bob.delete(f"{base}/api/login")).status_code == 204
        assert (await bob.get(f"{base}/api/runs")).status_code == 401


@pytest.mark.parametrize("secret", ["", "the-secret-of-the-client-0123"])
async def test_a_sign_in_goes_on_at_another_server_than_it_was_begun_at(
    home: TempHome, issuer: AuthorizationServer, tmp_path: Path, secret: str
) -> None:
    (tmp_path / "other").mkdir()
    other = TempHome(tmp_path / "other" / "home", tmp_path / "other")
    async with (
        signing_in(home, issuer, secret=secret) as one,
        signing_in(other, issuer, secret=secret) as two,
        browser() as ann,
    ):
        back = await came_back(ann, two, await begun(ann, one, "/statistics"))
        assert (await ann.get(back)).headers["location"] == "/statistics"
        for base in (one, two):
            assert (await ann.get(f"{base}/api/runs")).status_code == 200


Forge = Callable[[AuthorizationServer, dict[str, Any]], str]
FORGED: dict[str, Forge] = {
    "nonce of another": lambda issuer, said: issuer.signed({**said, "nonce": "x" * 43}),
    "no nonce": lambda issuer, said: issuer.signed({name: value for name, value in said.items() if name != "nonce"}),
    "alg none": lambda _, said: jwt.encode(said, "", algorithm="none", headers={"kid": "first"}),
    "secret": lambda _, said: jwt.encode(said, SECRET, algorithm="HS256", headers={"kid": "secret"}),
    "for another": lambda issuer, said: issuer.signed({**said, "aud": "other"}),
    "for our URL": lambda issuer, said: issuer.signed({**said, "aud": PUBLIC}),
    "by another": lambda issuer, said: issuer.signed({**said, "aud": ["other", "massgen"], "azp": "other"}),
    "of another": lambda issuer, said: issuer.signed({**said, "iss": "http://127.0.0.1:9"}),
    "too old": lambda issuer, said: issuer.signed({**said, "exp": said["iat"] - 60}),
    "none": lambda _, said: f"x.{said['nonce']}.z",
}


async def test_an_id_token_that_is_not_of_this_sign_in_lets_nobody_in(
    home: TempHome, issuer: AuthorizationServer
) -> None:
    async with signing_in(home, issuer) as base, browser() as ann:
        for kind, forge in FORGED.items():
            issuer.writes = lambda said, forge=forge: forge(issuer, said)
            refused(await signed_in(ann, base), "belongs to another sign-in")
            assert COOKIE not in ann.cookies, kind


async def test_a_callback_counts_once_and_in_the_browser_that_began_alone(
    home: TempHome, issuer: AuthorizationServer
) -> None:
    async with signing_in(home, issuer) as base, browser() as ann, browser() as eve:
        anns = await came_back(ann, base, await begun(ann, base))
        begun_too_long_ago = "This sign-in has expired or was started in another browser"
        refused(await eve.get(anns), begun_too_long_ago)
        eves = await came_back(eve, base, await begun(eve, base), "bob")
        refused(await ann.get(eves), begun_too_long_ago)
        refused(await ann.get(anns.replace("state=", "state=x")), begun_too_long_ago)
        refused(await ann.get(f"{base}/login/callback"), begun_too_long_ago)
        refused(await ann.get(anns.replace("iss=", "iss=x")), begun_too_long_ago)
        stolen, own = (parse_qs(urlsplit(one).query)["code"][0] for one in (anns, eves))
        refused(await eve.get(eves.replace(own, stolen)), "didn't confirm this sign-in")  # not with her verifier
        kept = ann.cookies[KEPT]
        refused(await ann.get(anns), "didn't confirm this sign-in")  # it was used up
        assert (await signed_in(ann, base)).status_code == 303
        assert KEPT not in ann.cookies
        refused(await ann.get(anns), begun_too_long_ago)
        again = await came_back(ann, base, await begun(ann, base))
        mine = {"Cookie": f"{KEPT}={ann.cookies[KEPT]}"}
        assert (await ask(base, "GET", again.removeprefix(base), headers=mine)).status_code == 303
        refused(await ask(base, "GET", again.removeprefix(base), headers=mine), "didn't confirm this sign-in")
        assert kept != ann.cookies[KEPT]


async def test_without_a_cookie_no_state_is_right(home: TempHome, issuer: AuthorizationServer) -> None:
    """Also not the one that would come of no secret."""
    from massgen_mcp.server.http import oauth

    state = oauth._derived("", "state")  # pyright: ignore[reportPrivateUsage]
    async with signing_in(home, issuer) as base, browser() as ann:
        for kept in ("", "/", "=", '""'):
            headers = {"Cookie": f"{KEPT}={kept}"}
            refused(
                await ann.get(f"{base}/login/callback?code=x&state={state}", headers=headers),
                "This sign-in has expired or was started in another browser",
            )
    assert issuer.asked["/token"] == 0


async def test_a_session_is_good_for_the_pages_alone_and_eight_hours(
    home: TempHome, issuer: AuthorizationServer
) -> None:
    async with signing_in(home, issuer) as base, browser() as ann:
        nonce = parse_qs(urlsplit(await begun(ann, base)).query)["nonce"][0]
        secret, now = ann.cookies[KEPT].strip('"').partition("/")[0], int(time.time())
        said = {"iss": issuer.url, "aud": "massgen", "sub": "ann", "nonce": nonce}

        async def let_in(session: str, **headers: str) -> int:
            return (
                await ask(base, "GET", "/api/runs", headers={"Cookie": f"{COOKIE}={session}", **headers})
            ).status_code

        token = issuer.signed({**said, "iat": now, "exp": now + 300})
        assert await let_in(f"{secret}.{token}") == 200
        assert await let_in(f"{secret}.{issuer.signed({**said, 'iat': now - 7 * 3600, 'exp': now - 6 * 3600})}") == 200
        wrong = {
            "old": f"{secret}.{issuer.signed({**said, 'iat': now - 9 * 3600, 'exp': now + 300})}",
            "token alone": token,
            "another secret": f"{'x' * 43}.{token}",
            "unknown subject": f"{secret}.{issuer.signed({**said, 'sub': 'eve', 'iat': now, 'exp': now + 300})}",
            "nothing": ".",
            "too long": f"{secret}.{issuer.signed({**said, 'iat': now, 'exp': now + 300, 'groups': 'x' * 4000})}",
        }
        for kind, session in wrong.items():
            assert await let_in(session) == 401, kind
        for shown in (token, f"{secret}.{token}"):
            assert (await ask(base, "GET", "/api/runs", headers=bearer(shown))).status_code == 401
            assert (await knock(f"{base}/mcp", shown)).status_code == 401
        assert await let_in(issuer.token(PUBLIC)) == 200, "a token for us that was written in"


ELSEWHERE = (
    *("//evil.example", "https://evil.example/", "/\\evil.example", "///evil.example/new", "http:/new", "javascript:1"),
    *(
        "/api/runs",
        "/login",
        "/mcp",
        "new",
        "",
        "//evil.example/new",
        "\t//evil.example/new",
        "/new/../../x",
        "https:new",
    ),
)


async def test_nobody_is_sent_to_a_page_that_is_not_ours(home: TempHome, issuer: AuthorizationServer) -> None:
    async with signing_in(home, issuer) as base, browser() as ann:
        for to in ELSEWHERE:
            assert (await signed_in(ann, base, to=to)).headers["location"] == "/", to
        back = await came_back(ann, base, await begun(ann, base))
        kept = ann.cookies[KEPT].strip('"').partition("/")[0]
        for to in ("//evil.example", "/\\evil.example"):  # nor by a cookie that somebody else has made
            reply = await ask(base, "GET", back.removeprefix(base), headers={"Cookie": f"{KEPT}={kept}{to}"})
            assert reply.headers.get("location", "/") == "/", to


async def test_who_is_not_let_in_is_told_why(home: TempHome, issuer: AuthorizationServer) -> None:
    host = urlsplit(issuer.url).netloc
    async with signing_in(home, issuer) as base, browser() as eve:
        refused(await signed_in(eve, base, "nobody"), f"{host} refused to sign you in, or you cancelled.")
        refusal = f"{host} signed you in as “eve”, but that user doesn't have access to this server"
        refused(await signed_in(eve, base, "eve"), refusal)
        failed = (await came_back(eve, base, await begun(eve, base))).replace("code=", "error=server_error&code=")
        refused(await eve.get(failed), f"{host} failed: server_error.")
        issuer.writes = lambda said: issuer.signed({**said, "groups": "x" * 4000})
        refused(await signed_in(eve, base), "too long for a cookie")
        back = await came_back(eve, base, await begun(eve, base))
        issuer.refuses = True
        for reply in (await eve.get(back), await eve.get(f"{base}/login")):
            assert (reply.status_code, f"{host} isn't responding" in reply.text) == (503, True)


async def test_a_scope_that_is_wanted_has_to_be_granted(home: TempHome, issuer: AuthorizationServer) -> None:
    """Which a public client could not be held to: whoever changes what is asked for has the token then."""
    secret = "the-secret-of-the-client-0123"
    given = ("--oauth-issuer", issuer.url, "--public-url", PUBLIC, "--oauth-subject", "ann", "--oauth-scope", "runs")
    public = home.with_variables(MASSGEN_MCP_OAUTH_CLIENT_ID="massgen")
    told = run_command(public, SERVER_MODULE, "--transport", "http", "--port", "0", *given)
    assert (
        told.returncode,
        "needs MASSGEN_MCP_OAUTH_CLIENT_ID and MASSGEN_MCP_OAUTH_CLIENT_SECRET" in told.stderr,
    ) == (1, True)
    async with signing_in(home, issuer, "--oauth-scope", "runs", secret=secret) as base, browser() as ann:
        where = await begun(ann, base)
        assert parse_qs(urlsplit(where).query)["scope"] == ["openid runs"]
        less = where.replace("openid+runs", "openid")
        refused(await ann.get(await came_back(ann, base, less)), "doesn't grant you runs")
        assert (await signed_in(ann, base)).status_code == 303
        assert (await ann.get(f"{base}/api/runs")).status_code == 200


async def test_by_https_cookies_are_for_this_host_alone(home: TempHome, issuer: AuthorizationServer) -> None:
    async with signing_in(home, issuer, us=f"https://{US}/mcp") as base, browser() as ann:
        ann.headers["Host"] = US
        begins = await ann.get(f"{base}/login")
        del ann.headers["Host"]
        kept, *rules = begins.headers["set-cookie"].split("; ")
        assert kept.startswith(f"__Host-{KEPT}=")
        assert set(rules) == {"HttpOnly", "Max-Age=600", "Path=/", "SameSite=lax", "Secure"}
        back = (await came_back(ann, base, begins.headers["location"])).removeprefix(base)
        unprefixed = await ask(base, "GET", back, headers={"Host": US, "Cookie": kept.removeprefix("__Host-")})
        refused(unprefixed, "This sign-in has expired or was started in another browser")
        reply = await ask(base, "GET", back, headers={"Host": US, "Cookie": kept})
        session, *rules = reply.headers.get_list("set-cookie")[0].split("; ")
        assert session.startswith(f"__Host-{COOKIE}=")
        assert set(rules) == {"HttpOnly", "Path=/", "SameSite=strict", "Secure"}
        for shown, status in ((session, 200), (session.removeprefix("__Host-"), 401)):
            reply = await ask(base, "GET", "/api/runs", headers={"Host": US, "Cookie": shown})
            assert reply.status_code == status
