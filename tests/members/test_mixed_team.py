"""A team of four kinds: an agent CLI over ACP, a model of an API, an AG2 agent, and a member of one's own. Each is a
double: the CLI of `tests.acp`, and a server of Chat Completions for the API and for AG2.
"""

import json
import re
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.acp.test_teams import Team
from tests.backends.ag2 import KEY, said, section, used
from tests.harness import TempHome, events_of, home, poll_until
from tests.interrupted import kill, log_directory, paid, started, the_only_run
from tests.members.test_adapters import poet, put_in
from tests.needs import needs

__all__ = ["home"]

FINAL = "All in all: forty-two."
ANSWER = "Forty-two, as the file says."


class _Model(BaseHTTPRequestHandler):
    """A model that answers, then votes for the CLI's answer; what it was asked for stands in `asked` of the server."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        offered = {tool["function"]["name"] for tool in body.get("tools", [])}
        asked = self.server.asked if isinstance(self.server, _Server) else []
        if "vote" in offered:
            asked.append("vote")
            said_of = json.dumps(body["messages"])
            chosen = re.findall(r"agent\d+", said_of[: said_of.rindex(ANSWER)])[-1]
            self.wfile.write(used("vote", reason="It says why.", agent_id=chosen, same_as=[]))
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


@needs("bwrap")
def test_four_kinds_of_members_share_a_run_with_checks_that_goes_on_after_a_kill_and_pays_nothing_twice(
    home: TempHome, tmp_path: Path
) -> None:
    project, gate = home.work / "project", home.work / "gate"
    project.mkdir()
    (project / "notes.txt").write_text("six times seven\n")
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
    home = home.with_variables(PYTHONPATH=str(put_in(tmp_path / "site")), MY_KEY=KEY)
    with model() as (api, asked_of_api), model() as (ag2, asked_of_ag2):
        team = Team(home, plan)
        members = json.loads(Path(team.config).read_text())["agents"][:1]
        gpt = {"type": "chatcompletion", "model": "m", "base_url": f"{api}/v1", "api_key_env": "MY_KEY"}
        members += [{"id": "gpt", "backend": gpt}, {"id": "ag", "backend": section(ag2)}, poet("poet", model="sonnet")]
        settings: dict[str, Any] = {
            "context_paths": [{"path": str(project), "permission": "write"}],
            "checks": ["grep 42 result.txt"],
            "decide": "vote",
        }
        team.config = team.home.config("config", *members, orchestrator=settings)
        with started(team.home, team.config) as massgen:
            directory = log_directory(massgen)
            poll_until(lambda: kinds(directory).count("vote_cast") == 3 and len(team.told("session")) == 2)
            kill(team.home)
        before = paid(directory)
        gate.touch()
        printed = team.run("--resume", str(the_only_run(team.home)["run_id"]))
    assert f"ANSWER_PREVIEW: {FINAL}" in printed
    events = events_of(directory)
    called = paid(directory)
    assert called[: len(before)] == before
    assert len(called) == len(set(called)), "no reply is there twice"
    assert [asked.count("answer") for asked in (asked_of_api, asked_of_ag2)] == [1, 1]
    assert [asked.count("vote") for asked in (asked_of_api, asked_of_ag2)] == [1, 1]
    assert len(team.told("session")) == 4, "to answer, to vote twice, since a kill was between, and to present"
    checked = {event["agent"]: event["outcomes"] for event in events if event.get("subject") == "answer"}
    assert sorted(checked) == ["agent_a", "agent_b", "agent_c", "agent_d"]
    assert [one["result"] for one in checked["agent_a"]] == ["passed"]
    assert kinds(directory).count("answer_submitted") == kinds(directory).count("vote_cast") == 4


def kinds(directory: Path) -> list[str]:
    return [str(event["type"]) for event in events_of(directory)]
