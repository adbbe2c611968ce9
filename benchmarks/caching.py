"""The price of a run's input at providers with a prompt cache, beside the least that it could be: `python -m
benchmarks.caching`. `--long` adds the run of three agents with 200 steps each.

The real orchestrator with scripted agents, in memory; the bodies are those that each wire sends. Nothing is timed. A
double of each provider's cache, made after its documentation, says how much of a request it has seen. Tokens are
characters divided by four. Everything happens within the life of a cache, and one request after the other.

- weighted: tokens, each by its price: 0.1 read from a cache, 1.25 written (2 for an hour), 1 otherwise.
- best: every block of text is written once and read ever after, wherever it stands; no order can make it cheaper.

Twins, which must come out dear: a time in the system message, tools in random order.
"""

import hashlib
import json
import random
import re
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, cast

import anyio

from massgen_mcp.backends import chatcompletion, claude, gemini, openai_responses
from massgen_mcp.backends.base import JsonObject, ModelRequest, Part, PastCall, ToolSpec
from massgen_mcp.backends.http import Endpoint
from massgen_mcp.backends.scripted import ScriptedBackend
from massgen_mcp.config.models.backends import ScriptedBackendConfig, ScriptStep
from massgen_mcp.coordination.state import Rules
from massgen_mcp.events.agent_work import ModelReplied
from massgen_mcp.events.parts import Event, public_agent_name
from massgen_mcp.events.record import LogRecord
from massgen_mcp.orchestration.conduct import Conductor
from massgen_mcp.orchestration.team import Member, RunSpec, TeamLimits
from massgen_mcp.request.question import EarlierTurn
from massgen_mcp.tools.base import ToolResult, tool_spec
from massgen_mcp.tools.files import EditFile, ReadFile, SearchFiles, WriteFile
from tests.in_memory import EventList, NullAnswerStore

READ, WRITTEN, WRITTEN_LONG = 0.1, 1.25, 2.0
LEAST = 1_024
"""Tokens that a beginning has at least to be kept."""
ROUNDED = 128
_NONCE = re.compile(r"\b[0-9a-f]{16}\b")
_FILE = "value = compute(value)  # a line of the file\n" * 90


# -- the runs ---------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Recorder:
    """A scripted agent, whose requests are kept in the order of all agents."""

    inner: ScriptedBackend
    requests: list[ModelRequest]
    model: str = "scripted"

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Part]:
        self.requests.append(request)
        async for part in self.inner.stream(request):
            yield part

    def fast_forward(self, past: Sequence[PastCall]) -> None:
        self.inner.fast_forward(past)

    async def aclose(self) -> None:
        await self.inner.aclose()


@dataclass(slots=True)
class FakeTool:
    """A tool of files without any. Every result is another text."""

    spec: ToolSpec
    side_effects: bool = False
    keeps_state: bool = False
    calls: int = 0

    async def run(self, arguments: JsonObject) -> ToolResult:
        self.calls += 1
        return ToolResult(f"# {arguments} for the {self.calls}. time\n{_FILE}", foreign=True)


def code_script(place: int, steps: int) -> list[ScriptStep]:
    """Reads so many files, one with each reply, answers and votes."""
    reads = [ScriptStep(call="read_file", arguments={"path": f"{place}/{step}.py"}) for step in range(steps)]
    return [*reads, ScriptStep(answer=f"The answer of {place}. " + "It is explained. " * 60), ScriptStep(vote="of 0")]


def question_script(place: int, turn: int = 0) -> list[ScriptStep]:
    answer = f"The answer of {place} to {turn}. " + "It is explained. " * 60
    return [ScriptStep(answer=answer), ScriptStep(vote="of 0", reason=f"It answers {turn} best.")]


