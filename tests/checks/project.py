"""A small repository of a person's with checks, and runs that change copies of it."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from massgen_mcp.config.loader import config_from_data
from massgen_mcp.config.models.config import Config
from massgen_mcp.events.coordination import FilesChecked
from massgen_mcp.events.parts import CheckOutcome
from tests.teams import Act, Ended, run_team

GOOD, TOLD = "sh check.sh", "grep -q told notes"
FILES = {
    "value": "right\n",
    "notes": "nothing\n",
    "check.sh": 'echo "looked at the value"\ngrep -q right value || { echo "FAILED: the value is wrong"; exit 3; }\n',
    "tests/test_value.sh": "sh check.sh\n",
    ".gitignore": "tools/\n",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """`check.sh` passes on it as it is, and `grep -q told notes` does not."""
    place = tmp_path / "project"
    for name, text in FILES.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    commit(place)
    return place


@pytest.fixture(scope="module")
def environ(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A state directory in which the levels of this machine are known after the first run."""
    return {"MASSGEN_MCP_HOME": str(tmp_path_factory.mktemp("home"))}


def commit(place: Path) -> None:
    for command in (["init", "-q"], ["add", "-A"], ["-c", "user.name=p", "-c", "user.email=p", "commit", "-qm", "c"]):
        subprocess.run(["git", *command], cwd=place, check=True)


def write(name: str, text: str) -> dict[str, Any]:
    """An agent writes a file of its copy."""
    return {"call": "write_file", "arguments": {"path": f"project/{name}", "content": text}}


def delete(name: str) -> dict[str, Any]:
    return {"call": "delete_file", "arguments": {"path": f"project/{name}"}}


async def play(
    path: Path, project: Path, environ: dict[str, str], *scripts: list[dict[str, Any]], **orchestrator: Any
) -> Ended:
    """A run whose agents have copies of the project; in its midst `act`, if given, happens."""
    act: Act | None = orchestrator.pop("act", None)
    return await run_team(path, team_on(project, *scripts, **orchestrator), act=act, environ=environ)


def team_on(project: Path, *scripts: list[dict[str, Any]], **orchestrator: Any) -> Config:
    settings = {"context_paths": [{"path": str(project)}], "checks": [GOOD], **orchestrator}
    price, budget = settings.pop("price", None), settings.pop("budget", {})
    priced = {} if price is None else {"price": price}
    agents = [{"backend": {"type": "scripted", "script": script, **priced}} for script in scripts]
    return config_from_data({"agents": agents, "orchestrator": settings, "budget": budget}, "test", environ={})


def evidence(ended: Ended, of: str) -> FilesChecked:
    """Of `base`, `final` or the answer of that label, as it is known at last."""
    return [event for event in ended.of(FilesChecked) if of in (event.subject, event.label)][-1]


def results(outcomes: tuple[CheckOutcome, ...]) -> list[str]:
    return [outcome.result for outcome in outcomes]
