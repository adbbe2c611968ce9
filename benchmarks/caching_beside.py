"""The input of one of our agents, of agents with a loop of their own, of mini-swe-agent and of the Claude Code CLI for
the same task, at Anthropic's prompt cache: `python -m benchmarks.caching_beside`. Linux only.

All of them talk to the same double of the Messages API, which orders the same commands of each, with outputs of known
sizes (`benchmarks.steps`), and then the end. The price is that of `benchmarks.caching`.

- Agents of ours: a model of the API, an AG2 agent (extra `ag2`), and the Claude Code CLI (extra `claude-code`). The
  last two build their requests themselves. The team of two answers and votes: each round is a conversation of its own.
- Members over ACP, with the caching that they do themselves: claude-agent-acp and opencode, from PATH or where
  `make clients` fetches them.
- mini-swe-agent runs where `MASSGEN_MINI_SWE_AGENT` names its command `mini`.
"""

import importlib.util
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from benchmarks.caching import MarkedCache, Row, best_price, messages_blocks, table
from benchmarks.dialects import DIALECTS, Played
from benchmarks.processes import environment, finish
from benchmarks.steps import STEPS, TASK, VARIABLE, command, project
from tests.clients.members import ADDRESS, CLIS
from tests.clients.places import with_node

MODEL = "claude-opus-5-5"
_END = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


def reply_to(request: dict[str, Any], number: int) -> Played:
    """The next command, by the commands that the conversation has; the end as each agent knows it."""
    tools = {tool["name"] for tool in request.get("tools", ())}
    step = 1 + json.dumps(request["messages"]).count('"type": "tool_use"')
    answers, votes = find_tool(tools, "new_answer"), find_tool(tools, "vote")
    shown = re.findall(r"agent\d+", json.dumps(request["messages"]))
    if votes is not None and shown:
        return Played(number, json.dumps({"agent_id": shown[-1], "reason": "It is right.", "same_as": []}), votes)
    runs = next(filter(None, (find_tool(tools, name) for name in ("run_command", "bash", "Bash"))), None)
    if runs is None:
        return Played(number, "Numbers")
    if step <= STEPS:
        return Played(number, json.dumps({"command": command(step)}), runs)
    if answers is not None:
        return Played(number, json.dumps({"content": "They are written down."}), answers)
    match runs:
        case "bash":
            return Played(number, json.dumps({"command": _END}), runs)
        case _:
            return Played(number, "They are written down.")


def find_tool(tools: set[str], name: str) -> str | None:
    """The tool of this name, by its full name: Claude Code puts the name of its server before it."""
    return next((tool for tool in sorted(tools) if tool == name or tool.endswith((f"__{name}", f"team_{name}"))), None)


