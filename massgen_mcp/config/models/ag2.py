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
    """The model of an AG2 agent, with AG2's key names: any Chat Completions server, or Anthropic."""

    api_type: Literal["openai", "google", "anthropic"] = "openai"
    """Sets the default address. massgen uses the Messages API, which caches prompts, for Anthropic's own address, and
    Chat Completions for all others.
    """
    model: ModelName
    """The model's name, as the server spells it."""
    base_url: ModelAddress | None = None
    """The API's root address, without credentials. Default: `api_type`'s; for OpenAI, `OPENAI_BASE_URL` if set."""
    api_key_env: str | None = Field(default=None, pattern=VARIABLE_PATTERN)
    """Environment variable that holds the API key. Default: the usual variable of the host's provider."""
    temperature: float | None = Field(default=None, ge=0, le=2)
    """Sampling temperature. Default: the server's."""
    top_p: float | None = Field(default=None, gt=0, le=1)
    """Nucleus sampling. Default: the server's."""
    max_tokens: int | None = Field(default=None, ge=1, le=1_000_000)
    """Maximum number of tokens in one reply."""
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = None
    """How long the model thinks, for models with this setting. Default: the server's."""


def _within_workspace(path: str) -> str:
    parts = PurePosixPath(path).parts
    if path.startswith(("/", "~")) or ".." in parts or not path.isprintable():
        raise ValueError("expected a relative path; code runs in the agent's workspace")
    return str(PurePosixPath(path))


class CodeExecutor(Settings, frozen=True):
    """Where code blocks in an AG2 agent's replies run: in the sandbox, under the same rules as commands."""

    type: Literal["LocalCommandLineCodeExecutor"] = "LocalCommandLineCodeExecutor"
    """AG2's name for the executor; the only one allowed."""
    timeout: float = Field(default=60, gt=0, le=86_400)
    """Time limit for one block of code, in seconds."""
    work_dir: Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(_within_workspace)] = "."
    """A directory in the agent's workspace."""


class CodeExecution(Settings, frozen=True):
    """How code blocks in the agent's replies are run."""

    executor: CodeExecutor = CodeExecutor()
    """The executor that runs the code blocks."""


class Ag2AgentConfig(Settings, frozen=True):
    """An AG2 agent. As in AG2 1.x, the two classic types are the same."""

    type: Literal["assistant", "conversable"] = "assistant"
    """AG2's two classic types, which are equivalent here."""
    name: PrintableName = Field(default="assistant", min_length=1, max_length=64)
    """The agent's name in AG2, unique within a group chat."""
    system_message: str | None = Field(default=None, max_length=100_000)
    """Instructions placed before the team's."""
    description: str | None = Field(default=None, max_length=10_000)
    """In a group chat: how the agent is described to the manager. Default: `system_message`."""
    human_input_mode: Literal["NEVER"] = "NEVER"
    """People can't join AG2's conversation. An agent can ask you with the team's own tool, if the team has one."""
    llm_config: Ag2ModelConfig
    """The model to use."""
    code_execution_config: CodeExecution | None = None
    """Run code blocks in the agent's replies. None: don't run them."""


class Ag2Manager(Settings, frozen=True):
    """The manager of a group chat."""

    llm_config: Ag2ModelConfig
    """The model to use."""


class Ag2Pattern(Settings, frozen=True):
    """How the next speaker is chosen. `auto`: a model chooses after every turn."""

    type: Literal["auto"]
    """A model chooses the next speaker after every turn."""
    initial_agent: str
    """The name of the agent that speaks first."""
    group_manager_args: Ag2Manager
    """The model that chooses."""


AG2_USER, AG2_MANAGER = "User", "Manager"
"""Whom a group has besides its agents."""


class Ag2GroupConfig(Settings, frozen=True):
    """A group chat of AG2 agents that acts as one agent of the team. In a file, the group's `llm_config` replaces every
    one that is omitted.
    """

    llm_config: Ag2ModelConfig
    """The model for every part of the group that doesn't set one."""
    agents: tuple[Ag2AgentConfig, ...] = Field(min_length=1, max_length=20)
    """The agents that take part in the conversation."""
    pattern: Ag2Pattern
    """How the next speaker is chosen."""
    user_agent: Ag2AgentConfig
    """Takes no part in the conversation, but acts for the group in the team when the conversation is over."""
    max_rounds: int = Field(default=20, ge=1, le=100)
    """Maximum number of turns in one conversation."""

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
    """An AG2 agent, or a group chat of several, as an agent of the team. Needs the `ag2` extra."""

    type: Literal["ag2"]
    """An AG2 agent, or a group chat."""
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
