"""What an `AgentConfig` says reaches the engine, or is refused by name; nothing of it is lost on the way."""

import json
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from massgen_mcp import ConfigurableAgent, MassgenError, MessageTemplates, UnsupportedSettingError, team_config
from massgen_mcp.agent_config import (
    AgentConfig,
    CoordinationConfig,
    TimeoutConfig,
    create_analytical_config,
    create_computational_config,
    create_research_config,
)
from massgen_mcp.config.loader import config_from_data
from massgen_mcp.config.models.config import Config
from tests.backends.wires import ask, parts_of, text_in
from tests.wire_check import check_body
from tests.wire_double import Aimock

SCRIPTED = {"type": "scripted"}
NOBODY: dict[str, str] = {}
PARIS = {"match": {"userMessage": "capital"}, "response": {"content": "Paris"}}


def scripted(**settings: Any) -> AgentConfig:
    return AgentConfig(backend_params={"type": "scripted"}, **settings)


def refused(agent: AgentConfig, environ: dict[str, str] = NOBODY) -> str:
    """The message with which this config is refused where it is used."""
    with pytest.raises(MassgenError) as caught:
        agent.to_config(environ)
    assert caught.value.code == "config_invalid"
    return str(caught.value)


# -- settings -----------------------------------------------------------------------------------------------------


def test_every_setting_reaches_the_engine() -> None:
    planned = CoordinationConfig(
        enable_planning_mode=True,
        planning_mode_instruction="Only say what you would do.",
        max_orchestration_restarts=2,
        enable_agent_task_planning=True,
        max_tasks_per_plan=7,
        task_planning_filesystem_mode=True,
        enable_memory_filesystem_mode=True,
        use_skills=True,
        massgen_skills=["file_search"],
    )
    agent = scripted(
        agent_id="ada",
        voting_sensitivity="strict",
        max_new_answers_per_agent=2,
        answer_novelty_requirement="balanced",
        skip_coordination_rounds=True,
        debug_final_answer="42",
        timeout_config=TimeoutConfig(orchestrator_timeout_seconds=60),
        coordination_config=planned,
    )
    config = agent.to_config(NOBODY)
    assert config.agents[0].id == "ada"
    assert config.timeout_settings.orchestrator_timeout_seconds == 60
    rules = config.orchestrator
    assert (rules.voting_sensitivity, rules.answer_novelty_requirement) == ("strict", "balanced")
    assert (rules.max_new_answers_per_agent, rules.skip_coordination_rounds, rules.debug_final_answer) == (
        2,
        True,
        "42",
    )
    coordination = rules.coordination
    assert (coordination.enable_planning_mode, coordination.planning_mode_instruction) == (
        True, "Only say what you would do.",
    )  # fmt: skip
    assert (coordination.max_orchestration_restarts, coordination.max_tasks_per_plan) == (2, 7)
    assert coordination.enable_agent_task_planning
    assert coordination.task_planning_filesystem_mode
    assert coordination.enable_memory_filesystem_mode
    assert (coordination.use_skills, coordination.massgen_skills) == (True, ("file_search",))


def test_a_named_skills_directory_must_exist(tmp_path: Any) -> None:
    there = scripted(coordination_config=CoordinationConfig(use_skills=True, skills_directory=str(tmp_path)))
    assert there.to_config(NOBODY).orchestrator.coordination.skills_directory == str(tmp_path)
    gone = scripted(coordination_config=CoordinationConfig(use_skills=True, skills_directory=str(tmp_path / "gone")))
    assert "skills_directory: directory not found" in refused(gone)


