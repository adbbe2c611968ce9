"""Which levels of the sandbox hold on this machine: each is tried for real, from inside and from outside.

A level holds if nothing that must be closed was open, by its own word and by what the host sees, and if commands work
in it. That it holds is kept in a file until the machine, the user or one of the programs is another one; a level that
does not hold is tried again by the next run.
"""

import hashlib
import json
import os
import platform
import shutil
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import anyio
import anyio.to_thread
from pydantic import TypeAdapter

from massgen_mcp.sandbox import levels
from massgen_mcp.sandbox.network import Network, NetworkFailed
from massgen_mcp.sandbox.policy import Image, ImageRefused, LevelName, Policy
from massgen_mcp.sandbox.process import SandboxFailed, spawn
from massgen_mcp.sandbox.specification import ResourceLimits
from massgen_mcp.sandbox.targets import Targets
from massgen_mcp.sandbox.tool_files import STORE, replace_text

SCRIPT = Path(__file__).with_name("probes.py")
MAX_OUTPUT = 64 * 1024
TRY_SECONDS = 20
"""A level is tried so long at most; all attempts together take a second or two."""
CONNECTION_SECONDS = 3.0
"""How long a relay may take to connect after the command that asked for it has ended, on a busy machine."""
_OPEN = "open"
_IN_GROUP = "memory_in_group"
"""Whether the kernel bounds the memory of a command, `yes` or `no`; no attempt of its own."""


@dataclass(frozen=True, slots=True)
class LevelReport:
    """What trying one level came to."""

    level: LevelName
    holds: bool
    why: str = ""
    """Why it does not hold, in words."""
    outcomes: dict[str, str] = field(default_factory=dict[str, str])
    """By the name of the attempt: `closed`, `open`."""
    notes: tuple[str, ...] = ()
    """What the level lets a command see or forbids it, beyond what one would expect."""

    @property
    def broken(self) -> tuple[str, ...]:
        """Of the notes, those on what commands are used to and does not work."""
        return tuple(note for note in self.notes if note in levels.UNUSUAL.values())


async def report_on(level: LevelName, cache: Path | None, *, image: str | None = None) -> LevelReport:
    """What is known of the level, tried now if nothing is. Raises nothing. `cache` is a file of ours; None: try it."""
    if missing := levels.present(level):
        return LevelReport(level, False, missing)
    try:
        key = _fingerprint(level, await levels.image_id(level, image))
    except ImageRefused as refused:
        return LevelReport(level, False, str(refused))
    known = await anyio.to_thread.run_sync(_cached_report, cache, key)
    if known is not None:
        return known
    report = await try_level(level, image=image)
    if report.holds:  # what does not hold may do so as soon as somebody starts, allows or ends something
        await anyio.to_thread.run_sync(_keep, cache, key, report)
    return report


async def try_level(level: LevelName, *, image: str | None = None) -> LevelReport:
    """Try the level now."""
    try:
        targets = await anyio.to_thread.run_sync(Targets, level, image)
    except OSError as error:
        return LevelReport(level, False, f"cannot test it: {error}")
    with targets:
        try:
            with anyio.fail_after(TRY_SECONDS):
                reports = await _reports(level, targets)
        except TimeoutError:
            return LevelReport(level, False, f"a command in it didn't finish within {TRY_SECONDS} s")
        except (SandboxFailed, OSError, ValueError) as error:
            return LevelReport(level, False, f"it cannot start a command: {error}")
        outcomes = {**reports, **await anyio.to_thread.run_sync(targets.look)}
    return judged(level, outcomes)


def judged(level: LevelName, outcomes: dict[str, str]) -> LevelReport:
    """Whether a level with these outcomes holds."""
    possible = [name for name, outcome in outcomes.items() if outcome == _OPEN]
    through = sorted(name for name in possible if not name.startswith(("works_", "usual_")))
    broken = sorted(name for name, outcome in outcomes.items() if name.startswith("works_") and outcome != _OPEN)
    if through:
        return LevelReport(level, False, f"a command can escape from it: {', '.join(through)}", outcomes)
    if broken or not outcomes:
        return LevelReport(level, False, f"commands don't work in it: {', '.join(broken)}", outcomes)
    counted = (levels.COUNTED,) if outcomes.get(_IN_GROUP) == "no" else ()
    unusual = [note for name, note in levels.UNUSUAL.items() if outcomes.get(name) != _OPEN]
    return LevelReport(level, True, "", outcomes, (*levels.LETS_THROUGH[level], *counted, *unusual))


@asynccontextmanager
async def _open_relay(level: LevelName, targets: Targets) -> AsyncGenerator[tuple[Policy, Network | None]]:
    """The policy of the attempts, with a network of one listed pair where there can be one in this level."""
    if level not in levels.WITH_NETWORK:
        yield targets.policy, None
        return
    listed = replace(targets.policy, network=(targets.listed,))
    if level != "bubblewrap":
        yield listed, None
        return
    try:
        network = await Network.open(listed.network)
    except (NetworkFailed, OSError):
        yield targets.policy, None
        return
    try:
        yield listed, network
    finally:
        await network.close()


