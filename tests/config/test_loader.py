"""From files and dictionaries to configs: all problems at once, nothing secret echoed, looked up in a known order."""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from massgen_mcp.config import loader
from massgen_mcp.config.adapters import list_own_types
from massgen_mcp.config.examples import example_path, list_examples
from massgen_mcp.config.models.config import Config
from massgen_mcp.config.models.http_backends import HttpBackendConfig, LocalBackendConfig
from massgen_mcp.config.providers.catalog import PROVIDERS
from massgen_mcp.errors import MassgenError
from tests.harness import ROOT

KINDS = ", ".join(sorted({*(row.type for row in PROVIDERS), *list_own_types()}))
OPENAI = "agents:\n  - backend: {type: openai, model: gpt-5}\n"


def parsed(text: str, base_dir: Path | None = None, **environ: str) -> Config:
    return loader.parse_config(text, "team.yaml", environ, base_dir=base_dir)


def problems(text: str) -> list[str]:
    with pytest.raises(MassgenError) as caught:
        parsed(text)
    assert caught.value.code == "config_invalid"
    return str(caught.value).splitlines()


def backend_of(config: Config) -> HttpBackendConfig:
    backend = config.agents[0].backend
    assert isinstance(backend, HttpBackendConfig)
    return backend


def test_all_problems_of_a_file_come_at_once_with_line_place_and_nearest_key() -> None:
    text = """\
agents:
  - id: "a b"
    backend:
      type: opnai
  - backend: {type: openai, modle: gpt-5, temperature: hot}
    systemmessage: hi
  - backend: {type: scripted, script: [{anser: x}, {answer: x, vote: y}]}
  - 5
orchestrator:
  enable_filesystem: yes
  max_steps_per_round: 0
timeout_setting: {}
"""
    found = problems(text)
    assert [line.split(": ")[:2] for line in found] == [
        ["team.yaml:2", "agents[0].id"],
        ["team.yaml:3", "agents[0].backend.model"],
        ["team.yaml:4", "agents[0].backend.type"],
        ["team.yaml:5", "agents[1].backend.model"],
        ["team.yaml:5", "agents[1].backend.temperature"],
        ["team.yaml:5", "agents[1].backend.modle"],
        ["team.yaml:6", "agents[1].systemmessage"],
        ["team.yaml:7", "agents[2].backend.script[0].anser"],
        ["team.yaml:7", "agents[2].backend.script[1]"],
        ["team.yaml:8", "agents[3]"],
        ["team.yaml:10", "orchestrator.enable_filesystem"],
        ["team.yaml:11", "orchestrator.max_steps_per_round"],
        ["team.yaml:12", "timeout_setting"],
    ]
    assert [line.split(": ", 2)[2] for line in found] == [
        f"{AN_ID}; if you put it in quotation marks, use ' or \"",
        "a required key is missing",
        f"unknown type; did you mean 'openai'? valid types: {KINDS}",
        "a required key is missing",
        "expected a number",
        "unknown key; did you mean 'model'?",
        "unknown key; did you mean 'system_message'?",
        "unknown key; did you mean 'answer'?",
        "a script step needs exactly one of: answer, vote, say, call, fail, hang",
        f"expected a mapping, such as {ENTRY}",
        "expected true or false",
        "expected greater than or equal to 1",
        "unknown key; did you mean 'timeout_settings'?",
    ]


def test_a_key_that_only_begins_as_another_one_is_not_taken_for_it() -> None:
    (found,) = problems("agent: {backend: {type: scripted}}\norchestrator:\n  enable_persons: true")
    assert "orchestrator.enable_persons: unknown key; known here: allow_questions, " in found


