"""Every class, field, default, factory and method that MassGen's documentation of its agents API lists is ours too.

A parameter is written as (name, kind, default); the kinds leave out what containers hold. `REQUIRED` has no default.
"""

import dataclasses
import inspect
import subprocess
import sys
import types
import typing
from collections.abc import Callable
from typing import Any

import pytest

import massgen_mcp
from massgen_mcp import agent_config
from massgen_mcp.agent_config import AgentConfig, CoordinationConfig, TimeoutConfig
from massgen_mcp.config.models import orchestrator
from massgen_mcp.config.models.common import Settings
from massgen_mcp.config.models.orchestrator import OrchestratorConfig

REQUIRED = "required"
REST = "any further keyword arguments"

PLANNING = (
    "During coordination, describe what you would do without actually executing actions. Only provide concrete "
    "implementation details without calling external APIs or tools."
)
FORBIDDEN = ["Bash(rm*)", "Bash(sudo*)", "Bash(su*)", "Bash(chmod*)", "Bash(chown*)"]
ZAI = "https://api.z.ai/api/paas/v4/"

Row = tuple[str, str, object]

TIMEOUT: list[Row] = [("orchestrator_timeout_seconds", "int", 1800)]
COORDINATION: list[Row] = [
    ("enable_planning_mode", "bool", False),
    ("planning_mode_instruction", "str", PLANNING),
    ("max_orchestration_restarts", "int", 0),
    ("enable_agent_task_planning", "bool", False),
    ("max_tasks_per_plan", "int", 10),
    ("task_planning_filesystem_mode", "bool", False),
    ("enable_memory_filesystem_mode", "bool", False),
    ("use_skills", "bool", False),
    ("massgen_skills", "list", []),
    ("skills_directory", "str", ".agent/skills"),
]
AGENT: list[Row] = [
    ("backend_params", "dict", {}),
    ("message_templates", "MessageTemplates | None", None),
    ("voting_sensitivity", "str", "lenient"),
    ("max_new_answers_per_agent", "int | None", None),
    ("answer_novelty_requirement", "str", "lenient"),
    ("agent_id", "str | None", None),
    ("timeout_config", "TimeoutConfig", TimeoutConfig()),
    ("coordination_config", "CoordinationConfig", CoordinationConfig()),
    ("skip_coordination_rounds", "bool", False),
    ("debug_final_answer", "str | None", None),
    ("enable_nlip", "bool", False),
    ("nlip_config", "dict | None", None),
]
CLASSES: dict[type, list[Row]] = {TimeoutConfig: TIMEOUT, CoordinationConfig: COORDINATION, AgentConfig: AGENT}

KWARGS: Row = ("kwargs", REST, REQUIRED)
SEARCH: Row = ("enable_web_search", "bool", False)
INTERPRETER: Row = ("enable_code_interpreter", "bool", False)
EXECUTION: Row = ("enable_code_execution", "bool", False)
BACKEND: Row = ("backend", "str", "openai")

