"""Every config that ships is loaded and run here, its models replaced by scripted ones."""

import json
import re
from pathlib import Path

import genai_prices
import pytest

from massgen_mcp.config.access.acp_agents import PRESETS
from massgen_mcp.config.examples import example_path, list_examples
from massgen_mcp.config.loader import load_config, missing_keys, require_keys
from massgen_mcp.config.models.backends import ScriptedBackendConfig, ScriptStep
from massgen_mcp.config.models.config import AgentSettings, Config
from massgen_mcp.config.providers.catalog import NEWEST, PROVIDERS
from massgen_mcp.errors import MassgenError
from massgen_mcp.server.results import config_list
from tests.harness import ROOT
from tests.teams import run_team

CONFIGS = ROOT / "configs"
NAMES = sorted(path.relative_to(CONFIGS).as_posix().removesuffix(".yaml") for path in CONFIGS.rglob("*.yaml"))
KEYS = {name: "k" for row in PROVIDERS for name in row.key_variables}
ENVIRON = {**KEYS, "AZURE_OPENAI_ENDPOINT": "https://name.openai.azure.com"}


@pytest.fixture(autouse=True)
def somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that the agents may read, with one file."""
    place = tmp_path / "project"
    place.mkdir()
    (place / "code.py").write_text("print('hello')\n")
    monkeypatch.chdir(place)
    return place


def text_of(name: str) -> str:
    return (CONFIGS / f"{name}.yaml").read_text()


def scripted(config: Config) -> Config:
    """The same team with agents that answer once and vote for the first answer they see."""

    def as_script(agent: AgentSettings) -> AgentSettings:
        if agent.backend.type == "scripted":
            return agent
        told = {"summary": f"{agent.id} found nothing.", "findings": list[str]()}
        script = (ScriptStep(answer=json.dumps(told)),) if config.orchestrator.answer_format == "findings" else ()
        return agent.model_copy(
            update={"backend": ScriptedBackendConfig(type="scripted", model=agent.id, script=script)}
        )

    return config.model_copy(update={"agents": tuple(map(as_script, config.agents))})


def test_the_packaged_set_is_the_one_in_the_repository() -> None:
    assert [example.name for example in list_examples()] == NAMES
    assert len(NAMES) >= 15


@pytest.mark.parametrize("name", NAMES)
def test_a_config_says_what_it_shows_what_it_needs_and_how_to_run_it(name: str) -> None:
    header = text_of(name).partition("\n\n")[0].splitlines()
    assert all(line.startswith("#") for line in header)
    assert re.fullmatch(r"# [A-Z].{20,115}[.]", header[0]), header[0]
    told = "\n".join(header)
    assert f"@examples/{name}" in told
    config = load_config(f"@examples/{name}", environ={})
    for variable in missing_keys(config, {}):
        assert variable in text_of(name).partition("\norchestrator:")[0], f"{variable} is not named"


@pytest.mark.parametrize("name", NAMES)
async def test_a_config_runs_to_an_answer(name: str, tmp_path: Path) -> None:
    config = load_config(f"@examples/{name}", environ=ENVIRON)
    for preset in PRESETS.values():  # as if each agent CLI were installed
        (tmp_path / preset.program).touch(mode=0o755)
    require_keys(config, {**ENVIRON, "PATH": str(tmp_path)})
    ended = await run_team(tmp_path, scripted(config))
    assert ended.snapshot.state == "completed", ended.snapshot.end
    assert ended.snapshot.degraded == []
    assert len(ended.snapshot.agents) == len(config.agents)


@pytest.mark.parametrize("name", NAMES)
def test_the_models_of_a_config_are_real_ones(name: str) -> None:
    usage = genai_prices.Usage(input_tokens=1000, output_tokens=1000)
    for agent in load_config(f"@examples/{name}", environ={}).agents:
        if agent.backend.type in NEWEST and agent.backend.model != NEWEST[agent.backend.type]:
            assert genai_prices.calc_price(usage, model_ref=agent.backend.model).total_price > 0


async def test_the_list_of_configs_names_all_and_sets_lists_to_copy_from_apart() -> None:
    listed = await config_list(None, ENVIRON, in_full=True)
    assert sorted([*listed.configs, *(listed.copy_from or ())]) == NAMES
    named = await config_list(None, ENVIRON)
    assert [*named.configs, *(named.more or ())] == sorted(listed.configs, key=lambda name: name.count("/"))
    assert (named.copy_from, named.unusable) == (listed.copy_from, None)
    assert listed.copy_from == [name for name in NAMES if name.startswith("providers/")]
    assert all(line.models and not line.missing for line in listed.configs.values())
    for name in NAMES:
        assert (await config_list(name, ENVIRON)).description


def test_a_config_is_found_by_the_names_that_the_documents_use() -> None:
    for written, name in (
        ("basic/multi/three_agents_default.yaml", "basic/multi/three_agents_default"),
        ("configs/meta/massgen_suggests_to_improve_massgen.yaml", "meta/massgen_suggests_to_improve_massgen"),
        ("tools/todo/example_task_todo.yaml", "tools/todo/example_task_todo"),
        ("three_agents_default", "basic/multi/three_agents_default"),
        ("basic_multi", "basic_multi"),
    ):
        assert example_path(written) == CONFIGS / f"{name}.yaml"
    for unknown in ("agents_default", "../configs/scripted", "/etc/passwd", ""):
        with pytest.raises(MassgenError, match="no example"):
            example_path(unknown)


def test_no_config_holds_what_belongs_to_the_environment() -> None:
    for name in NAMES:
        assert not re.search(r"sk-[A-Za-z0-9]{8}|api_key:", text_of(name)), name
