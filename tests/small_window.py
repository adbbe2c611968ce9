"""A model behind a real address that reads only so much at once, and takes nothing that a provider would refuse."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from tests.raw_double import Seen, reply
from tests.wires.dialects import Chat

NOTE = "I wrote notes.txt; line 7 says 42."
LISTED = {"/v1/models": {"object": "list", "data": [{"id": "m", "object": "model"}]}}
Plan = Callable[[list[dict[str, Any]], int], Chat]


def tokens(body: dict[str, Any]) -> int:
    return len(json.dumps(body)) // 4


class SmallWindow:
    """A model behind a real address that reads `window` tokens, and refuses a request that no provider would take."""

    def __init__(
        self,
        window: int,
        plan: Plan,
        *,
        told: str = "maximum context length is {window} tokens",
        says: Mapping[str, Any] = LISTED,
        note: Callable[[], Chat] = lambda: Chat().text(NOTE),
    ) -> None:
        """`says`: what else the server tells, by path. `note`: what it replies where a note is asked for."""
        self._note = note
        self._window, self._plan, self._told, self._says = window, plan, told, says
        self.asked: list[str] = []
        self.taken: list[dict[str, Any]] = []
        self.refused = 0

    def respond(self, seen: Seen, number: int) -> bytes:
        if not seen.body:
            self.asked.append(seen.path)
            said = self._says.get(seen.path, {})
            return reply(json.dumps(said).encode(), media_type="application/json")
        messages = seen.body["messages"]
        check_pairs(messages)
        if (size := tokens(seen.body)) > self._window:
            self.refused += 1
            told = self._told.format(window=self._window)
            error = {"message": f"This model's {told}. You sent {size}.", "code": "context_length_exceeded"}
            return reply(json.dumps({"error": error}).encode(), status="400 Bad Request", media_type="application/json")
        self.taken.append(seen.body)
        if "a note to yourself" in messages[-1]["content"].replace("\n", " "):
            return self._ended(self._note(), seen)
        return self._ended(self._plan(messages, number), seen)

    def _ended(self, said: Chat, seen: Seen) -> bytes:
        return reply(said.stop_as("stop", {"prompt_tokens": tokens(seen.body), "completion_tokens": 9}).body())


def check_pairs(messages: list[dict[str, Any]]) -> None:
    """Every call has its result right behind it, and no result is without its call: providers refuse anything else."""
    open_calls = set[str]()
    for message in messages:
        if message["role"] == "tool":
            open_calls.remove(message["tool_call_id"])
        else:
            assert not open_calls, "calls without results"
            open_calls = {call["id"] for call in message.get("tool_calls", [])}
    assert not open_calls, "calls without results"
