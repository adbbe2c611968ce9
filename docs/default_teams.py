"""Writes docs/default-teams.md from what the code makes of keys and doubles of servers."""

from dataclasses import dataclass

from docs.markdown import WRITTEN, code, table
from massgen_mcp.config.access.local_servers import described, find_local_servers
from massgen_mcp.config.default_team import AGENTS, MEMORY_PART, TINY_BILLIONS, default_team
from massgen_mcp.config.models.config import Config
from massgen_mcp.config.providers.catalog import PROVIDERS
from massgen_mcp.errors import MassgenError
from tests.model_servers import MEMORY, PATIENT, all_servers

HEAD = f"""\
# Default teams

{WRITTEN}
Who is asked when nobody names a team and there is no config. `massgen doctor` shows the default team of your
machine; `massgen init` can save it as a config. The first of these rules that applies decides:

1. **Agent CLIs** that are installed and logged in ([acp.md](acp.md), [claude-code.md](claude-code.md)), one agent for
   each, and second views until there are {AGENTS}, where `MASSGEN_OWN_LOGINS=yes` says that your own logins may be
   used. `massgen init` asks the same, once.
2. **Keys** of {code(*(row.type for row in PROVIDERS if row.strong_model))}: the strong model of each one whose
   key is set, and second views of these until there are {AGENTS} agents. Local servers are then not looked for. Keys
   of other providers make no default team, because we name no model for them: name one, as in
   `massgen -m openrouter/MODEL,groq/MODEL "..."`.
3. **A local model server**: the one with the largest model that fits. Up to {AGENTS} of its chat models are asked, or
   one model from {AGENTS} views. Models that call tools go first. Left out are embedding models, models below
   {TINY_BILLIONS:g} billion parameters, models less than a third as large as the largest, and what does not fit,
   together with the others, into {MEMORY_PART:.0%} of this machine's memory.
4. **Claude Code**, where it is installed and `CLAUDE_CODE_OAUTH_TOKEN` is set ([claude-code.md](claude-code.md)).
5. Else nobody is asked, and the error names the ways out.

"""


@dataclass(frozen=True)
class Scene:
    """Key variables that are set, and types of servers that run."""

    keys: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()

    def __str__(self) -> str:
        return ", ".join(f"`{name}`" for name in (*self.keys, *self.servers)) or "nothing"


STRONG = tuple(row.key_variables[0] for row in PROVIDERS if row.strong_model)
OTHER = tuple(
    row.key_variables[0] for row in PROVIDERS if not row.strong_model and row.key_variables[:1] not in [STRONG[:1], ()]
)
SERVERS = tuple(row.type for row in PROVIDERS if row.is_local)
SCENES = (
    Scene(STRONG[:1]),
    Scene(STRONG[:2]),
    Scene(STRONG),
    Scene(OTHER[:1]),
    Scene((), SERVERS[:1]),
    Scene((), SERVERS),
    Scene(OTHER[:1], SERVERS[:1]),
    Scene(),
)


async def page() -> str:
    async with all_servers(*SERVERS) as places:
        found = await find_local_servers({}, places, seconds=PATIENT)
        has = [described(server, most=10).replace(f" at {server.place}", "") for server in found]
    machine = f"The servers of this table run on a machine with {MEMORY / 1e9:.0f} GB of memory:\n\n"
    listed = "".join(f"- {line}\n" for line in has)
    lines: list[list[str]] = []
    for scene in SCENES:
        team = await _team(scene)
        if lines and lines[-1][1] == team:
            lines[-1][0] += f"; or {scene}"
        else:
            lines.append([str(scene), team])
    return f"{HEAD}{machine}{listed}\n{table(['keys and servers', 'team'], lines)}"


async def _team(scene: Scene) -> str:
    async with all_servers(*scene.servers) as places:
        try:
            environ = dict.fromkeys(scene.keys, "a-key")
            team = await default_team(environ, places=places, seconds=PATIENT, memory_bytes=MEMORY)
        except MassgenError as error:
            return f"none: `{error.code}`"
    return _agents(team.config)


def _agents(config: Config) -> str:
    names = [f"{agent.backend.type}/{agent.backend.model}" for agent in config.agents]
    if len(set(names)) == 1:
        return f"{len(names)} of `{names[0]}`"
    return ", ".join(f"`{name}`" for name in names)