async def requests_of(
    scripts: Sequence[Sequence[ScriptStep]],
    question: str,
    *,
    with_tools: bool = False,
    history: tuple[EarlierTurn, ...] = (),
    past: Sequence[LogRecord] = (),
) -> tuple[list[ModelRequest], list[Event]]:
    """The requests of a run of agents of one model, and its events. `past`: a record that it goes on with."""
    requests: list[ModelRequest] = []
    kinds = {"read_file": ReadFile, "search_files": SearchFiles, "write_file": WriteFile, "edit_file": EditFile}
    tools = tuple(FakeTool(tool_spec(name, f"{name} of a project. " * 12, kind)) for name, kind in kinds.items())
    team = tuple(
        Member(
            public_agent_name(place),
            Recorder(ScriptedBackend(ScriptedBackendConfig(type="scripted", script=tuple(script))), requests),
            tools=tools if with_tools else (),
            notes=("Work as an engineer does: read, change, verify. " * 40,) if with_tools else (),
        )
        for place, script in enumerate(scripts)
    )
    limits = TeamLimits(steps_per_round=1_000)
    run_spec = RunSpec(question, team, Rules(seed="caching"), limits, NullAnswerStore(), history=history)
    journal = EventList()
    conductor = Conductor(run_spec, journal, past)
    if past:
        await conductor.resume()
    await conductor.conduct()
    return requests, journal.events


async def code_run(steps: int) -> list[ModelRequest]:
    scripts = [code_script(place, steps) for place in range(3)]
    requests, _ = await requests_of(scripts, "Find the fault in these files, and mend it.", with_tools=True)
    return requests


async def question_run() -> list[ModelRequest]:
    requests, _ = await requests_of([question_script(place) for place in range(3)], "A long question. " * 600)
    return requests


async def chat() -> list[ModelRequest]:
    """Five turns of a session, each with what was said before."""
    history: tuple[EarlierTurn, ...] = ()
    found: list[ModelRequest] = []
    for turn in range(5):
        question = f"Question {turn}: " + "and what of this? " * 100
        scripts = [question_script(place, turn) for place in range(3)]
        requests, events = await requests_of(scripts, question, history=history)
        found += requests
        openings = (getattr(event, "opening", "") for event in events)
        answer = f"Answer {turn}: " + "this is so. " * 300
        history = (*history, EarlierTurn(question=question, answer=answer, opening=next(filter(None, openings))))
    return found


