"""Agents and groups of the AG2 framework, whose models are asked by our wires."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from massgen_mcp.backends.agent_types.provider_models import check_variables, describe_endpoint
from massgen_mcp.config import ag2_agents
from massgen_mcp.config.access.agent_types import AgentType, Environ
from massgen_mcp.config.access.key_hosts import provider_for
from massgen_mcp.config.models.ag2 import Ag2AgentConfig, Ag2BackendConfig
from massgen_mcp.config.models.http_backends import AnyHttpBackend
from massgen_mcp.errors import BackendError

if TYPE_CHECKING:
    from massgen_mcp.backends.adapter import Making
    from massgen_mcp.backends.frameworks.ag2_agent import Ag2Agent
    from massgen_mcp.backends.own_loop import Agent


class Ag2(AgentType[Ag2BackendConfig]):
    name = "ag2"

    def name_backend(self, model: str, asked: Mapping[str, str]) -> Mapping[str, object]:
        del model
        return {"agent_config": {"llm_config": dict(asked)}}

    def list_models(self, config: Ag2BackendConfig) -> Iterable[AnyHttpBackend]:
        return config.asked

    def find_lack(self, config: Ag2BackendConfig, environ: Environ) -> str | None:
        del config, environ
        return ag2_agents.lack()

    def make_agent(self, config: Ag2BackendConfig, making: "Making") -> "Agent":
        if lack := ag2_agents.lack():
            raise BackendError("bad_request", lack)
        for asked in config.asked:
            check_variables(asked, making.environ)
        if config.group_config is None:
            return _make_one(config.agents[0], config, making)
        from massgen_mcp.backends.frameworks.ag2_group import Ag2Group

        group = config.group_config
        manager = Ag2AgentConfig(name="manager", llm_config=group.pattern.group_manager_args.llm_config)
        agents = {each.name: _make_one(each, config, making) for each in config.agents}
        return Ag2Group(group, agents, _make_one(manager, config, making))


def _make_one(described: Ag2AgentConfig, config: Ag2BackendConfig, making: "Making") -> "Ag2Agent":
    from massgen_mcp.backends.frameworks.ag2_agent import Ag2Agent

    execution = described.code_execution_config
    asked = config.asked_for(described.llm_config)
    return Ag2Agent(
        describe_endpoint(asked, making),
        described.name,
        described.system_message,
        execution and execution.executor,
        "messages" if provider_for(asked, making.environ).wire == "messages" else "chat",
    )


TYPE = Ag2()
