"""The real Codex, Claude Code, opencode, Gemini CLI and Copilot CLI as members of a team, over ACP, in our enclosure:
each answers, has its answer checked, votes, wins and presents; gets no further than it may; and leaves nothing when it
is killed.
"""

import json
import os
import re
import secrets
import shutil
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from massgen_mcp.sandbox import interpreter
from tests.acp.test_enclosed import served
from tests.clients.model_apis import Asked, Call, Json, ModelApi, model_api
from tests.clients.places import BINARIES, Broken, Missing, Place, hold, new_place, say, wait_for
from tests.commands import run_command
from tests.harness import COMMAND_MODULE, agent, events_of
from tests.interrupted import kill, started

ANSWER, FINAL = "Forty-two, says the CLI.", "It is forty-two, as the CLI said."
KEY = "sk-not-a-key-of-anybody-0123456789"
ADDRESS = "127.0.0.2"
"""Of the double: what a CLI has at 127.0.0.1 is its own."""
SECRET = "what nobody is to see"
PROBED = re.compile(r"PROBED ((?:\w+=\w+ )+)END")

PROBES = """
import json, os, socket, subprocess, sys, urllib.request
aims = json.loads(sys.argv[1])
def tried(act):
    try:
        act()
        return "open"
    except BaseException:
        return "closed"
found = {
    "read": tried(lambda: open(aims["file"]).read()),
    "list": tried(lambda: os.listdir(aims["home"])),
    "write": tried(lambda: open(aims["new"], "w").write("x")),
    "variable": tried(lambda: os.environ["OTHER_API_KEY"]),
    "port": tried(lambda: socket.create_connection(("127.0.0.1", aims["port"]), timeout=5).close()),
    "host": tried(lambda: urllib.request.urlopen("http://127.0.0.1:%d/" % aims["port"], timeout=10).read()),
    "process": tried(lambda: open("/proc/%d/environ" % aims["pid"]).read()),
}
subprocess.Popen(["sleep", aims["sleep"]], start_new_session=True,
                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print("PROBED", *("%s=%s" % one for one in found.items()), "END")
if "by" in aims:
    body = json.dumps({"by": aims["by"], "found": found}).encode()
    urllib.request.urlopen(urllib.request.Request(aims["api"] + "/told", body), timeout=10)
"""
SHELLS: Mapping[str, str] = {
    "exec_command": "cmd",
    "shell_command": "command",
    "bash": "command",
    "run_shell_command": "command",
}
"""Tools of the CLIs' own that run a command: their names, and the argument that it is."""
ALSO: Mapping[str, Json] = {"bash": {"description": "Looks around."}}


@dataclass(frozen=True)
class Cli:
    """How a CLI is led to a local model."""

    program: str
    preset: str
    variables: Mapping[str, str]
    """With `@API@` for the double's address."""
    backend: Mapping[str, Any] = field(default_factory=dict[str, Any])
    has_shell: bool = False
    """One that works in the enclosure."""
    is_node: bool = True


def _codex() -> dict[str, str]:
    provider = {"name": "double", "base_url": "@API@/v1", "wire_api": "responses", "env_key": "OPENAI_API_KEY"}
    settings = {"model_provider": "double", "model": "gpt-5", "model_providers": {"double": provider}}
    return {"CODEX_CONFIG": json.dumps(settings), "MODEL_PROVIDER": "double", "OPENAI_API_KEY": KEY}


def _opencode() -> dict[str, str]:
    model = "claude-sonnet-4-5"
    options = {"baseURL": "@API@/v1", "apiKey": KEY}
    provider = {"npm": "@ai-sdk/anthropic", "options": options, "models": {model: {"name": "Claude"}}}
    settings = {"provider": {"anthropic": provider}, "model": f"anthropic/{model}", "small_model": f"anthropic/{model}"}
    offline = {"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"}
    return {"OPENCODE_CONFIG_CONTENT": json.dumps(settings), **offline}


def _gemini() -> dict[str, str]:
    return {"GOOGLE_GEMINI_BASE_URL": "@API@", "GEMINI_API_KEY": KEY}


def _copilot() -> dict[str, str]:
    offline = {"COPILOT_OFFLINE": "true", "COPILOT_AUTO_UPDATE": "false"}
    provider = {"COPILOT_PROVIDER_TYPE": "anthropic", "COPILOT_PROVIDER_BASE_URL": "@API@"}
    return {**offline, **provider}


