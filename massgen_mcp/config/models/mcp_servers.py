"""MCP servers whose tools an agent has."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints

from massgen_mcp.config.models.common import AbsolutePaths, Address, Endpoint, Settings
from massgen_mcp.config.variables import called_a_secret, variables_in


def _secret_by_name_only(values: dict[str, str]) -> dict[str, str]:
    for name, value in values.items():
        if called_a_secret(name) and not variables_in([value]):
            raise ValueError(f"write {name}: ${{NAME}}; keys never belong in a file")
    return values


ServerName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$")]

ToolNames = Annotated[
    tuple[Annotated[str, StringConstraints(min_length=1, max_length=128)], ...], Field(max_length=200)
]

NotInFile = Annotated[
    dict[str, Annotated[str, StringConstraints(max_length=10_000)]], AfterValidator(_secret_by_name_only)
]
"""Values in which `${NAME}` stands for a variable of the environment; what is called a key has to be one."""


class McpServerSettings(Settings, frozen=True):
    """What all MCP servers of an agent have in common: see docs/mcp-servers.md."""

    allowed_tools: ToolNames | None = None
    """The only tools that are offered, by the server's names for them or as `SERVER__TOOL`. None: all."""
    exclude_tools: ToolNames = ()
    """Tools that are not offered, named in the same way."""
    shared: bool = False
    """One server for all agents whose configs name it and say the same of it. Otherwise each agent has its own."""
    required: bool = False
    """True: without this server, or without a tool that `allowed_tools` names, the run fails before its first model
    call. Otherwise its agents do without.
    """
    start_seconds: float = Field(default=30, gt=0, le=600)
    """How long agents wait for its tools before they begin; a server that is slower joins them later."""
    call_seconds: float = Field(default=120, gt=0, le=3600)
    """How long a call may take."""


class StdioServer(McpServerSettings, frozen=True):
    """A program that speaks MCP over its standard input and output."""

    type: Literal["stdio"] = "stdio"
    """A program that is started here."""
    command: str = Field(min_length=1, max_length=4096)
    """The program: a name on PATH, or a path."""
    args: tuple[Annotated[str, StringConstraints(max_length=10_000)], ...] = Field(default=(), max_length=200)
    """Its arguments."""
    env: NotInFile = Field(default_factory=dict[str, str])
    """Variables of its environment, which has nothing else of yours. `${NAME}` stands for a variable of yours."""
    sandbox: bool = True
    """False: it runs with everything that you may do yourself."""
    network: tuple[Endpoint, ...] = Field(default=(), max_length=50)
    """What it may connect to from the sandbox, as host:port. Nothing without it."""
    readable: AbsolutePaths = Field(default=(), max_length=20)
    """Files and directories that it may read in the sandbox besides the usual programs, at their own paths."""


class HttpMcpServer(McpServerSettings, frozen=True):
    """A server that is reached over Streamable HTTP."""

    type: Literal["streamable_http"]
    """A server at an address."""
    url: Address
    """Its address."""
    headers: NotInFile = Field(default_factory=dict[str, str])
    """Headers of every request. `${NAME}` stands for a variable of yours."""


McpServer = Annotated[StdioServer | HttpMcpServer, Field(discriminator="type")]
