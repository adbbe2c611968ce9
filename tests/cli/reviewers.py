"""Models that review: what each finds and refutes is said by a test, and all are served by one double."""

import json
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from massgen_mcp.markers import materials
from tests.harness import TempHome
from tests.raw_double import Flow, RawDouble, Seen, answering, reply, sse
from tests.small_window import tokens

TYPES = ("vllm", "sglang", "lmstudio")
"""Of the backends: each is another vendor."""
HELD_SECONDS = 600.0
Finding = dict[str, Any]
Verdict = tuple[str, str]


def finding(title: str, line: int | None = 2, file: str = "shop.py", severity: str = "major", **more: Any) -> Finding:
    return {"file": file, "line": line, "severity": severity, "title": title, "detail": f"{title}, see?", **more}


@dataclass
class Reviewer:
    """`verdict` says of a finding's title whether it is refuted, and why. None: it says nothing that can be read."""

    finds: Sequence[Finding] = ()
    verdict: Callable[[str], Verdict] | None = lambda _: ("stands", "I looked.")
    script: str | None = None
    """What it gives as proof of each finding, where it puts all together; it is to print `broken`."""
    merges: Callable[[list[Finding]], list[Finding]] | None = None
    """Which findings it writes where it puts all together; default: each title once."""
    fails: bool = False
    window: int | None = None
    """Tokens that it reads at once; None: any number."""
    refute_window: int | None = None
    """Tokens that it reads at once where it is to refute."""
    holds: Callable[[str], bool] = lambda _: False
    """Says of what it was asked whether its reply does not come while a test lasts."""
    asked: list[str] = field(default_factory=list[str])
    """What it was asked, each time the whole of it."""


@asynccontextmanager
async def reviewing(home: TempHome, **reviewers: Reviewer) -> AsyncGenerator[tuple[str, RawDouble]]:
    """The path of a config of these reviewers, each of another vendor as far as there are some, and the double."""

    def respond(seen: Seen, number: int) -> bytes | Flow:
        reviewer = reviewers[seen.body["model"]]
        texts = [str(message["content"]) for message in seen.body["messages"]]
        reviewer.asked.append("\n".join(texts))
        if reviewer.holds(reviewer.asked[-1]):
            return Flow(list, silence_seconds=HELD_SECONDS)
        if reviewer.fails:
            return reply(b'{"error": {"message": "no"}}', status="401 Unauthorized", media_type="application/json")
        is_refuting = "Try to refute" in reviewer.asked[-1]
        window = reviewer.refute_window if is_refuting and reviewer.refute_window else reviewer.window
        if window is not None and tokens(seen.body) > window:
            error = {
                "message": f"maximum context length is {window} tokens",
                "code": "context_length_exceeded",
            }
            refused = json.dumps({"error": error}).encode()
            return reply(refused, status="400 Bad Request", media_type="application/json")
        tools = {tool["function"]["name"] for tool in seen.body.get("tools", ())}
        if "submit_synthesis" in tools:
            return _call(number, "submit_synthesis", _together(reviewer, "\n".join(texts)))
        if is_refuting:
            return _call(number, "new_answer", {"content": _verdicts(reviewer, "\n".join(texts[1:]))})
        document = {"summary": "What I found.", "findings": [*reviewer.finds]}
        return _call(number, "new_answer", {"content": json.dumps(document)})

    def beside(seen: Seen) -> bytes | None:
        return reply(b"", status="404 Not Found") if seen.head.startswith("GET ") else None

    async with answering(respond, beside) as double:
        agents = [
            {"id": name, "backend": {"type": TYPES[place % len(TYPES)], "model": name, "base_url": f"{double.url}/v1"}}
            for place, name in enumerate(reviewers)
        ]
        yield home.config("reviewers", *agents), double


def _together(reviewer: Reviewer, prompt: str) -> dict[str, Any]:
    """By title, with the answers that each stands in."""
    found: dict[str, tuple[Finding, list[str]]] = {}
    for answer in (one for one in materials(prompt) if one.kind == "answer"):
        for one in json.loads(answer.text)["findings"]:
            found.setdefault(one["title"], (one, []))[1].append(answer.name)
    kept = [one for one, _ in found.values()]
    kept = kept if reviewer.merges is None else reviewer.merges(kept)
    test = {} if reviewer.script is None else {"script": reviewer.script, "prints": "broken"}
    claims = [{"claim": one["title"], "answers": found[one["title"]][1], **test} for one in kept]
    return {"content": json.dumps({"summary": "All in all.", "findings": kept}), "claims": claims}


def _verdicts(reviewer: Reviewer, question: str) -> str:
    if reviewer.verdict is None:
        return "I would rather not say."
    titles = re.findall(r'^ "title": (".*"),?$', question, re.MULTILINE)
    numbers = map(int, re.findall(r'^ "finding": (\d+),$', question, re.MULTILINE))
    said = [reviewer.verdict(json.loads(title)) for title in titles]
    verdicts = [
        {"finding": place, "verdict": verdict, "reason": reason}
        for place, (verdict, reason) in zip(numbers, said, strict=True)
    ]
    return f"```json\n{json.dumps({'verdicts': verdicts})}\n```"


def _call(number: int, tool: str, arguments: dict[str, Any]) -> bytes:
    chunk: dict[str, Any] = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    function = {"name": tool, "arguments": json.dumps(arguments)}
    delta = {
        "role": "assistant",
        "tool_calls": [{"index": 0, "id": f"call_{number}", "type": "function", "function": function}],
    }
    end: dict[str, Any] = {"index": 0, "delta": {}, "finish_reason": "tool_calls"}
    usage = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
    events: list[dict[str, Any]] = [
        {**chunk, "choices": [{"index": 0, "delta": delta}]},
        {**chunk, "choices": [end]},
        {**chunk, "choices": [], "usage": usage},
    ]
    return reply(sse(*events))
