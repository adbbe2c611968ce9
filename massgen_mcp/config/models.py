"""What a user may ask for, as frozen types. Parsed once by `loader`; true everywhere after that.

Keys follow the YAML files of MassGen.
"""

import re
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, Self, get_args
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationInfo,
    field_validator,
    model_validator,
)

from massgen_mcp.config.keys import holds_credentials
from massgen_mcp.config.native_tools import BY_HOST, listed, refusal
from massgen_mcp.config.variables import called_a_secret, variables_in
from massgen_mcp.nearest import nearest

AGENT_ID_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"
AUTO_MODEL = "auto"
"""As `model` of a local server: whatever it serves."""

DEFAULT_SKILLS = ".agent/skills"
VARIABLE_PATTERN = r"^[A-Z_][A-Z0-9_]*$"


def _plain_host(address: str) -> str:
    """One host that every URL parser reads alike: keys are chosen by it."""
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        host = ""
    if not re.fullmatch(r"[A-Za-z0-9_.-]+|[0-9A-Fa-f:.]+", host):
        raise ValueError("expected an address with a plain host name (and port), such as https://host:8000/v1")
    return address


def _without_credentials(address: object) -> object:
    """Addresses are shown and kept, in configs, records and errors."""
    if isinstance(address, str) and holds_credentials(address):
        raise ValueError(
            "expected an http:// or https:// address without credentials; api_key_env names a key's variable"
        )
    return address


Address = Annotated[
    str,
    StringConstraints(pattern=r"^https?://[^\s@]+$", max_length=500),
    AfterValidator(_plain_host),
    BeforeValidator(_without_credentials),
]


def _printable(name: str) -> str:
    if not name.isprintable():
        raise ValueError("expected a name without line breaks, control characters and the like")
    return name


MAX_MODEL_NAME = 200
ModelName = Annotated[str, StringConstraints(min_length=1, max_length=MAX_MODEL_NAME), AfterValidator(_printable)]
"""It stands in requests, in one line of logs and on terminals."""


class Settings(BaseModel, frozen=True):
    """Base of every part of a config: frozen, unknown keys refused, values never echoed in errors."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


class Price(Settings, frozen=True):
    """What a model costs, in US dollars. It goes before every other source of a price."""

    input_usd_per_million: float = Field(ge=0, le=100_000)
    """Input tokens."""
    output_usd_per_million: float = Field(ge=0, le=100_000)
    """Output tokens, reasoning included."""
    cached_input_usd_per_million: float | None = Field(default=None, ge=0, le=100_000)
    """Input read from the provider's cache. Default: as other input."""
    cache_write_usd_per_million: float | None = Field(default=None, ge=0, le=100_000)
    """Input written to the provider's cache. Default: as other input."""
    web_search_usd_per_thousand: float = Field(default=0, ge=0, le=100_000)
    """Searches that the provider runs itself."""


def check_price_as(said: str | None) -> str | None:
    """`PROVIDER` or `PROVIDER/MODEL`, of a provider whose prices are listed. Raises `ValueError`."""
    name = (said or "").partition("/")[0]
    if said is None or name in LISTED_TYPES:
        return said
    near = nearest(name, LISTED_TYPES)
    hint = f"did you mean {near!r}?" if near else f"known: {', '.join(LISTED_TYPES)}"
    raise ValueError(f"expected a provider whose prices are listed, or PROVIDER/MODEL; {hint}")


class PricedBackendConfig(Settings, frozen=True):
    """Base of every backend: each may say what its model costs."""

    price: Price | None = None
    """Default: what the provider reports for a call, else a public price list, else unknown."""

    @property
    def runs_code(self) -> bool:
        """Whether the backend itself wants commands run, in the sandbox."""
        return False


class ListedBackendConfig(PricedBackendConfig, frozen=True):
    """Base of the backends that ask somebody for a model of a name, which may be in a price list."""

    price_as: Annotated[str | None, AfterValidator(check_price_as)] = Field(default=None, max_length=300)
    """A provider, or PROVIDER/MODEL, whose listed prices hold for this backend: `openai`, behind a gateway."""


class ScriptStep(Settings, frozen=True):
    """One model call of a scripted agent. Exactly one of `answer`, `vote`, `say`, `call`, `fail` and `hang` is set."""

    answer: str | None = None
    """Submit this text with `new_answer`."""
    vote: str | None = None
    """Vote for the answer whose text contains this, or for `own`, `first` or `last` on the ballot."""
    reason: str = "It answers the question best."
    """With `vote`: the reason that is given."""
    same_as: tuple[str, ...] | None = None
    """With `vote`: the other answers that say the same, each named like the one that is voted for."""
    say: str | None = None
    """Reply with text and no tool call: the final answer in a presentation, a rule violation elsewhere."""
    call: str | None = None
    """Call the tool of this name."""
    arguments: dict[str, Any] = Field(default_factory=dict[str, Any])
    """With `call`: the arguments of the call."""
    fail: (
        Literal[
            "auth",
            "quota_exhausted",
            "rate_limited",
            "model_not_found",
            "unreachable",
            "provider_error",
            "broken_stream",
        ]
        | None
    ) = None
    """Fail as a provider would."""
    hang: bool = False
    """Never answer."""
    delay_seconds: float = Field(default=0.0, ge=0, le=3600)
    """Wait this long before the step."""

    @model_validator(mode="after")
    def _exactly_one_action(self) -> "ScriptStep":
        chosen = [name for name in ("answer", "vote", "say", "call", "fail") if getattr(self, name) is not None]
        if len(chosen) + self.hang != 1:
            raise ValueError("a script step has exactly one of: answer, vote, say, call, fail, hang")
        return self


