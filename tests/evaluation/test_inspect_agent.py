"""A team as an agent of Inspect: our command line in the sandbox of a coding task, its models behind the bridge."""

import json
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.evaluation.coding_tasks import CHECK, TASKS
from tests.harness import TempHome


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def told(tmp_path_factory: pytest.TempPathFactory, anyio_backend: str) -> AsyncGenerator[dict[str, Any]]:
    """By task; both of them by one process, as Inspect takes seconds to import."""
    del anyio_backend
    place = tmp_path_factory.mktemp("inspect-agent")
    home = TempHome(place / "home", place / "work", {"INSPECT_LOG_DIR": str(place / "logs"), "PYTHONPATH": "."})
    home.work.mkdir()
    members = [("a", "openai", "gpt-5"), ("b", "claude", "claude-sonnet-4-5")]
    config = home.config("pair", *({"id": name, "backend": {"type": kind, "model": m}} for name, kind, m in members))
    massgen = str(Path(sys.executable).with_name("massgen"))
    command = [sys.executable, "-m", "tests.evaluation.inspect_agent_run", config, massgen]
    done = await anyio.run_process(command, env=home.environ, check=False)
    assert done.returncode == 0, done.stderr.decode() + done.stdout.decode()
    yield {one["id"]: one for one in json.loads(done.stdout.splitlines()[-1])}
    home.close()


def test_what_the_team_changed_is_in_the_sandbox_with_its_patch_and_its_checks_in_the_log(told: Any) -> None:
    one = told[TASKS[0]]
    assert one["right"]
    assert one["answer"] == "add adds now."
    assert "+    return a + b" in one["massgen"]["patch"]
    checks = [each for each in one["massgen"]["run"]["checks"] if each["command"] == CHECK]
    assert {(each["of"] == "base", each["result"]) for each in checks} == {(True, "failed"), (False, "passed")}


def test_every_call_of_the_team_is_counted_by_inspect(told: Any) -> None:
    for one in told.values():
        usage = one["massgen"]["run"]["usage"]
        assert one["model_calls"] == usage["model_calls"] > 3
        (counted,) = one["usage"].values()
        assert counted["total_tokens"] == usage["input_tokens"] + usage["output_tokens"] == 1000 * one["model_calls"]


def test_a_team_without_an_answer_is_wrong_with_its_cost(told: Any) -> None:
    one = told[TASKS[1]]
    assert (one["right"], one["answer"], one["massgen"]["patch"]) == (False, "", None)
    assert one["massgen"]["run"]["status"] == "failed"


def test_the_log_says_which_team_it_was_as_it_is_outside(told: Any) -> None:
    found = told[TASKS[0]]["massgen"]
    assert [each["backend"] for each in found["team"]["agents"]] == ["openai", "claude"]
    assert found["prompts"].startswith("sha256:")
    assert {"massgen-mcp", "inspect_ai"} <= found["versions"].keys()
