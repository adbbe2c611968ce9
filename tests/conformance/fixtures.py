"""What the conformance suite wants to find on a server: added to ours, which stays as it is otherwise.

Names and texts are the suite's. Nothing here is part of the product.
"""

import base64
from typing import Annotated, Any

import anyio
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.prompts.base import UserMessage
from mcp.server.subscriptions import PromptsListChanged, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp.types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    AudioContent,
    CallToolResult,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    EmbeddedResource,
    ImageContent,
    InputRequests,
    InputRequiredResult,
    ListRootsRequest,
    ListRootsResult,
    LoggingMessageNotification,
    LoggingMessageNotificationParams,
    SamplingMessage,
    TextContent,
    TextResourceContents,
)
from pydantic import Field

from massgen_mcp.server.app import MassgenServer

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
WAV = base64.b64encode(
    b"RIFF\x26\x00\x00\x00WAVEfmt \x10\0\0\0\1\0\1\0@\x1f\0\0\x80>\0\0\2\0\x10\0data\2\0\0\0\0\0"
).decode()
PAUSE_SECONDS = 0.05
NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
OK = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}


def add_fixtures(server: MassgenServer) -> None:
    _add_plain_tools(server)
    _add_talking_tools(server)
    _add_tools_that_need_input(server)
    _add_tools_with_schemas(server)
    _add_resources(server)
    _add_prompts(server)


def form(message: str, schema: dict[str, Any]) -> ElicitRequest:
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def sampling(text: str, most: int) -> CreateMessageRequest:
    message = SamplingMessage(role="user", content=TextContent(type="text", text=text))
    return CreateMessageRequest(params=CreateMessageRequestParams(messages=[message], max_tokens=most))


def _add_plain_tools(server: MassgenServer) -> None:  # noqa: C901 - one function for each tool
    image = ImageContent(type="image", data=PNG, mime_type="image/png")

    @server.tool(description="Text.", structured_output=False)
    async def test_simple_text() -> str:
        return "This is a simple text response for testing."

    @server.tool(description="An image.", structured_output=False)
    async def test_image_content() -> ImageContent:
        return image

    @server.tool(description="A sound.", structured_output=False)
    async def test_audio_content() -> AudioContent:
        return AudioContent(type="audio", data=WAV, mime_type="audio/wav")

    @server.tool(description="A resource.", structured_output=False)
    async def test_embedded_resource() -> EmbeddedResource:
        return _embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")

    @server.tool(description="Several kinds of content.", structured_output=False)
    async def test_multiple_content_types() -> list[TextContent | ImageContent | EmbeddedResource]:
        told = TextContent(type="text", text="Multiple content types test:")
        return [
            told,
            image,
            _embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
        ]

    @server.tool(description="An error.", structured_output=False)
    async def test_error_handling() -> str:
        raise ToolError("This tool intentionally returns an error for testing")

    @server.tool(description="Needs sampling.", structured_output=False)
    async def test_missing_capability(context: Context) -> str:
        capabilities = context.client_capabilities
        if capabilities is None or capabilities.sampling is None:
            data: dict[str, Any] = {"requiredCapabilities": {"sampling": {}}}
            raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "this tool needs sampling", data)
        return "ok"

    @server.tool(description="Says that the tools have changed.", structured_output=False)
    async def test_trigger_tool_change() -> str:
        await server.changes.publish(ToolsListChanged())
        return "ok"

    @server.tool(description="Says that the prompts have changed.", structured_output=False)
    async def test_trigger_prompt_change() -> str:
        await server.changes.publish(PromptsListChanged())
        return "ok"


