"""Writes docs/config.md from the models of a config.

The models own names, types, defaults and meanings; here is in which order they are told, and an example of each part.
"""

import inspect
import json
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from pydantic import BaseModel

from docs.kinds import default, kind, said
from docs.markdown import WRITTEN, anchor, block, table
from massgen_mcp.config.loader import config_places, parse_config
from massgen_mcp.config.models.ag2 import (
    Ag2AgentConfig,
    Ag2BackendConfig,
    Ag2GroupConfig,
    Ag2Manager,
    Ag2ModelConfig,
    Ag2Pattern,
    CodeExecution,
    CodeExecutor,
)
from massgen_mcp.config.models.backends import (
    AcpBackendConfig,
    ClaudeCodeBackendConfig,
    InstalledBackendConfig,
    ScriptedBackendConfig,
    ScriptStep,
)
from massgen_mcp.config.models.commands import CommandsConfig
from massgen_mcp.config.models.common import ListedBackendConfig, Price, PricedBackendConfig
from massgen_mcp.config.models.config import (
    AgentSettings,
    AgentTexts,
    Config,
    CustomTool,
    HttpMcpServer,
    McpServerSettings,
    StdioServer,
)
from massgen_mcp.config.models.http_backends import (
    AzureBackendConfig,
    HttpBackendConfig,
    LocalBackendConfig,
    LocalServerConfig,
    OllamaBackendConfig,
    ProviderBackendConfig,
)
from massgen_mcp.config.models.orchestrator import (
    BudgetConfig,
    ContextPath,
    CoordinationSettings,
    NestedConfig,
    OrchestratorConfig,
    ProviderLimits,
    TimeoutSettings,
)
from massgen_mcp.config.schema import FILLED_IN, about, config_schema, meanings

ELSEWHERE = "/srv/images/python.tar"
"""An image in an example of docs/commands.md."""
TOLD_APART = (PricedBackendConfig, ListedBackendConfig, HttpBackendConfig, LocalServerConfig, McpServerSettings)
WHOLE = (ProviderBackendConfig, ScriptedBackendConfig, ClaudeCodeBackendConfig, AcpBackendConfig)
"""Base classes whose fields have a table of their own, and models whose table has all fields nevertheless."""

HEAD = f"""\
# Config reference

{WRITTEN}
A config describes a team in YAML or JSON. massgen reads the file that you pass with `--config` (in `start_run`, with
`team`). Without one, it reads the project's `.massgen/config.yaml` or, if that doesn't exist,
`~/.config/massgen/config.yaml` ([which configs it trusts](security.md#configs)). `massgen validate FILE` lists all
errors with their line numbers.

## The twelve most-used keys

```yaml
agents:
  - id: gpt
    backend: {{ type: openai, model: gpt-6.2-sol, reasoning_effort: high }}
    system_message: You know PostgreSQL well.
  - id: claude
    backend: {{ type: claude, model: claude-opus-5-5 }}
  - id: ours
    backend: {{ type: chatcompletion, model: ours, base_url: "https://llm.example.com/v1", api_key_env: OUR_API_KEY }}
orchestrator:
  context_paths: [{{ path: ., permission: write }}]
  commands: {{ enabled: true }}
  checks: ["make test"]
budget: {{ max_usd: 5 }}
timeout_settings: {{ orchestrator_timeout_seconds: 900 }}
```

| key | purpose |
|---|---|
| `type`, `model` | an agent's provider and model ([all providers](backends.md)) |
| `base_url`, `api_key_env` | another server's address, and the environment variable that holds its key |
| `reasoning_effort` | how long the model thinks |
| `id`, `system_message` | the agent's name and instructions |
| `context_paths` | files for the team; `write` allows massgen to [apply changes](code-work.md#applying-the-changes) |
| `commands` | lets agents run [commands](commands.md) in a sandbox |
| `checks` | your commands that [test each answer](code-work.md#checks) |
| `max_usd`, `orchestrator_timeout_seconds` | a run's maximum cost and duration (default: 10 US dollars, 1,800 s) |

The tables below list all keys. In the type column, `≤200` is the maximum number of characters or list entries, and
`>0-60` means more than 0 and up to 60. Keys are optional unless marked *required*.

## In an editor

`massgen configs --schema > massgen.schema.json` writes the [JSON Schema](config.schema.json). Editors with Red
Hat's YAML extension, such as VS Code, use the schema if the config starts with this line:

```yaml
# yaml-language-server: $schema=massgen.schema.json
agents:
  - backend: {{ type: scripted }}
```

massgen also loads files with [MassGen's key names](massgen-configs.md), but the editor flags the names that differ.
"""

