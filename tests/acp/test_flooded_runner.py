"""A run whose agent CLI floods the process that executes runs: another run there ends as always, and little is kept.
The CLI is a fake one, in its enclosure.
"""

import json
import re
import shutil
from pathlib import Path
from typing import Any

from massgen_mcp.sandbox import SCRATCH
from tests.acp.acting import FAKE
from tests.acp.test_teams import ANSWER, FINAL, PLAN
from tests.harness import RUNNER_MODULE, TempHome, agent, call, events_of, happened, home, wait_until
from tests.needs import needs

__all__ = ["home"]

MAX_MB = 300
FLOOD = """
import glob, os, socket, threading
lines = [open(one).read().split(chr(0)) for one in glob.glob("/proc/[0-9]*/cmdline")]
word = next(line for line in lines if "team" in line)[-2].encode()
os.chdir("/agent")

def send(begin, more, times):
    made = socket.socket(socket.AF_UNIX)
    made.settimeout(3)
    try:
        made.connect("team")
        made.sendall(begin)
        for _ in range(times):
            made.sendall(more)
    except OSError:
        return
    kept.append(made)

def relayed():
    made = socket.socket()
    made.settimeout(3)
    try:
        made.connect(("127.66.0.2", 443))
    except OSError:
        return
    kept.append(made)

kept = []
asks = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}' + bytes([10])
calls = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"list_files"}}' + bytes([10])
ways = [(send, b"", b"x" * 1048576, 15)] * 150 + [(send, word + bytes([10]), b"x" * 1048576, 15)] * 50
ways += [(send, word + bytes([10]), asks * 1000, 200)] * 50
ways += [(send, word + bytes([10]), b"".join(calls % n for n in range(1000)), 20)] * 20
ways += [(relayed,)] * 300
threads = [threading.Thread(target=way, args=given) for way, *given in ways]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
found = len(kept)
"""


def flooding_team(home: TempHome) -> str:
    program = home.work / "program" / "fake_agent.py"
    program.parent.mkdir()
    shutil.copy(FAKE, program)
    cli: dict[str, Any] = {"type": "acp", "command": [str(program)], "env": ["FAKE_PLAN", "FAKE_LOG"]}
    cli |= {"enclosure": "required", "hosts": ["api.example.com:443"]}
    return home.config(
        "flooding", {"id": "cody", "backend": cli}, agent("ada", {"answer": "Forty-one."}, {"vote": "two"})
    )


@needs("bwrap")
async def test_while_a_cli_floods_another_run_of_its_runner_ends_as_always(home: TempHome) -> None:
    plan = {**PLAN, "answer": [{"probe": [["run", FLOOD]]}, *PLAN["answer"]]}
    there = home.with_variables(FAKE_PLAN=json.dumps(plan), FAKE_LOG=f"{SCRATCH}/log")
    calm = [agent(name, {"answer": f"It is {name}."}, {"vote": "ada"}) for name in ("ada", "bo", "cyd")]
    teams = flooding_team(there), there.config("calm", *calm)
    async with there.client() as client:
        flooding = (await call(client, "start_run", question="Flood it.", team=teams[0]))["run_id"]
        await wait_until(lambda: happened(there.run_directory(flooding), "model_call_started"))
        ended: list[dict[str, Any]] = []
        for _ in range(3):
            other = (await call(client, "start_run", question="What is it?", team=teams[1]))["run_id"]
            ended.append(await whole_run(client, other))
            assert not troubles(there.run_directory(other))
        flooded = await whole_run(client, flooding)
        peaks = [read_peak(pid) for pid in there.processes(RUNNER_MODULE)]
    assert [one["answer"] for one in ended] == ["It is ada."] * 3
    assert flooded["answer"] in (FINAL, ANSWER, "Forty-one."), "the flood may have cost the CLI its own connection"
    events = events_of(there.run_directory(flooding))
    came_to_end = any(event["type"] == "text_delta" and event["text"].startswith('["open: ') for event in events)
    calls = sum(event["type"] == "tool_finished" for event in events)
    is_cut_off = any(event["type"] == "agent_dropped" and event["agent"] == "cody" for event in events)
    assert came_to_end or calls >= 400 or is_cut_off, "the flood ended, or met a limit, or cost its connection"
    assert 0 < max(peaks) < MAX_MB


def read_peak(pid: int) -> int:
    """Return the largest memory that a process has had, in MB."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) // 1024 if found else 0


async def whole_run(client: Any, run_id: str) -> dict[str, Any]:
    while (await call(client, "wait_run", run_id=run_id, timeout_seconds=45)).get("state") == "running":
        pass
    return await call(client, "get_result", run_id=run_id)


def troubles(directory: Path) -> list[str]:
    """What a run that notices nothing does not record."""
    odd = {"model_call_failed", "model_call_retried", "agent_dropped", "server_lost", "run_resumed", "run_failed"}
    return [event["type"] for event in events_of(directory) if event["type"] in odd]
