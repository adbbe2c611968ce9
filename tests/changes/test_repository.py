"""A private repository keeps a directory as it lies there, whatever a repository's own settings would make of it."""

import os
import stat
import subprocess
from pathlib import Path

import pytest

from massgen_mcp.changes.files import TooLarge, TreeLimits, TreeRules
from massgen_mcp.changes.repository import PrivateRepository


@pytest.fixture
def private(tmp_path: Path) -> PrivateRepository:
    return PrivateRepository.create(tmp_path / "objects.git")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "place").mkdir()
    return tmp_path / "place"


def put(place: Path, **files: str) -> None:
    for name, text in files.items():
        (place / name).write_text(text)


def contents(place: Path) -> dict[str, tuple[str, bytes]]:
    """Every file and link below a directory: its kind and what it holds."""
    found: dict[str, tuple[str, bytes]] = {}
    for path in sorted(place.rglob("*")):
        name = path.relative_to(place).as_posix()
        if path.is_symlink():
            found[name] = "link", os.fsencode(path.readlink())
        elif path.is_file():
            found[name] = "program" if path.stat().st_mode & stat.S_IXUSR else "file", path.read_bytes()
    return found


def test_what_is_laid_out_is_what_was_taken_byte_for_byte(private: PrivateRepository, place: Path) -> None:
    (place / "deep" / "er").mkdir(parents=True)
    (place / "deep" / "er" / "crlf.txt").write_bytes(b"one\r\ntwo\r\n")
    (place / "no end").write_bytes(b"no newline at the end")
    (place / "binary").write_bytes(bytes(range(256)) * 40)
    (place / "tool").write_text("#!/bin/sh\n")
    (place / "tool").chmod(0o755)
    (place / "link").symlink_to("deep/er/crlf.txt")
    (place / "out").symlink_to("/etc/passwd")
    (place / 'odd "name"\n').write_text("odd")
    Path(os.fsdecode(os.fsencode(place) + b"/latin-\xe9")).write_text("latin")
    (place / ".gitattributes").write_text("* text=auto eol=lf ident filter=none working-tree-encoding=UTF-16\n")

    taken = private.write_tree(place)
    private.check_out(taken.tree, place.with_name("copy"))

    assert contents(place.with_name("copy")) == contents(place)
    assert taken.files == len(contents(place))


def test_a_patch_holds_texts_binary_files_modes_and_renames_and_git_applies_it(
    private: PrivateRepository, place: Path
) -> None:
    put(place, changed="a\nb\nc\n", removed="gone\n", moved="".join(f"line {n}\n" for n in range(50)), tool="x\n")
    before = private.write_tree(place)
    copy = place.with_name("copy")
    private.check_out(before.tree, copy)
    (copy / "changed").write_text("a\nB\nc\nd\n")
    (copy / "removed").unlink()
    (copy / "moved").rename(copy / "new name")
    (copy / "tool").chmod(0o755)
    (copy / "picture").write_bytes(bytes(range(256)))
    (copy / "link").symlink_to("changed")

    after = private.write_tree(copy, like=[before.tree])
    private.write_patch(before.tree, after.tree, place.with_name("patch"))
    subprocess.run(["git", "apply", "--unsafe-paths", "../patch"], cwd=place, check=True)

    assert contents(place) == contents(copy)
    told = {
        change.path.decode(): (change.kind, change.added, change.removed)
        for change in private.changes(before.tree, after.tree)
    }
    assert told == {
        "changed": ("modified", 2, 1),
        "link": ("added", 1, 0),
        "new name": ("renamed", 0, 0),
        "picture": ("added", None, None),
        "removed": ("deleted", 0, 1),
        "tool": ("modified", 0, 0),
    }


def test_what_git_ignores_is_in_no_tree_unless_it_is_tracked(private: PrivateRepository, place: Path) -> None:
    put(place, **{".gitignore": "*.log\n", "kept.log": "k", "other.log": "o", "notes": "n", "local": "l"})
    (place / "build").mkdir()
    (place / "build" / "out").write_text("built")

    taken = private.write_tree(place, tracked=[b"kept.log"], rules=TreeRules(b"build/\n/local\n"))

    assert sorted(private.files(taken.tree)) == [b".gitignore", b"kept.log", b"notes"]
    assert taken.ignored == (b"build",)
    later = private.write_tree(place, like=[taken.tree], rules=TreeRules(b"build/\n/local\n"))
    assert later.tree == taken.tree


