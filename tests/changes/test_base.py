"""The base of a run is the user's working tree as it is, and taking it leaves no trace in the user's repository."""

import os
import subprocess
from pathlib import Path

import pytest

from massgen_mcp.changes.apply import plan
from massgen_mcp.changes.base import Base, ContextDirectory
from massgen_mcp.changes.choosing import Patch
from massgen_mcp.changes.copies import cloned
from massgen_mcp.changes.files import MIB
from massgen_mcp.changes.run_changes import RunChanges
from massgen_mcp.workspace.snapshot import remove_tree
from tests.changes.conftest import Repository


def taken(tmp_path: Path, *directories: Path) -> tuple[RunChanges, Base, Path]:
    """The base of these, and a workspace with a copy of each."""
    changes = RunChanges(tmp_path / "changes")
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    base, refused = changes.begin([ContextDirectory(one.name, one) for one in directories], [workspace])
    assert not refused
    assert base is not None
    return changes, base, workspace


def files_in(path: Path) -> dict[str, bytes]:
    return {one.relative_to(path).as_posix(): one.read_bytes() for one in sorted(path.rglob("*")) if one.is_file()}


def test_a_copy_is_the_working_tree_with_all_that_is_not_committed_and_nothing_that_is_ignored(
    tmp_path: Path, repository: Repository
) -> None:
    repository.put(**{".gitignore": "*.log\nbuild/\n", "forced.log": "tracked though ignored"})
    repository.git("add", "--force", "forced.log")
    repository.commit(
        **{"kept": "1", "changed": "1", "staged": "1", "removed": "1", "gone": "1", ".env.example": "KEY="}
    )
    repository.put(**{"changed": "2", "staged": "2", "new/untracked": "3", "noise.log": "4", "build/out": "5"})
    repository.put(**{".git/info/exclude": "local\n", "local": "6", ".env": "SECRET=7", "added": "8"})
    repository.git("add", "staged", "added")
    repository.git("rm", "--quiet", "--cached", "removed")
    (repository.path / "gone").unlink()
    before = repository.fingerprint()

    changes, base, workspace = taken(tmp_path, repository.path)

    assert files_in(workspace / "project") == {
        ".env.example": b"KEY=",
        ".gitignore": b"*.log\nbuild/\n",
        "added": b"8",
        "changed": b"2",
        "forced.log": b"tracked though ignored",
        "kept": b"1",
        "new/untracked": b"3",
        "removed": b"1",
        "staged": b"2",
    }
    assert changes.outcome(base, workspace).files == ()
    assert repository.fingerprint() == before
    (directory,) = base.directories
    assert directory.notes == ("left out (files that often contain secrets): 1",)


def test_what_is_already_in_the_users_repository_is_not_stored_again(tmp_path: Path, repository: Repository) -> None:
    repository.commit(large=os.urandom(500_000).hex())
    changes, _, _ = taken(tmp_path, repository.path)
    stored = sum(path.stat().st_size for path in changes.directory.rglob("*") if path.is_file())
    assert stored < 20_000


def test_a_patch_can_be_written_and_merged_when_the_users_repository_has_lost_its_history(
    tmp_path: Path, repository: Repository
) -> None:
    repository.commit(**{"code": "one\ntwo\n", "deep/er/other": "o\n"})
    changes, base, workspace = taken(tmp_path, repository.path)
    (workspace / "project" / "code").write_text("one\nTWO\n")
    outcome = changes.outcome(base, workspace)
    remove_tree(repository.path / ".git" / "objects")

    changes.repository.write_patch(base.id, outcome.tree, tmp_path / "patch")
    assert "-two\n+TWO\n" in (tmp_path / "patch").read_text()
    merged = changes.repository.merge(base.id, base.id, outcome.tree)
    assert (merged.tree, merged.conflicts) == (outcome.tree, ())


