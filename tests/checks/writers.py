"""Teams of scripted agents that write tests about each other's answers, to be run in the real sandbox."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from massgen_mcp.coordination.testing import judged_tests
from massgen_mcp.events.agent_work import RoundStarted
from massgen_mcp.events.coordination import StageOpened, WinnerChosen
from massgen_mcp.events.run import RunCompleted
from tests.checks.project import commit, play, write
from tests.teams import Act, Ended

Step = dict[str, Any]
DOUBLE = "echo $(( $1 * 2 ))\n"
ADDS_TWO = "echo $(( $1 + 2 ))\n"
SQUARES = "echo $(( $1 * $1 ))\n"


@pytest.fixture
def doubling(tmp_path: Path) -> Path:
    """A project in which `double.sh` is to be written; for 2 it is the same to add two, and to square."""
    place = tmp_path / "project"
    place.mkdir()
    (place / "double.sh").write_text("exit 1\n")
    commit(place)
    return place


def test_of(number: int, expected: int) -> Step:
    return {"title": f"the double of {number}", "script": f"sh double.sh {number}", "expected": str(expected)}


test_of.__test__ = False  # type: ignore[attr-defined]


def tests(*written: Step) -> Step:
    return {"call": "submit_tests", "arguments": {"tests": list(written)}}


tests.__test__ = False  # type: ignore[attr-defined]


def settle(*outputs: str) -> Step:
    return {"call": "submit_outputs", "arguments": {"outputs": list(outputs)}}


TELLING = tests(test_of(3, 6), test_of(5, 10))


def agent(code: str, name: str, *steps: Step) -> list[Step]:
    """It writes `double.sh` and answers `name`."""
    return [write("double.sh", code), {"answer": name}, *steps]


async def decided(path: Path, project: Path, environ: dict[str, str], *scripts: list[Step], **more: Any) -> Ended:
    return await play(path, project, environ, *scripts, **{"checks": [], "decide": "checks", **more})


def winner(ended: Ended) -> tuple[str, str]:
    (chosen,) = ended.of(WinnerChosen)
    (end,) = ended.of(RunCompleted)
    assert end.outcome == chosen.outcome
    return end.answer, chosen.outcome


def voids(ended: Ended) -> list[str | None]:
    return [one.void for one in judged_tests(ended.snapshot.coordination)]


def stages(ended: Ended) -> list[tuple[str, str, Sequence[str]]]:
    return [(stage.kind, stage.because, stage.subjects) for stage in ended.of(StageOpened)]


class FinishIn(Act):
    """Finish the run in the first round of a kind."""

    def __init__(self, kind: str) -> None:
        super().__init__(RoundStarted, "finish_now")
        self._kind = kind

    def heard(self, record: Any) -> None:
        if getattr(record.event, "kind", None) == self._kind and isinstance(record.event, RoundStarted):
            super().heard(record)