AN_ID = "expected at most 64 letters, digits, '_', '.' or '-', starting with a letter or digit"
ENTRY = "{id: ada, backend: {type: openai, model: NAME}}"
EFFORTS = "'none', 'minimal', 'low', 'medium', 'high', 'xhigh' or 'max'"
AN_API = "expected an address without ? and #, such as https://host:8000/v1"
A_HOST = "expected an address with a plain host name (and port), such as https://host:8000/v1"
OPENAIS_TOOLS = "openai doesn't offer this; it offers only enable_web_search and enable_code_interpreter"
SCRIPTED_KEYS = "chunk_delay_seconds, fallback, model, presentation, price, script, type"
AZURES_KEYS = (
    "api_key_env, api_version, deployment, enable_code_execution, enable_code_interpreter, enable_web_search, "
    "enable_x_search, endpoint, extra_body, fallback, max_output_tokens, model, price, price_as, reasoning_effort, "
    "temperature, top_p, type, verbosity"
)
NO_TOOLS = "groq doesn't offer this; it offers no built-in tools"


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "config: expected a mapping with the key `agents`; create a config with `massgen init`"),
        ("[]", 1, "config: expected a mapping with the key `agents`; create a config with `massgen init`"),
        ("{}", 1, f"agents: a required key is missing, such as [{ENTRY}]"),
        ("agents: []", 1, "agents: expected at least 1, found 0"),
        ("agents: 5", 1, f"agents: expected a list, such as [{ENTRY}]"),
        (
            "agent: {backend: {type: scripted}}\norchestrator:\n  budget: {max_usd: 1}",
            3,
            "orchestrator.budget: this key is not valid here; move it to the top level of the config",
        ),
        ("\nagent: 5", 2, f"agent: expected a mapping, such as {ENTRY}"),
        (
            "agent:\n  backend: {type: openai, modle: x, model: x}",
            2,
            "agent.backend.modle: unknown key; did you mean 'model'?",
        ),
        ("agent:\n  backend:\n    type: grok", 2, "agent.backend.model: a required key is missing"),
        (
            "agent:\n  backend: {type: groq, model: m, enable_web_search: true}",
            2,
            f"agent.backend.enable_web_search: {NO_TOOLS}",
        ),
        (
            "agent:\n  backend: {type: openai, model: m, enable_code_execution: true}",
            2,
            f"agent.backend.enable_code_execution: {OPENAIS_TOOLS}",
        ),
        (
            "agent:\n  backend: {type: azure_openai, model: m, base_url: 'https://x.openai.azure.com'}",
            2,
            f"agent.backend.base_url: unknown key; known here: {AZURES_KEYS}",
        ),
        (
            "agent:\n  backend: {type: azure_openai, model: m, endpoint: 'https://[::1'}",
            2,
            f"agent.backend.endpoint: {A_HOST}",
        ),
        *(
            (f"agent:\n  backend: {{{kind}: 'http://127.0.0.1:8000/{end}'}}", 2, f"agent.backend.{key}: {AN_API}")
            for key, kind in (
                ("base_url", "type: vllm, base_url"),
                ("base_url", "type: openai, model: x, base_url"),
                ("endpoint", "type: azure_openai, model: x, endpoint"),
            )
            for end in ("containers/create?name=x&", "a#", "v1?", "v1/#/x")
        ),
        (
            "agent:\n  backend: {type: azure_openai, model: m, deployment: a/b}",
            2,
            "agent.backend.deployment: expected at most 64 letters, digits, '_', '.' or '-'",
        ),
        ("agent:\n  backend: {model: x}", 2, f"agent.backend.type: a required key is missing; add one of: {KINDS}"),
        ("agent:\n  backend: {type: 7}", 2, f"agent.backend.type: unknown type; valid types: {KINDS}"),
        (
            "agent:\n  backend: {type: openai, model: x, base_url: 'https://[::1'}",
            2,
            f"agent.backend.base_url: {A_HOST}",
        ),
        (
            "agent:\n  backend: {type: openai, model: x, reasoning_effort: huge}",
            2,
            f"agent.backend.reasoning_effort: expected {EFFORTS}",
        ),
        (
            "agent:\n  backend: {type: scripted, zzz: 1}",
            2,
            f"agent.backend.zzz: unknown key; known here: {SCRIPTED_KEYS}",
        ),
    ],
)
def test_one_wrong_thing_is_one_problem(text: str, line: int, message: str) -> None:
    assert problems(text) == [f"team.yaml:{line}: {message}"]


def test_agent_and_agents_together_are_refused() -> None:
    text = OPENAI + "agent:\n  backend: {type: openai, model: gpt-5}\n"
    assert problems(text) == ["team.yaml:3: agent: write 'agent' or 'agents', not both"]


def test_agents_get_ids_in_their_order_and_one_agent_may_stand_alone() -> None:
    text = "agents:\n- backend: {type: scripted}\n- id: x\n  backend: {type: scripted}\n- backend: {type: scripted}\n"
    assert [agent.id for agent in parsed(text).agents] == ["agent1", "x", "agent3"]
    assert [agent.id for agent in parsed("agent:\n  backend: {type: scripted}\n").agents] == ["agent1"]


