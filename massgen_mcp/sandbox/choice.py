"""Which level a run's commands get: the strongest that holds, of those that can do what is asked."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from massgen_mcp.sandbox import levels
from massgen_mcp.sandbox.policy import LevelName
from massgen_mcp.sandbox.probe import LevelReport, report_on

Wanted = Literal["auto"] | LevelName
HOW_TO_GET_ONE = (
    "on Linux install bubblewrap (apt install bubblewrap, dnf install bubblewrap) or "
    "`pip install 'massgen-mcp[sandbox]'`; macOS has one; elsewhere set `sandbox: docker` under `commands`"
)


@dataclass(frozen=True, slots=True)
class Choice:
    """The level, or None and in `why` what each level lacks and how to get one."""

    level: LevelName | None
    why: str = ""
    notes: tuple[str, ...] = ()
    """What it lets be seen and what it forbids, beyond what one would expect."""


async def choose(
    wanted: Wanted, cache: Path | None, *, network: Sequence[str] = (), image: str | None = None
) -> Choice:
    """Try one level after the other, unless that was done before (see `probe.report_on`)."""
    refused: list[str] = []
    for level in levels.BY_ITSELF if wanted == "auto" else (wanted,):
        if network and level not in levels.WITH_NETWORK:
            refused.append(f"{level}: it has no network to offer, and the config asks for one")
            continue
        report = await report_on(level, cache, image=image if level in levels.ASKED_FOR else None)
        if report.holds:
            return Choice(level, "", report.notes)
        refused.append(f"{level}: {report.why}")
    return Choice(None, f"no sandbox holds here ({'; '.join(refused)}); {HOW_TO_GET_ONE}")


async def survey(cache: Path | None) -> tuple[LevelReport, ...]:
    """Every level that this machine can have by itself, whether it holds or not."""
    return tuple([await report_on(level, cache) for level in levels.BY_ITSELF])
