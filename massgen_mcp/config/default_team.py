"""START HERE. The team of a caller who names none: of agent CLIs where their logins may be used, else of keys, else of
a model server, else of Claude Code.

The choice among models of a server is pure; `default_team` puts it together with what is found.
"""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import Literal

from pydantic import ValidationError

from massgen_mcp.config.access import agent_clis
from massgen_mcp.config.access.agent_types import FindsServers, StandsIn, find_type, iterate_own_types
from massgen_mcp.config.access.key_hosts import find_key
from massgen_mcp.config.access.local_servers import LocalServer, local_places
from massgen_mcp.config.access.model_lists import ListedModel
from massgen_mcp.config.diagnostics import show_name
from massgen_mcp.config.models.backends import BACKENDS, BackendConfig
from massgen_mcp.config.models.common import MAX_MODEL_NAME
from massgen_mcp.config.models.config import AgentSettings, Config
from massgen_mcp.config.models.http_backends import ProviderBackendConfig
from massgen_mcp.config.models.orchestrator import OrchestratorConfig
from massgen_mcp.config.own_clis import OWN_LOGINS_VARIABLE, OwnCli, installed_clis, logins_allowed
from massgen_mcp.config.providers.addresses import is_loopback
from massgen_mcp.config.providers.catalog import PROVIDERS, keys_of_default_teams, named_provider
from massgen_mcp.config.providers.model_names import detect_backend
from massgen_mcp.errors import MassgenError
from massgen_mcp.name_lists import join_names

AGENTS = 3
"""The least agents of a default team: fewer have no majority, more views of one model cost more than they find."""
TINY_BILLIONS = 2.5
"""Models below that follow a task like ours too seldom to be asked unasked."""
WORTHY_PART = 1 / 3
"""A model that much smaller than the largest adds no second opinion to its."""
MAX_ID = 60
"""Characters of a model's name in an agent's id."""
MEMORY_PART = 0.75
"""Of the machine's memory that weights may take: contexts need room, too, and the machine has other work."""

Source = Literal["clis", "keys", "server", "alone"]


@dataclass(frozen=True, slots=True)
class DefaultTeam:
    config: Config
    source: Source
    payment: str
    """Who pays for it, such as `paid with your API keys`."""
    parts: str = ""
    """The models or CLIs it is made of, where its agents don't show that."""

    @property
    def description(self) -> str:
        return ": ".join(filter(None, (f"default team, {self.payment}", self.parts)))


async def default_team(
    environ: Mapping[str, str],
    *,
    places: Sequence[LocalServer] | None = None,
    seconds: float | None = None,
    memory_bytes: int | None = None,
) -> DefaultTeam:
    """The team for a caller who names none. Servers are asked only where no key is set.

    `places`, `seconds` and `memory_bytes` default to the usual places, to what a server gets to answer, and to what
    this machine has. Raises as `team_of`.
    """
    places, clis = local_places(environ) if places is None else places, await installed_clis(environ)
    servers: list[LocalServer] = []
    if team_of_keys(environ) is None:
        finders = [one for one in iterate_own_types() if isinstance(one, FindsServers)]
        servers = [server for one in finders for server in await one.find_servers(environ, places, seconds)]
    return team_of(environ, servers, places, memory_bytes, clis)


def team_of(
    environ: Mapping[str, str],
    servers: Sequence[LocalServer],
    places: Sequence[LocalServer],
    memory_bytes: int | None = None,
    clis: Sequence[OwnCli] = (),
) -> DefaultTeam:
    """Those of `clis` that are logged in, where the environment says that their logins may be used; else a strong model
    of each provider whose key is set; else the largest models of one of `servers`, which were found at `places`; else
    Claude Code where it is installed and its token is set.

    Never the scripted backend. Raises `MassgenError("no_default_team")` that names the ways out.
    """
    ready = [cli for cli in clis if cli.ready]
    if ready and logins_allowed(environ):
        return team_of_clis(ready)
    if team := team_of_keys(environ) or best_team(servers, memory_bytes):
        return team
    for agent_type in iterate_own_types():
        if isinstance(agent_type, StandsIn) and (found := agent_type.find_stand_in(environ)):
            return team_of_one(agent_type.name, *found)
    raise _nobody(places, servers, ready)


def team_of_one(agent: str, backend: BackendConfig, words: str) -> DefaultTeam:
    parts = f"{words}; no provider key is set, and no model server has a suitable model"
    config = Config(agents=(AgentSettings(id=agent, backend=backend),))
    return DefaultTeam(config, "alone", "paid for by your subscription", parts)


