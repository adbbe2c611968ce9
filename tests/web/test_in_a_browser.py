"""`massgen web` as a person meets it: in a real browser."""

from typing import Any

import httpx2
import pytest

from tests.browser import Browser
from tests.cluster.stage import STORES, Store, kept_in
from tests.harness import TempHome, after, agent
from tests.needs import needs
from tests.page.samples import HOSTILE
from tests.server.test_asking import asking, dear
from tests.web.pages import pages
from tests.web.person import arrived, fill, fine, press, rows, state, told

pytestmark = [needs("chromium"), pytest.mark.long]

READER = """
  window.opened = [...document.querySelectorAll('details')].find(one => one.innerText.includes("ada's 1st answer"));
  opened.open = true;
  opened.querySelector('summary').focus();
  const text = opened.querySelector('.written, .md').firstChild;
  getSelection().selectAllChildren(text);
  const slide = document.querySelector('input[type=range]');
  slide.value = 1;
  slide.dispatchEvent(new Event('input'));
  document.querySelector('textarea').value = 'half a word';
  scrollTo(0, 300);
"""
"""What a reader does before something new comes."""
LEFT_ALONE = """({
  open: opened.isConnected && opened.open, focus: document.activeElement === opened.querySelector('summary'),
  selected: getSelection().toString(), moment: document.querySelector('input[type=range]').value,
  typed: document.querySelector('textarea').value, scrolled: scrollY
})"""

HOLDS_REPLIES = """
  window.send = fetch;
  window.fetch = async (...asked) => {
    const came = await send(...asked);
    await new Promise(yes => { window.release = yes; });
    return came;
  };
"""


@pytest.mark.parametrize("store", STORES)
def test_a_person_starts_a_run_reads_undisturbed_while_it_goes_on_tells_it_something_and_finishes_it(
    browser: Browser, home: TempHome, store: Store
) -> None:
    gate = home.work / "go-on"
    waits: dict[str, Any] = {"say": "Hm.", **after(gate)}
    config = home.config(
        "team",
        agent("ada", {"answer": "Rewrite it."}, {"hang": True}),
        agent("bo", {"answer": "Mend it."}, {"hang": True}),
        agent("cleo", *[waits] * 2, {"answer": "Leave it."}, {"hang": True}),
    )
    with kept_in(store, home) as kept, pages(kept) as served, browser.tab(served.address) as tab:
        told(tab, "There are no runs yet.")
        assert served.token not in str(tab.js("location.href"))
        tab.open(f"{served.base}/new")
        fill(tab, question="Should we rewrite it or refactor it?", config=config, max_seconds="500")
        fine(tab)
        press(tab, "Show the plan")
        told(tab, "no hosts, no keys")
        press(tab, "Start")
        arrived(tab)
        tab.settled("document.querySelectorAll('g.go').length === 2")
        run = home.run_directory(str(tab.js("location.pathname.split('/').at(-1)")))
        tab.js(READER)
        before = tab.js(LEFT_ALONE)
        assert [before[name] for name in ("open", "focus", "selected", "moment")] == [True, True, "Rewrite it.", "1"]
        served.tool("control_run", run_id=run.name, action="steer", message="Mind the cost.")
        gate.touch()
        tab.settled("document.querySelectorAll('g.go').length > 2")
        tab.settled("document.body.innerText.includes('Steering'.toUpperCase())")
        assert tab.js(LEFT_ALONE) == before
        assert "cleo" in str(tab.js("document.querySelector('.doing').innerText"))
        fine(tab)
        tab.js("document.querySelector('textarea').value = 'Be <b>brief</b>.'")
        press(tab, "Tell the team")
        told(tab, "The team will read your message.")
        tab.settled("document.body.innerText.includes('Be <b>brief</b>.')")
        press(tab, "Finish now")
        tab.settled("document.querySelector('header .pill.busy').innerText.startsWith('! ')")
        assert "you asked to finish with the existing answers" in (run / "massgen.log").read_text()
        assert tab.js("opened.isConnected && opened.open")
        assert tab.js("document.querySelector('.doing').innerText") == ""