def _add_talking_tools(server: MassgenServer) -> None:  # noqa: C901 - one function for each tool
    """Those that say something to the client, or ask it, while they work."""

    @server.tool(description="Logs.", structured_output=False)
    async def test_tool_with_logging(context: Context) -> str:
        for text in ("Tool execution started", "Tool processing data", "Tool execution completed"):
            params = LoggingMessageNotificationParams(level="info", data=text)
            await context.session.send_notification(LoggingMessageNotification(params=params), context.request_id)
            await anyio.sleep(PAUSE_SECONDS)
        return "Logged three times."

    @server.tool(description="Logs nothing unless it is asked to.", structured_output=False)
    async def test_logging_tool() -> str:
        return "ok"

    @server.tool(description="Reports progress.", structured_output=False)
    async def test_tool_with_progress(context: Context) -> str:
        for done in (0, 50, 100):
            await context.report_progress(done, 100)
            await anyio.sleep(PAUSE_SECONDS)
        return "ok"

    @server.tool(description="Closes its stream, where streams can be taken up again.", structured_output=False)
    async def test_reconnection(context: Context) -> str:
        await context.close_sse_stream()
        await anyio.sleep(PAUSE_SECONDS)
        return "Still there."

    @server.tool(description="Asks the client's model.", structured_output=False)
    async def test_sampling(context: Context, prompt: str) -> str:
        request = sampling(prompt, 100)
        here = ServerMessageMetadata(related_request_id=context.request_id)
        result = await context.session.send_request(request, CreateMessageResult, metadata=here)
        return f"LLM response: {result.content.model_dump_json()}"

    @server.tool(description="Asks the person.", structured_output=False)
    async def test_elicitation(context: Context, message: str) -> str:
        properties = {
            "username": {"type": "string", "description": "User's response"},
            "email": {"type": "string", "description": "User's email address"},
        }
        return f"User response: {await _asked(context, message, properties, ['username', 'email'])}"

    @server.tool(description="Asks with defaults.", structured_output=False)
    async def test_elicitation_sep1034_defaults(context: Context) -> str:
        properties = {
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
            "verified": {"type": "boolean", "default": True},
        }
        return f"Elicitation completed: {await _asked(context, 'Defaults', properties, [])}"

    @server.tool(description="Asks with choices.", structured_output=False)
    async def test_elicitation_sep1330_enums(context: Context) -> str:
        titled = [
            {"const": f"value{n}", "title": f"{name} Option"} for n, name in enumerate(("First", "Second", "Third"), 1)
        ]
        many = [
            {"const": f"value{n}", "title": f"{name} Choice"} for n, name in enumerate(("First", "Second", "Third"), 1)
        ]
        plain = ["option1", "option2", "option3"]
        legacy = {"enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"]}
        properties = {
            "untitledSingle": {"type": "string", "enum": plain},
            "titledSingle": {"type": "string", "oneOf": titled},
            "legacyEnum": {"type": "string", **legacy},
            "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
            "titledMulti": {"type": "array", "items": {"anyOf": many}},
        }
        return f"Elicitation completed: {await _asked(context, 'Choices', properties, [])}"


async def _asked(context: Context, message: str, properties: dict[str, Any], required: list[str]) -> str:
    schema = {"type": "object", "properties": properties, "required": required}
    answer = await context.session.elicit_form(message, schema, context.request_id)
    return f"action={answer.action}, content={answer.content}"


def _add_tools_that_need_input(server: MassgenServer) -> None:  # noqa: C901 - one function for each tool
    """Those of 2026-07-28 whose first result is a question."""

    @server.tool(description="Asks for a name.", structured_output=False)
    async def test_input_required_result_elicitation(context: Context) -> str | InputRequiredResult:
        name = _given(context, "user_name", "name")
        if name is None:
            return InputRequiredResult(input_requests={"user_name": form("What is your name?", NAME)})
        return f"Hello, {name}!"

    @server.tool(description="The same, as a stream.", structured_output=False)
    async def test_streaming_elicitation(context: Context) -> InputRequiredResult:
        await context.report_progress(1, 2)
        return InputRequiredResult(input_requests={"user_name": form("What is your name?", NAME)})

    @server.tool(description="Asks the client's model.", structured_output=False)
    async def test_input_required_result_sampling(context: Context) -> str | InputRequiredResult:
        answer = (context.input_responses or {}).get("capital_question")
        if not isinstance(answer, CreateMessageResult):
            return InputRequiredResult(
                input_requests={"capital_question": sampling("What is the capital of France?", 100)}
            )
        return answer.content.model_dump_json()

    @server.tool(description="Asks for roots.", structured_output=False)
    async def test_input_required_result_list_roots(context: Context) -> str | InputRequiredResult:
        answer = (context.input_responses or {}).get("client_roots")
        if not isinstance(answer, ListRootsResult):
            return InputRequiredResult(input_requests={"client_roots": ListRootsRequest()})
        return ", ".join(str(root.uri) for root in answer.roots)

    @server.tool(description="Keeps a state with the client.", structured_output=False)
    async def test_input_required_result_request_state(context: Context) -> str | InputRequiredResult:
        if _given(context, "confirm", "ok") is None or context.request_state != "confirming":
            return _asks("confirm", form("Please confirm", OK), "confirming")
        return "state-ok"

    @server.tool(description="Keeps a state that nobody may change.", structured_output=False)
    async def test_input_required_result_tampered_state(context: Context) -> str | InputRequiredResult:
        if context.request_state is None:
            return _asks("confirm", form("Please confirm", OK), "sealed")
        return "state-ok"

    @server.tool(description="Asks for three things at once.", structured_output=False)
    async def test_input_required_result_multiple_inputs(context: Context) -> str | InputRequiredResult:
        requests: InputRequests = {
            "user_name": form("What is your name?", NAME),
            "greeting": sampling("Generate a greeting", 50),
            "client_roots": ListRootsRequest(),
        }
        if requests.keys() - (context.input_responses or {}).keys():
            return InputRequiredResult(input_requests=requests, request_state="three")
        return "all there"

    @server.tool(description="Asks twice.", structured_output=False)
    async def test_input_required_result_multi_round(context: Context) -> str | InputRequiredResult:
        color = {"type": "object", "properties": {"color": {"type": "string"}}, "required": ["color"]}
        if context.request_state is None:
            return _asks("step1", form("Step 1: What is your name?", NAME), "round-1")
        if context.request_state == "round-1":
            return _asks("step2", form("Step 2: What is your favorite color?", color), "round-2")
        return "done"

    @server.tool(description="Asks only for what the client can do.", structured_output=False)
    async def test_input_required_result_capabilities(context: Context) -> str | InputRequiredResult:
        able, requests = context.client_capabilities, dict[str, Any]()
        if able and able.elicitation:
            requests["user_name"] = form("What is your name?", NAME)
        if able and able.sampling:
            requests["greeting"] = sampling("Generate a greeting", 50)
        if context.input_responses or not requests:
            return "ok"
        return InputRequiredResult(input_requests=requests)


