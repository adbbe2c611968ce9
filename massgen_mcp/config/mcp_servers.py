"""The spellings that MCP servers may have in a config: a list with names, other names of transports, no type at all."""

from massgen_mcp.config.diagnostics import Problem
from massgen_mcp.config.environment import variables_in
from massgen_mcp.config.yaml_reader import Place, Plain

_TRANSPORTS: dict[str, str] = {"streamable-http": "streamable_http", "http": "streamable_http"}
_WITH_VARIABLES = ("env", "headers")


def shape(servers: Plain, place: Place, problems: list[Problem]) -> Plain:
    """Bring them to a mapping by name, as the models want it."""
    if not servers and not isinstance(servers, bool):
        return {}
    if isinstance(servers, list):
        return _by_name(servers, place, problems)
    if not isinstance(servers, dict):
        return servers
    return {name: _shaped(server, (*place, name), problems) for name, server in servers.items()}


def _by_name(servers: list[Plain], place: Place, problems: list[Problem]) -> Plain:
    found: dict[str, Plain] = {}
    for number, server in enumerate(servers):
        name = server.get("name") if isinstance(server, dict) else None
        if not isinstance(server, dict) or not isinstance(name, str):
            problems.append(Problem((*place, number), "expected a mapping with a `name`"))
        elif name in found:
            problems.append(Problem((*place, number, "name"), "another server has the same name"))
        else:
            found[name] = _shaped(
                {key: value for key, value in server.items() if key != "name"}, (*place, number), problems
            )
    return found


def _shaped(server: Plain, place: Place, problems: list[Problem]) -> Plain:
    if not isinstance(server, dict):
        return server
    plain = dict(server)
    kind = plain.get("type", plain.pop("transport", None))
    if kind is None:
        kind = "streamable_http" if "url" in plain and "command" not in plain else "stdio"
    plain["type"] = _TRANSPORTS.get(kind, kind) if isinstance(kind, str) else kind
    problems += [
        Problem((*place, key), "${NAME} works only in env and headers; write the value itself")
        for key, value in plain.items()
        if key not in _WITH_VARIABLES and variables_in(_texts(value))
    ]
    return plain


def _texts(value: Plain) -> list[str]:
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    return [value] if isinstance(value, str) else []