FACTORIES: dict[str, list[Row]] = {
    "create_chatcompletion_config": [("model", "str", "gpt-oss-120b"), SEARCH, INTERPRETER, KWARGS],
    "create_openai_config": [("model", "str", "gpt-4o-mini"), SEARCH, INTERPRETER, KWARGS],
    "create_claude_config": [("model", "str", "claude-3-sonnet-20240229"), SEARCH, EXECUTION, KWARGS],
    "create_grok_config": [("model", "str", "grok-2-1212"), SEARCH, KWARGS],
    "create_lmstudio_config": [("model", "str", "gpt-4o-mini"), SEARCH, KWARGS],
    "create_vllm_config": [("model", "str | None", None), KWARGS],
    "create_sglang_config": [("model", "str | None", None), KWARGS],
    "create_gemini_config": [("model", "str", "gemini-2.5-flash"), SEARCH, EXECUTION, KWARGS],
    "create_zai_config": [("model", "str", "glm-4.5"), ("base_url", "str", ZAI), KWARGS],
    "create_azure_openai_config": [
        ("deployment_name", "str", "gpt-4"),
        ("endpoint", "str | None", None),
        ("api_key", "str | None", None),
        ("api_version", "str", "2024-02-15-preview"),
        KWARGS,
    ],
    "create_claude_code_config": [
        ("model", "str", "claude-sonnet-4-20250514"),
        ("system_prompt", "str | None", None),
        ("allowed_tools", "list | None", None),
        ("disallowed_tools", "list | None", None),
        ("max_thinking_tokens", "int", 8000),
        ("cwd", "str | None", None),
        KWARGS,
    ],
    "for_research_task": [("model", "str", "gpt-4o"), BACKEND],
    "for_computational_task": [("model", "str", "gpt-4o"), BACKEND],
    "for_analytical_task": [("model", "str", "gpt-4o-mini"), BACKEND],
    "for_expert_domain": [
        ("domain", "str", REQUIRED),
        ("expertise_level", "str", "expert"),
        ("model", "str", "gpt-4o"),
        BACKEND,
    ],
    "from_dict": [("data", "dict", REQUIRED)],
}
MESSAGES: Row = ("existing_messages", "list", REQUIRED)
METHODS: dict[str, tuple[list[Row], str]] = {
    "init_nlip_router": (
        [("tool_manager", "object | None", None), ("mcp_executor", "object | None", None)],
        "None",
    ),
    "with_custom_instruction": ([("instruction", "str", REQUIRED)], "AgentConfig"),
    "with_agent_id": ([("agent_id", "str", REQUIRED)], "AgentConfig"),
    "build_conversation": (
        [("task", "str", REQUIRED), ("agent_summaries", "dict | None", None), ("session_id", "str | None", None)],
        "dict",
    ),
    "add_enforcement_message": ([("conversation_messages", "list", REQUIRED)], "list"),
    "continue_conversation": (
        [
            MESSAGES,
            ("additional_message", "object", None),
            ("additional_message_role", "str", "user"),
            ("enforce_tools", "bool", False),
        ],
        "dict",
    ),
    "handle_case3_enforcement": ([MESSAGES], "dict"),
    "add_tool_result": ([MESSAGES, ("tool_call_id", "str", REQUIRED), ("result", "str", REQUIRED)], "dict"),
    "handle_case4_error_recovery": ([MESSAGES, ("clarification", "str | None", None)], "dict"),
    "get_backend_params": ([], "dict"),
}
FUNCTIONS: dict[str, list[Row]] = {
    "create_research_config": [("model", "str", "gpt-4o"), BACKEND],
    "create_computational_config": [("model", "str", "gpt-4o"), BACKEND],
    "create_analytical_config": [("model", "str", "gpt-4o-mini"), BACKEND],
}
OWN = {"custom_instruction", "get_system_message", "to_dict", "to_config", "to_config_dict", "create_backend"}
"""What `AgentConfig` has beside the documented names."""


def kind(annotation: object) -> str:
    """`int | None`, `list`, `Callable`: the type without what containers hold."""
    origin = typing.get_origin(annotation)
    if origin in (typing.Union, types.UnionType):
        return " | ".join(kind(option) for option in typing.get_args(annotation))
    if annotation is type(None) or annotation is None:
        return "None"
    return getattr(origin or annotation, "__name__", str(annotation))


def rows(function: Callable[..., Any]) -> list[Row]:
    """The parameters of a function as rows."""
    hints = typing.get_type_hints(function)
    found: list[Row] = []
    for one in inspect.signature(function).parameters.values():
        if one.name == "self":
            continue
        default: object = REQUIRED if one.default is one.empty else one.default
        found.append((one.name, REST if one.kind is one.VAR_KEYWORD else kind(hints[one.name]), default))
    return found


@pytest.mark.parametrize("settings", CLASSES, ids=lambda cls: cls.__name__)
def test_the_fields_of_a_class_have_the_documented_names_types_and_defaults(settings: type) -> None:
    hints = typing.get_type_hints(settings)
    fresh = settings()
    given = [one for one in dataclasses.fields(settings) if one.init]
    assert [(one.name, kind(hints[one.name]), getattr(fresh, one.name)) for one in given] == CLASSES[settings]
    assert list(inspect.signature(settings).parameters) == [name for name, _, _ in CLASSES[settings]]
    assert settings.__bases__ == (object,)