def test_without_settings_only_the_limit_of_answers_differs_from_a_file() -> None:
    assert scripted().to_config_dict() == {
        "agents": [{"backend": SCRIPTED}],
        "orchestrator": {"max_new_answers_per_agent": None},
    }
    unlimited = {"max_new_answers_per_agent": None}
    plain = config_from_data({"agents": [{"backend": SCRIPTED}], "orchestrator": unlimited}, "file")
    assert scripted().to_config(NOBODY) == plain


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (
            {"voting_sensitivity": "picky"},
            "orchestrator.voting_sensitivity: expected 'lenient', 'balanced' or 'strict'",
        ),
        ({"answer_novelty_requirement": "none"}, "orchestrator.answer_novelty_requirement: expected"),
        ({"max_new_answers_per_agent": 0}, "orchestrator.max_new_answers_per_agent: expected"),
        ({"agent_id": "no spaces"}, "agents[0].id: expected"),
        ({"timeout_config": TimeoutConfig(0)}, "timeout_settings.orchestrator_timeout_seconds: expected"),
        (
            {"coordination_config": CoordinationConfig(max_tasks_per_plan=0)},
            "coordination.max_tasks_per_plan: expected",
        ),
        ({"coordination_config": CoordinationConfig(massgen_skills=["cooking"])}, "massgen_skills[0]: expected"),
    ],
)
def test_a_wrong_setting_is_named_when_the_config_is_used(settings: dict[str, Any], told: str) -> None:
    assert told in refused(scripted(**settings))


def test_all_that_is_wrong_is_told_at_once() -> None:
    agent = AgentConfig({"type": "openai", "model": "gpt-5", "tempreature": 1}, voting_sensitivity="picky")
    message = refused(agent)
    assert "agents[0].backend.tempreature: unknown key; did you mean 'temperature'?" in message
    assert "voting_sensitivity" in message


def test_an_agent_that_is_talked_to_without_a_run_writes_no_nlip() -> None:
    on = scripted(enable_nlip=True)
    with pytest.raises(UnsupportedSettingError, match="enable_nlip: messages are written where a run is"):
        ConfigurableAgent(on, on.create_backend())


def test_replaced_texts_go_into_the_config_of_a_run() -> None:
    act, decide = {"enforcement_message": "Act!"}, {"evaluation_system_message": "Decide."}
    own, usual = scripted(message_templates=MessageTemplates(**act)), scripted(agent_id="b")
    assert own.to_config_dict()["agents"][0]["message_templates"] == act
    assert own.to_config().agents[0].message_templates.enforcement_message == "Act!"
    lead = scripted(message_templates=MessageTemplates(**decide))
    team = team_config(own.with_agent_id("a"), usual, orchestrator=lead)
    assert [agent["message_templates"] for agent in team["agents"]] == [act, decide]
    assert scripted(message_templates=MessageTemplates()).to_config_dict() == scripted().to_config_dict()


# -- backend parameters -------------------------------------------------------------------------------------------


def test_a_type_is_told_by_the_name_of_the_model() -> None:
    params = {"groq/llama-3.3-70b": ("groq", "llama-3.3-70b"), "gpt-5": ("openai", "gpt-5")}
    for model, (kind, name) in params.items():
        backend = AgentConfig({"model": model}).to_config(NOBODY).agents[0].backend
        assert (backend.type, backend.model) == (kind, name)
    assert "massgen can't infer the provider" in refused(AgentConfig({"model": "mystery"}))
    assert "backend.type: a required key is missing" in refused(AgentConfig())


def test_a_parameter_of_none_is_not_set() -> None:
    agent = AgentConfig({"type": "openai", "model": "gpt-5", "temperature": None, "api_key": None})
    assert agent.to_config_dict(NOBODY)["agents"] == [{"backend": {"type": "openai", "model": "gpt-5"}}]


def test_max_tokens_means_max_output_tokens() -> None:
    for name in ("max_tokens", "max_completion_tokens", "max_output_tokens"):
        limit: dict[str, Any] = {name: 100}
        backend = AgentConfig.create_openai_config(**limit).to_config(NOBODY).agents[0].backend
        assert backend.model_dump()["max_output_tokens"] == 100
    both = AgentConfig.create_openai_config(max_tokens=100, max_output_tokens=200)
    assert "max_tokens: max_output_tokens means the same but has another value; keep only one" in refused(both)


