"""The plugin and the marketplace pass Claude Code's own validator, and the installed plugin connects."""

from tests.clients.claude import ClaudeCode
from tests.clients.model_apis import model_api
from tests.clients.places import PLUGIN, hold, new_place, say
from tests.commands import ROOT


def show() -> None:
    with new_place() as place, model_api(lambda _: "fine") as api:
        claude = ClaudeCode(place, api, "")
        verdict = claude.command("plugin", "validate", str(ROOT))
        hold("Validation passed" in verdict, "the marketplace is valid")
        verdict = claude.command("plugin", "validate", str(PLUGIN), "--profile", "directory")
        hold("Validation passed" in verdict, "the plugin is valid, also by the rules of the plugin directory")
        claude.install_plugin()
        listed = claude.command("mcp", "list")
        say("  " + next(line for line in listed.splitlines() if "massgen" in line))
        hold("Connected" in listed, "its server connects")
