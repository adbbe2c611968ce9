"""A person writes the token into the page once, or signs in at an authorization server, in a real browser."""

import json
import re
import socket
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from tests.browser import Browser, Tab
from tests.harness import SERVER_MODULE, TempHome, home, poll_until
from tests.needs import needs
from tests.people.stage import TOKENS
from tests.people.test_over_http import people
from tests.server.authorization_server import AuthorizationServer, authorization_server
from tests.web.person import arrived, fill, press, rows

__all__ = ["home"]

pytestmark = needs("chromium")
SIGN_IN = "document.querySelector('a.go') !== null"


@contextmanager
def served(home: TempHome, *options: str, **named: Any) -> Generator[str]:
    """The address of a server with pages."""
    log = home.work / "http.log"
    command = [home.python, "-m", SERVER_MODULE, "--transport", "http", "--port", "0", "--pages", *options]
    with (
        log.open("wb") as output,
        subprocess.Popen(
            [*command, "--people", str(people(home, **named))], env=home.environ, stderr=output
        ) as process,
    ):
        try:
            told = poll_until(lambda: re.search(r"(http://\S+)/mcp", log.read_text()))
            assert told is not None
            yield told[1]
        finally:
            process.terminate()


def test_a_person_logs_in_with_a_token_and_sees_his_runs(browser: Browser, home: TempHome) -> None:
    with served(home) as base, browser.tab(base) as tab:
        tab.settled("document.querySelector('input[type=password]') !== null")
        fill(tab, token="wrong-token-0123456789")
        press(tab, "Sign in")
        tab.settled("document.querySelector('form').elements.token.placeholder === 'Wrong token'")
        fill(tab, token=TOKENS["ann"])
        press(tab, "Sign in")
        arrived(tab, "document.querySelector('input[type=password]') === null")
        rows(tab)
        assert tab.js("document.cookie + JSON.stringify(localStorage)") == "{}", "no script can read the token"
        assert tab.violations_of_accessibility() == []


@contextmanager
def served_with(home: TempHome, issuer: AuthorizationServer) -> Generator[str]:
    """The authorization server is another site than the pages: cookies of these are not sent along from there."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    issuer.name = "localhost"
    issuer.clients = {"massgen": ("", f"http://127.0.0.1:{port}/login/callback")}
    options = ("--oauth-issuer", issuer.url, "--public-url", f"http://127.0.0.1:{port}/mcp", "--port", str(port))
    named = {name: {"subject": name} for name in TOKENS}
    with served(home.with_variables(MASSGEN_MCP_OAUTH_CLIENT_ID="massgen"), *options, **named) as base:
        yield base


def choose(tab: Tab, who: str) -> None:
    """Go to the authorization server, and be this person there."""
    tab.settled(SIGN_IN)
    tab.js("document.querySelector('a.go').click()")
    arrived(tab, "location.hostname === 'localhost' && document.querySelector('form') !== null")
    tab.js(f"document.querySelector('button[value={who}]').click()")


def test_two_people_sign_in_at_an_authorization_server_and_each_sees_his_runs_alone(
    browser: Browser, home: TempHome
) -> None:
    with (
        authorization_server() as issuer,
        served_with(home, issuer) as base,
        browser.blank(apart=True) as bob,
        browser.blank(apart=True) as ann,
    ):
        bob.open(base)
        bob.settled(SIGN_IN)
        assert bob.violations_of_accessibility() == []
        choose(bob, "nobody")
        arrived(bob, f"location.pathname === '/' && {SIGN_IN}")
        assert "refused to sign you in, or you cancelled" in bob.js("document.querySelector('[role=alert]').innerText")
        assert bob.violations_of_accessibility() == []
        choose(bob, "bob")
        arrived(bob, "document.querySelector('.runs') !== null")
        rows(bob)
        begun = {"method": "POST", "headers": {"Content-Type": "application/json"}}
        asked = json.dumps({**begun, "body": json.dumps({"question": "bobs question", "team": "scripted"})})
        run_id = bob.js(f"fetch('/api/tools/start_run', {asked}).then(reply => reply.json()).then(run => run.run_id)")
        ann.open(f"{base}/runs/{run_id}")
        choose(ann, "ann")
        arrived(ann, f"location.pathname === '/runs/{run_id}'")
        ann.settled("document.body.innerText.includes(`Run not found`)")
        for tab, questions in ((ann, ()), (bob, ("bobs question",))):
            tab.open(base)
            rows(tab, *questions)
            assert tab.js("document.cookie + JSON.stringify(localStorage)") == "{}", "no script can read the session"
            assert tab.violations_of_accessibility() == []
        press(bob, "Sign out")
        arrived(bob, SIGN_IN)
        assert bob.js("fetch('/api/runs').then(reply => reply.status)") == 401
        assert ann.js("fetch('/api/runs').then(reply => reply.status)") == 200
