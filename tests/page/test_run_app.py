"""The run's page inside a host of MCP Apps: the official bridge in a browser, a real server behind it."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.browser import Browser, Tab
from tests.harness import Mode, TempHome, agent, events_of, poll_until
from tests.needs import needs
from tests.page.app_host import Host, app_host
from tests.page.samples import HOSTILE

pytestmark = needs("chromium")
TIMERS = """
window.pending = new Set();
window.put_off = 0;
const [begin, end] = [setTimeout, clearTimeout];
window.setTimeout = (run, ...rest) => {
  const one = begin(() => { pending.delete(one); run(); }, ...rest);
  pending.add(one);
  if (rest[0] >= 1000) put_off++;
  return one;
};
window.clearTimeout = one => { pending.delete(one); end(one); };
"""
"""Keeps what a frame has put off until later, and counts what it has put off for a second or more."""
DARK = {
    "--color-background-primary": "rgb(24, 26, 31)",
    "--color-background-secondary": "rgb(40, 42, 50)",
    "--color-text-primary": "rgb(240, 240, 240)",
    "--color-text-secondary": "rgb(190, 190, 190)",
    "--color-border-primary": "rgb(70, 70, 70)",
    "--font-sans": "serif",
}


@dataclass
class Stage:
    """A host's page, and what is to be shown in it."""

    home: TempHome
    host: Host
    tab: Tab

    def show(self, result: dict[str, Any], **more: Any) -> Tab:
        """The App as for a call with this result; the frame that it is in."""
        what = json.dumps({"args": {}, "result": result, **more})
        self.tab.js(f"void (window.shown = false, show({what}).then(() => shown = true))")
        frame = self.tab.held_frame(TIMERS)
        self.tab.settled("shown")
        return frame

    def start(self, *agents: dict[str, Any], **settings: Any) -> tuple[str, dict[str, Any]]:
        """Id of a run, and the result of the call that started it."""
        config = self.home.config("t", *agents, **settings)
        result = self.host.call("start_run", question="Should we rewrite it or refactor it?", config=config)
        return result["structuredContent"]["run_id"], result

    def heard(self, kind: str) -> list[dict[str, Any]]:
        return [one for one in self.tab.js("heard") if one["kind"] == kind]


@pytest.fixture(scope="module", params=["2026-07-28", "legacy"])
def stage(
    request: pytest.FixtureRequest, browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stage]:
    mode: Mode = request.param
    work = tmp_path_factory.mktemp("work")
    home = TempHome(work / "home", work)
    try:
        with app_host(home, mode) as host, browser.blank() as tab:
            tab.hold_frames()
            tab.call("Page.navigate", url=host.url)
            tab.settled("window.loaded")
            yield Stage(home, host, tab)
    finally:
        home.close()


in_one_era = pytest.mark.parametrize("stage", ["2026-07-28"], indirect=True)


def press(frame: Tab, words: str) -> None:
    """Press the button that says this, when it is there."""
    button = f"[...document.querySelectorAll('button')].find(one => one.textContent === {json.dumps(words)})"
    frame.settled(f"{button} !== undefined")
    frame.js(f"{button}.click()")


def says(frame: Tab, words: str) -> None:
    """Wait until it can be read."""
    frame.settled(f"document.body.innerText.includes({json.dumps(words)})")


def test_a_run_is_drawn_while_it_goes_on_steered_and_told_to_the_model_once(stage: Stage) -> None:
    run_id, result = stage.start(agent("ada", {"answer": "Mend it."}), agent("bo", {"hang": True}))
    stage.tab.js("heard.length = 0")
    frame = stage.show(result)
    frame.settled("document.querySelector('g.go') !== null")
    assert frame.js("document.querySelector('.pill').textContent") == "running"
    frame.js("document.querySelector('details').open = true")

    press(frame, "Message…")
    assert frame.js("document.activeElement.localName") == "textarea"
    frame.js("document.querySelector('textarea').value = 'Think of the costs.'")
    press(frame, "Send")
    says(frame, "Think of the costs.")
    press(frame, "Finish now…")
    assert frame.js("document.activeElement.textContent") == "Finish now"
    assert not [one for one in stage.heard("call") if one["arguments"].get("action") == "finish_now"], "only asked"
    press(frame, "Finish now")
    frame.settled("document.querySelector('.pill').textContent.startsWith('! ')")
    assert frame.js("document.querySelector('details').open"), "what was opened stays open"

    stage.tab.settled("heard.some(one => one.kind === 'context')")
    (told,) = stage.heard("context")
    assert told["content"][0]["text"].startswith(f"Run {run_id} has ended; get_result returns:\n\nMend it.")
    said = [one["message"] for one in events_of(stage.home.run_directory(run_id)) if one["type"] == "asker_said"]
    assert said == ["Think of the costs."]
    asked = [one["arguments"]["seen"] for one in stage.heard("call") if one["name"] == "run_page"]
    assert asked[0] == ""
    assert all(re.fullmatch(r"\d+-[a-z]+", seen) for seen in asked[1:]), "what is drawn already is not sent again"

    assert frame.complaints() == []

    again = stage.show(result, early=True)
    again.settled("document.querySelector('.pill')?.textContent.startsWith('! ')")
    assert again.js("put_off") == 0, "a run that has ended is asked for once"
    assert len(stage.heard("context")) == 1, "a page that is opened again tells nothing"
    assert (again.complaints(), again.network()) == ([], [])


