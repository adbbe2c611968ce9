"""Turns of an AG2 agent: our conversation as AG2's events, AG2's events as our parts. The one module that imports AG2.

AG2's own loop asks the model and calls the tools, which are the desk's. What it cannot know itself ends the turn: a
call of what nobody offers, and a task that has become another one, as when fewer tools are left.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ag2 import Agent, MemoryStream
from ag2.config import AnthropicConfig, OpenAIConfig
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
from massgen_mcp.backends.claude import choose_key_header, choose_tool_choice, remove_version, request_thinking
from massgen_mcp.backends.frameworks.ag2_agent import Ag2Api, Steps
from massgen_mcp.backends.http import TIMEOUT, Endpoint, http_client
from massgen_mcp.backends.prompt_cache import make_cache_fields
from massgen_mcp.backends.wire_values import arguments_text, clean, clean_object, tool_name
from massgen_mcp.config.providers.catalog import MESSAGES_OUTPUT


class Turns:
    """One agent's turns, over one pool of connections."""

    def __init__(self, endpoint: Endpoint, name: str, system_message: str | None, api: Ag2Api) -> None:
        key_header = endpoint.key_header
        if api == "messages":
            endpoint = remove_version(endpoint)
            key_header = choose_key_header(endpoint)
        self._endpoint = endpoint
        self._name = name
        self._own_words = (system_message,) if system_message else ()
        self._api: Ag2Api = api
        self._http = http_client(endpoint, key_header)

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
            reply = await agent.resume(*map(_event, self._history(request)), stream=stream, tools=tools)
        except _OtherTask:
            return None
        return reply.response

    async def close(self) -> None:
        await self._http.aclose()

    def _history(self, request: ModelRequest) -> Sequence[Message]:
        """The messages as the API takes them: Anthropic's refuses blank text of the model."""
        if self._api == "chat":
            return request.messages
        return [
            _without_blank_text(message)
            for message in request.messages
            if not isinstance(message, AssistantMessage) or message.text.strip() or message.tool_calls
        ]

    def _config(self, request: ModelRequest) -> OpenAIConfig | AnthropicConfig:
        match self._api:
            case "chat":
                return self._chat_config(request)
            case "messages":
                return self._messages_config(request)

    def _chat_config(self, request: ModelRequest) -> OpenAIConfig:
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
            extra_body=make_cache_fields(endpoint, request),
            **{name: value for name, value in settings.items() if value is not None},
        )

    def _messages_config(self, request: ModelRequest) -> AnthropicConfig:
        """AG2 marks the system message and the end of the conversation for the cache itself."""
        endpoint = self._endpoint
        body = request_thinking(endpoint.reasoning_effort)
        if request.tools:
            body["tool_choice"] = choose_tool_choice(request, body.get("thinking"))
        return AnthropicConfig(
            endpoint.model,
            max_tokens=request.max_output_tokens or endpoint.max_output_tokens or MESSAGES_OUTPUT,
            api_key=endpoint.api_key,
            base_url=endpoint.base_url,
            temperature=endpoint.temperature,
            top_p=endpoint.top_p,
            streaming=True,
            timeout=TIMEOUT,  # pyright: ignore[reportArgumentType] - the SDK takes it, too
            max_retries=0,  # retries are ours
            http_client=self._http,
            extra_body=body,
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


def _without_blank_text(message: Message) -> Message:
    if isinstance(message, AssistantMessage) and not message.text.strip():
        return replace(message, text="")
    return message


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
