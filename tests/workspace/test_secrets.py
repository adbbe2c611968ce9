"""Files that commonly hold secrets are hidden from agents, every way there is, unless a person names the very file."""

import json
import os
from pathlib import Path

import pytest

from massgen_mcp.events.agent_work import ToolFinished
from massgen_mcp.events.coordination import AnswerSubmitted
from massgen_mcp.tools.files import file_tools
from massgen_mcp.tools.skills import discover_skills, skill_tools
from massgen_mcp.workspace.directory import Workspace
from massgen_mcp.workspace.guard import Root
from massgen_mcp.workspace.snapshot import take_snapshot
from tests.teams import run_team, team

PLANTED = "planted-4711"

HIDDEN = (
    *(".env", ".ENV", ".Env.Local", ".env.production", ".envrc", ".env/key", "app/.env", ".envs/prod/django"),
    *(".ssh/config", ".ssh/known_hosts", ".SSH/id_rsa", "home/.ssh/authorized_keys"),
    *(".aws/credentials", ".aws/config", ".azure/accessTokens.json", ".gnupg/secring.gpg", ".oci/config"),
    *(".password-store/mail.gpg", ".vault-token", ".vault_pass.txt", ".netrc", "_netrc", ".pgpass", "pgpass.conf"),
    *(".my.cnf", ".mylogin.cnf", ".pypirc", ".git-credentials", ".htpasswd", ".dockercfg", ".s3cfg", ".boto"),
    *(
        "client_secret_1.json",
        "server.pem",
        "server.pem/chain",
        "tls/Server.KEY",
        "a.p12",
        "a.pfx",
        "a.jks",
        "a.keystore",
        "a.ppk",
        "a.kdbx",
    ),
    *("id_rsa", "id_rsa.old", "id_dsa", "id_ecdsa", "id_ed25519", "keys/id_ed25519_work"),
    *(".bash_history", ".zsh_history", ".python_history", ".psql_history", "fish_history", ".histfile"),
    *(".docker/config.json", ".kube/config", ".config/gcloud/credentials.db", ".config/gh/hosts.yml", ".config/hub"),
    *(".config/rclone/rclone.conf", ".config/op/config", ".config/containers/auth.json", ".streamlit/secrets.toml"),
    *(".cargo/credentials.toml", ".gem/credentials", ".terraform.d/credentials.tfrc.json", ".claude/.credentials.json"),
    *(".codex/auth.json", ".gemini/oauth_creds.json", ".local/share/keyrings/login.keyring"),
    *(".\u017fsh/x", ".\u212aube/config", ".e\u200bnv", "\uff0eenv", ".env.", ".env "),
)
SHOWN = (
    *(
        ".env.example",
        ".env.sample",
        ".env.template",
        ".env.local.example",
        "app/.env.example",
        ".env.example/x",
        "env",
        "dotenv.py",
    ),
    *("environment.yml", "ssh/config", "aws.md", "netrc.md", "keys.py", "key", "pem.txt", "monkey.txt", "my_id_rsa.md"),
    *("history.md", "bash_history.md", "docker/config.json", ".docker/daemon.json", ".config/app.toml", "kube/config"),
    *("git/config", "config", ".github/workflows/ci.yml", ".gitignore", "credentials.py", ".claude/settings.json"),
)
BY_CONTENT = {
    ".git/config": ("[remote]\n\turl = https://me:{}@example.com/x\n", "[remote]\n\turl = git@example.com:x # {}\n"),
    "sub/.git/modules/x/config": ("url = https://{}@example.com/x\n", "url = https://example.com/x # {}\n"),
    "bare.git/config": ("[http]\n\textraheader = AUTHORIZATION: basic {}\n", "[core]\n\tbare = true # {}\n"),
    ".npmrc": ("//registry.example.com/:_authToken={}\n", "save-exact=true # {}\n"),
    ".yarnrc.yml": ("npmAuthToken: {}\n", "nodeLinker: pnp # {}\n"),
    "tests/data/ca.pem": (
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n-----BEGIN EC PRIVATE KEY-----\n{}\n",
        "# An authority {}\n-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
    ),
    "Keys.PEM": ("-----BEGIN OPENSSH PRIVATE KEY-----\n{}\n", "-----BEGIN PUBLIC KEY-----\n{}\n"),
    "pip.conf": ("index-url = https://u:{}@example.com/simple\n", "timeout = 60 # {}\n"),
}


