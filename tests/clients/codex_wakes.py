"""Codex, whose turn has ended, is given the result of its run by the hook of `massgen install codex --hook` or of
the plugin, once a person has trusted it in Codex's own window: on a terminal, where waiting can be interrupted, and
headless after that.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager

from tests.clients.codex import Codex
from tests.clients.model_apis import Asked, Call, ModelApi, model_api
from tests.clients.places import (
    OURS,
    Broken,
    Place,
    check_plan,
    hold,
    new_place,
    say,
    show_what_the_model_saw,
    wait_for,
)
from tests.commands import ROOT
from tests.harness import agent
from tests.terminal import Terminal

ANSWER = "Replace it piece by piece, behind a thin front."
DELEGATE, LONG = "Delegate this.", "Delegate this too."
TRUST = "2. Trust all and continue"
POINTER = "\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK}"
INPUT = "Ask Codex to do anything"
RUN_SECONDS = 4
HEARD = "I have heard the answer."


class Model:
    """Delegates a question, ends its turn, and says when it is given the answer."""

    def __init__(self, place: Place) -> None:
        slow = {"answer": ANSWER, "delay_seconds": RUN_SECONDS}
        self._teams = {
            DELEGATE: place.home.config("slow", agent("ada", slow)),
            LONG: place.home.config("stuck", agent("ada", {"hang": True})),
        }
        self.idle = 0

    def __call__(self, asked: Asked) -> str | Call:
        newest = asked.heard[-1]
        if newest in self._teams:
            return Call("start_run", {"question": "Should we rewrite it or refactor it?", "team": self._teams[newest]})
        if ANSWER in newest:
            return HEARD
        self.idle += 1
        return "I wait for the team."


def show() -> None:
    _show("massgen install codex --hook", lambda codex: codex.place.run(str(OURS), "install", "codex", "--hook"))
    _show("the plugin", _add_plugin)


def _add_plugin(codex: Codex) -> None:
    codex.place.run(codex.program, "plugin", "marketplace", "add", str(ROOT))
    codex.place.run(codex.program, "plugin", "add", "massgen@massgen-mcp")


def _show(told: str, add: Callable[[Codex], object]) -> None:
    say(f"by {told}:")
    with new_place() as place:
        model = Model(place)
        with model_api(model) as api:
            trusted = f'[projects."{place.work}"]\ntrust_level = "trusted"\n'
            codex = Codex(place, api, trusted)
            add(codex)
            _hold_not_woken_before_trust(codex, api, model)
            _on_terminal(codex, api, model)
            say("codex exec, after the hook was trusted")
            printed = codex.exec(DELEGATE)
            _hold_delivered(api, model, "the turn went on with the answer")
            hold(HEARD in printed, "what is printed comes after it")
            check_plan(api)


def _hold_not_woken_before_trust(codex: Codex, api: ModelApi, model: Model) -> None:
    say("codex exec, before the hook was trusted")
    printed = codex.exec(DELEGATE)
    hold(model.idle == 1 and HEARD not in printed, "nothing woke it")
    hold("You won't be woken here" in api.asked[-1].results[-1], "and the reply had said so")
    _forget(api, model)


def _on_terminal(codex: Codex, api: ModelApi, model: Model) -> None:
    say("codex, on a terminal")
    with _window(codex) as window:
        _look(window, lambda: TRUST in window.text, "the question whether the hooks are trusted")
        window.type("2")
        _look(window, lambda: f"{POINTER} {TRUST}" in window.text, "the choice")
        window.type("\r")
        _say(window, DELEGATE)
        _look(window, lambda: HEARD in window.text, "the answer")
        _hold_delivered(api, model, "a person trusted the hook once, and the model was given the answer")
        _say(window, LONG)
        _look(window, lambda: model.idle, "the end of the turn")
        hold("you will be woken" in api.asked[-1].results[-1], "the hook ran in this session, and the reply said so")
        _look(window, lambda: "Press Esc to stop waiting" in window.text, "the hook that waits")
        window.type("\x1b")
        _look(window, lambda: "Press Esc to stop waiting" not in window.text, "the end of waiting")
        hold(True, "Esc ended the waiting")
        _forget(api, model)
        newest = max(codex.place.home.runs, key=lambda run: (run / "config.json").stat().st_mtime_ns)
        codex.place.run(str(OURS), "cancel", newest.name)


@contextmanager
def _window(codex: Codex) -> Generator[Terminal]:
    window = Terminal([codex.program], codex.place.home, 120, 40)
    try:
        yield window
    finally:
        if window.child.isalive():
            window.kill()
        window.child.close()


def _say(window: Terminal, line: str) -> None:
    _look(window, lambda: INPUT in window.text or f"{POINTER} " in window.text, "the input line")
    window.type(line)
    _look(window, lambda: line in window.text, "what was typed")
    window.type("\r")


def _look(window: Terminal, seen: Callable[[], object], told: str) -> None:
    if not wait_for(seen, told, seconds=60, or_fail=False, meanwhile=lambda: window.pump(0.1)):
        raise Broken(f"{told} did not come; the window:\n{window.text}")


def _hold_delivered(api: ModelApi, model: Model, told: str) -> None:
    hold(model.idle == 1 and ANSWER in api.asked[-1].heard[-1], told)
    hold(api.asked[-1].heard[-1] not in api.asked[-1].results, "no tool call brought it")
    show_what_the_model_saw(api)
    _forget(api, model)


def _forget(api: ModelApi, model: Model) -> None:
    api.asked.clear()
    model.idle = 0
