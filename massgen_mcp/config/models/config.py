"""The whole of a config, and what holds between its parts."""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, field_validator, model_validator

from massgen_mcp.config.environment import called_a_secret, variables_in
from massgen_mcp.config.models.backends import LIMITED_TYPES, BackendConfig
from massgen_mcp.config.models.commands import CommandsConfig
from massgen_mcp.config.models.common import AbsolutePaths, Address, HostPort, Settings
from massgen_mcp.config.models.orchestrator import (
    BudgetConfig,
    NestedConfig,
    OrchestratorConfig,
    ProviderLimits,
    TimeoutSettings,
)
from massgen_mcp.events.parts import LEAST_ANSWERS
from massgen_mcp.nearest import nearest


def _secret_by_name_only(values: dict[str, str]) -> dict[str, str]:
    for name, value in values.items():
        if called_a_secret(name) and not variables_in([value]):
            raise ValueError(f"write {name}: ${{NAME}}; never put a key in a file")
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
    """Settings of every MCP server (see docs/mcp-servers.md)."""

    allowed_tools: ToolNames | None = None
    """The tools to offer, as `TOOL`, `SERVER__TOOL` or MassGen's `mcp__SERVER__TOOL`. None: all."""
    exclude_tools: ToolNames = ()
    """Tools to hide, named in the same way."""
    shared: bool = False
    """True: agents with the same settings for this server share one process. False: each agent has its own."""
    required: bool = False
    """True: the run fails before its first model call if the server, or a tool in `allowed_tools`, is missing. False:
    agents work without it.
    """
    start_seconds: float = Field(default=30, gt=0, le=600)
    """How long agents wait for the server when a run starts; a slower server becomes available later."""
    call_seconds: float = Field(default=120, gt=0, le=3600)
    """Time limit for a call."""


class StdioServer(McpServerSettings, frozen=True):
    """A program that speaks MCP over its standard input and output."""

    type: Literal["stdio"] = "stdio"
    """A program on this machine."""
    command: str = Field(min_length=1, max_length=4096)
    """The program: a name on PATH, or a path."""
    args: tuple[Annotated[str, StringConstraints(max_length=10_000)], ...] = Field(default=(), max_length=200)
    """The program's arguments."""
    env: NotInFile = Field(default_factory=dict[str, str])
    """The program's environment variables; it gets no others. `${NAME}` inserts one of your own variables."""
    sandbox: bool = True
    """False: the program runs with your full permissions."""
    network: tuple[HostPort, ...] = Field(default=(), max_length=50)
    """Allowed connections from the sandbox, as host:port. Default: none."""
    readable: AbsolutePaths = Field(default=(), max_length=20)
    """Absolute paths of additional files and directories that the program can read in the sandbox."""


class HttpMcpServer(McpServerSettings, frozen=True):
    """A server that uses Streamable HTTP."""

    type: Literal["streamable_http"]
    """A server that massgen reaches over HTTP."""
    url: Address
    """The server's address."""
    headers: NotInFile = Field(default_factory=dict[str, str])
    """Headers to send with every request. `${NAME}` inserts one of your environment variables."""


McpServer = Annotated[StdioServer | HttpMcpServer, Field(discriminator="type")]


class CustomTool(Settings, frozen=True):
    """A Python function that the agent can call as a tool. Each call runs in the sandbox, like the agent's commands."""

    name: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,63}$")
    """The tool's name, as models see it. Default: the function's name."""
    path: str = Field(min_length=1, max_length=4096)
    """The file. If you omit it, `name` must be an entry point in the `massgen_mcp.tools` group."""
    function: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")
    """A normal or `async` function in the file. Its signature and docstring describe the tool."""
    description: str | None = Field(default=None, min_length=1, max_length=4_000)
    """The tool's description, as models see it. Default: the docstring's first paragraph."""
    preset_args: dict[str, Any] = Field(default_factory=dict[str, Any])
    """Fixed arguments, hidden from models."""


AGENT_ID_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"


class AgentTexts(Settings, frozen=True):
    """Your own wording, used instead of the built-in text. Agents still get all other instructions, such as those about
    files.
    """

    evaluation_system_message: str | None = Field(default=None, min_length=1, max_length=100_000)
    """The instruction for answering and voting."""
    final_presentation_system_message: str | None = Field(default=None, min_length=1, max_length=100_000)
    """The instruction for the winner's final answer."""
    enforcement_message: str | None = Field(default=None, min_length=1, max_length=10_000)
    """The reminder for an agent that neither answered nor voted."""


