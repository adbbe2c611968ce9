"""Delegate a hard question to a team of LLM agents that answer, read each other's answers and vote.

Importing this package is cheap on purpose: no provider SDK, no server, no third-party import happens here. A public
name is imported from its module when it is first used; the table below says where each one lives.
"""

import sys
from importlib import import_module

if sys.platform == "win32":
    _REFUSAL = (
        "massgen runs on Linux and macOS, but not directly on Windows. Use WSL, the Windows Subsystem for Linux: run "
        "`wsl --install` in PowerShell, open its Linux terminal, and install massgen-mcp there"
    )
    if sys.argv[0] == "-m" or sys.argv[0].replace("\\", "/").rpartition("/")[2].startswith("massgen"):
        sys.exit(f"ERROR unsupported_platform: {_REFUSAL}")  # one of our commands is started: no traceback
    raise ImportError(_REFUSAL)

TYPE_CHECKING = False  # as in `typing`, which takes longer to import than all of the rest here

if TYPE_CHECKING:
    from massgen_mcp import agent_config as agent_config
    from massgen_mcp.agents.chat import ChatAgent, ConfigurableAgent, SingleAgent, StreamChunk
    from massgen_mcp.agents.config import (
        AgentConfig,
        create_analytical_config,
        create_computational_config,
        create_research_config,
    )
    from massgen_mcp.agents.settings import CoordinationConfig, TimeoutConfig, UnsupportedSettingError
    from massgen_mcp.agents.team import team_config
    from massgen_mcp.agents.templates import MessageTemplates, get_templates
    from massgen_mcp.api.calls import batch, run
    from massgen_mcp.api.options import RunOptions
    from massgen_mcp.config.build_config import build_config
    from massgen_mcp.errors import MassgenError, RunNotCompleted
    from massgen_mcp.integrations.litellm import LITELLM_AVAILABLE, register_with_litellm

__version__ = "0.1.0"

__all__ = [
    "LITELLM_AVAILABLE",
    "AgentConfig",
    "ChatAgent",
    "ConfigurableAgent",
    "CoordinationConfig",
    "MassgenError",
    "MessageTemplates",
    "RunNotCompleted",
    "RunOptions",
    "SingleAgent",
    "StreamChunk",
    "TimeoutConfig",
    "UnsupportedSettingError",
    "__version__",
    "batch",
    "build_config",
    "create_analytical_config",
    "create_computational_config",
    "create_research_config",
    "get_templates",
    "register_with_litellm",
    "run",
    "team_config",
]

_HOMES = {
    "LITELLM_AVAILABLE": "massgen_mcp.integrations.litellm",
    "AgentConfig": "massgen_mcp.agents.config",
    "ChatAgent": "massgen_mcp.agents.chat",
    "ConfigurableAgent": "massgen_mcp.agents.chat",
    "CoordinationConfig": "massgen_mcp.agents.settings",
    "MassgenError": "massgen_mcp.errors",
    "MessageTemplates": "massgen_mcp.agents.templates",
    "RunNotCompleted": "massgen_mcp.errors",
    "RunOptions": "massgen_mcp.api.options",
    "SingleAgent": "massgen_mcp.agents.chat",
    "StreamChunk": "massgen_mcp.agents.chat",
    "TimeoutConfig": "massgen_mcp.agents.settings",
    "UnsupportedSettingError": "massgen_mcp.agents.settings",
    "batch": "massgen_mcp.api.calls",
    "build_config": "massgen_mcp.config.build_config",
    "create_analytical_config": "massgen_mcp.agents.config",
    "create_computational_config": "massgen_mcp.agents.config",
    "create_research_config": "massgen_mcp.agents.config",
    "get_templates": "massgen_mcp.agents.templates",
    "register_with_litellm": "massgen_mcp.integrations.litellm",
    "run": "massgen_mcp.api.calls",
    "team_config": "massgen_mcp.agents.team",
}
"""Public name → the module that defines it. A name stands here, in `__all__` and in the imports for type checkers."""

_MODULES = ("agent_config",)
"""Modules that are reached as `massgen_mcp.NAME` without an import of their own."""


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(home), name)
    globals()[name] = value  # the next look-up no longer comes here
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
