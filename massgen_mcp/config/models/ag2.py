"""Agents of AG2 and group chats of them as a backend."""

from pathlib import PurePosixPath
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from massgen_mcp.config.models.common import (
    VARIABLE_PATTERN,
    ListedBackendConfig,
    ModelAddress,
    ModelName,
    PrintableName,
    ProviderType,
    Settings,
)
from massgen_mcp.config.models.http_backends import ProviderBackendConfig
from massgen_mcp.config.providers.addresses import host_in

_GOOGLE = "https://generativelanguage.googleapis.com/v1beta/openai"
"""Where Google's models are asked by Chat Completions."""


class Ag2ModelConfig(Settings, frozen=True):
    """The model that an AG2 agent asks, in AG2's words: of any server that speaks Chat Completions, or of Anthropic."""

    api_type: Literal["openai", "google", "anthropic"] = "openai"
    """Whose default address. Anthropic's own is asked by the Messages API, which caches prompts; every other address by
    Chat Completions.
    """
    model: ModelName
    """The model, by the server's name for it."""
    base_url: ModelAddress | None = None
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
    """How blocks of code in its replies are run."""

    executor: CodeExecutor = CodeExecutor()
    """What runs the blocks of code."""


class Ag2AgentConfig(Settings, frozen=True):
    """An agent of AG2. Its two classic types are one in AG2 1.x, and so they are here."""

    type: Literal["assistant", "conversable"] = "assistant"
    """AG2's two classic types, which mean the same here."""
    name: PrintableName = Field(default="assistant", min_length=1, max_length=64)
    """Its name in AG2; in a group chat each has its own."""
    system_message: str | None = Field(default=None, max_length=100_000)
    """Stands before the team's instructions."""
    description: str | None = Field(default=None, max_length=10_000)
    """In a group chat: what its manager is told of it. Default: `system_message`."""
    human_input_mode: Literal["NEVER"] = "NEVER"
    """No person joins AG2's talk. An agent asks you with the team's own tool, if the team has one."""
    llm_config: Ag2ModelConfig
    """The model that it asks."""
    code_execution_config: CodeExecution | None = None
    """That blocks of code in its replies are run. None: they are not."""


class Ag2Manager(Settings, frozen=True):
    """The manager of a group chat."""

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
            raise ValueError(f"agents in a group need distinct names other than {AG2_USER} and {AG2_MANAGER}")
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
        return self._model_configs[0].model

    @property
    def runs_code(self) -> bool:
        return any(agent.code_execution_config is not None for agent in self.agents)

    @property
    def talks_in_a_group(self) -> bool:
        return self.group_config is not None

    @property
    def asked(self) -> tuple[ProviderBackendConfig, ...]:
        """The models behind it as backends of their own, its main one first: AG2 is no matter for keys, hosts, limits
        and prices.
        """
        asked: list[ProviderBackendConfig] = []
        for model in self._model_configs:
            if (one := self.asked_for(model)) not in asked:
                asked.append(one)
        return tuple(asked)

    @property
    def agents(self) -> tuple[Ag2AgentConfig, ...]:
        """The one agent, or those of the group, who acts for it last."""
        group = self.group_config
        return (*group.agents, group.user_agent) if group else (self.agent_config,) if self.agent_config else ()

    @property
    def _model_configs(self) -> tuple[Ag2ModelConfig, ...]:
        group = self.group_config
        managing = (group.llm_config, group.pattern.group_manager_args.llm_config) if group else ()
        return (*managing, *(agent.llm_config for agent in self.agents))

    def asked_for(self, model: Ag2ModelConfig) -> ProviderBackendConfig:
        """This model as a backend of its own."""
        of_type: ProviderType = "chatcompletion"
        address = model.base_url
        match model.api_type:
            case "anthropic" if address is None or host_in(address) == "api.anthropic.com":
                of_type = "claude"
            case "google" if address is None:
                address = _GOOGLE
            case _:
                pass
        return ProviderBackendConfig(
            type=of_type,
            model=model.model,
            base_url=address,
            api_key_env=model.api_key_env,
            temperature=model.temperature,
            top_p=model.top_p,
            max_output_tokens=model.max_tokens,
            reasoning_effort=model.reasoning_effort,
            price=self.price,
            price_as=self.price_as,
        )