def test_equal_ids_are_found_even_when_other_things_are_wrong() -> None:
    text = "agents:\n- id: x\n  backend: {type: scripted}\n- id: x\n  backend: {type: scripted, a: 1}\n"
    assert problems(text)[0] == "team.yaml:4: agents[1].id: agent ids must be unique; agents[0] has the same id"
    assert len(problems(text)) == 2
    assert len(problems(text.replace(", a: 1", ""))) == 1


def test_anthropic_is_another_name_for_claude() -> None:
    assert backend_of(parsed("agent:\n  backend: {type: anthropic, model: claude-x}")).type == "claude"


@pytest.mark.parametrize(
    ("alias", "kind"), [("google", "gemini"), ("xai", "grok"), ("anthropic", "claude"), ("groq", "groq")]
)
def test_every_provider_is_a_type_of_its_own(alias: str, kind: str) -> None:
    assert backend_of(parsed(f"agent:\n  backend: {{type: {alias}, model: m}}")).type == kind


@pytest.mark.parametrize("kind", ["lmstudio", "vllm", "sglang"])
def test_a_local_server_needs_neither_model_nor_key_nor_address(kind: str) -> None:
    config = parsed(f"agent:\n  backend: {{type: {kind}}}")
    assert isinstance(backend_of(config), LocalBackendConfig)
    assert backend_of(config).model == "auto"
    loader.require_keys(config, {})


def test_azure_needs_an_address_and_a_key() -> None:
    config = parsed("agent:\n  backend: {type: azure_openai, model: gpt-5}")
    assert loader.missing_keys(config, {}) == ["AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_KEY"]
    with pytest.raises(MassgenError, match="agent 'agent1' needs AZURE_OPENAI_ENDPOINT"):
        loader.require_keys(config, {"AZURE_OPENAI_API_KEY": "k"})
    loader.require_keys(config, {"AZURE_OPENAI_API_KEY": "k", "AZURE_OPENAI_ENDPOINT": "https://x.openai.azure.com"})
    named = parsed("agent:\n  backend: {type: azure_openai, model: m, endpoint: 'https://x.openai.azure.com'}")
    assert loader.missing_keys(named, {}) == ["AZURE_OPENAI_API_KEY"]


def test_a_variable_as_api_key_becomes_its_name_and_its_value_is_never_read() -> None:
    config = parsed("agent:\n  backend: {type: openai, model: m, api_key: '${MY_KEY}'}", MY_KEY="sk-secret")
    assert backend_of(config).api_key_env == "MY_KEY"
    assert "sk-secret" not in config.model_dump_json()


@pytest.mark.parametrize(
    "backend",
    [
        "{type: openai, model: m, api_key: sk-secret}",
        "{type: openai, model: m, api_key: 'x${MY_KEY}sk-secret'}",
        "{type: openai, model: m, api_key: [sk-secret]}",
        "{type: openai, model: m, api_key: {sk-secret: sk-secret}}",
        "{type: openai, model: m, api_key_env: sk-secret}",
        "{type: scripted, api_key: sk-secret}",
        "{type: openai, model: m, base_url: 'https://sk-secret@host/v1'}",
        "{type: sk-secret, model: m}",
        "{type: openai, model: [sk-secret], temperature: sk-secret, extra_body: sk-secret}",
        "sk-secret",
    ],
)
def test_a_secret_in_the_wrong_place_is_refused_and_not_repeated(backend: str) -> None:
    listed = problems(f"agent:\n  backend: {backend}")
    assert all(line.startswith("team.yaml:2: agent.backend") for line in listed)
    assert "sk-secret" not in "\n".join(listed)


def test_a_literal_api_key_is_answered_with_what_to_write() -> None:
    listed = problems("agent:\n  backend: {type: openai, model: m, api_key: sk-secret}")
    assert listed == ["team.yaml:2: agent.backend.api_key: write api_key_env: NAME; never put a key in a file"]


def test_variables_elsewhere_stay_as_they_are_written_and_name_no_model() -> None:
    text = "agent:\n  system_message: '${{HOME}}'\n  backend: {{type: openai, model: '{}'}}"
    assert parsed(text.format("m"), HOME="/home").agents[0].system_message == "${HOME}"
    [listed] = problems(text.format("${MODEL}"))
    assert listed.startswith("team.yaml:3: agent.backend.model: massgen doesn't replace variables here; ")


