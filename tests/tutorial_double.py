"""The three providers of docs/tutorial.md: their models answer, vote, and the winner writes the final answer.

`python -m tests.tutorial_double` serves them until it is ended, and prints the variables that lead there.
"""

import json
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

import anyio

from tests.raw_double import Seen, answering, reply
from tests.wires.dialects import Dialect, Gemini, Messages, Responses

MODELS = ("gpt-6.2-sol", "claude-opus-5-5", "gemini-4-argon")


@dataclass(frozen=True)
class Side:
    """What one model has to say: its answer, its reason when it votes, and what it changes of `stats.py` before."""

    answer: str
    reason: str
    edit: tuple[str, str] | None = None


@dataclass(frozen=True)
class Talk:
    """Of a question that holds `about`. Two models say the same, and vote for `claude`; `gemini` says otherwise."""

    about: str
    sides: dict[str, Side]
    final: str
    gemini_votes_for: str


QUEUE = Talk(
    "job queue",
    {
        "openai": Side(
            "Postgres. A jobs table with SELECT ... FOR UPDATE SKIP LOCKED easily handles 200 jobs a minute.",
            "It names the deciding point: a job and its data are written in one transaction.",
        ),
        "claude": Side(
            "Postgres, because a job then commits or rolls back together with its data.",
            "Only this answer mentions the transaction.",
        ),
        "gemini": Side(
            "Redis Streams with consumer groups. They are made for queues, and appendfsync always keeps every job.",
            "A queue in the main database competes with the queries of users.",
        ),
    },
    """\
Use Postgres.

- Create a jobs table, and let workers read it with `SELECT ... FOR UPDATE SKIP LOCKED`.
- Insert each job in the same transaction as its data, so that no job is lost.
- 200 jobs a minute are a light load. Reconsider Redis Streams at several thousand a second.
""",
    gemini_votes_for="gemini",
)
_MENDED = ("len(numbers) + 1", "len(numbers)")
MEAN = Talk(
    "test_mean",
    {
        "openai": Side("mean() adds 1 to its result. I removed that.", "Both tests pass.", _MENDED),
        "claude": Side("The + 1 after the division is the bug. I removed it.", "Both tests pass.", _MENDED),
        "gemini": Side(
            "total() returns too much, so I subtract 3.",
            "The tests show that my change breaks total().",
            ("sum(numbers)", "sum(numbers) - 3"),
        ),
    },
    "mean() added 1 to its result. I removed that, and both tests pass.\n",
    gemini_votes_for="claude",
)


def respond(seen: Seen, number: int) -> bytes:
    """What the model behind the address says to a request."""
    del number
    if "/models" in seen.path and not seen.body:
        listed = [{"id": name, "name": f"models/{name}", "object": "model", "type": "model"} for name in MODELS]
        return reply(
            json.dumps({"object": "list", "data": listed, "models": listed}).encode(), media_type="application/json"
        )
    who, dialect = _provider(seen.path)
    asked = "\n".join(_texts(seen.body))
    talk = MEAN if MEAN.about in asked else QUEUE
    side = talk.sides[who]
    if "Write the final answer now" in asked:  # the tools alone do not tell: all of a run are listed in every request
        return _ended(dialect.text(*re.findall(r"\S+\s*", talk.final)), who, asked, talk.final, "end")
    if "`vote` for the answer" in asked:
        ballot = {text: name for name, text in re.findall(r'<answer name="(\w+)"[^>]*>\n(.+)', asked)}
        chosen = talk.gemini_votes_for if who == "gemini" else "claude"
        same = [ballot[talk.sides["openai"].answer]] if chosen == "claude" else []
        choice = {"agent_id": ballot[talk.sides[chosen].answer], "same_as": same, "reason": side.reason}
        return _called(dialect, who, asked, "vote", choice)
    if side.edit and "edit_file" not in _texts(_messages(seen.body)):
        old, new = side.edit
        return _called(dialect, who, asked, "edit_file", {"path": "shop/stats.py", "old": old, "new": new})
    return _called(dialect, who, asked, "new_answer", {"content": side.answer})


@asynccontextmanager
async def tutorial_providers() -> AsyncGenerator[dict[str, str]]:
    """Serve them; gives the variables of somebody who has keys of all three."""
    async with answering(respond) as double:
        yield {
            "OPENAI_API_KEY": "sk-test-of-the-tutorial-1",
            "ANTHROPIC_API_KEY": "sk-ant-test-of-the-tutorial-2",
            "GOOGLE_API_KEY": "AIza-test-of-the-tutorial-3",
            "OPENAI_BASE_URL": f"{double.url}/v1",
            "ANTHROPIC_BASE_URL": double.url,
            "MASSGEN_GEMINI_BASE_URL": f"{double.url}/v1beta",
        }


def _provider(path: str) -> tuple[str, Dialect]:
    if "responses" in path:
        return "openai", Responses()
    return ("claude", Messages()) if "messages" in path else ("gemini", Gemini())


def _messages(body: dict[str, Any]) -> Any:
    return body.get("input") or body.get("messages") or body.get("contents")


def _called(dialect: Any, who: str, asked: str, tool: str, arguments: dict[str, Any]) -> bytes:
    said = json.dumps(arguments)
    return _ended(dialect.call(tool, said), who, asked, said, "calls")


def _ended(dialect: Any, who: str, asked: str, said: str, end: str) -> bytes:
    """The reply to its end, with tokens of four characters."""
    took, gave = len(asked) // 4, len(said) // 4
    if who == "openai":
        usage: dict[str, Any] = {"input_tokens": took, "output_tokens": gave, "total_tokens": took + gave}
        return reply(dialect.stop_as(("completed", "completed", None), usage).body())
    if who == "claude":
        why = {"end": "end_turn", "calls": "tool_use"}[end]
        return reply(dialect.stop_as((why, None), {"input_tokens": took, "output_tokens": gave}).body())
    usage = {"promptTokenCount": took, "candidatesTokenCount": gave, "totalTokenCount": took + gave}
    return reply(dialect.stop_as("STOP", usage).body())


def _texts(part: Any) -> list[str]:
    """All texts of a request, in order."""
    if isinstance(part, str):
        return [part]
    if isinstance(part, dict):
        return _texts([*cast("dict[str, Any]", part).values()])
    return [text for one in cast("list[Any]", part) for text in _texts(one)] if isinstance(part, list) else []


async def _serve() -> None:
    async with tutorial_providers() as variables:
        for name, value in variables.items():
            print(f"export {name}={value}", flush=True)
        await anyio.sleep_forever()


if __name__ == "__main__":
    anyio.run(_serve)
