"""An answer is shown while the call that submits it is written, on every wire: once, whole, and without keys."""

import json
from collections.abc import Sequence
from typing import Any, cast

import pytest

from massgen_mcp.backends.base import DraftPart, ModelRequest, ToolCallPart, ToolSpec
from massgen_mcp.backends.calling import MAX_REPLY_BYTES
from massgen_mcp.coordination.state import Rules
from massgen_mcp.events.agent_work import ModelCallRetried, ModelCallStarted, ModelReplied, TextDelta
from massgen_mcp.events.coordination import AnswerSubmitted
from massgen_mcp.events.parts import Event
from massgen_mcp.events.record import LogRecord
from massgen_mcp.events.run import RunCompleted
from massgen_mcp.orchestration.conduct import Conductor
from massgen_mcp.orchestration.team import Member, RunSpec, TeamLimits
from massgen_mcp.views.activity import Activities
from tests.in_memory import EventList, NullAnswerStore
from tests.raw_double import Seen, answering, raw_server, reply
from tests.wires.calls import AT_ONCE, ask, call, parts_of
from tests.wires.rows import KEY, ROWS, Row

every_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.title)
CHAT = next(row for row in ROWS if row.title == "Chat Completions")

NEW_ANSWER = ToolSpec("new_answer", "Answer.", {"type": "object"}, shown="content")
ANSWER = 'He said: "Paris",\n\tand C:\\dir \u2014 na\u00efve \U0001f5fc\U0001f600.'


def written(row: Row, *fragments: str, name: str = "new_answer", said: str = "") -> bytes:
    """A reply that calls a tool with arguments in these fragments, after it `said` something."""
    dialect = row.dialect()
    spoken = dialect.text(said) if said else dialect
    return reply(spoken.call(name, *fragments).stop("calls").body())


async def shown_of(row: Row, *replies: bytes, request: ModelRequest | None = None) -> str:
    """What people read while a call is made that ends well."""
    async with raw_server(*replies) as server:
        told = await call(row.backend(server.url), request or ask("?", NEW_ANSWER))
    assert told.reply is not None, told.error
    return "".join(told.heard)


async def events_of(row: Row, *replies: bytes) -> EventList:
    """A whole run of a lone agent."""
    journal = EventList()
    limits = TeamLimits(call_seconds=20, retry=AT_ONCE)
    async with raw_server(*replies) as server:
        backend = row.backend(server.url)
        member = Member("agent_a", backend)
        await Conductor(RunSpec("?", (member,), Rules(seed="d"), limits, NullAnswerStore()), journal).conduct()
        await backend.aclose()
    return journal


@every_row
@pytest.mark.parametrize("ascii_only", [True, False])
async def test_an_answer_that_comes_character_by_character_is_shown_as_it_is_written(
    row: Row, ascii_only: bool
) -> None:
    arguments = json.dumps({"content": ANSWER}, ensure_ascii=ascii_only)
    async with raw_server(written(row, *arguments)) as server:
        parts = await parts_of(row.backend(server.url), ask("?", NEW_ANSWER))
    drafts = [part.text for part in parts if isinstance(part, DraftPart)]
    assert "".join(drafts) == ANSWER
    assert len(drafts) > (0 if row.whole_calls else len(ANSWER) / 2)
    kinds = [type(part) for part in parts]
    assert kinds.index(ToolCallPart) > kinds.index(DraftPart)
    (made,) = [part.call for part in parts if isinstance(part, ToolCallPart)]
    assert json.loads(made.arguments) == json.loads(arguments)
    assert row.whole_calls or made.arguments == arguments, "an object is written anew, a text stays as it is"


async def test_arguments_may_be_cut_anywhere() -> None:
    arguments = json.dumps({"content": '\\ "\u00e9" \U0001f5fc'})
    cuts = [written(CHAT, arguments[:cut], arguments[cut:]) for cut in range(len(arguments))]
    async with raw_server(*cuts) as server:
        for cut in range(len(arguments)):
            told = await call(CHAT.backend(server.url), ask("?", NEW_ANSWER))
            assert "".join(told.heard) == '\\ "\u00e9" \U0001f5fc', cut


SHOWN: list[tuple[str, str]] = [
    ('{"content": "Paris"}', "Paris"),
    ('{"note": {"content": "no", "a": ["]", "\\"}"]}, "n": -1.5e3, "s": "x\\\\", "content": "Paris"}', "Paris"),
    (' \n{ "c\\u006fntent" :\t"Paris" , "more": 1}', "Paris"),
    ('{"content": "Par\nis"}', "Par\nis"),
    ('{"content": "a", "content": "b"}', "a"),
    ('{"content": "lone \\ud83d, \\ude00 and \\ud83d"}', "lone \ufffd, \ufffd and \ufffd"),
    ('{"content": ["Paris"]}', ""),
    ('{"content": null, "contents": "Paris"}', ""),
    ('{"content": ""}', ""),
    ('["content", "Paris"]', ""),
    ('"content"', ""),
    ('{"content": "Par\\x69s"}', "Par"),
    ('{"content": "Par', "Par"),
    ("{content: 'Paris'}", ""),
    ("{" * 2000, ""),
    ("", ""),
]
"""Arguments, and what of them people are shown before anybody has checked them."""