TAIL = """
## Other spellings

| instead of | you can write |
|---|---|
| `api_key_env: NAME` | `api_key: ${NAME}` |
| `type: claude`, `lmstudio`, `llamacpp`, ... | the other names in the [backends](backends.md) table |
| `commands:` beside `backend` | `commands:` under it |
| `mcp_servers` as a mapping | a list whose entries have a `name` |
| keys on this page | [MassGen's keys](massgen-configs.md#taken-over) with the same meaning |

massgen rejects YAML aliases, merge keys, tags and duplicate keys, and reports their line numbers.
"""


@dataclass(frozen=True)
class Section:
    title: str
    kinds: Mapping[str, type[BaseModel]]
    """Whose fields are listed here, by the heading of each table; a single one has none."""
    place: str
    """Where they stand in a file."""
    example: str
    only_first: bool = False
    """Whether the others have no table here, but stand in the schema alone."""
    shown: bool = True
    """Whether the example is on the page; of the others the first one, or a page of their own, shows enough."""


SECTIONS = (
    Section(
        "The file",
        {"": Config},
        "Top-level keys of the file.",
        """
agents:
  - id: gpt
    backend: { type: openai, model: gpt-5 }
  - id: claude
    backend: { type: claude, model: claude-sonnet-4-5 }
orchestrator:
  max_new_answers_per_agent: 3
  context_paths:
    - { path: src, permission: write }
  checks: ["python -m pytest -q"]
  coordination: { max_orchestration_restarts: 1 }
timeout_settings:
  orchestrator_timeout_seconds: 900
budget:
  max_usd: 5
limits:
  openai: { concurrency: 8 }
nested:
  max_depth: 1
apply: ask  # or always: `massgen` applies the changes without asking
notify: [notify-send, massgen has ended]  # in your own config alone
""",
        shown=False,
    ),
    Section(
        "Agents",
        {"Agent": AgentSettings, "Your own wording": AgentTexts, "Custom tool": CustomTool},
        "Entries of `agents`, up to ten. `message_templates` is a mapping, `custom_tools` a list.",
        """
agents:
  - id: reviewer
    system_message: You look for what others overlook.
    message_templates:
      evaluation_system_message: Judge the answers by their sources.
      final_presentation_system_message: Write the final answer for a beginner.
      enforcement_message: Answer or vote now.
    backend:
      type: openai
      model: gpt-5
      mcp_servers:
        tickets: { command: tickets-server }
      custom_tools:
        - { name: weigh, path: scales.py, function: weigh, description: Weighs., preset_args: { unit: g } }
      allowed_tools: [find_ticket, read_ticket, delete_ticket]
      exclude_tools: [delete_ticket]
      exclude_file_operation_mcps: false
      commands: true
    enable_nlip: false
""",
    ),
    Section(
        "Provider backends",
        {"": ProviderBackendConfig},
        "Under an agent's `backend`. For each provider's API key, address and tools, see [backends.md](backends.md).",
        """
agents:
  - id: solver
    backend:
      type: openai
      model: gpt-5
      base_url: https://api.openai.com/v1
      api_key_env: OPENAI_API_KEY
      reasoning_effort: high
      verbosity: low
      max_output_tokens: 20000
      enable_web_search: true
      enable_code_interpreter: true
      price_as: openai/gpt-5
      extra_body: { service_tier: flex }
  - id: searcher
    backend:
      type: grok
      model: grok-4
      temperature: 0.3
      top_p: 0.9
      enable_x_search: true
      enable_code_execution: false
      price: { input_usd_per_million: 3, output_usd_per_million: 15 }
      fallback: claude/claude-opus-5-5
""",
    ),
    Section(
        "Prices",
        {"": Price},
        "Under `price` of any backend, in US dollars ([costs.md](costs.md)).",
        """
agents:
  - backend:
      type: chatcompletion
      model: our-model
      base_url: http://127.0.0.1:8000/v1
      price:
        input_usd_per_million: 0.5
        output_usd_per_million: 2
        cached_input_usd_per_million: 0.05
        cache_write_usd_per_million: 0.6
        web_search_usd_per_thousand: 10
""",
        shown=False,
    ),
    Section(
        "Your own model servers",
        {
            "All local servers": LocalServerConfig,
            "OpenAI-compatible servers": LocalBackendConfig,
            "Ollama": OllamaBackendConfig,
        },
        "Under `backend`, in addition to the keys for providers ([local models](local-models.md)).",
        """
agents:
  - id: small
    backend: { type: lmstudio, model: auto, base_url: "http://127.0.0.1:1234/v1" }
  - id: large
    backend: { type: ollama, model: qwen3, context_length: 32768, keep_alive: 30m }
""",
    ),
    Section(
        "Azure OpenAI",
        {"": AzureBackendConfig},
        "Under `backend`. All keys for providers except `base_url` also apply.",
        """
agents:
  - backend:
      type: azure_openai
      model: gpt-5
      endpoint: https://ada.openai.azure.com
      deployment: gpt-5-of-ada
      api_version: v1
""",
    ),
    Section(
        "Claude Code",
        {"": ClaudeCodeBackendConfig},
        "Under `backend`, with `type: claude_code` ([Claude Code](claude-code.md)).",
        """
agents:
  - backend:
      type: claude_code
      model: sonnet
      reasoning_effort: high
      max_turns: 20
      use_login: true
  - backend:
      type: claude_code
      model: opus
      api_key_env: ANTHROPIC_API_KEY
      max_thinking_tokens: 8000
      price: { input_usd_per_million: 15, output_usd_per_million: 75 }
      fallback: claude/claude-opus-5-5
""",
        shown=False,
    ),
    Section(
        "Agent CLIs",
        {"": AcpBackendConfig},
        "Under `backend`, with `type: acp` ([agent CLIs](acp.md)).",
        """
agents:
  - backend:
      type: acp
      preset: codex
      model: gpt-5
      reasoning_effort: high
      login: own
  - backend:
      type: acp
      command: [goose, acp]
      env: [GOOSE_PROVIDER, GOOSE_MODEL]
      hosts: [api.example.com:443]
      enclosure: required
      price: { input_usd_per_million: 1, output_usd_per_million: 5 }
      fallback: claude/claude-opus-5-5
""",
        shown=False,
    ),
    Section(
        "Adapters",
        {"": InstalledBackendConfig},
        "Usually written as `type: NAME` with the adapter's own keys ([your own agent](acp.md#a-member-of-your-own)).",
        """
agents:
  - backend:
      type: installed
      adapter: poet
      settings: { mood: glad }
      price: { input_usd_per_million: 0, output_usd_per_million: 0 }
      fallback: claude/claude-opus-5-5
""",
        shown=False,
    ),
    Section(
        "AG2",
        {
            "An AG2 agent of the team": Ag2BackendConfig,
            "The agent": Ag2AgentConfig,
            "Its model": Ag2ModelConfig,
            "Its code": CodeExecution,
            "Where its code runs": CodeExecutor,
            "A group chat": Ag2GroupConfig,
            "Who speaks": Ag2Pattern,
            "Who chooses": Ag2Manager,
        },
        "Under `backend`, with `type: ag2` ([AG2](ag2.md)). The [schema](config.schema.json) lists all keys.",
        """
agents:
  - id: coder
    backend:
      type: ag2
      agent_config:
        type: assistant
        name: coder
        system_message: You write short programs.
        human_input_mode: NEVER
        llm_config:
          api_type: openai
          model: gpt-5
          base_url: https://api.openai.com/v1
          api_key_env: OPENAI_API_KEY
          temperature: 0.2
          top_p: 0.9
          max_tokens: 8000
          reasoning_effort: low
        code_execution_config:
          executor: { type: LocalCommandLineCodeExecutor, timeout: 60, work_dir: code }
  - id: circle
    backend:
      type: ag2
      group_config:
        llm_config: { model: gpt-5 }
        agents:
          - { name: writer, description: Writes. }
          - { name: critic, description: Finds mistakes. }
        pattern:
          type: auto
          initial_agent: writer
          group_manager_args: { llm_config: { model: gpt-5-mini } }
        user_agent: { name: User }
        max_rounds: 10
""",
        only_first=True,
        shown=False,
    ),
    Section(
        "Scripted agents",
        {"A scripted agent": ScriptedBackendConfig, "A step": ScriptStep},
        "Under `backend`, for tests that need no model. The [schema](config.schema.json) lists the keys of a step.",
        """
agents:
  - id: ada
    backend:
      type: scripted
      model: ada
      chunk_delay_seconds: 0.02
      presentation: Forty-two, as all found.
      price: { input_usd_per_million: 1, output_usd_per_million: 2 }
      fallback: claude/claude-opus-5-5
      script:
        - { call: list_files, arguments: { path: . } }
        - { say: Let me think. }
        - { answer: "42", delay_seconds: 0.1 }
        - { vote: forty, reason: It shows its work., same_as: [own], after_file: go-on }
  - id: bo
    backend: { type: scripted, script: [{ fail: rate_limited }, { answer: forty-two }, { hang: true }] }
""",
        only_first=True,
    ),
    Section(
        "MCP servers",
        {
            "Every server": McpServerSettings,
            "MCP program": StdioServer,
            "MCP server over HTTP": HttpMcpServer,
        },
        "Entries of `mcp_servers`, by name ([examples](mcp-servers.md)).",
        """
agents:
  - backend:
      type: scripted
      mcp_servers:
        tickets:
          type: stdio
          command: tickets-server
          args: [--readonly]
          env: { TICKETS_TOKEN: "${TICKETS_TOKEN}" }
          sandbox: true
          network: ["tickets.example.com:443"]
          readable: [/opt/tickets]
          allowed_tools: [find_ticket]
          shared: true
          required: true
          start_seconds: 10
          call_seconds: 60
        docs:
          type: streamable_http
          url: https://docs.example.com/mcp
          headers: { Authorization: "Bearer ${DOCS_TOKEN}" }
          exclude_tools: [publish]
""",
        shown=False,
    ),
    Section(
        "Commands",
        {"": CommandsConfig},
        "Under `orchestrator.commands` for all agents, or under `commands` of one agent ([examples](commands.md)).",
        """
agents:
  - id: builder
    backend: { type: openai, model: gpt-5 }
    commands:
      enabled: true
      sandbox: docker
      image: python:3.12-slim
      open_network: true
  - id: tester
    backend: { type: claude, model: claude-sonnet-4-5 }
orchestrator:
  commands:
    enabled: true
    sandbox: bubblewrap
    image_archive: image.tar
    readable: [/opt/toolchain]
    env: { CI: "1" }
    allowed: ["pytest", "make"]
    blocked: ["make deploy"]
    timeout_seconds: 60
    max_seconds: 600
    max_memory_mb: 1024
    max_cpus: 2
    max_processes: 128
    max_disk_mb: 512
    network: []
""",
        shown=False,
    ),
    Section(
        "Coordination",
        {
            "The orchestrator": OrchestratorConfig,
            "Context path": ContextPath,
            "Planning, memory and skills": CoordinationSettings,
        },
        "Under `orchestrator`; `context_paths` is a list, `coordination` a mapping (see [the rules](coordination.md)).",
        """
agents:
  - backend: { type: openai, model: gpt-5 }
  - backend: { type: claude, model: claude-sonnet-4-5 }
  - backend: { type: gemini, model: gemini-2.5-pro }
orchestrator:
  voting_sensitivity: balanced
  answer_novelty_requirement: balanced
  early_decision: proven
  final_answer_strategy: winner_present
  answer_format: text
  max_new_answers_per_agent: 3
  max_enforcement_retries: 2
  max_steps_per_round: 40
  first_answer_wait_seconds: 120
  show_reasons: true
  perspectives: true
  enable_filesystem: true
  allow_questions: true
  enable_nlip: true
  context_paths:
    - { path: src, permission: write, copy_ignored: [target], keep_outputs: ["*.so"] }
    - { path: notes.md, permission: read }
  commands: { enabled: true }
  setup: npm ci
  setup_timeout_seconds: 900
  checks: ["python -m pytest -q"]
  checks_policy: required
  checks_timeout_seconds: 300
  protect: ["tests/**"]
  coordination:
    enable_planning_mode: true
    planning_mode_instruction: Say what you would do, and do not do it yet.
    max_orchestration_restarts: 1
    enable_agent_task_planning: true
    max_tasks_per_plan: 20
    task_planning_filesystem_mode: true
    enable_memory_filesystem_mode: true
    use_skills: true
    massgen_skills: [file_search]
    skills_directory: skills
  decide: judge
  judge: agent3
  by: agent1
  effort: auto
  max_agents: 5
  refute: false
  order: listed
  run_scripts: true
  write_check: false
  skip_coordination_rounds: false
  debug_final_answer: Forty-two.
""",
        shown=False,
    ),
    Section(
        "Time limits",
        {"": TimeoutSettings},
        "Under `timeout_settings`, in seconds.",
        """
agents:
  - backend: { type: openai, model: gpt-5 }
timeout_settings:
  orchestrator_timeout_seconds: 1800
  round_timeout_seconds: 600
  first_round_timeout_seconds: 900
  call_timeout_seconds: 300
""",
        shown=False,
    ),
    Section(
        "Budget, limits and nested runs",
        {
            "Budget": BudgetConfig,
            "Provider limits": ProviderLimits,
            "Nested runs": NestedConfig,
        },
        "Under `budget` ([budget.md](budget.md)), `limits.TYPE` ([providers-traffic.md](providers-traffic.md#limits)) "
        "and `nested` ([nested-runs.md](nested-runs.md)).",
        """
agents:
  - backend: { type: openai, model: gpt-5 }
budget:
  max_usd: 5
  max_tokens: 2000000
  max_calls: 200
  at_cap: ask
limits:
  openai: { concurrency: 8, requests_per_minute: 500 }
nested:
  max_depth: 2
  max_runs: 3
  share_of_budget: 0.5
""",
        shown=False,
    ),
)


