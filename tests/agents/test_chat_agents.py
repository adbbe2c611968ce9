"""Agents to talk to: a reply streams, is remembered, and fails without leaving half of itself behind."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest

from massgen_mcp import ChatAgent, ConfigurableAgent, MassgenError, SingleAgent, StreamChunk
from massgen_mcp.agent_config import AgentConfig
from massgen_mcp.backends.base import (
    AssistantMessage,
    ModelRequest,
    Part,
    ReasoningPart,
    StopPart,
    TextPart,
    ToolCall,
    ToolCallPart,
    ToolResultMessage,
    UsagePart,
    UserMessage,
)
from massgen_mcp.backends.calling import RetryPolicy
from massgen_mcp.errors import BackendError
from tests.wire_double import Aimock

AT_ONCE = RetryPolicy(first_wait=0.0)
LOOK = {"type": "function", "function": {"name": "look", "description": "Look.", "parameters": {"type": "object"}}}


@dataclass(frozen=True)
class Pause:
    seconds: float


Turn = list[Part | BackendError | Pause]


@dataclass
class Prompter:
    """A model with its replies written down, one list per call; an error ends it."""

    turns: list[Turn]
    model: str = "prompter"
    requests: list[ModelRequest] = field(default_factory=list[ModelRequest])
    streams_closed: int = 0
    closed: bool = False

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Part]:
        self.requests.append(request)
        try:
            for part in self.turns.pop(0):
                if isinstance(part, BackendError):
                    raise part
                if isinstance(part, Pause):
                    await anyio.sleep(part.seconds)
                else:
                    yield part
        finally:
            self.streams_closed += 1

    async def aclose(self) -> None:
        self.closed = True


def says(*texts: str) -> Turn:
    return [*map(TextPart, texts), StopPart("end")]


def user(text: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": text}]


async def heard(chunks: AsyncGenerator[StreamChunk]) -> list[StreamChunk]:
    return [chunk async for chunk in chunks]


def said(request: ModelRequest) -> list[str]:
    return [request.system, *(message.text for message in request.messages)]


# -- a turn ---------------------------------------------------------------------------------------------------------


async def test_a_reply_arrives_in_pieces_and_then_whole() -> None:
    usage = UsagePart(input_tokens=5, output_tokens=2)
    call = ToolCall("c1", "look", '{"where": "attic"}')
    turn: Turn = [
        ReasoningPart("Hm. "), TextPart("I "), TextPart("look."), ToolCallPart(call), usage, StopPart("tool_calls")
    ]  # fmt: skip
    agent = SingleAgent(Prompter([turn]), "ada")
    chunks = await heard(agent.chat(user("Where is it?"), [LOOK]))
    assert [chunk.type for chunk in chunks] == [
        "reasoning", "content", "content", "tool_calls", "complete_message", "done",
    ]  # fmt: skip
    assert [chunk.content for chunk in chunks[:3]] == ["Hm. ", "I ", "look."]
    wire = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"where": "attic"}'}}
    assert chunks[3].tool_calls == [wire]
    assert chunks[4].complete_message == {"role": "assistant", "content": "I look.", "tool_calls": [wire]}
    assert (chunks[5].stop, chunks[5].usage) == ("tool_calls", usage)
    assert {chunk.source for chunk in chunks} == {"ada"}


async def test_the_conversation_is_remembered() -> None:
    model = Prompter([says("Hello."), says("Ada.")])
    agent = SingleAgent(model, system_message="Be brief.")
    assert await agent.simple_chat("I am Ada.") == "Hello."
    assert await agent.simple_chat("Who am I?") == "Ada."
    assert said(model.requests[1]) == ["Be brief.", "I am Ada.", "Hello.", "Who am I?"]
    assert agent.conversation_history == [
        *user("I am Ada."), {"role": "assistant", "content": "Hello."},
        *user("Who am I?"), {"role": "assistant", "content": "Ada."},
    ]  # fmt: skip
    agent.conversation_history.clear()
    assert agent.get_status()["conversation_length"] == 4


async def test_what_a_provider_wants_to_see_again_is_kept() -> None:
    model = Prompter([[TextPart("A."), StopPart("end", replay=({"signature": "x"},))], says("B.")])
    agent = SingleAgent(model)
    await agent.simple_chat("One")
    await agent.simple_chat("Two")
    assert model.requests[1].messages[1] == AssistantMessage("A.", (), ({"signature": "x"},))


async def test_a_tool_call_is_answered_in_the_next_turn() -> None:
    call = ToolCallPart(ToolCall("c1", "look", "{}"))
    model = Prompter([[call, StopPart("tool_calls")], says("It is empty.")])
    agent = SingleAgent(model)
    await heard(agent.chat(user("Look!"), [LOOK]))
    result = {"role": "tool", "tool_call_id": "c1", "content": "nothing"}
    chunks = await heard(agent.chat([result], [LOOK]))
    assert chunks[0].content == "It is empty."
    *_, answered = model.requests[1].messages
    assert (answered.text, getattr(answered, "call_id", ""), getattr(answered, "name", "")) == ("nothing", "c1", "look")
    assert agent.conversation_history[2] == result
    (tool,) = model.requests[0].tools
    assert (tool.name, tool.description, tool.parameters) == ("look", "Look.", {"type": "object"})


async def test_a_system_message_in_a_conversation_holds_until_the_reset() -> None:
    model = Prompter([says(text) for text in "12345"])
    agent = SingleAgent(model, system_message="Own.")
    given = {"role": "system", "content": "Given."}
    await heard(agent.chat([given, *user("a")]))
    assert agent.get_configurable_system_message() == "Given."
    await heard(agent.chat(user("b"), clear_history=True))
    await heard(agent.chat(user("c"), reset_chat=True))
    await heard(agent.chat([given, *user("d")], clear_history=True))
    agent.reset()
    assert agent.conversation_history == []
    await heard(agent.chat(user("e")))
    assert [said(request) for request in model.requests] == [
        ["Given.", "a"], ["Given.", "b"], ["Own.", "c"], ["Given.", "d"], ["Own.", "e"],
    ]  # fmt: skip


async def test_status_tells_who_and_how_long() -> None:
    agent = SingleAgent(Prompter([says("x")]), "ada", "Own.", "s1")
    await agent.simple_chat("hello")
    assert agent.get_status() == {
        "agent_type": "SingleAgent", "agent_id": "ada", "session_id": "s1", "model": "prompter",
        "system_message": "Own.", "conversation_length": 2,
    }  # fmt: skip
    first, second = SingleAgent(Prompter([])), SingleAgent(Prompter([]))
    assert first.agent_id != second.agent_id
    assert first.session_id != second.session_id
    assert isinstance(first, ChatAgent)


async def test_leaving_closes_the_backend() -> None:
    model = Prompter([])
    async with SingleAgent(model):
        assert not model.closed
    assert model.closed


async def test_the_texts_of_a_message_may_come_in_parts() -> None:
    model = Prompter([says("x")])
    parts = [{"type": "text", "text": "Two "}, {"type": "text", "text": "parts"}]
    await heard(SingleAgent(model).chat([{"role": "user", "content": parts}]))
    assert model.requests[0].messages == (UserMessage("Two parts"),)


async def test_a_conversation_from_elsewhere_can_be_gone_on_with() -> None:
    model = Prompter([says("x")])
    calls = [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": {"where": "attic"}}}]
    earlier = [
        *user("Where?"),
        {"role": "assistant", "content": "I look.", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "c1", "content": "dust"},
        {"role": "assistant", "content": "Nowhere."},
    ]
    await heard(SingleAgent(model).chat([*earlier, *user("Sure?")]))
    assert model.requests[0].messages == (
        UserMessage("Where?"),
        AssistantMessage("I look.", (ToolCall("c1", "look", '{"where": "attic"}'),)),
        ToolResultMessage("c1", "look", "dust"),
        AssistantMessage("Nowhere."),
        UserMessage("Sure?"),
    )


# -- what goes wrong ------------------------------------------------------------------------------------------------


async def test_a_call_that_fails_is_tried_again_under_the_one_policy() -> None:
    """Also after a part that nobody was handed."""
    limited = BackendError("rate_limited", "slow down", retryable=True)
    counted = UsagePart(input_tokens=5, output_tokens=0)
    model = Prompter([[limited], [counted, limited], says("Here.")])
    agent = SingleAgent(model, retry=AT_ONCE)
    assert await agent.simple_chat("Hello?") == "Here."
    assert len(model.requests) == 3
    worse = Prompter([[limited] for _ in range(9)])
    with pytest.raises(BackendError, match="slow down"):
        await SingleAgent(worse, retry=AT_ONCE).simple_chat("Hello?")
    assert len(worse.requests) == AT_ONCE.attempts


async def test_what_was_handed_on_is_not_said_twice() -> None:
    broken = BackendError("provider_error", "gone", retryable=True)
    model = Prompter([[TextPart("Once upon"), broken], says("again")])
    agent = SingleAgent(model, retry=AT_ONCE)
    chunks = agent.chat(user("Tell!"))
    assert (await anext(chunks)).content == "Once upon"
    with pytest.raises(BackendError, match="gone"):
        await anext(chunks)
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    "failing",
    [
        [BackendError("auth", "no key")],
        [TextPart("half"), BackendError("provider_error", "gone")],
        [TextPart("no end")],
        [TextPart("x" * 9_000_000), StopPart("end")],
    ],
    ids=["at once", "in the middle", "without an end", "too long"],
)
async def test_a_failure_leaves_the_conversation_as_it_was(failing: Turn) -> None:
    model = Prompter([says("Hello."), failing, says("Now.")])
    agent = SingleAgent(model, system_message="Own.", retry=AT_ONCE)
    await agent.simple_chat("Hi")
    before = agent.conversation_history
    turn = [{"role": "system", "content": "Other."}, *user("Go on")]
    with pytest.raises(BackendError):
        await heard(agent.chat(turn, reset_chat=True))
    assert agent.conversation_history == before
    assert agent.get_configurable_system_message() == "Own."
    await agent.simple_chat("Go on")
    assert said(model.requests[-1]) == ["Own.", "Hi", "Hello.", "Go on"]


async def test_a_reply_has_until_its_time_is_up() -> None:
    slow = Prompter([[TextPart("a"), Pause(30), StopPart("end")]])
    with (
        anyio.fail_after(5),
        pytest.raises(BackendError, match=r"^timeout_seconds: no complete reply within 0\.05 s; ") as e,
    ):
        await SingleAgent(slow, timeout_seconds=0.05).simple_chat("Hello?")
    assert e.value.reason == "timeout"
    assert slow.streams_closed == 1


async def test_whoever_stops_listening_closes_the_stream() -> None:
    model = Prompter([[TextPart("a"), TextPart("b"), Pause(30), StopPart("end")], says("c")])
    agent = SingleAgent(model)
    chunks = agent.chat(user("Talk!"))
    assert (await anext(chunks)).content == "a"
    await chunks.aclose()
    assert model.streams_closed == 1
    assert agent.conversation_history == []
    assert await agent.simple_chat("Again?") == "c"


MALFORMED: list[tuple[Any, str]] = [
    ([], "messages: there is nothing to reply to"),
    ([{"role": "system", "content": "x"}], "messages: there is nothing to reply to"),
    ([{"role": "robot", "content": "x"}], "messages[0]: role is one of: system, user, assistant, tool"),
    ([{"role": "user"}], "messages[0]: content must be text"),
    (
        [{"role": "user", "content": [{"type": "image_url", "image_url": "x"}]}],
        "messages[0]: only text can be sent",
    ),
    (
        [{"role": "tool", "tool_call_id": "c9", "content": "x"}],
        "messages[0]: tool_call_id 'c9' belongs to no open call; open: none",
    ),
    (
        [{"role": "assistant", "tool_calls": [{"id": 1}]}, {"role": "user", "content": "x"}],
        "messages[0]: a tool call is",
    ),
    ([{"role": "assistant", "content": "x", "tool_calls": "look"}], "messages[0]: tool_calls must be a list"),
    (
        [
            {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "look", "arguments": {}}}]},
            {"role": "user", "content": "x"},
        ],
        "messages[1]: tool calls without a result: c1",
    ),
    (
        [{"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "look"}}]}],
        "messages[1]: missing: the results of tool calls c1",
    ),
]


@pytest.mark.parametrize(("messages", "told"), MALFORMED)
async def test_messages_that_no_model_could_be_sent_are_refused_with_their_place(messages: Any, told: str) -> None:
    model = Prompter([])
    with pytest.raises(MassgenError) as caught:
        await heard(SingleAgent(model).chat(messages))
    assert str(caught.value).startswith(told)
    assert caught.value.code == "invalid_arguments"
    assert model.requests == []


@pytest.mark.parametrize("tool", [{}, {"function": {"name": ""}}, {"name": "x", "parameters": []}])
async def test_a_tool_of_another_form_is_refused(tool: dict[str, Any]) -> None:
    with pytest.raises(MassgenError, match=r"tools\[0\]: a tool is"):
        await heard(SingleAgent(Prompter([])).chat(user("x"), [tool]))


# -- from a config --------------------------------------------------------------------------------------------------


async def test_a_configured_agent_talks_to_its_provider_with_its_instructions(aimock: Aimock) -> None:
    aimock.load(
        {"match": {"userMessage": "capital"}, "response": {"content": "Paris"}},
        {"match": {"userMessage": "river"}, "response": {"content": "The Seine"}},
    )
    config = AgentConfig.create_chatcompletion_config("some-model", base_url=f"{aimock.url}/v1", api_key="sk-given")
    config = config.with_agent_id("ada").with_custom_instruction("Be brief.")
    async with ConfigurableAgent(config, environ={}) as agent:
        assert await agent.simple_chat("The capital?") == "Paris"
        assert await agent.simple_chat("Its river?") == "The Seine"
        assert agent.agent_id == "ada"
        assert agent.config is config
    second = aimock.requests[1]
    assert second.headers["authorization"] == "Bearer sk-given"
    assert [(one["role"], one["content"]) for one in second.body["messages"]] == [
        ("system", "Be brief."), ("user", "The capital?"), ("assistant", "Paris"), ("user", "Its river?"),
    ]  # fmt: skip


async def test_a_missing_key_is_told_before_anything_is_asked() -> None:
    with pytest.raises(BackendError, match="set OPENAI_API_KEY in the environment") as caught:
        ConfigurableAgent(AgentConfig.create_openai_config(), environ={})
    assert caught.value.reason == "auth"


async def test_a_backend_of_ones_own_is_taken_instead() -> None:
    model = Prompter([says("Mine.")])
    agent = ConfigurableAgent(AgentConfig({"system_prompt": "Own."}), model)
    assert await agent.simple_chat("Whose?") == "Mine."
    assert model.requests[0].system == "Own."
