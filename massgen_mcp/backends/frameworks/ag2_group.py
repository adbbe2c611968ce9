"""A group chat of AG2 agents as one model. One step is one turn: of an agent, of the manager, who chooses the next one,
or of the user agent, who acts for the group in the team.

Whose turn it is stands in the conversation: each reply tells in its `replay` who spoke and who is next. A turn that
calls no other tool calls `next_speaker`, so that the round goes on; so each model call is a step of its own, in the
journal and in the budget like any other, and a resumed run repeats none.
"""

import json
import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import assert_never, cast

from massgen_mcp.backends.base import (
    NEXT_SPEAKER,
    WORKFLOW_TOOLS,
    AssistantMessage,
    DraftPart,
    JsonObject,
    Message,
    ModelRequest,
    ReasoningPart,
    StopPart,
    TextPart,
    ToolCall,
    ToolResultMessage,
    ToolSpec,
    UsagePart,
    UserMessage,
    prepare,
)
from massgen_mcp.backends.frameworks.ag2_agent import Ag2Agent
from massgen_mcp.backends.own_loop import Desk
from massgen_mcp.config.models.ag2 import AG2_MANAGER, AG2_USER, Ag2GroupConfig

_TURN = "group_chat"
"""The member of a reply's `replay` that holds its turn."""

_OF_AN_AGENT = (
    "You are {name} in a group chat with {others}, who read what you say. {user} submits the outcome for all, so "
    "`new_answer` and `vote` are not yours to call: say your part."
)
_OF_THE_USER = "A group of agents talked about this, and you act for it. Submit what came of their talk."
_OF_THE_MANAGER = "You manage a group chat. Its roles:\n{roles}"
_CHOOSE = "Choose who speaks next, one of: {names}. Reply with the name only."
_WHEN_USER = "To be chosen only when the request is answered well and nobody else is needed; that ends the talk."


@dataclass(frozen=True, slots=True)
class GroupTurn:
    """`next` None: the speaker goes on."""

    speaker: str
    next: str | None = None

    def noted(self) -> JsonObject:
        return {_TURN: {"speaker": self.speaker, "next": self.next}}


class Ag2Group:
    """`agents` by name, the user agent among them."""

    own_words = False

    def __init__(self, group: Ag2GroupConfig, agents: Mapping[str, Ag2Agent], manager: Ag2Agent) -> None:
        self.model = group.llm_config.model
        self._group = group
        self._names = [agent.name for agent in group.agents]
        self._agents = {**agents, AG2_MANAGER: manager}

    async def prepare(self) -> None:
        for agent in self._agents.values():
            await prepare(agent)

    async def work(self, task: ModelRequest, desk: Desk) -> None:
        del task  # the desk has it, too
        while True:
            speaker = self._speaker(desk.task)
            agent = self._agents[speaker]
            text, end = await agent.turn(_Seat(desk, speaker, agent.model, self._asked))
            if end.reason == "end" and desk.task.ends_with_call and speaker != AG2_USER:
                turn = GroupTurn(speaker, self._next(desk.task, speaker, text))
                call = ToolCall(f"turn_{uuid.uuid4().hex}", NEXT_SPEAKER, json.dumps({"name": turn.next}))
                await desk.use(call, replay=(turn.noted(),))
            else:
                await desk.news(replace(end, replay=(GroupTurn(speaker).noted(),)))

    async def aclose(self) -> None:
        for agent in self._agents.values():
            await agent.aclose()

    def _speaker(self, request: ModelRequest) -> str:
        """Where there is no new answer to talk about, the user agent acts at once."""
        if not request.ends_with_call or WORKFLOW_TOOLS[0] not in [tool.name for tool in request.tools]:
            return AG2_USER
        turns = list(_turns(request.messages))
        if not turns:
            return self._group.pattern.initial_agent
        return turns[-1].next or turns[-1].speaker

    def _next(self, request: ModelRequest, speaker: str, text: str) -> str:
        spoken = [turn.speaker for turn in _turns(request.messages) if turn.next and turn.speaker in self._names]
        if speaker != AG2_MANAGER:
            return AG2_USER if len(spoken) + 1 >= self._group.max_rounds else AG2_MANAGER
        counts = {name: len(re.findall(rf"(?<!\w){re.escape(name)}(?!\w)", text)) for name in self._candidates}
        chosen = max(self._candidates, key=lambda name: counts[name])
        if counts[chosen]:
            return chosen
        place = self._names.index(spoken[-1]) + 1 if spoken else 0
        return self._names[place % len(self._names)]

    @property
    def _candidates(self) -> list[str]:
        return [*self._names, AG2_USER]

    def _asked(self, request: ModelRequest, speaker: str) -> ModelRequest:
        """The request as this speaker reads it."""
        messages = tuple(_seen(request.messages, speaker))
        tools = tuple(tool for tool in request.tools if tool.name != NEXT_SPEAKER)
        if speaker == AG2_MANAGER:
            choose = UserMessage(_CHOOSE.format(names=", ".join(self._candidates)))
            system = _OF_THE_MANAGER.format(roles="\n".join(self._roles()))
            return replace(request, system=system, messages=(*messages, choose), tools=(), must_call_tool=False)
        if speaker == AG2_USER:
            if request.ends_with_call:
                tools = tuple(tool for tool in tools if tool.name in WORKFLOW_TOOLS)
            talk = any(_turns(request.messages))
            system = f"{request.system}\n\n{_OF_THE_USER}" if talk else request.system
            return replace(request, system=system, messages=messages, tools=tools)
        others = ", ".join(name for name in self._names if name != speaker) or AG2_USER
        note = _OF_AN_AGENT.format(name=speaker, others=others, user=AG2_USER)
        tools = tuple(tool for tool in tools if tool.name not in WORKFLOW_TOOLS)
        system = f"{request.system}\n\n{note}"
        return replace(request, system=system, messages=messages, tools=tools, must_call_tool=False)

    def _roles(self) -> Iterator[str]:
        for agent in self._group.agents:
            yield f"{agent.name}: {agent.description or agent.system_message or 'an assistant'}"
        yield f"{AG2_USER}: {self._group.user_agent.description or _WHEN_USER}"


