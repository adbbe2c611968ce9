"""A real run for the README: three agents with simulated providers, one of which disagrees."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import anyio

from tests.tutorial_double import MODELS, tutorial_providers

QUESTION = "Postgres or Redis for our job queue? 200 jobs a minute, and none may be lost."
TYPES = ("openai", "claude", "gemini")


@dataclass(frozen=True)
class ExampleRun:
    """The output of the command, and the page of the run."""

    command: str
    answer: str
    """Standard output."""
    report: str
    """Standard error."""
    page: Path


async def play_example(work: Path) -> ExampleRun:
    """Ask the question with a config of the user that names the agents after their models."""
    agents = [
        f"  - {{ id: {model}, backend: {{ type: {kind}, model: {model} }} }}\n"
        for kind, model in zip(TYPES, MODELS, strict=True)
    ]
    configs = work / "configs"
    configs.mkdir()
    (configs / "config.yaml").write_text(f"agents:\n{''.join(agents)}")
    async with tutorial_providers() as variables:
        ended = await anyio.run_process(
            [sys.executable, "-m", "massgen_mcp.cli", QUESTION],
            cwd=work,
            env={
                **os.environ,
                **variables,
                "MASSGEN_CONFIG_HOME": str(configs),
                "MASSGEN_MCP_HOME": str(work / "home"),
            },
            stdin=subprocess.DEVNULL,
            check=False,
        )
    if ended.returncode != 0:
        raise RuntimeError(ended.stderr.decode())
    return ExampleRun(f'massgen "{QUESTION}"', ended.stdout.decode(), ended.stderr.decode(), find_page(work))


def find_page(work: Path) -> Path:
    (page,) = work.rglob("report.html")
    return page
