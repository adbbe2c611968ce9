"""A person writes the token into the page once, in a real browser."""

import re
import subprocess

from tests.browser import Browser
from tests.harness import SERVER_MODULE, TempHome, home, poll_until
from tests.needs import needs
from tests.people.stage import TOKENS
from tests.people.test_over_http import people
from tests.web.person import arrived, fill, press, rows

__all__ = ["home"]

pytestmark = needs("chromium")


def test_a_person_logs_in_with_a_token_and_sees_his_runs(browser: Browser, home: TempHome) -> None:
    log = home.work / "http.log"
    command = [home.python, "-m", SERVER_MODULE, "--transport", "http", "--port", "0", "--pages"]
    with (
        log.open("wb") as output,
        subprocess.Popen([*command, "--people", str(people(home))], env=home.environ, stderr=output) as process,
    ):
        try:
            told = poll_until(lambda: re.search(r"(http://\S+)/mcp", log.read_text()))
            assert told is not None
            with browser.tab(told[1]) as tab:
                tab.settled("document.querySelector('input[type=password]') !== null")
                fill(tab, token="wrong-token-0123456789")
                press(tab, "Log in")
                tab.settled("document.querySelector('form').elements.token.placeholder === 'That token is not right'")
                fill(tab, token=TOKENS["ann"])
                press(tab, "Log in")
                arrived(tab, "document.querySelector('input[type=password]') === null")
                rows(tab)
                assert tab.js("document.cookie + JSON.stringify(localStorage)") == "{}", "no script can read the token"
                assert tab.violations_of_accessibility() == []
        finally:
            process.terminate()
