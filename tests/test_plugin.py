"""The plugin says the truth: its version, its hooks, and the tools that it names."""

import json
import re
import shlex
from typing import Any

import pytest

from bundle.facts import CODEX_SKILL, codex_plugin, codex_skill
from massgen_mcp import __version__
from massgen_mcp.cli import program
from massgen_mcp.cli.commands import load_verb
from tests.commands import ROOT
from tests.harness import TempHome, home

__all__ = ["home"]

MARKETPLACE = ROOT / ".claude-plugin" / "marketplace.json"
PLUGIN = ROOT / "plugins" / "massgen"
COMMANDS = ("apply", "cancel", "delegate", "review-changes", "runs", "second-opinion")
READS = ("get_result", "get_status", "list_configs", "list_runs", "wait_run")
SAID_IN_REPLIES = ("input_required", "next_offset", "run_id")
TEXTS = sorted(PLUGIN.rglob("*.md"))


def read(name: str) -> Any:
    return json.loads((PLUGIN / name).read_text())


def test_the_marketplace_offers_the_plugin_in_the_version_of_the_package() -> None:
    (offered,) = json.loads(MARKETPLACE.read_text())["plugins"]
    manifest = read(".claude-plugin/plugin.json")
    assert (ROOT / offered["source"]).resolve() == PLUGIN
    assert (offered["name"], offered["description"]) == (manifest["name"], manifest["description"])
    assert manifest["version"] == __version__


@pytest.mark.parametrize("client", ["codex", "cursor"])
def test_other_clients_get_a_skill_and_the_server_and_none_of_the_hooks_of_claude_code(client: str) -> None:
    own, theirs = read(".claude-plugin/plugin.json"), read(f".{client}-plugin/plugin.json")
    assert {name: theirs[name] for name in own} == own
    own_parts: dict[str, tuple[str, Any]] = {
        "codex": ("./codex/skills/", "./codex/hooks.json"),
        "cursor": ("./skills/", {}),
    }
    assert (theirs["skills"], theirs["hooks"]) == own_parts[client]
    installed = codex_plugin()["mcpServers"]
    assert theirs["mcpServers"] == (installed if client == "codex" else "./.mcp.json"), "run `make bundle`"
    assert [*(PLUGIN / theirs["skills"]).rglob("SKILL.md")]
    place = {"codex": ".agents/plugins", "cursor": ".cursor-plugin"}[client]
    (offered,) = json.loads((ROOT / place / "marketplace.json").read_text())["plugins"]
    source = offered["source"]["path"] if client == "codex" else offered["source"]
    assert (offered["name"], (ROOT / source).resolve()) == (own["name"], PLUGIN)


def test_the_skill_of_codex_says_what_is_true_there() -> None:
    text = CODEX_SKILL.read_text()
    assert text == codex_skill(), "run `make bundle`"
    assert "a hook that\n   the user has trusted" in text
    assert "task" not in text.replace("a task of", "")


def test_every_hook_of_codex_is_a_command_that_we_have() -> None:
    groups = read("codex/hooks.json")["hooks"]
    assert [*groups] == ["PostToolUse", "Stop"]
    for hook in (groups[event][0]["hooks"][0] for event in groups):
        command, *arguments = shlex.split(hook["command"])
        assert (command, arguments[0]) == ("massgen-mcp", "hook")
        load_verb("hook").parse(arguments[1:])
    assert groups["PostToolUse"][0]["matcher"] == read("hooks/hooks.json")["hooks"]["PostToolUse"][0]["matcher"]


def test_commands_may_read_without_asking_and_nothing_else() -> None:
    for path in (PLUGIN / "commands").iterdir():
        (line,) = re.findall(r"^allowed-tools: (.*)$", path.read_text(), re.MULTILINE)
        assert {one.removeprefix("mcp__plugin_massgen_massgen__") for one in line.split(", ")} == {*READS}, path


def test_every_hook_and_the_server_are_commands_that_we_have() -> None:
    hooks = [
        hook for matchers in read("hooks/hooks.json")["hooks"].values() for one in matchers for hook in one["hooks"]
    ]
    assert len(hooks) == 3
    for hook in hooks:
        assert hook["command"] == "massgen-mcp"
        assert program.read("massgen-mcp", hook["args"])[0].name == "hook"
    (server,) = read(".mcp.json")["mcpServers"].values()
    assert server["command"] == "massgen-mcp"
    assert program.read("massgen-mcp", server.get("args", []))[0].name == "serve"


def test_what_waits_for_days_waits_in_the_background() -> None:
    """A hook without `asyncRewake` would hold the session up, and one with it can wake it."""
    hooks = read("hooks/hooks.json")["hooks"]
    assert {event: [one["hooks"][0].get("asyncRewake", False) for one in hooks[event]] for event in hooks} == {
        "PostToolUse": [False],
        "Stop": [True],
        "SessionStart": [True],
    }


async def test_the_tools_that_it_watches_and_names_are_there(home: TempHome) -> None:
    async with home.client() as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    arguments = {name for tool in tools.values() for name in tool.input_schema["properties"]}
    (after,) = read("hooks/hooks.json")["hooks"]["PostToolUse"]
    watched = [
        tool
        for tool in sorted(tools)
        if all(
            re.fullmatch(after["matcher"], f"{prefix}__{tool}")
            for prefix in ("mcp__massgen", "mcp__plugin_massgen_massgen")
        )
    ]
    assert watched == ["control_run", "get_result", "get_status", "start_run", "wait_run"]
    for text in TEXTS:
        named = set(re.findall(r"`([a-z]+_[a-z_]+)`", text.read_text()))
        assert named <= {*tools, *arguments, *SAID_IN_REPLIES}, text


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_the_users_and_is_named_in_the_page_of_the_plugin(name: str) -> None:
    text = (PLUGIN / "commands" / f"{name}.md").read_text()
    assert "disable-model-invocation: true" in text, "the model has the skill; a command would cost it tokens"
    assert "$ARGUMENTS" in text
    assert f"`/massgen:{name}`" in (PLUGIN / "README.md").read_text()


def test_the_skill_has_the_name_of_its_directory() -> None:
    (skill,) = (PLUGIN / "skills").iterdir()
    assert f"\nname: {skill.name}\n" in (skill / "SKILL.md").read_text()
    assert sorted(path.stem for path in (PLUGIN / "commands").iterdir()) == list(COMMANDS)
