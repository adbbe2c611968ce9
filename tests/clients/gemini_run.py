"""Gemini CLI starts a run and gets its result."""

from tests.clients.model_apis import Asked, Call, model_api
from tests.clients.places import (
    OURS,
    binary,
    check_plan,
    hold,
    new_place,
    show_what_the_model_saw,
)

KEY = "not-a-key-of-anybody"
WINNER = "replace it piece by piece"


def _delegate(asked: Asked) -> str | Call:
    match len(asked.results):
        case 0:
            return Call("start_run", {"question": "Rewrite it, or mend it?", "team": "scripted", "wait_seconds": 30})
        case 1 if WINNER not in asked.results[0]:
            return Call("list_runs", {})
        case _:
            return "The team says: " + (
                "piece by piece." if any(WINNER in text for text in asked.results) else "nothing."
            )


def show() -> None:
    with new_place() as place, model_api(_delegate) as api:
        state = {"MASSGEN_MCP_HOME": str(place.home.path)}
        server = {"command": str(OURS), "env": state, "trust": True}
        auth = {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}}
        usage = {"usageStatisticsEnabled": False}
        settings = {"mcpServers": {"massgen": server}, "security": auth, "privacy": usage}
        place.write(".gemini/settings.json", settings)
        gemini = place.with_variables(
            GEMINI_API_KEY=KEY,
            GOOGLE_GEMINI_BASE_URL=api.url,
            GEMINI_CLI_TRUST_WORKSPACE="true",
            GEMINI_CLI_NO_RELAUNCH="true",
        )
        printed = gemini.run(binary("gemini"), "--yolo", "--model", "gemini-2.5-pro", "--prompt", "Ask the team.")
        check_plan(api)
        show_what_the_model_saw(api)
        hold("piece by piece" in printed, "the result came back, and the model could say it")
