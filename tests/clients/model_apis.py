"""Doubles of the model APIs that real clients talk to: Messages, Responses and Gemini, on one local port.

A plan is the model: a function from what the client asked to what the model says or calls. Every request is kept as it
came, so a script can show what a model saw.
"""

import json
import secrets
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any, cast

Json = dict[str, Any]


@dataclass(frozen=True)
class Call:
    """A call of the tool whose name ends in `tool`."""

    tool: str
    arguments: Json = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class Asked:
    """One request of a client's main conversation, the same for every wire."""

    body: Json
    tools: tuple[str, ...]
    """Full names of the tools whose schemas the model has."""
    heard: tuple[str, ...]
    """What users, the client and tools said so far, in order, one text each."""
    results: tuple[str, ...]
    """What tools returned so far, in order."""

    def full_name(self, tool: str) -> str:
        """Raises LookupError where the model has no such tool."""
        for name in self.tools:
            if name == tool or name.endswith((f"__{tool}", f"_{tool}", f"-{tool}")):
                return name
        raise LookupError(f"the model was offered no {tool}: {', '.join(self.tools)}")


Plan = Callable[[Asked], str | Call]


class ModelApi(ThreadingHTTPServer):
    """A running double. `url` is the root without a path."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, plan: Plan, address: str = "127.0.0.1") -> None:
        super().__init__((address, 0), _Handler)
        self.url = f"http://{address}:{self.server_address[1]}"
        self.plan = plan
        self.asked: list[Asked] = []
        self.failures: list[str] = []
        """What the plan could not answer."""
        self.told: list[Json] = []
        """What was sent to `/told`."""
        self._turn = Lock()

    def reply(self, asked: Asked) -> str | Call:
        """What the model says. Requests without tools are the client's own errands, such as naming a session."""
        if not asked.tools:
            return "ok"
        with self._turn:
            self.asked.append(asked)
            try:
                said = self.plan(asked)
                return Call(asked.full_name(said.tool), said.arguments) if isinstance(said, Call) else said
            except Exception as error:  # noqa: BLE001 - a script reads it from `failures`
                self.failures.append(f"{type(error).__name__}: {error}")
                return f"The double failed: {error}"


