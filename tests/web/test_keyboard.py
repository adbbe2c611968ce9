"""The pages by keyboard alone: whoever can only press keys does all that there is, and sees where he is."""

from tests.browser import Browser, Tab
from tests.harness import TempHome, agent
from tests.needs import needs
from tests.server.test_asking import asking
from tests.web.pages import pages
from tests.web.person import state, told

pytestmark = needs("chromium")

MOST_STEPS = 80
CONTROL = 2
"""The modifier of a key event."""
HERE = "((one) => one.getAttribute('aria-label') || one.innerText || '')(document.activeElement)"


def go_to(tab: Tab, label: str) -> None:
    """Press the tab key until what has the focus is called so; it has to be seen there."""
    tab.settled(
        "[...document.querySelectorAll('button, textarea')].some(one => one.checkVisibility() && !one.disabled"
        f" && (one.getAttribute('aria-label') || one.innerText) === '{label}')"
    )
    for _ in range(MOST_STEPS):
        if tab.js(HERE) == label:
            assert tab.js("getComputedStyle(document.activeElement).outlineStyle") == "solid"
            return
        tab.press("Tab", 9)
    raise AssertionError(f"{label} is not reached")


def enter(tab: Tab) -> None:
    tab.press("Enter", 13, text="\r")


def test_a_run_is_steered_finished_answered_and_applied_by_keys(browser: Browser, home: TempHome) -> None:
    (home.work / "project").mkdir()
    (home.work / "project" / "code").write_text("one\n")
    write = {"call": "write_file", "arguments": {"path": "project/code", "content": "two\n"}}
    changing = home.config("changing", agent("solo", write, {"answer": "Done."}))
    stuck = home.config("stuck", agent("ada", {"answer": "Mend it."}), agent("bo", {"hang": True}))
    paths = [{"path": str(home.work / "project"), "permission": "write"}]
    with pages(home) as served, browser.tab(served.address) as tab:
        going = served.tool("start_run", question="How long?", config=stuck)["run_id"]
        tab.open(f"{served.base}/runs/{going}")
        tab.settled("document.querySelectorAll('g.go').length === 1")
        go_to(tab, "Message")
        tab.call("Input.insertText", text="Mind the cost.")
        for kind in ("keyDown", "keyUp"):
            tab.call("Input.dispatchKeyEvent", type=kind, key="Enter", windowsVirtualKeyCode=13, modifiers=CONTROL)
        told(tab, "The team will read your message.")
        tab.settled("document.body.innerText.includes('Mind the cost.')")
        go_to(tab, "Finish now")
        enter(tab)
        tab.settled("document.querySelector('header .pill').innerText.startsWith('! ')")
        tab.settled("document.activeElement.className === 'told'")
        asked = served.tool("start_run", question="Long?", config=asking(home))["run_id"]
        tab.open(f"{served.base}/runs/{asked}")
        state(tab, "input required")
        go_to(tab, "Message")
        tab.call("Input.insertText", text="Metres.")
        go_to(tab, "Answer")
        enter(tab)
        tab.settled("document.querySelector('header .pill.good') !== null")
        done = served.tool("start_run", question="Change", config=changing, context_paths=paths, wait_seconds=50)
        tab.open(f"{served.base}/runs/{done['run_id']}")
        go_to(tab, "Show the changed files")
        enter(tab)
        go_to(tab, "Apply to your files")
        enter(tab)
        told(tab, "applied")
        assert (home.work / "project" / "code").read_text() == "two\n"
        tab.settled("document.activeElement.className === 'told'")
        going = served.tool("start_run", question="How long?", config=stuck)["run_id"]
        tab.open(f"{served.base}/runs/{going}")
        go_to(tab, "Cancel")
        enter(tab)
        go_to(tab, "Press again to cancel")
        enter(tab)
        state(tab, "cancelled")