def page() -> str:
    return "".join([HEAD, *map(_section, SECTIONS), TAIL])


def schema() -> str:
    """The JSON Schema of a config, as `massgen configs --schema` prints it."""
    return json.dumps(config_schema(), indent=1) + "\n"


def load_example(text: str) -> Config:
    """As the user's own config, beside the files that the examples name."""
    with tempfile.TemporaryDirectory() as directory:
        base = Path(directory)
        for name in ("src", "skills"):
            (base / name).mkdir()
        for name in ("notes.md", "image.tar"):
            (base / name).touch()
        (base / "scales.py").write_text("def weigh(item, unit): ...")
        _, own = config_places(base, {})
        return parse_config(text.replace(ELSEWHERE, "image.tar"), str(own), {}, base_dir=base)


def listed_fields(model: type[BaseModel]) -> list[str]:
    """Those that stand in the model's own table: what is told of a base class in a table of its own is left out."""
    names = [
        name
        for name in model.model_fields
        if model in WHOLE or (owner := _owner(model, name)) is model or owner not in TOLD_APART
    ]
    first = [name for name in ("type", "model") if name in names]
    return [*first, *(name for name in names if name not in first)]


def _owner(model: type[BaseModel], name: str) -> type:
    return next(each for each in model.__mro__ if name in inspect.get_annotations(each))