class ScriptedBackendConfig(PricedBackendConfig, frozen=True):
    """A deterministic stand-in for a model, for demos, tests and documentation. It calls nobody."""

    type: Literal["scripted"]
    """Calls nobody."""
    model: ModelName = "scripted"
    """The name that is shown as its model."""
    price: Price | None = Price(input_usd_per_million=0, output_usd_per_million=0)
    """It calls nobody. `null`: as if nobody knew the price."""
    script: tuple[ScriptStep, ...] = ()
    """Worked off one step per model call. When it is used up, or empty, the agent answers once, votes for the answer
    that comes first in alphabetical order, and presents its own answer.
    """
    presentation: str | None = None
    """What a winner writes as the final answer; without it the winner repeats its latest answer."""
    chunk_delay_seconds: float = Field(default=0.0, ge=0, le=60)
    """Pause between streamed pieces of text, so that a demo looks alive."""


class HttpBackendConfig(ListedBackendConfig, frozen=True):
    """What all models behind an HTTP API have in common. `type` picks wire format and defaults (see `providers`)."""

    type: str
    """Picks the wire format and the defaults."""
    model: ModelName
    """The model, by the provider's name for it."""
    api_key_env: str | None = Field(default=None, pattern=VARIABLE_PATTERN)
    """Name of the environment variable that holds the key. Default: the provider's own variable."""
    temperature: float | None = Field(default=None, ge=0, le=2)
    """How freely the model chooses its words. Default: the provider's."""
    top_p: float | None = Field(default=None, gt=0, le=1)
    """The part of likely words from which the model chooses. Default: the provider's."""
    max_output_tokens: int | None = Field(default=None, ge=1, le=1_000_000)
    """Of one reply, reasoning included. Default: the provider's."""
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    """How long the model thinks, where it can be told. Default: the provider's."""
    verbosity: Literal["low", "medium", "high"] | None = None
    """How much the model writes, where its API has such a setting (OpenAI's)."""
    enable_web_search: bool = False
    """The provider's own web search. This and the next three are refused where the provider has no such tool."""
    enable_x_search: bool = False
    """Search on X."""
    enable_code_execution: bool = False
    """The provider's own tool that runs code at the provider."""
    enable_code_interpreter: bool = False
    """The same, by OpenAI's name for it."""
    extra_body: dict[str, Any] = Field(default_factory=dict[str, Any])
    """Further fields of the provider's request body, passed on untouched."""

    @field_validator("enable_web_search", "enable_x_search", "enable_code_execution", "enable_code_interpreter")
    @classmethod
    def _offered(cls, wanted: bool, info: ValidationInfo) -> bool:
        backend_type = info.data.get("type")
        if wanted and backend_type and (reason := refusal(backend_type, info.field_name or "")):
            raise ValueError(reason)
        return wanted


class ProviderBackendConfig(HttpBackendConfig, frozen=True):
    """A model of a provider on the internet, or (`chatcompletion`) of any server that speaks like OpenAI's."""

    type: Literal[
        "openai",
        "chatcompletion",
        "claude",
        "gemini",
        "grok",
        "groq",
        "cerebras",
        "together",
        "fireworks",
        "openrouter",
        "zai",
        "deepseek",
        "mistral",
        "moonshot",
        "qwen",
        "nebius",
        "perplexity",
        "huggingface",
        "github",
    ]
    """The provider; `chatcompletion` is any server with an OpenAI-compatible API."""
    base_url: Address | None = None
    """Root of the API, without credentials. Default: the provider's own. A model that another address does not list is
    asked for all the same."""

    @model_validator(mode="after")
    def _offered_there(self) -> Self:
        from massgen_mcp.config.providers import asked_tools, tools_of  # it needs these types

        offered = tools_of(self)
        if missing := [f"enable_{tool}" for tool in asked_tools(self) if tool not in offered]:
            where, has = self.base_url or "its default address", listed([f"enable_{tool}" for tool in offered])
            way_out = "" if self.base_url is None or self.type == BY_HOST else "; leave base_url out"
            raise ValueError(f"{', '.join(missing)}: {self.type} does not offer this at {where}; it has {has}{way_out}")
        return self


class LocalServerConfig(HttpBackendConfig, frozen=True):
    """A model server of one's own. It needs no key."""

    model: ModelName = AUTO_MODEL
    """`auto`: the largest chat model that the server has and this machine can hold, looked up at the first call."""
    base_url: Address | None = None
    """Root of the API, without credentials. Default: this machine, at the server's usual port."""


