"""One run of the Claude Code CLI, read as one reply: what it says into our parts, its tool calls into ours. No I/O."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from massgen_mcp.backends.base import (
    JsonObject,
    Part,
    ReasoningPart,
    StopPart,
    TextPart,
    ToolCall,
    ToolCallPart,
    UsagePart,
)
from massgen_mcp.backends.ends import MESSAGES, stop_of
from massgen_mcp.backends.frameworks.agent_cli import PREFIX
from massgen_mcp.backends.wire_values import clean, clean_object, count, member, money, usage_part
from massgen_mcp.config.access.agent_clis import Login
from massgen_mcp.errors import BackendError, DropReason
from massgen_mcp.redaction import NO_KEYS, Redactor

MAX_DETAIL = 500


@dataclass(frozen=True, slots=True)
class Cli:
    """How the CLI is run for one agent."""

    path: str
    model: str
    login: Login
    environ: Mapping[str, str] = field(repr=False)
    effort: str | None = None
    max_thinking_tokens: int | None = None
    max_turns: int = 50
    """Model calls in one step: more than one where it tries tools that it has not."""
    private: Path | None = None
    """Becomes its home, and is deleted in the end. None: a temporary directory."""
    redactor: Redactor = field(default=NO_KEYS, repr=False)
    """Takes keys out of what is quoted, before it is cut to its length."""


class ClaudeCodeStep:
    """Reads what the CLI says in one step, and answers what it may do."""

    def __init__(self, cli: Cli) -> None:
        self._cli = cli
        self._calls: list[ToolCall] = []
        self._has_text = False
        self._model = ""
        self.ended = False

    def before_tool(self, asked: Mapping[str, Any], tool_use_id: str | None) -> JsonObject:
        """What the CLI is told that wants to run a tool: no. A call of the team's is taken over, and ends its turn."""
        tool = str(asked.get("tool_name", ""))
        arguments = cast("JsonObject", asked.get("tool_input") or {})
        if tool.startswith(PREFIX):
            written = json.dumps(clean_object(arguments), ensure_ascii=False)
            call_id = tool_use_id or f"call_{len(self._calls) + 1}"
            self._calls.append(ToolCall(call_id, clean(tool.removeprefix(PREFIX)), written))
            return _decision("deny", "handed over to the team", go_on=False)
        return _decision("deny", f"{tool} is not available here: your tools are those that begin with {PREFIX}")

    def read(self, message: Mapping[str, Any]) -> Iterator[Part]:
        match message:
            case {"type": "stream_event", "event": {} as event}:
                yield from self._event(event)
            case {"type": "assistant", "message": {"model": str(model)}}:
                self._model = self._model if model.startswith("<") else model
            case {"type": "result"}:
                yield from self._result(message)
            case _:
                pass

    def _event(self, event: Mapping[str, Any]) -> Iterator[Part]:
        if event.get("type") == "message_start" and self._has_text:
            self._has_text = False
            yield TextPart("\n\n")
        if event.get("type") != "content_block_delta":
            return
        match event.get("delta"):
            case {"text": str(text)} if text:
                self._has_text = True
                yield TextPart(clean(text))
            case {"thinking": str(thinking)} if thinking:
                yield ReasoningPart(clean(thinking))
            case _:
                pass

    def _result(self, result: Mapping[str, Any]) -> Iterator[Part]:
        self.ended = True
        yield self._usage(result)
        if result.get("is_error") and not self._calls:
            raise _of_result(self._cli, result)
        yield from map(ToolCallPart, self._calls)
        yield self._stop(result)

    def _stop(self, result: Mapping[str, Any]) -> StopPart:
        """A step that hands a call over has ended with it, whatever the CLI says; one that does not, by the model's own
        end. A CLI that tells none has said by the kind of its result that the model came to an end.
        """
        if self._calls:
            return StopPart("tool_calls")
        reason = result.get("stop_reason") or ("end_turn" if result.get("subtype") == "success" else None)
        stop = stop_of(MESSAGES, reason, ())
        if stop is None:
            raise failed(self._cli, "provider_error", f"claude_code broke off: stop_reason {reason}", retryable=True)
        return StopPart(stop, provider_word=str(reason))

    def _usage(self, result: Mapping[str, Any]) -> UsagePart:
        usage = result.get("usage")
        uncached = count(member(usage, "input_tokens"))
        cached = count(member(usage, "cache_read_input_tokens")) or 0
        cache_written = count(member(usage, "cache_creation_input_tokens")) or 0
        return usage_part(
            self._model,
            read=None if uncached is None else uncached + cached + cache_written,
            written=count(member(usage, "output_tokens")),
            cached=cached,
            cache_written=cache_written,
            reasoning=count(member(usage, "output_tokens_details", "thinking_tokens")),
            cost_usd=money(result.get("total_cost_usd")),
        )


def _decision(decision: str, reason: str, *, go_on: bool = True) -> JsonObject:
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": decision,
            "permissionDecisionReason": reason,
        },
        "continue": go_on,
        "stopReason": reason,
    }


_BY_STATUS: dict[int, tuple[DropReason, bool]] = {
    401: ("auth", False),
    402: ("quota_exhausted", False),
    403: ("auth", False),
    404: ("model_not_found", False),
    408: ("provider_error", True),
    409: ("provider_error", True),
    429: ("rate_limited", True),
}


def _of_result(cli: Cli, result: Mapping[str, Any]) -> BackendError:
    if result.get("subtype") == "error_max_turns":
        message = f"claude_code handed nothing over in {cli.max_turns} turns of its own (max_turns)"
        return failed(cli, "bad_reply", message)
    status = result.get("api_error_status")
    errors = cast("list[object]", result.get("errors") or [])
    detail = result.get("result") or "; ".join(map(str, errors)) or result.get("subtype")
    if not isinstance(status, int):  # it never came to an answer of the API, or the CLI itself failed
        return failed(cli, "provider_error", f"claude_code: {detail}", retryable=True)
    reason, retryable = _BY_STATUS.get(status, ("provider_error", True) if status >= 500 else ("bad_request", False))
    return failed(cli, reason, f"claude_code was answered {status}: {detail}", retryable=retryable)


def failed(cli: Cli, reason: DropReason, message: str, *, retryable: bool = False) -> BackendError:
    """An error whose message holds no secret and has an end."""
    return BackendError(reason, cli.redactor.text(clean(message))[:MAX_DETAIL], retryable=retryable)
