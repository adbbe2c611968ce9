"""Claude Code has start_run at hand without a search; deferred by a person, its search finds it for nine phrases."""

from tests.clients.claude import ClaudeCode
from tests.clients.model_apis import Asked, Call, model_api
from tests.clients.places import OURS, check_plan, hold, new_place, say, tokens
from tests.clients.search_phrases import PHRASES

START = "mcp__massgen__start_run"


def _search(asked: Asked) -> str | Call:
    done = len(asked.results)
    return Call("ToolSearch", {"query": PHRASES[done], "max_results": 5}) if done < len(PHRASES) else "done"


def show() -> None:
    with new_place() as place, model_api(_search) as api:
        claude = ClaudeCode(place, api, "mcp__massgen")

        def ask(*, always_load: bool | None) -> None:
            entry = {"command": str(OURS), **({} if always_load is None else {"alwaysLoad": always_load})}
            servers = place.write("mcp.json", {"mcpServers": {"massgen": entry}})
            api.asked.clear()
            claude.headless("Go.", "--mcp-config", str(servers), "--strict-mcp-config")
            check_plan(api)

        ask(always_load=None)
        (offered,) = [tool for tool in api.asked[0].body["tools"] if "massgen" in tool["name"]]
        hold(offered["name"] == START, "start_run, and no other tool of ours, is loaded from the first step")
        say(f"  what it costs there: {tokens(str(offered))} tokens")

        ask(always_load=False)
        hold(START not in api.asked[0].tools, "a person can defer it behind the search")
        for phrase, found in zip(PHRASES, api.asked[-1].results, strict=True):
            hits = found.splitlines()
            hold(hits[0] == START, f"{phrase!r} finds it first; then {', '.join(hits[1:]) or 'nothing'}")
