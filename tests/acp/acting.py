"""Backends of the fake agent, and what it wrote down."""

import json
import os
import shutil
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

from massgen_mcp.backends.base import (
    AssistantMessage,
    Backend,
    ModelRequest,
    Part,
    TextPart,
    ToolCallPart,
    ToolResultMessage,
    ToolSpec,
    UserMessage,
)
from massgen_mcp.backends.registry import make_backend
from massgen_mcp.config.models.backends import AcpBackendConfig

FAKE = Path(__file__).with_name("fake_agent.py")
LOOK = ToolSpec("look", "Look.", {"type": "object", "properties": {"at": {"type": "string"}}})
VOTE = ToolSpec("vote", "Vote.", {"type": "object", "properties": {"for": {"type": "string"}}})


class Acting:
    """`directory` holds the program, its plan's log, and the agent's private directory."""

    def __init__(self, directory: Path, *turns: list[dict[str, Any]], **fields: Any) -> None:
        self.directory = directory
        program = directory / "program" / fields.pop("program", "fake_agent.py")
        program.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(FAKE, program)
        self.log = directory / "log"
        self.private = directory / "private"
        log = fields.pop("log", str(self.log))
        environ = {
            "PATH": f"{program.parent}:{os.environ['PATH']}",
            "HOME": str(directory / "home"),
            "MASSGEN_MCP_HOME": str(directory.parent / "state"),  # what is known of the sandbox is for all tests
            "FAKE_PLAN": json.dumps(turns),
            "FAKE_LOG": log,
            **fields.pop("environ", {}),
        }
        for place in (directory / "home", directory.parent / "state"):
            place.mkdir(exist_ok=True)
        self.environ = environ
        if "preset" not in fields:
            fields["command"] = [str(program)]
        given: dict[str, Any] = {
            "type": "acp",
            "enclosure": "off",
            "env": ["FAKE_PLAN", "FAKE_LOG", *fields.pop("env", ())],
            **fields,
        }
        self.config = AcpBackendConfig.model_validate_json(json.dumps(given), strict=True)
        self.backend: Backend = make_backend(self.config, environ, self.private)

    def told(self, key: str) -> list[Any]:
        """What it wrote down under this key."""
        lines = [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []
        return [line[key] for line in lines if key in line]

    def asked(self, method: str) -> int:
        return self.told("method").count(method)


def question(text: str = "What is it?", *, system: str = "You are one of a team.") -> ModelRequest:
    return ModelRequest(system, (UserMessage(text),), (LOOK, VOTE), ends_with_call=True)


async def reply(backend: Backend, request: ModelRequest) -> list[Part]:
    async with aclosing(backend.stream(request)) as parts:
        return [part async for part in parts]


def text_of(parts: list[Part]) -> str:
    return "".join(part.text for part in parts if isinstance(part, TextPart))


def after(request: ModelRequest, parts: list[Part], *results: str, say: str = "", error: bool = False) -> ModelRequest:
    """The next request of the conversation."""
    calls = tuple(part.call for part in parts if isinstance(part, ToolCallPart))
    told = [
        ToolResultMessage(call.id, call.name, text, is_error=error) for call, text in zip(calls, results, strict=True)
    ]
    more = (AssistantMessage(text_of(parts), calls), *told, *((UserMessage(say),) if say else ()))
    return replace(request, messages=(*request.messages, *more))


def is_alive(pid: int) -> bool:
    """Whether it runs, and is not only remembered."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
