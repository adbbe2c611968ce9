"""A deterministic stand-in for a model. It calls nobody; what it does is written in its config.

Knows how the coordination tools are called and how a ballot is marked in a prompt, as a model does, and nothing else.
"""

import json
import math
from collections.abc import AsyncGenerator, Iterator, Sequence

import anyio

from massgen_mcp.backends.base import (
    WORKFLOW_TOOLS,
    DraftPart,
    JsonObject,
    ModelRequest,
    Part,
    PastCall,
    StopPart,
    TextPart,
    ToolCall,
    ToolCallPart,
    ToolResultMessage,
    UsagePart,
    UserMessage,
)
from massgen_mcp.config.models.backends import ScriptedBackendConfig, ScriptStep
from massgen_mcp.errors import BackendError, DropReason
from massgen_mcp.markers import Material, materials

_PIECE = 24
_LOOK_SECONDS = 0.05
_MAY_PASS = ("rate_limited", "provider_error", "unreachable")


class ScriptedBackend:
    """Plays the `script` of its config, one step per call, then behaves as `ScriptedBackendConfig` says."""

    def __init__(self, config: ScriptedBackendConfig) -> None:
        self.model = config.model
        self._config = config
        self._steps_done = 0
        self._calls_made = 0
        self._answer: str | None = None
        """The latest answer given by this instance."""

    def fast_forward(self, past: Sequence[PastCall]) -> None:
        """Go to where an instance stands that was called like this."""
        for call in past:
            if self._steps_done < len(self._config.script):
                step = self._config.script[self._steps_done]
                self._steps_done += call.coordinated or not _coordinates(step)
            for tool_call in call.tool_calls:
                self._calls_made += 1
                if tool_call.name == "new_answer":
                    self._answer = json.loads(tool_call.arguments)["content"]

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Part]:
        step = self._take_step(request) or self._own_step(request)
        await anyio.sleep(step.delay_seconds)
        while step.after_file and not await anyio.Path(step.after_file).exists():  # noqa: ASYNC110 - others make it
            await anyio.sleep(_LOOK_SECONDS)
        if step.hang:
            await anyio.sleep_forever()
        if step.fail is not None:
            reason: DropReason = "provider_error" if step.fail == "broken_stream" else step.fail
            if step.fail == "broken_stream":
                yield TextPart("This reply breaks off in the mid")
            raise BackendError(reason, f"scripted failure: {step.fail}", retryable=reason in _MAY_PASS)
        reply = step.say or ""
        async for piece in self._paced(reply):
            yield TextPart(piece)
        if step.answer is not None and self._config.chunk_delay_seconds:
            async for piece in self._paced(step.answer):
                yield DraftPart(piece)
        call = self._step_call(step, request)
        if call is not None:
            reply = call.arguments
            yield ToolCallPart(call)
        yield UsagePart(
            input_tokens=_tokens("".join(_list_texts(request))), output_tokens=_tokens(reply), model=self._config.model
        )
        yield StopPart("end" if call is None else "tool_calls")

    async def _paced(self, text: str) -> AsyncGenerator[str]:
        """`text` in pieces, with the pauses of the config between them."""
        for start in range(0, len(text), _PIECE):
            if start:
                await anyio.sleep(self._config.chunk_delay_seconds)
            yield text[start : start + _PIECE]

    async def aclose(self) -> None:
        """Nothing is open."""

    def _take_step(self, request: ModelRequest) -> ScriptStep | None:
        if self._steps_done == len(self._config.script):
            return None
        step = self._config.script[self._steps_done]
        if _coordinates(step) and _is_presentation(request):
            return None
        self._steps_done += 1
        return step

    def _own_step(self, request: ModelRequest) -> ScriptStep:
        """What the model does by itself where the script has nothing for it."""
        offered = {tool.name for tool in request.tools}
        default = self._answer or f"{self._config.model}'s answer to: {_question(request)[:200]}"
        if _is_presentation(request):
            return ScriptStep(say=default if self._config.presentation is None else self._config.presentation)
        if "new_answer" in offered and self._answer is None:
            return ScriptStep(answer=default)
        if "submit_tests" in offered:
            return ScriptStep(call="submit_tests", arguments={"tests": []})
        if "submit_outputs" in offered:
            return ScriptStep(call="submit_outputs", arguments={"outputs": []})
        if "submit_synthesis" in offered:
            claim = {"claim": default, "answers": [entry.name for entry in _ballot(request)]}
            claims = [claim] * (default.count('"severity"') if '"findings"' in default else 1)
            return ScriptStep(call="submit_synthesis", arguments={"content": default, "claims": claims})
        if "vote" in offered:
            return ScriptStep(vote=min(entry.text for entry in _ballot(request)))
        return ScriptStep(answer=default)

    def _step_call(self, step: ScriptStep, request: ModelRequest) -> ToolCall | None:
        if step.answer is not None:
            self._answer = step.answer
            return self._tool_call("new_answer", {"content": step.answer})
        if step.vote is not None:
            vote: JsonObject = {"reason": step.reason, "agent_id": _vote_target(step.vote, request)}
            if step.same_as is not None:
                vote["same_as"] = [_vote_target(wish, request) for wish in step.same_as]
            return self._tool_call("vote", vote)
        if step.call is not None:
            return self._tool_call(step.call, step.arguments)
        return None

    def _tool_call(self, name: str, arguments: JsonObject) -> ToolCall:
        self._calls_made += 1
        return ToolCall(f"call_{self._calls_made}", name, json.dumps(arguments, ensure_ascii=False))


def _coordinates(step: ScriptStep) -> bool:
    return step.answer is not None or step.vote is not None


def _is_presentation(request: ModelRequest) -> bool:
    return not any(tool.name in WORKFLOW_TOOLS for tool in request.tools)


def _vote_target(wish: str, request: ModelRequest) -> str:
    """The name on the ballot that a step's `vote` means; the wish itself where it means none."""
    ballot = _ballot(request)
    if ballot and wish in ("first", "last"):
        return ballot[0 if wish == "first" else -1].name
    if wish == "own":
        return next((entry.name for entry in ballot if entry.yours), wish)
    return next((entry.name for entry in ballot if wish in entry.text), wish)


def _ballot(request: ModelRequest) -> list[Material]:
    """The ballot that was shown last."""
    for message in reversed(request.messages):
        if isinstance(message, (UserMessage, ToolResultMessage)) and (found := _answers(message.text)):
            return found
    return []


def _answers(prompt: str) -> list[Material]:
    return [material for material in materials(prompt) if material.kind == "answer"]


def _question(request: ModelRequest) -> str:
    texts = [message.text for message in request.messages if isinstance(message, UserMessage)]
    asked = (material.text for text in texts for material in materials(text) if material.kind == "question")
    return next(asked, texts[0] if texts else "")


def _list_texts(request: ModelRequest) -> Iterator[str]:
    yield request.system
    for message in request.messages:
        yield message.text


def _tokens(text: str) -> int:
    return math.ceil(len(text) / 4)