def test_context_paths_become_absolute_and_must_exist(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "note.txt").touch()
    text = "agent:\n  backend: {type: scripted}\norchestrator:\n  context_paths:\n"
    config = parsed(f"{text}    - path: docs\n    - path: ~/note.txt\n", tmp_path, HOME=str(tmp_path))
    paths = [entry.path for entry in config.orchestrator.context_paths]
    assert paths == [str(tmp_path.resolve() / "docs"), str(tmp_path.resolve() / "note.txt")]
    for wrong, shown in (("absent", "absent"), ('"a\\0b"', "'a\\x00b'"), ("x" * 5000, f"{'x' * 300}...")):
        listed = problems(f"{text}    - path: {wrong}\n")
        message = f"file or directory not found or not readable: {shown}"
        assert listed == [f"team.yaml:5: orchestrator.context_paths[0].path: {message}"]


def test_massgens_names_for_directories_are_taken_and_change_nothing() -> None:
    plain = parsed("agent:\n  backend: {type: scripted}\n")
    named = parsed(
        "agent:\n  backend: {type: scripted, cwd: workspace1, exclude_file_operation_mcps: false}\n"
        "orchestrator: {snapshot_storage: .massgen/snapshots, agent_temporary_workspace: temp_workspaces}\n"
    )
    assert named == plain


@pytest.mark.parametrize("name", ["/etc", "../up", "a/../../b", "~/x", "''", "7", '"a\\0b"'])
def test_a_directory_outside_the_run_is_refused_wherever_it_is_named(name: str) -> None:
    listed = problems(
        f"agent:\n  backend:\n    type: scripted\n    cwd: {name}\norchestrator:\n  snapshot_storage: {name}\n"
        f"  agent_temporary_workspace: {name}\n"
    )
    assert [line.split(": expected a relative path")[0] for line in listed] == [
        "team.yaml:4: agent.backend.cwd",
        "team.yaml:6: orchestrator.snapshot_storage",
        "team.yaml:7: orchestrator.agent_temporary_workspace",
    ]


def test_commands_say_what_their_sandbox_cannot_have() -> None:
    for settings, told in (
        ("image: x", "set sandbox to docker or podman"),
        ("open_network: true", "open_network needs a container"),
        ("sandbox: docker, network: [pypi.org:443]", "docker can't limit commands to the listed hosts"),
        ("sandbox: sandbox-exec, image_archive: /", "sandbox-exec uses this machine's programs, not an image"),
        ("image_archive: nowhere.tar", "commands.image_archive: file or directory not found or not readable"),
        ("env: {OPENAI_API_KEY: x}", "OPENAI_API_KEY seems to hold a key"),
        ("env: {HF_TOKEN: '${HF_TOKEN}'}", "HF_TOKEN seems to hold a key"),
        ("env: {CI: '${CI}'}", "massgen doesn't pass your environment"),
        ("env: {A-B: x}", "commands.env"),
        ('env: {A: "x\\nB=y"}', "commands.env"),
    ):
        text = f"agent:\n  backend: {{type: scripted}}\n  commands: {{enabled: true, {settings}}}\n"
        (problem,) = problems(text)
        assert told in problem


def test_an_agent_with_commands_has_a_workspace_without_file_tools() -> None:
    config = loader.parse_config(
        "agent:\n  backend: {type: scripted, exclude_file_operation_mcps: true}\n  commands: {enabled: true}\n"
        "orchestrator:\n  coordination: {enable_memory_filesystem_mode: true}\n",
        "text",
        {},
    )
    assert config.has_workspace(config.agents[0])


def test_what_an_agent_says_of_its_commands_goes_before_what_follows_from_its_tools() -> None:
    config = parsed(
        "agent:\n  backend: {type: claude_code, model: sonnet, allowed_tools: [Bash]}\n"
        "  commands: {enabled: true, blocked: ['rm ']}\n"
    )
    assert config.commands_of(config.agents[0]).blocked == ("rm ",)
    (problem,) = problems("agent:\n  backend: {type: scripted, commands: false}\n  commands: {enabled: true}\n")
    assert problem == "team.yaml:2: agent.backend.commands: set twice for this agent; keep only one"


def test_a_directory_to_work_on_is_only_read_where_a_path_says_so(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    text = "agent:\n  backend: {type: claude_code, model: sonnet, cwd: ~/project}\n"
    paths = "orchestrator:\n  context_paths: [{path: ~/project, permission: read}]\n"
    for more, permission in (("", "write"), (paths, "read")):
        (context,) = parsed(text + more, tmp_path, HOME=str(tmp_path)).orchestrator.context_paths
        assert (context.path, context.permission) == (str(tmp_path / "project"), permission)


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ("command_line_execution_mode: [docker]", "command_line_execution_mode"),
        (
            f"command_line_execution_mode: docker, command_line_docker_memory_limit: '{'9' * 400}'",
            "command_line_docker_memory_limit",
        ),
    ],
)
def test_massgens_keys_for_commands_with_values_of_the_wrong_kind_are_refused(given: str, key: str) -> None:
    found = problems(f"agent:\n  backend: {{type: scripted, enable_mcp_command_line: true, {given}}}\n")
    assert any(f"agent.backend.{key}: expected" in problem for problem in found), found