def test_runs_are_found_answered_cancelled_and_applied_after_a_look_and_what_is_hostile_is_text(
    browser: Browser, home: TempHome
) -> None:
    (home.work / "project").mkdir()
    (home.work / "project" / "code").write_text("one\n<script>alert(1)</script>\n")
    write = {"path": "project/code", "content": "two\n<script>alert(1)</script>\n<img src=x onerror=alert(2)>\n"}
    (home.work / "project" / "more").write_text("one\n")
    steps = [{"call": "write_file", "arguments": {**write, "path": f"project/{name}"}} for name in ("code", "more")]
    changing = home.config("changing", agent("solo", *steps, {"answer": HOSTILE[0]}))
    stuck = home.config("stuck", agent("ada", {"hang": True}))
    paths = [{"path": str(home.work / "project"), "permission": "write"}]
    with pages(home) as served, browser.tab(served.address) as tab:
        asked = served.tool("start_run", question="How long?", config=asking(home))["run_id"]
        hostile = served.tool("start_run", question="\u2028\u2029".join(("", *HOSTILE))[:5000], config=stuck)["run_id"]
        served.tool("start_run", question="Count", config=changing, context_paths=paths, wait_seconds=50)
        tab.open(f"{served.base}/?state=completed")
        rows(tab, "Count")
        fill(tab, state="", text="HOW")
        rows(tab, "How long?")
        fill(tab, text="", team="stuck")
        tab.settled("document.querySelectorAll('.runs a').length === 1")
        fine(tab)
        fill(tab, team="", since="2200-01-01")
        told(tab, "No run matches.")

        tab.open(f"{served.base}/runs/{hostile}")
        state(tab, "running")
        fine(tab)
        press(tab, "Cancel")
        press(tab, "Press again to cancel")
        state(tab, "cancelled")

        tab.open(f"{served.base}/runs/{asked}")
        state(tab, "input required")
        assert "Metres or feet?" in tab.text()
        tab.js("document.querySelector('textarea').value = 'Metres.'")
        press(tab, "Answer")
        tab.settled("document.querySelector('header .pill.good') !== null")

        dear_one = served.tool("start_run", question="Worth it?", config=dear(home))["run_id"]
        tab.open(f"{served.base}/runs/{dear_one}")
        state(tab, "input required")
        offered = (
            "[...document.querySelectorAll('.controls button')].filter(one => one.checkVisibility())"
            ".map(one => one.innerText)"
        )
        assert tab.js(offered) == ["Raise the budget", "Finish now", "Cancel"]
        assert tab.js("document.querySelector('.short').placeholder") == "above 0.5"
        tab.js("document.querySelector('.short').value = '50'")
        press(tab, "Raise the budget")
        tab.settled("document.querySelector('header .pill.good') !== null")
        tab.settled(f"({offered}).length === 0")

        tab.open(f"{served.base}/?text=Count")
        rows(tab, "Count")
        tab.js("document.querySelector('.runs a').click()")
        arrived(tab)
        press(tab, "Show the changed files")
        tab.settled("document.querySelector('.files ~ .diff, .files ~ * .diff') !== null")
        assert "<img src=x onerror=alert(2)>" in tab.text()
        assert (home.work / "project" / "code").read_text().startswith("one")
        fine(tab)
        (home.work / "project" / "more").write_text("mine\n")
        press(tab, "Apply to your files")
        tab.settled("document.body.innerText.includes('You can apply the changes to the other files.')")
        assert tab.js("[...document.querySelectorAll('.files input')].map(one => one.checked)") == [True, False]
        press(tab, "Apply to your files")
        told(tab, "applied")
        assert (home.work / "project" / "more").read_text() == "mine\n"
        assert (home.work / "project" / "code").read_text() == write["content"]
        assert [one for one in tab.network() if not one.startswith((f"{served.base}/", "data:image/"))] == []


def test_nobody_is_let_in_by_the_address_alone(browser: Browser, home: TempHome) -> None:
    with pages(home, "--port", "0") as served:
        for address in (f"{served.base}/", f"{served.base}/new#token=x", f"{served.base}/runs/..%3Cscript%3E"):
            with browser.tab(address) as tab:
                tab.js("localStorage.clear()")
                tab.open(address.partition("#")[0])
                tab.settled("document.body.innerText.includes('massgen web') || document.querySelector('form')")
                assert tab.js("fetch('/api/runs').then(answer => answer.status)") == 401
        assert httpx2.get(served.base.replace("127.0.0.1", "localhost"), trust_env=False).status_code == 421


def test_a_wrong_token_displaces_no_right_one_and_a_right_one_lets_in_where_somebody_was_not(
    browser: Browser, home: TempHome
) -> None:
    with pages(home) as served, browser.tab(served.address) as tab:
        told(tab, "There are no runs yet.")
        tab.open(f"{served.base}/?x#token=wrong")
        told(tab, "There are no runs yet.")
        tab.js("localStorage.clear()")
        tab.open(f"{served.base}/?y")
        tab.settled("document.body.innerText.includes('Access denied')")
        tab.js(f"location.hash = 'token={served.token}'")
        arrived(tab, "document.querySelector('form') !== null")
        told(tab, "There are no runs yet.")
        assert served.token not in str(tab.js("location.href"))

        tab.open(f"{served.base}/new")
        fill(tab, question="Half a")
        tab.settled("document.querySelector('[name=team] optgroup') !== null")
        tab.js(HOLDS_REPLIES)
        fill(tab, question="Half a")
        tab.settled("window.release !== undefined")
        tab.js("window.fetch = send; localStorage.clear()")
        press(tab, "Show the plan")
        tab.settled("document.body.innerText.includes('Access denied')")
        tab.js("release()")
        assert "Access denied" in tab.text(), "a reply to the token that was there before took it away"
        assert tab.js("document.querySelector('form').elements.question.value") == "Half a"
        assert tab.violations_of_accessibility() == []
