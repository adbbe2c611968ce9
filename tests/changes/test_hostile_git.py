"""No program that a repository names is run, and nothing is written elsewhere, whatever is done in it."""

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.changes.conftest import Repository
from tests.changes.hostile_git import LEAD_ELSEWHERE, TEXT, Canary, committed, origin_settings, with_programs
from tests.changes.test_apply import changed_by_a_run, verb, write
from tests.commands import run_command
from tests.harness import COMMAND_MODULE, TempHome, home

__all__ = ["home"]
WANTED = TEXT.replace("line 10\n", "line ten\n")
REVIEWS = (
    ("--dry-run",),
    ("--models", "scripted/x"),
    ("--branch", "main", "--text-only", "--dry-run"),
)


ORIGINS_THAT_ANSWER = {"uploadpack", "insteadOf", "a helper of another name", "a repository inside", "plain"}
"""Whose pull request can be fetched without what the repository names."""
STARTED_BY_PLAIN_GIT = {
    *("fsmonitor", "hook", "clean", "process", "diffcommand", "included", "ofworktree", "submodule", "submonitor"),
}
STARTED_BY_A_PLAIN_FETCH = {"ext", "uploadpack", "sshCommand", "gitProxy"}


@pytest.fixture
def canary(tmp_path: Path) -> Canary:
    made = Canary(tmp_path / "programs")
    made.directory.mkdir()
    return made


@pytest.fixture
def person(home: TempHome, tmp_path: Path) -> TempHome:
    """Somebody who works in the directory `project`, and has no settings of git."""
    (tmp_path / "project").mkdir()
    return replace(home, work=tmp_path / "project").with_variables(GIT_CONFIG_GLOBAL="/dev/null")


async def changed_file(person: TempHome, repository: Repository) -> str:
    """The id of a run that changed `code`, and whose change isn't applied."""
    async with person.client() as client:
        return await changed_by_a_run(client, person, repository, write("project/code", WANTED))


def review(person: TempHome, *arguments: str) -> str:
    return run_command(person, COMMAND_MODULE, "review", *arguments, seconds=60).stderr


def upstream_of(repository: Repository, place: Path) -> Path:
    """What its pull request 7 is at."""
    subprocess.run(["git", "clone", "--quiet", "--bare", str(repository.path), str(place)], check=True)
    subprocess.run(["git", "update-ref", "refs/pull/7/head", "branch"], cwd=place, check=True)
    return place


async def test_no_program_that_the_settings_name_is_run_whatever_is_done(person: TempHome, canary: Canary) -> None:
    repository = with_programs(person.work, canary)
    for arguments in REVIEWS:
        assert "the working tree since " in review(person, *arguments), arguments
        assert canary.started() == set(), arguments
    steps = write("project/fresh", "three\n"), write("project/x.i", "three\n")
    async with person.client() as client:
        run_id = await changed_by_a_run(client, person, repository, *steps)
    for arguments in ((), ("--undo",), ("--dry-run",)):
        assert verb(person, run_id, *arguments)[0] == 0, arguments
    assert not (repository.path / "fresh").exists()
    code, refused = verb(person, run_id, "--branch", "team")
    assert (code, "filter=included" in str(refused)) == (1, True), refused
    code, told = verb(person, run_id, "--branch", "team", "--paths", "project/fresh")
    assert (code, told["status"]) == (0, "applied"), told
    assert canary.started() == set()
    (repository.path / ".git" / "config").write_text("[core]\n\trepositoryFormatVersion = 0\n")
    assert repository.git("show", "team:fresh") == "three\n"
    assert repository.git("diff", "--name-only", "branch", "team") == "fresh\n"
    assert repository.git("fsck", "--strict", "--no-dangling") == ""


def test_no_program_that_the_address_of_a_pull_request_names_is_run(
    person: TempHome, canary: Canary, tmp_path: Path
) -> None:
    repository = with_programs(person.work, canary)
    upstream = upstream_of(repository, tmp_path / "upstream.git")
    settings = (repository.path / ".git" / "config").read_text()
    before = repository.git("-c", "core.hooksPath=/dev/null", "for-each-ref")
    for name, origin in origin_settings(repository.path, canary, upstream).items():
        (repository.path / ".git" / "config").write_text(settings + origin)
        canary.started()
        for arguments in (("--pr", "7", "--dry-run"), *([("--pr", "7", "--models", "scripted/x")] * (name == "plain"))):
            told = review(person, *arguments)
            assert canary.started() == set(), (name, told)
            assert "Fetching pull request 7 from " in told, (name, told)
            assert ("pull request 7, " in told) == (name in ORIGINS_THAT_ANSWER), (name, told)
    assert repository.git("-c", "core.hooksPath=/dev/null", "for-each-ref") == before, "massgen writes nothing there"


