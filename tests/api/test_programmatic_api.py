"""Every code block of MassGen's programmatic API guide, as it stands in `programmatic_api.md`, is run here."""

import ast
import inspect
import json
import os
import re
import subprocess
import sys
from importlib.metadata import requires
from pathlib import Path
from typing import Any

import pytest
import yaml

import massgen_mcp as massgen
from tests.api.blocks import BLOCKS, Place
from tests.api.double import FINAL, REASON
from tests.wire_double import Aimock

# The guide's models are of 2025, and Anthropic's SDK says so.
pytestmark = pytest.mark.filterwarnings("ignore:The model '.*' is deprecated:DeprecationWarning")


def block(number: int) -> int:
    """Marks the place where a block is looked after; see the last tests."""
    return number


def asked_models(double: Aimock) -> set[str]:
    return {request.body["model"] for request in double.requests}


@pytest.fixture
def ready(place: Place, models: Aimock, litellm: Any) -> Place:
    """LiteLLM is there and registered, as after block 17."""
    del models, litellm
    place.run(block(17))
    return place


# -- direct use -------------------------------------------------------------------------------------------------------


def test_block_2_direct_use(place: Place, models: Aimock) -> None:
    printed = place.run(block(2))
    assert re.match(rf"An answer\.\n{FINAL}\nWinner: agent_[abc]\n\[agent_a\]: An answer\.", printed)
    assert "gpt-4o-mini" in asked_models(models)


@pytest.mark.parametrize(("number", "function"), [(3, massgen.run), (9, massgen.build_config)])
def test_blocks_3_and_9_signatures(number: int, function: Any) -> None:
    (promised,) = ast.parse(BLOCKS[block(number)].code.rstrip() + ": ...").body
    assert isinstance(promised, ast.FunctionDef | ast.AsyncFunctionDef)
    there = inspect.signature(function).parameters.values()
    assert promised.name == function.__name__
    assert isinstance(promised, ast.AsyncFunctionDef) == inspect.iscoroutinefunction(function)
    assert [one.arg for one in promised.args.args] == [p.name for p in there if p.kind is not p.VAR_KEYWORD]
    defaults = [ast.literal_eval(default) for default in promised.args.defaults]
    assert defaults == [p.default for p in there if p.default is not p.empty]
    assert (promised.args.kwarg is not None) == any(p.kind is p.VAR_KEYWORD for p in there)


async def test_blocks_4_to_7_the_result(place: Place, models: Aimock) -> None:
    del models
    result = await massgen.run("q", models=["groq/one", "groq/two", "gpt-5"], enable_logging=True)

    lines = BLOCKS[block(4)].code.splitlines()
    promised = {line.split('"')[1] for line in lines if line.strip().startswith('"')}
    assert set(result) == promised | {
        "usage",
        "cost",
        "outcome",
        "voted",
        "decided_by",
        "challenge",
        "weak",
        "failure",
        "degraded",
    }
    assert Path(result["log_directory"]).parent == place.path / ".massgen" / "massgen_logs"
    assert Path(result["final_answer_path"]) == Path(result["log_directory"]) / "final"
    assert (Path(result["final_answer_path"]) / result["selected_agent"] / "answer.txt").read_text() == FINAL

    for one in ast.literal_eval(BLOCKS[block(5)].code):
        assert {key: type(value) for key, value in result["answers"][0].items()} == {k: type(v) for k, v in one.items()}
    assert [one["label"] for one in result["answers"]] == ["agent1.1", "agent2.1", "agent3.1"]
    for answer in result["answers"]:
        assert (Path(answer["answer_path"]) / "answer.txt").read_text() == answer["content"] == "An answer."
        assert f"/turn_1/attempt_1/{answer['agent_id']}/" in answer["answer_path"]

    mapping = ast.literal_eval(BLOCKS[block(6)].code)
    assert set(mapping) < set(result["agent_mapping"])
    assert result["agent_mapping"] == {"agent_a": "one", "agent_b": "two", "agent_c": "gpt-5"}

    votes = ast.literal_eval(BLOCKS[block(7)].code)
    assert {key: type(value) for key, value in result["vote_results"].items()} == {k: type(v) for k, v in votes.items()}
    assert sum(result["vote_results"]["vote_counts"].values()) == result["vote_results"]["total_votes"]
    for voters in result["vote_results"]["voter_details"].values():
        assert all(set(one) == {"voter", "reason"} and one["reason"] == REASON for one in voters)


