"""How a run ends when its only agent never comes to the end of a reply: its message names the cause."""

import pytest

from tests.raw_double import Flow, answering, reply
from tests.wires.calls import load_sdks, run_alone
from tests.wires.dialects import Dialect
from tests.wires.ends import ENDS
from tests.wires.rows import ROWS, Row

WORDS = {"Messages": "refusal", "Gemini": "SAFETY", "Gemini, compatible": "SAFETY"}
HALF = '{"content": "Half of an"}'


async def ended(row: Row, said: Dialect) -> tuple[str | None, str, int]:
    load_sdks()
    body = reply(said.body())

    def respond(*_: object) -> bytes | Flow:
        return body

    async with answering(respond, row.beside) as server:
        end = await run_alone(row.backend(server.url))
    assert not end.submitted
    return end.reason, end.message, len(server.requests)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.title)
async def test_a_content_filter_is_told_with_the_providers_word_after_one_call(row: Row) -> None:
    word = WORDS.get(row.title, "content_filter")
    for said in (row.dialect().text("Half of an"), row.dialect().call("new_answer", HALF), row.dialect()):
        reason, message, requests = await ended(row, said.stop("refusal"))
        assert (reason, requests) == ("content_filter", 1)
        assert f"the provider's content filter or the model itself refused to continue ({word})" in message


@pytest.mark.parametrize("row", [row for row in ROWS if row.title in ENDS], ids=lambda row: row.title)
async def test_an_agent_that_always_meets_the_output_limit_falls_out_for_it(row: Row) -> None:
    for said in (row.dialect().text("Half of an"), row.dialect().call("new_answer", HALF), row.dialect().reason("hm")):
        reason, message, requests = await ended(row, said.stop("length"))
        assert (reason, requests) == ("no_action", 4)
        assert "the last reply was cut off at the model's output limit" in message