def test_plain_git_runs_the_programs_of_the_same_repositories(person: TempHome, canary: Canary, tmp_path: Path) -> None:
    """So the tests above would notice."""
    repository = with_programs(person.work, canary)
    upstream = upstream_of(repository, tmp_path / "upstream.git")
    canary.started()

    def plain(*arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=repository.path, env=person.environ, capture_output=True, check=False)

    for arguments in (("status",), ("diff",), ("diff", "a.i"), ("add", "--all"), ("update-ref", "refs/x", "HEAD")):
        plain(*arguments)
    assert STARTED_BY_PLAIN_GIT - canary.started() == set()
    settings = (repository.path / ".git" / "config").read_text()
    for origin in origin_settings(repository.path, canary, upstream).values():
        (repository.path / ".git" / "config").write_text(settings + origin)
        plain("fetch", "origin", "+refs/pull/7/head:refs/massgen/7")
    assert STARTED_BY_A_PLAIN_FETCH - canary.started() == set()


async def test_nothing_is_written_or_read_elsewhere_and_odd_files_keep_nobody_waiting(
    person: TempHome, tmp_path: Path
) -> None:
    repository, other = committed(person.work), committed(tmp_path / "other")
    other.commit(private="a secret of another project\n")
    run_id = await changed_file(person, repository)
    backup = tmp_path / "backup"
    shutil.copytree(repository.path, backup, symlinks=True)
    shutil.copytree(other.path, tmp_path / "other-backup", symlinks=True)
    for name, lead in LEAD_ELSEWHERE.items():
        if name.startswith("another user's") and os.geteuid() != 0:
            continue
        for place, saved in ((repository.path, backup), (other.path, tmp_path / "other-backup")):
            shutil.rmtree(place)
            shutil.copytree(saved, place, symlinks=True)
        lead(repository, other)
        before = other.fingerprint()
        told = review(person, "--branch", "main", "--dry-run")
        assert "private" not in told, (name, told)
        code, answer = verb(person, run_id, "--branch", "team/ten")
        assert other.fingerprint() == before, name
        if name == "a link as logs":
            assert code == 0, "no log is written"
        else:
            assert code != 0, (name, answer)
            assert not (repository.path / ".git/refs/heads/team/ten").exists(), name
            assert "Traceback" not in str(answer), (name, answer)


def test_plain_git_writes_elsewhere_in_the_same_repositories(tmp_path: Path) -> None:
    """So the test above would notice."""
    written: set[str] = set()
    for number, (name, lead) in enumerate(LEAD_ELSEWHERE.items()):
        if name.startswith(("a link", "a file", "commondir")):
            repository, other = committed(tmp_path / f"{number}/one"), committed(tmp_path / f"{number}/other")
            lead(repository, other)
            before = other.fingerprint()
            command = ["git", "commit-tree", "-m", "x", "HEAD^{tree}"]
            made = subprocess.run(
                command, cwd=repository.path, capture_output=True, check=False, text=True
            ).stdout.strip()
            subprocess.run(
                ["git", "branch", "team/ten", made or "HEAD"], cwd=repository.path, capture_output=True, check=False
            )
            written |= {name} if other.fingerprint() != before else set()
    assert len(written) >= 7, written


def test_a_worktree_and_a_submodule_get_their_branch_and_their_review(person: TempHome, tmp_path: Path) -> None:
    """Their `.git` is a file whose target leads back."""
    main = committed(tmp_path / "main")
    shutil.rmtree(person.work)
    main.git("worktree", "add", "--quiet", str(person.work), "main")
    (person.work / "code").write_text(TEXT.replace("line 5\n", "line five\n"))
    assert "1 file, +1 -1 lines" in review(person, "--branch", "branch", "--dry-run")
    main.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(main.path), "sub")
    there = replace(person, work=main.path / "sub")
    (there.work / "code").write_text(TEXT.replace("line 5\n", "line five\n"))
    assert "1 file, +1 -1 lines" in review(there, "--branch", "HEAD", "--dry-run")
