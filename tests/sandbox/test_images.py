"""Commands with the programs of an image that lies on this machine, in whole runs; and images that mean harm."""

import tarfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import massgen_mcp
from massgen_mcp.events.agent_work import ToolFinished
from massgen_mcp.events.run import RunStarted
from massgen_mcp.sandbox import images
from massgen_mcp.sandbox.policy import ImageRefused
from massgen_mcp.sandbox.specification import ResourceLimits
from tests.needs import needs
from tests.sandbox.layouts import Kind, entry, image, layer, link, shell
from tests.teams import run_team, team

pytestmark = [needs("bwrap"), needs("skopeo"), needs("umoci")]


def command(text: str) -> dict[str, Any]:
    return {"call": "run_command", "arguments": {"command": text}}


@pytest.fixture(scope="module")
def environ(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A state directory in which the levels of this machine are known after the first run."""
    return {"MASSGEN_MCP_HOME": str(tmp_path_factory.mktemp("home"))}


@pytest.mark.parametrize("kind", ["oci", "oci-archive", "docker-archive"])
async def test_where_docker_is_not_there_commands_have_the_programs_of_the_named_image(
    tmp_path: Path, environ: dict[str, str], kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no.sock")
    made = image(tmp_path / "image", kind, layer(shell()), layer([entry("usr/share/own.txt", "of the image\n")]))
    deeds = "cat /usr/share/own.txt /etc/os-release /etc/hosts; env; ls /; touch /usr/new /etc/new; ls /home /root"
    commands: dict[str, Any] = {"enabled": True, "sandbox": "docker", "image_archive": str(made)}
    if kind == "oci":
        commands |= {"sandbox": "bubblewrap", "network": ["named.test:443"]}
    config = team([command(f"{deeds}; echo $0 > kept"), {"answer": "42"}], orchestrator={"commands": commands})
    ended = await run_team(tmp_path / "run", config, environ=environ)

    (finished,) = ended.of(ToolFinished)
    told = finished.result.splitlines()
    assert {"of the image", "NAME=made", "OF_IMAGE=yes", "PATH=/usr/bin:/bin", "HOME=/tmp", "workspace"} <= set(told)
    assert sum("cannot touch" in line for line in told) == 2
    assert ("127.66.0.2 named.test" in told) == (kind == "oci")
    assert not {"home", "root", "opt", "srv"} & set(told)
    assert (ended.directory.workspace_of("agent_a") / "kept").exists()
    (began,) = ended.of(RunStarted)
    assert began.sandbox == "bubblewrap, with programs from an image"
    (unpacked,) = (Path(environ["MASSGEN_MCP_HOME"]) / "images").iterdir()
    assert (unpacked / "usr/share/own.txt").read_text() == "of the image\n"


@pytest.mark.parametrize("wrong", ["docker", "broken", "no shell"])
async def test_without_docker_and_without_a_usable_image_no_run_begins(
    tmp_path: Path, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    (tmp_path / "broken.tar").write_text("not an image")
    empty = image(tmp_path / "none", "oci", layer([entry("etc/x", "x")]))
    commands, says = {
        "docker": ({"sandbox": "docker", "image": "python:3.12"}, "no sandbox works here (docker: "),
        "broken": ({"image_archive": str(tmp_path / "broken.tar")}, "cannot unpack it: "),
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


async def test_layers_lie_over_each_other_and_nobody_gets_a_right_by_them(tmp_path: Path) -> None:
    lower = [
        entry("a/gone.txt", "gone"),
        entry("a/stays.txt", "stays"),
        link("absolute", "/usr/lib"),
        entry("set-user-id", "x", mode=0o6777),
        entry("disk", type=tarfile.BLKTYPE),
    ]
    upper = [entry("a/.wh.gone.txt"), entry("absolute/three", "3")]
    made = image(tmp_path / "image", "oci", layer(lower), layer(upper))
    first = await images.unpacked(made, tmp_path / "kept")
    assert sorted(path.name for path in (first.root / "a").iterdir()) == ["stays.txt"]
    assert (first.root / "usr/lib/three").read_text() == "3"
    assert (first.root / "set-user-id").stat().st_mode & 0o7777 == 0o755
    assert not (first.root / "disk").is_block_device()

    (first.root / "a/stays.txt").write_text("unpacked once")
    assert await images.unpacked(made, tmp_path / "kept") == first
    assert (first.root / "a/stays.txt").read_text() == "unpacked once"
    assert [path.name for path in (tmp_path / "kept").iterdir()] == [first.root.name], "nothing else is left"


@pytest.mark.parametrize(
    "entries",
    [
        [entry("../outside.txt", "x"), entry("a/../../outside.txt", "x")],
        [link("door", "OUTSIDE"), entry("door/outside.txt", "x"), entry("door/.wh.secret.txt")],
        [link("door", "OUTSIDE"), link("stolen", "door/secret.txt", hard=True)],
    ],
    ids=["names", "through a link", "hard link"],
)
async def test_nothing_of_an_image_lands_or_leads_outside(
    tmp_path: Path, entries: list[tuple[tarfile.TarInfo, bytes]]
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    secret = outside / "secret.txt"
    secret.write_text("closed\n")
    for info, _ in entries:
        info.linkname = info.linkname.replace("OUTSIDE", str(outside))
    root = None
    with suppress(ImageRefused):
        root = (await images.unpacked(image(tmp_path / "image", "oci", layer(entries)), tmp_path / "kept")).root
    assert sorted(path.name for path in outside.iterdir()) == ["secret.txt"]
    assert (secret.read_text(), secret.stat().st_nlink) == ("closed\n", 1)
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ([] if root is None else [root.name])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["image", "kept", "outside"]
    for path in () if root is None else root.rglob("*"):
        assert path.is_symlink() or path.is_dir() or path.read_bytes() != b"closed\n"


@pytest.mark.parametrize(
    ("bounds", "said", "why"),
    [
        (ResourceLimits(disk_bytes=4 << 20), {}, "disk|file too large"),
        (ResourceLimits(), {"rootfs": {"type": "layers", "diff_ids": [f"sha256:{'0' * 64}"]}}, "cannot unpack it"),
    ],
    ids=["bytes", "sums"],
)
async def test_an_image_that_is_too_much_or_not_what_it_says_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bounds: ResourceLimits, said: dict[str, Any], why: str
) -> None:
    monkeypatch.setattr(images, "BOUNDS", bounds)
    made = image(tmp_path / "image", "oci", layer([entry("large", b"0" * (16 << 20))]), **said)
    with pytest.raises(ImageRefused, match=why):
        await images.unpacked(made, tmp_path / "kept")
    assert not [*(tmp_path / "kept").iterdir()]


async def test_what_unpacks_an_image_is_named_where_it_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ImageRefused, match=r"skopeo and umoci must be installed.*apt install skopeo umoci"):
        await images.unpacked(tmp_path, tmp_path / "kept")