def team_of_clis(clis: Sequence[OwnCli]) -> DefaultTeam:
    """An agent for each, with the user's own login, and further views of them until there are three agents."""
    names = ", ".join(cli.name for cli in clis)
    count = max(AGENTS, len(clis))
    team = [clis[place % len(clis)] for place in range(count)]
    ids = name_agents(cli.name for cli in team)
    agents = tuple(AgentSettings(id=agent, backend=cli.config) for agent, cli in zip(ids, team, strict=True))
    parts = f"the installed agent CLIs, with your own logins: {names}"
    if len(clis) < count:
        parts += f", {_count_views(count, len(clis))}"
    return DefaultTeam(Config(agents=agents), "clis", "paid for by your subscriptions", parts)


def team_of_keys(environ: Mapping[str, str]) -> DefaultTeam | None:
    """One strong model of each provider whose key is set, and further views of them until there are three agents."""
    reachable = reachable_models(environ)
    match reachable:
        case []:
            return None
        case [one]:
            config = config_from_models([one], num_agents=AGENTS)
            return DefaultTeam(config, "keys", "paid with your API key", f"{one} from {AGENTS} perspectives")
        case _:
            count = max(AGENTS, len(reachable))
            config = config_from_models(reachable, num_agents=count)
            parts = ""
            if len(reachable) < count:
                parts = f"{', '.join(reachable)}, {_count_views(count, len(reachable))}"
            return DefaultTeam(config, "keys", "paid with your API keys", parts)


def _count_views(agents: int, models: int) -> str:
    return f"{agents} agents from {models} vendors" if models > 1 else f"from {agents} perspectives"


def reachable_models(environ: Mapping[str, str]) -> list[str]:
    """The strong models of providers whose key is set."""
    strong = [f"{row.type}/{row.strong_model}" for row in PROVIDERS if row.strong_model is not None]
    return [model for model in strong if _has_key(model, environ)]


def best_team(servers: Iterable[LocalServer], memory_bytes: int | None = None) -> DefaultTeam | None:
    """The team of the server that has the largest fit model; of two alike the one that comes first. One server alone:
    two on a machine would fight for its memory.
    """
    fit = [(server, chosen_models(server, memory_bytes)) for server in servers]
    able = [(server, models) for server, models in fit if models]
    if not able:
        return None
    server, models = max(able, key=lambda one: one[1][0].billions or 0)
    return team_of_server(server, models)


def team_of_server(server: LocalServer, models: Sequence[ListedModel]) -> DefaultTeam:
    """An agent for each of `models`, and further views of them until there are three."""
    base_url = None if server.base_url == named_provider(server.type).base_url else server.base_url
    names = [models[place % len(models)].name for place in range(max(AGENTS, len(models)))]
    agents = tuple(
        AgentSettings(id=agent, backend=backend_of(server.type, name, base_url=base_url))
        for agent, name in zip(name_agents(names), names, strict=True)
    )
    asked = ", ".join(model.name for model in models) if len(models) > 1 else f"{names[0]} from {AGENTS} perspectives"
    parts = f"{server.type} at {server.place} ({asked}), since no provider key is set"
    return DefaultTeam(Config(agents=agents), "server", "free on your own model server", parts)


def chosen_models(server: LocalServer, memory_bytes: int | None = None) -> list[ListedModel]:
    """The largest chat models of a server that fit into memory together, at most three: those that are not tiny, and
    not much smaller than the largest; those that call tools first.
    """
    room = _room(server, memory_bytes)
    fit = [model for model in server.models if not is_tiny(model) and (model.loaded or _size(model) <= room)]
    fit.sort(key=lambda model: -(model.billions or 0))
    if not fit:
        return []
    least = (fit[0].billions or 0) * WORTHY_PART
    worthy = sorted(
        (model for model in fit if (model.billions or 0) >= least),
        key=lambda model: (model.tools is False, -(model.billions or 0)),
    )
    chosen: list[ListedModel] = []
    for model in worthy:
        same = _without_variant(model.name) in map(_without_variant, (one.name for one in chosen))
        together = (*chosen, model)
        fits = all(one.loaded for one in together) or sum(map(_size, together)) <= room
        if not same and len(chosen) < AGENTS and (fits or not chosen):
            chosen.append(model)
    return chosen


def is_tiny(model: ListedModel) -> bool:
    """Too small to be asked unasked. A model whose size nobody tells is not."""
    return model.billions is not None and model.billions < TINY_BILLIONS


def _size(model: ListedModel) -> float:
    """Bytes in memory: as told, else as much as so many parameters take in a usual quantization."""
    return model.size_bytes or (model.billions or 0) * 0.65e9


def _room(server: LocalServer, memory_bytes: int | None) -> float:
    """Bytes that models may take. Nobody knows how much memory another machine has."""
    if memory_bytes is None:
        if not is_loopback(server.base_url):
            return float("inf")
        memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return memory_bytes * MEMORY_PART