def put(project: Path, path: str, text: str = PLANTED) -> None:
    file = project / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


async def use(workspace: Workspace, name: str, **arguments: str | bool) -> tuple[str, bool]:
    """What a model reads after a call of a file tool, and whether it is an error."""
    tool = next(tool for tool in file_tools(workspace) if tool.spec.name == name)
    result = await tool.run(dict(arguments))
    return result.text, result.is_error


async def check_hidden(tmp_path: Path, path: str) -> None:
    """Nobody reaches that file of the project, by any tool, to read or to write."""
    project = tmp_path / "project"
    before = (project / path).read_bytes()
    with Workspace.create(tmp_path / "ws", context=[project]) as own:
        virtual = f"context/project/{path}"
        for tool, more in (
            ("read_file", {}),
            ("move_file", {"to": "stolen.txt", "keep": True}),
        ):
            text, is_error = await use(own, tool, path=virtual, **more)
            assert is_error, (tool, text)
            assert "is hidden" in text, (tool, text)
            assert "naming this very file" in text
        for tool, more in (
            ("write_file", {"content": "x"}),
            ("edit_file", {"old": "p", "new": "q"}),
            ("move_file", {"to": "context/project/shown.txt"}),
            ("delete_file", {}),
        ):
            text, is_error = await use(own, tool, path=virtual, **more)
            assert is_error, (tool, text)
            assert "read-only" in text, (tool, text)
        for where in (".", "context", "context/project"):
            listed, _ = await use(own, "list_files", path=where, recursive=True, include_ignored=True)
            assert path not in [line.rpartition(" ")[0] for line in listed.split("\n")]
            assert virtual not in listed.replace(f"{virtual}.", "")
            found, _ = await use(own, "search_files", pattern=PLANTED, path=where, include_ignored=True)
            assert PLANTED not in found
        everything, _ = await use(own, "list_files", path="context", recursive=True, include_ignored=True)
        assert "hidden: they commonly hold secrets" in everything
        await use(own, "move_file", path="context/project", to="all", keep=True)
        assert not [file for file in (tmp_path / "ws").rglob("*") if file.is_file() and PLANTED in file.read_text()]
        mount = own.resolve("context/project").root
        take_snapshot(mount, tmp_path / "copy")
    assert not [file for file in (tmp_path / "copy").rglob("*") if file.is_file() and PLANTED in file.read_text()]
    assert (project / path).read_bytes() == before


@pytest.mark.parametrize("path", HIDDEN)
async def test_a_file_that_commonly_holds_secrets_is_out_of_reach(tmp_path: Path, path: str) -> None:
    put(tmp_path / "project", path)
    await check_hidden(tmp_path, path)


@pytest.mark.parametrize("path", SHOWN)
async def test_a_file_that_only_sounds_like_it_is_shown(tmp_path: Path, path: str) -> None:
    put(tmp_path / "project", path)
    with Workspace.create(tmp_path / "ws", context=[tmp_path / "project"]) as own:
        assert await use(own, "read_file", path=f"context/project/{path}") == (PLANTED, False)
        listed, _ = await use(own, "list_files", path="context", recursive=True)
        assert f"context/project/{path} " in listed
        assert "hidden" not in listed


@pytest.mark.parametrize("path", BY_CONTENT)
async def test_some_files_are_hidden_only_while_a_credential_stands_in_them(tmp_path: Path, path: str) -> None:
    with_credential, without = (text.format(PLANTED) for text in BY_CONTENT[path])
    put(tmp_path / "project", path, without)
    with Workspace.create(tmp_path / "first", context=[tmp_path / "project"]) as own:
        assert await use(own, "read_file", path=f"context/project/{path}") == (without, False)
        listed, _ = await use(own, "list_files", path="context/project", recursive=True, include_ignored=True)
        assert path in listed
    put(tmp_path / "project", path, with_credential)
    await check_hidden(tmp_path, path)
    put(tmp_path / "project", path, f"{without}\n{'#' * 1_100_000}")
    with Workspace.create(tmp_path / "last", context=[tmp_path / "project"]) as own:
        assert "is hidden" in (await use(own, "read_file", path=f"context/project/{path}"))[0], "too large to judge"


