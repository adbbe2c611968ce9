"""Which level a run's commands get: the strongest that holds, of those that can do what is asked."""

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from massgen_mcp.sandbox import levels
from massgen_mcp.sandbox.policy import Image, ImageRefused, LevelName, Policy, ResourceLimits
from massgen_mcp.sandbox.probe import LevelReport, report_on
from massgen_mcp.sandbox.process import SandboxFailed, spawn

Wanted = Literal["auto"] | LevelName
HOW_TO_GET_ONE = (
    "on Linux install bubblewrap (apt install bubblewrap, dnf install bubblewrap) or "
    "`pip install 'massgen-mcp[sandbox]'`; macOS has one; elsewhere set `sandbox: docker` under `commands`"
)
HOW_TO_GET_AN_IMAGE = (
    "start Docker or Podman; or install bubblewrap, skopeo and umoci, and name an image on this machine as "
    "`image_archive`; or leave out docker and images, and commands have this machine's programs"
)
_IN_IMAGE = "only what the image holds is there; the programs of this machine are not"


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a config asks of the sandbox."""

    level: Wanted = "auto"
    network: tuple[str, ...] = ()
    open_network: bool = False
    image: str | None = None
    """Of a container."""
    archive: Path | None = None
    """Where an image lies on this machine, for bubblewrap where there is no container."""
    images: Path | None = None
    """Where images are unpacked; needed with `archive`."""


@dataclass(frozen=True, slots=True)
class SandboxChoice:
    """The level, or None and in `why` what each level lacks and how to get one."""

    level: LevelName | None
    why: str = ""
    notes: tuple[str, ...] = ()
    """What it lets be seen and what it forbids, beyond what one would expect."""
    broken: tuple[str, ...] = ()
    """Of the notes, those on what commands are used to and does not work."""
    has_no_real_paths: bool = False
    has_no_layers: bool = False
    """A program that asks C's `realpath` is told that nothing has a real path."""
    image: Image | None = None
    """Whose programs commands have, in bubblewrap. None: this machine's, or those of the container."""


async def choose(wishes: Wishes, cache: Path | None) -> SandboxChoice:
    """Try one level after the other, unless that was done before (see `probe.report_on`)."""
    refused: list[str] = []
    for level in _candidates(wishes):
        if wishes.network and level not in levels.WITH_NETWORK:
            refused.append(f"{level}: it has no network to offer, and the config asks for one")
            continue
        if wishes.open_network and level not in levels.CONTAINERS:
            refused.append(f"{level}: only a container has an open network, and the config asks for one")
            continue
        report = await report_on(level, cache, image=wishes.image if level in levels.CONTAINERS else None)
        if not report.holds:
            refused.append(f"{level}: {report.why}")
        elif wishes.archive is None or level in levels.CONTAINERS:
            no_real_paths = levels.UNUSUAL["usual_real_path"] in report.broken
            no_layers = levels.UNUSUAL["usual_layer"] in report.broken
            return SandboxChoice(level, "", report.notes, report.broken, no_real_paths, no_layers)
        else:
            try:
                return SandboxChoice(level, "", (_IN_IMAGE,), image=await _ready(wishes, level))
            except (ImageRefused, SandboxFailed) as error:
                refused.append(f"{level} with the image {wishes.archive}: {error}")
    wants_image = wishes.archive is not None or wishes.level in levels.CONTAINERS
    how = HOW_TO_GET_AN_IMAGE if wants_image else HOW_TO_GET_ONE
    return SandboxChoice(None, f"no sandbox holds here ({'; '.join(refused)}); {how}")


def _candidates(wishes: Wishes) -> tuple[LevelName, ...]:
    if wishes.archive is not None:
        return (wishes.level, "bubblewrap") if wishes.level in levels.CONTAINERS else ("bubblewrap",)
    return levels.BY_ITSELF if wishes.level == "auto" else (wishes.level,)


async def _ready(wishes: Wishes, level: LevelName) -> Image:
    """The image, unpacked, in which a shell starts. Raises `ImageRefused`, `SandboxFailed`."""
    if wishes.archive is None or wishes.images is None:
        raise ImageRefused("there is no place to unpack it")
    from massgen_mcp.sandbox.images import unpacked  # few runs have an image

    image = await unpacked(wishes.archive, wishes.images)
    with TemporaryDirectory(prefix="massgen-image-") as place:
        workspace, scratch = Path(place, "workspace"), Path(place, "scratch")
        for directory in (workspace, scratch):
            directory.mkdir(mode=0o700)
        policy = Policy(workspace, scratch, unpacked=image, bounds=ResourceLimits(seconds=30))
        async with spawn(["/bin/sh", "-c", ":"], policy, level) as process:
            ended = await process.wait()
    if ended.reason != "exited" or ended.code != 0:
        raise ImageRefused(f"its /bin/sh does not start ({ended.message or ended.code or ended.reason})")
    return image


async def survey(cache: Path | None) -> tuple[LevelReport, ...]:
    """Every level that this machine can have by itself, whether it holds or not."""
    return tuple([await report_on(level, cache) for level in levels.BY_ITSELF])