@pytest.mark.parametrize(("arguments", "shown"), SHOWN)
async def test_only_the_text_of_the_answer_is_shown_and_nothing_that_is_broken_fails(
    arguments: str, shown: str
) -> None:
    for size in (1, 5, len(arguments) or 1):
        pieces = [arguments[start : start + size] for start in range(0, len(arguments), size)]
        assert await shown_of(CHAT, written(CHAT, *pieces)) == shown


@every_row
async def test_what_is_written_to_other_tools_is_not_shown(row: Row) -> None:
    look = ToolSpec("look", "Look.", {"type": "object"})
    replies = written(row, '{"content": "Paris"}', name="look")
    assert await shown_of(row, replies, request=ask("?", NEW_ANSWER, look)) == ""
    assert await shown_of(row, written(row, '{"content": "Paris"}'), request=ask("?", look)) == ""


@every_row
async def test_text_and_the_draft_after_it_stand_apart(row: Row) -> None:
    assert await shown_of(row, written(row, '{"content": "Pa', 'ris"}', said="I know.")) == "I know.\n\nParis"


@pytest.mark.parametrize(
    "arguments", [json.dumps({"content": f"It is {KEY}!"}), f'{{"content": "It is \\u0073{KEY[1:]}!"}}']
)
@every_row
async def test_no_key_is_shown_however_it_is_written(row: Row, arguments: str) -> None:
    for pieces in (tuple(arguments), (arguments,)):
        assert await shown_of(row, written(row, *pieces)) == "It is [key THE_KEY]!"


@every_row
async def test_a_run_shows_its_answer_once_and_while_it_is_written(row: Row) -> None:
    answer = f"{ANSWER} " * 40
    journal = await events_of(row, written(row, *json.dumps({"content": answer})))
    events = cast("Sequence[Any]", journal.events)
    (submitted,) = [event for event in events if isinstance(event, AnswerSubmitted)]
    streamed = [event.text for event in events if isinstance(event, TextDelta)]
    assert "".join(streamed) == submitted.content == answer
    assert len(streamed) > (0 if row.whole_calls else 2)

    doing, writing = Activities(), dict[type[Event], str]()
    for seq, event in enumerate(events, 1):
        doing.apply(LogRecord(seq=seq, time=0.0, event=event))
        writing[type(event)] = doing.of("agent_a").writing
    assert writing[ModelCallStarted] == ""
    assert writing[TextDelta] == answer
    assert writing[AnswerSubmitted] == ""


async def test_a_draft_of_a_call_that_breaks_off_is_void_and_paid_for() -> None:
    half = reply(CHAT.dialect().call("new_answer", '{"content": "' + "Lyon " * 200, done=False).body())
    journal = await events_of(CHAT, half, written(CHAT, '{"content": "Paris"}'))
    events = cast("Sequence[Any]", journal.events)
    (retried,) = [event for event in events if isinstance(event, ModelCallRetried)]
    assert retried.usage is not None
    assert retried.usage.output_tokens >= len("Lyon " * 200) / 4
    after = events[events.index(retried) :]
    assert "".join(event.text for event in after if isinstance(event, TextDelta)) == "Paris"
    (ended,) = [event for event in events if isinstance(event, RunCompleted)]
    assert ended.answer == "Paris"


async def test_a_reply_is_billed_for_its_call_once() -> None:
    def of(pieces: Sequence[str]) -> bytes:
        dialect = CHAT.dialect().call("new_answer", *pieces)
        return reply(dialect.stop_as("tool_calls", None).body())

    arguments = json.dumps({"content": "Paris " * 100})
    used: list[int] = []
    for pieces in ([arguments], [arguments[:100], arguments[100:]]):
        journal = await events_of(CHAT, of(pieces))
        (replied,) = [event for event in journal.events if isinstance(event, ModelReplied)]
        used.append(replied.usage.output_tokens if replied.usage else 0)
    assert used[0] == used[1] > 0


async def test_an_endless_draft_is_given_up() -> None:
    piece = "x" * 1_000_000

    def endless(_: Seen, number: int) -> bytes:
        del number
        dialect = CHAT.dialect().call("new_answer", '{"content": "', *[piece] * (MAX_REPLY_BYTES // len(piece) + 2))
        return reply(dialect.body())

    async with answering(endless) as server:
        told = await call(CHAT.backend(server.url), ask("?", NEW_ANSWER))
    assert told.error is not None
    assert told.error.reason == "bad_reply"
    assert sum(map(len, told.heard)) <= MAX_REPLY_BYTES