def test_instructions_become_the_system_message_in_order() -> None:
    agent = AgentConfig(
        {**SCRIPTED, "system_message": "Third.", "append_system_prompt": "Second.", "system_prompt": "First."}
    )
    assert agent.get_system_message() == "First.\n\nSecond.\n\nThird."
    assert agent.to_config(NOBODY).agents[0].system_message == "First.\n\nSecond.\n\nThird."
    custom = agent.with_custom_instruction("Before all.")
    assert custom.to_config(NOBODY).agents[0].system_message == "Before all.\n\nFirst.\n\nSecond.\n\nThird."
    assert scripted().get_system_message() is None
    preset = AgentConfig({**SCRIPTED, "system_prompt": {"type": "preset"}})
    assert refused(preset) == "system_prompt: expected text, not dict"


def test_a_copy_leaves_the_original_alone() -> None:
    original = AgentConfig({**SCRIPTED, "script": [{"say": "a"}]}, agent_id="ada")
    renamed = original.with_agent_id("bo")
    renamed.backend_params["script"].append({"say": "b"})
    renamed.coordination_config.use_skills = True
    params = original.get_backend_params()
    params["script"].clear()
    assert (original.agent_id, renamed.agent_id) == ("ada", "bo")
    assert original.backend_params == {**SCRIPTED, "script": [{"say": "a"}]}
    assert not original.coordination_config.use_skills


# -- keys ---------------------------------------------------------------------------------------------------------


def test_a_key_in_the_environment_is_named_and_never_written() -> None:
    environ = {"MY_KEY": "sk-one", "OPENAI_API_KEY": "sk-two"}
    for given, name in (("sk-one", "MY_KEY"), ("sk-two", "OPENAI_API_KEY"), ("${MY_KEY}", "MY_KEY")):
        agent = AgentConfig.create_openai_config(api_key=given)
        backend = agent.to_config(environ).agents[0].backend
        assert backend.model_dump()["api_key_env"] == name
        assert "sk-" not in repr(agent.to_config_dict(environ))
        assert "sk-" not in repr(agent)


def test_a_key_that_no_variable_holds_is_refused_for_a_run_without_being_told() -> None:
    for key in ("sk-unheard-of", ""):
        message = refused(AgentConfig.create_azure_openai_config(api_key=key), {"EMPTY": ""})
        assert message.startswith("api_key: a config holds names of variables and never a key.")
        assert "sk-" not in message


async def test_a_key_that_no_variable_holds_serves_a_backend_of_this_process(aimock: Aimock) -> None:
    aimock.load(PARIS)
    agent = AgentConfig.create_azure_openai_config("gpt-4-turbo", endpoint=aimock.url, api_key="az-given")
    assert text_in(await parts_of(agent.create_backend(NOBODY), ask("capital?"))) == "Paris"
    (request,) = aimock.requests
    assert request.headers["api-key"] == "az-given"
    assert request.path == "/openai/deployments/gpt-4-turbo/chat/completions?api-version=2024-02-15-preview"


# -- factories ----------------------------------------------------------------------------------------------------

CLAUDE = "claude-opus-5-5"
"""The default of the factories is so old that the SDK warns of it."""

