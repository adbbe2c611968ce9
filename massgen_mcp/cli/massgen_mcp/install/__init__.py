"""Our entry in the settings of other MCP clients. Must not start a client, nor read a key's value."""