def test_a_directory_of_a_repository_takes_the_rules_of_those_above_it(tmp_path: Path, repository: Repository) -> None:
    repository.put(**{".gitignore": "*.tmp\n/app/web/dist\nother/\n/lib\n", "app/.gitignore": "web/cache\n!keep.tmp\n"})
    repository.commit(**{"app/web/a.ts": "a", "outside": "o"})
    repository.put(**{"app/web/dist/a.js": "1", "app/web/cache/c": "2", "app/web/x.tmp": "3", "app/web/keep.tmp": "4"})
    repository.put(**{"app/web/lib/l": "5", "app/web/other/o": "6"})

    changes, base, workspace = taken(tmp_path, repository.path / "app" / "web")

    assert sorted(files_in(workspace / "web")) == ["a.ts", "keep.tmp", "lib/l"]
    assert base.directories[0].shared == ("cache", "other")
    (workspace / "web" / "y.tmp").write_text("noise")
    (workspace / "web" / "dist").mkdir()
    (workspace / "web" / "dist" / "new.js").write_text("noise")
    (workspace / "web" / "b.ts").write_text("new")
    assert [change.path for change in changes.outcome(base, workspace).files] == [b"web/b.ts"]


@pytest.mark.parametrize(
    ("rule", "given"),
    [
        ("services/**/gone/", "services/api"),
        ("**/api/gone", "services/api"),
        ("services/**/api/**/gone", "services/api"),
        ("/**/gone", "services/api"),
        ("a\\ b/gone", "a b"),
        ("\\[a\\]/gone", "[a]"),
        ("[^b]/gone", "a"),
        ("a/gone  ", "a"),
        ("gone/ \r", "a"),
        ("b\fkept\na/gone", "a"),
        ("a/*\n!a/kept", "a"),
        ("/*\n!/a\n/a/*\n!/a/b\na/b/gone/", "a/b"),
    ],
)
def test_rules_from_above_mean_in_a_directory_what_they_mean_to_git(
    tmp_path: Path, repository: Repository, rule: str, given: str
) -> None:
    repository.put(**{".gitignore": f"{rule}\n", f"{given}/gone/file": "1", f"{given}/kept": "2"})
    to_git = repository.git("ls-files", "-z", "--others", "--exclude-standard", "--", f":(literal){given}").split("\0")
    assert to_git == [f"{given}/kept", ""]
    _, _, workspace = taken(tmp_path, repository.path / given)
    assert list(files_in(workspace / Path(given).name)) == ["kept"]


def test_an_ignored_directory_is_taken_when_it_is_given_by_name(tmp_path: Path, repository: Repository) -> None:
    repository.put(
        **{".gitignore": "/first\nsecond/*\nthird/**\n", "first/a": "1", "second/b/b": "2", "third/c/c": "3"}
    )
    places = [repository.path / name for name in ("first", "second/b", "third/c")]
    _, _, workspace = taken(tmp_path, *places)
    assert sorted(files_in(workspace)) == ["b/b", "c/c", "first/a"]


def test_rules_mean_what_they_mean_to_git_in_odd_files_too(tmp_path: Path, repository: Repository) -> None:
    repository.commit(a="1", **{".gitignore": "\ufeffnode_modules/\n*.log\n", ".git/info/exclude": "*.log\nlocal\n"})
    repository.put(**{"node_modules/n": "2", "local": "3", "sub/.gitignore": "\ufeff!x.log\n", "sub/x.log": "4"})
    odd = Repository(tmp_path / "odd")
    odd.put(**{"a": "1", ".gitignore/x": "2"})

    changes, base, workspace = taken(tmp_path, repository.path, odd.path)

    assert sorted(files_in(workspace / "project")) == [".gitignore", "a", "sub/.gitignore", "sub/x.log"]
    assert sorted(files_in(workspace / "odd")) == [".gitignore/x", "a"]
    for name in (".gitignore", "sub/.gitignore"):
        (workspace / "project" / name).unlink()
        (workspace / "project" / name).mkdir()
    assert [(one.path, one.kind) for one in changes.outcome(base, workspace).files] == [
        (b"project/.gitignore", "deleted"),
        (b"project/sub/.gitignore", "deleted"),
    ]