class AgentSettings(Settings, frozen=True):
    """One agent of the team."""

    id: str = Field(pattern=AGENT_ID_PATTERN)
    """The agent's name. Default: `agent1`, `agent2`, ..."""
    backend: BackendConfig
    """The agent's model and its settings."""
    system_message: str | None = Field(default=None, max_length=100_000)
    """The agent's own instructions, added after the team's."""
    message_templates: AgentTexts = AgentTexts()
    """Your own wording, used instead of the built-in text."""
    mcp_servers: dict[ServerName, McpServer] = Field(default_factory=dict[ServerName, McpServer], max_length=20)
    """MCP servers for the agent, by name. Write this and the next three keys under `backend`."""
    allowed_tools: ToolNames | None = None
    """Tools to offer, from any server. Default: all."""
    exclude_tools: ToolNames = ()
    """Tools to hide: MCP tools, or built-in tools such as `delete_file`."""
    custom_tools: tuple[CustomTool, ...] = Field(default=(), max_length=50)
    """Python functions that agents can call as tools. They run in the sandbox. MassGen's key names work as well."""
    exclude_file_operation_mcps: bool = False
    """True: the agent has no file tools, and has a workspace only if it can run commands."""
    enable_nlip: bool = False
    """Log the agent's messages to the run's `nlip.jsonl`, in Natural Language Interaction Protocol format (ECMA-430).
    Needs the `nlip` extra.
    """
    commands: CommandsConfig | None = None
    """The agent's own command settings. `true`: the team's settings; `false`: no commands."""

    @property
    def kind(self) -> str:
        """The type of its backend, as files name it."""
        return self.backend.adapter if self.backend.type == "installed" else self.backend.type

    @property
    def asked(self) -> str:
        """Who is asked, as people are shown it."""
        return f"{self.kind}/{self.backend.model}"

    @property
    def models(self) -> str:
        """The same with the fallback, where there is one."""
        return self.asked if self.backend.fallback is None else f"{self.asked}, else {self.backend.fallback}"


MOST_WITHOUT_JUDGE = 2
"""Of so many agents one cannot be the judge of the others' answers."""


