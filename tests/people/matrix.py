"""Everything that a client or a browser can ask for, enumerated from the registries of a server, and asked of a run of
somebody else beside one that nobody has: the two replies must be the same to the byte, but for the id in the question.

What is registered and not known here is a leak until it is said here how it is asked.
"""

import re
from collections.abc import AsyncGenerator, Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any, cast

import httpx2
from mcp import Client
from starlette.routing import Route

from massgen_mcp.redaction import NO_KEYS
from massgen_mcp.runs.engine import new_run_id
from massgen_mcp.web.app import api
from tests.people.stage import ANSWER, KEY, SESSION, Shared, login_of, told

Ask = Callable[[str], dict[str, Any]]
"""What is asked, of a run of this id."""

WORDS: dict[str, list[Any]] = {
    "question": ["q"],
    "dry_run": [True, False],
    "message": ["m"],
    "value": [5.0],
    "wait_seconds": [0],
    "timeout_seconds": [0],
    "team": ["scripted"],
}
"""What an argument is given, beside the id and the words of bob's runs."""
PATHS = ("", "final", "turn_1", "final/agent1/answer.txt", "../", "execution_metadata.yaml", "report.html", "x.png")
METHODS = {
    "tools/call",
    "resources/read",
    "tasks/get",
    "tasks/update",
    "tasks/cancel",
    "completion/complete",
    "prompts/get",
}
SUBSCRIBING = {"resources/subscribe", "resources/unsubscribe", "subscriptions/listen"}
"""Asked by `test_nobody_hears_of_what_another_does`."""
OF_NO_RUN = {
    "logging/setLevel": {"level": "info"},
    "ping": {},
    "prompts/list": {},
    "resources/list": {},
    "resources/templates/list": {},
    "server/discover": {},
    "tools/list": {},
}
ROUTE_WORDS = {"name": ["get_status", "list_runs"]}


Reply = Callable[[dict[str, Any]], Any]


@dataclass
class Found:
    """`leaks`: what ann is told otherwise of a run of bob than of one that nobody has, or that is bob's at all;
    `asked`: how often she asked; `silent`: doors that do not tell bob himself anything of his runs.
    """

    leaks: list[str] = field(default_factory=list[str])
    asked: int = 0
    silent: set[str] = field(default_factory=set[str])


async def ask_for_all(shared: Shared, *people: str, called: str = "") -> Found:
    """By ann, and by bob himself, who ends his runs with it; at the doors whose name this pattern finds."""
    found = Found()
    for person in people:
        async with shared.client(person) as client, shared.browser(person) as browser:
            doors = [one async for one in _asked_of_methods(shared, client)]
            doors += [one async for one in _asked_of_routes(shared, browser)]
            doors = [(name, ask, reply) for name, ask, reply in doors if re.search(called, name)]
            if person == "ann":
                for door in doors:
                    await _compare(shared, *door, found)
            else:
                told = {name for name, ask, reply in doors if await _says(shared, ask, reply)}
                found.silent = {name for name, *_ in doors} - told
    return found


async def _says(shared: Shared, ask: Ask, reply: Reply) -> bool:
    run_id, nobodys = shared.runs["ended"], new_run_id()
    return ask("1") != ask("2") and await reply(ask(run_id)) != (await reply(ask(nobodys))).replace(nobodys, run_id)


async def _compare(shared: Shared, name: str, ask: Ask, reply: Reply, found: Found) -> None:
    for run_id in shared.runs.values():
        nobodys = new_run_id()
        of_bob, of_nobody = await reply(ask(run_id)), await reply(ask(nobodys))
        found.asked += 2
        if _own_runs_aside(of_bob, run_id) != _own_runs_aside(of_nobody.replace(nobodys, run_id), run_id):
            found.leaks.append(f"{name} {ask('ID')}: {of_bob} is not {of_nobody}")
        words = (ANSWER, SESSION, KEY, "bobs-", *(other for other in shared.runs.values() if other != run_id))
        if leaked := [word for word in words if word in of_bob and word not in str(ask(run_id))]:
            found.leaks.append(f"{name} {ask('ID')}: {of_bob} holds {leaked}")
        if ask("1") == ask("2"):
            break