@in_one_era
def test_it_looks_like_its_host_is_open_to_everybody_and_lets_no_text_do_anything(stage: Stage) -> None:
    hostile = "\n\n".join(text for text in HOSTILE if len(text) < 200) + "\n\n[here](https://example.com/a?b=c)"
    run_id, _ = stage.start(agent("ada", {"answer": hostile}, {"vote": "own", "reason": HOSTILE[1]}))
    stage.host.call("wait_run", run_id=run_id, timeout_seconds=30)
    result = stage.host.call("get_result", run_id=run_id)
    modes = ["inline", "fullscreen"]
    context = {"theme": "dark", "styles": {"variables": DARK}, "displayMode": "inline", "availableDisplayModes": modes}
    frame = stage.show(result, context=context, args={"run_id": run_id})
    frame.settled("document.querySelector('svg') !== null")
    paint = "['backgroundColor', 'color', 'fontFamily'].map(one => getComputedStyle(document.body)[one])"
    assert frame.js(paint) == [*(DARK[f"--color-{what}-primary"] for what in ("background", "text")), "serif"]
    assert "Show less" not in frame.js("document.body.innerText")
    assert frame.violations_of_accessibility() == []
    stage.tab.settled("document.querySelector('iframe').offsetHeight > 300")

    frame.js("document.querySelector('a[href^=https]').click()")
    stage.tab.settled("heard.some(one => one.kind === 'link')")
    assert stage.heard("link")[-1]["url"] == "https://example.com/a?b=c"
    press(frame, "Full view")
    frame.settled("getComputedStyle(document.querySelector('.two')).display === 'grid'")
    stage.tab.js(
        "bridge.setHostContext({theme: 'light', displayMode: 'fullscreen', availableDisplayModes: ['inline']})"
    )
    frame.settled("getComputedStyle(document.documentElement).colorScheme === 'light'")
    frame.open_all()
    assert frame.js("document.querySelectorAll('[href^=\"javascript:\"], iframe, img, base, object, form').length") == 0
    assert (frame.js("executed"), frame.complaints(), frame.network()) == ([], [], [])

    plain = stage.show(result, context={"theme": "light"})
    plain.settled("document.querySelector('svg') !== null")
    assert plain.js(paint)[0] == "rgb(247, 247, 245)"
    assert plain.violations_of_accessibility() == []
    stage.tab.js("bridge.setHostContext({theme: 'dark'})")
    plain.settled(f"{paint}[0] === 'rgb(18, 19, 22)'")
    stage.tab.js("bridge.teardownResource({})")


@in_one_era
def test_what_was_written_is_sent_as_what_it_was_begun_as(stage: Stage) -> None:
    ask = {"call": "ask_the_asker", "arguments": {"question": "Metres or feet?"}}
    run_id, result = stage.start(agent("ada", ask, {"hang": True}), orchestrator={"allow_questions": True})
    frame = stage.show(result)
    press(frame, "Answer…")
    frame.js("document.querySelector('textarea').value = 'Feet.'")
    stage.host.call("control_run", run_id=run_id, action="answer", message="Metres.")
    frame.settled("document.querySelector('.pill').textContent === 'running'")
    stage.tab.js("heard.length = 0")
    press(frame, "Send")
    says(frame, "That didn't work")
    assert [one["arguments"].get("action") for one in stage.heard("call")].count("answer") == 1
    stage.host.call("control_run", run_id=run_id, action="cancel")


@in_one_era
def test_what_stands_between_it_and_the_run_is_said_in_a_sentence(stage: Stage) -> None:
    run_id, result = stage.start(agent("ada", {"hang": True}))
    stage.tab.js("refusal = 'the person said no'")
    frame = stage.show(result)
    says(frame, "Cannot show the run: the person said no")
    says(frame, "Try again")
    assert frame.js("pending.size") == 0, "it does not go on asking whoever refuses"
    stage.tab.js("refusal = null")
    press(frame, "Try again")
    frame.settled("document.querySelector('.pill')?.textContent === 'running'")
    assert "said no" not in frame.js("document.body.innerText")

    frame.js("Object.defineProperty(document, 'hidden', {get: () => true, configurable: true})")
    frame.settled("pending.size === 1")
    assert frame.js("document.dispatchEvent(new Event('visibilitychange')); pending.size") == 0
    frame.js("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))")
    frame.settled("pending.size === 1")
    stage.tab.js("refusal = 'not from a page'")
    press(frame, "Cancel…")
    press(frame, "Cancel the run")
    says(frame, "That didn't work: not from a page")
    stage.tab.js("refusal = null")
    stage.host.call("control_run", run_id=run_id, action="cancel")
    poll_until(lambda: stage.host.call("get_status", run_id=run_id)["structuredContent"]["status"] == "cancelled")

    gone = stage.show({"content": [], "structuredContent": {"run_id": "run-nobody"}})
    says(gone, "there is no run 'run-nobody'")
    assert gone.js("pending.size") == 0
    refused = stage.show({"content": [{"type": "text", "text": "ERROR missing_key: no key"}], "isError": True})
    says(refused, "ERROR missing_key: no key")
    busy = f"ERROR session_busy: {run_id} goes on in this session"
    refused = stage.show({"content": [{"type": "text", "text": busy}], "isError": True})
    says(refused, busy)
    assert "Message…" not in refused.js("document.body.innerText"), "nobody asked for the run that a refusal names"
    watched = stage.show(result, lacking=["serverTools"])
    watched.settled("document.querySelector('.pill') !== null")
    assert "Cancel…" not in watched.js("document.body.innerText")
