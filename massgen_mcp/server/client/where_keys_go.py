"""Where the person who uses an MCP client puts keys, in the words of that client."""

WHERE_KEYS_GO = (
    "Keys go into `env` of this server's entry in the configuration of your MCP client; restart the client then."
)
OVER_HTTP = "Keys go into the environment that `massgen-mcp --transport http` is started in; restart that server then."
_OF_CLIENTS = {
    "claude": (
        "Keys go into `env` of this server's entry in Claude Code's configuration: `claude mcp remove NAME`, then "
        "`claude mcp add NAME -e KEY=... -- massgen-mcp`; restart Claude Code then."
    ),
    "codex": (
        "Keys go into ~/.codex/config.toml, as `env` of this server's entry or by name in its `env_vars`: Codex passes "
        "no others on; restart Codex then."
    ),
    "massgen-mcp web": "Keys go into the environment that `massgen-mcp web` is started in; start it again then.",
}


def where_keys_go(client: str | None) -> str:
    """`client` is what the client calls itself, None where it did not say."""
    name = (client or "").lower()
    return next((text for known, text in _OF_CLIENTS.items() if known in name), WHERE_KEYS_GO)
