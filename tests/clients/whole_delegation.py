"""Claude Code and Codex, by their own settings after `massgen install`: list, start a named team, wait, read the
result and its difference, and apply it.
"""

import json
import re

from tests.clients.claude import ClaudeCode
from tests.clients.codex import Codex
from tests.clients.model_apis import Asked, Call, ModelApi, model_api
from tests.clients.places import OURS, Broken, Place, check_plan, hold, new_place, say, show_what_the_model_saw
from tests.harness import agent

BEFORE, AFTER = "def add(a, b):\n    return a - b\n", "def add(a, b):\n    return a + b\n"
SEARCH = "select:" + ",".join(
    f"mcp__massgen__{name}" for name in ("list_configs", "wait_run", "get_result", "apply_result")
)
WRITES = {"call": "write_file", "arguments": {"path": "shop/calc.py", "content": AFTER}}


class Delegates:
    """A model that goes through a delegation, step by step."""

    def __init__(self, place: Place) -> None:
        self._shop = place.work / "shop"
        self._shop.mkdir()
        (self._shop / "calc.py").write_text(BEFORE)
        self._team = place.home.config("team", agent("ada", WRITES, {"answer": "calc.py now adds."}))
        self._steps = ["ToolSearch", "list_configs", "start_run", "wait_run", "diff", "apply_result"]
        self.read: dict[str, str] = {}

    def __call__(self, asked: Asked) -> str | Call:
        if "ToolSearch" not in asked.tools and self._steps[0] == "ToolSearch":
            del self._steps[0]  # nothing is loaded late
        done = len(asked.results)
        if done:
            self.read[self._steps[done - 1]] = asked.results[-1]
        if done == len(self._steps):
            return "Applied."
        run_id = next(iter(re.findall(r"run-[a-z2-7]{20,}", self.read.get("start_run", ""))), "")
        match self._steps[done]:
            case "ToolSearch":
                return Call("ToolSearch", {"query": SEARCH, "max_results": 8})
            case "list_configs":
                return Call("list_configs", {})
            case "start_run":
                paths = [{"path": str(self._shop), "permission": "write"}]
                return Call("start_run", {"question": "Mend add.", "team": self._team, "context_paths": paths})
            case "diff":
                return Call("get_result", {"run_id": run_id, "view": "diff"})
            case "apply_result":
                return Call("apply_result", {"run_id": run_id, "dry_run": False})
            case tool:
                return Call(tool, {"run_id": run_id})

    @property
    def applied(self) -> bool:
        return (self._shop / "calc.py").read_text() == AFTER


def show() -> None:
    _claude_code()
    _codex()


def _claude_code() -> None:
    with new_place() as place:
        model = Delegates(place)
        with model_api(model) as api:
            claude = ClaudeCode(place, api, "mcp__massgen")
            claude.place.run(str(OURS), "install", "claude-code")
            claude.headless("Delegate this.")
        _show(api, model)
        hold(model.applied, "Claude Code: what the team changed is in the person's file")


def _codex() -> None:
    with new_place() as place:
        model = Delegates(place)
        with model_api(model) as api:
            codex = Codex(place, api, "")
            codex.place.run(str(OURS), "install", "codex")
            codex.exec("Delegate this.")
        _show(api, model)
        hold(not model.applied, f"Codex: nobody can be asked, so nothing is applied: {model.read['apply_result'][:80]}")


def _show(api: ModelApi, model: Delegates) -> None:
    show_what_the_model_saw(api)
    check_plan(api)
    for step, text in model.read.items():
        say(f"  read after {step}: {json.dumps(text)[:600]}")
    if "apply_result" not in model.read:
        raise Broken(f"the delegation ended after {list(model.read)}")