async def resumed_run() -> list[ModelRequest]:
    """A run that is lost in its midst, and goes on in another process."""
    scripts, question = [code_script(place, 25) for place in range(3)], "Find the fault in these files, and mend it."
    requests, events = await requests_of(scripts, question, with_tools=True)
    replies = [place for place, event in enumerate(events) if isinstance(event, ModelReplied)]
    lost_at = replies[len(replies) // 2] + 1
    kept = enumerate(events[:lost_at], start=1)
    past = [LogRecord.model_construct(seq=seq, time=1.0 * seq, event=event) for seq, event in kept]
    further, _ = await requests_of(scripts, question, with_tools=True, past=past)
    return [*requests[: len(replies) // 2 + 1], *further]


# -- the bodies, as blocks in the order in which a provider reads them ------------------------------------------------


class Block(NamedTuple):
    """`mark`: how long it is to be kept up to here, "" if that is not asked for. `is_message_end`: of a user's message
    or of a tool's result.
    """

    text: str
    mark: str = ""
    is_message_end: bool = False

    @property
    def tokens(self) -> float:
        return len(self.text) / 4


def _block(head: str, value: object, *, is_message_end: bool = False) -> Block:
    if not isinstance(value, dict):
        return Block(f"{head}{json.dumps(value)}", "", is_message_end)
    marks: list[str] = []
    plain = _unmarked(cast("dict[str, object]", value), marks)
    return Block(f"{head}{json.dumps(plain)}", marks[0] if marks else "", is_message_end)


def _unmarked(value: object, marks: list[str]) -> object:
    """The same without marks, which are no part of what is kept. Plain text is as good as a list of one text."""
    if isinstance(value, list):
        parts = [_unmarked(part, marks) for part in cast("list[object]", value)]
        match parts:
            case [{"type": "text", "text": str(text)}]:
                return text
            case _:
                return parts
    if not isinstance(value, dict):
        return value
    fields = dict(cast("dict[str, Any]", value))
    found = [fields.pop(name, None) for name in ("cache_control", "prompt_cache_breakpoint")]
    marks += [mark.get("ttl", "5m") for mark in found if mark]
    return {name: _unmarked(each, marks) for name, each in fields.items()}


def _content(role: str, content: object) -> Iterator[Block]:
    """The blocks of a message. A plain text reads as a list of one text does."""
    parts = cast("list[Any]", content) if isinstance(content, list) else [{"type": "text", "text": content}]
    for place, part in enumerate(parts):
        one = {**part, "type": "text"} if part.get("type") == "input_text" else part
        yield _block(role, one, is_message_end=role in ("user", "tool") and place == len(parts) - 1)


def messages_blocks(body: JsonObject) -> Iterator[Block]:
    """Of Anthropic's Messages API: another `tool_choice` voids what is kept of messages."""
    chosen: Any = body
    yield from (_block("tool", tool) for tool in chosen.get("tools", ()))
    yield from _content("system", chosen["system"])
    yield Block(json.dumps(chosen.get("tool_choice")))
    for message in chosen["messages"]:
        yield from _content(message["role"], message["content"])


def chat_blocks(body: JsonObject) -> Iterator[Block]:
    chosen: Any = body
    yield from (_block("tool", tool) for tool in chosen.get("tools", ()))
    for message in chosen["messages"]:
        yield from _content(message["role"], message["content"])
        if calls := message.get("tool_calls"):
            yield _block("calls", calls)


def responses_blocks(body: JsonObject) -> Iterator[Block]:
    chosen: Any = body
    yield from (_block("tool", tool) for tool in chosen.get("tools", ()))
    yield Block(chosen["instructions"])
    for item in chosen["input"]:
        if "content" in item:
            yield from _content(item["role"], item["content"])
        else:
            yield _block("item", item, is_message_end=item["type"] == "function_call_output")


def gemini_blocks(body: JsonObject) -> Iterator[Block]:
    chosen: Any = body
    if system := chosen.get("systemInstruction"):
        yield _block("system", system)
    yield from (_block("tool", tool) for tool in chosen.get("tools", ()))
    yield from (_block("turn", turn) for turn in chosen["contents"])


# -- doubles of the caches --------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Bill:
    """Tokens of many requests."""

    requests: int = 0
    tokens: float = 0.0
    read: float = 0.0
    written: float = 0.0
    written_long: float = 0.0
    write_price: float = WRITTEN

    @property
    def full(self) -> float:
        return self.tokens - self.read - self.written - self.written_long

    @property
    def weighted(self) -> float:
        return self.full + READ * self.read + self.write_price * self.written + WRITTEN_LONG * self.written_long

    def add(self, tokens: float, read: float, written: float = 0.0, written_long: float = 0.0) -> None:
        self.requests += 1
        self.tokens, self.read = self.tokens + tokens, self.read + read
        self.written, self.written_long = self.written + written, self.written_long + written_long


def _prefixes(blocks: Sequence[Block]) -> tuple[list[bytes], list[float]]:
    """Of every beginning its hash and its tokens."""
    hashed, so_far = hashlib.sha256(), 0.0
    hashes: list[bytes] = []
    tokens: list[float] = []
    for block in blocks:
        hashed.update(f"{len(block.text)} ".encode() + block.text.encode())
        so_far += block.tokens
        hashes.append(hashed.digest())
        tokens.append(so_far)
    return hashes, tokens


@dataclass(slots=True)
class MarkedCache:
    """Anthropic's: each of four marks keeps the beginning that it ends, and finds what was kept up to 20 blocks before.
    https://platform.claude.com/docs/en/build-with-claude/prompt-caching
    """

    bill: Bill = field(default_factory=Bill)
    kept: set[bytes] = field(default_factory=set[bytes])

    def ask(self, blocks: Sequence[Block], key: str, *, keeps_end: bool) -> None:  # noqa: ARG002 - of others
        hashes, tokens = _prefixes(blocks)
        marks = [place for place, block in enumerate(blocks) if block.mark]
        if len(marks) > 4:
            raise ValueError("400: a maximum of 4 blocks with cache_control may be provided")
        terms = [blocks[place].mark for place in marks]
        if terms != sorted(terms, key=lambda term: term != "1h"):
            raise ValueError("400: a ttl='1h' block must not come after a ttl='5m' block")
        found = max((self._found(hashes, mark) for mark in marks), default=-1)
        read = tokens[found] if found >= 0 else 0.0
        kept = [place for place in marks if tokens[place] >= LEAST]
        long_end = max((tokens[place] for place in kept if blocks[place].mark == "1h"), default=0.0)
        end = max((tokens[place] for place in kept), default=0.0)
        written_long = max(0.0, long_end - read)
        self.bill.add(tokens[-1], read, max(0.0, end - max(read, long_end)), written_long)
        self.kept |= {hashes[place] for place in kept}

    def _found(self, hashes: Sequence[bytes], mark: int) -> int:
        looked_at = range(mark, max(-1, mark - 20), -1)
        return next((place for place in looked_at if hashes[place] in self.kept), -1)


@dataclass(slots=True)
class BreakpointCache:
    """OpenAI's since GPT-5.6: kept up to the latest message and to three explicit breakpoints, found at the latest 80.
    Writes are charged. https://developers.openai.com/api/docs/guides/prompt-caching
    """

    bill: Bill = field(default_factory=Bill)
    kept: set[tuple[str, bytes]] = field(default_factory=set[tuple[str, bytes]])

    def ask(self, blocks: Sequence[Block], key: str, *, keeps_end: bool) -> None:
        hashes, tokens = _prefixes(blocks)
        explicit = [place for place, block in enumerate(blocks) if block.mark]
        ends = [place for place, block in enumerate(blocks) if block.is_message_end]
        looked_at = sorted({*explicit, *ends})[-80:]
        found = max((place for place in looked_at if (key, hashes[place]) in self.kept), default=-1)
        read = tokens[found] if found >= 0 else 0.0
        implicit = ends[-1:] if keeps_end else []
        kept = [place for place in (*explicit[-3:], *implicit) if tokens[place] >= LEAST]
        end = max((tokens[place] for place in kept), default=0.0)
        self.bill.add(tokens[-1], read, max(0.0, end - read))
        self.kept |= {(key, hashes[place]) for place in kept}


@dataclass(slots=True)
class PrefixCache:
    """Every beginning that was read before, of at least 1,024 tokens; writes are free. `rounded`: down to so many
    tokens, as OpenAI does before GPT-5.6, which is led by the key to the machine that has it.
    """

    rounded: int = 1
    bill: Bill = field(default_factory=lambda: Bill(write_price=1.0))
    kept: set[tuple[str, bytes]] = field(default_factory=set[tuple[str, bytes]])

    def ask(self, blocks: Sequence[Block], key: str, *, keeps_end: bool) -> None:  # noqa: ARG002 - of others
        hashes, tokens = _prefixes(blocks)
        seen = (place for place in reversed(range(len(blocks))) if (key, hashes[place]) in self.kept)
        found = next(seen, -1)
        read = tokens[found] // self.rounded * self.rounded if found >= 0 else 0.0
        self.bill.add(tokens[-1], read if read >= LEAST else 0.0)
        self.kept |= {(key, one) for one in hashes}


Cache = MarkedCache | BreakpointCache | PrefixCache


def best_price(requests: Sequence[Sequence[Block]], write_price: float) -> float:
    """Every block is paid in full or, where it comes again, for its write once, and read ever after. Codes of markers
    are taken to be the same. What is repeated in a request is paid in full if it is too short to be kept.
    """
    texts = [[_NONCE.sub("CODE", block.text) for block in blocks] for blocks in requests]
    times = Counter(text for request in texts for text in request)
    price, known = 0.0, set[str]()
    for request in texts:
        repeated = sum(len(text) / 4 for text in request if times[text] > 1)
        for text in request:
            each = 1.0
            if times[text] > 1 and repeated >= LEAST:
                each = READ if text in known else write_price
                known.add(text)
            price += each * len(text) / 4
    return price


@dataclass(frozen=True, slots=True)
class Wire:
    """A provider as a run asks it."""

    endpoint: Endpoint
    body: Callable[[Endpoint, ModelRequest], JsonObject]
    blocks: Callable[[JsonObject], Iterable[Block]]
    cache: Callable[[], Cache]
    most: float
    """Times the best price that its input may cost."""


def _endpoint(model: str, url: str) -> Endpoint:
    return Endpoint(model=model, api_key="none", base_url=url)


OPENAI, OPENROUTER = "https://api.openai.com/v1", "https://openrouter.ai/api/v1"
ANTHROPIC, GOOGLE = claude.ANTHROPIC, "https://generativelanguage.googleapis.com/v1beta"
WIRES: dict[str, Wire] = {
    "Anthropic": Wire(_endpoint("claude-opus-5-5", ANTHROPIC), claude.request_body, messages_blocks, MarkedCache, 1.05),
    "OpenRouter, Claude": Wire(
        _endpoint("anthropic/claude-opus-5.5", OPENROUTER), chatcompletion.request_body, chat_blocks, MarkedCache, 1.1
    ),
    "Responses, GPT-6": Wire(
        _endpoint("gpt-6.1-sol", OPENAI), openai_responses.request_body, responses_blocks, BreakpointCache, 1.1
    ),
    "Responses, GPT-5": Wire(
        _endpoint("gpt-5", OPENAI), openai_responses.request_body, responses_blocks, lambda: PrefixCache(ROUNDED), 1.1
    ),
    "Chat, GPT-6": Wire(
        _endpoint("gpt-6.1-sol", OPENAI), chatcompletion.request_body, chat_blocks, BreakpointCache, 1.1
    ),
    "Gemini": Wire(_endpoint("gemini-3.8-flash", GOOGLE), gemini.request_body, gemini_blocks, PrefixCache, 1.1),
}


class Row(NamedTuple):
    """What the requests of a run cost at one provider."""

    bill: Bill
    best: float

    @property
    def ratio(self) -> float:
        return self.bill.weighted / self.best


Twin = Callable[[ModelRequest, int], ModelRequest]


def unchanged(request: ModelRequest, _: int) -> ModelRequest:
    return request


def with_time(request: ModelRequest, number: int) -> ModelRequest:
    return replace(request, system=f"It is 12:{number // 60:02}:{number % 60:02}.\n\n{request.system}")


def with_shuffled_tools(request: ModelRequest, number: int) -> ModelRequest:
    tools, standing = list(request.tools), list(request.standing_tools)
    order = random.Random(number)
    order.shuffle(tools)
    order.shuffle(standing)
    return replace(request, tools=tuple(tools), standing_tools=tuple(standing))


TWINS: dict[str, Twin] = {"a time in the system message": with_time, "tools in random order": with_shuffled_tools}


def measure(wire: Wire, requests: Sequence[ModelRequest], twin: Twin = unchanged) -> Row:
    """`best` is that of the unchanged requests."""
    cache = wire.cache()
    plain: list[list[Block]] = []
    for number, request in enumerate(requests):
        plain.append(list(wire.blocks(wire.body(wire.endpoint, request))))
        body = wire.body(wire.endpoint, twin(request, number))
        cache.ask(
            list(wire.blocks(body)), str(body.get("prompt_cache_key", "")), keeps_end="prompt_cache_options" not in body
        )
    return Row(cache.bill, best_price(plain, cache.bill.write_price))


def table(rows: Iterable[tuple[str, str, Row]]) -> str:
    head = f"{'run':<26} {'provider':<19} {'requests':>8} {'input':>10} {'read':>10} {'written':>8} {'full':>8}"
    lines = [f"{head} {'weighted':>9} {'best':>9} {'ratio':>6}"]
    for run, wire, (bill, best) in rows:
        written = bill.written + bill.written_long
        counts = f"{bill.requests:>8} {bill.tokens:>10.0f} {bill.read:>10.0f} {written:>8.0f} {bill.full:>8.0f}"
        ratio = bill.weighted / best
        lines.append(f"{run:<26} {wire:<19} {counts} {bill.weighted:>9.0f} {best:>9.0f} {ratio:>6.2f}")
    return "\n".join(lines)


RUNS: dict[str, Callable[[], Awaitable[list[ModelRequest]]]] = {
    "code, 3 agents x 25 steps": lambda: code_run(25),
    "a question, 3 agents": question_run,
    "a chat of 5 turns": chat,
    "a resumed run, 3 x 25": resumed_run,
}


async def _requests(long: bool) -> dict[str, list[ModelRequest]]:
    runs = {**RUNS, **({"code, 3 agents x 200 steps": lambda: code_run(200)} if long else {})}
    return {name: await run() for name, run in runs.items()}


def main() -> None:
    found = anyio.run(_requests, "--long" in sys.argv[1:])
    rows = [(run, name, measure(wire, found[run])) for run in found for name, wire in WIRES.items()]
    print(table(rows))
    first = next(iter(found))
    twins = [(twin, name, measure(WIRES[name], found[first], TWINS[twin])) for twin in TWINS for name in WIRES]
    print(f"\nTwins of {first}:\n{table(twins)}")
    dear = [f"{run}, {name}" for run, name, row in rows if row.ratio > WIRES[name].most]
    print(f"\nDearer than they may be: {'; '.join(dear) or 'none'}")


if __name__ == "__main__":
    main()
