"""What the path guard lets through and what it refuses, for both of its ways to open a file."""

import os
import socket
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from massgen_mcp.errors import MassgenError
from massgen_mcp.workspace import openat
from massgen_mcp.workspace.guard import PathMissing, PathRefused, Root, parts_of, safe_id

OPENERS = sorted({openat.best_opener(), openat.open_by_walking}, key=lambda opener: opener.__name__)


@pytest.fixture(params=OPENERS, ids=lambda opener: opener.__name__)
def opener(request: pytest.FixtureRequest) -> openat.Opener:
    return request.param


@pytest.fixture
def ws(tmp_path: Path) -> Path:
    """A workspace with one file, beside a directory whose name begins the same and that holds a secret."""
    path = tmp_path / "ws"
    (path / "src").mkdir(parents=True)
    (path / "src" / "a.txt").write_text("inside")
    evil = tmp_path / "ws_evil"
    evil.mkdir()
    (evil / "secret").write_text("secret")
    return path


@pytest.fixture
def root(ws: Path, opener: openat.Opener) -> Iterator[Root]:
    with Root.open(ws, "", opener=opener) as opened:
        yield opened


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    return tmp_path / "ws_evil" / "secret"


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def refused_everywhere(root: Root, path: str) -> None:
    for act in (
        lambda: root.read_bytes(path, 100),
        lambda: root.write_bytes(path, b"x"),
        lambda: root.list_dir(path),
        lambda: root.walk(path, 10),
        lambda: root.stat(path),
        lambda: root.make_dirs(path),
        lambda: root.delete(path),
    ):
        with pytest.raises(PathRefused):
            act()


@pytest.mark.parametrize(
    "path",
    [
        "",
        "..",
        "../ws_evil/secret",
        "src/../../ws_evil/secret",
        "src/..",
        "/etc/passwd",
        "//etc/passwd",
        "a\0b",
        "a\nb",
        "a\x1b[2Jb",
        "..\\ws_evil\\secret",
        "C:\\x",
        "x" * 256,
        "é" * 128,
        "d/" * 2100 + "x",
        "/" * 10_000,
        "a/" * 3_000_000,
        "\udcff",
    ],
)
def test_a_path_that_is_no_plain_relative_name_is_refused_by_every_operation(root: Root, path: str) -> None:
    refused_everywhere(root, path)


@pytest.mark.parametrize("path", ["src/a.txt", "./src/a.txt", "src//a.txt", "src/./a.txt"])
def test_plain_relative_paths_are_read(root: Root, path: str) -> None:
    assert root.read_bytes(path, 100) == b"inside"


@pytest.mark.parametrize("name", ["..a", "a..", "...", "%2e%2e%2f", "-rf", " ", "CON", "é" * 127, "x" * 255])
def test_odd_but_harmless_names_are_only_names(root: Root, ws: Path, name: str) -> None:
    root.write_bytes(name, b"x")

    assert (ws / name).read_bytes() == b"x"


@given(st.text(max_size=40))
def test_a_path_accepted_never_climbs(path: str) -> None:
    try:
        parts = parts_of(path)
    except PathRefused:
        return
    assert not {"", ".", ".."} & set(parts)
    assert not any("/" in part or "\0" in part for part in parts)


def test_a_neighbour_with_the_same_prefix_is_not_inside(root: Root, secret: Path) -> None:
    with pytest.raises(PathRefused):
        root.read_bytes("../ws_evil/secret", 100)
    with pytest.raises(PathMissing):
        root.read_bytes("_evil/secret", 100)
    assert secret.read_text() == "secret"


def test_links_are_refused_for_reading_and_writing_and_never_described(root: Root, ws: Path, secret: Path) -> None:
    (ws / "link").symlink_to(secret)
    (ws / "chain").symlink_to("link")
    (ws / "own").symlink_to("src/a.txt")

    for name in ("link", "chain", "own"):
        with pytest.raises(PathRefused):
            root.read_bytes(name, 100)
        with pytest.raises(PathRefused, match="symbolic link"):
            root.write_bytes(name, b"x")
        assert (root.stat(name).kind, root.stat(name).size) == ("link", 0)
    assert secret.read_text() == "secret"


