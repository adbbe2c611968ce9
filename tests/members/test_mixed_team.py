"""A team of four kinds: Codex over ACP, a model of an API, an AG2 coder, and a member of one's own with its own loop.
Models are doubles; Codex is the real one with a double of its API where it is installed, and always once a fake one.
"""

import json
import re
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.acp.test_teams import Team
from tests.backends.ag2 import KEY, said, section, used
from tests.clients.members import CLIS
from tests.clients.model_apis import Asked, Call, model_api
from tests.clients.places import BINARIES
from tests.commands import run_command
from tests.harness import COMMAND_MODULE, TempHome, events_of, home, poll_until
from tests.interrupted import kill, log_directory, paid, started, the_only_run
from tests.members.test_adapters import OWN_LOOP, put_in
from tests.needs import needs

__all__ = ["home"]

FINAL = "All in all: forty-two."
ANSWER = "Forty-two, as the file says."
EXECUTOR = {"type": "LocalCommandLineCodeExecutor", "timeout": 60, "work_dir": "."}


class _Model(BaseHTTPRequestHandler):
    """A model that writes code, if it is a coder, answers, then votes for the CLI's answer. The server has in `asked`
    what it was asked for.
    """

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        offered = {tool["function"]["name"] for tool in body.get("tools", [])}
        asked = self.server.asked if isinstance(self.server, _Server) else []
        if "vote" in offered:
            asked.append("vote")
            said_of = json.dumps(body["messages"])
            chosen = re.findall(r"agent\d+", said_of[: said_of.rindex(ANSWER)])[-1]
            self.wfile.write(used("vote", reason="It says why.", agent_id=chosen, same_as=[]))
        elif "You are a coder." in json.dumps(body) and "What came of your code" not in json.dumps(body) and offered:
            asked.append("code")
            self.wfile.write(said({"content": "```sh\necho 42 > project/result.txt\n```"}))
        elif "new_answer" in offered:
            asked.append("answer")
            self.wfile.write(used("new_answer", content="Forty-one."))
        else:
            asked.append("present")
            self.wfile.write(said({"content": FINAL}))
        self.close_connection = True

    def do_GET(self) -> None:
        self.send_error(404)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the library's
        """It says nothing."""


class _Server(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Model)
        self.asked: list[str] = []


@contextmanager
def model() -> Generator[tuple[str, list[str]]]:
    """Its address, and what it was asked for."""
    with _Server() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", server.asked
        server.shutdown()


class _Codex:
    """The model behind the real Codex: as the fake one does it."""

    def __init__(self, gate: Path) -> None:
        self._gate = gate
        self.votes = 0

    def __call__(self, asked: Asked) -> Call:
        text = json.dumps(asked.body)
        if any(name.endswith("final_answer") for name in asked.tools):
            return Call("final_answer", {"text": FINAL})
        if any(name.endswith("vote") for name in asked.tools) and ANSWER in text:
            self.votes += 1
            while not self._gate.exists():
                time.sleep(0.05)
            own = re.findall(r"agent\d+", text[: text.rindex(ANSWER)])[-1]
            return Call("vote", {"agent_id": own, "reason": "It holds.", "same_as": []})
        if not asked.results:
            return Call("write_file", {"path": "project/result.txt", "content": "42\n"})
        return Call("new_answer", {"content": ANSWER})


@needs("bwrap")
@pytest.mark.skipif(not (BINARIES / "codex-acp").exists(), reason="THE REAL CODEX IS NOT INSTALLED: make clients")
def test_the_real_codex_is_one_of_them(home: TempHome, tmp_path: Path) -> None:
    gate = home.work / "gate"
    model_of_codex = _Codex(gate)
    with model_api(model_of_codex, "127.0.0.2") as api:
        cli = CLIS["codex"]
        variables = {key: value.replace("@API@", api.url) for key, value in cli.variables.items()}
        home = home.with_variables(PATH=f"{BINARIES}:{home.environ['PATH']}", **variables)
        backend = {"type": "acp", "preset": "codex", "env": [*variables], "hosts": [api.url.removeprefix("http://")]}
        check_mixed(home, tmp_path, {"id": "codex", "backend": backend}, lambda: model_of_codex.votes == 1, gate)


