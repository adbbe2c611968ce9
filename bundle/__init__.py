"""What registries and desktop clients want to know of this program, made from `pyproject.toml` and the package.

`server.json` describes it for the MCP registry, `bundle/manifest.json` for clients that take MCPB bundles. Both are in
the repository so that they can be read there; `make bundle` writes them anew, a test tells when they are out of date.
"""
