"""Teams whose model is a real llama.cpp server with random weights: every run ends within its bounds, honestly.

Installs the server (`xllamacpp`, and `gguf` to write the model) into a virtual environment of its own.
"""

import sys
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import DEVNULL, PIPE

import anyio
from anyio.streams.text import TextReceiveStream

from massgen_mcp.config.loader import config_from_data
from massgen_mcp.config.models import Config
from massgen_mcp.events import AnswerSubmitted, ModelCallStarted, RunCompleted, RunFailed, VoteCast
from tests.harness import TempHome
from tests.soak import llama_server
from tests.teams import Ended, run_team

AGENTS, RETRIES = 2, 3
MOST_CALLS = (AGENTS + AGENTS + AGENTS) * (RETRIES + 1) + AGENTS**2 + 1
"""The bound of docs/coordination.md for one answer per agent."""
HONEST = ("no_answer", "no_quorum", "timeout", "context_too_small")


async def llama_cpp(home: TempHome, *, runs: int) -> str:
    """So many runs with room in the context, and one without; returns the figures."""
    place = home.path.with_name("llama")
    place.mkdir()
    python = await _installed(place)
    ends, forms, calls = Counter[str](), Counter[str](), list[int]()
    async with _serving(python, place, context=8192) as url:
        for number in range(runs):
            ended = await run_team(place / f"run{number}", _team(url), question="What is six times seven?")
            end = ended.snapshot.end
            assert isinstance(end, RunCompleted | RunFailed), end
            assert isinstance(end, RunCompleted) or end.reason in HONEST, end
            assert not isinstance(end, RunCompleted) or end.answer.strip(), end
            ends[end.outcome if isinstance(end, RunCompleted) else end.reason] += 1
            forms.update(_forms(ended))
            calls.append(len(ended.of(ModelCallStarted)))
    assert max(calls) <= MOST_CALLS, calls
    async with _serving(python, place, context=256) as url:
        small = (await run_team(place / "small", _team(url), question="What is six times seven?")).snapshot.end
    assert isinstance(small, RunFailed), small
    assert small.reason == "context_too_small", small
    return (
        f"{runs} runs: {dict(ends)}; calls {min(calls)} to {max(calls)} of at most {MOST_CALLS}; actions {dict(forms)}"
    )


def _forms(ended: Ended) -> list[str]:
    return [event.form for event in (*ended.of(AnswerSubmitted), *ended.of(VoteCast))]


def _team(url: str) -> Config:
    backend = {"type": "chatcompletion", "model": "tiny", "base_url": f"{url}/v1", "max_output_tokens": 200}
    return config_from_data(
        {
            "agents": [{"id": f"a{place}", "backend": backend} for place in range(AGENTS)],
            "orchestrator": {
                "enable_filesystem": False,
                "max_new_answers_per_agent": 1,
                "max_enforcement_retries": RETRIES,
            },
            "timeout_settings": {"orchestrator_timeout_seconds": 120, "call_timeout_seconds": 60},
        },
        "soak",
        environ={},
    )


async def _installed(place: Path) -> Path:
    """A Python that has the server."""
    environment = place / "venv"
    await anyio.run_process([sys.executable, "-m", "venv", str(environment)], stdout=DEVNULL)
    python = environment / "bin" / "python"
    await anyio.run_process([str(python), "-m", "pip", "install", "--quiet", "xllamacpp", "gguf"], stderr=DEVNULL)
    return python


@asynccontextmanager
async def _serving(python: Path, place: Path, *, context: int) -> AsyncGenerator[str]:
    command = [str(python), str(llama_server.__file__), str(place), str(context)]
    async with await anyio.open_process(command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL) as server:
        assert server.stdout is not None
        with anyio.fail_after(60):
            address = await TextReceiveStream(server.stdout).receive()
        try:
            yield address.strip()
        finally:
            server.terminate()
