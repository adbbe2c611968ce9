"""Commands with the programs of an image that lies on this machine, in whole runs; and images that mean harm."""

import os
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import massgen_mcp
from massgen_mcp.events.agent_work import ToolFinished
from massgen_mcp.events.run import RunStarted
from massgen_mcp.sandbox import images
from massgen_mcp.sandbox.policy import ImageRefused
from tests.needs import needs
from tests.sandbox.layouts import Kind, entry, image, layer, link, shell
from tests.teams import run_team, team

needs_bubblewrap = needs("bwrap")


def command(text: str) -> dict[str, Any]:
    return {"call": "run_command", "arguments": {"command": text}}


@pytest.fixture(scope="module")
def environ(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A state directory in which the levels of this machine are known after the first run."""
    return {"MASSGEN_MCP_HOME": str(tmp_path_factory.mktemp("home"))}


@needs_bubblewrap
@pytest.mark.parametrize("kind", ["oci", "oci-archive", "docker-archive"])
async def test_where_docker_is_not_there_commands_have_the_programs_of_the_named_image(
    tmp_path: Path, environ: dict[str, str], kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no.sock")
    made = image(tmp_path / "image", kind, layer(shell()), layer([entry("usr/share/own.txt", "of the image\n")]))
    deeds = "cat /usr/share/own.txt /etc/os-release; env; ls /; touch /usr/new /etc/new; ls /home /root; echo $0 > kept"
    commands = {"enabled": True, "sandbox": "docker", "image_archive": str(made)}
    config = team([command(deeds), {"answer": "42"}], orchestrator={"commands": commands})
    ended = await run_team(tmp_path / "run", config, environ=environ)

    (finished,) = ended.of(ToolFinished)
    told = finished.result.splitlines()
    assert {"of the image", "NAME=made", "OF_IMAGE=yes", "PATH=/usr/bin:/bin", "HOME=/tmp", "workspace"} <= set(told)
    assert sum("cannot touch" in line for line in told) == 2
    assert not {"home", "root", "opt", "srv"} & set(told)
    assert (ended.directory.workspace_of("agent_a") / "kept").exists()
    (began,) = ended.of(RunStarted)
    assert began.sandbox == "bubblewrap, with the programs of an image"
    (unpacked,) = (Path(environ["MASSGEN_MCP_HOME"]) / "images").iterdir()
    assert (unpacked / "usr/share/own.txt").read_text() == "of the image\n"


@needs_bubblewrap
@pytest.mark.parametrize("wrong", ["docker", "broken", "no shell"])
async def test_without_docker_and_without_a_usable_image_no_run_begins(
    tmp_path: Path, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    (tmp_path / "broken.tar").write_text("not an image")
    empty = image(tmp_path / "none", "oci", layer([entry("etc/x", "x")]))
    commands, says = {
        "docker": ({"sandbox": "docker", "image": "python:3.12"}, "no sandbox holds here (docker: "),
        "broken": ({"image_archive": str(tmp_path / "broken.tar")}, "it is no directory in OCI layout, and no"),
        "no shell": ({"image_archive": str(empty)}, "its /bin/sh does not start"),
    }[wrong]
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no.sock")
    monkeypatch.setenv("MASSGEN_MCP_HOME", environ["MASSGEN_MCP_HOME"])
    monkeypatch.chdir(tmp_path)
    config = {"agent": {"backend": {"type": "scripted"}}, "orchestrator": {"commands": {"enabled": True, **commands}}}
    with pytest.raises(massgen_mcp.MassgenError) as refused:
        await massgen_mcp.run("q", config_dict=config, enable_logging=True)
    assert refused.value.code == "config_invalid"
    assert says in str(refused.value)
    assert not (tmp_path / ".massgen").exists()


def test_layers_lie_over_each_other_as_in_a_container(tmp_path: Path) -> None:
    lower = layer(
        [
            entry("a/gone.txt", "gone"),
            entry("a/stays.txt", "stays"),
            entry("b/old.txt", "old"),
            entry("c", "a file"),
            link("lib", "usr/lib"),
            link("absolute", "/usr/lib"),
            entry("usr/lib/one", "1"),
            link("hard", "a/stays.txt", hard=True),
            entry("set-user-id", "x", mode=0o6755),
            entry("disk", type=tarfile.BLKTYPE),
            entry("pipe", type=tarfile.FIFOTYPE),
        ]
    )
    upper = layer(
        [
            entry("a/.wh.gone.txt"),
            entry("b/new.txt", "new"),
            entry("b/.wh..wh..opq"),
            entry("c", type=tarfile.DIRTYPE),
            entry("c/now", "a directory"),
            entry("lib/two", "2"),
            entry("absolute/three", "3"),
            entry(".wh.never-there"),
        ]
    )
    root = images.unpacked(image(tmp_path / "image", "oci", lower, upper), tmp_path / "kept").root
    assert sorted(path.name for path in (root / "a").iterdir()) == ["stays.txt"]
    assert sorted(path.name for path in (root / "b").iterdir()) == ["new.txt"]
    assert (root / "c/now").read_text() == "a directory"
    assert sorted(path.name for path in (root / "usr/lib").iterdir()) == ["one", "three", "two"]
    assert (root / "lib").readlink() == Path("usr/lib")
    assert (root / "hard").read_text() == "stays"
    assert (root / "set-user-id").stat().st_mode & 0o7777 == 0o755
    assert not (root / "disk").exists()
    assert not (root / "pipe").exists()


@pytest.mark.parametrize(
    "entries",
    [
        [entry("../outside.txt", "x")],
        [entry("a/../../outside.txt", "x")],
        [link("door", ".."), entry("door/outside.txt", "x")],
        [link("door", "../../.."), entry("door/outside.txt", "x")],
        [link("door", "OUTSIDE"), entry("door/outside.txt", "x")],
        [link("door", "OUTSIDE/secret.txt"), entry("door", "x")],
        [link("stolen", "../secret.txt", hard=True)],
        [link("stolen", "OUTSIDE/secret.txt", hard=True)],
        [link("door", "OUTSIDE"), link("stolen", "door/secret.txt", hard=True)],
        [link("door", "OUTSIDE"), entry("door/.wh.secret.txt")],
        [link("door", "OUTSIDE"), entry("door/.wh..wh..opq")],
        [entry("..", type=tarfile.DIRTYPE, mode=0o777)],
        [entry("a/../..", "x")],
        [entry(".wh..")],
        [entry(".wh.")],
        [link("one", "two"), link("two", "one"), entry("one/x", "x")],
        [link("door", "OUTSIDE"), entry("door", type=tarfile.DIRTYPE, mode=0o777)],
    ],
    ids=lambda entries: " ".join(info.name + info.linkname for info, _ in entries),
)
def test_nothing_of_an_image_lands_or_leads_outside(
    tmp_path: Path, entries: list[tuple[tarfile.TarInfo, bytes]]
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    secret = outside / "secret.txt"
    secret.write_text("closed\n")
    secret.chmod(0o600)
    for info, _ in entries:
        info.linkname = info.linkname.replace("OUTSIDE", str(outside))
    kept = outside / "kept"
    kept.mkdir(mode=0o700)
    (kept / "another").mkdir()
    before = secret.stat()
    root = None
    try:
        root = images.unpacked(image(tmp_path / "image", "oci", layer(entries)), kept).root
    except ImageRefused:
        assert [path.name for path in kept.iterdir()] == ["another"], "what was refused leaves nothing"
    assert secret.read_text() == "closed\n"
    assert (secret.stat().st_mode, secret.stat().st_nlink) == (before.st_mode, before.st_nlink)
    assert sorted(path.name for path in outside.iterdir()) == ["kept", "secret.txt"]
    assert (kept.stat().st_mode & 0o777, (kept / "another").is_dir()) == (0o700, True)
    for path in () if root is None else root.rglob("*"):
        assert path.is_symlink() or path.is_dir() or path.read_bytes() != b"closed\n"


def long_name() -> bytes:
    """A layer whose one entry has a name of two million characters."""
    return layer([entry("a" * 2_000_000, "x")])


REFUSED: list[tuple[Callable[[Path], Path], str]] = [
    (lambda at: image(at, "oci", layer([entry("large", b"0" * 3000)])), "GiB or"),
    (lambda at: image(at, "oci", layer(entry(f"n{number}") for number in range(40))), "30 files"),
    (lambda at: image(at, "oci", long_name()), "at too great length"),
    (lambda at: image(at, "oci", layer([entry("x")]), architecture="s390x"), "it is for linux/s390x"),
    (lambda at: image(at, "oci", layer([entry("x")]), rootfs={"diff_ids": ["sha256:0"]}), "is damaged"),
    (lambda at: image(at, "oci", layer([entry("x")]), rootfs={"diff_ids": []}), "sums of 0"),
    (lambda at: image(at, "oci", b"\x28\xb5\x2f\xfd" + b"0" * 100, packed=False), "zstd"),
    (lambda at: image(at, "docker-archive", b"\x1f\x8b" + b"0" * 100, packed=False), "cannot be unpacked"),
]


@pytest.mark.parametrize(
    ("make", "why"),
    REFUSED,
    ids=["bytes", "files", "names", "machine", "damaged", "sums", "zstd", "gzip"],
)
def test_an_image_that_is_too_much_or_not_whole_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], Path], why: str
) -> None:
    monkeypatch.setattr(images, "MAX_BYTES", 2000 if why == "GiB or" else 10_000_000)
    monkeypatch.setattr(images, "MAX_FILES", 30)
    with pytest.raises(ImageRefused, match=why):
        images.unpacked(make(tmp_path / "image"), tmp_path / "kept")
    assert not (tmp_path / "kept").exists() or [*(tmp_path / "kept").iterdir()] == []


def test_a_small_file_that_becomes_a_large_one_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "MAX_BYTES", 1 << 20)
    monkeypatch.setattr(images, "MAX_FILES", 10)
    made = image(tmp_path / "image", "oci", layer([entry("a")]) + b"\0" * (8 << 20))
    assert sum(path.stat().st_size for path in made.rglob("*") if path.is_file()) < 1 << 20
    with pytest.raises(ImageRefused, match="has more than"):
        images.unpacked(made, tmp_path / "kept")


def test_a_part_of_a_layout_cannot_be_a_link_or_lie_elsewhere(tmp_path: Path) -> None:
    made = image(tmp_path / "image", "oci", layer([entry("a")]))
    index = made / "index.json"
    index.rename(tmp_path / "index.json")
    index.symlink_to(tmp_path / "index.json")
    with pytest.raises(ImageRefused, match="cannot be unpacked"):
        images.unpacked(made, tmp_path / "kept")
    index.unlink()
    os.mkfifo(index)
    with pytest.raises(ImageRefused, match="is missing"):
        images.unpacked(made, tmp_path / "kept")
    index.unlink()
    index.write_text('{"manifests": [{"digest": "sha256:../../../etc/passwd"}]}')
    with pytest.raises(ImageRefused, match="only sha256 is known"):
        images.unpacked(made, tmp_path / "kept")


def test_an_image_is_unpacked_once(tmp_path: Path) -> None:
    made = image(tmp_path / "image", "oci", layer([entry("a", "one")]))
    first = images.unpacked(made, tmp_path / "kept")
    (first.root / "a").write_text("not touched again")
    assert images.unpacked(made, tmp_path / "kept") == first
    assert (first.root / "a").read_text() == "not touched again"
