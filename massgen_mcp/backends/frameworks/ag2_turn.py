"""Turns of an AG2 agent: our conversation as AG2's events, AG2's events as our parts. The one module that imports AG2.

AG2's own loop asks the model and calls the tools, which are the desk's. What it cannot know itself ends the turn: a
call of what nobody offers, and a task that has become another one, as when fewer tools are left.
"""

from collections.abc import Callable, Sequence
from typing import Any

from ag2 import Agent, MemoryStream
from ag2.config import OpenAIConfig
from ag2.context import ConversationContext
from ag2.events import (
    BaseEvent,
    ModelMessage,
    ModelMessageChunk,
    ModelReasoning,
    ModelResponse,
    TextInput,
    ToolCallEvent,
    ToolCallsEvent,
    ToolResult,
    ToolResultEvent,
    ToolResultsEvent,
)
from ag2.events import ModelRequest as Asked
from ag2.middleware import BaseMiddleware
from ag2.middleware.base import LLMCall
from ag2.tools.final.client_tool import ClientTool

from massgen_mcp.backends.base import (
    AssistantMessage,
    Message,
    ModelRequest,
    ReasoningPart,
    TextPart,
    ToolResultMessage,
    ToolSpec,
    UserMessage,
)
from massgen_mcp.backends.chatcompletion import output_limit
from massgen_mcp.backends.frameworks.ag2_agent import Steps
from massgen_mcp.backends.http import TIMEOUT, Endpoint, http_client
from massgen_mcp.backends.wire_values import arguments_text, clean, clean_object, tool_name


class Turns:
    """One agent's turns, over one pool of connections."""

    def __init__(self, endpoint: Endpoint, name: str, system_message: str | None) -> None:
        self._endpoint = endpoint
        self._name = name
        self._own_words = (system_message,) if system_message else ()
        self._http = http_client(endpoint.api_key, endpoint.key_header)

    async def take(
        self, request: ModelRequest, hear: Callable[[TextPart | ReasoningPart], None], steps: Steps
    ) -> ModelResponse | None:
        """Let the agent work until a reply ends its turn; None: what it was asked holds no more. `hear` gets text and
        reasoning as they arrive. Raises whatever AG2 and the SDK raise.
        """
        agent = Agent(
            self._name,
            prompt=[clean(words) for words in (*self._own_words, request.system)],
            config=self._config(request),
            middleware=[lambda event, context: _AtDesk(event, context, steps)],
        )

        async def pass_on(event: BaseEvent) -> None:
            if isinstance(event, ModelMessageChunk):
                hear(TextPart(clean(event.content)))
            elif isinstance(event, ModelReasoning):
                hear(ReasoningPart(clean(event.content)))

        stream = MemoryStream()
        stream.subscribe(pass_on)
        tools = [_DeskTool(_schema(tool), steps) for tool in request.tools]
        try:
            reply = await agent.resume(*map(_event, request.messages), stream=stream, tools=tools)
        except _OtherTask:
            return None
        return reply.response

    async def close(self) -> None:
        await self._http.aclose()

    def _config(self, request: ModelRequest) -> OpenAIConfig:
        endpoint = self._endpoint
        settings: dict[str, Any] = {
            "temperature": endpoint.temperature,
            "top_p": endpoint.top_p,
            output_limit(endpoint): request.max_output_tokens or endpoint.max_output_tokens,
            "reasoning_effort": endpoint.reasoning_effort,
            "tool_choice": ("required" if request.must_call_tool else "auto") if request.tools else None,
        }
        return OpenAIConfig(
            endpoint.model,
            api_key=endpoint.api_key,
            base_url=endpoint.base_url,
            http_client=self._http,
            timeout=TIMEOUT,
            max_retries=0,  # retries are ours
            streaming=True,
            **{name: value for name, value in settings.items() if value is not None},
        )


class _OtherTask(Exception):
    pass


class _AtDesk(BaseMiddleware):
    def __init__(self, event: BaseEvent, context: ConversationContext, steps: Steps) -> None:
        super().__init__(event, context)
        self._steps = steps

    async def on_llm_call(
        self, call_next: LLMCall, events: Sequence[BaseEvent], context: ConversationContext
    ) -> ModelResponse:
        if not self._steps.stands():
            raise _OtherTask
        response = await call_next(events, context)
        response.response_force = not self._steps.replied(response)
        return response


class _DeskTool(ClientTool):
    def __init__(self, schema: dict[str, Any], steps: Steps) -> None:
        super().__init__(schema)
        self._steps = steps

    async def __call__(  # pyright: ignore[reportIncompatibleMethodOverride] - it has the result itself
        self, event: ToolCallEvent, context: ConversationContext
    ) -> ToolResultEvent:
        del context
        result = ToolResult(TextInput(clean(await self._steps.result(event.id))))
        return ToolResultEvent(parent_id=event.id, name=event.name, result=result)


def _schema(tool: ToolSpec) -> dict[str, Any]:
    function = {"name": tool.name, "description": clean(tool.description), "parameters": clean_object(tool.parameters)}
    return {"type": "function", "function": function}


def _event(message: Message) -> BaseEvent:
    """A message as AG2 would have recorded it."""
    match message:
        case UserMessage():
            return Asked([TextInput(clean(message.text))])
        case AssistantMessage():
            return _response(message)
        case ToolResultMessage():
            result = ToolResult(TextInput(clean(message.text)))
            return ToolResultsEvent([ToolResultEvent(parent_id=message.call_id, name=message.name, result=result)])


def _response(message: AssistantMessage) -> ModelResponse:
    calls = [
        ToolCallEvent(id=call.id, name=tool_name(call.name), arguments=arguments_text(call.arguments))
        for call in message.tool_calls
    ]
    text = ModelMessage(clean(message.text)) if message.text or not calls else None
    return ModelResponse(text, tool_calls=ToolCallsEvent(calls))
