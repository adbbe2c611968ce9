"""Three agents change the same files: one rightly, one breaks something else, one weakens the test. All would vote for
the last one, and then for the one that breaks something.
"""

import os
import select
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from massgen_mcp.events.run import RunCompleted
from massgen_mcp.views.checks import check_notes
from tests.checks.project import commit, delete, environ, evidence, play, write

__all__ = ["environ"]

TEST, INTACT, IMPOSSIBLE = "sh tests/test.sh", "grep -q kept notes", "no-such-program --version"
VOTES: list[dict[str, Any]] = [{"vote": "weakened"}, {"vote": "broken"}, {"vote": "right"}]
RIGHT = [write("value", "good\n"), write("who", "right"), {"answer": "right"}, *VOTES]
BREAKING = [write("value", "good\n"), delete("notes"), write("who", "breaking"), {"answer": "broken"}, *VOTES]
WEAKENING = [write("tests/test.sh", "exit 0\n"), write("who", "weakening"), {"answer": "weakened"}, *VOTES]


class Tosses:
    """What a flaky check reads, one line for each run, by what the file `who` holds: 1 lets it pass."""

    def __init__(self, place: Path, tosses: dict[str, str]) -> None:
        self._place, self._ended = place, Event()
        place.mkdir()
        self._threads = [Thread(target=self._serve, args=(place / who, rest)) for who, rest in tosses.items()]
        for who in tosses:
            os.mkfifo(place / who)
        for thread in self._threads:
            thread.start()

    @property
    def check(self) -> str:
        return f'read toss < "{self._place}/$(cat who)" && test "$toss" = 1'

    def _serve(self, path: Path, tosses: str) -> None:
        for toss in tosses + tosses[-1] * 100:
            writer = os.open(path, os.O_WRONLY)  # waits for a reader
            if not self._ended.is_set():
                os.write(writer, f"{toss}\n".encode())
                left = select.poll()
                left.register(writer, 0)
                left.poll()  # until the reader has gone
            os.close(writer)
            if self._ended.is_set():
                return

    def close(self) -> None:
        self._ended.set()
        readers = [os.open(path, os.O_RDONLY | os.O_NONBLOCK) for path in self._place.iterdir()]
        for thread in self._threads:
            thread.join()
        for reader in readers:
            os.close(reader)


@pytest.fixture
def tosses(tmp_path: Path) -> Iterator[Tosses]:
    """On the right answer's files the flaky check fails first, and passes then."""
    made = Tosses(tmp_path / "tosses", {"base": "1", "right": "01", "breaking": "1", "weakening": "1"})
    yield made
    made.close()


@pytest.mark.parametrize("policy", ["informative", "required", "goal"])
@pytest.mark.parametrize("base", ["passes", "fails"])
async def test_the_right_answer_wins_or_the_end_says_what_the_winner_fails(
    tmp_path: Path, environ: dict[str, str], tosses: Tosses, policy: str, base: str
) -> None:
    project = tmp_path / "project"
    (project / "tests").mkdir(parents=True)
    (project / "value").write_text("good\n" if base == "passes" else "bad\n")
    (project / "tests" / "test.sh").write_text("grep -q good value || { echo FAILED; exit 1; }\n")
    (project / "notes").write_text("kept\n")
    (project / "who").write_text("base")
    commit(project)
    weakening = [write("value", "worse\n"), *WEAKENING]
    ended = await play(
        tmp_path, project, environ, RIGHT, BREAKING, weakening,
        checks=[TEST, INTACT, IMPOSSIBLE, tosses.check], checks_policy=policy,
        commands={"readable": [str(tmp_path / "tosses")]},
    )  # fmt: skip
    (end,) = ended.of(RunCompleted)
    if policy == "informative":
        assert end.answer == "weakened"
        assert check_notes(ended.snapshot)
        return
    assert end.answer == "right"
    flaky = [outcome.command for outcome in evidence(ended, "agent1.1").outcomes if outcome.flaky]
    assert flaky == [tosses.check]
