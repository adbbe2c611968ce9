"""Our agent types, a module each: its `TYPE` is found by the name of the module (`config.access.agent_types`).

`provider_models` and `local_servers` stand for all types that name a provider. Code of agents is imported in
`make_agent` alone: every process that reads a config loads these modules.
"""
