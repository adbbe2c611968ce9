"""MassGen's import path of the agents' settings: `from massgen_mcp.agent_config import AgentConfig`.

Defines nothing; see `agents`.
"""

from massgen_mcp.agents.config import (
    AgentConfig,
    create_analytical_config,
    create_computational_config,
    create_research_config,
)
from massgen_mcp.agents.settings import CoordinationConfig, TimeoutConfig

__all__ = [
    "AgentConfig",
    "CoordinationConfig",
    "TimeoutConfig",
    "create_analytical_config",
    "create_computational_config",
    "create_research_config",
]
