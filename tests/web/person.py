"""What a person does with a page, and what he waits for."""

import json
from contextlib import suppress

from tests.browser import Tab
from tests.harness import poll_until


def state(tab: Tab, words: str) -> None:
    """Wait until the page says so of the run."""
    tab.settled(f"(document.querySelector('header .pill') || {{}}).innerText === {json.dumps(words)}")


def press(tab: Tab, label: str) -> None:
    """Press the button with this label, once it is there and nothing else is under way."""
    tab.settled(
        f"window.pressed = [...document.querySelectorAll('button')].find(one => one.innerText === {json.dumps(label)}"
        " && !one.disabled && one.checkVisibility())"
    )
    tab.js("pressed.focus(); pressed.click()")


def told(tab: Tab, words: str) -> None:
    tab.settled(f"[...document.querySelectorAll('.told')].some(one => one.innerText.includes({json.dumps(words)}))")


def fill(tab: Tab, **fields: str) -> None:
    for name, text in fields.items():
        field = f"document.querySelector('form').elements[{json.dumps(name)}]"
        tab.js(f"{field}.value = {json.dumps(text)}; {field}.dispatchEvent(new Event('input', {{bubbles: true}}))")


def rows(tab: Tab, *questions: str) -> None:
    """Wait until these runs are listed, and no others."""
    tab.settled(
        f"[...document.querySelectorAll('.runs a')].map(one => one.innerText).join('|') === '{'|'.join(questions)}'"
    )


def arrived(tab: Tab, where: str = "location.pathname.startsWith('/runs/')") -> None:
    """Wait until the browser has gone to the page of a run, or to another one."""

    def there() -> bool:
        with suppress(AssertionError):  # the page that was asked is gone
            return bool(tab.js(f"{where} && document.readyState === 'complete'"))
        return False

    poll_until(there)


def fine(tab: Tab) -> None:
    """Whatever is shown is for everybody, asked nobody else for anything and ran nothing of anybody's."""
    assert tab.violations_of_accessibility() == []
    assert (tab.complaints(), tab.js("executed")) == ([], [])