def test_what_lies_too_deep_is_told_and_costs_nothing_else(tmp_path: Path, repository: Repository) -> None:
    repository.commit(a="1")
    changes, base, workspace = taken(tmp_path, repository.path)
    (workspace / "project" / "b").write_text("2")
    for name, depth in (("d", 210), ("long" * 25, 38)):
        place = os.open(workspace / "project", os.O_RDONLY)
        for _ in range(depth):
            os.mkdir(name, dir_fd=place)
            below = os.open(name, os.O_RDONLY, dir_fd=place)
            os.close(place)
            place = below
        os.close(os.open("new", os.O_CREAT | os.O_WRONLY, dir_fd=place))
        os.close(place)

    outcome = changes.outcome(base, workspace)

    assert [change.path for change in outcome.files] == [b"project/b"]
    (note,) = outcome.notes
    assert note.startswith("left out of project (not readable): longlong")
    assert ", d/d/d/" in note


def test_a_directory_is_shared_only_if_a_new_file_in_it_would_be_ignored_too(
    tmp_path: Path, repository: Repository
) -> None:
    repository.commit(**{".gitignore": "node_modules/\n__pycache__/\n*.csv\n", "src/a.py": "a"})
    repository.put(**{"node_modules/n": "1", "src/pkg/__pycache__/old.pyc": "2", "data/rows.csv": "3"})
    repository.put(**{".venv/.gitignore": "*\n", ".venv/lib/l": "4"})

    changes, base, workspace = taken(tmp_path, repository.path)

    assert base.directories[0].shared == (".venv", "node_modules")
    for path in ("src/pkg/new.py", "data/read.py"):
        (workspace / "project" / path).parent.mkdir()
        (workspace / "project" / path).write_text("new")
    assert [change.path for change in changes.outcome(base, workspace).files] == [
        b"project/data/read.py",
        b"project/src/pkg/new.py",
    ]


def test_the_links_to_what_is_shared_are_no_change_even_where_the_rules_let_their_names_in(
    tmp_path: Path, repository: Repository
) -> None:
    repository.commit(**{".gitignore": "/*\n!/.gitignore\n!/src\n!/vendor\n!/state\n", "src/a": "1"})
    repository.put(**{"vendor/lib/l": "2", "state/run": "3"})
    subprocess.run(["git", "init", "--quiet"], cwd=repository.path / "vendor", check=True)
    changes, workspace = RunChanges(tmp_path / "changes"), tmp_path / "workspace"
    workspace.mkdir()
    given = ContextDirectory("project", repository.path, writable=True, hidden=(repository.path / "state",))
    base, _ = changes.begin([given], [workspace])
    assert base is not None

    assert (base.directories[0].shared, (workspace / "project" / "vendor").is_symlink()) == (("vendor",), True)
    assert sorted(files_in(workspace / "project")) == [".gitignore", "src/a"]
    assert changes.outcome(base, workspace).files == ()
    (workspace / "project" / "src" / "a").write_text("2")
    patch = Patch(base.directories, base.id, changes.outcome(base, workspace).tree)
    found, _ = plan(changes.repository, patch)
    assert ([one.path for one in found.changes], found.refused) == ([b"project/src/a"], ())


def test_a_dry_run_names_a_file_that_has_grown_too_large_to_be_looked_at(
    tmp_path: Path, repository: Repository
) -> None:
    repository.commit(changed="1\n", removed="2\n")
    changes, base, workspace = taken(tmp_path, repository.path)
    (workspace / "project" / "changed").write_text("one\n")
    (workspace / "project" / "removed").unlink()
    for name in ("changed", "removed"):
        os.truncate(repository.path / name, 257 * MIB)
    places = [one.model_copy(update={"writable": True}) for one in base.directories]
    found, parts = plan(changes.repository, Patch(tuple(places), base.id, changes.outcome(base, workspace).tree))
    for name in ("changed", "removed"):
        (repository.path / name).unlink()  # what a test leaves behind is searched for keys

    assert [one.path for one in found.refused] == ["project/changed", "project/removed"]
    assert "larger than 256 MB" in found.refused[0].reason
    assert parts == ()


