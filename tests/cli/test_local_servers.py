"""Model servers of this machine at the command line: the team that nobody named, the doctor, the set-up dialogue."""

import re
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import yaml

from massgen_mcp.config.providers.catalog import PROVIDERS
from tests.commands import run_command
from tests.harness import COMMAND_MODULE, SERVER_MODULE, TempHome
from tests.model_servers import acting_server, closed_port
from tests.ollama_double import GB, OllamaModel
from tests.planted import PLANTED
from tests.typist import typist

MODELS = (OllamaModel("qwen3:4b", "4B", GB), OllamaModel("llama3.2:1b", "1.2B", GB))


@asynccontextmanager
async def with_ollama(home: TempHome) -> AsyncGenerator[TempHome]:
    """A home without keys beside Ollama, and nobody else."""
    closed = f"http://127.0.0.1:{await closed_port()}"
    nobody = {row.base_url_variable or "": closed for row in PROVIDERS if row.is_local}
    async with acting_server("ollama", *MODELS) as server:
        keyless = dict.fromkeys(PLANTED, "")
        yield home.with_variables(**{**keyless, **nobody, "OLLAMA_HOST": server.url}, TERM="dumb")


async def command(home: TempHome, module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return await anyio.to_thread.run_sync(lambda: run_command(home, module, *arguments))


async def test_a_question_without_team_and_keys_is_asked_of_the_models_that_are_here(home: TempHome) -> None:
    async with with_ollama(home) as here:
        ended = await command(here, COMMAND_MODULE, "--automation", "What is the capital of France?")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    (team,) = [line for line in ended.stdout.splitlines() if line.startswith("TEAM: ")]
    assert team.startswith("TEAM: default team, free on your own model server: ollama at 127.0.0.1:")
    assert "(qwen3:4b from 3 perspectives)" in team
    assert "ANSWER_PREVIEW: Paris." in ended.stdout
    assert re.search(r"free for \d+ calls", ended.stdout), ended.stdout
    said = ended.stdout + ended.stderr
    assert [text for text in ("n/a", "price unknown", "no known price", "unknown price") if text in said] == []


async def test_a_model_is_named_by_its_server_and_as_short_as_it_is_clear(home: TempHome) -> None:
    async with with_ollama(home) as here:
        ended = await command(here, COMMAND_MODULE, "--automation", "--model", "ollama/llama3.2:1b", "Capital?")
        assert ended.returncode == 0, ended.stdout + ended.stderr
        unknown = await command(here, COMMAND_MODULE, "--automation", "--model", "ollama/quen3", "Capital?")
    assert (unknown.returncode, unknown.stdout) == (1, ""), "a run has begun"
    assert "has no model 'quen3'; did you mean qwen3:4b? It has qwen3:4b, llama3.2:1b" in unknown.stderr


async def test_a_server_that_does_not_run_is_told_with_what_starts_it(home: TempHome) -> None:
    nobody = home.with_variables(OLLAMA_HOST=f"http://127.0.0.1:{await closed_port()}")
    ended = await command(nobody, COMMAND_MODULE, "--automation", "--model", "ollama/qwen3", "Capital?")
    assert ended.returncode == 2
    assert ended.stdout.splitlines()[-1].endswith("; start the server with `ollama serve`, or correct base_url")


async def test_the_doctor_tells_what_the_servers_have_and_which_team_that_makes(home: TempHome) -> None:
    async with with_ollama(home) as here:
        told = (await command(here, SERVER_MODULE, "doctor")).stdout
    assert "has qwen3:4b (4B), llama3.2:1b (1.2B)" in told
    assert "warn  model server: vllm is set to 127.0.0.1:" in told
    (team,) = [line for line in told.splitlines() if line.startswith("ok    default team: ")]
    assert team == "ok    default team: free on your own model server: " + (
        ", ".join(f"{name} (ollama/qwen3:4b)" for name in ("qwen3-4b", "qwen3-4b-2", "qwen3-4b-3"))
    )


async def test_the_doctor_says_so_where_there_is_no_team(home: TempHome) -> None:
    closed = f"http://127.0.0.1:{await closed_port()}"
    nobody = {row.base_url_variable or "": closed for row in PROVIDERS if row.is_local}
    told = (await command(home.with_variables(**dict.fromkeys(PLANTED, ""), **nobody), SERVER_MODULE, "doctor")).stdout
    assert "warn  default team: none" in told
    assert "massgen can't put a team together" in told


def test_the_doctor_tells_which_config_is_asked_here_or_what_is_wrong_with_it(home: TempHome) -> None:
    config = home.work / ".massgen" / "config.yaml"
    config.parent.mkdir()
    config.write_text("agents: [{id: ada, backend: {type: scripted, model: x}}]\n")
    told = run_command(home, SERVER_MODULE, "doctor").stdout
    assert f"ok    config: {config}, instead of the default team: ada (scripted/x)\n" in told
    config.write_text("agent: [{id: ada}]\n")
    broken = run_command(home, SERVER_MODULE, "doctor")
    assert broken.returncode == 1
    assert (
        f"fail  config: {config} cannot be used\n      {config}:1: agent: this is a list; did you mean" in broken.stdout
    )


async def test_the_doctor_warns_of_a_config_whose_local_server_is_not_running(home: TempHome) -> None:
    config = home.work / ".massgen" / "config.yaml"
    config.parent.mkdir()
    config.write_text("agents: [{id: local, backend: {type: ollama, model: 'qwen3:4b'}}]\n")
    async with with_ollama(home) as here:
        there = await command(here, SERVER_MODULE, "doctor")
    assert f"ok    config: {config}, instead of the default team: local (ollama/qwen3:4b)\n" in there.stdout
    nobody = home.with_variables(OLLAMA_HOST=f"http://127.0.0.1:{await closed_port()}")
    told = (await command(nobody, SERVER_MODULE, "doctor")).stdout
    assert f"warn  config: {config}, instead of the default team: local (ollama/qwen3:4b)\n" in told
    assert "      start ollama and load a model, or remove its agent\n" in told


async def test_the_dialogue_saves_the_same_team(home: TempHome) -> None:

    def dialogue(here: TempHome) -> None:
        arguments = [sys.executable, "-m", COMMAND_MODULE, "--init"]
        with typist(arguments, cwd=here.work, environ=here.environ) as person:
            person.expect("Model servers: ollama at 127.0.0.1:")
            person.expect("The model server ollama: qwen3:4b")
            person.answer("Which [1]: ", "")
            person.answer("Which [1]: ", "")
            person.expect("Saved ")
            assert person.leave() == 0

    async with with_ollama(home) as here:
        await anyio.to_thread.run_sync(dialogue, here)
    saved = yaml.safe_load((home.work / ".massgen" / "config.yaml").read_text())
    assert [agent["backend"]["type"] for agent in saved["agents"]] == ["ollama"] * 3
    assert {agent["backend"]["model"] for agent in saved["agents"]} == {"qwen3:4b"}
