#!/usr/bin/env python3
# ruff: noqa: C901, PTH110, ANN001, ANN003, ANN201, PTH111, PTH123, PTH208, BLE001, S310, E731
# pyright: basic, reportOptionalMemberAccess=false
"""An agent CLI that speaks ACP, without a model: it does what its plan says, and writes down what it is told.

A plan is in the variable FAKE_PLAN, as JSON: a list of turns, each a list of steps as `do` has them; or the steps to
"answer", to "vote" where the prompt has the "mark", and to "present". What it is told goes to the file FAKE_LOG.
"""

import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.request

PLAN = json.loads(os.environ.get("FAKE_PLAN", "[]"))
LOG = os.environ.get("FAKE_LOG")
WAITING: dict = {}
SESSIONS: dict = {}
NUMBERS = iter(range(1, 1 << 30))
WRITING = threading.Lock()


def note(**told) -> None:
    if LOG:
        with open(LOG, "a") as log:
            log.write(json.dumps({**told, "pid": os.getpid()}) + "\n")


def send(**message) -> None:
    with WRITING:
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def ask(method, params):
    number = next(NUMBERS)
    answered = WAITING[number] = threading.Event(), []
    send(id=f"a{number}", method=method, params=params)
    answered[0].wait()
    return answered[1][0]


class Team:
    """Our side of the team's MCP server."""

    def __init__(self, server) -> None:
        self.process = subprocess.Popen(
            [server["command"], *server["args"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.number = 0
        self.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "fake"}})
        self.tools = [tool["name"] for tool in self.ask("tools/list", {})["tools"]]

    def ask(self, method, params):
        self.number += 1
        message = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline() or "{}")
        return answer.get("result", answer)


def tried(act):
    try:
        return f"open: {act()}"[:300]
    except BaseException as error:
        return f"closed: {type(error).__name__}"


def probe(what, aim):
    match what:
        case "read":
            return tried(lambda: open(aim).read())
        case "write":
            return tried(lambda: open(aim, "w").write("x"))
        case "list":
            return tried(lambda: os.listdir(os.path.expanduser(aim)))
        case "variable":
            return tried(lambda: os.environ[aim])
        case "port":
            return tried(lambda: socket.create_connection(("127.0.0.1", int(aim)), timeout=5).close())
        case "fetch":
            return tried(lambda: urllib.request.urlopen(aim, timeout=10).read().decode())
        case "processes":
            return tried(lambda: [open(f"/proc/{one}/cmdline").read() for one in os.listdir("/proc") if one.isdigit()])
        case "run":
            scope = {}
            return tried(lambda: (exec(aim, scope), scope.get("found"))[1])  # noqa: S102 - it is to do anything
        case "leave":
            return tried(lambda: subprocess.Popen(["/bin/sleep", aim], start_new_session=True).pid)


def do(session, what, step) -> None:
    update = lambda **fields: send(method="session/update", params={"sessionId": session, "update": fields})
    match what:
        case "say" | "think":
            kind = "agent_message_chunk" if what == "say" else "agent_thought_chunk"
            update(sessionUpdate=kind, content={"type": "text", "text": step[what]})
        case "call" if step.get("beside"):
            threading.Thread(target=do, args=(session, what, {**step, "beside": False}), daemon=True).start()
        case "call":
            team = SESSIONS[session]
            result = team.ask("tools/call", {"name": step["call"], "arguments": step.get("arguments", {})})
            note(result=result)
        case "ask":
            call = {"toolCallId": "c1", **step["ask"]}
            options = [{"optionId": kind, "name": kind, "kind": kind} for kind in ("allow_once", "reject_once")]
            asked = {"sessionId": session, "toolCall": call, "options": options}
            note(permitted=ask("session/request_permission", asked))
        case "update":
            update(**step["update"])
        case "probe":
            found = json.dumps([probe(*one) for one in step["probe"]])
            update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": found})
        case "raw":
            with WRITING:
                sys.stdout.write(step["raw"] * step.get("times", 1))
                sys.stdout.flush()
        case "crash":
            print(step["crash"], file=sys.stderr, flush=True)
            os._exit(3)
        case "await":
            while not os.path.exists(step["await"]):
                time.sleep(0.05)
        case "hang":
            time.sleep(3600)


def planned(session, text):
    if isinstance(PLAN, list):
        return PLAN.pop(0) if PLAN else [{"say": "nothing planned"}]
    tools = SESSIONS[session].tools if SESSIONS[session] else []
    if not {"new_answer", "vote"} & set(tools):
        return PLAN["present"]
    if PLAN["mark"] not in text:
        return PLAN["answer"]
    own = re.findall(r"agent\d+", text[: text.rindex(PLAN["mark"])])[-1]
    return json.loads(json.dumps(PLAN["vote"]).replace("OWN", own))


def turn(number, session, text) -> None:
    steps = planned(session, text)
    usage, stop = None, "end_turn"
    for step in steps:
        if "usage" in step:
            usage = step["usage"]
        elif "stop" in step:
            stop = step["stop"]
        else:
            do(session, next(iter(step)), step)
    send(id=number, result={"stopReason": stop, **({"usage": usage} if usage is not None else {})})


def answer(number, method, params) -> None:
    note(method=method, params=params)
    session = params.get("sessionId")
    match method:
        case "initialize":
            send(id=number, result={"protocolVersion": int(os.environ.get("FAKE_VERSION", "1"))})
        case "session/new":
            session = f"s{len(SESSIONS) + 1}"
            servers = params["mcpServers"]
            SESSIONS[session] = Team(servers[0]) if servers else None
            note(session=session, tools=SESSIONS[session].tools if servers else [], files=os.listdir(params["cwd"]))
            send(id=number, result={"sessionId": session})
        case "session/prompt":
            text = params["prompt"][0]["text"]
            threading.Thread(target=turn, args=(number, session, text), daemon=True).start()
        case _ if number is not None:
            send(id=number, result={})


for line in sys.stdin:
    message = json.loads(line)
    if "method" in message:
        answer(message.get("id"), message["method"], message.get("params", {}))
    else:
        event, found = WAITING[int(message["id"][1:])]
        found.append(message.get("result"))
        event.set()