CLIS: Mapping[str, Cli] = {
    "codex": Cli("codex-acp", "codex", _codex(), has_shell=True),
    "claude": Cli("claude-agent-acp", "claude_code", {"ANTHROPIC_BASE_URL": "@API@", "ANTHROPIC_API_KEY": KEY}),
    "opencode": Cli("opencode", "opencode", _opencode(), has_shell=True, is_node=False),
    "gemini": Cli("gemini", "gemini_cli", _gemini(), {"model": "gemini-2.5-pro"}),
    "copilot": Cli("copilot", "copilot", _copilot(), {"model": "claude-sonnet-4-5"}, has_shell=True),
}


class Model:
    """Tries the CLI's own shell, writes a file, answers, votes for itself, and presents."""

    def __init__(self, command: str) -> None:
        self._command = command
        self.waits: threading.Event | None = None
        """Before it answers, once it has tried the shell."""
        self.reached = threading.Event()

    def __call__(self, asked: Asked) -> str | Call:
        offered = {re.split("[_-]", name)[-1] for name in asked.tools}
        if not {"answer", "vote"} & offered or any(name.endswith("final_answer") for name in asked.tools):
            return _team(asked, "final_answer", {"text": FINAL})
        text = json.dumps(asked.body)
        if "vote" in offered and ANSWER in text:
            own = re.findall(r"agent\d+", text[: text.rindex(ANSWER)])[-1]
            return _team(asked, "vote", {"agent_id": own, "reason": "It is right.", "same_as": []})
        if not asked.results:
            return self._shell(asked)
        if self.waits is not None:
            self.reached.set()
            self.waits.wait()
        if len(asked.results) == 1:
            return _team(asked, "write_file", {"path": "project/result.txt", "content": "42\n"})
        return _team(asked, "new_answer", {"content": ANSWER})

    def _shell(self, asked: Asked) -> Call:
        for name, argument in SHELLS.items():
            if name in asked.tools:
                return Call(name, {argument: self._command, **ALSO.get(name, {})})
        return _team(asked, "list_files", {"path": "."})


def _team(asked: Asked, tool: str, arguments: Json) -> Call:
    """A call of the team's tool, where the CLI has one of the same name."""
    name = next((name for name in asked.tools if "team" in name and name.endswith((f"_{tool}", f"-{tool}"))), tool)
    return Call(name, arguments)


def show() -> None:
    chosen, skipped = os.environ.get("MEMBERS", " ".join(CLIS)).split(), 0
    for name in chosen:
        say(f"  {name}:")
        try:
            _show(name, CLIS[name])
        except Missing as error:
            say(f"  SKIPPED, NOTHING WAS SHOWN: {error}")
            skipped += 1
    if skipped == len(chosen):
        raise Missing("none of them is there")


def _show(name: str, cli: Cli) -> None:
    found = shutil.which(cli.program, path=f"{BINARIES}{os.pathsep}{os.environ['PATH']}")
    if found is None or shutil.which("bwrap") is None:
        raise Missing(f"{cli.program} and bubblewrap are needed: npm install --no-save --prefix tests/clients")
    with new_place() as place, served() as closed:
        user = Path(place.environ["HOME"])
        place.write("notes.txt", SECRET)
        sleep = str(10**9 + secrets.randbelow(10**8))
        outside = user.parent / "written.txt"
        aims: Json = {"file": str(user / "notes.txt"), "home": str(user), "new": str(outside), "port": closed}
        aims |= {"pid": os.getpid(), "sleep": sleep}
        model = Model(_command(aims))
        with model_api(model, ADDRESS) as api:
            at_work = _AtWork(cli, place, api, {**aims, "by": "process", "api": api.url})
            at_work.whole_run(name)
            at_work.probed()
            hold(not outside.exists(), "eight: nothing was written outside")
            hold(not _processes(sleep, api.url), "nothing of it is left after the run")
            model.waits = threading.Event()
            at_work.killed(model, sleep)
            model.waits.set()


def _command(aims: Json) -> str:
    return f"{interpreter()} -c {_quoted(PROBES)} {_quoted(json.dumps(aims))}"


def _quoted(text: str) -> str:
    escaped = text.replace("'", "'\\''")
    return f"'{escaped}'"


