"""How does a person look at runs in a browser? Pages of this machine alone, which do what the MCP tools do."""
