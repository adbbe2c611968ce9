"""Agent types: a class each, found by name in one registry, and what older adapters say as arguments."""

import pytest
from pydantic import BaseModel

from massgen_mcp.backends.adapter import Adapter, MakesAgents
from massgen_mcp.backends.scripted import ScriptedBackend
from massgen_mcp.config.access.agent_types import find_type, iterate_own_types
from massgen_mcp.config.adapters import list_own_types
from massgen_mcp.config.models.backends import CONFIGURED_TYPES, ScriptedBackendConfig


def address(_config: BaseModel, _environ: object) -> tuple[str, ...]:
    return ("https://poems.example/v1",)


def vendor(_config: BaseModel) -> str:
    return "poets"


class Settings(BaseModel):
    key: str = "POET_KEY"


def key_variables(config: Settings) -> tuple[str, ...]:
    return (config.key,)


def make(config: Settings, environ: object) -> ScriptedBackend:
    del config, environ
    return ScriptedBackend(ScriptedBackendConfig(type="scripted"))


@pytest.mark.parametrize("name", [name for name in CONFIGURED_TYPES if name != "installed"])
def test_every_type_of_a_config_has_a_class_that_makes_its_agents(name: str) -> None:
    found = find_type(name)
    assert isinstance(found, MakesAgents)
    assert found.name in ("", name)


def test_every_class_is_found_by_the_name_of_its_module() -> None:
    assert [find_type(name).name for name in list_own_types()] == list(list_own_types())
    assert len({type(one) for one in iterate_own_types()}) == len(list_own_types()) + 2


def test_what_an_adapter_says_as_arguments_takes_the_place_of_its_methods() -> None:
    adapter = Adapter(
        config=Settings,
        make=make,
        key_variables=key_variables,
        addresses=address,
        vendor=vendor,
        missing=None,
        limitable=False,
    )
    settings = Settings()
    assert [*adapter.list_missing(settings, {})] == [("POET_KEY",)]
    assert [*adapter.list_missing(settings, {"POET_KEY": "a-key-of-poets"})] == []
    assert [(pair.key, pair.host) for pair in adapter.list_keys(settings, {})] == [("POET_KEY", "poems.example")]
    assert (adapter.get_vendor(settings), adapter.limitable, adapter.most_output) == ("poets", False, None)


def test_an_adapter_without_settings_or_with_an_unknown_argument_is_refused() -> None:
    with pytest.raises(TypeError, match="needs `config`"):
        Adapter(make=make)
    with pytest.raises(TypeError, match="has no hostz"):
        Adapter(config=Settings, make=make, hostz=address)
