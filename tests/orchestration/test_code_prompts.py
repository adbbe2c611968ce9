"""What agents are told where they work on copies of the caller's directories, and what they are not told elsewhere."""

from pathlib import Path
from typing import Any

from tests.checks.project import FILES, GOOD, TOLD, commit
from tests.system_messages import Model, ask


def repository(path: Path) -> Path:
    place = path / "project"
    for name, text in FILES.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    commit(place)
    return place


def told(model: Model, asked: str) -> list[str]:
    """What agents were told to do, in the system message and behind the question."""
    return ["\n\n".join(texts) for texts in zip(model.systems[asked], model.tasks[asked], strict=True)]


async def test_a_team_that_works_on_code_is_told_how_and_what_decides(tmp_path: Path) -> None:
    code: dict[str, Any] = {
        "context_paths": [{"path": str(repository(tmp_path))}],
        "checks": [GOOD, TOLD],
        "commands": {"enabled": True},
    }
    model, _ = await ask(tmp_path, "m", "m", **code)
    for system in told(model, "new_answer"):
        assert "Your own copy of context/project is project/: work there." in system
        assert "reproduce it first" in system
        assert f"- `{GOOD}`" in system
        assert "weakened" not in system
    for system in told(model, "vote"):
        assert f"- `{GOOD}` (passed on the original: exit code 0)" in system
        assert f"- `{TOLD}` (failed on the original: exit code 1)" in system
        assert "are tests or checks weakened" in system


async def test_nobody_else_hears_of_code(tmp_path: Path) -> None:
    model, _ = await ask(tmp_path, "m", "m", enable_filesystem=True)
    for system in (*told(model, "new_answer"), *told(model, "vote")):
        assert "reproduce" not in system
        assert "weakened" not in system