def test_a_link_as_parent_directory_is_refused_by_every_operation(root: Root, ws: Path, secret: Path) -> None:
    (ws / "out").symlink_to(secret.parent)

    refused_everywhere(root, "out/secret")
    refused_everywhere(root, "out/deeper/new")
    for act in (lambda: root.list_dir("out"), lambda: root.walk("out", 5), lambda: root.make_dirs("out")):
        with pytest.raises(PathRefused):
            act()
    assert names(secret.parent) == ["secret"]


def test_writing_through_a_dangling_link_creates_nothing(root: Root, ws: Path, tmp_path: Path) -> None:
    (ws / "link").symlink_to(tmp_path / "created")

    with pytest.raises(PathRefused):
        root.write_bytes("link", b"x")
    assert not (tmp_path / "created").exists()


def test_a_magic_link_of_the_kernel_is_refused(opener: openat.Opener) -> None:
    with Root.open(Path("/dev"), "", opener=opener) as devices, pytest.raises(PathRefused):
        devices.list_dir("fd/0")


def test_special_files_are_refused_without_waiting(root: Root, ws: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(ws / "pipe")
    monkeypatch.chdir(ws)  # a socket's path must be short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("sock")
        for name in ("pipe", "sock"):
            with pytest.raises(PathRefused, match="not a regular file"):
                root.read_bytes(name, 100)
            with pytest.raises(PathRefused, match="not a regular file"):
                root.write_bytes(name, b"x")
            assert root.stat(name).kind == "other"


def test_a_device_is_not_read_neither_directly_nor_by_a_link(root: Root, ws: Path, opener: openat.Opener) -> None:
    (ws / "zero").symlink_to("/dev/zero")
    with pytest.raises(PathRefused):
        root.read_bytes("zero", 100)
    with Root.open(Path("/dev"), "", opener=opener) as devices, pytest.raises(PathRefused, match="not a regular"):
        devices.read_bytes("zero", 100)


def test_writing_to_a_hard_link_leaves_the_other_name_as_it_was(root: Root, ws: Path, secret: Path) -> None:
    os.link(secret, ws / "hard")

    root.write_bytes("hard", b"new")

    assert secret.read_text() == "secret"
    assert (ws / "hard").read_text() == "new"


def test_a_written_file_is_private_whole_and_alone(root: Root, ws: Path) -> None:
    root.write_bytes("new/deep/file", b"x" * 100_000)

    assert stat.S_IMODE((ws / "new/deep/file").stat().st_mode) == 0o600
    assert stat.S_IMODE((ws / "new").stat().st_mode) == 0o700
    assert stat.S_IMODE((ws / "new/deep").stat().st_mode) == 0o700
    assert names(ws / "new/deep") == ["file"]
    assert root.read_bytes("new/deep/file", 100_000) == b"x" * 100_000


def test_a_replaced_script_stays_executable_and_nothing_more(root: Root, ws: Path) -> None:
    (ws / "run.sh").write_text("old")
    (ws / "run.sh").chmod(0o4755)

    root.write_bytes("run.sh", b"new")

    assert stat.S_IMODE((ws / "run.sh").stat().st_mode) == 0o700


def test_a_refused_write_leaves_no_temporary_file(root: Root, ws: Path) -> None:
    for path in ("src", ".", "src/a.txt/below"):
        with pytest.raises(PathRefused):
            root.write_bytes(path, b"x")
    assert names(ws) == ["src"]
    assert names(ws / "src") == ["a.txt"]


def test_a_file_larger_than_asked_for_is_refused(root: Root) -> None:
    assert root.read_bytes("src/a.txt", 6) == b"inside"
    with pytest.raises(PathRefused, match="larger than 5"):
        root.read_bytes("src/a.txt", 5)


def test_a_directory_is_listed_sorted_with_kinds_and_sizes(root: Root, ws: Path) -> None:
    (ws / "b").write_text("12345")
    (ws / "a").symlink_to("/")

    listing = root.list_dir(".")

    assert [(e.path, e.kind, e.size) for e in listing.entries] == [
        ("a", "link", 0),
        ("b", "file", 5),
        ("src", "directory", 0),
    ]
    assert not listing.cut


def test_names_no_path_can_spell_are_passed_over_but_counted(root: Root, ws: Path) -> None:
    for name in (b"bad\xff", b"new\nline", b"back\\slash"):
        Path(os.fsdecode(bytes(ws) + b"/" + name)).write_text("x")

    listing = root.walk(".", 100)

    assert [entry.path for entry in listing.entries] == ["src", "src/a.txt"]
    assert len(listing.passed_over) == 3


def test_a_walk_stops_at_its_limit_and_enters_no_link(root: Root, ws: Path, secret: Path) -> None:
    (ws / "out").symlink_to(secret.parent)
    for number in range(20):
        (ws / "src" / f"{number:02}").write_text("x")

    assert not any(entry.path.startswith("out/") for entry in root.walk(".", 1000).entries)
    cut = root.walk(".", 10)
    assert (len(cut.entries), cut.cut) == (10, True)
    assert not root.walk(".", 23).cut


def test_a_walk_starts_only_where_there_is_a_directory(root: Root) -> None:
    with pytest.raises(PathMissing):
        root.walk("nowhere", 10)
    with pytest.raises(PathRefused):
        root.walk("src/a.txt", 10)


def test_a_deleted_directory_is_gone_and_what_its_links_named_is_not(root: Root, ws: Path, secret: Path) -> None:
    (ws / "src" / "out").symlink_to(secret.parent)
    (ws / "link").symlink_to(secret)

    root.delete("src")
    root.delete("link")

    assert names(ws) == []
    assert secret.read_text() == "secret"
    with pytest.raises(PathMissing):
        root.delete("src")


def test_the_root_itself_is_neither_deleted_nor_replaced(root: Root, ws: Path) -> None:
    for act in (lambda: root.delete("."), lambda: root.write_bytes("./", b"x"), lambda: root.read_bytes(".", 5)):
        with pytest.raises(PathRefused):
            act()
    assert ws.is_dir()


def test_a_link_is_no_root(tmp_path: Path, ws: Path) -> None:
    (tmp_path / "link").symlink_to(ws)

    with pytest.raises(PathRefused):
        Root.open(tmp_path / "link", "")


def test_messages_name_the_path_as_given_and_never_the_hosts(root: Root, ws: Path, tmp_path: Path) -> None:
    (ws / "link").symlink_to(tmp_path / "ws_evil")
    for path in ("nothing", "link/x", "../x", "/etc/passwd\x1b[2J", "src"):
        with pytest.raises(PathRefused) as caught:
            root.read_bytes(path, 10)
        assert str(tmp_path) not in str(caught.value)
        assert "\x1b" not in str(caught.value)
    with pytest.raises(PathRefused, match=r"^'peers/agent2/nothing': no such file"), Root.open(ws, "peers/agent2") as r:
        r.read_bytes("nothing", 10)


def test_a_closed_root_refuses_instead_of_using_a_stranger_descriptor(root: Root, secret: Path) -> None:
    root.close()
    root.close()
    stranger = os.open(secret.parent, os.O_RDONLY)
    try:
        with pytest.raises(PathRefused, match="no longer open"):
            root.read_bytes("secret", 100)
    finally:
        os.close(stranger)


def test_no_operation_keeps_a_descriptor_open(root: Root, ws: Path) -> None:
    os.mkfifo(ws / "pipe")
    before = len(names(Path("/dev/fd")))
    for path in ("src/a.txt", "src", "pipe", "nothing/x", "src/a.txt/x"):
        acts: list[Callable[[], object]] = [
            partial(root.read_bytes, path, 3),
            partial(root.read_bytes, path, 100),
            partial(root.list_dir, path),
            partial(root.write_bytes, f"{path}/y", b"x"),
            partial(root.stat, path),
        ]
        for act in acts:
            with suppress(PathRefused):
                act()
    root.delete("src")
    assert len(names(Path("/dev/fd"))) == before


def test_linux_opens_with_openat2_so_that_both_ways_were_tested() -> None:
    expected = openat.open_with_openat2 if sys.platform == "linux" else openat.open_by_walking
    assert openat.best_opener() is expected


@pytest.mark.parametrize("value", ["a", "0", "run_20260101-x", "x" * 64, "con"])
def test_a_safe_id_is_given_back(value: str) -> None:
    assert safe_id(value, "run id") == value


@pytest.mark.parametrize(
    "value",
    ["", ".", "..", "../x", "/etc/passwd", "a/b", "a\\b", "%2e", "a\0", "a\n", "A", "CON", "-rf", "_x", "a.", "a ",
     "é", "\uff41", "x" * 65, "x" * 10_000],
)  # fmt: skip
def test_anything_else_is_an_unsafe_path(value: str) -> None:
    with pytest.raises(MassgenError, match=r"^run id ") as caught:
        safe_id(value, "run id")
    assert caught.value.code == "unsafe_path"
    assert len(str(caught.value)) < 400
