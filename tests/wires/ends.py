"""Every end that a server may tell, with everything it may say for its usage, and with answers that show nothing.

One run of one agent per cell: its first answer comes with that end, a good one follows, and every try to write the
final answer comes with that end again; after a refusal nothing may follow. A cell is lost if a run takes for an answer
what is none, or ends without an answer although one was paid for. `python -m tests.wires.ends` plays every cell (about
ten minutes), the tests fewer.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import anyio

from massgen_mcp.config.models.common import Price
from massgen_mcp.config.models.orchestrator import CoordinationSettings, OrchestratorConfig
from massgen_mcp.coordination.state import Rules
from massgen_mcp.events.agent_work import ModelReplied
from massgen_mcp.events.coordination import AgentDropped
from massgen_mcp.events.run import RunCompleted
from massgen_mcp.money.tariff import Tariff
from massgen_mcp.orchestration.conduct import Conductor
from massgen_mcp.orchestration.team import Member, RunSpec, TeamLimits
from tests.in_memory import EventList, NullAnswerStore
from tests.raw_double import Seen, answering, reply
from tests.wires.calls import AT_ONCE, load_sdks
from tests.wires.dialects import ABSENT
from tests.wires.rows import ROWS, Row

GOOD = "Paris is the capital."
SAID = "Paris, and here the text"


@dataclass(frozen=True)
class End:
    """`told` is the wire's own word; `text` and `calls`: whether it is a good end of a reply of text, or of calls."""

    told: Any
    text: bool = False
    calls: bool = False
    refused: bool = False
    """Nothing is asked again."""


def _good(*told: Any) -> list[End]:
    return [End(one, text=True, calls=True) for one in told]


def _bad(*told: Any) -> list[End]:
    return [End(one) for one in told]


def _refused(*told: Any) -> list[End]:
    return [End(one, refused=True) for one in told]


def _invented(*told: Any) -> list[End]:
    """Words that nobody knows: good enough for calls that are whole, for nothing else."""
    return [End(one, calls=True) for one in told]