class _Seat:
    """The group's desk as one speaker has it."""

    def __init__(
        self, desk: Desk, speaker: str, model: str, asked: Callable[[ModelRequest, str], ModelRequest]
    ) -> None:
        self._desk, self._speaker, self._model, self._asked = desk, speaker, model, asked

    @property
    def task(self) -> ModelRequest:
        return self._asked(self._desk.task, self._speaker)

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        return self.task.tools

    def say(self, part: TextPart | ReasoningPart | DraftPart | UsagePart) -> None:
        if isinstance(part, UsagePart):
            self._desk.say(replace(part, model=self._model))
        elif self._speaker != AG2_MANAGER:
            self._desk.say(part)

    async def use(self, *calls: ToolCall, replay: tuple[JsonObject, ...] = ()) -> tuple[ToolResultMessage, ...]:
        return await self._desk.use(*calls, replay=(*replay, GroupTurn(self._speaker).noted()))

    async def news(self, end: StopPart) -> str:
        return await self._desk.news(end)


def _turns(messages: Sequence[Message]) -> Iterator[GroupTurn]:
    for message in messages:
        if isinstance(message, AssistantMessage) and (turn := _turn_of(message)):
            yield turn


def _turn_of(message: AssistantMessage) -> GroupTurn | None:
    for item in message.replay:
        if isinstance(noted := item.get(_TURN), dict):
            return GroupTurn(str(noted["speaker"]), cast("str | None", noted["next"]))
    return None


def _seen(messages: Sequence[Message], reader: str) -> Iterator[Message]:
    """The conversation with the reader's own turns as its own, and the others' as what they said."""
    speaker = reader
    for message in messages:
        match message:
            case UserMessage():
                yield message
            case AssistantMessage():
                turn = _turn_of(message)
                speaker = turn.speaker if turn else reader
                calls = tuple(call for call in message.tool_calls if call.name != NEXT_SPEAKER)
                if speaker == reader and (message.text or calls):
                    yield AssistantMessage(message.text, calls)
                elif speaker != reader and message.text:
                    yield UserMessage(f"{speaker} said:\n{message.text}")
            case ToolResultMessage():
                if message.name != NEXT_SPEAKER:
                    result = UserMessage(f"{speaker} called {message.name}. Its result:\n{message.text}")
                    yield message if speaker == reader else result
            case _:
                assert_never(message)
