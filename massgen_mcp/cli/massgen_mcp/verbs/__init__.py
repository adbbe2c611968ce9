"""The verbs of `massgen-mcp`: `async run(options) -> exit code`. None knows the engine room."""