class LocalBackendConfig(LocalServerConfig, frozen=True):
    """A model server of one's own that speaks like OpenAI's."""

    type: Literal["lmstudio", "vllm", "sglang", "llamacpp"]
    """The program that serves the model."""


class OllamaBackendConfig(LocalServerConfig, frozen=True):
    """Ollama, asked by its own API: only there a request can say how large the model's context is to be."""

    type: Literal["ollama"]
    """Ollama."""
    context_length: int | None = Field(default=None, ge=512, le=10_000_000)
    """Tokens of context that the model is loaded with. Default: 16,384, or what it is loaded with already, if that is
    more; never more than the model has.
    """
    keep_alive: str | None = Field(default=None, pattern=r"^(-1|0|(\d+(\.\d+)?(ms|s|m|h))+)$")
    """How long the model stays loaded after a call, such as 30m; -1: for ever. Default: the server's."""


class AzureBackendConfig(HttpBackendConfig, frozen=True):
    """A deployment of Azure OpenAI."""

    type: Literal["azure_openai"]
    """Azure OpenAI."""
    endpoint: Address | None = None
    """Root of the resource, such as https://NAME.openai.azure.com. Default: AZURE_OPENAI_ENDPOINT."""
    api_version: str = Field(default="v1", pattern=r"^[A-Za-z0-9.-]{1,40}$")
    """`v1`, which has every current model and needs no date; or the date of an older API, such as 2024-10-21."""
    deployment: str | None = Field(default=None, pattern=r"^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,63}$")
    """Name of the deployment. Default: `model`."""


class ClaudeCodeBackendConfig(PricedBackendConfig, frozen=True):
    """The Claude Code CLI as an agent, with the team's tools in place of its own. Needs the CLI and a login."""

    type: Literal["claude_code"]
    """The Claude Code CLI."""
    model: ModelName = Field(default="default", pattern=r"^[A-Za-z0-9][^\s]*$")
    """`default`: whatever the CLI takes."""
    api_key_env: str | None = Field(default=None, pattern=VARIABLE_PATTERN)
    """Name of the environment variable that holds an API key. Default: ANTHROPIC_API_KEY or CLAUDE_CODE_OAUTH_TOKEN,
    whichever is set.
    """
    reasoning_effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    """How long the model thinks. Default: as the CLI has it."""
    use_login: bool = False
    """Whether it may use your own login to Claude Code, where no key or token is set."""
    max_thinking_tokens: int | None = Field(default=None, ge=0, le=1_000_000)
    """For models that think by a budget; the others have `reasoning_effort`. Default: as the CLI has it."""
    max_turns: int = Field(default=50, ge=1, le=1000)
    """Model calls within one step; it needs a second one only where it tries a tool that it has not."""


COMPATIBLE_ADDRESSES = {
    "openai": None,
    "google": "https://generativelanguage.googleapis.com/v1beta/openai",
    "anthropic": "https://api.anthropic.com/v1",
}
"""Where models of these are asked by Chat Completions. None: where the environment says, else at OpenAI."""


class Ag2ModelConfig(Settings, frozen=True):
    """The model that an AG2 agent asks, in AG2's words: of any server that speaks Chat Completions."""

    api_type: Literal["openai", "google", "anthropic"] = "openai"
    """Whose default address; all three are asked by Chat Completions."""
    model: ModelName
    """The model, by the server's name for it."""
    base_url: Address | None = None
    """Root of the API, without credentials. Default: `api_type`'s; of OpenAI, `OPENAI_BASE_URL` where that is set."""
    api_key_env: str | None = Field(default=None, pattern=VARIABLE_PATTERN)
    """Name of the environment variable that holds the key. Default: the variable of the provider whose host it is."""
    temperature: float | None = Field(default=None, ge=0, le=2)
    """How freely the model chooses its words. Default: the server's."""
    top_p: float | None = Field(default=None, gt=0, le=1)
    """The part of likely words from which the model chooses. Default: the server's."""
    max_tokens: int | None = Field(default=None, ge=1, le=1_000_000)
    """Of one reply."""
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = None
    """How long the model thinks, where it can be told. Default: the server's."""


def _within_workspace(path: str) -> str:
    parts = PurePosixPath(path).parts
    if path.startswith(("/", "~")) or ".." in parts or not path.isprintable():
        raise ValueError("expected a relative path; code runs in the agent's workspace")
    return str(PurePosixPath(path))


class CodeExecutor(Settings, frozen=True):
    """Where the code blocks of an AG2 agent's replies run: in the sandbox, whose rules are those of commands."""

    type: Literal["LocalCommandLineCodeExecutor"] = "LocalCommandLineCodeExecutor"
    """AG2's name for it; there is no other."""
    timeout: float = Field(default=60, gt=0, le=86_400)
    """Seconds for one block of code."""
    work_dir: Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(_within_workspace)] = "."
    """A directory in the agent's workspace."""


class CodeExecution(Settings, frozen=True):
    executor: CodeExecutor = CodeExecutor()
    """What runs the blocks of code."""


