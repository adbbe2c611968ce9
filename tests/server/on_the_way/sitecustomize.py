"""Writes which files of ours are on the call stack at each hand-over of a run, and how many are entered between some of
them; for processes that a test starts.
"""

import os
import sys
import threading
from types import FrameType

PACKAGE = "/massgen_mcp/"
HANDED_OVER = {
    ("request/build.py", "build_request"),
    ("runs/engine/files.py", "create"),
    ("runs/engine/queue.py", "add"),
    ("runs/store/runner_endpoint.py", "ensure_runner"),
    ("server/results/start.py", "started"),
    ("runs/engine/queue.py", "claim"),
    ("backends/scripted.py", "stream"),
    ("runs/engine/event_log.py", "record"),
    ("run_state/state.py", "apply"),
    ("runs/watcher.py", "read_run"),
    ("server/results/result.py", "result"),
}
BEGINS = {("server/tools.py", "start_run"), ("server/tools.py", "get_result")}
"""What is above them on the stack is the MCP server, which is the same for all tools."""
WALKS = {
    "start": (("server/tools.py", "start_run"), ("runs/engine/queue.py", "add")),
    "store": (("runs/service.py", "start"), ("runs/engine/queue.py", "add")),
    "model": (("runs/host/runner.py", "main"), ("backends/scripted.py", "stream")),
}
"""The functions with which each begins and ends."""
entered: dict[str, dict[str, None]] = {}
"""Files in which a function was called, by walk."""
out = os.open(os.environ["MASSGEN_TEST_WAY"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def walk(file: str, function: str) -> None:
    """Note the file for the walks that have begun, and write those that end here."""
    for name, (begin, end) in list(WALKS.items()):
        if (file, function) == begin:
            entered.setdefault(name, {})
        if name in entered:
            entered[name][file] = None
            if (file, function) == end:
                os.write(out, f"walk:{name} {' '.join(entered[name])}\n".encode())
                del WALKS[name], entered[name]


def told(frame: FrameType | None, event: str, _: object) -> None:
    if event != "call" or frame is None or (called := name_of(frame)) is None:
        return
    if frame.f_code.co_name != "<module>":
        walk(*called)
    if called in HANDED_OVER:
        above: list[str] = []
        whole = False
        while frame is not None and not whole:
            if name := name_of(frame):
                above.append(name[0])
                whole = name in BEGINS
            frame = frame.f_back
        if whole or ("server/tools.py" not in above and not above[-1].startswith("cli")):
            os.write(out, (" ".join(above) + "\n").encode())


def name_of(frame: FrameType) -> tuple[str, str] | None:
    file, found, name = frame.f_code.co_filename.rpartition(PACKAGE)
    return (name, frame.f_code.co_name) if found and not file.endswith("tests") else None


threading.setprofile(told)
sys.setprofile(told)