@pytest.mark.parametrize("settings", CLASSES, ids=lambda cls: cls.__name__)
def test_instances_share_no_container(settings: type) -> None:
    first, second = settings(), settings()
    for name, _, default in CLASSES[settings]:
        if isinstance(default, list | dict | TimeoutConfig | CoordinationConfig):
            assert getattr(first, name) is not getattr(second, name)


@pytest.mark.parametrize("name", FACTORIES)
def test_a_factory_has_the_documented_parameters(name: str) -> None:
    assert isinstance(inspect.getattr_static(AgentConfig, name), classmethod)
    factory = getattr(AgentConfig, name)
    assert rows(factory) == FACTORIES[name]
    assert kind(typing.get_type_hints(factory)["return"]) == "AgentConfig"


@pytest.mark.parametrize("name", METHODS)
def test_a_method_has_the_documented_parameters(name: str) -> None:
    parameters, returned = METHODS[name]
    method = getattr(AgentConfig, name)
    assert rows(method) == parameters
    assert kind(typing.get_type_hints(method)["return"]) == returned


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_the_module_has_the_documented_parameters(name: str) -> None:
    function = getattr(agent_config, name)
    assert rows(function) == FUNCTIONS[name]
    assert getattr(massgen_mcp, name) is function


def test_the_table_leaves_nothing_of_the_class_out() -> None:
    public = {name for name in dir(AgentConfig()) if not name.startswith("_")}
    documented = {*FACTORIES, *METHODS, *(name for name, _, _ in AGENT), "custom_system_instruction"}
    assert public == documented | OWN
    assert isinstance(inspect.getattr_static(AgentConfig, "custom_system_instruction"), property)


def test_everything_public_says_what_it_does() -> None:
    for name in (*FACTORIES, *METHODS, *OWN - {"custom_instruction"}, "custom_system_instruction"):
        assert inspect.getdoc(inspect.getattr_static(AgentConfig, name)), name


def test_the_module_is_reached_from_the_package_without_an_import_of_its_own() -> None:
    assert massgen_mcp.agent_config.AgentConfig is massgen_mcp.AgentConfig is AgentConfig
    assert massgen_mcp.TimeoutConfig is TimeoutConfig
    assert massgen_mcp.CoordinationConfig is CoordinationConfig


def test_what_claude_code_may_not_do_by_default() -> None:
    assert AgentConfig.create_claude_code_config().backend_params["disallowed_tools"] == FORBIDDEN


@pytest.mark.parametrize(
    ("ours", "engine"),
    [
        (TimeoutConfig(), orchestrator.TimeoutSettings()),
        (CoordinationConfig(), OrchestratorConfig().coordination),
    ],
    ids=["TimeoutConfig", "CoordinationConfig"],
)
def test_a_default_that_the_engine_has_too_is_the_same_there(ours: Any, engine: Settings) -> None:
    theirs = engine.model_dump(mode="json")
    for name, value in dataclasses.asdict(ours).items():
        assert value == theirs[name], name


def test_only_the_number_of_answers_has_another_default_than_in_a_file() -> None:
    engine = OrchestratorConfig()
    ours = AgentConfig()
    shared = [one.name for one in dataclasses.fields(ours) if one.name in OrchestratorConfig.model_fields]
    assert [name for name in shared if getattr(ours, name) != getattr(engine, name)] == ["max_new_answers_per_agent"]
    assert len(shared) == 6


def test_describing_agents_loads_no_providers_library() -> None:
    code = (
        "import sys, massgen_mcp as massgen; "
        "agent = massgen.AgentConfig.create_openai_config(); agent.to_config({}); agent.build_conversation('?'); "
        "massgen.ConfigurableAgent(agent, environ={'OPENAI_API_KEY': 'k'}); "
        "print([name for name in ('openai', 'anthropic', 'mcp', 'litellm') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