def _preload(aims: Json) -> str:
    """What has every process of Node run the probes as its own child."""
    arguments = json.dumps(["-c", PROBES, json.dumps(aims)])
    code = f"import {{ spawn }} from 'node:child_process'; spawn({json.dumps(interpreter())}, {arguments});"
    return f"--import=data:text/javascript,{quote(code, safe='')}"


def _processes(*marks: str) -> list[int]:
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                seen = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
                found += [int(entry.name)] if any(mark.encode() in seen for mark in marks) else []
        except OSError:
            pass
    return found


class _AtWork:
    """A team of the CLI and a scripted agent, with a project and a check."""

    def __init__(self, cli: Cli, place: Place, api: ModelApi, aims: Json) -> None:
        self._cli, self._api = cli, api
        variables = {key: value.replace("@API@", api.url) for key, value in cli.variables.items()}
        variables |= {"NODE_OPTIONS": _preload(aims)} if cli.is_node else {}
        self._home = place.home.with_variables(
            OTHER_API_KEY="sk-of-somebody-else-0123456789",
            PATH=f"{BINARIES}{os.pathsep}{place.environ['PATH']}",
            **variables,
        )
        project = place.work / "project"
        project.mkdir()
        (project / "notes.txt").write_text("six times seven\n")
        hosts = [api.url.removeprefix("http://")]
        backend = {"type": "acp", "preset": cli.preset, "env": sorted(variables), "hosts": hosts, **cli.backend}
        team = [{"id": "cli", "backend": backend}, agent("ada", {"answer": "The first."}, {"vote": "the CLI"})]
        settings: Json = {
            "context_paths": [{"path": str(project), "permission": "write"}],
            "checks": ["grep 42 result.txt"],
            "decide": "vote",
        }
        self._config = self._home.config("team", *team, orchestrator=settings)

    def whole_run(self, name: str) -> None:
        done = run_command(self._home, COMMAND_MODULE, "--automation", "--config", self._config, "What?", seconds=300)
        if self._api.failures or done.returncode:
            raise Broken(f"{self._api.failures}; {done.stdout}{done.stderr}")
        directory = max((self._home.work / ".massgen" / "massgen_logs").glob("log_*"))
        events = events_of(directory)
        own = [event for event in events if event.get("agent") == "agent_a"]
        checks = [one for event in own for one in event.get("outcomes", ()) if event.get("subject") == "answer"]
        hold([one["result"] for one in checks] == ["passed"], f"{name} answers, and its answer passes the check")
        hold("vote_cast" in [event["type"] for event in own], f"{name} votes")
        hold("WINNER: agent_a" in done.stdout and FINAL in done.stdout, f"{name} wins, and presents the final answer")
        for one in (event for event in own if event["type"] == "model_replied"):
            usage = one["usage"]
            how = "estimated" if usage["estimated"] else "at least" if usage["at_least"] else "counted"
            called = " ".join(call["name"] for call in one["tool_calls"])
            say(f"    {one['purpose']} {called}: {usage['input_tokens']} in, {how}; {one['seconds']:.2f} s")

    def probed(self) -> None:
        """What its own shell reached, and its own process."""
        results = "\n".join(text for asked in self._api.asked for text in asked.results)
        by_shell = PROBED.findall(results)
        if self._cli.has_shell:
            hold(by_shell, "its own shell works in the enclosure")
        for found in by_shell:
            _hold_closed("its own shell", dict(one.split("=") for one in found.split()))
        if self._cli.is_node:
            wait_for(lambda: self._api.told, "the probes of its own process")
            _hold_closed("its own process", self._api.told[0]["found"])
        hold(SECRET not in json.dumps([asked.body for asked in self._api.asked]), "no file of the user's was told")

    def killed(self, model: Model, sleep: str) -> None:
        with started(self._home, self._config) as massgen:
            wait_for(model.reached.is_set, "a request of its model")
            hold(_processes(sleep), "what it started is there while it works")
            kill(self._home)
            massgen.wait()
        wait_for(lambda: not _processes(sleep, self._api.url), "the end of everything that it started")
        say("  ok: killed, nothing is left of it")


def _hold_closed(who: str, found: Mapping[str, str]) -> None:
    hold(
        len(found) == 7 and set(found.values()) == {"closed"},
        f"{who}: {' '.join(f'{one}={how}' for one, how in found.items())}",
    )
