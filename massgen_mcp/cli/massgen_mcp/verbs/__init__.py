"""The verbs of `massgen-mcp`, one per file: `async run(options) -> exit code`. None knows the engine room."""
