"""A snapshot is a read-only copy of the regular files, and removing it removes nothing else."""

import os
import resource
import stat
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from massgen_mcp.workspace.guard import PathRefused, Root
from massgen_mcp.workspace.snapshot import SnapshotLimits, remove_tree, take_snapshot


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def modes(tree: Path) -> dict[str, int]:
    return {str(path.relative_to(tree)): stat.S_IMODE(path.stat().st_mode) for path in [tree, *tree.rglob("*")]}


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "ws"
    (path / "src" / "empty").mkdir(parents=True)
    (path / "src" / "a.txt").write_text("one")
    (path / "b.txt").write_text("four")
    yield path
    for left in tmp_path.iterdir():
        remove_tree(left)  # a tree too deep for others must not stay behind, not even after a failure


def test_a_snapshot_is_a_read_only_copy(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "snapshot"

    report = take_snapshot(source, target)

    assert modes(target) == {".": 0o555, "src": 0o555, "src/empty": 0o555, "src/a.txt": 0o444, "b.txt": 0o444}
    assert (target / "src/a.txt").read_text() == "one"
    assert (report.files, report.total_bytes, report.complete, report.left_out, tuple(report.notes)) == (
        2,
        7,
        True,
        0,
        (),
    )


def test_later_writes_do_not_reach_a_snapshot(source: Path, tmp_path: Path) -> None:
    with Root.open(source, "") as root:
        take_snapshot(root, tmp_path / "snapshot")
        root.write_bytes("b.txt", b"changed")

    assert (tmp_path / "snapshot/b.txt").read_text() == "four"


def test_what_is_no_regular_file_is_left_out_and_noted(source: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (source / "link").symlink_to(tmp_path / "secret")
    (source / "src" / "out").symlink_to(tmp_path)
    os.mkfifo(source / "result.json")
    Path(os.fsdecode(bytes(source) + b"/bad\xff")).write_text("x")

    report = take_snapshot(source, tmp_path / "snapshot")

    assert sorted(modes(tmp_path / "snapshot")) == [".", "b.txt", "src", "src/a.txt", "src/empty"]
    assert report.complete
    assert report.left_out == 4
    assert tuple(report.notes) == (
        "'link': symbolic link",
        "'result.json': not a regular file",
        "'src/out': symbolic link",
        "'bad\\udcff': unusable name or not readable",
    )


def test_a_set_user_id_bit_is_not_copied(source: Path, tmp_path: Path) -> None:
    (source / "b.txt").chmod(0o6755)

    take_snapshot(source, tmp_path / "snapshot")

    assert modes(tmp_path / "snapshot")["b.txt"] == 0o444


def test_files_beyond_the_size_limit_are_left_out_and_smaller_ones_still_taken(source: Path, tmp_path: Path) -> None:
    with (source / "huge").open("wb") as file:
        file.truncate(10 * 1024**3)

    report = take_snapshot(source, tmp_path / "snapshot", limits=SnapshotLimits(total_bytes=10))

    assert (report.files, report.total_bytes, report.complete) == (2, 7, False)
    assert tuple(report.notes) == ("'huge': does not fit into 10 bytes",)


def test_entries_beyond_the_limit_are_left_out_in_the_same_way_every_time(source: Path, tmp_path: Path) -> None:
    for number in range(50):
        (source / f"f{number:02}").write_text("x")

    reports = [take_snapshot(source, tmp_path / name, limits=SnapshotLimits(entries=10)) for name in ("one", "two")]

    assert not reports[0].complete
    assert reports[0] == reports[1]
    assert modes(tmp_path / "one") == modes(tmp_path / "two")
    assert len(modes(tmp_path / "one")) == 11


def test_many_things_left_out_do_not_make_a_long_report(source: Path, tmp_path: Path) -> None:
    for number in range(150):
        (source / f"l{number}").symlink_to("nowhere")

    report = take_snapshot(source, tmp_path / "snapshot")

    assert (report.left_out, len(report.notes)) == (150, 100)


def test_an_existing_target_is_refused_and_untouched(source: Path, tmp_path: Path) -> None:
    (tmp_path / "snapshot").symlink_to("nowhere")

    with pytest.raises(FileExistsError):
        take_snapshot(source, tmp_path / "snapshot")
    assert names(tmp_path) == ["snapshot", "ws"]


def test_a_source_that_is_a_link_or_missing_is_refused_and_leaves_nothing(source: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(source)

    for path in (tmp_path / "link", tmp_path / "missing"):
        with pytest.raises(PathRefused):
            take_snapshot(path, tmp_path / "snapshot")
    with Root.open(source, "") as root:
        root.close()
        with pytest.raises(PathRefused):
            take_snapshot(root, tmp_path / "snapshot")
    assert names(tmp_path) == ["link", "ws"]


def test_a_read_only_tree_is_removed_and_what_its_links_name_is_not(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "snapshot"
    take_snapshot(source, target)
    target.chmod(0o755)
    (target / "out").symlink_to(source)
    (target / "src").chmod(0o000)

    remove_tree(target)

    assert names(tmp_path) == ["ws"]
    assert (source / "b.txt").read_text() == "four"


def test_a_link_is_removed_as_a_link_and_a_missing_tree_is_fine(source: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(source)

    remove_tree(tmp_path / "link")
    remove_tree(tmp_path / "link")
    remove_tree(tmp_path / "missing" / "deeper")

    assert (source / "b.txt").exists()


def test_a_tree_deeper_than_any_path_is_walked_and_removed(source: Path, tmp_path: Path) -> None:
    here = os.open(source, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("dd", dir_fd=here)
        below = os.open("dd", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)

    short = take_snapshot(source, tmp_path / "short", limits=SnapshotLimits(entries=500))
    assert (short.files, short.complete) == (2, False)
    long = take_snapshot(source, tmp_path / "long")
    assert (long.files, long.left_out) == (2, 1)
    remove_tree(source)
    remove_tree(tmp_path / "short")
    remove_tree(tmp_path / "long")

    assert names(tmp_path) == []


@contextmanager
def full_disk() -> Generator[None]:
    """No file may grow beyond a thousand bytes, as if the disk were full. Also not the log that the tests write to, so
    nothing else may happen meanwhile.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_write_that_the_disk_refuses_leaves_the_old_file_and_nothing_else(source: Path) -> None:
    with Root.open(source, "") as root, pytest.raises(PathRefused, match="too large"), full_disk():
        root.write_bytes("b.txt", b"x" * 2000)

    assert names(source) == ["b.txt", "src"]
    assert (source / "b.txt").read_text() == "four"


def test_a_snapshot_that_the_disk_refuses_leaves_nothing(source: Path, tmp_path: Path) -> None:
    (source / "big").write_bytes(b"x" * 2000)

    with pytest.raises(OSError, match="too large"), full_disk():
        take_snapshot(source, tmp_path / "snapshot")

    assert names(tmp_path) == ["ws"]