HTTP_FACTORIES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "create_chatcompletion_config": ("/v1/chat/completions", "gpt-oss-120b", {"base_url": "{}/v1"}),
    "create_openai_config": ("/v1/responses", "gpt-4o-mini", {"base_url": "{}/v1"}),
    "create_claude_config": ("/v1/messages", CLAUDE, {"base_url": "{}", "model": CLAUDE}),
    "create_grok_config": ("/v1/responses", "grok-2-1212", {"base_url": "{}/v1"}),
    "create_lmstudio_config": ("/v1/chat/completions", "gpt-4o-mini", {"base_url": "{}/v1"}),
    "create_vllm_config": ("/v1/chat/completions", "some-model", {"base_url": "{}/v1", "model": "some-model"}),
    "create_sglang_config": ("/v1/chat/completions", "some-model", {"base_url": "{}/v1", "model": "some-model"}),
    "create_gemini_config": ("/v1beta/openai/chat/completions", "gemini-2.5-flash", {"base_url": "{}/v1beta/openai"}),
    "create_zai_config": ("/api/paas/v4/chat/completions", "glm-4.5", {"base_url": "{}/api/paas/v4/"}),
}


@pytest.mark.parametrize("factory", HTTP_FACTORIES)
async def test_an_agent_of_a_factory_asks_its_provider(factory: str, aimock: Aimock) -> None:
    aimock.load(PARIS)
    path, model, settings = HTTP_FACTORIES[factory]
    settings = {**settings, "base_url": settings["base_url"].format(aimock.url)}
    agent: AgentConfig = getattr(AgentConfig, factory)(**settings, api_key_env="MY_KEY", temperature=0.5)
    assert agent.backend_params["type"] in factory
    assert text_in(await parts_of(agent.create_backend({"MY_KEY": "sk-mine"}), ask("capital?"))) == "Paris"
    (request,) = aimock.requests
    assert (request.path, request.body["model"], request.body["temperature"]) == (path, model, 0.5)
    header, sent = ("x-api-key", "sk-mine") if "claude" in factory else ("authorization", "Bearer sk-mine")
    assert request.headers[header] == sent


@pytest.mark.parametrize(
    ("agent", "tool"),
    [
        (AgentConfig.create_openai_config("gpt-4o", enable_web_search=True), "web_search"),
        (AgentConfig.create_openai_config("gpt-4o", enable_code_interpreter=True), "code_interpreter"),
        (AgentConfig.create_claude_config(CLAUDE, enable_web_search=True), "web_search"),
        (AgentConfig.create_claude_config(CLAUDE, enable_code_execution=True), "code_execution"),
        (create_research_config(), "web_search"),
        (AgentConfig.for_research_task(CLAUDE, "anthropic"), "web_search"),
        (create_computational_config(), "code_interpreter"),
        (AgentConfig.for_computational_task(CLAUDE, "claude"), "code_execution"),
    ],
    ids=str,
)
async def test_a_providers_own_tool_is_asked_for(agent: AgentConfig, tool: str, aimock: Aimock) -> None:
    aimock.load(PARIS)
    environ = {
        "OPENAI_API_KEY": "sk-a", "ANTHROPIC_API_KEY": "sk-b",
        "OPENAI_BASE_URL": f"{aimock.url}/v1", "ANTHROPIC_BASE_URL": aimock.url,
    }  # fmt: skip
    await parts_of(agent.create_backend(environ), ask("capital?"))
    (request,) = aimock.requests
    (asked,) = request.body["tools"]
    assert asked["type"].startswith(tool)
    check_body(request.path, request.body)