def _own_runs_aside(reply: str, run_id: str) -> str:
    """Replace what differs between two calls: the runs that they start, times, and the ages of runs."""
    reply = re.sub(r"run-[a-z2-7]{26}", lambda one: one[0] if one[0] == run_id else "OWN", reply)
    return re.sub(r"\d+\.\d+|\d{4}-\d\d-\d\dT[\d:.]+Z|\d+ (s|min|h|d)(?= ago\)|\")", "TIME", reply)


async def _asked_of_methods(shared: Shared, client: Client) -> AsyncGenerator[tuple[str, Ask, Reply]]:
    server = shared.built.server
    handlers = server._lowlevel_server._request_handlers  # pyright: ignore[reportPrivateUsage] - the registry
    for method in sorted(handlers):
        if method in SUBSCRIBING:
            continue

        async def reply(params: dict[str, Any], method: str = method) -> str:
            return await told(client, method, params)

        if method in OF_NO_RUN:
            yield method, lambda _, given=OF_NO_RUN[method]: given, reply
            continue
        if method not in METHODS:
            yield method, lambda _, method=method: {"not known to this test": method}, _unknown
            continue
        for ask in await _of_method(method, shared, client):
            asked = ask("ID")
            yield (
                f"{method} {asked.get('name') or asked.get('uri', '').partition('ID/')[2].partition('?')[0]}",
                ask,
                reply,
            )


async def _unknown(params: dict[str, Any]) -> str:
    return f"bobs- {params}"


async def _of_method(method: str, shared: Shared, client: Client) -> list[Ask]:
    match method:
        case "tools/call":
            return [
                ask for tool in await shared.built.server.list_tools() for ask in _of_tool(tool.name, tool.input_schema)
            ]
        case "resources/read":
            templates = [one.uri_template for one in (await client.list_resource_templates()).resource_templates]
            return [ask for template in templates for ask in _of_template(template)]
        case "prompts/get":
            prompts = (await client.list_prompts()).prompts
            known = [(one.name, [given.name for given in one.arguments or ()]) for one in prompts]
            return [
                lambda run_id, name=name, names=names: {"name": name, "arguments": dict.fromkeys(names, run_id)}
                for name, names in known
            ]
        case "completion/complete":
            return await _completions(client)
        case "tasks/update":
            return [lambda run_id: {"taskId": run_id, "inputResponses": {"x": {"action": "decline"}}}]
        case _:
            return [lambda run_id: {"taskId": run_id}]


def _of_tool(name: str, schema: dict[str, Any]) -> Iterator[Ask]:
    """Every argument in turn is the id, and whatever bob has named; each choice of each argument is made."""
    properties: dict[str, Any] = schema["properties"]
    required = set(schema.get("required", ()))
    choices = {one: _choices(one, properties[one]) for one in properties}
    turned = {one: choices[one] for one in ("action", "view") if one in properties}
    base: dict[str, Any] = {one: choices[one][0] for one in required | ({"run_id", "dry_run"} & set(properties))}
    if name == "start_run":
        base["team"] = "scripted"
    for values in product(*turned.values()):
        turn = base | dict(zip(turned, values, strict=True))
        yield lambda run_id, one=turn: _call(name, one, run_id)
    base |= {one: choices[one][0] for one in required & set(turned)}
    for argument in set(properties) - ({"dry_run"} if name == "start_run" else set[str]()):
        for value in choices[argument][: 1 if name == "start_run" and argument in WORDS else None]:
            turn = base | {argument: value}
            yield lambda run_id, one=turn: _call(name, one, run_id)


def _call(name: str, arguments: dict[str, Any], run_id: str) -> dict[str, Any]:
    return {"name": name, "arguments": {key: _with(value, run_id) for key, value in arguments.items()}}


def _with(value: Any, run_id: str) -> Any:
    if isinstance(value, list):
        return [_with(one, run_id) for one in cast("list[Any]", value)]
    return value.replace("ID", run_id) if isinstance(value, str) else value


