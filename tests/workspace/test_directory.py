"""What an agent sees from its workspace: its own files, its peers' snapshots, the user's context."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from massgen_mcp.errors import MassgenError
from massgen_mcp.workspace.directory import Workspace
from massgen_mcp.workspace.guard import PathRefused


@pytest.fixture
def context(tmp_path: Path) -> tuple[Path, ...]:
    for name in ("one/docs", "two/docs"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "x.md").write_text(name)
    (tmp_path / "notes.md").write_text("notes")
    (tmp_path / "private.md").write_text("private")
    return (tmp_path / "one/docs", tmp_path / "two/docs", tmp_path / "notes.md")


@pytest.fixture
def peer(tmp_path: Path) -> Path:
    path = tmp_path / "snapshots" / "agent2"
    path.mkdir(parents=True)
    (path / "main.py").write_text("print()")
    return path


@pytest.fixture
def workspace(tmp_path: Path, context: tuple[Path, ...]) -> Iterator[Workspace]:
    with Workspace.create(tmp_path / "run" / "agent_a", context=context) as made:
        yield made


def read(workspace: Workspace, virtual: str) -> str:
    place = workspace.resolve(virtual)
    return place.root.read_bytes(place.rel, 1000).decode()


def names(workspace: Workspace, virtual: str, *, recursive: bool = False) -> list[str]:
    return [entry.path for entry in workspace.listing(virtual, recursive=recursive, limit=100).entries]


def test_a_workspace_is_private_and_made_once(tmp_path: Path, workspace: Workspace) -> None:
    assert workspace.root.stat(".").kind == "directory"
    for path in ("run", "run/agent_a"):
        assert stat.S_IMODE((tmp_path / path).stat().st_mode) == 0o700
    with pytest.raises(FileExistsError):
        Workspace.create(tmp_path / "run" / "agent_a")


def test_an_existing_workspace_is_opened_again_with_its_files(tmp_path: Path, workspace: Workspace) -> None:
    workspace.root.write_bytes("a.txt", b"kept")
    workspace.close()

    with Workspace.open(tmp_path / "run" / "agent_a") as again:
        assert read(again, "a.txt") == "kept"
    with pytest.raises(PathRefused):
        Workspace.open(tmp_path / "run" / "agent_b")


def test_plain_paths_are_the_agents_own_and_writable(workspace: Workspace) -> None:
    place = workspace.resolve("./src/main.py")

    assert (place.root, place.rel) == (workspace.root, "src/main.py")
    assert workspace.resolve(".").rel == "."


def test_peers_are_read_under_their_neutral_names_and_never_written(workspace: Workspace, peer: Path) -> None:
    workspace.set_peers({"agent2": peer})

    assert read(workspace, "peers/agent2/main.py") == "print()"
    for path in ("peers", "peers/agent2", "peers/agent2/main.py", "peers/agent3/x", "./peers/x", "peers//x"):
        with pytest.raises(PathRefused, match="read-only"):
            workspace.resolve_writable(path)


def test_new_peers_replace_the_old_ones_and_bad_ones_change_nothing(workspace: Workspace, peer: Path) -> None:
    workspace.set_peers({"agent2": peer})
    with pytest.raises(PathRefused):
        workspace.set_peers({"agent3": peer, "agent4": peer / "missing"})
    with pytest.raises(MassgenError, match="peer"):
        workspace.set_peers({"../x": peer})
    assert names(workspace, "peers") == ["peers/agent2"]

    workspace.set_peers({"agent3": peer})

    assert read(workspace, "peers/agent3/main.py") == "print()"
    with pytest.raises(PathRefused, match="there is peers/agent3"):
        workspace.resolve("peers/agent2/main.py")


def test_a_reader_of_a_replaced_peer_is_refused_cleanly(workspace: Workspace, peer: Path) -> None:
    workspace.set_peers({"agent2": peer})
    place = workspace.resolve("peers/agent2/main.py")
    workspace.set_peers({})

    with pytest.raises(PathRefused, match="no longer open"):
        place.root.read_bytes(place.rel, 100)


def test_context_directories_with_one_name_are_told_apart(workspace: Workspace) -> None:
    assert read(workspace, "context/docs/x.md") == "one/docs"
    assert read(workspace, "context/docs-2/x.md") == "two/docs"
    assert names(workspace, "context") == ["context/docs", "context/docs-2", "context/notes.md"]
    with pytest.raises(PathRefused, match="read-only"):
        workspace.resolve_writable("context/docs/x.md")


def test_a_context_path_is_never_written_to_and_the_refusal_names_the_agents_own_copy(workspace: Workspace) -> None:
    workspace.root.make_dirs("docs")
    with pytest.raises(PathRefused, match=r"change your own copy, docs/x\.md"):
        workspace.resolve_writable("context/docs/x.md")
    for path in ("context/docs-2/x.md", "context/notes.md", "context", "peers/agent1/x"):
        with pytest.raises(PathRefused, match="read-only"):
            workspace.resolve_writable(path)


def test_a_context_file_is_that_file_only(workspace: Workspace) -> None:
    assert read(workspace, "context/notes.md") == "notes"
    for path in ("context/notes.md/x", "context/private.md", "context/notes.md/private.md", "context/../private.md"):
        with pytest.raises(PathRefused):
            workspace.resolve(path)


def test_a_context_path_may_be_a_link_of_the_user_but_below_it_none_is_followed(
    tmp_path: Path, context: tuple[Path, ...]
) -> None:
    (tmp_path / "project").symlink_to(context[0])
    (context[0] / "out").symlink_to(tmp_path / "private.md")

    with Workspace.create(tmp_path / "ws", context=[tmp_path / "project"]) as workspace:
        assert read(workspace, "context/project/x.md") == "one/docs"
        with pytest.raises(PathRefused):
            read(workspace, "context/project/out")


def test_a_context_path_that_is_missing_or_special_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    before = len(list(Path("/dev/fd").iterdir()))

    for number, path in enumerate((tmp_path / "pipe", tmp_path / "missing", Path("/dev/zero"))):
        with pytest.raises(PathRefused, match=rf"^'context/{path.name}'") as caught:
            Workspace.create(tmp_path / f"ws{number}", context=[tmp_path, path])
        assert str(tmp_path) not in str(caught.value)
    assert len(list(Path("/dev/fd").iterdir())) == before


def test_a_listing_shows_the_shelves_that_hold_something(workspace: Workspace, peer: Path) -> None:
    workspace.root.write_bytes("src/a.py", b"")
    assert names(workspace, ".") == ["context", "src"]

    workspace.set_peers({"agent2": peer})

    assert names(workspace, ".", recursive=True) == ["context", "peers", "src", "src/a.py"]
    assert names(workspace, "peers", recursive=True) == ["peers/agent2", "peers/agent2/main.py"]
    assert names(workspace, "peers/agent2") == ["peers/agent2/main.py"]
    assert names(workspace, "context/notes.md") == ["context/notes.md"]
    assert names(workspace, "src/a.py") == ["src/a.py"]


def test_what_an_agent_plants_under_a_shelfs_name_stays_hidden(tmp_path: Path, workspace: Workspace) -> None:
    planted = tmp_path / "run" / "agent_a" / "peers" / "agent9"
    planted.mkdir(parents=True)
    (planted / "x").write_text("planted")

    assert names(workspace, ".", recursive=True) == ["context"]
    with pytest.raises(PathRefused):
        read(workspace, "peers/agent9/x")


def test_a_shelf_listing_is_cut_at_its_limit(workspace: Workspace, peer: Path) -> None:
    workspace.set_peers({f"agent{number}": peer for number in range(8)})

    cut = workspace.listing("peers", recursive=True, limit=5)
    assert (len(cut.entries), cut.cut) == (5, True)
    whole = workspace.listing("peers", recursive=True, limit=16)
    assert (len(whole.entries), whole.cut) == (16, False)


def test_runs_are_read_only_and_without_what_is_private_or_secret(tmp_path: Path, workspace: Workspace) -> None:
    run = tmp_path / "runs" / "run-a"
    for name in ("massgen.log", "private/agent_a/login", "workspaces/agent_a/private/notes", "workspaces/agent_a/.env"):
        (run / name).parent.mkdir(parents=True, exist_ok=True)
        (run / name).write_text(name)
    workspace.root.write_bytes("runs/own.txt", b"own")
    assert read(workspace, "runs/own.txt") == "own"
    workspace.set_runs({"run-a": run}, without={"private"})
    assert read(workspace, "runs/run-a/massgen.log") == "massgen.log"
    assert names(workspace, "runs/run-a", recursive=True) == [
        f"runs/run-a/{name}"
        for name in (
            "massgen.log",
            "workspaces",
            "workspaces/agent_a",
            "workspaces/agent_a/private",
            "workspaces/agent_a/private/notes",
        )
    ]
    assert "runs" in names(workspace, ".")
    for hidden in ("private", "private/agent_a/login", "workspaces/agent_a/.env"):
        with pytest.raises(PathRefused):
            read(workspace, f"runs/run-a/{hidden}")
    for path in ("runs/run-a/massgen.log", "runs/own.txt"):
        with pytest.raises(PathRefused, match="read-only"):
            workspace.resolve_writable(path)
    workspace.set_runs({})
    assert "runs" not in names(workspace, ".")