@pytest.mark.parametrize("path", [".env", ".ssh/id_rsa", "server.pem", ".git/config"])
async def test_a_person_allows_a_file_by_naming_it_itself(tmp_path: Path, path: str) -> None:
    project = tmp_path / "project"
    put(project, path, f"url = https://{PLANTED}@example.com")
    put(project, f"{path}.other.pem")
    named = project / path
    with Workspace.create(tmp_path / "ws", context=[project, named]) as own:
        assert PLANTED in (await use(own, "read_file", path=f"context/{named.name}"))[0]
        assert f"context/{named.name}" in (await use(own, "list_files", path="context"))[0]
        assert "is hidden" in (await use(own, "read_file", path=f"context/project/{path}.other.pem"))[0]


@pytest.mark.parametrize("directory", [".ssh", ".aws", ".config/gcloud", ".env"])
async def test_naming_a_directory_does_not_name_its_files(tmp_path: Path, directory: str) -> None:
    put(tmp_path, f"{directory}/inside")
    given = tmp_path / directory
    with Workspace.create(tmp_path / "ws", context=[given]) as own:
        assert "is hidden" in (await use(own, "read_file", path=f"context/{given.name}/inside"))[0]
        assert "is hidden" in (await use(own, "list_files", path=f"context/{given.name}"))[0]
        assert PLANTED not in (await use(own, "search_files", pattern=PLANTED, path="context"))[0]


async def test_a_link_of_another_name_does_not_name_the_file_it_leads_to(tmp_path: Path) -> None:
    put(tmp_path, "home/.ssh/id_rsa")
    put(tmp_path, "home/.env")
    (tmp_path / "notes.txt").symlink_to(tmp_path / "home" / ".env")
    (tmp_path / "docs").symlink_to(tmp_path / "home" / ".ssh")
    with Workspace.create(tmp_path / "ws", context=[tmp_path / "notes.txt", tmp_path / "docs"]) as own:
        for path in ("context/notes.txt", "context/docs/id_rsa"):
            assert "is hidden" in (await use(own, "read_file", path=path))[0]
        assert "notes.txt" not in (await use(own, "list_files", path="context"))[0]


@pytest.mark.parametrize("path", [".config/gcloud/key.json", "app/.docker/config.json", "deep/er/.env"])
async def test_a_directory_with_a_hidden_file_is_neither_moved_nor_deleted(tmp_path: Path, path: str) -> None:
    project = tmp_path / "project"
    put(project, path)
    directory = f"context/project/{path.split('/')[0]}"
    with Workspace.create(tmp_path / "ws", context=[project]) as own:
        for tool, more in (("move_file", {"to": "context/project/shown"}), ("delete_file", {})):
            assert (await use(own, tool, path=directory, **more))[1]
    assert (project / path).read_text() == PLANTED


async def test_links_and_clever_paths_lead_nowhere(tmp_path: Path) -> None:
    project = tmp_path / "project"
    put(project, "src/.env")
    put(project, "shared.txt", "shared")
    (project / "link").symlink_to(project / "src" / ".env")
    (project / "way").symlink_to(project / "src")
    os.link(project / "src" / ".env", project / "harmless.txt")
    put(project, "src/key.pem", f"-----BEGIN PRIVATE KEY-----\n{PLANTED}")
    os.link(project / "src" / "key.pem", project / "notes.txt")
    put(project, "authorities.pem", "-----BEGIN CERTIFICATE-----")
    os.link(project / "authorities.pem", tmp_path / "installed once")
    os.link(project / "shared.txt", project / "also-shared.txt")
    with Workspace.create(tmp_path / "ws", context=[project]) as own:
        for path in (
            "link",
            "way/.env",
            "src//.env",
            "src/./.env",
            "x/../src/.env",
            "src/.env/",
            "harmless.txt",
            "notes.txt",
        ):
            text, is_error = await use(own, "read_file", path=f"context/project/{path}")
            assert is_error, path
            assert PLANTED not in text
        assert PLANTED not in (await use(own, "search_files", pattern=PLANTED, path="context"))[0]
        assert await use(own, "read_file", path="context/project/also-shared.txt") == ("shared", False)
        assert (await use(own, "read_file", path="context/project/authorities.pem"))[1] is False


