"""Agents described in Python, at work in whole runs."""

from pathlib import Path
from typing import Any

from massgen_mcp import MessageTemplates, team_config
from massgen_mcp.agent_config import AgentConfig, CoordinationConfig, TimeoutConfig
from massgen_mcp.config.loader import config_from_data
from massgen_mcp.events.agent_work import ModelReplied, RuleViolated, ToolFinished
from massgen_mcp.events.coordination import AnswerSubmitted, VoteCast
from tests.teams import Ended, run_team
from tests.wire_double import Aimock


def scripted(*steps: dict[str, Any], presentation: str | None = None, **settings: Any) -> AgentConfig:
    return AgentConfig({"type": "scripted", "script": list(steps), "presentation": presentation}, **settings)


VOTE = {"agent_id": "agent1", "reason": "It is right."}


async def run(path: Path, *agents: AgentConfig) -> Ended:
    return await run_team(path, config_from_data(team_config(*agents, environ={}), "team"))


async def test_a_team_of_agent_configs_answers_votes_and_presents(tmp_path: Path) -> None:
    ada = scripted({"answer": "A"}, {"vote": "B"}, agent_id="ada")
    bo = scripted({"answer": "B"}, {"vote": "own"}, presentation="B, at last.", agent_id="bo")
    ended = await run(tmp_path, ada, bo)
    assert ended.snapshot.state == "completed"
    assert ended.snapshot.best_answer == "B, at last."
    assert len(ended.of(VoteCast)) == 2


async def test_agents_of_two_providers_do_what_their_configs_say(tmp_path: Path, aimock: Aimock) -> None:
    aimock.load(
        {"match": {"userMessage": "Write the final answer now"}, "response": {"content": "The final answer."}},
        {
            "match": {"userMessage": "<answer name=", "toolName": "vote"},
            "response": {"toolCalls": [{"name": "vote", "arguments": {"agent_id": "agent2", "reason": "right"}}]},
        },
        {
            "match": {"toolName": "new_answer"},
            "response": {"toolCalls": [{"name": "new_answer", "arguments": {"content": "42"}}]},
        },
    )
    expert = AgentConfig.for_expert_domain("arithmetic", model="one", backend="lmstudio")
    expert.backend_params |= {"base_url": f"{aimock.url}/v1", "max_tokens": 50, "temperature": 0.5}
    other = scripted({"answer": "forty-two"}, {"vote": "own"}, {"vote": "own"})
    ended = await run(tmp_path, expert, other)
    assert ended.snapshot.state == "completed"
    assert len(ended.of(ModelReplied, "agent_a")) == len(aimock.requests) >= 2
    for request in aimock.requests:
        assert request.body["model"] == "one"
        assert (request.body["max_tokens"], request.body["temperature"]) == (50, 0.5)
        assert "arithmetic" in request.body["messages"][0]["content"]


async def test_message_templates_take_the_place_of_a_runs_own_texts(tmp_path: Path, aimock: Aimock) -> None:
    aimock.load(
        {"match": {"systemMessage": "Write it down."}, "response": {"content": "The final answer."}},
        {"match": {"userMessage": "Act!"}, "response": {"toolCalls": [{"name": "vote", "arguments": VOTE}]}},
        {"match": {"userMessage": "<answer name=", "toolName": "vote"}, "response": {"content": "I wonder."}},
        {
            "match": {"systemMessage": "Decide.", "toolName": "new_answer"},
            "response": {"toolCalls": [{"name": "new_answer", "arguments": {"content": "42"}}]},
        },
    )
    texts = MessageTemplates(
        evaluation_system_message="Decide.",
        final_presentation_system_message="Write it down.",
        enforcement_message="Act!",
    )
    backend = {"type": "lmstudio", "model": "one", "base_url": f"{aimock.url}/v1"}
    ended = await run(tmp_path, *(AgentConfig(dict(backend), message_templates=texts) for _ in range(2)))
    assert ended.snapshot.final_answer == "The final answer."
    systems = [request.body["messages"][0]["content"] for request in aimock.requests]
    assert all(system.startswith(("Decide.", "Write it down.")) for system in systems)
    assert all("between markers" in system for system in systems), "what else an agent has to know stays"
    reminders = [m for request in aimock.requests for m in request.body["messages"] if "Act! If you" in str(m)]
    assert reminders


async def test_limits_and_phases_of_a_config_hold_in_its_run(tmp_path: Path) -> None:
    ada = scripted({"answer": "six sevens make 42"}, {"answer": "more"}, {"vote": "first"}, max_new_answers_per_agent=1)
    bo = scripted({"answer": "it is forty-two"}, {"vote": "first"}, max_new_answers_per_agent=1)
    ended = await run(tmp_path / "limit", ada, bo)
    assert len(ended.of(AnswerSubmitted, "agent_a")) == 1
    assert "answer_limit" in [event.code for event in ended.of(RuleViolated, "agent_a")]

    ended = await run(tmp_path / "straight", scripted(presentation="At once.", skip_coordination_rounds=True))
    assert ended.snapshot.best_answer == "At once."
    assert ended.of(AnswerSubmitted) == []

    ended = await run(tmp_path / "given", scripted({"answer": "42"}, debug_final_answer="As given."))
    assert ended.snapshot.best_answer == "As given."

    late = scripted({"hang": True}, timeout_config=TimeoutConfig(1))
    ended = await run(tmp_path / "late", late)
    assert ended.snapshot.state == "timed_out"


async def test_aids_of_a_config_are_offered_in_its_run(tmp_path: Path) -> None:
    aids = CoordinationConfig(
        enable_agent_task_planning=True, max_tasks_per_plan=1, use_skills=True, massgen_skills=["file_search"]
    )
    plan = {"call": "create_task_plan", "arguments": {"tasks": [{"description": "one"}, {"description": "two"}]}}
    skill = {"call": "read_skill", "arguments": {"name": "file_search"}}
    ended = await run(tmp_path, scripted(plan, skill, {"answer": "42"}, coordination_config=aids))
    planned, read = ended.of(ToolFinished)
    assert planned.is_error
    assert "a plan has at most 1" in planned.result
    assert not read.is_error
    assert ended.snapshot.state == "completed"
