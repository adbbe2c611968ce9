"""After `massgen install`, every client that can list its servers shows ours: in a fresh home, without a network or
an account. No value of a key is shown.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from massgen_mcp.cli.massgen_mcp.install.clients import CLIENTS
from tests.clients.places import OURS, Broken, Missing, Place, binary, hold, new_place, say

KEY = "OPENAI_API_KEY"
KEY_VALUE = "sk-never-to-be-shown-0123456789"
QUIET = {
    KEY: KEY_VALUE,
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
}


@dataclass(frozen=True)
class Listing:
    """How a client is asked, and what its answer must hold."""

    program: str
    arguments: Sequence[Sequence[str]]
    wanted: Sequence[str]
    prepare: Callable[[Place], object] | None = None


def _trust(place: Place) -> None:
    place.write(".gemini/trustedFolders.json", {str(place.work): "TRUST_FOLDER"})


LISTINGS: Mapping[str, Listing] = {
    "claude-code": Listing("claude", [["mcp", "list"], ["mcp", "get", "massgen"]], ["Connected", "Timeout: 300000ms"]),
    "codex": Listing(
        "codex",
        [["mcp", "list"], ["mcp", "get", "massgen"]],
        ["enabled", f"{KEY}=*****", "startup_timeout_sec: 30", "tool_timeout_sec: 300"],
    ),
    "gemini": Listing("gemini", [["mcp", "list"]], ["massgen", "Connected"], _trust),
    "opencode": Listing("opencode", [["mcp", "list"]], ["massgen", "connected"]),
    "copilot": Listing("copilot", [["mcp", "get", "massgen"]], ["Status: Enabled", f"{KEY}: ***"]),
    "amp": Listing("amp", [["mcp", "list"]], ["massgen"]),
    "goose": Listing("goose", [["info", "-v"]], ["name: massgen", f"- {KEY}"]),
}


def show() -> None:
    shown = 0
    for client in CLIENTS:
        if (listing := LISTINGS.get(client)) is None:
            say(f"  {client}: SKIPPED, NOTHING WAS SHOWN: it lists no servers outside its window")
            continue
        try:
            with new_place() as place:
                told = _listed(client, listing, place)
        except Missing as error:
            say(f"  {client}: SKIPPED, NOTHING WAS SHOWN: {error}")
            continue
        for line in filter(str.strip, told.splitlines()):
            say(f"    {line}")
        if lacking := [words for words in listing.wanted if words not in told]:
            raise Broken(f"{client} does not show {lacking}")
        hold(KEY_VALUE not in told, f"{client} shows the server as it was installed, and no key")
        shown += 1
    if not shown:
        raise Missing("no client is there that lists its servers")


def _listed(client: str, listing: Listing, place: Place) -> str:
    """What the installation and the client said."""
    program = binary(listing.program)
    place = place.with_variables(**QUIET)
    if listing.prepare:
        listing.prepare(place)
    commands = [[str(OURS), "install", client], *([program, *arguments] for arguments in listing.arguments)]
    return "".join(place.run(*command, errors=True) for command in commands)
