"""Ollama, as far as we ask it: its list of models, what it says of each, what is loaded, and its chat.

Shapes follow `api/types.go` of Ollama. aimock has a chat of that name, but without thoughts, ids of calls and usage as
Ollama tells them.
"""

import json
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.raw_double import Flow, RawDouble, Seen, answering, reply
from tests.wire_double import WireRequest

GB = 10**9
LINES = "application/x-ndjson"


@dataclass(frozen=True)
class OllamaModel:
    """One row of `/api/tags`, and what `/api/show` says of it. `digest` None: its own."""

    name: str
    parameters: str = "8.2B"
    size: int = 5 * GB
    capabilities: tuple[str, ...] = ("completion", "tools")
    context: int = 40_960
    digest: str | None = None
    remote: str | None = None
    """The host of a model that Ollama only passes on."""
    loaded_with: int | None = None
    """Its context, while it is in memory."""

    def tag(self) -> dict[str, Any]:
        cloud = {"remote_model": self.name, "remote_host": self.remote} if self.remote else {}
        return {
            "name": self.name,
            "model": self.name,
            "modified_at": "2026-08-01T10:00:00.1+02:00",
            "size": self.size,
            "digest": self.digest or f"{hash(self.name) & (2**64 - 1):064x}",
            "details": self._details(),
            **cloud,
        }

    def shown(self) -> dict[str, Any]:
        return {
            "modelfile": "FROM x",
            "template": "{{ .Prompt }}",
            "details": self._details(),
            "model_info": {"general.architecture": "qwen3", "qwen3.context_length": self.context},
            "capabilities": list(self.capabilities),
            "modified_at": "2026-08-01T10:00:00.1+02:00",
        }

    def process(self) -> dict[str, Any]:
        loaded = {"size_vram": self.size, "context_length": self.loaded_with, "expires_at": "2026-08-01T10:05:00Z"}
        return {"name": self.name, "model": self.name, "size": self.size, "details": self._details(), **loaded}

    def _details(self) -> dict[str, Any]:
        family = self.name.partition(":")[0]
        return {
            "parent_model": "",
            "format": "gguf",
            "family": family,
            "families": [family],
            "parameter_size": self.parameters,
            "quantization_level": "Q4_K_M",
        }


def json_reply(value: object, status: str = "200 OK") -> bytes:
    return reply(json.dumps(value).encode(), status=status, media_type="application/json")


def about_models(seen: Seen, models: Sequence[OllamaModel] = ()) -> bytes | None:
    """What Ollama says of its models; None to what is no question about them."""
    by_name = {name: model for model in models for name in (model.name, model.name.removesuffix(":latest"))}
    match seen.path:
        case "/api/tags":
            return json_reply({"models": [model.tag() for model in models]})
        case "/api/ps":
            return json_reply({"models": [model.process() for model in models if model.loaded_with]})
        case "/api/show":
            asked = seen.body["model"]
            found = by_name.get(asked)
            return json_reply(found.shown()) if found else not_found(asked)
        case _:
            return None


def not_found(name: str) -> bytes:
    return json_reply({"error": f"model '{name}' not found"}, "404 Not Found")


@dataclass
class OllamaDouble:
    """Plays fixtures of aimock's format in Ollama's own words. `requests` are calls of a model."""

    url: str = ""
    requests: list[WireRequest] = field(default_factory=list[WireRequest])
    fixtures: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def load(self, *fixtures: dict[str, Any]) -> None:
        self.fixtures += fixtures

    def respond(self, seen: Seen, number: int) -> bytes | Flow:
        self.requests.append(WireRequest("POST", seen.path, seen.headers, seen.body))
        said = [message["content"] for message in seen.body["messages"] if message["role"] == "user"][-1]
        fixture = next((one for one in self.fixtures if _matches(one["match"], said, number)), None)
        if fixture is None:
            return not_found(seen.body["model"])
        told = fixture["response"]
        if "error" in told:
            headers = {"Retry-After": str(told["retryAfter"])} if "retryAfter" in told else {}
            body = json.dumps({"error": told["error"]["message"]}).encode()
            return reply(body, status=f"{told['status']} Error", media_type="application/json", headers=headers)
        return _flow(fixture, list(_lines(told, seen.body["model"], fixture.get("chunkSize", 20))))


@asynccontextmanager
async def ollama_double() -> AsyncGenerator[OllamaDouble]:
    double = OllamaDouble()
    async with answering(double.respond, about_models) as server:
        double.url = server.url
        yield double


@asynccontextmanager
async def serving_ollama(*models: OllamaModel, replies: Mapping[str, bytes] | None = None) -> AsyncGenerator[RawDouble]:
    """Ollama with these models. `requests` are calls of a model; `replies` are theirs, by the full name."""

    def respond(seen: Seen, number: int) -> bytes:
        del number
        asked = seen.body["model"]
        found = next((model.name for model in models if model.name in (asked, f"{asked}:latest")), "")
        return (replies or {}).get(found, not_found(asked))

    async with answering(respond, lambda seen: about_models(seen, models)) as server:
        yield server


def _matches(match: dict[str, Any], said: str, number: int) -> bool:
    return match.get("userMessage", "") in said and match.get("sequenceIndex", number) == number


def _lines(told: dict[str, Any], model: str, size: int) -> Iterator[bytes]:
    def line(message: dict[str, Any], *, done: bool = False, **more: Any) -> bytes:
        head = {"model": model, "created_at": "2026-01-01T00:00:00Z"}
        return json.dumps({**head, "message": {"role": "assistant", **message}, "done": done, **more}).encode() + b"\n"

    for piece in _cut(told.get("reasoning", ""), size):
        yield line({"content": "", "thinking": piece})
    for piece in _cut(told.get("content", ""), size):
        yield line({"content": piece})
    for place, made in enumerate(told.get("toolCalls", ())):
        arguments = made["arguments"]
        read = json.loads(arguments) if isinstance(arguments, str) else arguments
        function = {"index": place, "name": made["name"], "arguments": read}
        yield line({"content": "", "tool_calls": [{"id": made.get("id", f"call_{place}"), "function": function}]})
    usage = told.get("usage", {"prompt_tokens": 1, "completion_tokens": 1})
    counted = {"prompt_eval_count": usage["prompt_tokens"], "eval_count": usage["completion_tokens"]}
    yield line({"content": ""}, done=True, done_reason="stop", total_duration=1, **counted)


def _cut(text: str, size: int) -> Iterable[str]:
    return (text[start : start + size] for start in range(0, len(text), size))


def _flow(fixture: dict[str, Any], lines: list[bytes]) -> Flow:
    profile = fixture.get("streamingProfile", {})
    pause = fixture.get("latency", 0) / 1000 or 1 / profile.get("tps", 10**9)
    if cut := fixture.get("disconnectAfterMs"):
        lines = lines[: int(cut / 1000 / pause)]
    head, empty = reply(b"", media_type=LINES), b""
    pieces = [head + (lines[0] if lines else empty), *lines[1:]]
    return Flow(lambda: pieces, pause, profile.get("ttft", 0) / 1000)
