"""Each client starts a run, looks, waits, reads, starts another one and cancels it; every text that its model reads of
us is kept in `tests/clients/texts/`, one file for each client, and what a whole delegation costs in tokens is said.
"""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from tests.clients.claude import ClaudeCode
from tests.clients.codex import Codex
from tests.clients.delegation import PROGRAMS
from tests.clients.model_apis import Asked, Call, ModelApi, model_api
from tests.clients.places import OURS, Missing, Place, binary, check_plan, hold, new_place, say, tokens
from tests.commands import ROOT
from tests.harness import agent

TEXTS = Path(__file__).parent / "texts"
ANSWER = "Replace it piece by piece, behind a thin front."
STEPS = (
    "start_run",
    "get_status",
    "wait_run (timeout 0)",
    "wait_run",
    "get_result (votes)",
    "start_run (the second)",
    "control_run (cancel)",
    "wait_run (of the second)",
)
OURS_IN_TEXT = re.compile(r"start_run|wait_run|get_result|massgen-mcp|ask-other-models|mcp__\w*massgen")
TOOLS = ("start_run", "wait_run", "get_status", "get_result", "control_run")
LOADED = "select:" + ",".join(f"mcp__massgen__{tool}" for tool in TOOLS)
LOADED_OF_PLUGIN = LOADED.replace("mcp__massgen__", "mcp__plugin_massgen_massgen__")


class Delegates:
    """A model that plays `STEPS`, whatever it reads."""

    def __init__(self, place: Place, *, search: str = "") -> None:
        slow = {"answer": ANSWER, "delay_seconds": 4}
        votes = ({"vote": "own", "reason": "It is the safest."}, {"vote": ANSWER[:12]})
        self._teams = (
            place.home.config("slow", agent("ada", slow, votes[0]), agent("bo", {"answer": "Rewrite it."}, votes[1])),
            place.home.config("stuck", agent("ada", {"hang": True})),
        )
        self._search = search
        self._searched = False
        self._results = 0
        self._place = -1
        self.read: dict[str, str] = {}

    def __call__(self, asked: Asked) -> str | Call:
        if "ToolSearch" in asked.tools and not self._searched:
            self._searched = True
            return Call("ToolSearch", {"query": self._search, "max_results": 8})
        if len(asked.results) > self._results and 0 <= self._place < len(STEPS):
            self.read[STEPS[self._place]] = asked.results[-1]
        self._results = len(asked.results)
        if self._place + 1 >= len(STEPS):
            return f"The team says: {ANSWER}" if ANSWER in self.read.get("wait_run", "") else "I heard nothing."
        self._place += 1
        return self._call(self._place)

    def _call(self, place: int) -> Call:
        first, second = (
            next(iter(re.findall(r"run-[a-z2-7]{26}", self.read.get(step, ""))), "")
            for step in ("start_run", "start_run (the second)")
        )
        question: dict[str, Any] = {"question": "Should we rewrite it or refactor it?"}
        match STEPS[place]:
            case "start_run":
                return Call("start_run", {**question, "team": self._teams[0]})
            case "wait_run (timeout 0)":
                return Call("wait_run", {"run_id": first, "timeout_seconds": 0})
            case "get_result (votes)":
                return Call("get_result", {"run_id": first, "view": "votes"})
            case "start_run (the second)":
                return Call("start_run", {**question, "team": self._teams[1]})
            case "control_run (cancel)":
                return Call("control_run", {"run_id": second, "action": "cancel"})
            case "wait_run (of the second)":
                return Call("wait_run", {"run_id": second})
            case tool:
                return Call(tool, {"run_id": first})


def show() -> None:
    shown = 0
    for name, play in _CLIENTS.items():
        try:
            with new_place() as place:
                model = Delegates(place, search=LOADED_OF_PLUGIN if "plugin" in name else LOADED)
                with model_api(model) as api:
                    play(place, api)
        except Missing as error:
            say(f"  {name}: SKIPPED, NOTHING WAS SHOWN: {error}")
            continue
        check_plan(api)
        _keep(name, api, model)
        hold([*model.read] == [*STEPS], f"{name}: starts, looks, waits, reads, and cancels another one")
        hold(ANSWER in model.read["wait_run"], f"{name}: wait_run has the answer")
        hold('"cancelled"' in model.read[STEPS[-1]] or "cancelled" in model.read[STEPS[-1]], f"{name}: it is cancelled")
        shown += 1
    if not shown:
        raise Missing("none of them is there")


def _claude(*, plugin: bool) -> Callable[[Place, ModelApi], object]:
    def play(place: Place, api: ModelApi) -> object:
        claude = ClaudeCode(place, api, "mcp__plugin_massgen_massgen" if plugin else "mcp__massgen")
        if plugin:
            claude.install_plugin()
        else:
            claude.place.run(str(OURS), "install", "claude-code")
        return claude.headless("Delegate this.")

    return play