def requests_of(run: Callable[[str], None], address: str = "127.0.0.1") -> list[dict[str, Any]]:
    """The bodies that came while it ran."""
    bodies: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if "count_tokens" in self.path:
                self._whole({"input_tokens": 100})
                return
            bodies.append(body)
            played = reply_to(body, len(bodies))
            if body.get("stream"):
                self.wfile.write(DIALECTS["/messages"].stream(played))
                return
            text = {"type": "text", "text": played.text}
            call = {"type": "tool_use", "id": f"call_{played.number}", "name": played.tool}
            content = text if played.tool is None else {**call, "input": json.loads(played.text)}
            stop = "end_turn" if played.tool is None else "tool_use"
            head = {"id": "msg", "type": "message", "role": "assistant", "model": MODEL, "stop_reason": stop}
            self._whole({**head, "content": [content], "usage": {"input_tokens": 100, "output_tokens": 10}})

        def _whole(self, reply: dict[str, Any]) -> None:
            sent = json.dumps(reply).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
            """Nothing."""

    server = ThreadingHTTPServer((address, 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        run(f"http://{address}:{server.server_port}")
    finally:
        server.shutdown()
    return bodies


Backend = Callable[[str], dict[str, Any]]
"""The backend of an agent, for the double's address."""


def api_backend(url: str) -> dict[str, Any]:
    return {"type": "claude", "model": MODEL, "base_url": url}


def ag2_backend(_url: str) -> dict[str, Any]:
    return {"type": "ag2", "agent_config": {"llm_config": {"api_type": "anthropic", "model": MODEL}}}


def claude_code_backend(_url: str) -> dict[str, Any]:
    return {"type": "claude_code", "model": MODEL}


AGENTS: dict[str, tuple[str, Backend]] = {
    "API": ("massgen_mcp", api_backend),
    "AG2": ("ag2", ag2_backend),
    "Claude Code": ("claude_agent_sdk", claude_code_backend),
}
"""Agents of a team: the package that each needs, and its backend."""
OVER_ACP = ("claude", "opencode")
"""CLIs that ask the Messages API."""


def _ours(program: str, directory: Path, backend: Backend, agents: int = 1) -> list[dict[str, Any]]:
    place = project(directory)

    def run(url: str) -> None:
        environ = {**environment(directory), "ANTHROPIC_API_KEY": "none", "ANTHROPIC_BASE_URL": url}
        asked = [program, "--automation", "--config", str(_write_team(directory, place, backend(url), agents)), TASK]
        finish(asked, directory=place, environ=environ, quiet=True)

    return requests_of(run)


def _over_acp(program: str, directory: Path, name: str, agents: int) -> list[dict[str, Any]]:
    place = project(directory)
    cli = CLIS[name]

    def run(url: str) -> None:
        variables = {key: value.replace("@API@", url) for key, value in cli.variables.items()}
        backend = {"type": "acp", "preset": cli.preset, "env": sorted(variables), **cli.backend}
        backend["hosts"] = [url.removeprefix("http://")]
        environ = with_node({**environment(directory), **variables})
        asked = [program, "--automation", "--config", str(_write_team(directory, place, backend, agents)), TASK]
        finish(asked, directory=place, environ=environ, quiet=True)

    return requests_of(run, ADDRESS)


def _write_team(directory: Path, place: Path, backend: dict[str, Any], agents: int) -> Path:
    team = directory / "team.yaml"
    one = {**backend, "enable_mcp_command_line": True}
    members = [{"id": f"member{number}", "backend": one} for number in range(agents)]
    settings = {"max_steps_per_round": STEPS + 5, "context_paths": [{"path": str(place), "permission": "write"}]}
    team.write_text(json.dumps({"agents": members, "orchestrator": settings, "budget": {"max_usd": 1000}}))
    return team


def _mini(program: str, directory: Path) -> list[dict[str, Any]]:
    place = project(directory)

    def run(url: str) -> None:
        environ = {**environment(directory), "ANTHROPIC_API_KEY": "none", "ANTHROPIC_API_BASE": url}
        environ |= {"MSWEA_CONFIGURED": "true", "MSWEA_COST_TRACKING": "ignore_errors"}
        asked = [program, "-y", "--exit-immediately", "-m", f"anthropic/{MODEL}", "-t", TASK, "-l", "0"]
        asked += ["-o", str(directory / "trajectory.json"), "-c", "mini.yaml"]
        finish(asked, directory=place, environ=environ, quiet=True)

    return requests_of(run)


def _claude_code(program: str, directory: Path) -> list[dict[str, Any]]:
    place = project(directory)

    def run(url: str) -> None:
        quiet = {"DISABLE_AUTOUPDATER": "1", "DISABLE_TELEMETRY": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
        environ = {**environment(directory), **quiet, "ANTHROPIC_API_KEY": "none", "ANTHROPIC_BASE_URL": url}
        asked = [program, "-p", TASK, "--model", MODEL, "--allowedTools", "Bash"]
        finish(asked, directory=place, environ=environ, quiet=True)

    return requests_of(run)


def priced(bodies: list[dict[str, Any]]) -> Row:
    cache = MarkedCache()
    plain = [list(messages_blocks(body)) for body in bodies]
    for blocks in plain:
        cache.ask(blocks, "", keeps_end=True)
    return Row(cache.bill, best_price(plain, cache.bill.write_price))


def describe_marks(body: dict[str, Any]) -> str:
    """Say where a request has marks, by the roles of the blocks."""
    marked = (block for block in messages_blocks(body) if block.mark)
    return ", ".join(f"{block.text.partition('{')[0]} {block.mark}" for block in marked) or "none"


def main() -> None:
    ours = shutil.which("massgen", path=str(Path(sys.executable).parent))
    if ours is None:
        raise SystemExit("the command massgen is not installed beside this Python")
    with tempfile.TemporaryDirectory(prefix="massgen-mcp-caching-") as directory:
        found = _run_members(ours, Path(directory))
        found |= _run_others(Path(directory))
    rows = ((name, "Anthropic", priced(bodies)) for name, bodies in found.items())
    print(f"{STEPS} commands for each agent\n\n{table(rows)}\n\nMarks of the last request but one:")
    for name, bodies in found.items():
        print(f"{name}: {describe_marks(bodies[-2])}")


def _run_members(ours: str, directory: Path) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for name, (package, backend) in AGENTS.items():
        if importlib.util.find_spec(package) is None:
            print(f"{name.upper()} IS NOT MEASURED: the package {package} is not installed")
            continue
        for agents in (1, 2):
            run = f"{agents} x {name}"
            found[run] = _ours(ours, directory / run.replace(" ", "-"), backend, agents)
    for name in OVER_ACP:
        if shutil.which(CLIS[name].program, path=with_node(dict(os.environ))["PATH"]) is None:
            print(f"{name.upper()} OVER ACP IS NOT MEASURED: its command {CLIS[name].program} is not there")
            continue
        for agents in (1, 2):
            found[f"{agents} x {name}, ACP"] = _over_acp(ours, directory / f"{name}-{agents}", name, agents)
    return found


def _run_others(directory: Path) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    mini = os.environ.get(VARIABLE)
    if mini and Path(mini).is_file():
        found["mini-swe-agent"] = _mini(mini, directory / "mini")
    else:
        print(f"MINI-SWE-AGENT IS NOT MEASURED: {VARIABLE} does not name its command `mini`")
    if bundled := _bundled_claude():
        found["Claude Code CLI alone"] = _claude_code(bundled, directory / "claude")
    else:
        print("CLAUDE CODE IS NOT MEASURED: the package claude-agent-sdk is not installed")
    return found


def _bundled_claude() -> str | None:
    try:
        import claude_agent_sdk
    except ImportError:
        return None
    program = Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude"
    return str(program) if program.is_file() else None


if __name__ == "__main__":
    main()
