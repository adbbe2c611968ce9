"""What a user may ask for, as frozen types. Parsed once by `config.loader`; true everywhere after that.

Keys follow the YAML files of MassGen.

- `config`: the whole, what holds between its parts, and an agent with its MCP servers.
- `commands`: commands that agents run, and the sandbox around them.
- `backends`: every backend, as a closed union of its own and those in `http_backends` and `ag2`.
- `orchestrator`: how the team works together, and what it may use up.
- `common`: the base class of all of them, that of backends, the names of the providers, and the values that several of
  them hold.
"""
