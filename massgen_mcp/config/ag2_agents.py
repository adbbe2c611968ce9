"""Agents of the AG2 framework: whether it is installed here, and AG2's own way of writing configs in our terms.

Must not import AG2. Executors become our sandbox; what would run code elsewhere is refused by name.
"""

import importlib.util
from collections.abc import Mapping

from massgen_mcp.config.diagnostics import Problem
from massgen_mcp.config.models.ag2 import AG2_USER
from massgen_mcp.config.yaml_reader import Place, Plain

EXTRA = 'pip install "massgen-mcp[ag2]"'

_OF_THE_MODEL = ("model", "base_url", "api_key", "api_key_env")
"""What may stand at the backend itself, as it does for every other type, if nothing else is said of the agent."""
_OF_THE_EXECUTOR = ("work_dir", "timeout")
"""What AG2 also takes without naming an executor."""
_NEEDLESS_OF_CODE = ("use_docker", "last_n_messages")
_NEEDLESS_OF_PATTERN = ("exclude_transit_message", "summary_method")
_LOCAL = "LocalCommandLineCodeExecutor"

_FALLBACKS = "expected one model; to use several models, list several agents"
_ELSEWHERE = (
    f"code runs in the same sandbox as the team's commands; write executor: {{type: {_LOCAL}}}, and for a container "
    "also orchestrator.commands: {sandbox: docker}"
)
_USER_MESSAGE = "You act on behalf of the group whose conversation you are reading."
"""Default instructions of who acts for a group."""


def lack() -> str | None:
    """What has to be installed before an AG2 agent can work here; None when nothing is missing."""
    return None if importlib.util.find_spec("ag2") is not None else f"ag2 needs an extra: {EXTRA}"


def shape(backend: Mapping[str, Plain], place: Place) -> tuple[dict[str, Plain], list[Problem]]:
    """A backend of type `ag2` in the canonical form, and what in it is refused, each at its own place."""
    plain, problems = dict(backend), list[Problem]()
    if "agent_config" not in plain and "group_config" not in plain and "model" in plain:
        plain["agent_config"] = {"llm_config": {key: plain.pop(key) for key in _OF_THE_MODEL if key in plain}}
    for key, shaped in (("agent_config", _plain_agent), ("group_config", _group)):
        if isinstance(part := plain.get(key), dict):
            plain[key] = shaped(part, (*place, key), problems)
    return plain, problems


def _group(given: Mapping[str, Plain], place: Place, problems: list[Problem]) -> dict[str, Plain]:
    group = dict(given)
    _one_model(group, place, problems)
    usual = {"llm_config": group["llm_config"]} if "llm_config" in group else {}
    if isinstance(agents := group.get("agents"), list):
        group["agents"] = [
            _plain_agent({**usual, **agent}, (*place, "agents", number), problems) if isinstance(agent, dict) else agent
            for number, agent in enumerate(agents)
        ]
    if isinstance(user := group.get("user_agent", {"system_message": _USER_MESSAGE}), dict):
        named = {"name": AG2_USER, **usual, **user}
        group["user_agent"] = _plain_agent(named, (*place, "user_agent"), problems)
    if isinstance(pattern := group.get("pattern"), dict):
        kept = {key: value for key, value in pattern.items() if key not in _NEEDLESS_OF_PATTERN}
        if isinstance(manager := kept.get("group_manager_args", {}), dict):
            chooser = {**usual, **manager}
            _one_model(chooser, (*place, "pattern", "group_manager_args"), problems)
            kept["group_manager_args"] = chooser
        group["pattern"] = kept
    return group


def _plain_agent(given: Mapping[str, Plain], place: Place, problems: list[Problem]) -> dict[str, Plain]:
    agent = dict(given)
    _one_model(agent, place, problems)
    if "code_execution_config" in agent:
        execution = _execution(agent.pop("code_execution_config"), (*place, "code_execution_config"), problems)
        if execution is not None:
            agent["code_execution_config"] = execution
    return agent


def _one_model(part: dict[str, Plain], place: Place, problems: list[Problem]) -> None:
    """AG2 also takes a list of models, and caches what they say."""
    models = part.get("llm_config")
    if isinstance(models, list):
        if len(models) != 1:
            problems.append(Problem((*place, "llm_config"), _FALLBACKS))
            return
        part["llm_config"] = models[0]
    if isinstance(model := part.get("llm_config"), dict):
        part["llm_config"] = {key: value for key, value in model.items() if key != "cache_seed"}


def _execution(given: Plain, place: Place, problems: list[Problem]) -> Plain:
    """`executor: {...}`, or AG2's older way: its settings without a name. None and False run no code."""
    if given is None or given is False:
        return None
    if not isinstance(given, dict):
        return given
    plain = {key: value for key, value in given.items() if key not in _NEEDLESS_OF_CODE}
    if given.get("use_docker"):
        problems.append(Problem((*place, "use_docker"), _ELSEWHERE))
    executor = plain.get("executor")
    if isinstance(executor, dict) and executor.get("type", _LOCAL) != _LOCAL:
        problems.append(Problem((*place, "executor", "type"), _ELSEWHERE))
        return None
    if executor is None:
        settings = {key: plain.pop(key) for key in _OF_THE_EXECUTOR if key in plain}
        plain["executor"] = {key: value for key, value in settings.items() if value is not None}
    return plain
