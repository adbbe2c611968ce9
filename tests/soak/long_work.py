"""Work of hundreds of steps with a model that reads less than its tools return, and whose runner is killed."""

import json
import signal
from itertools import count
from typing import Any

from massgen_mcp.run_state.status import TERMINAL_STATES
from tests.harness import RUNNER_MODULE, TempHome, call, end, events_of
from tests.raw_double import Seen, answering
from tests.small_window import SmallWindow, tokens
from tests.wires.dialects import Chat

OUTPUT = 48 * 1024
"""Bytes that each step reads."""


async def long_work(home: TempHome, *, windows: tuple[int, ...], steps: int, kills: int) -> str:
    """For each window (in tokens): a run of one agent that reads `OUTPUT` bytes in each of `steps` steps, writes a file
    and answers; its runner is killed `kills` times. Returns the figures.
    """
    told = [await _one(home, window, steps, kills) for window in windows]
    return "; ".join(told)


async def _one(home: TempHome, window: int, steps: int, kills: int) -> str:
    project = home.work / f"project-{window}"
    project.mkdir()
    (project / "big.txt").write_text("".join(f"line {place:04}: {'x' * 36}\n" for place in range(OUTPUT // 48)))
    name = project.name

    taken = count()

    def plan(messages: list[dict[str, Any]], number: int) -> Chat:
        step, call_id = next(taken), f"c{number}"
        del messages
        if step < steps:
            return Chat().call("read_file", json.dumps({"path": f"{name}/big.txt"}), call_id=call_id)
        if step == steps:
            return Chat().call(
                "write_file", json.dumps({"path": f"{name}/found.txt", "content": "42\n"}), call_id=call_id
            )
        return Chat().call("new_answer", json.dumps({"content": "42"}), call_id=call_id)

    model = SmallWindow(window, plan)
    due = [steps * number // (kills + 1) for number in range(1, kills + 1)]

    def respond(seen: Seen, number: int) -> bytes:
        if due and len(model.taken) >= due[0]:
            del due[0]
            for pid in home.processes(RUNNER_MODULE):
                end(pid, signal.SIGKILL)
        return model.respond(seen, number)

    async with answering(respond) as double, home.client() as client:
        config = home.config(
            f"long-{window}",
            {"id": "solo", "backend": {"type": "chatcompletion", "base_url": double.url, "model": "m"}},
            orchestrator={"max_steps_per_round": steps * 2},
            budget={"max_tokens": 10 * steps * window},
            timeout_settings={"orchestrator_timeout_seconds": 3600, "round_timeout_seconds": 3600},
        )
        started = await call(
            client,
            "start_run",
            question="What is six times seven?",
            config=config,
            context_paths=[{"path": str(project), "permission": "write"}],
        )
        run_id = str(started["run_id"])
        while (await call(client, "wait_run", run_id=run_id, timeout_seconds=50))["status"] not in TERMINAL_STATES:
            pass
        result = await call(client, "get_result", run_id=run_id)
    events = events_of(home.run_directory(run_id))
    kinds = [event["type"] for event in events]
    notes = [event for event in events if event["type"] == "model_replied" and event["purpose"] == "condense"]
    assert result.get("answer") == "42", result
    assert result["files"]["of_files"] == 1, result
    assert not due, "not every kill came"
    assert kinds.count("run_resumed") == kills, kinds.count("run_resumed")
    sent = [tokens(body) for body in model.taken]
    whole = steps * (steps + 1) // 2 * OUTPUT // 4
    return (
        f"window {window:,}: {len(sent)} requests, {model.refused} refused, {kills} kills, {len(notes)} notes, "
        f"{kinds.count('conversation_shortened')} times shortened, {sum(sent):,} tokens sent, at most {max(sent):,} "
        f"at a time ({whole:,} if nothing were left out), patch of 1 file"
    )