FORBIDDEN = ["Bash(rm*)", "Bash(sudo*)", "Bash(su*)", "Bash(chmod*)", "Bash(chown*)"]
CODE: dict[str, Any] = {"type": "claude_code", "model": "claude-sonnet-4-20250514", "max_thinking_tokens": 8000}
EXAMPLES: list[tuple[Callable[[], AgentConfig], dict[str, Any]]] = [
    (
        lambda: AgentConfig.create_chatcompletion_config("gpt-oss-120b"),
        {"type": "chatcompletion", "model": "gpt-oss-120b"},
    ),
    (
        lambda: AgentConfig.create_chatcompletion_config("gpt-oss-120b", enable_web_search=True),
        {"type": "chatcompletion", "model": "gpt-oss-120b", "enable_web_search": True},
    ),
    (
        lambda: AgentConfig.create_chatcompletion_config("gpt-oss-120b", enable_code_interpreter=True),
        {"type": "chatcompletion", "model": "gpt-oss-120b", "enable_code_interpreter": True},
    ),
    (lambda: AgentConfig.create_openai_config("gpt-4o-mini"), {"type": "openai", "model": "gpt-4o-mini"}),
    (
        lambda: AgentConfig.create_openai_config("gpt-4o", enable_web_search=True),
        {"type": "openai", "model": "gpt-4o", "enable_web_search": True},
    ),
    (
        lambda: AgentConfig.create_openai_config("gpt-4o", enable_code_interpreter=True),
        {"type": "openai", "model": "gpt-4o", "enable_code_interpreter": True},
    ),
    (
        lambda: AgentConfig.create_azure_openai_config("gpt-4"),
        {"type": "azure_openai", "model": "gpt-4", "api_version": "2024-02-15-preview"},
    ),
    (
        lambda: AgentConfig.create_azure_openai_config(
            deployment_name="gpt-4-turbo", endpoint="https://your-resource.openai.azure.com/", api_key="your-api-key"
        ),
        {
            "type": "azure_openai",
            "model": "gpt-4-turbo",
            "endpoint": "https://your-resource.openai.azure.com/",
            "api_key": "your-api-key",
            "api_version": "2024-02-15-preview",
        },
    ),
    (AgentConfig.create_claude_code_config, {**CODE, "disallowed_tools": FORBIDDEN}),
    (
        lambda: AgentConfig.create_claude_code_config(disallowed_tools=["Bash(rm*)", "Bash(sudo*)", "WebSearch"]),
        {**CODE, "disallowed_tools": ["Bash(rm*)", "Bash(sudo*)", "WebSearch"]},
    ),
    (
        lambda: AgentConfig.create_claude_code_config(
            cwd="/path/to/project", system_prompt="You are an expert developer assistant."
        ),
        {
            **CODE,
            "disallowed_tools": FORBIDDEN,
            "cwd": "/path/to/project",
            "system_prompt": "You are an expert developer assistant.",
        },
    ),
]
"""Every example of MassGen's documentation but the one that is deprecated (see below)."""


@pytest.mark.parametrize(("example", "params"), EXAMPLES)
def test_the_examples_of_the_documentation_make_these_parameters(
    example: Callable[[], AgentConfig], params: dict[str, Any]
) -> None:
    assert example().get_backend_params() == params


def test_an_analytical_agent_has_no_tools() -> None:
    plain = {"type": "openai", "model": "gpt-4o-mini"}
    assert create_analytical_config().backend_params == AgentConfig.for_analytical_task().backend_params == plain
    assert AgentConfig.for_analytical_task("m", "claude_code").backend_params == {"type": "claude_code", "model": "m"}
    assert AgentConfig.for_analytical_task("m", "lmstudio").backend_params == {"type": "lmstudio", "model": "m"}


def test_an_expert_is_told_its_field_and_level() -> None:
    agent = AgentConfig.for_expert_domain("econometrics", "researcher")
    system = agent.to_config(NOBODY).agents[0].system_message
    assert system
    assert "econometrics" in system
    assert "researcher" in system
    assert agent.backend_params == {"type": "openai", "model": "gpt-4o"}


@pytest.mark.parametrize("preset", ["for_research_task", "for_computational_task"])
def test_a_task_is_refused_where_the_backend_lacks_the_tool(preset: str) -> None:
    with pytest.raises(MassgenError, match=r"groq offers no enable_(web_search|code_interpreter or enable_code_exec)"):
        getattr(AgentConfig, preset)("llama", "groq")
    with pytest.raises(MassgenError, match="claude_code offers no enable_"):
        getattr(AgentConfig, preset)("default", "claude_code")
    with pytest.raises(MassgenError, match="unknown provider 'opneai'; did you mean 'openai'"):
        getattr(AgentConfig, preset)("gpt-4o", "opneai")