class Config(Settings, frozen=True):
    """A validated team and its rules; what `config.json` in a run directory holds. No secrets: names only."""

    agents: tuple[AgentSettings, ...] = Field(min_length=1, max_length=10)
    """The team. For a single agent, you can write `agent:` without a list."""
    orchestrator: OrchestratorConfig = OrchestratorConfig()
    """Coordination of the team."""
    timeout_settings: TimeoutSettings = TimeoutSettings()
    """Time limits."""
    budget: BudgetConfig = BudgetConfig()
    """Limits on cost."""
    limits: dict[str, ProviderLimits] = Field(default_factory=dict[str, ProviderLimits])
    """Limits on parallel calls and calls per minute, by backend type."""
    nested: NestedConfig | None = None
    """Permission for agents to start runs. None: not allowed."""
    apply: Literal["ask", "always"] = "ask"
    """`always`: `massgen` applies a run's changes without asking. Otherwise it asks in a terminal; in a script, pass
    `--apply`. This has no effect on MCP clients, Python or LiteLLM.
    """
    notify: tuple[str, ...] = ()
    """A program, with its arguments, to start after each run. Allowed only in your own config, which
    may consist of this key alone.
    """

    @field_validator("limits")
    @classmethod
    def _known_types(cls, limits: dict[str, ProviderLimits]) -> dict[str, ProviderLimits]:
        for name in limits:
            if name not in LIMITED_TYPES:
                near = nearest(name, LIMITED_TYPES)
                hint = f"did you mean '{near}'?" if near else f"known: {', '.join(LIMITED_TYPES)}"
                raise ValueError(f"{name[:80]!a} isn't a backend type that calls a provider; {hint}")
        return limits

    @field_validator("orchestrator")
    @classmethod
    def _files_where_files_are_needed(cls, orchestrator: OrchestratorConfig) -> OrchestratorConfig:
        coordination = orchestrator.coordination
        for key in ("enable_memory_filesystem_mode", "task_planning_filesystem_mode"):
            if getattr(coordination, key) and not orchestrator.enable_filesystem:
                raise ValueError(f"coordination.{key} needs files, but enable_filesystem is false")
        return orchestrator

    def with_nlip(self, agent: AgentSettings) -> bool:
        """Whether what the agent says and is told is also written as NLIP."""
        return agent.enable_nlip or self.orchestrator.enable_nlip

    def runs_commands(self, agent: AgentSettings) -> bool:
        """Whether the agent itself may say what is run, and not only call the functions that it has as tools."""
        return (agent.commands or self.orchestrator.commands).enabled or agent.backend.runs_code

    def commands_of(self, agent: AgentSettings) -> CommandsConfig:
        """What holds for the commands of this agent."""
        if agent.commands is not None:
            return agent.commands
        team = self.orchestrator.commands
        if team.enabled or not (agent.backend.runs_code or agent.custom_tools):
            return team
        return team.model_copy(update={"enabled": True})

    @property
    def writes_paths(self) -> bool:
        """Return whether a directory of the user's has `permission: write`."""
        return any(context.permission == "write" for context in self.orchestrator.context_paths)

    @property
    def all_commands(self) -> tuple[CommandsConfig, ...]:
        """What holds for the commands of the agents that have any, without repetitions."""
        found = map(self.commands_of, self.agents)
        return tuple(dict.fromkeys(commands for commands in found if commands.enabled))

    @property
    def server_variables(self) -> tuple[str, ...]:
        """Names of the variables that MCP servers are given."""
        servers = [server for agent in self.agents for server in agent.mcp_servers.values()]
        texts = [[*(server.env if isinstance(server, StdioServer) else server.headers).values()] for server in servers]
        return variables_in(text for values in texts for text in values)

    def has_workspace(self, agent: AgentSettings) -> bool:
        """Whether the agent has a directory of its own; without file tools it has one for its commands."""
        if not self.orchestrator.enable_filesystem:
            return False
        return not agent.exclude_file_operation_mcps or self.commands_of(agent).enabled

    @model_validator(mode="after")
    def _a_workspace_for_commands(self) -> Self:
        if not self.orchestrator.enable_filesystem and self.all_commands:
            raise ValueError("commands need the agents' workspaces, but enable_filesystem is false")
        if forbidden := [one.id for one in self.agents if one.custom_tools and not self.commands_of(one).enabled]:
            raise ValueError(f"custom_tools run as commands, but commands are disabled for {', '.join(forbidden)}")
        return self

    @model_validator(mode="after")
    def _files_of_every_agent(self) -> Self:
        coordination = self.orchestrator.coordination
        if coordination.enable_memory_filesystem_mode or coordination.task_planning_filesystem_mode:
            without = [agent.id for agent in self.agents if not self.has_workspace(agent)]
            if without:
                named = ", ".join(without)
                raise ValueError(f"memory and plans need files, but exclude_file_operation_mcps is true for {named}")
        return self

    @model_validator(mode="after")
    def _agents_that_are_named(self) -> Self:
        ids = [agent.id for agent in self.agents]
        for key, named in (("by", self.orchestrator.by), ("judge", self.orchestrator.judge)):
            if named is not None and named not in ids:
                near = nearest(named, ids)
                raise ValueError(
                    f"orchestrator.{key} names an unknown agent: {named[:80]!a}; did you mean '{near or ids[0]}'?"
                )
        if self.orchestrator.judge is not None and len(ids) <= MOST_WITHOUT_JUDGE:
            raise ValueError("orchestrator.judge needs at least two other agents to answer")
        if self.orchestrator.write_check and len(ids) - (self.orchestrator.judge is not None) < LEAST_ANSWERS:
            raise ValueError(
                "orchestrator.write_check needs at least three agents: one writes a test and two confirm it"
            )
        return self

    @field_validator("agents")
    @classmethod
    def _distinct_ids(cls, agents: tuple[AgentSettings, ...]) -> tuple[AgentSettings, ...]:
        ids = [agent.id for agent in agents]
        repeated = sorted({agent_id for agent_id in ids if ids.count(agent_id) > 1})
        if repeated:
            raise ValueError(f"agent ids must be unique; used twice: {', '.join(repeated)}")
        return agents