class Ag2AgentConfig(Settings, frozen=True):
    """An agent of AG2. Its two classic types are one in AG2 1.x, and so they are here."""

    type: Literal["assistant", "conversable"] = "assistant"
    """AG2's two classic types, which mean the same here."""
    name: Annotated[str, AfterValidator(_printable)] = Field(default="assistant", min_length=1, max_length=64)
    """Its name in AG2; in a group chat each has its own."""
    system_message: str | None = Field(default=None, max_length=100_000)
    """Stands before the team's instructions."""
    description: str | None = Field(default=None, max_length=10_000)
    """In a group chat: what its manager is told of it. Default: `system_message`."""
    human_input_mode: Literal["NEVER"] = "NEVER"
    """Nobody sits beside a run. An agent asks people with the team's own tool, if the team has it."""
    llm_config: Ag2ModelConfig
    """The model that it asks."""
    code_execution_config: CodeExecution | None = None
    """That blocks of code in its replies are run. None: they are not."""


class Ag2Manager(Settings, frozen=True):
    llm_config: Ag2ModelConfig
    """The model that it asks."""


class Ag2Pattern(Settings, frozen=True):
    """How it is decided who speaks: `auto`, a model chooses after every turn."""

    type: Literal["auto"]
    """After every turn a model chooses who speaks next."""
    initial_agent: str
    """The name of the agent that speaks first."""
    group_manager_args: Ag2Manager
    """The model that chooses."""


AG2_USER, AG2_MANAGER = "User", "Manager"
"""Whom a group has besides its agents."""


class Ag2GroupConfig(Settings, frozen=True):
    """A group chat of AG2 agents that is one agent of the team. In a file the group's `llm_config` stands for every one
    that is left out.
    """

    llm_config: Ag2ModelConfig
    """The model of every part of the group that names none."""
    agents: tuple[Ag2AgentConfig, ...] = Field(min_length=1, max_length=20)
    """Who talks."""
    pattern: Ag2Pattern
    """How it is decided who speaks."""
    user_agent: Ag2AgentConfig
    """It takes no part in the talk; it acts for the group in the team when the talk is over."""
    max_rounds: int = Field(default=20, ge=1, le=100)
    """Turns of the agents in one talk."""

    @model_validator(mode="after")
    def _names(self) -> Self:
        names = [agent.name for agent in self.agents]
        if self.user_agent.name != AG2_USER:
            raise ValueError(f"user_agent has the name {AG2_USER}")
        if len({*names, AG2_USER, AG2_MANAGER}) < len(names) + 2:
            raise ValueError(f"the agents of a group have names of their own, and none is {AG2_USER} or {AG2_MANAGER}")
        if self.pattern.initial_agent not in names:
            raise ValueError(f"pattern.initial_agent: expected one of {', '.join(names)}")
        return self


class Ag2BackendConfig(ListedBackendConfig, frozen=True):
    """An agent of the AG2 framework, or a group chat of some, as a team member. Needs an extra."""

    type: Literal["ag2"]
    """An agent of AG2, or a group chat."""
    agent_config: Ag2AgentConfig | None = None
    """One agent. This or `group_config`."""
    group_config: Ag2GroupConfig | None = None
    """A group chat. This or `agent_config`."""

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.agent_config is None) == (self.group_config is None):
            raise ValueError("expected agent_config or group_config")
        return self

    @property
    def model(self) -> str:
        return self._models[0].model

    @property
    def runs_code(self) -> bool:
        return any(agent.code_execution_config is not None for agent in self.agents)

    @property
    def asked(self) -> tuple[ProviderBackendConfig, ...]:
        """The models behind it as backends of their own, its main one first: AG2 is no matter for keys, hosts, limits
        and prices.
        """
        asked: list[ProviderBackendConfig] = []
        for model in self._models:
            if (one := self.asked_for(model)) not in asked:
                asked.append(one)
        return tuple(asked)

    @property
    def agents(self) -> tuple[Ag2AgentConfig, ...]:
        """The one agent, or those of the group, who acts for it last."""
        group = self.group_config
        return (*group.agents, group.user_agent) if group else (self.agent_config,) if self.agent_config else ()

    @property
    def _models(self) -> tuple[Ag2ModelConfig, ...]:
        group = self.group_config
        managing = (group.llm_config, group.pattern.group_manager_args.llm_config) if group else ()
        return (*managing, *(agent.llm_config for agent in self.agents))

    def asked_for(self, model: Ag2ModelConfig) -> ProviderBackendConfig:
        """This model as a backend of its own."""
        return ProviderBackendConfig(
            type="chatcompletion",
            model=model.model,
            base_url=model.base_url or COMPATIBLE_ADDRESSES[model.api_type],
            api_key_env=model.api_key_env,
            temperature=model.temperature,
            top_p=model.top_p,
            max_output_tokens=model.max_tokens,
            reasoning_effort=model.reasoning_effort,
            price=self.price,
            price_as=self.price_as,
        )


HttpBackend = ProviderBackendConfig | LocalBackendConfig | OllamaBackendConfig | AzureBackendConfig
BackendConfig = Annotated[
    ScriptedBackendConfig
    | ProviderBackendConfig
    | LocalBackendConfig
    | OllamaBackendConfig
    | AzureBackendConfig
    | ClaudeCodeBackendConfig
    | Ag2BackendConfig,
    Field(discriminator="type"),
]


