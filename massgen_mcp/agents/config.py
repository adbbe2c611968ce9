"""`AgentConfig`: an agent and the team it works in, as Python callers describe them.

It is mutable, and checked as a whole when it is used: `to_config_dict` makes the dictionary that `run` takes,
`create_backend` a model to ask, `build_conversation` what an agent is told at the beginning of a round. Names, fields
and defaults are MassGen's; a default that the engine has, too, is read from `config.models` (see `settings`). Must not
know how a run goes.
"""

import copy
import os
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from importlib.util import find_spec
from typing import Any, cast

from massgen_mcp.agents import sections
from massgen_mcp.agents.sections import with_given_keys
from massgen_mcp.agents.settings import (
    CoordinationConfig,
    TimeoutConfig,
    UnsupportedSettingError,
    checked_keys,
    mapping,
    settings_from,
)
from massgen_mcp.agents.templates import TEMPLATES, MessageTemplates, get_templates
from massgen_mcp.backends.base import Backend
from massgen_mcp.backends.registry import make_backend
from massgen_mcp.config.loader import config_from_data
from massgen_mcp.config.massgen.claude_code_agents import THINKING_TOKENS
from massgen_mcp.config.models.config import Config
from massgen_mcp.config.models.orchestrator import OrchestratorConfig, TimeoutSettings
from massgen_mcp.errors import MassgenError

_ENGINE = OrchestratorConfig()
_SPEAKERS = ("user", "assistant")