def test_a_switch_that_the_backend_lacks_is_refused_when_the_config_is_used() -> None:
    somewhere = AgentConfig.create_chatcompletion_config(enable_web_search=True, base_url="https://llm.example/v1")
    message = "chatcompletion doesn't offer this at https://llm.example/v1; it offers no built-in tools"
    assert message in refused(somewhere)
    compatible = "https://generativelanguage.googleapis.com/v1beta/openai"
    gemini = AgentConfig.create_gemini_config(enable_web_search=True, base_url=compatible)
    assert refused(gemini).endswith("it offers no built-in tools; to use this, remove base_url")


async def test_the_compatible_type_has_the_search_of_whoever_is_there(aimock: Aimock) -> None:
    aimock.load(PARIS)
    agent = AgentConfig.create_chatcompletion_config("gpt-oss-120b", enable_web_search=True)
    environ = {"OPENAI_API_KEY": "sk-a", "OPENAI_BASE_URL": f"{aimock.url}/v1"}
    assert text_in(await parts_of(agent.create_backend(environ), ask("capital?"))) == "Paris"
    (request,) = aimock.requests
    assert (request.path, request.body["tools"]) == ("/v1/responses", [{"type": "web_search"}])


@pytest.mark.parametrize(
    ("backend", "model"), [("gemini", "gemini-4-argon"), ("grok", "grok-4.7"), ("anthropic", "claude-opus-5-5")]
)
def test_a_research_task_of_another_company_takes_its_strong_model_for_the_default(backend: str, model: str) -> None:
    agent = AgentConfig.for_research_task(backend=backend)
    assert agent.to_config(NOBODY).agents[0].backend.model == model
    assert agent.backend_params["enable_web_search"] is True
    assert AgentConfig.for_research_task("my-model", backend).backend_params["model"] == "my-model"


def test_lm_studio_takes_the_switch_of_the_others_and_says_that_it_does_nothing() -> None:
    with pytest.warns(UserWarning, match="LM Studio has no web search"):
        agent = AgentConfig.create_lmstudio_config(enable_web_search=True)
    assert agent.backend_params == {"type": "lmstudio", "model": "gpt-4o-mini"}


def test_local_servers_choose_the_model_when_none_is_named() -> None:
    for factory in (AgentConfig.create_vllm_config, AgentConfig.create_sglang_config):
        assert factory().to_config(NOBODY).agents[0].backend.model == "auto"


def test_a_factory_does_not_let_itself_be_overruled() -> None:
    with pytest.raises(MassgenError, match="type: set by this factory") as caught:
        AgentConfig.create_openai_config(type="grok")
    assert caught.value.code == "invalid_arguments"


# -- Claude Code --------------------------------------------------------------------------------------------------


def code(**settings: Any) -> dict[str, Any]:
    """The backend section that a Claude Code agent of the factory gets in a config."""
    (section,) = AgentConfig.create_claude_code_config(**settings).to_config_dict(NOBODY)["agents"]
    return section["backend"]


def test_claude_code_has_commands_unless_all_of_bash_is_forbidden() -> None:
    """As MassGen has it: what is not forbidden is allowed. Here it runs in the sandbox."""
    plain = {"type": "claude_code", "model": "claude-sonnet-4-20250514", "commands": True}
    assert code() == plain
    assert code(disallowed_tools=["Bash(rm*)", "Bash(sudo*)", "WebSearch"]) == plain
    assert code(disallowed_tools=["Bash", "WebSearch"]) == {**plain, "commands": False}
    assert code(cwd="workspace1") == {**plain, "cwd": "workspace1"}
    agent = AgentConfig.create_claude_code_config(system_prompt="You are an expert developer assistant.")
    assert agent.to_config_dict(NOBODY)["agents"][0]["system_message"] == "You are an expert developer assistant."