async def _reports(level: LevelName, targets: Targets) -> dict[str, str]:
    """The outcomes as the attempts report them."""
    python = "python3" if level in levels.CONTAINERS else levels.interpreter()
    output = bytearray()
    argv = [python, "-I", "-S", "-c", SCRIPT.read_text()]
    async with (
        _open_relay(level, targets) as (policy, network),
        spawn(argv, policy, level, stdin=True, network=network) as process,
    ):
        if process.stdin is not None:
            with suppress(anyio.BrokenResourceError):
                await process.stdin.send(json.dumps(targets.plan).encode() + b"\n")
        with suppress(anyio.EndOfStream):
            while len(output) < MAX_OUTPUT:
                output += await process.stdout.receive()
        ended = await process.wait()
        if network is not None:
            await targets.wait_for_connection(CONNECTION_SECONDS)
    last = bytes(output).strip().rpartition(b"\n")[2].decode(errors="replace")
    if ended.reason != "exited" or ended.code != 0:
        raise ValueError(f"{ended.reason} {ended.code} {ended.message} {last[-300:]}".strip())
    outcomes = {str(name): str(outcome).partition(":")[0] for name, outcome in json.loads(last).items()}
    if level == "bubblewrap":
        outcomes[_IN_GROUP] = "yes" if ended.in_group else "no"
    return outcomes


def _fingerprint(level: LevelName, image: str) -> str:
    """Of everything that the outcome may depend on."""
    parts = [level, image, str(os.geteuid()), platform.platform(), _boot(), sys.executable]
    parts += [_stamp(path) for path in (SCRIPT.parent, *SCRIPT.parent.glob("*.py"))]
    for program in (shutil.which(level), shutil.which("bwrap")):
        parts.append(_stamp(Path(program)) if program else "")
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def _boot() -> str:
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return ""


def _stamp(path: Path) -> str:
    with suppress(OSError):
        found = path.stat()
        return f"{path}:{found.st_mtime_ns}:{found.st_size}"
    return ""


def _cached_report(cache: Path | None, key: str) -> LevelReport | None:
    with suppress(OSError, ValueError, TypeError, KeyError):
        if cache is not None:
            return _REPORT.validate_json(json.dumps(json.loads(cache.read_bytes())[key]))
    return None


def _keep(cache: Path | None, key: str, report: LevelReport) -> None:
    """Two that keep at once may lose one of their reports: it is then tried again."""
    if cache is None or not cache.parent.is_dir():
        return
    known: dict[str, Any] = {}
    with suppress(OSError, ValueError):
        known = json.loads(cache.read_bytes())
    known = {**dict([*known.items()][-_MAX_KEPT:]), key: asdict(report)}
    replace_text(cache, json.dumps(known))


_MAX_KEPT = 16
_REPORT = TypeAdapter(LevelReport)


# -- which level a run's commands get: the strongest that holds, of those that can do what is asked -------------------


Wanted = Literal["auto"] | LevelName
HOW_TO_GET_AN_IMAGE = (
    "start Docker or Podman; or install bubblewrap, skopeo and umoci, and set `image_archive` to an image on "
    "this machine; or remove docker and images from the config to use this machine's programs"
)
_ELSE = "or set `sandbox: docker` or `podman` under `commands`; macOS has its own sandbox"
_IN_IMAGE = "commands have only the image's programs, not this machine's"


def how_to_get_one() -> str:
    """Return the cures for a machine on which no level holds, in words."""
    return f"on Linux {levels.how_to_get_bubblewrap()}, {_ELSE}"


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
    has_no_layers: bool = False
    """A tool cannot write beside installed packages."""
    image: Image | None = None
    """Whose programs commands have, in bubblewrap. None: this machine's, or those of the container."""


async def choose(wishes: Wishes, cache: Path | None) -> SandboxChoice:
    """Try one level after the other, unless that was done before (see `probe.report_on`)."""
    if cache is not None:
        STORE.path = cache.with_name("tool-files.json")
    refused: list[str] = []
    for level in _candidates(wishes):
        if wishes.network and level not in levels.WITH_NETWORK:
            refused.append(f"{level}: the config asks for network access, which this sandbox can't provide")
            continue
        if wishes.open_network and level not in levels.CONTAINERS:
            refused.append(f"{level}: the config asks for unrestricted network access, which only a container can have")
            continue
        report = await report_on(level, cache, image=wishes.image if level in levels.CONTAINERS else None)
        if not report.holds:
            refused.append(f"{level}: {report.why}")
        elif wishes.network and level == "bubblewrap" and levels.UNUSUAL["usual_network"] in report.broken:
            refused.append(
                f"{level}: the config asks for network access, but network relays don't work on this machine"
            )
        elif wishes.archive is None or level in levels.CONTAINERS:
            no_layers = levels.UNUSUAL["usual_layer"] in report.broken
            return SandboxChoice(level, "", report.notes, report.broken, no_layers)
        else:
            try:
                return SandboxChoice(level, "", (_IN_IMAGE,), image=await _ready(wishes, level))
            except (ImageRefused, SandboxFailed) as error:
                refused.append(f"{level} with the image {wishes.archive}: {error}")
    wants_image = wishes.archive is not None or wishes.level in levels.CONTAINERS
    how = HOW_TO_GET_AN_IMAGE if wants_image else how_to_get_one()
    return SandboxChoice(None, f"no sandbox works here ({'; '.join(refused)}); {how}")


def _candidates(wishes: Wishes) -> tuple[LevelName, ...]:
    if wishes.archive is not None:
        return (wishes.level, "bubblewrap") if wishes.level in levels.CONTAINERS else ("bubblewrap",)
    return levels.BY_ITSELF if wishes.level == "auto" else (wishes.level,)


async def _ready(wishes: Wishes, level: LevelName) -> Image:
    """The image, unpacked, in which a shell starts. Raises `ImageRefused`, `SandboxFailed`."""
    if wishes.archive is None or wishes.images is None:
        raise ImageRefused("there is no directory to unpack it into")
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