def _asks(key: str, request: ElicitRequest, state: str) -> InputRequiredResult:
    return InputRequiredResult(input_requests={key: request}, request_state=state)


def _given(context: Context, key: str, field: str) -> object:
    """What the person wrote into a field; None as long as they did not."""
    answer = (context.input_responses or {}).get(key)
    return (answer.content or {}).get(field) if isinstance(answer, ElicitResult) else None


def _add_tools_with_schemas(server: MassgenServer) -> None:
    @server.tool(description="An argument that is a header, too.", structured_output=False)
    async def test_custom_headers(region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})]) -> str:
        return region

    @server.tool(
        name="json_schema_2020_12_tool", description="Tool with JSON Schema 2020-12 features", structured_output=False
    )
    async def json_schema() -> CallToolResult:
        return CallToolResult(content=[TextContent(type="text", text="ok")])

    address = {"street": {"type": "string"}, "city": {"type": "string"}}
    either = {"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}
    # The SDK derives every other schema, and has no way to give it one.
    tools = server._tool_manager  # pyright: ignore[reportPrivateUsage]
    tool = tools.get_tool("json_schema_2020_12_tool")
    assert tool
    tool.parameters = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": address}},
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [either],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": False,
    }


def _add_resources(server: MassgenServer) -> None:
    @server.resource("test://static-text", description="Text.", mime_type="text/plain")
    async def text() -> str:
        return "This is the content of the static text resource."

    @server.resource("test://static-binary", description="An image.", mime_type="image/png")
    async def binary() -> bytes:
        return base64.b64decode(PNG)

    @server.resource("test://watched-resource", description="Changes.", mime_type="text/plain")
    async def watched() -> str:
        return "Watched."

    @server.resource("test://template/{id}/data", description="By id.", mime_type="application/json")
    async def by_id(id: str) -> dict[str, Any]:  # noqa: A002 - the suite's name
        return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}


def _add_prompts(server: MassgenServer) -> None:
    @server.prompt(description="Simple.")
    async def test_simple_prompt() -> str:
        return "This is a simple prompt for testing."

    @server.prompt(description="With arguments.")
    async def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
        return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"

    @server.prompt(description="With a resource.")
    async def test_prompt_with_embedded_resource(resourceUri: str) -> list[UserMessage]:  # noqa: N803 - the suite's name
        embedded = _embedded(resourceUri, "text/plain", "Embedded resource content for testing.")
        return [UserMessage(embedded), UserMessage("Please process the embedded resource above.")]

    @server.prompt(description="With an image.")
    async def test_prompt_with_image() -> list[UserMessage]:
        image = ImageContent(type="image", data=PNG, mime_type="image/png")
        return [UserMessage(image), UserMessage("Please analyze the image above.")]

    @server.prompt(description="Asks for input.")
    async def test_input_required_result_prompt(context: Context) -> str | InputRequiredResult:
        given = _given(context, "user_context", "context")
        if given is None:
            properties = {"context": {"type": "string"}}
            schema = {"type": "object", "properties": properties, "required": ["context"]}
            return InputRequiredResult(
                input_requests={"user_context": form("What context should the prompt use?", schema)}
            )
        return f"With the context {given}."


def _embedded(uri: str, kind: str, text: str) -> EmbeddedResource:
    return EmbeddedResource(type="resource", resource=TextResourceContents(uri=uri, mime_type=kind, text=text))
