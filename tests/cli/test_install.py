"""`massgen install` and `uninstall`: our entry in the settings of MCP clients, and nothing else changed there."""

import json
import os
import shlex
import stat
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from massgen_mcp.cli.massgen_mcp.install.clients import CLIENTS
from tests.commands import run_command
from tests.harness import SERVER_MODULE, TempHome
from tests.planted import PLANTED

USAGE = 64
FILES = {
    "claude-code": ".claude.json",
    "codex": ".codex/config.toml",
    "gemini": ".gemini/settings.json",
    "cursor": ".cursor/mcp.json",
    "vscode": ".config/Code/User/mcp.json",
    "windsurf": ".codeium/windsurf/mcp_config.json",
    "zed": ".config/zed/settings.json",
    "opencode": ".config/opencode/opencode.json",
    "copilot": ".copilot/mcp-config.json",
    "agy": ".gemini/antigravity-cli/mcp_config.json",
    "jetbrains": ".junie/mcp/mcp.json",
    "zed-agent": ".config/zed/settings.json",
    "jetbrains-agent": ".jetbrains/acp.json",
    "amp": ".config/amp/settings.json",
    "goose": ".config/goose/config.yaml",
    "claude-desktop": ".config/Claude/claude_desktop_config.json",
}
SECTIONS = {
    "codex": "mcp_servers",
    "vscode": "servers",
    "zed": "context_servers",
    "opencode": "mcp",
    "zed-agent": "agent_servers",
    "jetbrains-agent": "agent_servers",
    "amp": "amp.mcpServers",
    "goose": "extensions",
}
REFERENCES = {
    "claude-code": "${OPENAI_API_KEY:-}",
    "gemini": "${OPENAI_API_KEY:-}",
    "cursor": "${env:OPENAI_API_KEY}",
    "vscode": "${env:OPENAI_API_KEY}",
    "windsurf": "${env:OPENAI_API_KEY}",
    "copilot": "${OPENAI_API_KEY:-}",
    "agy": "$OPENAI_API_KEY",
}
KEY = "sk-never-to-be-written-0123456789"


@pytest.fixture
def person(home: TempHome) -> TempHome:
    """Somebody with a home directory and one key."""
    directory = home.work / "person"
    directory.mkdir()
    nothing = dict.fromkeys((*PLANTED, "CODEX_HOME", "CLAUDE_CONFIG_DIR", "GEMINI_CLI_HOME", "XDG_CONFIG_HOME"), "")
    return home.with_variables(**nothing, HOME=str(directory), OPENAI_API_KEY=KEY)


def settings(person: TempHome, client: str) -> Path:
    return Path(person.environ["HOME"], FILES[client])


def written(person: TempHome, client: str, text: str) -> Path:
    file = settings(person, client)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def entry(person: TempHome, client: str, name: str = "massgen") -> dict[str, Any]:
    text = settings(person, client).read_text()
    said = {"codex": tomllib.loads, "goose": yaml.safe_load}.get(client, json.loads)(text)
    return said[SECTIONS.get(client, "mcpServers")][name]


