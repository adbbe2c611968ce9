"""The form that starts a run, empty or filled from an earlier one, in a real browser."""

import json
from pathlib import Path
from typing import Any

from tests.browser import Browser, Tab
from tests.harness import TempHome, agent
from tests.needs import needs
from tests.web.pages import Pages, pages
from tests.web.person import arrived, fill, fine, press, state, told

pytestmark = needs("chromium")


def offered(tab: Tab, name: str) -> list[str]:
    """The labels of the buttons below a field, those that are pressed with a mark."""
    box = f"document.querySelector('form').elements[{json.dumps(name)}].parentElement.nextElementSibling"
    return list(
        tab.js(
            f"[...{box}.querySelectorAll('button')]"
            ".map(one => (one.getAttribute('aria-pressed') === 'true' ? '* ' : '') + one.innerText)"
        )
    )


def fields(tab: Tab) -> dict[str, Any]:
    """What the form says, without what is empty."""
    found: dict[str, Any] = tab.js(
        "Object.fromEntries([...document.querySelector('form').elements].filter(one => one.name)"
        ".map(one => [one.name, one.type === 'checkbox' ? one.checked : one.value]))"
    )
    return {name: value for name, value in found.items() if value}


def project(home: TempHome) -> Path:
    """A directory with something to change and something that judges it."""
    place = home.work / "project"
    place.mkdir()
    (place / "Makefile").write_text("test:\n\tgrep -q two code\n")
    (place / "code").write_text("one\n")
    return place


def changing(home: TempHome) -> str:
    write = {"call": "write_file", "arguments": {"path": "project/code", "content": "two\n"}}
    return home.config("changing", agent("solo", write, {"answer": "Done."}))


def started(served: Pages, home: TempHome, place: Path) -> str:
    paths = [{"path": str(place), "permission": "write"}]
    asked = {"config": changing(home), "context_paths": paths, "checks": ["grep -q two code"], "max_seconds": 77}
    return str(served.tool("start_run", question="Change it.", wait_seconds=50, **asked)["run_id"])


def test_the_form_offers_models_directories_and_checks_and_says_what_a_run_costs_before_it_is_started(
    browser: Browser, home: TempHome
) -> None:
    place = project(home)
    with pages(home.with_variables(OPENAI_API_KEY="sk-test-of-the-form-0123456789")) as served:
        started(served, home, place)
        with browser.tab(served.address) as tab:
            tab.open(f"{served.base}/new")
            tab.settled(
                "document.querySelector('form .told').innerText.includes('default team, paid with your API key')"
            )
            assert "Estimate: usually $" in tab.js("document.querySelector('form .told').innerText")
            tab.settled("document.querySelectorAll('.picks')[1].childElementCount > 0")
            assert "Agent CLIs on this machine: claude_code" in tab.js("document.querySelector('form').innerText")
            assert [one.startswith("openai/") for one in offered(tab, "models")] == [True]
            assert offered(tab, "context_paths")[0] == str(place)
            tab.settled("document.querySelector('[name=team] option[value=scripted]') !== null")
            tab.js("document.querySelectorAll('.picks')[1].querySelector('button').focus()")
            tab.press("Enter", 13, text="\r")
            tab.settled("document.querySelectorAll('.picks')[2].childElementCount > 0")
            assert offered(tab, "checks") == ["make test"]
            tab.js("document.querySelectorAll('.picks')[2].querySelector('button').focus()")
            tab.press(" ", 32, text=" ")
            assert offered(tab, "checks") == ["* make test"]
            assert fields(tab) == {"context_paths": str(place), "checks": "make test"}
            fine(tab)
            fill(tab, question="What now?", team="scripted")
            tab.settled("document.querySelector('form .told').innerText.startsWith('scripted: ')")
            press(tab, "Show the plan")
            told(tab, "Check failed now: make test")
            press(tab, "make test")
            assert "checks" not in fields(tab)


def test_a_run_is_asked_again_as_it_was(browser: Browser, home: TempHome) -> None:
    place = project(home)
    with pages(home) as served, browser.tab(served.address) as tab:
        tab.open(f"{served.base}/runs/{started(served, home, place)}")
        state(tab, "✓ your check passes")
        tab.js("[...document.querySelectorAll('nav a')].find(one => one.innerText === 'Run again').click()")
        arrived(tab, "location.pathname === '/new' && document.querySelector('form') !== null")
        tab.settled("document.querySelector('form').elements.question.value !== ''")
        assert fields(tab) == {
            "question": "Change it.",
            "config": changing(home),
            "context_paths": str(place),
            "write": True,
            "checks": "grep -q two code",
            "max_seconds": "77",
        }
        fine(tab)
        press(tab, "Start")
        arrived(tab)
        state(tab, "✓ your check passes")


def test_the_team_of_a_run_that_is_asked_again_is_named_as_it_was(browser: Browser, home: TempHome) -> None:
    models = ["scripted/one", "scripted/two"]
    with pages(home) as served, browser.tab(served.address) as tab:
        ready = served.tool("start_run", question="By a ready team", team="scripted")["run_id"]
        named = served.tool("start_run", question="By models", models=models)["run_id"]
        for run_id, team in ((ready, {"team": "scripted"}), (named, {"models": "\n".join(models)})):
            tab.open(f"{served.base}/new?again={run_id}")
            tab.settled("document.activeElement.name === 'question'")
            said = fields(tab)
            assert said.pop("question").startswith("By ")
            assert said == team
        tab.open(f"{served.base}/new?again=run-x")
        told(tab, "Run not found. massgen may have deleted it because of its age")
        assert tab.violations_of_accessibility() == []


def test_the_next_turn_follows_up_on_a_run_and_goes_on_with_what_it_changed(browser: Browser, home: TempHome) -> None:
    place = project(home)
    with pages(home) as served, browser.tab(served.address) as tab:
        first = started(served, home, place)
        tab.open(f"{served.base}/runs/{first}")
        state(tab, "✓ your check passes")
        tab.js("[...document.querySelectorAll('nav a')].find(one => one.innerText === 'Follow up').click()")
        arrived(tab, "location.pathname === '/new' && document.querySelector('form') !== null")
        tab.settled("document.activeElement.name === 'question'")
        assert "question" not in fields(tab)
        fine(tab)
        fill(tab, question="And now?")
        tab.js("document.querySelector('form').elements.goOn.click()")
        press(tab, "Start")
        arrived(tab)
        state(tab, "✓ your check passes")
        run = home.run_directory(str(tab.js("location.pathname.split('/').at(-1)")))
        request = json.loads((run / "config.json").read_text())
        assert [turn["question"] for turn in request["history"]] == ["Change it."]
        assert request["begins_with"]["run_id"] == first