def test_a_claude_code_agent_is_one_that_the_engine_knows() -> None:
    agent = AgentConfig.create_claude_code_config("default", "Be brief.", max_thinking_tokens=20_000)
    (made,) = agent.to_config(NOBODY).agents
    assert made.system_message == "Be brief."
    assert made.backend.model_dump(exclude_defaults=True) == {
        "type": "claude_code",
        "reasoning_effort": "high",
        "max_thinking_tokens": 20_000,
    }
    assert AgentConfig({"model": "claude_code/default"}).to_config(NOBODY).agents[0].backend.type == "claude_code"


def test_a_file_tool_of_claude_code_cannot_be_taken_away_alone() -> None:
    with pytest.raises(UnsupportedSettingError, match="disallowed_tools: Write: an agent gets all file tools or none"):
        code(disallowed_tools=["Bash(rm*)", "Write"])


@pytest.mark.filterwarnings("ignore:allowed_tools is deprecated")
def test_claude_code_gets_no_tool_that_is_not_offered() -> None:
    assert code(allowed_tools=["Read", "Write", "Edit", "Bash"])["commands"] is True
    with pytest.raises(UnsupportedSettingError, match="allowed_tools: Task: not available"):
        code(allowed_tools=["Read", "Write", "Edit", "Task"])
    with pytest.raises(
        UnsupportedSettingError, match="allowed_tools: Edit, Write: an agent gets all file tools or none"
    ):
        code(allowed_tools=["Read", "Glob", "Grep"])
    with pytest.raises(UnsupportedSettingError, match="allowed_tools: expected a list"):
        code(allowed_tools="Read")
    assert "allowed_tools" not in code(allowed_tools=["Read", "Glob", "Grep", "Write", "Edit"])


@pytest.mark.parametrize(
    ("tokens", "effort"), [(0, "low"), (4000, "medium"), (8000, None), (16_000, "high"), (64_000, "xhigh")]
)
def test_thinking_tokens_of_claude_code_become_an_effort(tokens: int, effort: str | None) -> None:
    assert code(max_thinking_tokens=tokens).get("reasoning_effort") == effort
    assert code(max_thinking_tokens=tokens, reasoning_effort="max")["reasoning_effort"] == "max"


# -- what is deprecated ---------------------------------------------------------------------------------------------


def test_the_old_instruction_property_works_and_names_its_successor() -> None:
    agent = scripted()
    with pytest.warns(DeprecationWarning, match="put system_prompt into backend_params"):
        agent.custom_system_instruction = "Be brief."
    with pytest.warns(DeprecationWarning, match="custom_system_instruction is deprecated") as caught:
        assert agent.custom_system_instruction == "Be brief."
    assert caught[0].filename == __file__
    assert agent.get_system_message() == "Be brief."
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scripted().with_custom_instruction("Be brief.")


def test_allowed_tools_name_their_successor() -> None:
    with pytest.warns(DeprecationWarning, match="use disallowed_tools"):
        agent = AgentConfig.create_claude_code_config(allowed_tools=["Read", "Write", "Edit", "Bash"])
    assert agent.backend_params["allowed_tools"] == ["Read", "Write", "Edit", "Bash"]


# -- plain data ---------------------------------------------------------------------------------------------------


def test_a_config_comes_back_from_its_dictionary() -> None:
    agent = AgentConfig(
        {"type": "openai", "model": "gpt-5", "extra_body": {"seed": 3}},
        message_templates=MessageTemplates(enforcement_message="Act!"),
        agent_id="ada",
        timeout_config=TimeoutConfig(90),
        coordination_config=CoordinationConfig(massgen_skills=["file_search"]),
        max_new_answers_per_agent=4,
        nlip_config={"a": 1},
    ).with_custom_instruction("Be brief.")
    data = agent.to_dict()
    assert AgentConfig.from_dict(data) == AgentConfig.from_dict(json.loads(json.dumps(data))) == agent
    data["backend_params"]["extra_body"]["seed"] = 4
    assert agent.backend_params["extra_body"] == {"seed": 3}
    assert data["custom_system_instruction"] == "Be brief."
    assert data["timeout_config"] == {"orchestrator_timeout_seconds": 90}


