"""Claude Code with the plugin: an idle model is given the result of its run, headless and on a terminal, also after a
kill.
"""

from tests.clients.claude import ClaudeCode
from tests.clients.model_apis import Asked, Call, ModelApi, model_api
from tests.clients.places import Broken, Place, check_plan, hold, new_place, say, show_what_the_model_saw, wait_for
from tests.harness import agent
from tests.terminal import Terminal

ANSWER = "Replace it piece by piece, behind a thin front."
RUN_SECONDS = 8
QUIET_SECONDS = 6
DELEGATE = "Delegate this."
SEARCH = {"query": "ask other models for a second opinion", "max_results": 3}
TOOLS = "mcp__plugin_massgen_massgen"


class Model:
    """Delegates a question when it is asked to, and otherwise says whether it has heard the answer."""

    def __init__(self, config: str) -> None:
        self._config = config
        self.delegated = 0
        self.idle = 0
        self._told = False

    def __call__(self, asked: Asked) -> str | Call:
        searched, self._told = self._told, asked.heard[-1] == DELEGATE
        if self._told or searched:
            if not any(name.endswith("__start_run") for name in asked.tools):
                late = self._told and any("__start_run" in text for text in asked.heard)
                # What is connected after the first turn is not loaded any more, only announced.
                return Call("ToolSearch", SEARCH) if late else "The server is not connected yet."
            self._told = False
            self.delegated += 1
            return Call("start_run", {"question": "Should we rewrite it or refactor it?", "config": self._config})
        if delivered(asked):
            return "I have heard the answer."
        self.idle += 1
        return "I wait for the team."


def delivered(asked: Asked) -> bool:
    """Whether the newest that the model heard is the answer, and no user or tool call brought it."""
    return ANSWER in asked.heard[-1] and asked.heard[-1] not in asked.results


def _team(place: Place) -> str:
    steps = ({"answer": ANSWER, "delay_seconds": RUN_SECONDS}, {"vote": "own", "reason": "It is the safest."})
    return place.home.config(
        "slow", agent("ada", *steps), agent("bo", {"answer": "Rewrite it."}, {"vote": ANSWER[:12]})
    )


def _told_by(asked: Asked) -> str:
    return "the hook" if "Its result, from get_result" in asked.heard[-1] else "the task"


def show() -> None:
    with new_place() as place:
        model = Model(_team(place))
        with model_api(model) as api:
            claude = ClaudeCode(place, api, TOOLS)
            claude.install_plugin()
            hold("plugin:massgen:massgen" in claude.command("mcp", "list"), "the installed plugin brings the server")
            say("claude -p")
            printed = _delegate_headless(claude, api, model)
            check_plan(api)
            _hold_delivered(api, model, "the model had ended its turn, and was given the answer")
            hold("I have heard the answer." in printed, "what is printed comes after it")
            say("claude -p, killed while the model is idle; then claude -p --continue")
            model.idle = 0
            with claude.in_background(DELEGATE) as process:
                wait_for(lambda: model.idle, "an idle model")
                process.kill()
            api.asked.clear()
            claude.headless("Go on.", "--continue")
            _hold_delivered(api, model, "when the next turn had ended, the model was given the answer")
    with new_place() as place:
        model = Model(_team(place))
        with model_api(model) as api:
            claude = ClaudeCode(place, api, TOOLS)
            claude.install_plugin()
            _on_terminal(claude, api, model)


def _on_terminal(claude: ClaudeCode, api: ModelApi, model: Model) -> None:
    say("claude, on a terminal")
    with claude.on_terminal() as window:
        _delegate(claude, window, model)
        claude.look(window, lambda: api.asked and delivered(api.asked[-1]), "the answer")
        _hold_delivered(api, model, "the idle model was woken with the answer")
        _hold_told_once(claude, window, api)
        say("killed while the model is idle, then claude --continue")
        model.idle = 0
        _delegate(claude, window, model)
        claude.look(window, lambda: model.idle, "an idle model")
        claude.look(window, lambda: False, "", seconds=2, or_fail=False)
        window.kill()
    asked = len(api.asked)
    with claude.on_terminal("--continue") as window:
        claude.look(window, lambda: len(api.asked) > asked and delivered(api.asked[-1]), "the answer")
        _hold_delivered(api, model, "the continued session was woken with the answer, nobody had typed")
        _hold_told_once(claude, window, api)
    check_plan(api)


def _delegate_headless(claude: ClaudeCode, api: ModelApi, model: Model) -> str:
    """What it printed. Asks until the server is there: the client does not wait for it."""
    for _ in range(10):
        api.asked.clear()
        printed = claude.headless(DELEGATE)
        if model.delegated:
            return printed
    raise Broken("the server of the plugin was never connected")


def _delegate(claude: ClaudeCode, window: Terminal, model: Model) -> None:
    """Ask until the server is there: the client does not wait for it."""
    before = model.delegated
    for _ in range(10):
        claude.say(window, DELEGATE)
        if claude.look(window, lambda: model.delegated > before, "", seconds=3, or_fail=False):
            return
    raise Broken("the server of the plugin was never connected")


def _hold_delivered(api: ModelApi, model: Model, told: str) -> None:
    hold(model.idle and delivered(api.asked[-1]), f"{told}, by {_told_by(api.asked[-1])}")
    show_what_the_model_saw(api)
    api.asked.clear()


def _hold_told_once(claude: ClaudeCode, window: Terminal, api: ModelApi) -> None:
    asked = len(api.asked)
    claude.look(window, lambda: len(api.asked) > asked, "", seconds=QUIET_SECONDS, or_fail=False)
    hold(len(api.asked) == asked, "it was told once")