async def test_the_files_of_a_skill_are_under_the_same_rule(tmp_path: Path) -> None:
    put(tmp_path, "skills/deploy/SKILL.md", "---\nname: deploy\ndescription: How to.\n---\nText.\n")
    put(tmp_path, "skills/deploy/.env")
    put(tmp_path, "skills/.ssh/SKILL.md", f"---\nname: ssh\ndescription: {PLANTED}\n---\n{PLANTED}\n")
    skills = discover_skills([tmp_path / "skills"])
    assert [skill.name for skill in skills] == ["deploy"]
    (tool,) = skill_tools(skills)
    refused = await tool.run({"name": "deploy", "file": ".env"})
    missing = await tool.run({"name": "deploy", "file": "nothing.md"})
    assert "is hidden" in refused.text
    assert ".env" not in missing.text


async def test_in_its_own_workspace_an_agent_may_use_any_name(tmp_path: Path) -> None:
    script = [
        {"call": "write_file", "arguments": {"path": ".env.local", "content": "DEBUG=1"}},
        {"call": "read_file", "arguments": {"path": ".env.local"}},
        {"answer": "done"},
    ]
    ended = await run_team(tmp_path, team(script))
    assert [(event.result, event.is_error) for event in ended.of(ToolFinished)] == [
        ("wrote 7 bytes", False),
        ("DEBUG=1", False),
    ]
    (answer,) = ended.of(AnswerSubmitted)
    assert answer.path is not None
    assert (ended.directory.path / answer.path / "workspace" / ".env.local").read_text() == "DEBUG=1"


async def test_in_a_whole_run_nothing_of_a_hidden_file_is_told_kept_or_copied(tmp_path: Path) -> None:
    project = tmp_path / "project"
    for path in (".env", ".ssh/id_rsa", "src/server.key"):
        put(project, path)
    put(project, "src/main.py", "print()")
    calls = [
        {"call": "list_files", "arguments": {"path": "context/project", "recursive": True}},
        {"call": "search_files", "arguments": {"path": "context", "pattern": "planted"}},
        *({"call": "read_file", "arguments": {"path": f"context/project/{path}"}} for path in (".env", ".ssh/id_rsa")),
        {"call": "write_file", "arguments": {"path": "context/project/.ssh/authorized_keys", "content": "x"}},
        {"answer": "I could not see any."},
    ]
    paths = [{"path": str(project), "permission": "write"}]
    ended = await run_team(tmp_path, team(calls, orchestrator={"context_paths": paths}))
    assert ended.snapshot.state == "completed"
    results = [(event.result, event.is_error) for event in ended.of(ToolFinished)]
    assert "src/main.py" in results[0][0]
    assert "id_rsa" not in results[0][0]
    assert [is_error for _, is_error in results] == [False, False, True, True, True]
    assert not (project / ".ssh" / "authorized_keys").exists()
    assert PLANTED not in json.dumps([event.model_dump(mode="json") for event in ended.events])
    kept = [file for file in ended.directory.path.rglob("*") if file.is_file()]
    assert not [file for file in kept if PLANTED.encode() in file.read_bytes()]


def test_a_copy_of_a_persons_directory_says_how_much_is_hidden(tmp_path: Path) -> None:
    put(tmp_path, "project/.env")
    put(tmp_path, "project/.aws/credentials")
    put(tmp_path, "project/a.txt")
    project = tmp_path / "project"
    with Root.open(project, "", above=project.parts) as root:
        report = take_snapshot(root, tmp_path / "copy")
    assert (report.files, report.notes) == (1, ["2 hidden, as they commonly hold secrets"])