def _section(section: Section) -> str:
    load_example(section.example)
    listed = _listed(section)
    tables = "\n".join(_fields(title if len(listed) > 1 else "", model) for title, model in listed.items())
    example = f"{block('yaml', section.example)}\n" if section.shown else ""
    return f"\n## {section.title}\n\n{section.place}\n\n{example}{tables}"


def _listed(section: Section) -> Mapping[str, type[BaseModel]]:
    """What has a table on the page."""
    return dict(list(section.kinds.items())[:1]) if section.only_first else section.kinds


def _fields(title: str, model: type[BaseModel]) -> str:
    schema = model.model_json_schema()
    required, told = cast("list[str]", schema.get("required", ())), meanings(model)
    named = [name for name in listed_fields(model) if not (name == "type" and _named_by_its_section(model))]
    lines = [
        [
            f"`{name}`",
            kind(schema["properties"][name], _linked),
            default(schema["properties"][name], required=name in required and name not in FILLED_IN),
            linked(said(model, name, told)),
        ]
        for name in named
    ]
    heading = f"### {title}\n\n{linked(about(model))}\n\n" if title else ""
    return heading + table(["key", "type", "default", "meaning"], lines)


def _named_by_its_section(model: type[BaseModel]) -> bool:
    """Whether it is a backend of one `type` only."""
    return issubclass(model, PricedBackendConfig) and "const" in model.model_json_schema()["properties"]["type"]


def linked(text: str) -> str:
    """With links in place of the paths of other pages."""
    return re.sub(r"docs/([\w-]+\.md)", r"[\1](\1)", text)


def _linked(name: str) -> str:
    """The table of a model."""
    for section in SECTIONS:
        for title, model in section.kinds.items():
            if model.__name__ == name:
                heading = section.title if section.only_first else title or section.title
                return f"[{heading}](#{anchor(heading)})" if model in _listed(section).values() else "mapping"
    raise KeyError(name)
