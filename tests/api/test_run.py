"""`massgen_mcp.run` as a caller sees it: what it refuses, what it leaves behind, and how it ends."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import anyio
import pytest

import massgen_mcp as massgen
from tests.api.blocks import Place
from tests.api.double import FINAL
from tests.harness import wait_until
from tests.wire_double import Aimock

HANG = {"hang": True}


def team(*scripts: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """A config of scripted agents."""
    return {"agents": [{"backend": {"type": "scripted", "script": script}} for script in scripts], **more}


def answers(text: str) -> list[dict[str, Any]]:
    return [{"answer": text}]


# -- the team ---------------------------------------------------------------------------------------------------------


async def test_one_model_is_one_agent_and_has_no_votes(place: Place) -> None:
    del place
    result = await massgen.run("q", model="scripted/x")
    assert result["config_used"] == "single-agent:scripted/x"
    assert not {"vote_results", "answers", "selected_agent", "agent_mapping", "log_directory"} & set(result)


async def test_a_key_that_an_agent_was_given_as_text_serves_the_runs_of_this_process(
    place: Place, aimock: Aimock, monkeypatch: pytest.MonkeyPatch
) -> None:
    del place
    monkeypatch.delenv("AZURE_OPENAI_API_KEY", raising=False)
    aimock.load({"match": {}, "response": {"content": "Paris"}})
    agent = massgen.AgentConfig.create_azure_openai_config(
        deployment_name="gpt-4-turbo", endpoint=f"{aimock.url}/", api_key="az-given-to-a-run"
    )
    config = agent.to_config_dict()
    assert "az-given" not in repr(config)
    result = await massgen.run("What is the capital of France?", config_dict=config, enable_filesystem=False)
    assert result["final_answer"] == "Paris"
    assert {request.headers["api-key"] for request in aimock.requests} == {"az-given-to-a-run"}


async def test_several_models_are_dealt_out_to_as_many_agents_as_asked_for(place: Place) -> None:
    del place
    result = await massgen.run("q", models=["scripted/x", "scripted/y"], num_agents=3)
    assert result["config_used"] == "multi-agent:scripted/x,scripted/y,scripted/x"
    assert result["agent_mapping"] == {"agent_a": "x", "agent_b": "y", "agent_c": "x-2"}


async def test_without_a_team_the_projects_own_config_holds(place: Place) -> None:
    (place.path / ".massgen").mkdir()
    file = place.path / ".massgen" / "config.yaml"
    file.write_text(json.dumps(team(answers("Ours."))))
    result = await massgen.run("q")
    assert (result["final_answer"], result["config_used"]) == ("Ours.", str(file))


async def test_without_any_config_the_providers_whose_keys_are_set_make_the_team(models: Aimock) -> None:
    for name in [name for name in os.environ if name.endswith("_API_KEY") and name != "XAI_API_KEY"]:
        del os.environ[name]
    result = await massgen.run("q")
    assert result["config_used"] == "default"
    assert {request.body["model"] for request in models.requests} == {"grok-4.7"}


async def test_a_path_is_a_config_and_told_as_such(place: Place) -> None:
    file = place.path / "team.yaml"
    file.write_text(json.dumps(team(answers("From the file."))))
    for config in (file, "team.yaml"):
        result = await massgen.run("q", config=config)
        assert (result["final_answer"], result["config_used"]) == ("From the file.", str(file))


async def test_models_can_be_asked_at_another_address(models: Aimock) -> None:
    result = await massgen.run("q", model="chatcompletion/m", base_url=f"{models.url}/v1")
    assert result["final_answer"] == "An answer."
    assert {request.path for request in models.requests} == {"/v1/chat/completions"}


async def test_a_system_message_is_said_to_every_agent_beside_its_own(models: Aimock) -> None:
    config = {"agents": [{"backend": {"type": "grok", "model": "m"}, "system_message": "You are terse."}]}
    await massgen.run("q", config_dict=config, system_message="Answer in French.")
    assert "You are terse.\n\nAnswer in French." in models.requests[0].body["instructions"]


# -- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ({"query": "  "}, "invalid_arguments", "the question is empty"),
        (
            {"config": "nowhere.yaml"},
            "config_not_found",
            "Config file not found: nowhere.yaml. Name a YAML file or @",
        ),
        ({"config": "@examples/basic_mutli"}, "config_not_found", "Did you mean @examples/basic_multi?"),
        ({"model": "gpt-5"}, "missing_key", "needs OPENAI_API_KEY. Set the key in the environment"),
        ({"model": "my-model"}, "config_invalid", "write provider/model"),
        ({"models": "gpt-5"}, "invalid_arguments", "pass a single name as model"),
        ({"model": "scripted/x", "config": "a.yaml"}, "invalid_arguments", "config and model each name a team"),
        ({"config_dict": {}, "models": ["gpt-5"]}, "invalid_arguments", "config_dict and models each name a team"),
        ({"config": "@examples/scripted", "num_agents": 2}, "invalid_arguments", "num_agents needs model"),
        ({"config": "@examples/scripted", "base_url": "http://x"}, "invalid_arguments", "base_url needs model"),
        ({"model": "scripted/x", "num_agents": 11}, "config_invalid", "a team needs 1 to 10 agents, not 11"),
        ({"config_dict": {"agents": []}}, "config_invalid", "config_dict: agents"),
        (
            {"model": "scripted/x", "use_docker": True},
            "config_invalid",
            "no container is available for agents' commands",
        ),
        ({"model": "scripted/x", "contxt_paths": []}, "invalid_arguments", "did you mean context_paths?"),
        ({"model": "scripted/x", "output_file": "no/such/a.txt"}, "invalid_arguments", "no/such doesn't exist"),
        ({"model": "scripted/x", "session_id": "s"}, "invalid_arguments", "there is no session 's' in this process"),
        (
            {"model": "scripted/x", "context_paths": ["gone"]},
            "config_invalid",
            "context_paths[0].path: file or directory not found",
        ),
        ({"model": "scripted/x", "context_paths": "gone"}, "config_invalid", "context_paths must be a list of paths"),
        ({"model": "scripted/x", "context_paths": ["."] * 21}, "config_invalid", "context_paths"),
        (
            {"model": "scripted/x", "context_paths": ["."], "enable_filesystem": False},
            "invalid_arguments",
            "leave enable_filesystem=False out",
        ),
        (
            {"model": "scripted/x", "conversation_history": [{"role": "user", "content": "Hi"}]},
            "invalid_arguments",
            "pass that message as the question",
        ),
        (
            {"model": "scripted/x", "conversation_history": [{"role": "tool", "content": "Hi"}]},
            "invalid_arguments",
            "each message in the conversation needs a role (user or assistant) and text content",
        ),
    ],
)
async def test_bad_input_is_a_typed_error_that_says_what_to_do(
    place: Place, arguments: dict[str, Any], code: str, message: str
) -> None:
    given: dict[str, Any] = {"query": "q", **arguments}
    with pytest.raises(massgen.MassgenError) as refused:
        await massgen.run(**given)
    assert refused.value.code == code
    assert message in str(refused.value)
    assert list(place.path.iterdir()) == [], "nothing was begun"


# -- ends that are no answers -----------------------------------------------------------------------------------------


async def test_a_failed_run_is_an_error_with_its_cause(place: Place) -> None:
    target = place.path / "answer.txt"
    with pytest.raises(massgen.RunNotCompleted, match=r"the run failed \(auth\)") as failed:
        await massgen.run("q", config_dict=team([{"fail": "auth"}]), output_file=target, enable_logging=True)
    assert (failed.value.code, failed.value.state, failed.value.reason) == ("run_not_completed", "failed", "auth")
    assert failed.value.result["final_answer"] is None
    assert failed.value.result["degraded"][0]["reason"] == "auth"
    assert (Path(failed.value.result["log_directory"]) / "events.jsonl").is_file()
    assert not target.exists()


async def test_a_run_that_is_out_of_time_hands_over_its_best_answer(place: Place) -> None:
    del place
    limits = {"timeout_settings": {"orchestrator_timeout_seconds": 3}}
    config = team([*answers("So far."), HANG], [*answers("Another."), HANG], **limits)
    with pytest.raises(massgen.RunNotCompleted, match="the run took longer than 3 s") as late:
        await massgen.run("q", config_dict=config)
    assert (late.value.state, late.value.reason) == ("timed_out", "timeout")
    assert late.value.result["final_answer"] in ("So far.", "Another.")


async def test_a_caller_that_is_cancelled_cancels_its_run(place: Place) -> None:
    logs = place.path / ".massgen" / "massgen_logs"
    ended = anyio.Event()

    async def ask() -> None:
        try:
            limits = {"timeout_settings": {"orchestrator_timeout_seconds": 20}}
            await massgen.run("q", config_dict=team([HANG], **limits), enable_logging=True)
        finally:
            ended.set()

    def journal() -> str:
        return "".join(path.read_text() for path in logs.glob("*/events.jsonl"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await wait_until(lambda: "model_call_started" in journal())
        tasks.cancel_scope.cancel()
    assert ended.is_set()
    assert "run_cancelled" in journal()


# -- what it leaves ---------------------------------------------------------------------------------------------------


async def test_without_logging_nothing_stays_on_disk(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    private = tmp_path / "tmp"
    private.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(private))
    result = await massgen.run("q", config="@examples/scripted")
    assert [answer["answer_path"] for answer in result["answers"]] == [None] * 4
    assert list(private.iterdir()) == []
    assert list(place.path.iterdir()) == []


async def test_many_runs_at_once_do_not_collide(place: Place) -> None:
    results: list[dict[str, Any]] = []

    async def ask(number: int) -> None:
        config = team(answers(f"Number {number}."))
        results.append(await massgen.run(f"q{number}", config_dict=config, enable_logging=True))

    async with anyio.create_task_group() as tasks:
        for number in range(8):
            tasks.start_soon(ask, number)
    assert sorted(result["final_answer"] for result in results) == [f"Number {number}." for number in range(8)]
    assert len({result["session_id"] for result in results}) == 8
    assert len({result["log_directory"] for result in results}) == 8
    assert len(list((place.path / ".massgen" / "massgen_logs").iterdir())) == 8


async def test_usage_is_the_sum_over_all_calls(models: Aimock) -> None:
    result = await massgen.run("q", models=["groq/m", "openai/n", "claude/o"])
    calls = len(models.requests)
    assert result["usage"] == {"prompt_tokens": 50 * calls, "completion_tokens": 9 * calls, "total_tokens": 59 * calls}


# -- sessions ---------------------------------------------------------------------------------------------------------


def shown(request: Any) -> str:
    return json.dumps(request.body)


async def test_a_session_goes_on_where_it_was(models: Aimock) -> None:
    first = await massgen.run("What is a monad?", model="grok/m")
    before = len(models.requests)
    second = await massgen.run("And a functor?", model="grok/m", session_id=first["session_id"])
    third = await massgen.run("Which first?", model="grok/m", session_id=first["session_id"])
    assert first["session_id"] == second["session_id"] == third["session_id"]
    assert "What is a monad?" not in shown(models.requests[0]).replace("What is a monad?", "", 1)
    assert "What is a monad?" in shown(models.requests[before])
    assert "And a functor?" in shown(models.requests[-1])
    assert "What is a monad?" in shown(models.requests[-1])


async def test_a_conversation_from_elsewhere_is_shown_and_goes_on(models: Aimock) -> None:
    history = [
        {"role": "user", "content": "My name is Ada."},
        {"role": "assistant", "content": "Hello, Ada."},
    ]
    first = await massgen.run("What is my name?", model="grok/m", conversation_history=history)
    assert "My name is Ada." in shown(models.requests[0])
    await massgen.run("Sure?", model="grok/m", session_id=first["session_id"])
    assert "My name is Ada." in shown(models.requests[-1])
    assert "What is my name?" in shown(models.requests[-1])


# -- files ------------------------------------------------------------------------------------------------------------


def writes(path: str, text: str) -> dict[str, Any]:
    return {"call": "write_file", "arguments": {"path": path, "content": text}}


async def test_only_what_the_winner_changed_comes_to_the_users_paths_and_only_where_it_may(place: Place) -> None:
    output, source = place.path / "output", place.path / "source"
    for directory in (output, source):
        directory.mkdir()
    (source / "in.txt").write_text("in")
    winner = [writes("output/early.txt", "early"), *answers("Mine."), {"vote": "own"},
              writes("output/final.txt", "done"), writes("source/in.txt", "changed"), {"say": FINAL}]  # fmt: skip
    other = [writes("output/other.txt", "not chosen"), *answers("Yours."), {"vote": "Mine."}]
    paths = [{"path": str(output), "permission": "write"}, {"path": str(source), "permission": "read"}]
    result = await massgen.run("q", config_dict=team(winner, other), context_paths=paths)
    assert (result["final_answer"], result["selected_agent"]) == (FINAL, "agent_a")
    assert sorted(path.name for path in output.iterdir()) == ["early.txt", "final.txt"]
    assert (output / "final.txt").read_text() == "done"
    assert (source / "in.txt").read_text() == "in"
    files = ["output/early.txt", "output/final.txt"]
    why = "the run has read-only access to this directory (to allow changes, set permission: write)"
    left_out = [{"path": "source/in.txt", "reason": why}]
    assert result["applied"] == {"status": "applied", "files": files, "conflicts": [], "left_out": left_out}


async def test_what_an_agent_that_works_alone_writes_comes_where_writing_is_allowed(place: Place) -> None:
    (place.path / "output").mkdir()
    script = [writes("output/a.txt", "alone"), *answers("Done.")]
    await massgen.run("q", config_dict=team(script), context_paths=["output"])
    assert (place.path / "output" / "a.txt").read_text() == "alone"


@pytest.mark.parametrize("how", ["argument", "backend"])
async def test_agents_without_files_have_no_file_tools(models: Aimock, how: str) -> None:
    backend = {"type": "grok", "model": "m", "exclude_file_operation_mcps": how == "backend"}
    await massgen.run("q", config_dict={"agents": [{"backend": backend}]}, enable_filesystem=how != "argument")
    assert "write_file" not in shown(models.requests[0])
    assert "workspace" not in shown(models.requests[0])
