"""A pull request of a private repository is fetched with the person's own access, and by nothing that the repository
says.
"""

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.changes.conftest import Repository
from tests.changes.hostile_git import committed
from tests.changes.test_hostile_git import upstream_of
from tests.cluster.git_host import git_host
from tests.commands import run_command
from tests.harness import COMMAND_MODULE, TempHome, home
from tests.planted import HOLDS_KEYS

__all__ = ["home"]
TOKEN = "token-of-the-person-0815"
KEYS = {
    "OPENAI_API_KEY": "sk-planted-0815-4711-of-nobody",
    "GITHUB_MODELS_TOKEN": "planted-0815-4711-of-models",
    "TEAM_KEY": "planted-0815-4711-of-the-team",
    "MASSGEN_ALLOWED_KEYS": "TEAM_KEY@gateway.example",
}
LOGINS = {"SSH_AUTH_SOCK": "/run/agent-of-the-person", "GH_TOKEN": TOKEN, "MY_GIT_TOKEN": TOKEN}


@pytest.fixture
def person(home: TempHome, tmp_path: Path) -> TempHome:
    (tmp_path / HOLDS_KEYS).touch()  # in the address, and in what the person's own programs write down
    there = replace(home, work=tmp_path / "project").with_variables(**KEYS, **LOGINS)
    return there.with_variables(GIT_CONFIG_GLOBAL=str(tmp_path / "own-gitconfig"))


def planned(person: TempHome) -> str:
    """What is said before a review of pull request 7."""
    done = run_command(person, COMMAND_MODULE, "review", "--pr", "7", "--dry-run", "--models", "scripted/x")
    assert done.returncode == 0, done.stderr
    return done.stderr


def environ_seen(written: Path) -> dict[str, str]:
    lines = [line.partition("=") for line in written.read_text().splitlines()]
    return {name: value for name, _, value in lines}


def private_project(person: TempHome, tmp_path: Path, address: str) -> Repository:
    repository = committed(person.work)
    repository.commit()
    upstream_of(repository, tmp_path / "served" / "project.git")
    repository.git("checkout", "--quiet", "main")
    repository.git("remote", "add", "origin", address)
    return repository


def test_over_https_the_persons_credential_helper_is_asked(person: TempHome, tmp_path: Path) -> None:
    (tmp_path / "served").mkdir()
    with git_host(tmp_path / "served", TOKEN) as (address, certificate):
        seen = tmp_path / "seen"
        helper = f"!f() {{ env > {seen}; echo username=x-access-token; echo password=$MY_GIT_TOKEN; }}; f"
        private_project(person, tmp_path, f"{address}/project.git")
        own = ["git", "config", "--file", tmp_path / "own-gitconfig"]
        subprocess.run([*own, "credential.helper", helper], check=True)
        person = person.with_variables(GIT_SSL_CAINFO=str(certificate))
        told = planned(person)
        assert told.startswith(f"Fetching pull request 7 from {address}/project.git\n")
        assert "1 file, +1 -1 lines" in told
        environ = environ_seen(seen)
        assert KEYS.keys().isdisjoint(environ), "no key of ours reaches git"
        assert LOGINS.items() <= environ.items()
        subprocess.run([*own, "--unset", "credential.helper"], check=True)
        refused = run_command(person, COMMAND_MODULE, "review", "--pr", "7", "--dry-run")
        assert refused.returncode == 2
        assert "cannot fetch pull request 7 from" in refused.stderr


def test_over_ssh_the_persons_own_command_and_agent_are_used(person: TempHome, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    command = tmp_path / "own-ssh"
    command.write_text(
        f'#!/bin/sh\nenv > {seen}\necho "ARGUMENTS=$*" >> {seen}\nfor last; do :; done\nexec sh -c "$last"\n'
    )
    command.chmod(0o700)
    (tmp_path / "own-gitconfig").write_text(f"[core]\n\tsshCommand = {command}\n")
    repository = private_project(person, tmp_path, f"git@host.example:{tmp_path}/served/project.git")
    repository.git("config", "core.sshCommand", "false")
    told = planned(person)
    assert told.startswith(f"Fetching pull request 7 from git@host.example:{tmp_path}/served/project.git\n")
    assert "1 file, +1 -1 lines" in told
    environ = environ_seen(seen)
    assert KEYS.keys().isdisjoint(environ)
    assert LOGINS.items() <= environ.items()
    assert "git@host.example git-upload-pack" in environ["ARGUMENTS"]


def test_a_password_in_the_address_is_not_shown(person: TempHome, tmp_path: Path) -> None:
    private_project(person, tmp_path, f"https://me:{TOKEN}@localhost:1/project.git")
    done = run_command(person, COMMAND_MODULE, "review", "--pr", "7", "--dry-run")
    assert done.returncode == 2
    assert "Fetching pull request 7 from https://localhost:1/project.git\n" in done.stderr
    assert TOKEN not in done.stdout + done.stderr