def test_block_8_examples_of_run(place: Place, models: Aimock) -> None:
    printed = place.run(block(8))
    assert Path(printed.removeprefix("Logs at: ").strip(), "status.json").is_file()
    assert (place.path / "answer.txt").read_text() == "An answer."
    assert {"claude-sonnet-4-20250514", "gpt-4o-mini"} <= asked_models(models)
    assert len(list((place.path / ".massgen" / "massgen_logs").iterdir())) == 1, "only the run with logging left logs"


# -- build_config -----------------------------------------------------------------------------------------------------


def test_block_10_examples_of_build_config(place: Place, models: Aimock) -> None:
    place.run(block(10))
    assert place.names["result"]["final_answer"] == FINAL
    assert asked_models(models) == {"gpt-5", "claude-sonnet-4-5-20250929", "gemini-3-pro-preview"}
    config = place.names["config"]
    assert [agent["backend"]["type"] for agent in config["agents"]] == ["openai", "claude"]


async def test_without_docker_no_run_of_the_config_with_docker_begins(
    place: Place, models: Aimock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{place.path}/no.sock")
    config = massgen.build_config(models=["gpt-5"], use_docker=True)
    with pytest.raises(massgen.MassgenError, match="no container is available for agents' commands") as refused:
        await massgen.run("q", config_dict=config)
    assert refused.value.code == "config_invalid"
    assert models.requests == []


def test_block_11_the_default_config() -> None:
    assert massgen.build_config() == yaml.safe_load(BLOCKS[block(11)].code)


def test_block_12_the_config_with_docker() -> None:
    promised = yaml.safe_load(BLOCKS[block(12)].code)
    config = massgen.build_config(models=["groq/llama-3.3-70b"], use_docker=True)
    assert config["agents"] == promised["agents"]
    coordination = promised["orchestrator"]["coordination"]
    assert config["orchestrator"]["coordination"].items() >= coordination.items()


# -- LiteLLM ----------------------------------------------------------------------------------------------------------


def test_block_1_quick_start_with_litellm(place: Place, models: Aimock, litellm: Any) -> None:
    del litellm
    key = os.environ.pop("OPENROUTER_API_KEY")
    (place.path / ".env").write_text(f"OPENROUTER_API_KEY={key}-from-the-file\n")
    printed = place.run(block(1))
    assert f"=== FINAL ANSWER ===\n{FINAL}\n" in printed
    assert "[agent_c] (agent3.1)\nAn answer.\n" in printed
    winner = re.findall("Winner: (agent_[abc])\n", printed)[0]
    assert f" -> {winner}: {REASON}\n" in printed
    assert printed.endswith("Log directory: None\nFinal answer: None\n")
    assert asked_models(models) == {"openai/gpt-5.1", "google/gemini-3-pro-preview", "x-ai/grok-4.1-fast"}
    assert {request.headers["authorization"] for request in models.requests} == {f"Bearer {key}-from-the-file"}


def test_block_13_the_extra_exists() -> None:
    extras = [line for line in requires("massgen-mcp") or [] if "extra ==" in line]
    assert BLOCKS[block(13)].code.startswith("pip install massgen[litellm]")
    assert any(re.match(r"litellm.*; extra == .litellm.", line) for line in extras)


def test_block_14_registration(place: Place, litellm: Any) -> None:
    place.run(block(14))
    place.run(14)
    assert [entry["provider"] for entry in litellm.custom_provider_map].count("massgen") == 1
    assert litellm.get_llm_provider("massgen/build")[:2] == ("build", "massgen")


def test_block_15_model_strings(place: Place, models: Aimock, litellm: Any) -> None:
    del litellm
    team = massgen.build_config(models=["grok-4"])
    (place.path / "my_config.yaml").write_text(yaml.safe_dump(team))
    place.run(block(15))
    assert {"gpt-4o-mini", "grok-4"} <= asked_models(models)
    assert place.names["response"].choices[0].message.content == "An answer."


def test_block_16_dynamic_config_building(place: Place, models: Aimock, litellm: Any) -> None:
    del litellm
    for name in ("project", "output"):
        (place.path / name).mkdir()
    place.run(block(16))
    assert place.names["response"].choices[0].message.content == FINAL
    assert asked_models(models) == {"gpt-5", "llama-3.3-70b", "llama-3.3-70b-versatile", "gpt-5-nano"}
    light = [request.body for request in models.requests if request.body["model"] == "gpt-5-nano"]
    assert not any("write_file" in json.dumps(body) for body in light)
    shown = [json.dumps(request.body) for request in models.requests if "context/output" in json.dumps(request.body)]
    assert shown, "the agents are told of the paths"


def test_block_17_async_use(place: Place, models: Aimock, litellm: Any) -> None:
    del models, litellm
    assert place.run(block(17)) == f"{FINAL}\n"


def test_blocks_18_21_and_22_logs_of_a_completion(ready: Place) -> None:
    ready.run(block(18))
    assert (ready.path / "answer.txt").read_text() == FINAL
    printed = ready.run(block(21))
    assert " events.jsonl\n" in printed
    assert printed.endswith("agent_a: An answer....\nagent_b: An answer....\n")
    ready.run(block(22))
    exported = json.loads((ready.path / "massgen_results.json").read_text())
    assert exported["final_answer"] == FINAL
    assert exported["vote_counts"][exported["winner"]] == max(exported["vote_counts"].values())
    assert [answer["label"] for answer in exported["answers"]] == ["agent1.1", "agent2.1"]


def test_blocks_19_and_20_coordination_metadata(place: Place, models: Aimock, litellm: Any) -> None:
    del models, litellm
    printed = place.run(block(19))
    assert printed.startswith(f"{FINAL}\nConfig used: build:gpt-5,claude-sonnet-4-5-20250929\nSession ID: session_")
    assert "Was tie: " in printed
    assert "[agent1.1] agent_a\n Path: None\n Content: An answer....\n" in printed
    place.run(block(20))
    assert place.names["real_id"] == "openai-gpt5-1"


def test_block_26_langchain(place: Place, models: Aimock, litellm: Any) -> None:
    del models, litellm
    printed = place.run(block(26), {"langchain_community.chat_models": "langchain_litellm"})
    assert printed == f"{FINAL}\n"


def test_block_27_whether_litellm_is_there(place: Place, litellm: Any) -> None:
    del litellm
    assert place.run(block(27)) == ""
    without = f"import importlib.util; importlib.util.find_spec = lambda *_: None\n{place.adapted(BLOCKS[27].code)}"
    done = subprocess.run([sys.executable, "-c", without], capture_output=True, text=True, check=True)
    assert done.stdout == "LiteLLM not installed. Install with: pip install massgen[litellm]\n"


# -- around it --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [23, 24])
def test_blocks_23_and_24_the_command_line(place: Place, number: int) -> None:
    config = "agent: {id: solo, backend: {type: scripted, script: [{answer: Forty-two.}]}}"
    for name in ("config", "my_config"):
        (place.path / f"{name}.yaml").write_text(config)
    script = place.path / "block.sh"
    script.write_text(place.adapted(BLOCKS[block(number)].code))
    environ = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-e", script], env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answers = ["answer.txt"] if number == 23 else [f"answer_{place}.txt" for place in range(3)]
    for answer in answers:
        assert (place.path / answer).read_text() == "Forty-two."
    told = [line for line in done.stdout.splitlines() if line.startswith("OUTPUT_FILE: ")]
    assert told == [f"OUTPUT_FILE: {place.path / answer}" for answer in answers], "one line for each with --automation"


def test_block_25_evaluation(place: Place, models: Aimock) -> None:
    del models
    printed = place.run(block(25))
    assert printed.count(f"A: {FINAL}...\n") == 3
    assert printed.startswith("Q: What is machine learning?\n")
    assert len({result["log_dir"] for result in place.names["results"]}) == 3


# -- the list ---------------------------------------------------------------------------------------------------------


def test_no_block_escapes_these_tests() -> None:
    """By the source, since tests may be run one by one."""
    source = Path(__file__).read_text()
    mentioned = {number for number in BLOCKS if f"block({number})" in source}
    assert mentioned | {3, 9, 23, 24} == set(BLOCKS) == set(range(1, 28))