LISTED_TYPES: tuple[str, ...] = tuple(
    name for name in get_args(ProviderBackendConfig.model_fields["type"].annotation) if name != "chatcompletion"
)
"""The providers whose prices may be named."""

LIMITED_TYPES: tuple[str, ...] = tuple(
    name
    for model in (
        ProviderBackendConfig,
        LocalBackendConfig,
        OllamaBackendConfig,
        AzureBackendConfig,
        ClaudeCodeBackendConfig,
        Ag2BackendConfig,
    )
    for name in get_args(model.model_fields["type"].annotation)
)
"""The backend types that call somebody."""


def _endpoint(text: str) -> str:
    """One host and one port: a list of hosts is no list if a part of it may stand for others."""
    host, _, port = text.rpartition(":")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.-]*", host) or not (port.isdecimal() and 0 < int(port) < 65536):
        raise ValueError("expected host:port, such as pypi.org:443")
    return text.lower()


Endpoint = Annotated[str, StringConstraints(max_length=260), AfterValidator(_endpoint)]


def _absolute_paths(paths: tuple[str, ...]) -> tuple[str, ...]:
    if wrong := [path for path in paths if not path.startswith("/") or ".." in path.split("/")]:
        raise ValueError(f"expected absolute paths, not {wrong[0]!a}")
    return paths


def _secret_by_name_only(values: dict[str, str]) -> dict[str, str]:
    for name, value in values.items():
        if called_a_secret(name) and not variables_in([value]):
            raise ValueError(f"write {name}: ${{NAME}}; keys never belong in a file")
    return values


