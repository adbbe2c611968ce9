"""A few real runs of scripted teams in one state directory, which nobody changes: `copied` gives one of one's own."""

import json
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

import massgen_mcp
from massgen_mcp.errors import RunNotCompleted
from tests.api.blocks import restored_environment
from tests.harness import TempHome

HOSTILE = "<img src=x onerror=alert(1)></script><script>alert(2)</script>"


def agent(name: str, model: str, usd: float | None, *script: dict[str, Any]) -> dict[str, Any]:
    price = None if usd is None else {"input_usd_per_million": usd, "output_usd_per_million": usd}
    return {"id": name, "backend": {"type": "scripted", "model": model, "script": [*script], "price": price}}


def votes(text: str, best: str) -> tuple[dict[str, Any], dict[str, Any]]:
    return {"answer": text}, {"vote": best, "reason": "It says why."}


AGREED = [
    agent("ada", "alpha", 5, *votes("Rewrite it.", "Mend")),
    agent("bo", "beta", 3, *votes("Mend it.", "own")),
    agent("cleo", "gamma", 2, *votes("Leave it alone.", "Mend")),
]
"""All for bo's first answer."""
SPLIT = [
    agent("ada", "alpha", 5, *votes("Rewrite it.", "own")),
    agent("bo", "beta", 3, *votes("Mend it.", "Rewrite")),
    agent("cleo", "gamma", 2, *votes("Leave it alone.", "own")),
]
"""ada wins, and cleo dissents."""
SECOND = [
    agent("ada", "beta", 3, {"answer": "One."}, {"answer": "Two, with a reason."}, {"vote": "own"}, {"vote": "own"}),
    agent("bo", "local", None, {"answer": "Three."}, {"vote": "One"}, {"vote": "Two"}, {"vote": "Two"}),
]
"""ada's second answer wins; what bo costs is unknown."""
BROKEN = [agent("ada", "alpha", 5, {"fail": "auth"}), agent("bo", "beta", 3, {"fail": "auth"})]
STRANGE = [agent(name, f"{HOSTILE}{name}", 1, {"answer": name}) for name in ("one", "two")]


async def play(work: Path) -> None:
    config = work / "agreed.yaml"
    config.write_text(json.dumps({"agents": AGREED}))
    for team in ({"config": str(config)}, *({"config_dict": {"agents": agents}} for agents in (SPLIT, SECOND, BROKEN))):
        with suppress(RunNotCompleted):
            await massgen_mcp.run("What is to be done?", enable_logging=True, **team)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> TempHome:
    """In their order: AGREED from a file, SPLIT, SECOND, BROKEN."""
    place = tmp_path_factory.mktemp("played")
    home, before = TempHome(place / "home", place / "work"), Path.cwd()
    home.work.mkdir()
    with restored_environment():
        os.environ.clear()
        os.environ.update(home.environ)
        os.chdir(home.work)
        try:
            anyio.run(play, home.work)
        finally:
            os.chdir(before)
    return home


@pytest.fixture
def copied(played: TempHome, tmp_path: Path) -> TempHome:
    """The records of the runs stay where they are."""
    shutil.copytree(played.path, tmp_path / "home")
    return TempHome(tmp_path / "home", played.work)
