"""Claude Code with the plugin: its subagent delegates and returns a paragraph, the commands apply and cancel runs, and
the status bar shows the runs that are at work.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path

from tests.clients.claude import ClaudeCode
from tests.clients.model_apis import Asked, Call, Json, ModelApi, model_api
from tests.clients.places import PLUGIN, Place, check_plan, hold, new_place, say
from tests.clients.whole_delegation import AFTER, BEFORE, WRITES
from tests.harness import agent

TOOLS = "mcp__plugin_massgen_massgen,Task,Agent,ToolSearch"
SERVER = "mcp__plugin_massgen_massgen__"
SUBAGENT = "You get a second opinion from other models"
PARAGRAPH = "The team mends calc.py, nobody disagrees, it cost $0.00: "
RUN_ID = re.compile(r"run-[a-z2-7]{20,}")


class Model:
    """Works through the steps of what it was asked last, in the main conversation or as the subagent."""

    def __init__(self, place: Place) -> None:
        self.shop = place.work / "shop"
        self.shop.mkdir()
        (self.shop / "calc.py").write_text(BEFORE)
        self._team = place.home.config("team", agent("ada", WRITES, {"answer": "calc.py now adds."}))
        self.slow = place.home.config("slow", agent("ada", {"answer": "Later.", "delay_seconds": 600}))

    def __call__(self, asked: Asked) -> str | Call:
        if SUBAGENT in json.dumps(asked.body.get("system", "")):
            return self._as_subagent(asked)
        request = next(text for text in reversed(asked.heard) if text not in asked.results and _is_request(text))
        results = asked.results[_count_results_before(asked, request) :]
        if request == "Ask the subagent.":
            if told := [text for text in asked.heard if PARAGRAPH in text]:
                return told[-1]
            if results:
                return "I wait for the subagent."
            tool = "Agent" if "Agent" in asked.tools else "Task"
            arguments = {"description": "a second opinion", "prompt": "Is add right?"}
            return Call(tool, {**arguments, "subagent_type": "massgen:second-opinion"})
        (run_id,) = set(RUN_ID.findall(request)) or set(RUN_ID.findall(" ".join(asked.heard)[-20_000:]))
        steps: dict[str, list[tuple[str, Json]]] = {
            "Apply the changes": [("get_result", {"view": "diff"}), ("apply_result", {})],
            "Yes, apply it.": [("apply_result", {"dry_run": False})],
            "Stop this run": [("control_run", {"action": "cancel"}), ("wait_run", {})],
        }
        wanted = next(steps[beginning] for beginning in steps if request.strip().startswith(beginning))
        return _take_step(asked, results, [(tool, {"run_id": run_id, **more}) for tool, more in wanted])

    def _as_subagent(self, asked: Asked) -> str | Call:
        if not {"start_run", "ToolSearch"} & {name.rpartition("__")[2] for name in asked.tools}:
            return f"I have only {', '.join(asked.tools)}."  # the server is not connected yet
        found = RUN_ID.findall(" ".join(asked.results))
        run_id: Json = {"run_id": found[0]} if found else {}
        paths = [{"path": str(self.shop), "permission": "write"}]
        start: Json = {"question": "Mend add.", "team": self._team, "context_paths": paths}
        said = _take_step(asked, asked.results, [("start_run", start), ("wait_run", run_id), ("get_result", run_id)])
        return said if isinstance(said, Call) else f"{PARAGRAPH}{found[0]}"


def _is_request(text: str) -> bool:
    beginnings = ("Ask the subagent.", "Apply the changes", "Yes, apply it.", "Stop this run")
    return text.strip().startswith(beginnings)


def _count_results_before(asked: Asked, request: str) -> int:
    """Return how many results of tools the model had when it was asked this."""
    place = len(asked.heard) - 1 - asked.heard[::-1].index(request)
    return sum(text in asked.results for text in asked.heard[:place])


def _take_step(asked: Asked, results: tuple[str, ...], steps: list[tuple[str, Json]]) -> str | Call:
    """Call the next tool, after a search for it where it is not loaded."""
    ours = [text for text in results if text.startswith(("{", "ERROR"))]
    if len(ours) >= len(steps):
        return results[-1]
    tool, arguments = steps[len(ours)]
    if any(name.endswith(f"__{tool}") for name in asked.tools):
        return Call(tool, arguments)
    if len(results) > len(ours) + 3:
        return "The server is not connected yet."
    return Call("ToolSearch", {"query": f"select:{SERVER}{tool}", "max_results": 1})


def show() -> None:
    with new_place() as place:
        model = Model(place)
        with model_api(model) as api:
            claude = ClaudeCode(place, api, TOOLS)
            claude.install_plugin()
            _show_subagent(claude, api)
            run_id = RUN_ID.findall(place.run("massgen", "runs"))[0]
            _show_apply(claude, api, model, run_id)
            _show_cancel(claude, api, model)
            _show_status_bar(claude)
            check_plan(api)


def _try_until(act: Callable[[], bool]) -> bool:
    """Try it until the server is there: the client does not wait for it."""
    return any(act() for _ in range(6))


def _show_subagent(claude: ClaudeCode, api: ModelApi) -> None:
    def ask() -> bool:
        api.asked.clear()
        claude.headless("Ask the subagent.")
        check_plan(api)
        return any(PARAGRAPH in text for text in api.asked[-1].heard)

    hold(_try_until(ask), "the subagent started a run, waited, read it and returned a paragraph")
    by_subagent = [asked for asked in api.asked if SUBAGENT in json.dumps(asked.body.get("system", ""))]
    say(f"  in {len(by_subagent)} requests, with {', '.join(by_subagent[0].tools)}")
    read = " ".join(api.asked[-1].heard)
    hold("calc.py now adds." not in read, "its parent read nothing of the run but the paragraph")


def _show_apply(claude: ClaudeCode, api: ModelApi, model: Model, run_id: str) -> None:
    def apply() -> bool:
        printed = claude.headless(f"/massgen:apply {run_id}")
        check_plan(api)
        hold((model.shop / "calc.py").read_text() == BEFORE, "the command changes nothing before a yes")
        return "dry_run=fa" in printed

    hold(_try_until(apply), "it shows what apply_result would do")

    def agree() -> bool:
        claude.headless("Yes, apply it.", "--continue")
        check_plan(api)
        return (model.shop / "calc.py").read_text() == AFTER

    hold(_try_until(agree), "after a yes the change is in the file")


def _show_cancel(claude: ClaudeCode, api: ModelApi, model: Model) -> None:
    started = claude.place.run("massgen", "start", "--config", model.slow, "Is add right?", errors=True)
    run_id = RUN_ID.findall(started)[0]

    def cancel() -> bool:
        claude.headless(f"/massgen:cancel {run_id}")
        check_plan(api)
        return run_id in claude.place.run("massgen", "runs", "--state", "cancelled")

    hold(_try_until(cancel), "the command has cancelled the run")


def _show_status_bar(claude: ClaudeCode) -> None:
    (shown,) = re.findall(r"^\{\"statusLine.*\}$", (PLUGIN / "README.md").read_text(), re.MULTILINE)
    settings = Path(claude.place.environ["CLAUDE_CONFIG_DIR"]) / "settings.json"
    kept: Json = json.loads(settings.read_text()) if settings.exists() else {}
    settings.write_text(json.dumps({**kept, **json.loads(shown)}))
    with claude.on_terminal() as window:
        claude.look(window, lambda: "massgen: 0 running" in window.text, "the status bar")
        line = next(line.strip() for line in window.text.splitlines() if "massgen: 0 running" in line)
        hold(line, f"the status bar says {line!r}")