CHAT = [
    *_good("stop", "STOP", "eos", "eos_token", "stop_sequence", "end_turn"),
    *(End(told, calls=True) for told in ("tool_calls", "function_call", "tool_use")),
    *_bad("length", "MAX_TOKENS", "model_length", "model_context_window_exceeded"),
    *_refused("content_filter", "content_filter: SPII", "refusal", "SAFETY", "RECITATION", "sensitive"),
    *_refused("guardrail_intervened", "LANGUAGE", "PROHIBITED_CONTENT"),
    *_invented("an invented reason", "done", "fin", "complete"),
    *_bad("abort", "error", "repetition", "cancelled", "canceled", "load", "unload", "preempt", "network_error"),
    *_bad("insufficient_system_resource", "MALFORMED_FUNCTION_CALL", "OTHER", "TOO_MANY_TOOL_CALLS"),
    *_bad("finish_reason_unspecified", 7, True, ["stop"], {"type": "abort"}),
    *_invented("null", "", None),  # before [DONE], which says that the stream is whole
]
RESPONSES = [
    *_good(("completed", "completed", None), ("completed", None, None)),
    *_bad(("incomplete", "incomplete", "max_output_tokens"), ("completed", "incomplete", "max_output_tokens")),
    *_refused(("incomplete", "incomplete", "content_filter")),
    *_bad(*(("completed", status, None) for status in ("cancelled", "queued", "in_progress", "failed", "incomplete"))),
    *_invented(("completed", "an invented status", None)),
    *_bad(("completed", 7, None), ("completed", ["completed"], None)),
    *_bad(*(("incomplete", "incomplete", reason) for reason in ("steered", "max_messages", "invented", None))),
    *_bad(("incomplete", "completed", None), ("cancelled", "cancelled", None), None),
]
MESSAGES = [
    *_good(("end_turn", None), ("stop_sequence", "\n\n")),
    *(End(told, calls=True) for told in (("tool_use", None), ("stop_sequence", None))),
    *_bad(("max_tokens", None), ("model_context_window_exceeded", None)),
    *_refused(("refusal", None)),
    *_invented(("an invented reason", None)),
    *_bad(*((told, None) for told in ("error", "abort", "cancelled", "pause_turn", "compaction"))),
    *_bad(*((told, None) for told in ("", None, 7, ["end_turn"]))),
]
OLLAMA = [
    *_good("stop"),
    *_bad("length", "load", "unload", "connection closed", "", None, 7, ["stop"]),
    *_refused("content_filter"),
    *_invented("an invented reason"),
    *_bad(ABSENT),
]
GEMINI = [
    *_good("STOP", "stop"),
    *_bad("MAX_TOKENS", "CONTINUATION"),
    *_refused("SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_RECITATION"),
    *_refused("MODEL_ARMOR", "ESCALATION", "PUP_LIMITED_DISABLED", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT"),
    *_invented("an invented reason"),
    *_bad("IMAGE_OTHER", "NO_IMAGE", "OTHER", "MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE"),
    *_bad("UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MISSING_THOUGHT_SIGNATURE", "FINISH_REASON_UNSPECIFIED"),
    *_bad("CANCELLED", "null", "", None, ABSENT, 7, True, ["STOP"], {"type": "STOP"}),
]
ENDS = {
    "Chat Completions": CHAT,
    "Responses": RESPONSES,
    "Messages": MESSAGES,
    "Ollama": OLLAMA,
    "Gemini": GEMINI,
    "Grok": RESPONSES,
}

HONEST = {
    "Chat Completions": {"prompt_tokens": 21, "completion_tokens": 7, "total_tokens": 28},
    "Responses": {"input_tokens": 21, "output_tokens": 7, "total_tokens": 28},
    "Messages": {"input_tokens": 21, "output_tokens": 7},
    "Ollama": {"prompt_eval_count": 21, "eval_count": 7},
    "Gemini": {"promptTokenCount": 21, "candidatesTokenCount": 7, "totalTokenCount": 28},
    "Grok": {"input_tokens": 21, "output_tokens": 7, "total_tokens": 28, "cost_in_usd_ticks": 37_756_000},
}
_DETAILS = (
    "prompt_tokens_details", "completion_tokens_details", "input_tokens_details", "output_tokens_details",
    "server_tool_use", "cache_read_input_tokens", "cache_creation_input_tokens",
    "thoughtsTokenCount", "toolUsePromptTokenCount", "cachedContentTokenCount", "server_side_tool_usage_details",
)  # fmt: skip
NUMBERS: dict[str, Any] = {
    "fractions": 20.5, "infinite": float("inf"), "negative infinite": float("-inf"), "no number": float("nan"),
    "negative": -7, "strings": "21", "huge": 10**400, "larger than any": 10**12, "zero": 0, "true": True, "null": None,
    "lists": [21], "objects": {"tokens": 21},
}  # fmt: skip
USAGES = ("honest", "absent", "null usage", "empty", "a string", "a list", "broken details", *NUMBERS)
TEXTS = {
    "visible": SAID, "empty": "", "blank": " \n\t\u00a0", "zero-width": "\u200b\u200d\ufeff", "NUL": "\0\0",
    "control": "\x1b\x07", "marks": "\u0301\u0301", "fillers": "\u3164\u2800", "surrogates": "\ud800\ud800",
}  # fmt: skip


def usage_of(row: Row, kind: str) -> Any:
    honest = HONEST[row.title]
    match kind:
        case "honest":
            return honest
        case "absent":
            return ABSENT
        case "null usage":
            return None
        case "empty":
            return {}
        case "a string" | "a list":
            return "21 tokens" if kind == "a string" else [21, 7]
        case "broken details":
            return {**honest, **dict.fromkeys(_DETAILS, "none")}
        case _:
            return dict.fromkeys(honest, NUMBERS[kind])


@dataclass
class Tally:
    cells: int = 0
    requests: int = 0
    false: list[str] = field(default_factory=list[str])
    """Cells in which something was called an answer that is none."""
    lost: list[str] = field(default_factory=list[str])
    """Cells in which an answer that was paid for was lost, or a good one not taken."""
    miscounted: list[str] = field(default_factory=list[str])
    """Cells in which a reply was billed with nothing, or with what is no number of tokens."""

    def __str__(self) -> str:
        counts = (
            f"{len(self.false)} false completions, {len(self.lost)} lost answers, {len(self.miscounted)} miscounted"
        )
        return f"{self.cells} cells, {self.requests} requests: {counts}"

    @property
    def sound(self) -> bool:
        return not (self.false or self.lost or self.miscounted)


Cell = tuple[End, str, str]


def every_cell(row: Row) -> Iterator[Cell]:
    return product(ENDS[row.title], USAGES, TEXTS)


def fewer_cells(row: Row) -> Iterator[Cell]:
    """Every end, every usage and every text, each end with a different pair of the others besides the plain one."""
    ends, usages, texts = ENDS[row.title], list(USAGES), list(TEXTS)
    for place, end in enumerate(ends):
        yield end, "honest", "visible"
        yield end, usages[place % len(usages)], texts[place % len(texts)]
    good = ends[0]
    yield from ((good, usage, "visible") for usage in usages)
    yield from ((good, "honest", text) for text in texts)


async def play_ends(row: Row, cells: Iterator[Cell]) -> Tally:
    load_sdks()
    tally = Tally()
    now: list[Cell] = []
    asked: list[bool] = []

    def respond(seen: Seen, number: int) -> bytes:
        del number
        tally.requests += 1
        end, usage, text = now[0]
        coordinating = "new_answer" in json.dumps(seen.body.get("tools", ()))
        if coordinating and asked:
            return reply(row.dialect().call("new_answer", json.dumps({"content": GOOD})).stop("calls").body())
        if not coordinating:
            return reply(row.dialect().text(TEXTS[text]).stop_as(end.told, usage_of(row, usage)).body())
        asked.append(True)
        called = row.dialect().call("new_answer", json.dumps({"content": TEXTS[text]}))
        return reply(called.stop_as(end.told, usage_of(row, usage)).body())

    async with answering(respond, row.beside) as server:
        backend = row.backend(server.url)
        try:
            for cell in cells:
                now[:], asked[:] = [cell], []
                await _play(row, Member("agent_a", backend, tariff=PRICED), cell, tally)
        finally:
            await backend.aclose()
    return tally


PRICED = Tariff("some-model", Price(input_usd_per_million=1, output_usd_per_million=2))


async def _play(row: Row, member: Member, cell: Cell, tally: Tally) -> None:
    """Planning, so that the agent writes the final answer even though nobody else has one."""
    end, usage, text = cell
    journal = EventList()
    policy = OrchestratorConfig(
        coordination=CoordinationSettings(enable_planning_mode=True, planning_mode_instruction="Only plan.")
    )
    limits = TeamLimits(call_seconds=20, retry=AT_ONCE)
    await Conductor(RunSpec("?", (member,), Rules(seed="e"), limits, NullAnswerStore(), policy), journal).conduct()
    tally.cells += 1
    where = f"{row.title}: {end.told!r}, usage {usage}, {text}"
    final = [event.answer for event in journal.events if isinstance(event, RunCompleted)]
    # A draft that is accepted stands in for a final answer that is not.
    draft = SAID if end.calls and text == "visible" else GOOD
    right = SAID if end.text and text == "visible" else draft
    if end.refused:
        gone = [event for event in journal.events if isinstance(event, AgentDropped)]
        if final or [drop.reason for drop in gone] != ["content_filter"]:
            tally.false.append(f"{where}: no refusal")
    elif final and final[0] not in (GOOD, SAID):
        tally.false.append(f"{where}: {final[0]!r}")
    elif final and final[0] != right:
        (tally.lost if final[0] == GOOD else tally.false).append(f"{where}: {final[0]!r}")
    elif not final or any(isinstance(event, AgentDropped) for event in journal.events):
        tally.lost.append(where)
    for event in journal.events:
        if isinstance(event, ModelReplied) and not _counts(event):
            tally.miscounted.append(f"{where}: {event.usage} {event.cost}")


def _counts(event: ModelReplied) -> bool:
    usage = event.usage
    if usage is None or event.cost.usd is None or not 0 < event.cost.usd < 1000:
        return False
    numbers = [value for name, value in usage.model_dump().items() if name not in ("estimated", "at_least")]
    return all(type(number) is int and 0 <= number <= 100_000_000 for number in numbers)


async def _play_all() -> None:
    for row in ROWS:
        if row.title in ENDS:
            tally = await play_ends(row, every_cell(row))
            print(f"{row.title}: {tally}", *tally.false, *tally.lost, *tally.miscounted, sep="\n  ", flush=True)


if __name__ == "__main__":
    anyio.run(_play_all)
