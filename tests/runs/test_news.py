"""Who waits for a run is told, by a socket whose trouble costs time and never an event."""

import os
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from massgen_mcp.runs.store import news
from massgen_mcp.runs.store.news import SocketNewsHost, following, wake
from tests.harness import PATIENCE_SECONDS

pytestmark = pytest.mark.usefixtures("runtime")


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only directories where sockets may lie are below this one, which has a short path."""
    short = Path("/tmp") / f"mm-{os.getpid()}-{tmp_path.name[-8:]}"  # noqa: S108
    short.mkdir(mode=0o700, exist_ok=True)
    monkeypatch.setattr(news.tempfile, "tempdir", str(short))
    return short


def socket_of(links: Path, name: str) -> Path:
    return Path((links / f"{name}.news").read_text())


@asynccontextmanager
async def host(links: Path, name: str = "runner", **environ: str) -> AsyncGenerator[SocketNewsHost]:
    serving = SocketNewsHost(links, name, environ)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serving.serve)
        with anyio.fail_after(PATIENCE_SECONDS):
            while not (links / f"{name}.news").exists():
                await anyio.sleep(0.001)
        yield serving
        tasks.cancel_scope.cancel()


async def test_a_follower_hears_of_its_run_and_of_no_other(tmp_path: Path) -> None:
    with anyio.fail_after(PATIENCE_SECONDS):
        async with host(tmp_path) as serving:
            with following(tmp_path, "runner", "run-a") as follower:
                assert follower
                assert await follower.changed()  # it is attached
                serving.tell("run-b")
                with anyio.move_on_after(0.05) as quiet:
                    await follower.changed()
                assert quiet.cancelled_caught
                serving.tell("run-a")
                assert await follower.changed()


async def test_news_that_come_faster_than_they_are_read_are_one(tmp_path: Path) -> None:
    with anyio.fail_after(PATIENCE_SECONDS):
        async with host(tmp_path) as serving:
            with following(tmp_path, "runner", "run-a") as follower:
                assert follower
                await follower.changed()
                for _ in range(100_000):
                    serving.tell("run-a")
                assert await follower.changed()
                with anyio.move_on_after(0.05) as quiet:
                    await follower.changed()
                assert quiet.cancelled_caught


async def test_followers_of_a_host_that_leaves_are_told_so(tmp_path: Path, runtime: Path) -> None:
    with anyio.fail_after(PATIENCE_SECONDS):
        told: list[bool] = []
        async with anyio.create_task_group() as tasks:

            async def follow() -> None:
                with following(tmp_path, "runner", "run-a") as follower:
                    assert follower
                    while told_now := await follower.changed():
                        told.append(told_now)
                    told.append(False)

            async with host(tmp_path):
                for _ in range(100):
                    tasks.start_soon(follow)
                while len(told) < 100:
                    await anyio.sleep(0.001)
    assert (told.count(True), told.count(False)) == (100, 100)
    assert not (tmp_path / "runner.news").exists()
    assert not list(runtime.rglob("*.sock"))


async def test_clients_that_talk_nonsense_or_nothing_disturb_nobody(tmp_path: Path) -> None:
    with anyio.fail_after(PATIENCE_SECONDS):
        async with host(tmp_path) as serving:
            for said in (b"", b"\xff" * 5000, b"x" * 127, b"\n\n\n"):
                client = socket.socket(socket.AF_UNIX)
                client.connect(str(socket_of(tmp_path, "runner")))
                client.sendall(said)
                client.close()
            with following(tmp_path, "runner", "run-a") as follower:
                assert follower
                assert await follower.changed()
                serving.tell("run-a")
                assert await follower.changed()


async def test_a_host_is_woken(tmp_path: Path) -> None:
    assert not wake(tmp_path, "runner", "run-a")
    with anyio.fail_after(PATIENCE_SECONDS):
        async with host(tmp_path) as serving:
            assert await anyio.to_thread.run_sync(wake, tmp_path, "runner", "run-a")
            await serving.woken()
    assert not wake(tmp_path, "runner", "run-a")


async def test_without_a_host_there_is_nothing_to_follow(tmp_path: Path) -> None:
    with following(tmp_path, "runner", "run-a") as follower:
        assert follower is None


@pytest.mark.parametrize("trouble", ["missing", "too long", "open to others", "a link", "not a directory"])
async def test_a_runtime_directory_that_is_no_good_is_passed_over(tmp_path: Path, runtime: Path, trouble: str) -> None:
    directory = tmp_path / "runtime"
    match trouble:
        case "missing":
            pass
        case "too long":
            directory = tmp_path / ("x" * 100)
            directory.mkdir(mode=0o700)
        case "open to others":
            (directory / "massgen-mcp").mkdir(parents=True)
            (directory / "massgen-mcp").chmod(0o770)
        case "a link":
            directory.mkdir()
            (directory / "massgen-mcp").symlink_to(runtime)
        case _:
            directory.mkdir()
            (directory / "massgen-mcp").write_text("")
    with anyio.fail_after(PATIENCE_SECONDS):
        async with host(tmp_path, XDG_RUNTIME_DIR=str(directory)):
            path = socket_of(tmp_path, "runner")
            assert path.is_relative_to(runtime)
            assert path.parent.stat().st_mode & 0o777 == 0o700
            with following(tmp_path, "runner", "run-a") as follower:
                assert follower
                assert await follower.changed()


async def test_what_a_killed_host_left_is_removed_by_the_next_one(tmp_path: Path, runtime: Path) -> None:
    script = f"""
import anyio, pathlib
from massgen_mcp.runs.store.news import SocketNewsHost
anyio.run(SocketNewsHost(pathlib.Path({str(tmp_path)!r}), "killed", {{}}).serve)
"""
    environ = {"TMPDIR": str(runtime), "PATH": os.environ["PATH"]}
    async with await anyio.open_process(
        [sys.executable, "-c", script], env=environ, stdout=None, stderr=None
    ) as killed:
        with anyio.fail_after(PATIENCE_SECONDS):
            while not (tmp_path / "killed.news").exists():
                await anyio.sleep(0.01)
        killed.kill()
    stale = socket_of(tmp_path, "killed")
    assert stale.is_socket()
    with following(tmp_path, "killed", "run-a") as follower:
        assert follower is None
    async with host(tmp_path):
        assert not (tmp_path / "killed.news").exists()
        assert not stale.exists()


async def test_dead_sockets_go_even_if_nobody_knows_whose_they_were(tmp_path: Path) -> None:
    """The state directory of a killed host may be gone with the address in it. A young socket may not listen yet."""
    async with host(tmp_path):
        directory = socket_of(tmp_path, "runner").parent
    dead, young = directory / "dead.sock", directory / "young.sock"
    for path in (dead, young):
        with socket.socket(socket.AF_UNIX) as unheard:
            unheard.bind(str(path))
    os.utime(dead, (0, 0))
    async with host(tmp_path, "one"), host(tmp_path, "another"):
        assert not dead.exists()
        assert young.exists()
        assert {socket_of(tmp_path, name).is_socket() for name in ("one", "another")} == {True}
