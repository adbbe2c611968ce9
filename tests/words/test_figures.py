"""No room's words get worse. After an improvement: `python -m tests.words write`."""

import json
from pathlib import Path

import pytest

from tests.harness import ROOT
from tests.words.ratchet import MEASURES, SUMS, Figures, find_worse, improve, measure_rooms, read_figures

PLAIN = '''"""A queue of requests."""

LIMIT = 3 if __debug__ else 4


def send_request(text: str) -> str:
    """Send the text."""
    return text


def answer_request(text: str) -> str:
    # The sender waits for this.
    return text
'''
BAD_TWINS = {
    "verb%": "\ndef mailbox(text: str) -> str:\n    return text\n",
    "part%": "\ndef heard(text: str) -> str:\n    return text\n",
    "prep%": "\ndef send_request_to(text: str) -> str:\n    return text\n",
    "doc%": '\ndef send_all(text: str) -> str:\n    """What is sent."""\n    return text\n',
    "nobody‰": "\n# Nobody waits for this, and whoever does is told.\n",
    "cond‰": "\nMOST = 1 if LIMIT else 2\n",
}


def measure_package(place: Path, modules: dict[str, str]) -> dict[str, Figures]:
    """Write a package with these modules, and measure it."""
    for name, text in modules.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text, encoding="utf-8")
    return measure_rooms(place)


@pytest.fixture(scope="module")
def measured() -> dict[str, Figures]:
    return measure_rooms(ROOT / "massgen_mcp")


def test_no_room_is_worse_than_before(measured: dict[str, Figures]) -> None:
    assert list(find_worse(read_figures(), measured)) == []
    assert measured["all"]["statements"] > 30_000, "the package was found"


def test_the_kept_figures_are_those_of_the_present_rooms(measured: dict[str, Figures]) -> None:
    assert read_figures().keys() == measured.keys(), "run `python -m tests.words write`"


@pytest.mark.parametrize("measure", [*BAD_TWINS])
def test_one_more_bad_name_or_sentence_is_worse(measure: str, tmp_path: Path) -> None:
    kept = measure_package(tmp_path, {"room/queue.py": PLAIN, "other/queue.py": PLAIN})
    assert list(find_worse(kept, kept)) == []
    worse = measure_package(tmp_path, {"room/queue.py": PLAIN + BAD_TWINS[measure]})
    (found,) = [line for line in find_worse(kept, worse) if f": {measure} " in line]
    assert found.startswith("room: ")
    assert improve(kept, worse)["room"][measure] == kept["room"][measure], "a worse figure is not kept"


def test_one_more_module_that_is_named_for_an_activity_is_worse(tmp_path: Path) -> None:
    kept = measure_package(tmp_path, {"room/queue.py": PLAIN})
    worse = measure_package(tmp_path, {"room/sending.py": PLAIN})
    (found,) = find_worse(kept, worse)
    assert found.startswith("room: gerunds was 0, is 1: ")


def test_every_measure_has_a_bad_twin() -> None:
    assert {one.name for one in MEASURES} == {*BAD_TWINS, "gerunds"}


def test_a_new_room_is_held_against_all_rooms_together(tmp_path: Path) -> None:
    kept = measure_package(tmp_path, {"room/queue.py": PLAIN})
    bad = measure_package(tmp_path, {"second/queue.py": PLAIN + BAD_TWINS["part%"]})
    assert [line for line in find_worse(kept, bad) if line.startswith("second: part% was 0, is 33.3")]
    good = measure_package(tmp_path, {"second/queue.py": PLAIN})
    assert list(find_worse(kept, good)) == []
    assert improve(kept, good)["second"] == good["second"]


def test_a_better_figure_is_kept_and_then_holds(tmp_path: Path) -> None:
    before = measure_package(tmp_path, {"room/queue.py": PLAIN + BAD_TWINS["part%"]})
    after = measure_package(tmp_path, {"room/queue.py": PLAIN})
    kept = improve(before, after)
    assert kept["room"]["part%"] == after["room"]["part%"] < before["room"]["part%"]
    assert [line for line in find_worse(kept, before) if line.startswith("room: part%")]


def test_what_needs_no_verb_is_not_counted(tmp_path: Path) -> None:
    uncounted = """
class Queue:
    @property
    def told(self) -> int:
        return 1

    def __len__(self) -> int:
        return 1

    def ready(self) -> bool:
        return True
"""
    kept = measure_package(tmp_path, {"room/queue.py": PLAIN})
    now = measure_package(tmp_path, {"room/queue.py": PLAIN + uncounted})
    names = {"verb%", "part%", "prep%"}
    assert {name: now["room"][name] for name in names} == {name: kept["room"][name] for name in names}


def test_the_file_of_figures_has_one_line_for_each_room() -> None:
    text = (ROOT / "tests/words/figures.json").read_text(encoding="utf-8")
    assert len(text.splitlines()) == len(json.loads(text)) + 2
    assert SUMS & json.loads(text).keys()
