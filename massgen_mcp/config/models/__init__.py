"""What a user may ask for, as frozen types. Parsed once by `config.loader`; true everywhere after that.

Keys follow the YAML files of MassGen.

- `config`: the whole, and what holds between its parts.
- `agents`, `mcp_servers`, `commands`: an agent, and what it has besides its backend.
- `backends`: every backend, as a closed union of those in `http_backends`, `claude_code`, `ag2` and `scripted`.
- `backend_base`, `provider_types`: what all backends have in common, and the names of the providers.
- `orchestrator`, `limits`: how the team works together, and what it may use up.
- `common`: the base class of all of them, and the values that several of them hold.
"""
