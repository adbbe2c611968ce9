"""How models and servers act that do not call tools the way they are asked to: a row each, played in whole runs.

Every double answers over Chat Completions; its words depend on nothing but the request.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from massgen_mcp.backends.abilities import REFUSALS, Refusal
from massgen_mcp.config.loader import config_from_data
from massgen_mcp.config.models.config import Config
from massgen_mcp.events.agent_work import ModelReplied
from massgen_mcp.events.coordination import AnswerSubmitted, VoteCast
from massgen_mcp.markers import materials
from tests.raw_double import Flow, Seen, answering, reply
from tests.teams import Ended, run_team
from tests.wires.calls import load_sdks
from tests.wires.dialects import Chat

ANSWER = "Paris is the capital of France."
THOUGHT = "The user wants a capital"
PROSE = "All of them name Paris.\nagent2 is wrong because of its tone, so I find the first one best."


class Asked(NamedTuple):
    """What a model makes of a request."""

    number: int
    """Of the request, from 0: words that differ from call to call hold it."""
    body: dict[str, Any]

    @property
    def system(self) -> str:
        return str(self.body["messages"][0]["content"])

    @property
    def last(self) -> str:
        return str(self.body["messages"][-1]["content"])

    @property
    def ballot(self) -> list[str]:
        """The names on the ballot that was shown last."""
        for message in reversed(self.body["messages"]):
            found = [material.name for material in materials(str(message["content"])) if material.kind == "answer"]
            if found:
                return found
        return []

    @property
    def texts(self) -> dict[str, str]:
        """The answers on that ballot, by name."""
        found = [material for message in self.body["messages"] for material in materials(str(message["content"]))]
        return {material.name: material.text for material in found if material.kind == "answer"}

    @property
    def presents(self) -> bool:
        return any("Write the final answer" in str(message["content"]) for message in self.body["messages"][:4])

    @property
    def votes(self) -> bool:
        return bool(self.ballot) and not self.presents

    @property
    def reminded(self) -> bool:
        return "Your turn is not over" in self.last

    @property
    def offered(self) -> bool:
        return "tools" in self.body

    @property
    def action(self) -> tuple[str, dict[str, Any]]:
        """What a model does here that knows what to do."""
        if self.votes:
            return "vote", {"agent_id": self.ballot[0], "reason": "It is right, and says so plainly."}
        return "new_answer", {"content": f"{ANSWER} ({self.number})"}


def said(text: str) -> bytes:
    return reply(Chat().text(*_pieces(text)).stop("end").body())


def called(name: str, arguments: dict[str, Any]) -> bytes:
    return reply(Chat().call(name, json.dumps(arguments)).stop("calls").body())


def refusing(row: Refusal) -> bytes:
    """What the server of `row` answers."""
    body = json.dumps({"error": {"message": row.message, "type": "api_error", "param": None, "code": None}}).encode()
    return reply(body, status=f"{row.status} Refused", media_type="application/json")


def _pieces(text: str) -> list[str]:
    """Streamed in pieces of three characters, so that nothing can be read from one piece alone."""
    return [text[at : at + 3] for at in range(0, len(text), 3)]


# -- the manners ------------------------------------------------------------------------------------------------------


def prose(asked: Asked) -> bytes:
    """Says its answer; votes in words, and by a line when it is told that it may."""
    if not asked.votes:
        return said(f"{ANSWER} ({asked.number})")
    told = "a line of its own" in asked.last or "a line of its own" in asked.system
    return said(f"vote: {asked.ballot[0]}\nIt is right, and says so plainly." if told else PROSE)


def written(form: Callable[[str, dict[str, Any]], str]) -> Callable[[Asked], bytes]:
    """Writes every call into its text, after a word of its own."""

    def manner(asked: Asked) -> bytes:
        if asked.presents:
            return said(ANSWER)
        return said(f"Let me decide.\n\n{form(*asked.action)}")

    return manner


def _object(name: str, arguments: dict[str, Any]) -> str:
    return json.dumps({"name": name, "arguments": arguments})


def thinking(asked: Asked) -> bytes:
    """Thinks in its text before it speaks, and calls tools as it should."""
    thought = f'<think>\n{THOUGHT}: {{"name": "vote"}}\n</think>\n\n'
    if asked.presents:
        return said(thought + ANSWER)
    name, arguments = asked.action
    return reply(Chat().text(*_pieces(thought)).call(name, json.dumps(arguments)).stop("calls").body())


def thinking_aloud(asked: Asked) -> bytes:
    """Thinks in its text, and speaks prose."""
    whole, thought = prose(asked), reply(Chat().text(*_pieces(f"<think>{THOUGHT}</think>\n")).body())
    return thought + whole.partition(b"\r\n\r\n")[2]


def without_tools(row: Refusal, manner: Callable[[Asked], bytes]) -> Callable[[Asked], bytes]:
    """Refuses tools in the words of `row`."""
    return lambda asked: refusing(row) if asked.offered else manner(asked)


def without_force(row: Refusal) -> Callable[[Asked], bytes]:
    """Refuses to be forced in the words of `row`; thinks aloud until it is reminded, then calls."""

    def manner(asked: Asked) -> bytes:
        if asked.body.get("tool_choice") == "required":
            return refusing(row)
        if asked.presents or not (asked.reminded or not asked.votes):
            return said(ANSWER if asked.presents else PROSE)
        return called(*asked.action)

    return manner


# -- the rows ---------------------------------------------------------------------------------------------------------


class Calls(NamedTuple):
    """How many replies a run took, and how many requests: those that a server refused are no calls."""

    replies: int
    requests: int

    def __str__(self) -> str:
        refused = self.requests - self.replies
        calls = f"completed, {self.replies} call{'s' if self.replies > 1 else ''}"
        return f"{calls}, {refused} refused" if refused else calls


@dataclass(frozen=True)
class Manner:
    """A row. `team`: calls of a team of three without other tools; `files`: with file tools; `alone`: of one agent
    without other tools. `forms`: how answers and votes came.
    """

    title: str
    respond: Callable[[Asked], bytes]
    team: Calls
    files: Calls
    alone: Calls
    forms: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def cells(self) -> list[str]:
        """As docs/wires.md has them."""
        return [str(calls) for calls in (self.team, self.files, self.alone)]


OLLAMA, DEEPSEEK = (next(row for row in REFUSALS if row.who == who) for who in ("Ollama", "DeepSeek"))
N = 3
_LEAST = Calls(2 * N + 1, 2 * N + 1)
_ONE = Calls(1, 1)


def _written(title: str, form: str, write: Callable[[str, dict[str, Any]], str]) -> Manner:
    return Manner(title, written(write), _LEAST, _LEAST, _ONE, {"answers": form, "votes": form})


MANNERS = (
    Manner(
        "speaks prose",
        prose,
        Calls(3 * N + 1, 3 * N + 1),
        Calls(3 * N + 1, 3 * N + 1),
        _ONE,
        {"answers": "text", "votes": "vote_line"},
    ),
    _written("writes calls as JSON", "json", _object),
    _written(
        "writes calls as JSON in a code block",
        "fenced_json",
        lambda name, arguments: f"```json\n{json.dumps({'name': name, 'parameters': arguments}, indent=2)}\n```",
    ),
    _written(
        "writes calls as XML, as Hermes does",
        "tool_call_tag",
        lambda name, arguments: f"<tool_call>\n{_object(name, arguments)}\n</tool_call>",
    ),
    _written(
        "writes calls as `<function=…>`",
        "function_tag",
        lambda name, arguments: f"<function={name}>{json.dumps(arguments)}</function>",
    ),
    _written(
        "writes calls after Llama's `python_tag`",
        "python_tag",
        lambda name, arguments: (
            "<|python_tag|>" + json.dumps({"type": "function", "name": name, "parameters": arguments}) + "<|eom_id|>"
        ),
    ),
    _written(
        "writes calls as `functions.NAME({…})`",
        "function_call",
        lambda name, arguments: f"functions.{name}({json.dumps(arguments)})",
    ),
    Manner("thinks between `<think>` and `</think>`, then calls", thinking, _LEAST, _LEAST, _ONE),
    Manner(
        "thinks between `<think>` and `</think>`, then speaks prose",
        thinking_aloud,
        Calls(3 * N + 1, 3 * N + 1),
        Calls(3 * N + 1, 3 * N + 1),
        _ONE,
        {"answers": "text", "votes": "vote_line"},
    ),
    Manner(
        "refuses tools, speaks prose",
        without_tools(OLLAMA, prose),
        Calls(2 * N, 2 * N + 1),
        Calls(2 * N, 2 * N + 1),
        Calls(1, 2),
        {"answers": "text", "votes": "vote_line"},
    ),
    Manner(
        "refuses tools, writes calls as JSON",
        without_tools(OLLAMA, written(_object)),
        Calls(2 * N, 2 * N + 1),
        Calls(2 * N, 2 * N + 1),
        Calls(1, 2),
        {"answers": "json", "votes": "json"},
    ),
    Manner(
        "refuses `tool_choice: required`, thinks aloud before it calls",
        without_force(DEEPSEEK),
        Calls(3 * N + 1, 3 * N + 2),
        Calls(3 * N + 1, 3 * N + 2),
        _ONE,
    ),
)


# -- to play them -----------------------------------------------------------------------------------------------------


def team_at(url: str, size: int, *, files: bool) -> Config:
    """Agents that ask one after the other: so a server refuses what it refuses once."""
    backend = {"type": "chatcompletion", "model": "some-model", "base_url": f"{url}/v1"}
    return config_from_data(
        {
            "agents": [{"id": f"member-{place}", "backend": backend} for place in range(size)],
            "orchestrator": {"enable_filesystem": files},
            "limits": {"chatcompletion": {"concurrency": 1}},
        },
        "test",
        environ={},
    )


@dataclass(frozen=True)
class Played:
    ended: Ended
    requests: list[Seen]

    @property
    def calls(self) -> Calls:
        return Calls(len(self.ended.of(ModelReplied)), len(self.requests))


QUESTION = "What is the capital of France?"


async def play(
    path: Path, respond: Callable[[Asked], bytes | Flow], size: int, *, files: bool = False, question: str = QUESTION
) -> Played:
    """A run of so many agents whose model acts like this."""
    load_sdks()
    async with answering(lambda seen, number: respond(Asked(number, seen.body))) as server:
        ended = await run_team(path, team_at(server.url, size, files=files), question=question)
    return Played(ended, server.requests)


def check(manner: Manner, played: Played, expected: Calls) -> None:
    """Raises AssertionError unless the run completed with a whole answer, after so many calls, in the right form."""
    where, ended = manner.title, played.ended
    assert ended.snapshot.state == "completed", f"{where}: {ended.snapshot.end}"
    assert ended.snapshot.degraded == [], f"{where}: {ended.snapshot.degraded}"
    assert (ended.snapshot.final_answer or "").startswith(ANSWER), f"{where}: {ended.snapshot.final_answer!r}"
    assert played.calls == expected, f"{where}: {played.calls} instead of {expected}"
    for answer in ended.of(AnswerSubmitted):
        assert answer.content.startswith(ANSWER), f"{where}: {answer.content!r} was taken for an answer"
        assert answer.form == manner.forms.get("answers", "tool_call"), f"{where}: {answer.form}"
    for vote in ended.of(VoteCast):
        assert vote.form == manner.forms.get("votes", "tool_call"), f"{where}: {vote.form}"
        assert vote.reason == "It is right, and says so plainly.", f"{where}: {vote.reason!r}"
    for replied in ended.of(ModelReplied):
        assert "<think>" not in replied.text, f"{where}: {replied.text!r}"


SCENES: tuple[tuple[str, int, bool], ...] = (("team", N, False), ("files", N, True), ("alone", 1, False))


async def play_row(path: Path, manner: Manner) -> list[str]:
    """Its cells, as they were seen, after every check."""
    cells: list[str] = []
    for scene, size, files in SCENES:
        played = await play(path / scene, manner.respond, size, files=files)
        check(manner, played, getattr(manner, scene))
        cells.append(str(played.calls))
    return cells