def _without_variant(name: str) -> str:
    """The same for two quantizations of one model: `qwen3:8b` and `qwen3:8b-q8_0`."""
    head, colon, tag = name.lower().partition(":")
    return head + colon + tag.partition("-")[0]


def _has_key(model: str, environ: Mapping[str, str]) -> bool:
    backend = backend_of(*detect_backend(model))
    return isinstance(backend, ProviderBackendConfig) and find_key(backend, environ) is not None


def _nobody(places: Sequence[LocalServer], servers: Sequence[LocalServer], clis: Sequence[OwnCli]) -> MassgenError:
    asked = ", ".join(f"{server.place} ({server.type})" for server in places)
    unfit = next((f"{server.type}/{model.name}" for server in servers for model in server.models), None)
    none = f"no model server responds at {asked}"
    if not asked:
        none = "no model server was found"
    if unfit is not None:
        none = f"the models at {asked} are too small or don't fit into memory"
    ways = [f"set {join_names(keys_of_default_teams(), 'or')}"]
    if clis:
        ways.append(f"set {OWN_LOGINS_VARIABLE}=yes to use your own login to {join_names(cli.name for cli in clis)}")
    ways.append("name models" if unfit is None else f"name a model, such as {unfit}")
    return MassgenError(
        "no_default_team",
        f"massgen can't put a team together: no provider key is set, {none}, and Claude Code has no "
        f"{agent_clis.TOKEN}. To get a team, {'; '.join(ways)} or a config; or create a config with `massgen init`. "
        '`massgen --config @examples/scripted "Your question"` shows an example run that needs no model.',
    )


# -- configs from a list of models ------------------------------------------------------------------------------------


MAX_AGENTS = 10


def config_from_models(models: Sequence[str], *, num_agents: int | None, base_url: str | None = None) -> Config:
    """A team with one agent per model (`provider/model`, or a plain name such as `gpt-5`), and effort `auto`.

    With `num_agents` the models are dealt out in turn until there are that many agents. `base_url` is where all of them
    are asked, instead of at their providers'. Ids are those of `name_agents`. Raises `MassgenError("config_invalid")`.
    """
    if not models:
        raise MassgenError("config_invalid", "name at least one model, such as openai/MODEL")
    size = len(models) if num_agents is None else num_agents
    if not 1 <= size <= MAX_AGENTS:
        raise MassgenError("config_invalid", f"a team needs 1 to {MAX_AGENTS} agents, not {size}")
    if size < len(models):
        raise MassgenError("config_invalid", f"more models ({len(models)}) than agents ({size}); name fewer models")
    dealt = [detect_backend(models[place % len(models)]) for place in range(size)]
    ids = name_agents(model for _, model in dealt)
    return Config(
        agents=tuple(
            AgentSettings(id=agent, backend=backend_of(provider, model, base_url=base_url))
            for agent, (provider, model) in zip(ids, dealt, strict=True)
        ),
        orchestrator=OrchestratorConfig(effort="auto"),
    )


def backend_of(provider: str, model: str, *, base_url: str | None = None) -> BackendConfig:
    """The backend that asks `model` at `provider` (a name of the provider table, or `scripted`)."""
    if not 1 <= len(model) <= MAX_MODEL_NAME or not model.isprintable():
        message = f"a model name must have 1 to {MAX_MODEL_NAME} characters and no line breaks or control characters"
        raise MassgenError("config_invalid", f"{show_name(model[:MAX_MODEL_NAME])}: {message}")
    asked: dict[str, str] = {"model": model} if base_url is None else {"model": model, "base_url": base_url}
    agent_type = find_type(provider)
    own_type = agent_type.name or named_provider(provider).type
    data = {"type": own_type, **agent_type.name_backend(model, asked)}
    try:
        return BACKENDS.validate_python(data)
    except ValidationError as error:
        wrong = agent_type.misnamed and f"{show_name(model)}: {agent_type.misnamed}"
        raise MassgenError("config_invalid", wrong or f"{provider} at {base_url!a}: not a valid address") from error


def name_agents(models: Iterable[str]) -> list[str]:
    """Return an id for each agent: the last part of its model's name, such as `gpt-6.1-sol`; `gpt-6.1-sol-2` for a
    second agent of that name. Other characters become `-`.
    """
    ids: list[str] = []
    for model in models:
        last_part = model.rstrip("/").rpartition("/")[2]
        name = re.sub(r"[^A-Za-z0-9_.-]+", "-", last_part).strip("-_.")[:MAX_ID] or "model"
        numbered = (f"{name}-{number}" for number in count(2))
        ids.append(next(one for one in chain([name], numbered) if one not in ids))
    return ids