def test_an_agent_without_files_cannot_keep_memory_in_files() -> None:
    (problem,) = problems(
        "agent:\n  id: solo\n  backend: {type: scripted, exclude_file_operation_mcps: true}\n"
        "orchestrator:\n  coordination: {enable_memory_filesystem_mode: true}\n"
    )
    assert "exclude_file_operation_mcps is true for solo" in problem


def test_a_dictionary_is_a_config_too() -> None:
    config = loader.config_from_data({"agents": ({"backend": {"type": "openai", "model": "m"}},)}, "config_dict")
    assert backend_of(config).model == "m"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            {"agent": {"backend": {"type": "openai", "modl": "x"}}},
            "config_dict: agent.backend.model: a required key is missing",
        ),
        ({"agents": [{"backend": object()}]}, "config_dict: agents[0].backend: expected plain data, not object"),
        ({1: 2}, "config_dict: config: a key must be text, not int"),
        ({"agents": float("nan")}, "config_dict: agents: expected a finite number"),
        ({"agents": 10**5000}, "config_dict: agents: a number can have at most"),
        ({"agents": "\ud800"}, "config_dict: agents: not UTF-8 text"),
        ({"agents": "x" * 300_000}, "config_dict: config: a config can have at most 256 KiB"),
        ({"agents": list(range(30_000))}, "config_dict: config: a config can have at most 20,000 values"),
    ],
)
def test_a_dictionary_is_held_to_the_rules_of_a_file(data: dict[str, object], message: str) -> None:
    with pytest.raises(MassgenError) as caught:
        loader.config_from_data(data, "config_dict")
    assert caught.value.code == "config_invalid"
    assert str(caught.value).startswith(message)


def test_a_dictionary_that_contains_itself_is_refused() -> None:
    data: dict[str, object] = {}
    data["agents"] = [data]
    with pytest.raises(MassgenError, match="nested more than"):
        loader.config_from_data(data, "config_dict")


def test_hundreds_of_problems_are_cut_to_a_hundred_and_counted() -> None:
    keys = "".join(f"k{number}: 1\n" for number in range(150))
    listed = problems("agent:\n  backend: {type: scripted}\n" + keys)
    assert len(listed) == 101
    assert listed[-1] == "and 50 more"