def _regular_expression(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from None
    return pattern


CONTAINERS = ("docker", "podman")

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
    """The only tools that are offered, by the server's names for them. None: all."""
    exclude_tools: ToolNames = ()
    """Tools that are not offered, by the server's names for them."""
    shared: bool = False
    """One server for all agents whose configs name it and say the same of it. Otherwise each agent has its own."""
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
    """Variables of its environment. `${NAME}` stands for a variable of yours."""
    sandbox: bool = True
    """False: it runs with everything that you may do yourself."""
    network: tuple[Endpoint, ...] = Field(default=(), max_length=50)
    """What it may connect to from the sandbox, as host:port. Nothing without it."""
    readable: Annotated[tuple[str, ...], AfterValidator(_absolute_paths)] = Field(default=(), max_length=20)
    """Files and directories that it may read in the sandbox besides the usual programs, at their own paths."""


class HttpServer(McpServerSettings, frozen=True):
    """A server that is reached over Streamable HTTP."""

    type: Literal["streamable_http"]
    """A server at an address."""
    url: Address
    """Its address."""
    headers: NotInFile = Field(default_factory=dict[str, str])
    """Headers of every request. `${NAME}` stands for a variable of yours."""


McpServer = Annotated[StdioServer | HttpServer, Field(discriminator="type")]


CommandPatterns = Annotated[
    tuple[Annotated[str, StringConstraints(min_length=1, max_length=1_000), AfterValidator(_regular_expression)], ...],
    Field(max_length=200),
]
"""Regular expressions, each held against the beginning of a command."""


class CommandsConfig(Settings, frozen=True):
    """Commands that agents run, in a sandbox: see docs/commands.md. They need a workspace."""

    enabled: bool = False
    """Whether agents may run commands."""
    sandbox: Literal["auto", "bubblewrap", "sandlock", "docker", "podman", "sandbox-exec"] = "auto"
    """`auto`: the strongest of bubblewrap, sandlock and sandbox-exec that holds on this machine."""
    image: str | None = Field(default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9._/:@-]{0,254}$")
    """Of the container, with `sandbox: docker` or `podman`."""
    image_archive: str | None = Field(default=None, min_length=1, max_length=4096)
    """An image on this machine: a directory in OCI layout, or a file as `docker save` writes it. Its programs take the
    place of this machine's where there is no container, in bubblewrap. Absolute after loading.
    """
    network: tuple[Endpoint, ...] = Field(default=(), max_length=50)
    """What commands may connect to, as host:port. Nothing without it."""
    open_network: bool = False
    """True: commands reach every host. Only in a container."""
    readable: Annotated[tuple[str, ...], AfterValidator(_absolute_paths)] = Field(default=(), max_length=20)
    """Directories of programs that commands may read besides the usual ones, at their own paths. Absolute."""
    allowed: CommandPatterns = ()
    """The only commands that are run, if there are any. A rule for agents, and no protection: that is the sandbox."""
    blocked: CommandPatterns = ()
    """Commands that are not run, as far as their text tells."""
    timeout_seconds: float = Field(default=120, gt=0, le=3600)
    """For a command that does not ask for another time."""
    max_seconds: float = Field(default=1800, gt=0, le=86_400)
    """The most that a command can ask for; one in the background has it."""
    max_memory_mb: int = Field(default=2048, ge=64, le=1_000_000)
    """Memory of a command and everything that it starts."""
    max_cpus: float | None = Field(default=None, gt=0, le=1_000)
    """Processors that a command may use; outside of a container rounded up to whole ones. None: all."""
    max_processes: int = Field(default=256, ge=16, le=10_000)
    """Processes of a command at once."""
    max_disk_mb: int = Field(default=2048, ge=16, le=1_000_000)
    """In the agent's workspace and its directory for temporary files together."""

    @model_validator(mode="after")
    def _what_the_sandbox_has(self) -> Self:
        in_container = self.sandbox in CONTAINERS
        if self.image is not None and not in_container:
            raise ValueError("image is of a container; set sandbox to docker or podman")
        if self.open_network and not in_container:
            raise ValueError(
                "open_network is for a container; set sandbox to docker or podman, or name hosts in network"
            )
        if self.network and self.sandbox in ("bubblewrap", *CONTAINERS):
            raise ValueError(f"{self.sandbox} lets no command reach named hosts only; use sandbox: auto or sandlock")
        if self.image_archive is not None and self.sandbox in ("sandlock", "sandbox-exec"):
            raise ValueError(f"{self.sandbox} has this machine's programs; use sandbox: bubblewrap, docker or podman")
        if self.image_archive is not None and self.network:
            raise ValueError("an image runs in bubblewrap, which lets no command reach named hosts only")
        return self


class MessageTemplates(Settings, frozen=True):
    """Texts of the user's in place of ours. What else an agent is told, such as files and markers, stays."""

    evaluation_system_message: str | None = Field(default=None, min_length=1, max_length=100_000)
    """What an agent is asked to do while it answers and votes."""
    final_presentation_system_message: str | None = Field(default=None, min_length=1, max_length=100_000)
    """What the winner is asked to do."""
    enforcement_message: str | None = Field(default=None, min_length=1, max_length=10_000)
    """What an agent is told that replied without an answer or a vote, before how to act without tools."""


class AgentConfig(Settings, frozen=True):
    id: str = Field(pattern=AGENT_ID_PATTERN)
    """The agent's name in the team. In a file it may be left out: `agent1`, `agent2`, ..."""
    backend: BackendConfig
    """Who is asked, and how."""
    system_message: str | None = Field(default=None, max_length=100_000)
    """The agent's own instructions; they stand after the team's."""
    message_templates: MessageTemplates = MessageTemplates()
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


def server_variables(agents: Iterable[AgentConfig]) -> tuple[str, ...]:
    """Names of the variables that MCP servers are given."""
    servers = [server for agent in agents for server in agent.mcp_servers.values()]
    texts = [[*(server.env if isinstance(server, StdioServer) else server.headers).values()] for server in servers]
    return variables_in(text for values in texts for text in values)


def _inside(path: str) -> str:
    if path.startswith(("/", "~")) or not {"", ".", ".."}.isdisjoint(path.split("/")):
        raise ValueError("a path below the directory, such as target or web/dist")
    return path


class ContextPath(Settings, frozen=True):
    """A file or directory of the user's. Absolute after loading.

    All agents may read it, and each works on a copy of its own of a directory. With `write` the winner's changes may be
    applied to the directory itself; without it they are only given as a patch.
    """

    path: str = Field(min_length=1, max_length=4096)
    """The file or directory, absolute or relative to the working directory."""
    permission: Literal["read", "write"] = "read"
    """`write`: the winner's changes may be applied to it. `read`: they are only given as a patch."""
    copy_ignored: tuple[Annotated[str, Field(min_length=1, max_length=1000), AfterValidator(_inside)], ...] = Field(
        default=(), max_length=20
    )
    """Directories in it that git ignores, such as `target`, and that every copy gets of its own, to be written to."""


class TimeoutConfig(Settings, frozen=True):
    """Limits in seconds; each names itself in the message when it is hit."""

    orchestrator_timeout_seconds: float = Field(default=1800, gt=0, le=7 * 86_400)
    """The whole run."""
    round_timeout_seconds: float = Field(default=900, gt=0, le=86_400)
    """One agent's round: from seeing a ballot to one accepted action."""
    first_round_timeout_seconds: float | None = Field(default=None, gt=0, le=86_400)
    """The same for an agent's first round. Default: `round_timeout_seconds`."""
    call_timeout_seconds: float = Field(default=300, gt=0, le=86_400)
    """One model call, from sending the request to the end of its stream, retries included."""


class CoordinationConfig(Settings, frozen=True):
    """What agents do besides answering and voting; keys and defaults as in MassGen."""

    enable_planning_mode: bool = False
    """Until the winner presents, tools with side effects are described and not executed."""
    planning_mode_instruction: str = Field(
        default="During coordination, describe what you would do without actually executing actions. Only provide "
        "concrete implementation details without calling external APIs or tools.",
        max_length=10_000,
    )
    """What agents are told in planning mode."""
    max_orchestration_restarts: int = Field(default=0, ge=0, le=10)
    """Further attempts that a winner may ask for after judging its own final answer insufficient."""
    enable_agent_task_planning: bool = False
    """Agents get tools for a task plan of their own."""
    max_tasks_per_plan: int = Field(default=10, ge=1, le=200)
    """Tasks in one plan, at most."""
    task_planning_filesystem_mode: bool = False
    """Task plans are also written to `tasks/` of the workspace."""
    enable_memory_filesystem_mode: bool = False
    """Agents keep notes as files: short-term ones are shown to all, long-term ones on demand."""
    use_skills: bool = False
    """Agents can read the skills of `skills_directory` and of `massgen_skills`."""
    massgen_skills: tuple[Literal["file_search"], ...] = ()
    """Built-in skills to offer, by name."""
    skills_directory: str = Field(default=DEFAULT_SKILLS, min_length=1, max_length=4096)
    """Where the user's skills are. Absolute after loading."""

    @property
    def planning_instruction(self) -> str | None:
        """In planning mode: what agents are told until the winner presents."""
        return self.planning_mode_instruction if self.enable_planning_mode else None


def _without_nul(text: str) -> str:
    if "\0" in text or not text.strip():
        raise ValueError("expected text without NUL characters")
    return text


CheckCommand = Annotated[str, StringConstraints(min_length=1, max_length=2000), AfterValidator(_without_nul)]
ProtectedPath = Annotated[str, StringConstraints(min_length=1, max_length=500), AfterValidator(_without_nul)]
ChecksPolicy = Literal["informative", "required", "goal"]
"""What follows from checks: see `coordination.evidence`."""


class OrchestratorConfig(Settings, frozen=True):
    """How a team coordinates."""

    coordination: CoordinationConfig = CoordinationConfig()
    """What agents do besides answering and voting."""
    voting_sensitivity: Literal["lenient", "balanced", "strict"] = "lenient"
    """How easily agents are content with what is there."""
    answer_novelty_requirement: Literal["lenient", "balanced", "strict"] = "lenient"
    """How different a new answer must be from the standing ones (see `coordination.novelty`)."""
    early_decision: Literal["off", "proven", "majority"] = "proven"
    """Whether to stop before everybody has voted: when nothing can change the winner, or at a majority."""
    final_answer_strategy: Literal["winner_present", "winner_reuse", "auto"] = "winner_present"
    """The winner writes the final answer anew, its answer is reused, or (auto) anew only if that can add something."""
    answer_format: Literal["text", "findings"] = "text"
    """`findings`: every answer is a JSON document of findings, each with its file and line (see docs/code-work.md)."""
    skip_coordination_rounds: bool = False
    """For debugging: the first agent writes the final answer straight away."""
    debug_final_answer: str | None = Field(default=None, min_length=1, max_length=100_000)
    """For debugging: taken as the first attempt's final answer instead of asking the winner."""
    max_new_answers_per_agent: int | None = Field(default=5, ge=1, le=100)
    """After this many answers an agent may only vote. None: no limit but the run's time."""
    max_enforcement_retries: int = Field(default=3, ge=0, le=20)
    """Rule violations in a row that are given back to the model before the agent is dropped."""
    max_steps_per_round: int = Field(default=50, ge=1, le=1000)
    """Model calls in one round; an agent that exceeds it is dropped."""
    first_answer_wait_seconds: float = Field(default=300, ge=0, le=86_400)
    """How long agents that have answered wait for the others' first answers before they judge what is there."""
    show_reasons: bool = False
    """Who may improve on the answers also reads the reasons of votes that a new answer voided."""
    perspectives: bool = True
    """In a team that asks one model only, each agent gets a perspective of its own for its first answer."""
    enable_filesystem: bool = True
    """False: agents have no workspace and no file tools."""
    allow_questions: bool = False
    """Agents may ask whoever started the run; it is `input_required` until `control_run` answers, or ten minutes."""
    context_paths: tuple[ContextPath, ...] = Field(default=(), max_length=20)
    """Files and directories of yours that the team works with."""
    commands: CommandsConfig = CommandsConfig()
    """Commands of all agents that have no settings of their own."""
    checks: tuple[CheckCommand, ...] = Field(default=(), max_length=10)
    """Shell commands that judge the files of each answer, in a sandbox: see docs/code-work.md. Exit code 0 passes."""
    checks_policy: ChecksPolicy = "informative"
    """`required`: an answer whose checks fail cannot win while another one passes. `goal`: what fails on the unchanged
    files counts, too.
    """
    checks_timeout_seconds: float = Field(default=600, gt=0, le=86_400)
    """For one check."""
    protect: tuple[ProtectedPath, ...] | None = Field(default=None, max_length=200)
    """Files that checks take from the base, as patterns. None: tests, check scripts and settings of test runners."""

    @model_validator(mode="after")
    def _files_for_checks(self) -> Self:
        if self.checks and not self.enable_filesystem:
            raise ValueError("checks judge the agents' files, but enable_filesystem is false")
        return self


MAX_USD = 100_000.0


class BudgetConfig(Settings, frozen=True):
    """What a run may cost (see docs/budget.md). Calls of unknown price count with their tokens only."""

    max_usd: float = Field(default=10, gt=0, le=MAX_USD)
    """US dollars that the run may cost."""
    max_tokens: int = Field(default=10_000_000, ge=1_000, le=10_000_000_000)
    """Input and output of all calls together."""
    at_cap: Literal["finish", "ask"] = "finish"
    """Vote on the answers that are there, or wait for `raise_budget`, `finish_now` or the run's time limit."""


class NestedConfig(Settings, frozen=True):
    """That agents may start runs of their own (see docs/nested-runs.md). Without it they may not."""

    max_depth: int = Field(default=1, ge=1, le=5)
    """So many levels of runs may lie below this one. 1: what it starts starts nothing."""
    max_runs: int = Field(default=3, ge=1, le=100)
    """So many runs may this one start, by all its agents together."""
    share_of_budget: float = Field(default=0.5, gt=0, le=0.9)
    """They may spend this part of the budget, all together; the rest is for the team's own work."""


class EarlierTurn(Settings, frozen=True):
    """A turn of the same session that has ended: what was asked, and the final answer."""

    question: str
    """What was asked."""
    answer: str
    """The final answer."""


class ProviderLimits(Settings, frozen=True):
    """How much all runs of a runner together may ask of one provider with one key. Of two runs that disagree, the
    smaller number holds while both go on.
    """

    concurrency: int | None = Field(default=None, ge=1, le=10_000)
    """Calls under way at once. Default: 100; 4 for `claude_code`, whose calls are processes; 1 for a model server of
    this machine.
    """
    requests_per_minute: int | None = Field(default=None, ge=1, le=1_000_000)
    """Calls begun in any 60 s, retries included. None: no limit of ours."""


class Config(Settings, frozen=True):
    """A validated team and its rules; what `config.json` in a run directory holds. No secrets: names only."""

    agents: tuple[AgentConfig, ...] = Field(min_length=1, max_length=10)
    """The team. A team of one may be written as `agent:`, without the list."""
    orchestrator: OrchestratorConfig = OrchestratorConfig()
    """How the team coordinates."""
    timeout_settings: TimeoutConfig = TimeoutConfig()
    """Time limits."""
    budget: BudgetConfig = BudgetConfig()
    """Limits of cost."""
    limits: dict[str, ProviderLimits] = Field(default_factory=dict[str, ProviderLimits])
    """How much is asked of a provider at once, by backend type."""
    nested: NestedConfig | None = None
    """Whether agents may start runs, and how many; None: they may not."""

    @field_validator("limits")
    @classmethod
    def _known_types(cls, limits: dict[str, ProviderLimits]) -> dict[str, ProviderLimits]:
        for name in limits:
            if name not in LIMITED_TYPES:
                near = nearest(name, LIMITED_TYPES)
                hint = f"did you mean '{near}'?" if near else f"known: {', '.join(LIMITED_TYPES)}"
                raise ValueError(f"{name[:80]!a} is no backend type that calls a provider; {hint}")
        return limits

    @field_validator("orchestrator")
    @classmethod
    def _files_where_files_are_needed(cls, orchestrator: OrchestratorConfig) -> OrchestratorConfig:
        coordination = orchestrator.coordination
        for key in ("enable_memory_filesystem_mode", "task_planning_filesystem_mode"):
            if getattr(coordination, key) and not orchestrator.enable_filesystem:
                raise ValueError(f"coordination.{key} keeps files, but enable_filesystem is false")
        return orchestrator

    def commands_of(self, agent: AgentConfig) -> CommandsConfig:
        """What holds for the commands of this agent."""
        if agent.commands is not None:
            return agent.commands
        team = self.orchestrator.commands
        if team.enabled or not agent.backend.runs_code:
            return team
        return team.model_copy(update={"enabled": True})

    @property
    def all_commands(self) -> tuple[CommandsConfig, ...]:
        """What holds for the commands of the agents that have any, without repetitions."""
        found = map(self.commands_of, self.agents)
        return tuple(dict.fromkeys(commands for commands in found if commands.enabled))

    def has_workspace(self, agent: AgentConfig) -> bool:
        """Whether the agent has a directory of its own; without file tools it has one for its commands."""
        if not self.orchestrator.enable_filesystem:
            return False
        return not agent.exclude_file_operation_mcps or self.commands_of(agent).enabled

    @model_validator(mode="after")
    def _a_workspace_for_commands(self) -> Self:
        if self.all_commands and not self.orchestrator.enable_filesystem:
            raise ValueError("commands run in the agents' workspaces, but enable_filesystem is false")
        return self

    @model_validator(mode="after")
    def _files_of_every_agent(self) -> Self:
        coordination = self.orchestrator.coordination
        if coordination.enable_memory_filesystem_mode or coordination.task_planning_filesystem_mode:
            without = [agent.id for agent in self.agents if not self.has_workspace(agent)]
            if without:
                named = ", ".join(without)
                raise ValueError(f"memory and plans are files, but exclude_file_operation_mcps is true for {named}")
        return self

    @field_validator("agents")
    @classmethod
    def _distinct_ids(cls, agents: tuple[AgentConfig, ...]) -> tuple[AgentConfig, ...]:
        ids = [agent.id for agent in agents]
        repeated = sorted({agent_id for agent_id in ids if ids.count(agent_id) > 1})
        if repeated:
            raise ValueError(f"agent ids must be distinct; used twice: {', '.join(repeated)}")
        return agents