@needs("bwrap")
def test_four_kinds_of_members_share_a_run_with_checks_that_goes_on_after_a_kill_and_pays_nothing_twice(
    home: TempHome, tmp_path: Path
) -> None:
    gate = home.work / "gate"
    write = {"call": "write_file", "arguments": {"path": "project/result.txt", "content": "42\n"}}
    plan: dict[str, Any] = {
        "mark": ANSWER,
        "answer": [write, {"call": "new_answer", "arguments": {"content": ANSWER}}],
        "vote": [
            {"await": str(gate)},
            {"call": "vote", "arguments": {"agent_id": "OWN", "reason": "It holds.", "same_as": []}},
        ],
        "present": [{"say": FINAL}],
    }
    team = Team(home, plan)
    codex = json.loads(Path(team.config).read_text())["agents"][0]
    check_mixed(team.home, tmp_path, codex, lambda: len(team.told("session")) == 2, gate)
    assert len(team.told("session")) == 4, "to answer, to vote twice, since a kill was between, and to present"


def check_mixed(
    home: TempHome, tmp_path: Path, codex: dict[str, Any], codex_votes: Callable[[], bool], gate: Path
) -> None:
    """Killed while `codex_votes`, which it does not get to the end of before there is the gate."""
    project = home.work / "project"
    project.mkdir()
    (project / "notes.txt").write_text("six times seven\n")
    home = home.with_variables(PYTHONPATH=str(put_in(tmp_path / "site", OWN_LOOP)), MY_KEY=KEY)
    with model() as (api, asked_of_api), model() as (ag2, asked_of_ag2):
        coder = section(ag2)
        coder["agent_config"] |= {"code_execution_config": {"executor": EXECUTOR}}
        free = {"input_usd_per_million": 0, "output_usd_per_million": 0}  # else it waits for what the others set aside
        clerk = {"type": "clerk", "writes": {"project/result.txt": "42"}, "price": free}
        gpt = {"type": "chatcompletion", "model": "m", "base_url": f"{api}/v1", "api_key_env": "MY_KEY"}
        backends = {"gpt": gpt, "coder": coder, "clerk": clerk}
        members = [codex, *({"id": name, "backend": backend} for name, backend in backends.items())]
        settings: dict[str, Any] = {
            "context_paths": [{"path": str(project), "permission": "write"}],
            "checks": ["grep 42 result.txt"],
            "decide": "vote",
        }
        config = home.config("config", *members, orchestrator=settings)
        with started(home, config) as massgen:
            directory = log_directory(massgen)
            poll_until(lambda: kinds(directory).count("vote_cast") == 3 and codex_votes())
            kill(home)
        before = paid(directory)
        gate.touch()
        run_id = str(the_only_run(home)["run_id"])
        done = run_command(home, COMMAND_MODULE, "--automation", "--resume", run_id, seconds=120)
    assert f"ANSWER_PREVIEW: {FINAL}" in done.stdout, done.stdout + done.stderr
    events = events_of(directory)
    called = paid(directory)
    assert called[: len(before)] == before
    assert len(called) == len(set(called)), "no reply is there twice"
    assert [asked.count("answer") for asked in (asked_of_api, asked_of_ag2)] == [1, 1]
    assert [asked.count("vote") for asked in (asked_of_api, asked_of_ag2)] == [1, 1]
    assert asked_of_ag2[:1] == ["code"], "the coder's code was run"
    checked = {event["agent"]: event["outcomes"] for event in events if event.get("subject") == "answer"}
    assert sorted(checked) == ["agent_a", "agent_b", "agent_c", "agent_d"]
    results = {name: [one["result"] for one in outcomes] for name, outcomes in checked.items()}
    assert results == {name: [] if name == "agent_b" else ["passed"] for name in checked}, "of files"
    assert kinds(directory).count("answer_submitted") == kinds(directory).count("vote_cast") == 4


def kinds(directory: Path) -> list[str]:
    return [str(event["type"]) for event in events_of(directory)]