def test_secrets_are_in_no_tree_under_any_name(private: PrivateRepository, place: Path) -> None:
    put(place, **{".env": "KEY=1", "id_rsa": "k", ".npmrc": "//r/:_authToken=x", "fine": "f"})
    (place / "other name").hardlink_to(place / ".env")

    taken = private.write_tree(place)

    assert list(private.files(taken.tree)) == [b"fine"]
    assert sorted(taken.left_out.secret) == [b".env", b".npmrc", b"id_rsa", b"other name"]


def test_repositories_inside_and_special_files_are_left_out_by_name(private: PrivateRepository, place: Path) -> None:
    put(place, fine="f")
    subprocess.run(["git", "init", "-q", "inner"], cwd=place, check=True)
    (place / "inner" / "file").write_text("x")
    subprocess.run(["git", "add", "file"], cwd=place / "inner", check=True)
    subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=b", "commit", "-qm", "c"], cwd=place / "inner", check=True
    )
    os.mkfifo(place / "pipe")

    taken = private.write_tree(place, tracked=[b"pipe"])

    assert list(private.files(taken.tree)) == [b"fine"]
    assert taken.left_out.repositories == [b"inner"]
    assert taken.left_out.special == [b"pipe"]


def test_a_directory_that_is_too_large_is_refused_and_says_what_is_allowed(
    private: PrivateRepository, place: Path
) -> None:
    put(place, a="1", b="2", c="3")
    with pytest.raises(TooLarge, match="more than 2 files"):
        private.write_tree(place, rules=TreeRules(limits=TreeLimits(files=2)))
    for name in ("d", "e", "f", "g"):
        (place / name).mkdir()
    with pytest.raises(TooLarge, match="more than 3 directories"):
        private.write_tree(place, rules=TreeRules(limits=TreeLimits(files=3)))


def test_two_sides_are_merged_and_a_conflict_names_its_file(private: PrivateRepository, place: Path) -> None:
    lines = [f"{n}\n" for n in range(20)]
    put(place, text="".join(lines), gone="g\n")
    base = private.write_tree(place).tree
    put(place, text="".join(["first\n", *lines[1:]]))
    ours = private.write_tree(place).tree
    put(place, text="".join([*lines[:-1], "last\n"]), new="n\n")
    theirs = private.write_tree(place).tree
    put(place, text="".join(["other\n", *lines[1:]]))
    (place / "gone").unlink()
    against = private.write_tree(place).tree

    both = private.merge(base, ours, theirs)
    assert both.conflicts == ()
    merged = private.content(private.files(both.tree)[b"text"])
    assert merged == "".join(["first\n", *lines[1:-1], "last\n"]).encode()
    conflicts = private.merge(base, ours, against).conflicts
    assert [(conflict.path, conflict.reason) for conflict in conflicts] == [(b"text", "content")]


def test_a_new_file_in_a_directory_that_was_split_is_a_conflict(private: PrivateRepository, place: Path) -> None:
    """Git tells this one without naming a version of any file."""
    lines = [f"{n}\n" for n in range(20)]
    (place / "src").mkdir()
    put(place, **{f"src/f{n}": "".join([f"{n}\n", *lines]) for n in range(4)})
    base = private.write_tree(place).tree
    put(place, **{"src/new": "n\n"})
    theirs = private.write_tree(place).tree
    (place / "src" / "new").unlink()
    for target, names in (("p", "01"), ("q", "23")):
        (place / target).mkdir()
        for name in names:
            (place / "src" / f"f{name}").rename(place / target / f"f{name}")
    ours = private.write_tree(place).tree

    conflicts = private.merge(base, ours, theirs).conflicts
    assert [conflict.path for conflict in conflicts] == [b"src"]