@dataclass
class AgentConfig:
    """One agent, and what holds for its team.

    - `backend_params`: the `backend` section of a config: `type`, `model` and settings of that type. Without a `type`
      it is told by the model's name (`groq/NAME`, `gpt-...`). `system_prompt`, `append_system_prompt` and
      `system_message` become the agent's system message, `max_tokens` means `max_output_tokens`, None means not set.
      A key does not belong here but into the environment.
    - `message_templates`: other texts for the conversations built here. None: the usual ones.
    - `voting_sensitivity`: how critical agents are before they vote: lenient, balanced or strict.
    - `max_new_answers_per_agent`: after so many an agent may only vote. None: no limit.
    - `answer_novelty_requirement`: how different a new answer must be from standing ones: lenient, balanced, strict.
    - `agent_id`: the agent's id. None: its place in the team names it.
    - `timeout_config`, `coordination_config`: see there.
    - `skip_coordination_rounds`: for debugging; the first agent writes the final answer straight away.
    - `debug_final_answer`: for debugging; taken as the final answer instead of asking the winner.
    - `enable_nlip`: what the agent says and is told in a run is also written to `nlip.jsonl` of the run, as messages of
      NLIP; as `orchestrator` of a team that of all agents. `nlip_config` changes nothing.
    """

    backend_params: dict[str, Any] = field(default_factory=dict[str, Any], repr=False)
    message_templates: MessageTemplates | None = None
    voting_sensitivity: str = _ENGINE.voting_sensitivity
    max_new_answers_per_agent: int | None = None
    answer_novelty_requirement: str = _ENGINE.answer_novelty_requirement
    agent_id: str | None = None
    timeout_config: TimeoutConfig = field(default_factory=TimeoutConfig)
    coordination_config: CoordinationConfig = field(default_factory=CoordinationConfig)
    skip_coordination_rounds: bool = _ENGINE.skip_coordination_rounds
    debug_final_answer: str | None = _ENGINE.debug_final_answer
    enable_nlip: bool = False
    nlip_config: dict[str, Any] | None = None
    custom_instruction: str | None = field(default=None, init=False)
    """Set by `with_custom_instruction`: what stands before everything else that the agent is told."""

    # -- instructions and copies ----------------------------------------------------------------------------------

    @property
    def custom_system_instruction(self) -> str | None:
        """Deprecated: put `system_prompt` into `backend_params`; for Claude Code also `append_system_prompt`."""
        _warn_of_custom_instruction()
        return self.custom_instruction

    @custom_system_instruction.setter
    def custom_system_instruction(self, instruction: str | None) -> None:
        _warn_of_custom_instruction()
        self.custom_instruction = instruction

    def with_custom_instruction(self, instruction: str) -> "AgentConfig":
        """A copy whose agent is told `instruction` before everything else."""
        changed = copy.deepcopy(self)
        changed.custom_instruction = instruction
        return changed

    def with_agent_id(self, agent_id: str) -> "AgentConfig":
        """A copy with this id."""
        changed = copy.deepcopy(self)
        changed.agent_id = agent_id
        return changed

    def get_system_message(self) -> str | None:
        """The agent's own instructions: the custom one, then those in `backend_params`. None: there are none."""
        return sections.instructions(self.custom_instruction, self.backend_params)

    def init_nlip_router(self, tool_manager: object | None = None, mcp_executor: object | None = None) -> None:
        """Make sure that the messages of this agent's runs can be written. Runs have their own tools, so there is
        nothing to route to: both arguments change nothing.

        Raises `UnsupportedSettingError` where `enable_nlip` is on, and the package of the standard is not installed.
        """
        del tool_manager, mcp_executor
        if self.enable_nlip and find_spec("nlip_sdk") is None:
            raise UnsupportedSettingError("enable_nlip", 'it needs pip install "massgen-mcp[nlip]"')

    # -- one factory per backend ----------------------------------------------------------------------------------

    @classmethod
    def create_chatcompletion_config(
        cls,
        model: str = "gpt-oss-120b",
        enable_web_search: bool = False,
        enable_code_interpreter: bool = False,
        **kwargs: object,
    ) -> "AgentConfig":
        """Any server that speaks like OpenAI's Chat Completions; `base_url` among `kwargs` says where.

        The two switches ask for the tools of the provider at that address, in its own way: OpenAI's through its
        Responses API, which it is without a `base_url`. A host without such tools is refused when the config is used.
        """
        return cls(
            sections.section(
                "chatcompletion",
                model,
                kwargs,
                enable_web_search=enable_web_search,
                enable_code_interpreter=enable_code_interpreter,
            )
        )

    @classmethod
    def create_openai_config(
        cls,
        model: str = "gpt-4o-mini",
        enable_web_search: bool = False,
        enable_code_interpreter: bool = False,
        **kwargs: object,
    ) -> "AgentConfig":
        """OpenAI through its Responses API, with its own search and code execution as wanted."""
        return cls(
            sections.section(
                "openai",
                model,
                kwargs,
                enable_web_search=enable_web_search,
                enable_code_interpreter=enable_code_interpreter,
            )
        )

    @classmethod
    def create_claude_config(
        cls,
        model: str = "claude-3-sonnet-20240229",
        enable_web_search: bool = False,
        enable_code_execution: bool = False,
        **kwargs: object,
    ) -> "AgentConfig":
        """Anthropic's Messages API, with its own search and code execution as wanted."""
        return cls(
            sections.section(
                "claude",
                model,
                kwargs,
                enable_web_search=enable_web_search,
                enable_code_execution=enable_code_execution,
            )
        )

    @classmethod
    def create_grok_config(
        cls, model: str = "grok-2-1212", enable_web_search: bool = False, **kwargs: object
    ) -> "AgentConfig":
        """xAI through its Responses API, with its search of the web; `enable_x_search` among `kwargs` searches X."""
        return cls(sections.section("grok", model, kwargs, enable_web_search=enable_web_search))

    @classmethod
    def create_lmstudio_config(
        cls, model: str = "gpt-4o-mini", enable_web_search: bool = False, **kwargs: object
    ) -> "AgentConfig":
        """LM Studio on this machine, or where `base_url` among `kwargs` says. It needs no key.

        It has no search of its own: `enable_web_search` is here because the other factories have it, changes nothing,
        and warns.
        """
        if enable_web_search:
            warnings.warn("LM Studio has no web search; enable_web_search changes nothing", UserWarning, stacklevel=2)
        return cls(sections.section("lmstudio", model, kwargs))

    @classmethod
    def create_vllm_config(cls, model: str | None = None, **kwargs: object) -> "AgentConfig":
        """vLLM on this machine, or where `base_url` says. Without a model: the first one that the server offers."""
        return cls(sections.section("vllm", model, kwargs))

    @classmethod
    def create_sglang_config(cls, model: str | None = None, **kwargs: object) -> "AgentConfig":
        """SGLang on this machine, or where `base_url` says. Without a model: the first one that the server offers."""
        return cls(sections.section("sglang", model, kwargs))

    @classmethod
    def create_gemini_config(
        cls,
        model: str = "gemini-2.5-flash",
        enable_web_search: bool = False,
        enable_code_execution: bool = False,
        **kwargs: object,
    ) -> "AgentConfig":
        """Google Gemini through its own API, with Google Search and its own code execution as wanted."""
        return cls(
            sections.section(
                "gemini",
                model,
                kwargs,
                enable_web_search=enable_web_search,
                enable_code_execution=enable_code_execution,
            )
        )

    @classmethod
    def create_zai_config(
        cls, model: str = "glm-4.5", base_url: str = "https://api.z.ai/api/paas/v4/", **kwargs: object
    ) -> "AgentConfig":
        """Z.ai through its Chat Completions; `base_url` is the root of the API."""
        return cls(sections.section("zai", model, kwargs, base_url=base_url))

    @classmethod
    def create_azure_openai_config(
        cls,
        deployment_name: str = "gpt-4",
        endpoint: str | None = None,
        api_key: str | None = None,
        api_version: str = "2024-02-15-preview",
        **kwargs: object,
    ) -> "AgentConfig":
        """A deployment of Azure OpenAI.

        `endpoint` is the root of the resource (default: AZURE_OPENAI_ENDPOINT), `api_key` its key (default:
        AZURE_OPENAI_API_KEY). A key given here serves this process alone, its runs included, and goes to `endpoint`. No
        config stores it: what is written to a file names a variable, to be set before another process reads it.
        """
        return cls(
            sections.section(
                "azure_openai", deployment_name, kwargs, endpoint=endpoint, api_key=api_key, api_version=api_version
            )
        )

    @classmethod
    def create_claude_code_config(
        cls,
        model: str = "claude-sonnet-4-20250514",
        system_prompt: str | None = None,
        allowed_tools: list[str] | None = None,
        disallowed_tools: list[str] | None = None,
        max_thinking_tokens: int = THINKING_TOKENS,
        cwd: str | None = None,
        **kwargs: object,
    ) -> "AgentConfig":
        """Claude Code as an agent, with the team's tools: files in its workspace, commands in the sandbox, no web.

        `disallowed_tools` are patterns of what it may not do; without them: removing files, changing permissions and
        owners, becoming another user. Of commands only all can be forbidden (`Bash`); the sandbox is what protects. One
        that names a file tool is refused when the config is used. `max_thinking_tokens` other than the default also
        becomes a `reasoning_effort`. `cwd` is a directory to work on, which the agent is shown as a context path; a
        relative one is only a name. `allowed_tools` is deprecated: name what is forbidden instead.
        """
        if allowed_tools is not None:
            message = "allowed_tools is deprecated; use disallowed_tools to name what is forbidden"
            warnings.warn(message, DeprecationWarning, stacklevel=2)
        return cls(
            sections.section(
                sections.CLAUDE_CODE,
                model,
                kwargs,
                system_prompt=system_prompt,
                allowed_tools=allowed_tools,
                disallowed_tools=list(sections.DISALLOWED_TOOLS) if disallowed_tools is None else disallowed_tools,
                max_thinking_tokens=max_thinking_tokens,
                cwd=cwd,
            )
        )

    # -- one factory per kind of task -----------------------------------------------------------------------------

    @classmethod
    def for_research_task(cls, model: str = "gpt-4o", backend: str = "openai") -> "AgentConfig":
        """An agent that searches the web. Raises `MassgenError("config_invalid")` for a backend that cannot.

        The default model is OpenAI's; with the default, an agent of Anthropic, Google or xAI takes their strong one.
        """
        return cls(sections.with_tool(backend, model, "web_search"))

    @classmethod
    def for_computational_task(cls, model: str = "gpt-4o", backend: str = "openai") -> "AgentConfig":
        """An agent that runs code. Raises `MassgenError("config_invalid")` for a backend that cannot.

        The default model as in `for_research_task`.
        """
        return cls(sections.with_tool(backend, model, "code_interpreter", "code_execution"))

    @classmethod
    def for_analytical_task(cls, model: str = "gpt-4o-mini", backend: str = "openai") -> "AgentConfig":
        """An agent that only thinks: no tools of the provider."""
        return cls(sections.plain(backend, model))

    @classmethod
    def for_expert_domain(
        cls, domain: str, expertise_level: str = "expert", model: str = "gpt-4o", backend: str = "openai"
    ) -> "AgentConfig":
        """An agent that answers within one field, such as "econometrics", as an expert, specialist or researcher."""
        return cls(sections.plain(backend, model)).with_custom_instruction(sections.expertise(domain, expertise_level))

    # -- conversations --------------------------------------------------------------------------------------------

    def build_conversation(
        self, task: str, agent_summaries: dict[str, str] | None = None, session_id: str | None = None
    ) -> dict[str, Any]:
        """What an agent is told at the beginning of a round, ready for a backend or a `ChatAgent`.

        `agent_summaries` are the answers so far by agent id. Without any the agent can only answer (case 1); with some
        it may also vote (case 2), under neutral names that `agent_mapping` of the result leads back to the ids.

        Returns `system_message`, `user_message`, `messages`, `tools`, `agent_mapping`, `backend_params`, `agent_id`,
        `session_id`.
        """
        conversation = self._templates.build_initial_conversation(
            task, agent_summaries, own_id=self.agent_id, voting_sensitivity=self.voting_sensitivity
        )
        if own := self.get_system_message():
            system = f"{own}\n\n{conversation['system_message']}"
            _, user = conversation["messages"]
            conversation |= {"system_message": system, "messages": [{"role": "system", "content": system}, user]}
        return {**conversation, **self._labels(), "session_id": session_id}

    def add_enforcement_message(self, conversation_messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The messages, and after them what an agent is told that used neither `new_answer` nor `vote` (case 3)."""
        return [*conversation_messages, {"role": "user", "content": self._templates.enforcement_message()}]

    def continue_conversation(
        self,
        existing_messages: list[dict[str, Any]],
        additional_message: object = None,
        additional_message_role: str = "user",
        enforce_tools: bool = False,
    ) -> dict[str, Any]:
        """Go on with a conversation (cases 3 and 4); the given list stays as it is.

        `additional_message` is text said by `additional_message_role` ("user" or "assistant"), or a whole message as a
        dictionary, such as a tool's result. With `enforce_tools` the enforcement message comes last. The tools are
        those of `build_conversation`. Returns `messages`, `backend_params`, `agent_id`. Raises
        `MassgenError("invalid_arguments")` for another role; text of a tool needs the id of its call, see
        `add_tool_result`.
        """
        messages = [*existing_messages]
        if isinstance(additional_message, Mapping):
            messages.append(dict(cast("Mapping[str, Any]", additional_message)))
        elif additional_message is not None:
            if additional_message_role not in _SPEAKERS:
                raise MassgenError(
                    "invalid_arguments",
                    f"additional_message_role {additional_message_role[:60]!a}: text is of {' or '.join(_SPEAKERS)}; "
                    "for a tool's result use add_tool_result",
                )
            messages.append({"role": additional_message_role, "content": str(additional_message)})
        if enforce_tools:
            messages = self.add_enforcement_message(messages)
        return {"messages": messages, **self._labels()}

    def handle_case3_enforcement(self, existing_messages: list[dict[str, Any]]) -> dict[str, Any]:
        """Go on after a reply that used no workflow tool: the messages with the enforcement message at their end."""
        return self.continue_conversation(existing_messages, enforce_tools=True)

    def add_tool_result(
        self, existing_messages: list[dict[str, Any]], tool_call_id: str, result: str
    ) -> dict[str, Any]:
        """Go on after a tool call: the messages with the call's result, good or bad, at their end."""
        message = {"role": "tool", "tool_call_id": tool_call_id, "content": result}
        return self.continue_conversation(existing_messages, message)

    def handle_case4_error_recovery(
        self, existing_messages: list[dict[str, Any]], clarification: str | None = None
    ) -> dict[str, Any]:
        """Go on after a tool failed: the messages, ready to be sent again, with a clarification if there is one."""
        return self.continue_conversation(existing_messages, clarification)

    @property
    def _templates(self) -> MessageTemplates:
        return self.message_templates or get_templates()

    def _labels(self) -> dict[str, Any]:
        return {"backend_params": self.get_backend_params(), "agent_id": self.agent_id}

    # -- to the engine, and to plain data -------------------------------------------------------------------------

    def get_backend_params(self) -> dict[str, Any]:
        """A copy of the backend parameters, switches of tools included."""
        return copy.deepcopy(self.backend_params)

    def to_config_dict(self, environ: Mapping[str, str] | None = None) -> dict[str, Any]:
        """The config of this agent alone, for `run(..., config_dict=...)`; for several see `team_config`. Only settings
        that differ from the engine's defaults are in it.
        """
        self.init_nlip_router()
        agent: dict[str, Any] = {} if self.agent_id is None else {"id": self.agent_id}
        if self.enable_nlip:
            agent["enable_nlip"] = True
        agent["backend"] = sections.backend_section(self.backend_params, os.environ if environ is None else environ)
        if system := self.get_system_message():
            agent["system_message"] = system
        if self.message_templates is not None and (texts := self.message_templates.overrides):
            agent["message_templates"] = texts
        team = {"orchestrator": self._rules(), "timeout_settings": self._timeouts()}
        return {"agents": [agent], **{name: settings for name, settings in team.items() if settings}}

    def _rules(self) -> dict[str, Any]:
        coordination = asdict(settings_from(CoordinationConfig, self.coordination_config, "coordination_config"))
        own = {one.name: getattr(self, one.name) for one in fields(self) if one.name in OrchestratorConfig.model_fields}
        del own["enable_nlip"]  # the agent's own; a team need not agree
        rules = sections.changed(own, _ENGINE)
        if aids := sections.changed(coordination, _ENGINE.coordination):
            rules["coordination"] = aids
        return rules

    def _timeouts(self) -> dict[str, Any]:
        timeouts = settings_from(TimeoutConfig, self.timeout_config, "timeout_config")
        return sections.changed(asdict(timeouts), TimeoutSettings())

    def to_config(self, environ: Mapping[str, str] | None = None) -> Config:
        """The same, validated and frozen. Raises `MassgenError("config_invalid")` with all problems at once."""
        data = self.to_config_dict(environ)
        environ = with_given_keys(os.environ) if environ is None else environ
        return config_from_data(data, type(self).__name__, environ=environ)

    def create_backend(self, environ: Mapping[str, str] | None = None) -> Backend:
        """The model that `backend_params` describe, with its key out of `environ` (default: the process's). A key that
        was given as text is used and stays in this process.

        It is the caller's to close. Raises `MassgenError("config_invalid")`, and `BackendError` if a key is missing.
        """
        params = mapping(self.backend_params, "backend_params")
        environ = sections.with_written_key(params, os.environ if environ is None else environ)
        return make_backend(self.to_config(environ).agents[0].backend, environ)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data, for `from_dict`. What stands in `backend_params` stands in it, keys too."""
        data: dict[str, Any] = {one.name: getattr(self, one.name) for one in fields(self)}
        templates = self.message_templates
        data["message_templates"] = None if templates is None else templates.overrides
        data["timeout_config"] = asdict(self.timeout_config)
        data["coordination_config"] = asdict(self.coordination_config)
        data["custom_system_instruction"] = data.pop("custom_instruction")
        return copy.deepcopy(data)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "AgentConfig":
        """The config that `to_dict` was made of; what is left out is at its default.

        Raises `MassgenError("config_invalid")` for unknown keys, with the nearest one.
        """
        known = [one.name for one in fields(cls) if one.init]
        given = copy.deepcopy(checked_keys(data, [*known, "custom_system_instruction"], "AgentConfig"))
        instruction = given.pop("custom_system_instruction", None)
        kinds = {"timeout_config": TimeoutConfig, "coordination_config": CoordinationConfig}
        for name, kind in kinds.items():
            if name in given:
                given[name] = settings_from(kind, given[name], name)
        if "backend_params" in given:
            given["backend_params"] = mapping(given["backend_params"], "backend_params")
        texts = given.get("message_templates")
        if texts is not None and not isinstance(texts, MessageTemplates):
            given["message_templates"] = MessageTemplates(**checked_keys(texts, TEMPLATES, "message_templates"))
        config = cls(**given)
        config.custom_instruction = instruction
        return config


create_research_config = AgentConfig.for_research_task
create_computational_config = AgentConfig.for_computational_task
create_analytical_config = AgentConfig.for_analytical_task


def _warn_of_custom_instruction() -> None:
    warnings.warn(
        "custom_system_instruction is deprecated; put system_prompt into backend_params "
        "(for Claude Code system_prompt or append_system_prompt)",
        DeprecationWarning,
        stacklevel=3,
    )
