"""Plays an adapter in the situations that a run brings. Part of the doctor.

Whether it behaves is seen in the parts that its backend yields, as a run sees them.
"""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace

import anyio
from pydantic import BaseModel

from massgen_mcp.backends.adapter import Making, Rehearsable, Situation
from massgen_mcp.backends.base import (
    AssistantMessage,
    Backend,
    ModelRequest,
    Part,
    StopPart,
    TextPart,
    ToolCall,
    ToolCallPart,
    ToolResultMessage,
    ToolSpec,
    UsagePart,
    UserMessage,
)
from massgen_mcp.backends.own_loop import as_backend
from massgen_mcp.config.access.agent_types import adapter_named
from massgen_mcp.config.access.held_keys import redactor_for
from massgen_mcp.errors import BackendError, MassgenError
from massgen_mcp.runs.doctor.result import CheckLevel, DoctorCheck

SECONDS = 20.0
"""So long one situation may take, and so long one that was cancelled."""
_TOOL = ToolSpec("look_up", "Looks up a word.", {"type": "object", "properties": {"word": {"type": "string"}}})
_QUESTION = UserMessage("What is six times seven? Look it up.")
_TALK = (
    _QUESTION,
    AssistantMessage("", (ToolCall("call_1", _TOOL.name, '{"word": "42"}'),)),
    ToolResultMessage("call_1", _TOOL.name, "The answer to it."),
)
_SHOWS: Mapping[Situation, str] = {
    "answers": "answers with text and ends its reply",
    "calls": "calls an offered tool and continues with the result",
    "refuses": "reports a refusal as a refusal",
    "hangs": "stops when it is cancelled",
    "auth": "reports an invalid key",
    "rate_limited": "reports a rate limit",
    "unreachable": "reports that the server doesn't respond",
    "crashes": "reports a crash as an error, not as a short answer",
}


def find_adapter(name: str) -> Rehearsable:
    """Raises `MassgenError` config_invalid for one that is not installed or is none."""
    try:
        found = adapter_named(name)
    except ValueError as error:
        raise MassgenError("config_invalid", str(error)) from error
    if not isinstance(found, Rehearsable):
        raise MassgenError("config_invalid", f"the adapter {name} doesn't define how to create an agent")
    return found


async def check_adapter(adapter: Rehearsable, environ: Mapping[str, str]) -> list[DoctorCheck]:
    """One line for each situation. What cannot be played is told as such. Never raises."""
    found = [await _play(adapter, situation, says, environ) for situation, says in _SHOWS.items()]
    if (config := adapter.rehearse("answers")) is not None:
        again = await _try(adapter, config, "answers", environ, _TALK)
        found.append(_doctor_check("resumed", "continues a conversation that it didn't start", again))
    return found


def _doctor_check(name: str, says: str, fault: str | None) -> DoctorCheck:
    level: CheckLevel = "ok" if fault is None else "fail"
    return DoctorCheck(name, level, says if fault is None else f"it {says}? No: {fault}"[:500])


async def _play(adapter: Rehearsable, situation: Situation, says: str, environ: Mapping[str, str]) -> DoctorCheck:
    if (config := adapter.rehearse(situation)) is None:
        return DoctorCheck(situation, "warn", f"not tested: {says}; `rehearse` has no case for it")
    return _doctor_check(situation, says, await _try(adapter, config, situation, environ, (_QUESTION,)))


async def _try(
    adapter: Rehearsable,
    config: BaseModel,
    situation: Situation,
    environ: Mapping[str, str],
    messages: tuple[UserMessage | AssistantMessage | ToolResultMessage, ...],
) -> str | None:
    """What is wrong; None: nothing."""
    request = ModelRequest("You answer questions.", messages, (_TOOL,) if situation == "calls" else ())
    parts: list[Part] = []
    try:
        with anyio.fail_after(SECONDS):
            backend = as_backend(adapter.make_agent(config, Making(environ, redactor_for(environ))))
            try:
                if situation == "hangs":
                    return await _cancelled(backend.stream(request))
                parts += await _reply(backend, request)
                if situation == "calls" and _of_parts(parts, situation) is None:
                    return await _goes_on(backend, request, parts)
            finally:
                await backend.aclose()
                await backend.aclose()
    except BackendError as error:
        return _of_error(error, situation)
    except TimeoutError:
        return f"it didn't finish within {SECONDS:g} s"
    except Exception as error:  # noqa: BLE001 - code of others is tried
        return f"{type(error).__name__} instead of a BackendError: {error}"
    return _of_parts(parts, situation)


async def _reply(backend: Backend, request: ModelRequest) -> list[Part]:
    async with aclosing(backend.stream(request)) as stream:
        return [part async for part in stream]


async def _goes_on(backend: Backend, request: ModelRequest, parts: list[Part]) -> str | None:
    """With the result of its call, whoever holds the conversation meanwhile."""
    calls = tuple(part.call for part in parts if isinstance(part, ToolCallPart))
    further = (AssistantMessage("", calls), ToolResultMessage(calls[0].id, calls[0].name, "The answer to it."))
    last = (await _reply(backend, replace(request, messages=(*request.messages, *further))))[-1:]
    return None if last and isinstance(last[0], StopPart) else "its reply to the result doesn't end with a StopPart"


async def _cancelled(stream: AsyncGenerator[Part]) -> str | None:
    async with aclosing(stream):
        with anyio.move_on_after(1) as scope:
            async for _ in stream:
                pass
    return None if scope.cancelled_caught else "it ended without being cancelled"


def _of_error(error: BackendError, situation: Situation) -> str | None:
    if situation == "crashes" or error.reason == situation:
        return None
    return f"BackendError of reason {error.reason}: {error}"


def _of_parts(parts: list[Part], situation: Situation) -> str | None:
    last = parts[-1] if parts else None
    if not isinstance(last, StopPart):
        return "the last part isn't a StopPart"
    if situation == "refuses":
        return None if last.reason == "refusal" else f"it stopped with {last.reason}"
    if situation == "calls":
        return _of_calls([part.call for part in parts if isinstance(part, ToolCallPart)], last)
    if situation != "answers":
        return f"it stopped with {last.reason} instead of reporting an error"
    if last.reason != "end" or not "".join(part.text for part in parts if isinstance(part, TextPart)).strip():
        return f"it replied without text, or stopped with {last.reason}"
    counted = any(isinstance(part, UsagePart) and part.input_tokens and part.output_tokens for part in parts)
    return None if counted else "no UsagePart reports both input and output tokens"


def _of_calls(calls: list[ToolCall], last: StopPart) -> str | None:
    if [call.name for call in calls] != [_TOOL.name] or last.reason != "tool_calls":
        return f"it called {[call.name for call in calls]}, and stopped with {last.reason}"
    try:
        arguments: object = json.loads(calls[0].arguments)
    except ValueError:
        arguments = None
    return None if isinstance(arguments, dict) else "the arguments aren't a JSON object"
