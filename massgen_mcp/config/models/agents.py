"""One agent of a team: its backend, instructions and tools."""

from pydantic import Field

from massgen_mcp.config.models.backends import BackendConfig
from massgen_mcp.config.models.commands import CommandsConfig
from massgen_mcp.config.models.common import Settings
from massgen_mcp.config.models.mcp_servers import McpServer, ServerName, ToolNames

AGENT_ID_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"


class AgentTexts(Settings, frozen=True):
    """Texts of the user's in place of ours. What else an agent is told, such as files and markers, stays."""

    evaluation_system_message: str | None = Field(default=None, min_length=1, max_length=100_000)
    """What an agent is asked to do while it answers and votes."""
    final_presentation_system_message: str | None = Field(default=None, min_length=1, max_length=100_000)
    """What the winner is asked to do."""
    enforcement_message: str | None = Field(default=None, min_length=1, max_length=10_000)
    """What an agent is told that replied without an answer or a vote, before how to act without tools."""


class AgentSettings(Settings, frozen=True):
    """One agent of the team."""

    id: str = Field(pattern=AGENT_ID_PATTERN)
    """The agent's name in the team. In a file it may be left out: `agent1`, `agent2`, ..."""
    backend: BackendConfig
    """Who is asked, and how."""
    system_message: str | None = Field(default=None, max_length=100_000)
    """The agent's own instructions; they stand after the team's."""
    message_templates: AgentTexts = AgentTexts()
    """This agent's texts in place of ours."""
    mcp_servers: dict[ServerName, McpServer] = Field(default_factory=dict[ServerName, McpServer], max_length=20)
    """MCP servers whose tools the agent has, by name. In a file this and the next three stand under `backend`."""
    allowed_tools: ToolNames | None = None
    """Of all servers together: the only tools that are offered."""
    exclude_tools: ToolNames = ()
    """Of all servers together: tools that are not offered."""
    exclude_file_operation_mcps: bool = False
    """True: this agent has no file tools, and no workspace unless it runs commands."""
    commands: CommandsConfig | None = None
    """This agent's own settings of commands, in place of the team's; `true` stands for the team's, `false` for none."""