def test_what_a_dictionary_leaves_out_is_at_its_default() -> None:
    assert AgentConfig.from_dict({}) == AgentConfig()
    partly = AgentConfig.from_dict({"coordination_config": {"use_skills": True}, "timeout_config": TimeoutConfig(5)})
    assert partly.coordination_config == CoordinationConfig(use_skills=True)
    assert partly.timeout_config == TimeoutConfig(5)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ({"agentid": "a"}, "AgentConfig: unknown key 'agentid'; did you mean 'agent_id'?"),
        ({"coordination_config": {"use_skill": True}}, "coordination_config: unknown key 'use_skill'; did you mean"),
        ({"timeout_config": 60}, "timeout_config: expected a mapping, not int"),
        ({"backend_params": "openai"}, "backend_params: expected a mapping, not str"),
        ({"message_templates": {"enforce": "x"}}, "message_templates: unknown key 'enforce'; "),
        ({"message_templates": "x"}, "message_templates: expected a mapping, not str"),
        ([], "AgentConfig: expected a mapping, not list"),
    ],
)
def test_a_dictionary_of_something_else_is_refused(data: Any, told: str) -> None:
    with pytest.raises(MassgenError) as caught:
        AgentConfig.from_dict(data)
    assert str(caught.value).startswith(told)


def test_an_unknown_template_is_refused_with_the_nearest() -> None:
    with pytest.raises(MassgenError, match="did you mean 'enforcement_message'"):
        MessageTemplates(enforcment_message="Act!")


# -- teams --------------------------------------------------------------------------------------------------------


def test_agents_that_agree_make_a_team() -> None:
    ada, bo = scripted(agent_id="ada", voting_sensitivity="strict"), scripted(voting_sensitivity="strict")
    data = team_config(ada, bo)
    config = config_from_data(data, "team")
    assert [agent.id for agent in config.agents] == ["ada", "agent2"]
    assert config.orchestrator.voting_sensitivity == "strict"


def test_agents_that_disagree_need_one_that_decides() -> None:
    ada = scripted(voting_sensitivity="strict", coordination_config=CoordinationConfig(max_tasks_per_plan=3))
    bo = scripted(timeout_config=TimeoutConfig(60))
    with pytest.raises(MassgenError) as caught:
        team_config(ada, bo)
    for name in (
        "orchestrator.coordination.max_tasks_per_plan",
        "orchestrator.voting_sensitivity",
        "timeout_settings.orchestrator_timeout_seconds",
    ):
        assert name in str(caught.value)
    decided: Config = config_from_data(team_config(ada, bo, orchestrator=ada), "team")
    assert len(decided.agents) == 2
    assert decided.orchestrator.voting_sensitivity == "strict"
    assert decided.timeout_settings.orchestrator_timeout_seconds == 1800


def test_no_limit_of_answers_is_not_the_limit_of_a_file() -> None:
    with pytest.raises(MassgenError, match=r"disagree in orchestrator\.max_new_answers_per_agent;"):
        team_config(scripted(), scripted(max_new_answers_per_agent=5))


def test_settings_of_another_kind_are_refused_by_name() -> None:
    data: Any = {"max_tasks_per_plan": 3}
    assert scripted(coordination_config=data).to_config(NOBODY).orchestrator.coordination.max_tasks_per_plan == 3
    assert refused(scripted(timeout_config=60)) == "timeout_config: expected a mapping, not int"
    wrong: Any = "openai"
    assert refused(AgentConfig(wrong)) == "backend_params: expected a mapping, not str"


def test_a_team_of_nobody_is_refused() -> None:
    with pytest.raises(MassgenError, match="at least one agent"):
        team_config()