@contextmanager
def model_api(plan: Plan, address: str = "127.0.0.1") -> Generator[ModelApi]:
    with ModelApi(plan, address) as api:
        thread = Thread(target=api.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        yield api
        api.shutdown()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the library's
        """Nothing: the scripts print what matters."""

    def do_HEAD(self) -> None:
        self._send({}, head_only=True)

    def do_GET(self) -> None:
        self._send({"data": [], "models": []})

    def do_POST(self) -> None:
        body = cast("Json", json.loads(self.rfile.read(int(self.headers.get("content-length", "0"))) or b"{}"))
        path = self.path.partition("?")[0]
        if path.endswith(("/count_tokens", ":countTokens")):
            self._send({"input_tokens": 1, "totalTokens": 1})
        elif path.endswith("/messages"):
            message = _message(self._reply(_from_messages(body)), str(body.get("model")))
            self._send(list(_message_events(message)) if body.get("stream") else message)
        elif path.endswith("/responses"):
            self._send(list(_response_events(self._reply(_from_responses(body)))))
        elif path.endswith(":streamGenerateContent"):
            self._send([_gemini(self._reply(_from_gemini(body)))])
        elif path.endswith(":generateContent"):
            self._send(_gemini(self._reply(_from_gemini(body))))
        else:
            if path.endswith("/told"):
                cast("ModelApi", self.server).told.append(body)
            self._send({})

    def _reply(self, asked: Asked) -> str | Call:
        return cast("ModelApi", self.server).reply(asked)

    def _send(self, answer: Json | list[Json], *, head_only: bool = False) -> None:
        """One JSON document, or a list as server-sent events."""
        if isinstance(answer, list):
            lines = [_event(event) for event in answer]
            data, media_type = "".join(lines).encode(), "text/event-stream"
        else:
            data, media_type = json.dumps(answer).encode(), "application/json"
        self.send_response(200)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if not head_only:
            with suppress(BrokenPipeError):  # whoever asked was killed
                self.wfile.write(data)


def _event(event: Json) -> str:
    name = f"event: {event['type']}\n" if "type" in event else ""
    return f"{name}data: {json.dumps(event)}\n\n"


# -- what a request says ----------------------------------------------------------------------------------------------


def _from_messages(body: Json) -> Asked:
    heard: list[str] = []
    results: list[str] = []
    for message in body.get("messages", ()):
        if message["role"] == "assistant":
            continue
        content = message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            if block["type"] == "tool_result":
                results.append(_text(block.get("content", "")))
            heard.append(_text(block.get("content", "")) if block["type"] == "tool_result" else block.get("text", ""))
    found = set(" ".join(results).split())
    loaded = (tool["name"] for tool in body.get("tools", ()) if not tool.get("defer_loading") or tool["name"] in found)
    tools = tuple(loaded)
    return Asked(body, tools, tuple(heard), tuple(results))


def _from_responses(body: Json) -> Asked:
    heard: list[str] = []
    results: list[str] = []
    for item in body.get("input", ()):
        match item.get("type"):
            case "function_call_output" | "custom_tool_call_output":
                results.append(_text(item["output"]))
                heard.append(results[-1])
            case "message" if item["role"] != "assistant":
                heard.append(_text(item["content"]))
            case _:
                pass
    names: list[str] = []
    for tool in body.get("tools", ()):
        inside = [f"{tool['name']}__{one['name']}" for one in tool.get("tools", ())]
        names += inside or [str(tool.get("name", tool["type"]))]
    return Asked(body, tuple(names), tuple(heard), tuple(results))


def _from_gemini(body: Json) -> Asked:
    heard: list[str] = []
    results: list[str] = []
    for content in body.get("contents", ()):
        for part in content.get("parts", ()) if content.get("role") != "model" else ():
            if "functionResponse" in part:
                results.append(json.dumps(part["functionResponse"].get("response"), ensure_ascii=False))
                heard.append(results[-1])
            elif "text" in part:
                heard.append(part["text"])
    groups = body.get("tools", ())
    names = tuple(one["name"] for group in groups for one in group.get("functionDeclarations", ()))
    return Asked(body, names, tuple(heard), tuple(results))


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    blocks = cast("list[Json]", content)
    return "\n".join(str(block.get("text", block.get("tool_name", ""))) for block in blocks)


# -- what a model says ------------------------------------------------------------------------------------------------


def _message(said: str | Call, model: str) -> Json:
    usage = {"input_tokens": 10, "output_tokens": 10, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    if isinstance(said, Call):
        block: Json = {"type": "tool_use", "id": _id("toolu"), "name": said.tool, "input": said.arguments}
    else:
        block = {"type": "text", "text": said}
    stop = "tool_use" if isinstance(said, Call) else "end_turn"
    message = {"id": _id("msg"), "type": "message", "role": "assistant", "model": model, "content": [block]}
    return {**message, "stop_reason": stop, "stop_sequence": None, "usage": usage}


def _message_events(message: Json) -> Iterator[Json]:
    (block,) = message["content"]
    if block["type"] == "tool_use":
        empty: Json = {**block, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    else:
        empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
    end = {name: message[name] for name in ("stop_reason", "stop_sequence")}
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    yield {"type": "content_block_start", "index": 0, "content_block": empty}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    yield {"type": "message_delta", "delta": end, "usage": message["usage"]}
    yield {"type": "message_stop"}


def _response_events(said: str | Call) -> Iterator[Json]:
    response: Json = {"id": _id("resp"), "object": "response", "status": "in_progress", "output": []}
    yield {"type": "response.created", "response": response}
    if isinstance(said, Call):
        namespace, _, name = said.tool.rpartition("__")
        item: Json = {"type": "function_call", "id": _id("fc"), "call_id": _id("call"), "status": "completed"}
        item |= {"name": name or said.tool, "arguments": json.dumps(said.arguments)}
        item |= {"namespace": namespace} if namespace else {}
    else:
        content: list[Json] = [{"type": "output_text", "text": said, "annotations": []}]
        item = {"type": "message", "id": _id("msg"), "role": "assistant", "status": "completed", "content": content}
    yield {"type": "response.output_item.added", "output_index": 0, "item": item}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    usage = {"input_tokens": 10, "output_tokens": 10, "total_tokens": 20, **details}
    yield {
        "type": "response.completed",
        "response": {**response, "status": "completed", "output": [item], "usage": usage},
    }


def _gemini(said: str | Call) -> Json:
    part = {"functionCall": {"name": said.tool, "args": said.arguments}} if isinstance(said, Call) else {"text": said}
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 10, "totalTokenCount": 20}
    content = {"role": "model", "parts": [part]}
    return {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}], "usageMetadata": usage}


def _id(kind: str) -> str:
    return f"{kind}_{secrets.token_hex(12)}"