def install(person: TempHome, *arguments: str, verb: str = "install") -> str:
    """What it says; fails the test if it does not succeed."""
    done = run_command(person, SERVER_MODULE, verb, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refused(person: TempHome, *arguments: str, code: int = 1) -> str:
    done = run_command(person, SERVER_MODULE, "install", *arguments)
    assert done.returncode == code, done.stdout
    assert "ERROR invalid_arguments" in done.stderr
    return done.stderr


def test_every_client_is_named(person: TempHome) -> None:
    assert set(CLIENTS) == set(FILES)
    told = run_command(person, SERVER_MODULE, "install", "--help").stdout
    assert ", ".join(CLIENTS) in " ".join(told.split())


@pytest.mark.parametrize("client", FILES)
def test_a_fresh_home_gets_an_entry_with_absolute_paths_and_names_of_keys_that_can_be_taken_back(
    person: TempHome, client: str
) -> None:
    told = install(person, client)
    file = settings(person, client)
    assert str(file) in told
    assert ("doesn't pass keys to servers" if client == "claude-desktop" else "OPENAI_API_KEY") in told
    assert "Next: " in told
    ours = entry(person, client)
    command = ours["command"][0] if client == "opencode" else ours.get("cmd") or ours["command"]
    assert Path(command).is_absolute()
    assert os.access(command, os.X_OK)
    assert KEY not in file.read_text()
    if client == "codex":
        assert "OPENAI_API_KEY" in ours["env_vars"]
        assert ours["startup_timeout_sec"] >= 10
        approved = {"approval_mode": "approve"}
        assert ours["tools"] == {"start_run": approved, "control_run": approved}, "nothing that is destructive"
        assert "default_tools_approval_mode" not in ours
    elif client in ("zed-agent", "jetbrains-agent"):
        assert ours["args"][-1] == "acp"
    elif client == "goose":
        assert (ours["name"], ours["type"], ours["enabled"]) == ("massgen", "stdio", True)
        assert "OPENAI_API_KEY" in ours["env_keys"]
    elif client in REFERENCES:
        assert ours["env"]["OPENAI_API_KEY"] == REFERENCES[client]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    before = file.read_text()
    assert "already" in install(person, client), "a second time changes nothing"
    assert file.read_text() == before
    install(person, client, verb="uninstall")
    assert not file.exists(), "as it was before"
    assert "has no entry" in install(person, client, verb="uninstall")


@pytest.mark.parametrize("client", FILES)
def test_printing_touches_nothing(person: TempHome, client: str) -> None:
    printed = install(person, client, "--print")
    assert not settings(person, client).exists()
    written(person, client, printed)
    assert "already" in install(person, client), "what is printed is what would be written"
    assert install(person, client, "--dry-run") == printed


def test_a_project_has_an_entry_of_its_own_where_the_client_knows_that(person: TempHome) -> None:
    install(person, "claude-code", "--scope", "project")
    install(person, "vscode", "--scope", "project")
    assert json.loads((person.work / ".mcp.json").read_text())["mcpServers"]["massgen"]
    assert json.loads((person.work / ".vscode/mcp.json").read_text())["servers"]["massgen"]
    assert not settings(person, "claude-code").exists()
    assert "--scope user" in refused(person, "windsurf", "--scope", "project")


COMMENTED = """\
// Settings of somebody who explains them
{
    /* theme first */
    "theme": "dark", // at night
    "context_servers": {
        "other": { "command": "x", "args": ["// no comment", "/* nor this */"] }, // kept
    },
    "number": 1.50, "deep": [1, {"a": null},],
}
"""
TOML = """\
# Somebody's settings
model = "gpt-5"   # the good one

[mcp_servers.other]
command = 'x' # odd spacing   stays
args = ["[mcp_servers.massgen]"]

[profiles.fast]
text = \"\"\"
[mcp_servers.massgen]
\"\"\"
"""


YAML = """\
# Somebody's settings
GOOSE_MODEL: gpt-5   # the good one
extensions:
    other:   # four blanks
        cmd: 'x'
        args: ["extensions:", "massgen:"]

    # behind it
# of what follows
text: |
  extensions:
    massgen:
"""


@pytest.mark.parametrize(("client", "text"), [("zed", COMMENTED), ("codex", TOML), ("goose", YAML)])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_comments_other_entries_and_spelling_stay(person: TempHome, client: str, text: str, newline: str) -> None:
    file = written(person, client, "")
    original = text.replace("\n", newline).encode()
    file.write_bytes(original)
    told = install(person, client)
    now = file.read_bytes()
    for line in original.splitlines():
        assert line.rstrip(b",") in now
    assert now.count(b"\n") == now.count(newline.encode())
    assert b"massgen-mcp" in now or b"massgen_mcp" in now
    copy = file.with_name(f"{file.name}.before-massgen")
    assert copy.read_bytes() == original
    assert str(copy) in told
    install(person, client, verb="uninstall")
    left = file.read_bytes()
    assert b"before" not in left
    assert left == original
    file.write_bytes(original.replace(b"dark", b"light").replace(b"gpt-5", b"gpt-6"))
    install(person, client)
    assert copy.read_bytes() == original, "the copy is made once, of what was there first"


BEFORE = {
    "claude-code": '{"numStartups":3,"mcpServers":{},"projects":{}}',
    "codex": 'model = "gpt-5"\n\n\n',
    "gemini": '{"theme": "dark",\n   "mcpServers": { "other": {"command":"x"} } }',
    "cursor": '{\n\t"mcpServers": {\n\t}\n}',
    "vscode": '// mine\n{"servers": {"other": {"command": "x"}},}\n',
    "windsurf": "",
    "zed": COMMENTED,
    "opencode": '{"$schema": "x", "mcp": {"other": {"type": "local", "command": ["x"]}}}\n',
    "copilot": '{"mcpServers": {}}\n',
    "agy": '{"mcpServers": {"other": {"serverUrl": "https://x.example"}}}',
    "jetbrains": "{}\n",
    "zed-agent": '{"agent_servers": {"other": {"type": "custom", "command": "x"}}, "context_servers": {}}',
    "jetbrains-agent": '{"default_mcp_settings": {"use_idea_mcp": true}, "agent_servers": {}}\n',
    "amp": '{"amp.mcpServers": {}, "amp": {"mcpServers": 1}}\n',
    "goose": "GOOSE_MODE: auto\nextensions: {}",
    "claude-desktop": '{"preferences": {}}',
}


@pytest.mark.parametrize("client", FILES)
def test_uninstall_leaves_the_file_as_it_was_before(person: TempHome, client: str) -> None:
    file = written(person, client, BEFORE[client])
    install(person, client)
    assert file.read_text() != BEFORE[client]
    install(person, client, verb="uninstall")
    assert file.read_text() == BEFORE[client]


def test_uninstall_keeps_what_somebody_changed_since(person: TempHome) -> None:
    file = written(person, "cursor", '{"mcpServers":{}}')
    install(person, "cursor")
    file.write_text(file.read_text().replace('{"mcp', '{"mine": 1, "mcp'))
    install(person, "cursor", verb="uninstall")
    assert json.loads(file.read_text()) == {"mine": 1, "mcpServers": {}}


@pytest.mark.parametrize(
    ("client", "text"),
    [
        (
            "zed",
            '{\n  // "context_servers": {"massgen": {"command": "massgen-mcp"}},\n  "a": 1 /* "massgen": {} */\n}\n',
        ),
        ("zed", '{\n  "context_servers": {\n    // "massgen": {"command": "massgen-mcp"}\n  }\n}\n'),
        ("codex", "# [mcp_servers.massgen]\n# command = 'massgen-mcp'\na = 1\n"),
        ("goose", "# extensions:\n#   massgen:\n#     cmd: massgen-mcp\na: 1\n"),
        ("goose", "extensions:\n  # massgen:\n  #   cmd: massgen-mcp\n  b:\n    cmd: x\n"),
    ],
)
def test_what_is_commented_out_is_no_entry_and_stays(person: TempHome, tmp_path: Path, client: str, text: str) -> None:
    file = written(person, client, text)
    install(person, client)
    comments = [line for line in text.splitlines() if line.lstrip().startswith(("#", "//")) or "/*" in line]
    now = [line.replace("1,", "1") for line in file.read_text().splitlines()]
    assert [line for line in now if line in comments] == comments
    assert any("massgen" in line for line in now if line not in comments)
    assert "already" in install(person, client)
    install(person, client, verb="uninstall")
    assert file.read_text() == text
    asked = with_programs(person, tmp_path, CLIENTS[client].program)
    told = run_command(asked, SERVER_MODULE, "doctor").stdout
    assert f"{CLIENTS[client].title} is installed, but massgen-mcp isn't set up in it" in told


def test_a_goose_file_in_another_style_is_left_as_it_is(person: TempHome) -> None:
    file = written(person, "goose", "extensions: {other: {cmd: x}}\n")
    told = refused(person, "goose")
    assert "can't edit safely" in told
    assert "  massgen:\n    name: massgen\n" in told
    assert file.read_text() == "extensions: {other: {cmd: x}}\n"
    file.write_text("extensions: [\n")
    assert "line 2 is no YAML" in refused(person, "goose")


def test_who_is_not_woken_is_told_to_wait(person: TempHome) -> None:
    assert "Codex isn't notified" in install(person, "codex")
    assert "install codex --hook" in install(person, "codex")
    assert "isn't notified" not in install(person, "claude-code")


THEIRS: dict[str, Any] = {
    "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]},
    "description": "mine",
}


def test_the_hooks_of_codex_come_beside_those_of_others_and_go_again(person: TempHome) -> None:
    file = settings(person, "codex").with_name("hooks.json")
    told = install(person, "codex", "--hook")
    assert str(file) in told
    assert "only after you trust them" in told
    added = json.loads(file.read_text())["hooks"]
    (note,), (wait,) = (added[event][0]["hooks"] for event in ("PostToolUse", "Stop"))
    program, *_, verb, directory = shlex.split(wait["command"])
    assert (note["command"], Path(program).is_absolute(), verb) == (wait["command"], True, "hook")
    assert directory == str(file.parent / "massgen")
    assert wait["timeout"] > 24 * 3600, "a run may take long"
    install(person, "codex", verb="uninstall")
    assert not file.exists()
    file.write_text(json.dumps(THEIRS))
    install(person, "codex", "--hook")
    assert "already in" in install(person, "codex", "--hook"), "a second time changes nothing"
    assert json.loads(file.read_text())["hooks"]["Stop"] == [*THEIRS["hooks"]["Stop"], *added["Stop"]]
    install(person, "codex", verb="uninstall")
    assert json.loads(file.read_text()) == THEIRS
    for broken in ("{", "[]", '{"hooks": []}', '{"hooks": {"Stop": 1}}'):
        file.write_text(broken)
        assert "hooks.json was not changed" in refused(person, "codex", "--hook")
        assert file.read_text() == broken


def test_no_other_client_takes_the_hook_of_codex(person: TempHome) -> None:
    assert "--hook works only for Codex" in refused(person, "cursor", "--hook")


def test_an_entry_that_others_use_names_no_path_of_this_machine(person: TempHome) -> None:
    own = Path(sys.executable).with_name("massgen-mcp")
    person = replace(person, starts_anew=True)
    on_path = person.with_variables(PATH=f"{own.parent}{os.pathsep}{os.defpath}")
    install(on_path, "claude-code", "--scope", "project")
    shared = json.loads((person.work / ".mcp.json").read_text())["mcpServers"]["massgen"]
    assert shared["command"] == "massgen-mcp"
    install(on_path, "claude-code")
    assert entry(person, "claude-code")["command"] == str(own), "one's own client may have another PATH"
    install(person.with_variables(PATH=os.defpath), "vscode", "--scope", "project")
    elsewhere = json.loads((person.work / ".vscode/mcp.json").read_text())["servers"]["massgen"]
    assert Path(elsewhere["command"]).is_absolute(), "a name that is not on PATH would start nothing"


def test_the_doctor_starts_what_a_client_would_start_and_nothing_that_a_project_names(
    person: TempHome, tmp_path: Path
) -> None:
    person = replace(
        with_programs(person, tmp_path, "claude", "codex", "gemini", "opencode", "zed", "idea"), starts_anew=True
    )
    moved, silent, started = tmp_path / "moved/massgen-mcp", tmp_path / "silent/massgen-mcp", person.work / "started"
    program(silent, "exit 3")
    program(person.work / "massgen-mcp", f"touch {started}")
    (person.work / ".mcp.json").write_text(json.dumps({"mcpServers": {"massgen": {"command": "./massgen-mcp"}}}))
    for client, command in (
        ("claude-code", None),
        ("codex", moved),
        ("gemini", silent),
        ("opencode", None),
        ("zed-agent", None),
    ):
        install(person, client)
        if command is not None:
            file = settings(person, client)
            file.write_text(file.read_text().replace(entry(person, client)["command"], str(command)))

    told = run_command(person, SERVER_MODULE, "doctor").stdout
    assert "ok    client: Claude Code: massgen-mcp is in person/.claude.json, .mcp.json\n" in told
    assert "ok    client: opencode: massgen-mcp is in person/.config/opencode/opencode.json\n" in told
    assert "ok    client: Zed's agent panel: massgen-mcp is in person/.config/zed/settings.json\n" in told
    assert "JetBrains AI Chat" not in told, "nobody has to want an agent"
    assert not started.exists(), "whoever wrote the project is not the person who asks"
    cannot = "cannot start massgen-mcp; person/"
    assert f"warn  client: Codex {cannot}.codex/config.toml: program not found: {moved}\n" in told
    assert "      massgen install codex\n" in told
    assert f"warn  client: Gemini CLI {cannot}.gemini/settings.json: {silent} exited with code 3 without" in told


def program(path: Path, does: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{does}\n")
    path.chmod(0o755)


def with_programs(person: TempHome, directory: Path, *names: str) -> TempHome:
    """The same person with these programs on their path."""
    for name in names:
        program(directory / name, "true")
    return person.with_variables(PATH=f"{directory}{os.pathsep}{os.defpath}")


OLDER = """\
[mcp_servers.massgen]
command = "/old/massgen-mcp"
args = []
env_vars = ["MINE"]
tool_timeout_sec = 900.5
enabled = false

[mcp_servers.massgen.tools.start_run]
approval_mode = "prompt"

# of the next
[tui]
"""


def test_what_somebody_changed_in_our_entry_stays_and_the_path_is_renewed(person: TempHome) -> None:
    file = written(person, "codex", OLDER)
    install(person, "codex")
    ours = entry(person, "codex")
    assert ours["command"] != "/old/massgen-mcp"
    assert ours["env_vars"] == ["MINE", "OPENAI_API_KEY", "MASSGEN_MCP_HOME"]
    assert ours["tool_timeout_sec"] == 900.5
    assert ours["enabled"] is False
    assert ours["tools"] == {"start_run": {"approval_mode": "prompt"}}
    assert file.read_text().endswith("\n\n# of the next\n[tui]\n")


def test_comments_in_our_entry_stay_however_its_table_is_written(person: TempHome) -> None:
    head, _, rest = OLDER.partition("\n")
    file = written(person, "codex", f'[mcp_servers . "massgen"] # mine\n# slow\n{rest}')
    install(person, "codex")
    assert entry(person, "codex")["command"] != "/old/massgen-mcp"
    assert file.read_text().startswith('[mcp_servers . "massgen"] # mine\n# slow\ncommand = "/')
    assert head not in file.read_text()
    file.write_text(file.read_text().replace("enabled = false", "enabled = true"))
    install(person, "codex", verb="uninstall")
    assert file.read_text() == "\n# of the next\n[tui]\n"
    file.write_text('mcp_servers.massgen.command = "massgen-mcp"\nmodel = "gpt-5"\n')
    install(person, "codex")
    assert entry(person, "codex")["args"]
    install(person, "codex", verb="uninstall")
    assert "massgen" not in file.read_text()
    assert 'model = "gpt-5"' in file.read_text()


def test_further_variables_and_another_name_can_be_chosen(person: TempHome) -> None:
    install(person, "cursor", "--name", "second-opinion", "--key", "MY_MODEL_KEY")
    assert entry(person, "cursor", "second-opinion")["env"]["MY_MODEL_KEY"] == "${env:MY_MODEL_KEY}"
    assert "not its value" in refused(person, "cursor", "--key", "sk-1234", code=USAGE)


def test_without_a_key_it_says_how_one_gets_there(person: TempHome) -> None:
    told = install(person.with_variables(OPENAI_API_KEY="", MASSGEN_MCP_HOME=""), "cursor")
    assert "--key" in told


@pytest.mark.parametrize(
    ("client", "text", "why"),
    [
        ("cursor", '{"mcpServers": {"a": 1,, }}', "line 1"),
        ("cursor", '{"mcpServers": []}', "mcpServers"),
        ("cursor", "[]", "isn't a JSON object"),
        ("cursor", '{"mcpServers": {"massgen": {"command": "npx", "args": ["else"]}}}', "--name"),
        ("cursor", '{"mcpServers": {}, "mcpServers": {"a": {}}}', "safely"),
        ("cursor", "[" * 100_000, "deep"),
        ("codex", "model = \n", "line 1"),
        ("codex", 'mcp_servers = { other = { command = "x" } }\n', "safely"),
    ],
)
def test_a_file_that_cannot_be_changed_safely_is_left_alone_and_the_entry_is_printed(
    person: TempHome, client: str, text: str, why: str
) -> None:
    file = written(person, client, text)
    told = refused(person, client)
    assert why in told
    assert str(file) in told
    assert "OPENAI_API_KEY" in told, "the entry, to be put there by hand"
    assert file.read_text() == text
    assert [other.name for other in file.parent.iterdir()] == [file.name]


def test_a_file_that_is_not_text_or_read_only_or_no_file_is_left_alone(person: TempHome) -> None:
    file = written(person, "cursor", "")
    file.write_bytes(b'{"a": "\xff"}')
    assert "UTF-8" in refused(person, "cursor")
    file.write_text("{}")
    file.chmod(0o444)
    assert "read-only" in refused(person, "cursor")
    assert file.read_text() == "{}"
    file.unlink()
    file.mkdir()
    assert "it isn't a file" in refused(person, "cursor")
    file.rmdir()
    file.symlink_to(file)
    refused(person, "cursor")


def test_a_link_stays_a_link_and_what_it_means_keeps_its_mode(person: TempHome) -> None:
    meant = person.work / "dotfiles.json"
    meant.write_text("\ufeff{}")
    meant.chmod(0o640)
    link = written(person, "cursor", "")
    link.unlink()
    link.symlink_to(meant)
    install(person, "cursor")
    assert link.is_symlink()
    assert stat.S_IMODE(meant.stat().st_mode) == 0o640
    text = meant.read_text()
    assert text.startswith("\ufeff{")
    assert json.loads(text.removeprefix("\ufeff"))["mcpServers"]["massgen"]


PROJECT_LINKS = [
    ("vscode", ".vscode/mcp.json", "person/new.json"),
    ("vscode", ".vscode", "person"),
    ("claude-code", ".mcp.json", "person/new.json"),
    ("cursor", ".cursor", "person"),
    ("gemini", ".gemini", "person/deeper"),
    ("claude-code", ".mcp.json", "person/settings.json"),
]


@pytest.mark.parametrize(("client", "link", "target"), PROJECT_LINKS)
@pytest.mark.parametrize("verb", ["install", "uninstall"])
def test_no_link_of_a_project_leads_an_entry_out_of_it(
    person: TempHome, tmp_path: Path, client: str, link: str, target: str, verb: str
) -> None:
    outside = tmp_path / "person"
    (outside / "deeper").mkdir(parents=True)
    (outside / "settings.json").write_text('{"mcpServers": {"massgen": {"command": "massgen-mcp"}}}')
    place = person.work / link
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(tmp_path / target)
    before = {path: path.read_bytes() for path in outside.rglob("*") if path.is_file()}
    done = run_command(person, SERVER_MODULE, verb, client, "--scope", "project")
    assert {path: path.read_bytes() for path in outside.rglob("*") if path.is_file()} == before
    assert place.is_symlink()
    if verb == "install" or target.endswith("settings.json"):
        assert done.returncode == 1
        assert f"a link points outside the project, to {tmp_path / target}" in done.stderr


def test_a_link_within_a_project_is_followed_but_for_its_repository(person: TempHome) -> None:
    for name in ("shared", ".git/hooks"):
        (person.work / name).mkdir(parents=True)
    (person.work / ".cursor").symlink_to("shared")
    assert run_command(person, SERVER_MODULE, "install", "cursor", "--scope", "project").returncode == 0
    assert "massgen" in (person.work / "shared" / "mcp.json").read_text()
    (person.work / ".mcp.json").symlink_to(".git/hooks/pre-commit")
    done = run_command(person, SERVER_MODULE, "install", "claude-code", "--scope", "project")
    assert (done.returncode, [*(person.work / ".git/hooks").iterdir()]) == (1, [])


def test_an_unknown_client_and_a_missing_home_are_named(person: TempHome) -> None:
    assert "did you mean 'claude-code'" in refused(person, "claude", code=USAGE)
    assert "did you mean 'vscode'" in refused(person, "vs-code", code=USAGE)
    assert "HOME" in refused(replace(person).with_variables(HOME="/no/such/home"), "codex")


def test_the_outcome_is_one_document_when_asked_for(person: TempHome) -> None:
    said = json.loads(install(person, "codex", "--json"))
    assert said["file"] == str(settings(person, "codex"))
    assert said["changed"] is True
    assert said["entry"] == entry(person, "codex")
    taken = json.loads(install(person, "codex", "--json", verb="uninstall"))
    assert taken["changed"] is True