def _codex(*, plugin: bool) -> Callable[[Place, ModelApi], object]:
    def play(place: Place, api: ModelApi) -> object:
        codex = Codex(place, api, "")
        if plugin:
            codex.place.run(codex.program, "plugin", "marketplace", "add", str(ROOT))
            codex.place.run(codex.program, "plugin", "add", "massgen@massgen-mcp")
        else:
            codex.place.run(str(OURS), "install", "codex")
        return codex.exec("Delegate this.")

    return play


def _other(name: str) -> Callable[[Place, ModelApi], object]:
    def play(place: Place, api: ModelApi) -> object:
        client = PROGRAMS[name]
        program = binary(client.program)
        ready = client.prepare(place, api)
        ready.run(str(OURS), "install", name)
        return ready.run(program, *client.arguments, errors=True)

    return play


_CLIENTS: Mapping[str, Callable[[Place, ModelApi], object]] = {
    "claude-code": _claude(plugin=False),
    "claude-code-plugin": _claude(plugin=True),
    "codex": _codex(plugin=False),
    "codex-plugin": _codex(plugin=True),
    **{name: _other(name) for name in PROGRAMS},
}


def _keep(name: str, api: ModelApi, model: Delegates) -> None:
    """Write the file of this client, and say what its model had to read."""
    offered = _offered(api)
    said = [text for text in _texts_in(api.asked[0].body) if OURS_IN_TEXT.search(text)]
    said += [str(one["description"]) for one in _dicts_in(api.asked[0].body.get("tools", [])) if _is_group(one)]
    parts = [f"# What the model of {name} reads of massgen-mcp", "", "Written by `python -m tests.clients texts`.", ""]
    for text in said:
        parts += ["## Instructions and lists", "", "````text", _steady(_near(text)), "````", ""]
    for tool, text in offered.items():
        parts += [f"## Tool {tool}", "", "````json", _steady(text), "````", ""]
    for step, text in model.read.items():
        parts += [f"## Reply to {step}", "", "````text", _steady(text), "````", ""]
    TEXTS.mkdir(exist_ok=True)
    (TEXTS / f"{name}.md").write_text("\n".join(parts).rstrip() + "\n")
    replies = sum(tokens(text) for text in model.read.values())
    say(
        f"  {name}: tools {sum(map(tokens, offered.values())):,} tokens, replies {replies:,} in {len(model.read)} calls"
    )


def _is_group(one: dict[str, Any]) -> bool:
    """Whether it holds our tools, as Codex groups them; the instructions of the server are its description."""
    return "massgen" in str(one.get("name")) and "tools" in one and "description" in one


def _offered(api: ModelApi) -> dict[str, str]:
    """Our tools as the model was last offered them."""
    found: dict[str, str] = {}
    for asked in api.asked:
        for one in _dicts_in(asked.body.get("tools", [])):
            name = str(one.get("name", ""))
            if name.endswith(TOOLS) and ("description" in one):
                found[name] = json.dumps(one, ensure_ascii=False, indent=1)
    return found


def _dicts_in(value: object) -> list[dict[str, Any]]:
    if isinstance(value, dict):
        inside = [one for item in cast("dict[str, object]", value).values() for one in _dicts_in(item)]
        return [cast("dict[str, Any]", value), *inside]
    return [one for item in cast("list[object]", value) for one in _dicts_in(item)] if isinstance(value, list) else []


def _texts_in(body: dict[str, Any]) -> list[str]:
    """Every text of a request but for the tools."""

    def texts(value: object) -> list[str]:
        if isinstance(value, str):
            return [value]
        if isinstance(value, dict):
            value = [*cast("dict[str, object]", value).values()]
        return [one for item in cast("list[object]", value) for one in texts(item)] if isinstance(value, list) else []

    return texts({key: value for key, value in body.items() if key != "tools"})


def _near(text: str) -> str:
    """The lines that are of us, with their neighbours."""
    lines = text.splitlines()
    ours = [number for number, line in enumerate(lines) if re.search(OURS_IN_TEXT, line)]
    kept = sorted({near for number in ours for near in range(max(0, number - 1), min(len(lines), number + 2))})
    return "\n".join(lines[number] for number in kept)


def _steady(text: str) -> str:
    """The same in every run of this script: no ids, times and places."""
    for pattern, instead in (
        (r"run-[a-z2-7]{26}", "run-ID"),
        (r"/tmp/massgen-clients-[^/\s\"']+", "/PLACE"),  # noqa: S108 - a pattern
        (re.escape(str(ROOT)), "/REPOSITORY"),
        (r"20\d\d-\d\d-\d\d[T ][\d:.]+(Z|\+00:00)?", "TIME"),
        (r"Wall time: [\d.]+", "Wall time: N"),
        (r'("(?:elapsed_seconds|seconds)": ?)[\d.]+', r"\1N"),
        (r"\b\d+(\.\d+)? s\b", "N s"),
        (r'("?cursor"?:? ?)\d+', r"\1N"),
    ):
        text = re.sub(pattern, instead, text)
    return text