def test_a_plain_folder_gets_a_base_and_several_directories_are_told_apart(
    tmp_path: Path, repository: Repository
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "notes").write_text("n\n")
    repository.commit(code="c\n")

    changes, base, workspace = taken(tmp_path, folder, repository.path)
    (workspace / "folder" / "notes").write_text("m\n")
    (workspace / "project" / "code").unlink()

    outcome = changes.outcome(base, workspace)
    assert [(change.path, change.kind) for change in outcome.files] == [
        (b"folder/notes", "modified"),
        (b"project/code", "deleted"),
    ]


def test_submodules_sparse_files_lfs_pointers_and_links_are_named_or_taken_as_they_are(
    tmp_path: Path, repository: Repository
) -> None:
    other = Repository(tmp_path / "other")
    other.path.mkdir()
    other.git("init", "--quiet")
    other.commit(inside="i")
    repository.commit(**{"wanted/a": "a", "unwanted/b": "b", "link-target": "t"})
    repository.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other.path), "sub")
    repository.put(big="version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n")
    (repository.path / "link").symlink_to("link-target")
    (repository.path / "away").symlink_to("/etc")
    repository.commit()
    repository.git("sparse-checkout", "set", "wanted")

    changes, base, workspace = taken(tmp_path, repository.path)

    copy = workspace / "project"
    assert not (copy / "sub").exists()
    assert not (copy / "unwanted").exists()
    assert (copy / "link").readlink() == Path("link-target")
    assert (copy / "away").readlink() == Path("/etc")
    (directory,) = base.directories
    assert directory.shared == ("sub",)
    told = " ".join(directory.notes)
    assert "nested repositories, which are read-only: sub" in told
    assert "Git LFS pointers, whose contents aren't on this machine: big" in told
    assert "missing because of a sparse checkout: 1" in told
    assert changes.outcome(base, workspace).files == ()


@pytest.mark.parametrize("kind", ["a worktree", "a split index", "sha256", "without a commit", "a broken index"])
def test_unusual_repositories_are_taken_or_refused_with_a_reason(
    tmp_path: Path, repository: Repository, kind: str
) -> None:
    place = repository.path
    match kind:
        case "a worktree":
            repository.commit(file="f")
            place = tmp_path / "worktree"
            repository.git("worktree", "add", "--quiet", str(place))
        case "a split index":
            repository.commit(file="f")
            repository.git("update-index", "--split-index")
        case "sha256":
            place = tmp_path / "sha256"
            subprocess.run(["git", "init", "--quiet", "--object-format=sha256", place], check=True)
            Repository(place).commit(file="f")
        case "without a commit":
            repository.put(file="f")
            repository.git("add", "file")
        case _:
            repository.commit(file="f")
            (place / ".git" / "index").write_bytes(b"DIRC broken")
    (place / "local.log").write_text("tracked though ignored" if kind != "a broken index" else "")
    (place / ".gitignore").write_text("*.log\n")
    if kind == "a broken index":
        base, refused = RunChanges(tmp_path / "changes").begin([ContextDirectory("project", place)], [])
        assert base is None
        assert "git ls-files failed" in refused[0].why
        return
    subprocess.run(["git", "add", "--force", "local.log"], cwd=place, check=True)
    before = Repository(place).fingerprint()
    _, _, workspace = taken(tmp_path, place)
    assert sorted(files_in(workspace / place.name)) == [".gitignore", "file", "local.log"]
    assert Repository(place).fingerprint() == before


