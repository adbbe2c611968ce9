"""Three agents change the same files: one rightly, one breaks something else, one weakens the test. All would vote for
the last one, and then for the one that breaks something.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from massgen_mcp.events.run import RunCompleted
from massgen_mcp.views.checks import check_notes
from tests.checks.project import commit, delete, environ, evidence, play, write
from tests.checks.tosses import Tosses

__all__ = ["environ"]

pytestmark = pytest.mark.long

TEST, INTACT, IMPOSSIBLE = "sh tests/test.sh", "grep -q kept notes", "no-such-program --version"
VOTES: list[dict[str, Any]] = [{"vote": "weakened"}, {"vote": "broken"}, {"vote": "right"}]
RIGHT = [write("value", "good\n"), write("who", "right"), {"answer": "right"}, *VOTES]
BREAKING = [write("value", "good\n"), delete("notes"), write("who", "breaking"), {"answer": "broken"}, *VOTES]
WEAKENING = [
    write("value", "worse\n"),
    write("tests/test.sh", "exit 0\n"),
    write("who", "weakening"),
    {"answer": "weakened"},
    *VOTES,
]


@pytest.fixture
def tosses(tmp_path: Path) -> Iterator[Tosses]:
    """On the right answer's files the flaky check fails first, and passes then."""
    made = Tosses(tmp_path / "tosses", {"base": "1", "right": "01", "breaking": "1", "weakening": "1"})
    yield made
    made.close()


def project_in(path: Path, base: str) -> Path:
    """`TEST` passes on it or fails."""
    project = path / "project"
    (project / "tests").mkdir(parents=True)
    (project / "value").write_text("good\n" if base == "passes" else "bad\n")
    (project / "tests" / "test.sh").write_text("grep -q good value || { echo FAILED; exit 1; }\n")
    (project / "notes").write_text("kept\n")
    (project / "who").write_text("base")
    commit(project)
    return project


@pytest.mark.parametrize("policy", ["informative", "required", "goal"])
@pytest.mark.parametrize("base", ["passes", "fails"])
async def test_the_right_answer_wins_or_the_end_says_what_the_winner_fails(
    tmp_path: Path, environ: dict[str, str], tosses: Tosses, policy: str, base: str
) -> None:
    project, scripts = project_in(tmp_path, base), (RIGHT, BREAKING, WEAKENING)
    ended = await play(
        tmp_path, project, environ, *scripts,
        checks=[TEST, INTACT, IMPOSSIBLE, tosses.check], checks_policy=policy, decide="vote",
        commands={"readable": [str(tmp_path / "tosses")]},
    )  # fmt: skip
    (end,) = ended.of(RunCompleted)
    if policy == "informative":
        assert end.answer == "weakened"
        assert f"The final files fail checks: {TEST}" in "; ".join(check_notes(ended.snapshot))
        return
    assert end.answer == "right"
    flaky = [outcome.command for outcome in evidence(ended, "agent1.1").outcomes if outcome.flaky]
    assert flaky == [tosses.check]


@pytest.mark.parametrize(
    ("base", "policy", "outcome"),
    [("fails", "informative", "tested"), ("passes", "required", "checked"), ("fails", "goal", "checked")],
)
async def test_where_tests_of_the_team_decide_the_right_answer_wins(
    tmp_path: Path, environ: dict[str, str], tosses: Tosses, policy: str, outcome: str, base: str
) -> None:
    told = [("the value", "cat value", "good"), ("the notes", "cat notes", "kept")]
    tests = [{"title": title, "script": script, "expected": expected} for title, script, expected in told]
    tests.append({"title": "its own", "script": "cat who", "expected": "weakening"})
    writes = {"call": "submit_tests", "arguments": {"tests": tests}}
    scripts = [[step for step in script if step not in VOTES] for script in (RIGHT, BREAKING, WEAKENING)]
    ended = await play(
        tmp_path, project_in(tmp_path, base), environ, *([*script, writes, *VOTES] for script in scripts),
        checks=[TEST, INTACT, IMPOSSIBLE, tosses.check], checks_policy=policy, decide="checks",
        commands={"readable": [str(tmp_path / "tosses")]},
    )  # fmt: skip
    (end,) = ended.of(RunCompleted)
    assert (end.answer, end.outcome) == ("right", outcome)
