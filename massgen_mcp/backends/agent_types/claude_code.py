"""The Claude Code CLI, asked by its SDK."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from massgen_mcp.config.access import agent_clis
from massgen_mcp.config.access.acceptances import Pair
from massgen_mcp.config.access.acp_agents import CLAUDE_OUTPUT
from massgen_mcp.config.access.agent_types import CLI_CONCURRENCY, AgentType, Environ
from massgen_mcp.config.access.key_hosts import CLAUDE_URL
from massgen_mcp.config.access.members import require_parts
from massgen_mcp.config.access.permissions import StartClaudeCode
from massgen_mcp.config.access.prices import UnknownPrice
from massgen_mcp.config.environment import check_address
from massgen_mcp.config.models.backends import ClaudeCodeBackendConfig
from massgen_mcp.config.own_clis import OwnCli
from massgen_mcp.config.providers.catalog import NEWEST, named_provider
from massgen_mcp.errors import BackendError

if TYPE_CHECKING:
    from massgen_mcp.backends.adapter import Making
    from massgen_mcp.backends.own_loop import Agent


class ClaudeCode(AgentType[ClaudeCodeBackendConfig]):
    name = "claude_code"
    misnamed = "a model name for Claude Code must start with a letter or digit and contain no spaces"
    listed_at = CLAUDE_URL
    limitable = False
    most_output = CLAUDE_OUTPUT
    concurrency = CLI_CONCURRENCY
    team_rank = 0

    def get_vendor(self, config: ClaudeCodeBackendConfig) -> str:
        del config
        return "claude"

    def get_priced_model(self, config: ClaudeCodeBackendConfig) -> str | None:
        return NEWEST["claude"] if config.model == "default" else None

    def bound_unknown_price(self, config: ClaudeCodeBackendConfig, environ: Environ) -> UnknownPrice | None:
        login = agent_clis.find_login(config, environ)
        if login is None or login.variable != agent_clis.API_KEY:
            return None
        return UnknownPrice(named_provider("claude").base_url)

    def find_lack(self, config: ClaudeCodeBackendConfig, environ: Environ) -> str | None:
        del config
        if agent_clis.find_cli(environ):
            return None
        return f"agents of type claude_code need the Claude Code CLI: {agent_clis.HOW_TO_GET_IT}"

    def list_key_variables(self, config: ClaudeCodeBackendConfig) -> tuple[str, ...]:
        return (config.api_key_env,) if config.api_key_env else (agent_clis.API_KEY, agent_clis.TOKEN)

    def list_addresses(self, config: ClaudeCodeBackendConfig, environ: Environ) -> Iterable[str]:
        del config
        return (agent_clis.address(environ),)

    def list_missing(self, config: ClaudeCodeBackendConfig, environ: Environ) -> Iterable[tuple[str, ...]]:
        if config.use_login and config.api_key_env is None and agent_clis.own_login(environ) is not None:
            return ()
        return super().list_missing(config, environ)

    def describe_alternative(self, config: ClaudeCodeBackendConfig) -> str:
        return "" if config.api_key_env else " (or your own Claude Code login, with use_login: true)"

    def check_credentials(self, config: ClaudeCodeBackendConfig, environ: Environ) -> None:
        check_address(environ, agent_clis.BASE_URL)
        agent_clis.find_login(config, environ)

    def list_refused_keys(self, config: ClaudeCodeBackendConfig, environ: Environ) -> Iterable[Pair]:
        return agent_clis.list_refused_keys(config, environ)

    def list_secrets(self, config: ClaudeCodeBackendConfig, environ: Environ) -> Iterator[tuple[str, str]]:
        if config.use_login and (token := agent_clis.own_login(environ)):
            yield "from your Claude Code login", token

    def list_programs(self, config: ClaudeCodeBackendConfig) -> Iterable[StartClaudeCode]:
        return (StartClaudeCode(own_login=config.use_login),)

    def get_destination(self, config: ClaudeCodeBackendConfig, environ: Environ) -> tuple[str, str]:
        login = agent_clis.find_login(config, environ)
        return self.name, login.value if login else ""

    async def find_clis(self, environ: Environ) -> list[OwnCli]:
        if (program := agent_clis.find_cli(environ)) is None:
            return []
        keys = tuple(name for name in (agent_clis.API_KEY, agent_clis.TOKEN) if environ.get(name))
        config = ClaudeCodeBackendConfig(type="claude_code", use_login=True)
        login = agent_clis.own_login(environ) is not None
        return [OwnCli(self.name, config, program, login, keys, "it has no built-in tools")]

    def find_stand_in(self, environ: Environ) -> tuple[ClaudeCodeBackendConfig, str] | None:
        config = ClaudeCodeBackendConfig(type="claude_code")
        if self.find_lack(config, environ) or agent_clis.find_login(config, environ) is None:
            return None
        return config, "the installed Claude Code CLI"

    def make_agent(self, config: ClaudeCodeBackendConfig, making: "Making") -> "Agent":
        environ = making.environ
        require_parts(config, environ)
        login, path = agent_clis.find_login(config, environ), agent_clis.find_cli(environ)
        if login is None or path is None:
            raise BackendError("auth", f"Claude Code isn't logged in: {agent_clis.how_to_log_in(config)}")
        from massgen_mcp.backends.frameworks.claude_code import ClaudeCodeAgent

        return ClaudeCodeAgent(config, path, login, environ, making.private, making.redactor)


TYPE = ClaudeCode()