def test_pipes_in_the_place_of_files_that_git_reads_keep_nobody_waiting(tmp_path: Path, repository: Repository) -> None:
    repository.commit(**{"kept": "k", ".gitignore": "*.log\n", "sub/.gitignore": "*.tmp\n"})
    os.mkfifo(repository.path / "pipe")
    (repository.path / "sub" / "deep").mkdir()
    os.mkfifo(repository.path / "sub" / "deep" / ".gitignore")
    changes, base, workspace = taken(tmp_path, repository.path)

    for place in (workspace / "project", workspace / "project" / "nested" / ".git"):
        place.mkdir(exist_ok=True, parents=True)
        (place / ".gitignore").unlink(missing_ok=True)
        for name in ("HEAD", "config", ".gitignore"):
            os.mkfifo(place / name)
    for name in ("objects", "refs"):
        (workspace / "project" / "nested" / ".git" / name).mkdir()
    for name in ("a.log", "sub/a.log", "sub/a.tmp"):
        (workspace / "project" / name).write_text("x")
    outcome = changes.outcome(base, workspace)

    assert [(change.path, change.kind) for change in outcome.files] == [
        (b"project/.gitignore", "deleted"),
        (b"project/a.log", "added"),
        (b"project/sub/a.log", "added"),
    ]
    assert outcome.notes == ("left out of project (nested repositories): nested",)


@pytest.mark.parametrize("command", [["sleep", "60"], ["false"], ["/dev/null/cp"]])
def test_a_copy_that_cannot_share_blocks_in_time_leaves_nothing_behind(tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "half").write_text("x")
    assert not cloned(command, tmp_path / "copy", seconds=0.1)
    assert not (tmp_path / "copy").exists()


HOSTILE = """\
[core]
    fsmonitor = {canary}
    hooksPath = {hooks}
    sshCommand = {canary}
    pager = {canary}
    editor = {canary}
    attributesFile = {attributes}
[filter "evil"]
    clean = {canary}
    smudge = {canary}
    process = {canary}
    required = true
[diff "evil"]
    textconv = {canary}
    command = {canary}
[merge "evil"]
    driver = {canary}
[diff]
    external = {canary}
[credential]
    helper = {canary}
[alias]
    ls-files = !{canary}
"""


def hostile(repository: Repository, tmp_path: Path) -> Path:
    """Make the repository run a program wherever git can be made to; returns the file that shows that it ran."""
    ran, program = tmp_path / "ran", tmp_path / "canary"
    program.write_text(f"#!/bin/sh\necho ran >> {ran}\nexit 0\n")
    program.chmod(0o755)
    hooks = repository.path / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-checkout", "post-index-change", "pre-commit", "reference-transaction", "fsmonitor-watchman"):
        (hooks / name).write_bytes(program.read_bytes())
        (hooks / name).chmod(0o755)
    attributes = "* filter=evil diff=evil merge=evil\n"
    repository.commit(**{".gitattributes": attributes, "file": "one\n", "other": "two\n"})
    repository.put(**{".git/info/attributes": attributes})
    with (repository.path / ".git" / "config").open("a") as config:
        config.write(HOSTILE.format(canary=program, hooks=hooks, attributes=repository.path / ".gitattributes"))
    repository.put(file="changed\n")
    ran.unlink(missing_ok=True)
    return ran


def test_nothing_that_a_hostile_repository_brings_is_run(tmp_path: Path, repository: Repository) -> None:
    ran = hostile(repository, tmp_path)

    changes, base, workspace = taken(tmp_path, repository.path)
    (workspace / "project" / "file").write_text("by an agent\n")
    subprocess.run(["git", "init", "--quiet"], cwd=workspace / "project", check=True)
    (workspace / "project" / ".git" / "config").write_bytes((repository.path / ".git" / "config").read_bytes())
    outcome = changes.outcome(base, workspace)
    changes.repository.write_patch(base.id, outcome.tree, tmp_path / "patch")
    changes.repository.merge(base.id, outcome.tree, base.id)
    changes.restore(base, workspace, base.id)

    assert [change.path for change in outcome.files] == [b"project/file"]
    assert (workspace / "project" / "file").read_text() == "changed\n"
    assert not ran.exists()


def test_the_same_repository_runs_its_programs_when_git_is_used_as_usual(
    tmp_path: Path, repository: Repository
) -> None:
    """So the test above would notice."""
    ran = hostile(repository, tmp_path)
    subprocess.run(["git", "add", "--all"], cwd=repository.path, check=False, capture_output=True)
    assert ran.exists()