def _choices(argument: str, schema: dict[str, Any]) -> list[Any]:
    if argument in WORDS:
        return WORDS[argument]
    kinds = [schema, *schema.get("anyOf", ())]
    for kind in kinds:
        if "enum" in kind:
            return list(kind["enum"])
    types = {kind.get("type") for kind in kinds}
    texts = ["ID", "ID/agent1", "winner", SESSION, KEY, "agent1", "/home/runs/ID"]
    if "array" in types:
        return [[text] for text in texts]
    if "string" in types:
        return texts
    return [True] if "boolean" in types else [1]


def _of_template(template: str) -> Iterator[Ask]:
    """Each variable of the address in turn."""
    bare = re.sub(r"\{\?[^}]*\}", "", template)
    names = re.findall(r"\{\??\+?([^}]*)\}", template)
    queries = [query for found in re.findall(r"\{\?([^}]*)\}", template) for query in found.split(",")]
    given = {"view": ["full", "votes", "agent"], "agent": ["agent1"], "offset": ["0"], "after": ["0"]}
    assert all(query in given for query in queries), f"say here what {template} is asked"
    for path in PATHS if "+path" in template else ("",):
        for query in ["", *(f"?{one}={value}" for one in queries for value in given[one])]:
            address = bare.replace("{+path}", path).replace("{+name}", "ID").replace("{run_id}", "ID")
            assert "{" not in address, f"say here what {template} is asked: {names}"
            yield lambda run_id, uri=f"{address}{query}": {"uri": uri.replace("ID", run_id)}


async def _completions(client: Client) -> list[Ask]:
    refs: list[tuple[dict[str, Any], str]] = []
    for prompt in (await client.list_prompts()).prompts:
        refs += [({"type": "ref/prompt", "name": prompt.name}, one.name) for one in prompt.arguments or ()]
    for one in (await client.list_resource_templates()).resource_templates:
        names = [name for found in re.findall(r"\{[?+]?([^}]*)\}", one.uri_template) for name in found.split(",")]
        refs += [({"type": "ref/resource", "uri": one.uri_template}, name) for name in names]
    return [
        lambda run_id, ref=ref, name=name, value=value: {
            "ref": ref,
            "argument": {"name": name, "value": value.replace("ID", run_id)},
            "context": {"arguments": {"run_id": run_id}},
        }
        for ref, name in refs
        for value in ("", "ID", "run-", "agent")
    ]


async def _asked_of_routes(shared: Shared, browser: httpx2.AsyncClient) -> AsyncGenerator[tuple[str, Ask, Reply]]:
    async with api(shared.built, NO_KEYS) as app:
        routes = [route for route in (*app.routes, *login_of(app, shared.people).pages) if isinstance(route, Route)]
    for route in routes:
        for method in (route.methods or set()) - {"HEAD"}:
            names = re.findall(r"\{(\w+)\}", route.path)
            assert set(names) <= {"run_id", *ROUTE_WORDS}, f"say here what {route.path} is asked"
            tools = [tool.name for tool in await shared.built.server.list_tools()]
            for name in tools if "name" in names else [""]:

                async def reply(asked: dict[str, Any], method: str = method) -> str:
                    sent = {"json": asked["body"]} if method == "POST" else {}
                    answer = await browser.request(method, asked["path"], **sent)
                    return f"{answer.status_code} {sorted(answer.headers.items())} {answer.text}"

                path = route.path.replace("{run_id}", "ID").replace("{name}", name)
                for query in (
                    "",
                    "?text=ID",
                    "?text=bobs",
                    "?cursor=99999",
                    "?directory=/home/runs/ID",
                    "?to=/runs/ID",
                ):
                    yield (
                        f"{method} {route.path}",
                        lambda run_id, path=f"{path}{query}", name=name: {
                            "path": path.replace("ID", run_id),
                            "body": {"run_id": run_id} if name != "start_run" else {"question": "q", "dry_run": True},
                        },
                        reply,
                    )
