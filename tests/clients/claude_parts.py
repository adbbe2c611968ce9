"""Claude Code with the plugin: its subagent delegates and returns a paragraph, the commands apply and cancel runs, and
the status bar shows the runs that are at work.
"""

import json
import re
from pathlib import Path

from tests.clients.claude import ClaudeCode
from tests.clients.model_apis import Asked, Call, ModelApi, model_api
from tests.clients.places import PLUGIN, Place, check_plan, hold, new_place, say, tokens
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
        self._slow = place.home.config("slow", agent("ada", {"answer": "Later.", "delay_seconds": 600}))
        self.searched_by_subagent = False

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
        if request == "Delegate slowly.":
            arguments = {"question": "Is add right?", "team": self._slow}
            return results[-1] if results else Call("start_run", arguments)
        (run_id,) = set(RUN_ID.findall(request)) or set(RUN_ID.findall(" ".join(asked.heard)[-20_000:]))
        steps = {
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
        run_id = {"run_id": found[0]} if found else {}
        paths = [{"path": str(self.shop), "permission": "write"}]
        start = {"question": "Mend add.", "team": self._team, "context_paths": paths}
        said = _take_step(asked, asked.results, [("start_run", start), ("wait_run", run_id), ("get_result", run_id)])
        self.searched_by_subagent |= isinstance(said, Call) and said.tool == "ToolSearch"
        return said if isinstance(said, Call) else f"{PARAGRAPH}{found[0]}"


def _is_request(text: str) -> bool:
    beginnings = ("Ask the subagent.", "Delegate slowly.", "Apply the changes", "Yes, apply it.", "Stop this run")
    return text.strip().startswith(beginnings)


def _count_results_before(asked: Asked, request: str) -> int:
    """Return how many results of tools the model had when it was asked this."""
    place = len(asked.heard) - 1 - asked.heard[::-1].index(request)
    return sum(text in asked.results for text in asked.heard[:place])


def _take_step(asked: Asked, results: tuple[str, ...], steps: list[tuple[str, dict[str, object]]]) -> str | Call:
    """Call the next tool, after a search for it where it is not loaded."""
    done = sum("tool_reference" not in text and not text.startswith(SERVER) for text in results)
    if done >= len(steps):
        return results[-1]
    tool, arguments = steps[done]
    if any(name.endswith(f"__{tool}") for name in asked.tools):
        return Call(tool, arguments)
    return Call("ToolSearch", {"query": f"select:{SERVER}{tool}", "max_results": 1})


def show() -> None:
    with new_place() as place:
        model = Model(place)
        with model_api(model) as api:
            claude = ClaudeCode(place, api, TOOLS)
            claude.install_plugin()
            _show_subagent(claude, api, model)
            run_id = RUN_ID.findall(place.run("massgen", "runs"))[0]
            _show_apply(claude, api, model, run_id)
            _show_cancel(claude, api)
            _show_status_bar(claude)
            check_plan(api)


def _show_subagent(claude: ClaudeCode, api: ModelApi, model: Model) -> None:
    for _ in range(5):
        api.asked.clear()
        printed = claude.headless("Ask the subagent.")
        if PARAGRAPH in printed:
            break
        say(f"  {printed.strip()[:300]}")
    check_plan(api)
    hold(
        PARAGRAPH in printed, f"the subagent started a run, waited, read it and returned a paragraph: {printed[:120]!r}"
    )
    by_subagent = [asked for asked in api.asked if SUBAGENT in json.dumps(asked.body.get("system", ""))]
    parent = [asked for asked in api.asked if asked not in by_subagent][-1]
    hold(by_subagent, f"the subagent made {len(by_subagent)} requests")
    say(f"  it searched for its tools: {model.searched_by_subagent}; they were {', '.join(by_subagent[0].tools)}")
    read = " ".join(parent.results)
    hold("calc.py now adds." not in read, f"its parent read {tokens(read)} tokens: {read[:200]!r}")


def _show_apply(claude: ClaudeCode, api: ModelApi, model: Model, run_id: str) -> None:
    api.asked.clear()
    printed = claude.headless(f"/massgen:apply {run_id}")
    check_plan(api)
    hold(
        "return a - b" in (model.shop / "calc.py").read_text(),
        f"the command only shows what it would do: {printed[:200]!r}",
    )
    printed = claude.headless("Yes, apply it.", "--continue")
    check_plan(api)
    hold((model.shop / "calc.py").read_text() == AFTER, f"after a yes it is applied: {printed[:300]!r}")


def _show_cancel(claude: ClaudeCode, api: ModelApi) -> None:
    api.asked.clear()
    started = claude.headless("Delegate slowly.")
    check_plan(api)
    (run_id, *_) = RUN_ID.findall(started)
    printed = claude.headless(f"/massgen:cancel {run_id}")
    check_plan(api)
    states = claude.place.run("massgen", "runs", "--state", "cancelled")
    hold(run_id in states, f"the run is cancelled: {printed[:300]!r}")


def _show_status_bar(claude: ClaudeCode) -> None:
    (shown,) = re.findall(r"^\{\"statusLine.*\}$", (PLUGIN / "README.md").read_text(), re.MULTILINE)
    settings = Path(claude.place.environ["CLAUDE_CONFIG_DIR"]) / "settings.json"
    kept = json.loads(settings.read_text()) if settings.exists() else {}
    settings.write_text(json.dumps({**kept, **json.loads(shown)}))
    with claude.on_terminal() as window:
        claude.look(window, lambda: "massgen: 0 running" in window.text, "the status bar")
        line = next(line.strip() for line in window.text.splitlines() if "massgen: 0 running" in line)
        hold(line, f"the status bar says {line!r}")
