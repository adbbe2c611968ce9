"""Gemini CLI, opencode, Copilot CLI and Goose, each by its own settings after `massgen install`: their models start
runs and get the results.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tests.clients.model_apis import Asked, Call, ModelApi, model_api
from tests.clients.places import (
    OURS,
    Missing,
    Place,
    binary,
    check_plan,
    hold,
    new_place,
    say,
    show_what_the_model_saw,
)

KEY = "not-a-key-of-anybody"
QUESTION = "Ask the team."
WINNER = "replace it piece by piece"
CLAUDE = "claude-sonnet-4-5"


def _delegate(asked: Asked) -> str | Call:
    match len(asked.results):
        case 0:
            return Call(
                "start_run",
                {"question": "Should we rewrite it or refactor it?", "team": "scripted", "wait_seconds": 30},
            )
        case 1 if WINNER not in asked.results[0]:
            return Call("list_runs", {})
        case _:
            return "The team says: " + (
                "piece by piece." if any(WINNER in text for text in asked.results) else "nothing."
            )


@dataclass(frozen=True)
class Client:
    """How a client is led to a local model, and how it is asked."""

    program: str
    prepare: Callable[[Place, ModelApi], Place]
    arguments: Sequence[str]


def _gemini(place: Place, api: ModelApi) -> Place:
    auth = {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}}
    place.write(".gemini/settings.json", {"security": auth, "privacy": {"usageStatisticsEnabled": False}})
    return place.with_variables(
        GEMINI_API_KEY=KEY,
        GOOGLE_GEMINI_BASE_URL=api.url,
        GEMINI_CLI_TRUST_WORKSPACE="true",
        GEMINI_CLI_NO_RELAUNCH="true",
    )


def _opencode(place: Place, api: ModelApi) -> Place:
    options = {"baseURL": f"{api.url}/v1", "apiKey": KEY}
    provider = {"npm": "@ai-sdk/anthropic", "options": options, "models": {CLAUDE: {"name": "Claude"}}}
    place.write(".config/opencode/opencode.json", {"provider": {"anthropic": provider}})
    return place.with_variables(OPENCODE_DISABLE_MODELS_FETCH="1", OPENCODE_DISABLE_AUTOUPDATE="1")


def _copilot(place: Place, api: ModelApi) -> Place:
    return place.with_variables(
        COPILOT_OFFLINE="true",
        COPILOT_PROVIDER_TYPE="anthropic",
        COPILOT_PROVIDER_BASE_URL=api.url,
        COPILOT_PROVIDER_API_KEY=KEY,
        COPILOT_MODEL=CLAUDE,
    )


def _goose(place: Place, api: ModelApi) -> Place:
    return place.with_variables(
        GOOSE_PROVIDER="anthropic",
        GOOSE_MODEL=CLAUDE,
        ANTHROPIC_HOST=api.url,
        ANTHROPIC_API_KEY=KEY,
        GOOSE_DISABLE_KEYRING="1",
        GOOSE_TELEMETRY_ENABLED="false",
    )


PROGRAMS: Mapping[str, Client] = {
    "gemini": Client("gemini", _gemini, ["--yolo", "--model", "gemini-2.5-pro", "--prompt", QUESTION]),
    "opencode": Client("opencode", _opencode, ["run", "--auto", "--model", f"anthropic/{CLAUDE}", QUESTION]),
    "copilot": Client("copilot", _copilot, ["--allow-all-tools", "--prompt", QUESTION]),
    "goose": Client("goose", _goose, ["run", "--no-session", "--text", QUESTION]),
}


def show() -> None:
    skipped = 0
    for name, client in PROGRAMS.items():
        say(f"  {name}:")
        try:
            _show(name, client, binary(client.program))
        except Missing as error:
            say(f"  SKIPPED, NOTHING WAS SHOWN: {error}")
            skipped += 1
    if skipped == len(PROGRAMS):
        raise Missing("none of them is there")


def _show(name: str, client: Client, program: str) -> None:
    with new_place() as place, model_api(_delegate) as api:
        ready = client.prepare(place, api)
        ready.run(str(OURS), "install", name)
        printed = ready.run(program, *client.arguments, errors=True)
        check_plan(api)
        show_what_the_model_saw(api)
        hold("piece by piece" in printed, f"{name}: the result came back, and the model could say it")
