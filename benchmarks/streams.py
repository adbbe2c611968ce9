"""What a long reply costs: CPU for each streamed token, and what its first stream costs a process.

`python -m benchmarks.streams [--repeat N]`. All of it runs against a local model; each figure is taken in a process of
its own, and those of one wire one after the other. What the rows mean, for each wire:

- token: CPU of the whole process, for each further token, in a run of one agent that writes its answer. `text`: the
  answer is plain text; `call`: it is the argument of `new_answer`; `live`: such a call comes token by token, as from a
  provider, and reading from the network costs more.
- bare: the same stream, read with httpx2 and parsed, and nothing else. SDK: the same, as the provider's SDK reads it.
  ours: what a run costs beyond the bare one.
- first stream: the first short run over a wire in a process that has done a scripted one; the SDK's import included.
  CPU of the whole process, and the longest time for which its event loop was busy in one step (CPU of its thread; what
  other threads do meanwhile is not in it).
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import Context
from pathlib import Path
from typing import Any

from benchmarks.processes import environment, finish
from benchmarks.streaming_model import NAME, StreamingModel
from benchmarks.table import Table, machine

WIRES = {"chatcompletion": "/v1/chat/completions", "openai": "/v1/responses", "claude": "/v1/messages"}
LONG, SHORT = 4000, 4
"""Tokens."""
PLAYS = ("text/burst", "call/burst", "call/live")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.streams", description="Measure long replies.")
    parser.add_argument("--repeat", type=int, default=5, metavar="N", help="measure everything so often (default 5)")
    parser.add_argument("--one", nargs=4, metavar="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(_measured(*options.one)))
        return
    table = Table()
    with StreamingModel() as model, tempfile.TemporaryDirectory(prefix="massgen-mcp-streams-") as directory:
        _repetition(model, Path(directory), Table())  # compiles bytecode: its timings do not count
        for number in range(options.repeat):
            print(f"\rrepetition {number + 1} of {options.repeat} ...", end="", file=sys.stderr, flush=True)
            _repetition(model, Path(directory), table)
    print(file=sys.stderr)
    print(machine(options.repeat), table, sep="\n\n")


def _repetition(model: StreamingModel, directory: Path, table: Table) -> None:
    for wire in WIRES:
        first = _one(directory, "first", wire, model.root, "call/burst")
        table.add(f"{wire}: first stream, CPU", "ms", first["cpu"])
        table.add(f"{wire}: first stream, longest step on the loop", "ms", first["step"])
        for play in PLAYS:
            seconds = {what: _one(directory, what, wire, model.root, play)["token"] for what in _READERS}
            for what, cost in seconds.items():
                table.add(f"{wire}: token, {play.replace('/burst', '').replace('/', ' ')}, {what}", "us", cost)
            name = f"{wire}: token, {play.replace('/burst', '').replace('/', ' ')}"
            table.add(f"{name}, ours: run without bare", "us", seconds["run"] - seconds["bare"])
            table.add(f"{name}, SDK to run", "x", seconds["SDK"] / seconds["run"])


def _one(directory: Path, *what: str) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.streams", "--one", *what]
    environ = {**environment(directory), "PYTHONPATH": str(Path(__file__).resolve().parent.parent)}
    figures: dict[str, float] = json.loads(finish(command, directory=directory, environ=environ).output)
    return figures


# -- in the measured process ------------------------------------------------------------------------------------------


def _measured(what: str, wire: str, root: str, play: str) -> dict[str, float]:
    if what == "first":
        return _first(lambda: _run(wire, _base(root, wire, SHORT, play)))
    read = _READERS[what]
    return {"token": asyncio.run(_slope(lambda tokens: read(wire, _base(root, wire, tokens, play))))}


def _base(root: str, wire: str, tokens: int, play: str) -> str:
    """The `base_url` at which so many tokens are played."""
    return f"{root}/{tokens}/{play}{'' if wire == 'claude' else '/v1'}"


async def _slope(read: Callable[[int], Awaitable[None]]) -> float:
    """CPU seconds for each further token."""
    await read(SHORT)  # imports; builds what is built once
    costs: list[float] = []
    for tokens in (SHORT, LONG):
        before = time.process_time()
        await read(tokens)
        costs.append(time.process_time() - before)
    return (costs[1] - costs[0]) / (LONG - SHORT)


async def _run(wire: str, base_url: str) -> None:
    import massgen_mcp

    backend = {"type": wire, "model": NAME, "base_url": base_url, "max_output_tokens": 8000} if base_url else _SCRIPTED
    config: dict[str, Any] = {"agents": [{"id": "writer", "backend": backend}]}
    if "/text/" in base_url:
        config["orchestrator"] = {"skip_coordination_rounds": True}  # the final answer is text
    result = await massgen_mcp.run("What is six times seven?", config_dict=config, enable_logging=True)
    assert "forty" in result["final_answer"]


_SCRIPTED = {"type": "scripted", "script": [{"answer": "forty-two"}]}


async def _bare(wire: str, base_url: str) -> None:
    import httpx2

    url = base_url.removesuffix("/v1") + WIRES[wire]
    async with httpx2.AsyncClient() as client, client.stream("POST", url, json={}) as reply:
        rest = b""
        async for chunk in reply.aiter_bytes():
            *events, rest = (rest + chunk).split(b"\n\n")
            for event in events:
                data = event.partition(b"data: ")[2]
                if data != b"[DONE]":
                    json.loads(data)


async def _sdk(wire: str, base_url: str) -> None:
    if wire == "claude":
        from anthropic import AsyncAnthropic

        async with AsyncAnthropic(api_key="none", base_url=base_url) as claude:
            message: Any = {"role": "user", "content": "?"}
            async for _ in await claude.messages.create(model=NAME, max_tokens=9, messages=[message], stream=True):
                pass
        return
    from openai import AsyncOpenAI

    async with AsyncOpenAI(api_key="none", base_url=base_url) as client:
        if wire == "openai":
            stream: Any = await client.responses.create(model=NAME, input="?", stream=True)
        else:
            stream = await client.chat.completions.create(model=NAME, messages=[], stream=True)
        async for _ in stream:
            pass


_READERS = {"run": _run, "bare": _bare, "SDK": _sdk}


class _TimedLoop(asyncio.SelectorEventLoop):
    """Notes the longest step: CPU seconds of the loop's thread between two looks at its sockets."""

    longest = 0.0

    def call_soon(  # pyright: ignore[reportIncompatibleMethodOverride] - as in asyncio, without its type variables
        self, callback: Callable[..., object], *args: object, context: Context | None = None
    ) -> asyncio.Handle:
        def timed() -> None:
            began = time.thread_time()
            try:
                callback(*args)
            finally:
                self.longest = max(self.longest, time.thread_time() - began)

        return super().call_soon(timed, context=context)


def _first(run: Callable[[], Coroutine[Any, Any, None]]) -> dict[str, float]:
    with asyncio.Runner(loop_factory=_TimedLoop) as runner:
        runner.run(_run("scripted", ""))
        loop = runner.get_loop()
        assert isinstance(loop, _TimedLoop)
        before, loop.longest = time.process_time(), 0.0
        runner.run(run())
        return {"cpu": time.process_time() - before, "step": loop.longest}


if __name__ == "__main__":
    main()