def test_a_file_is_loaded_by_its_path_and_named_in_errors(tmp_path: Path) -> None:
    path = tmp_path / "team.yaml"
    path.write_text(OPENAI)
    assert loader.load_config(path, environ={}) == loader.load_config(str(path), environ={})
    path.write_bytes(b"a: \xff")
    with pytest.raises(MassgenError, match=r"team\.yaml:1: not UTF-8"):
        loader.load_config(path, environ={})


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("absent.yaml", "Config file not found: "),
        ("../" * 20 + "dev/null", "Not a regular file: "),
        (".", "A config is a YAML file, not a directory: "),
        ("a\0b", "."),
        ("x" * 5000, "."),
    ],
)
def test_what_is_no_file_is_not_found(name: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(MassgenError, match=message) as caught:
        loader.load_config(f"{tmp_path}/{name}", environ={})
    assert caught.value.code == "config_not_found"
    assert len(str(caught.value)) < 1000


def test_a_missing_key_names_every_agent_and_variable() -> None:
    config = loader.load_config("@examples/three_agents", environ={})
    assert loader.missing_keys(config, {"ANTHROPIC_API_KEY": "k"}) == ["OPENAI_API_KEY", "OPENROUTER_API_KEY"]
    with pytest.raises(MassgenError) as caught:
        loader.require_keys(config, {"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": " "})
    assert caught.value.code == "missing_key"
    assert "agent 'openai' needs OPENAI_API_KEY; agent 'gemini' needs OPENROUTER_API_KEY." in str(caught.value)
    loader.require_keys(config, dict.fromkeys(["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY"], "k"))


def test_scripted_and_local_agents_need_no_key() -> None:
    for name in ("scripted", "local_server"):
        config = loader.load_config(f"@examples/{name}", environ={})
        assert loader.missing_keys(config, {}) == []
        loader.require_keys(config, {})


def test_every_packaged_config_loads_and_says_what_it_is() -> None:
    found = list_examples()
    assert {"scripted", "two_providers", "three_agents", "local_server"} <= {example.name for example in found}
    for example in found:
        assert example.description.endswith(".")
        assert loader.load_config(f"@examples/{example.name}", environ={}).agents
        assert example_path(f"{example.name}.yaml") == example.path


@pytest.mark.parametrize(
    "name", ["", "../pyproject", "/etc/passwd", "basic/../../x", "Scripted", "scripted\n", "a" * 80, "basic/multi/none"]
)
def test_an_unknown_example_is_refused(name: str) -> None:
    with pytest.raises(MassgenError) as caught:
        example_path(name)
    assert caught.value.code == "config_not_found"


def test_a_misspelt_example_gets_the_nearest_name() -> None:
    with pytest.raises(MassgenError, match=r"Did you mean @examples/scripted\?"):
        loader.load_config("@examples/scriptd", environ={})


WORDS = st.sampled_from(
    (
        *("agents", "agent", "id", "backend", "type", "openai", "scripted", "script", "answer", "api_key", "model"),
        *("path", "orchestrator", "context_paths", "timeout_settings", "${X}", "claude", "grok", "base_url"),
    )
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS | st.text(max_size=3), inner, max_size=5),
    max_leaves=25,
)
BACKENDS = st.fixed_dictionaries(
    {"type": st.sampled_from(["openai", "claude", "scripted"]) | VALUES}, optional={"model": WORDS, "script": VALUES}
)
TEAMS = st.fixed_dictionaries({"agents": st.lists(st.fixed_dictionaries({"backend": BACKENDS}), max_size=3)})


def refusal_of(parse: Callable[[], Config]) -> MassgenError | None:
    try:
        parse()
    except MassgenError as error:
        return error
    return None


@given(st.dictionaries(WORDS, VALUES, max_size=4) | TEAMS)
def test_no_dictionary_breaks_the_parser(data: dict[str, object]) -> None:
    refusal = refusal_of(lambda: loader.config_from_data(data, "config_dict"))
    assert refusal is None or refusal.code == "config_invalid"


@given(st.binary(max_size=200) | st.text(max_size=200))
def test_no_text_breaks_the_parser(text: str | bytes) -> None:
    refusal = refusal_of(lambda: loader.parse_config(text, "team.yaml", {}))
    assert refusal is None or refusal.code == "config_invalid"


def test_a_misspelt_type_does_not_hide_what_else_is_wrong_beside_it() -> None:
    text = "agents:\n  - backend: {type: opnai, modle: x, temperature: 9}\n"
    with pytest.raises(MassgenError) as caught:
        loader.parse_config(text, "team.yaml", {})
    told = str(caught.value)
    assert "agents[0].backend.type: unknown type; did you mean 'openai'?" in told
    assert "agents[0].backend.modle: unknown key; did you mean 'model'?" in told
    assert "agents[0].backend.temperature: expected" in told


@pytest.mark.parametrize(("page", "key"), [("claude-code.md", "agents"), ("providers-traffic.md", "limits")])
def test_what_a_page_shows_is_a_valid_part_of_a_config(page: str, key: str) -> None:
    (block,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.DOTALL)
    around = "" if key == "agents" else "agents: [{backend: {type: scripted}}]\n"
    config = loader.parse_config(f"{around}{block}", page, {})
    assert getattr(config, key)


def _entered_files(config: Path) -> set[str]:
    """Load a config, and return the names of the folders whose functions were called."""
    seen: set[str] = set()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            seen.add(frame.f_code.co_filename)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        loader.load_config(config, environ={})
    finally:
        sys.setprofile(before)
    return {Path(file).parent.name for file in seen}


def test_only_examples_in_massgens_spelling_pass_its_converter() -> None:
    converted = {each.name for each in list_examples() if "massgen" in _entered_files(each.path)}
    assert converted == {"ag2/ag2_coder_case_study", "tools/filesystem/claude_code_single"}


def test_a_config_of_massgens_passes_its_converter(tmp_path: Path) -> None:
    file = tmp_path / "theirs.yaml"
    file.write_text("agent:\n  backend: {type: openai, model: gpt-5, max_tokens: 100}\n")
    assert "massgen" in _entered_files(file)
    assert backend_of(loader.load_config(file, environ={})).max_output_tokens == 100
