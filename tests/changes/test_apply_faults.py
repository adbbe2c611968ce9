"""An apply that is cut off, wherever and however: nothing is changed in the end, or everything (see `apply_faults`)."""

import os
import re
from pathlib import Path

import pytest

from tests.changes.apply_faults import TWICE, in_a_container, on_a_small_disk
from tests.commands import run_command
from tests.faults import can_mount
from tests.harness import TempHome, home
from tests.needs import needs

__all__ = ["home"]

pytestmark = pytest.mark.uncounted

EVERY = "12"
"""One of so many steps of each kind; `python -m tests.changes.table` tries all."""
MARKED_AS_DONE, LOOKED_AT = "5", "4"
"""The sixth fsync is among these, by which a change is marked as done; and the ninth opening, with which a taking back
looks at the file that is saved.
"""


def told(home: TempHome, directory: Path, *arguments: str, program: str = "apply_faults") -> str:
    return run_command(home, f"tests.changes.{program}", str(directory), *arguments).stdout.strip()


@needs("strace")
@pytest.mark.parametrize(("kind", "every"), [("kill", EVERY), (TWICE, EVERY), ("broken", MARKED_AS_DONE)])
def test_a_fault_at_any_step_leaves_all_or_nothing(home: TempHome, tmp_path: Path, kind: str, every: str) -> None:
    found = told(home, tmp_path, kind, every)
    assert found.endswith("0 bad []"), found
    assert int(re.findall(r"\d+", found)[0]) > 5, found


@needs("strace")
def test_a_file_that_changes_while_it_is_replaced_stays_as_the_person_left_it(home: TempHome, tmp_path: Path) -> None:
    assert told(home, tmp_path, "meanwhile") == "conflicts; the file is 'mine\\n', others changed: []"


@needs("strace")
def test_what_a_person_does_after_a_crash_stays_and_is_named(home: TempHome, tmp_path: Path) -> None:
    found = told(home, tmp_path, "changed after a kill")
    assert found == (
        "kept ['docs/alone.txt', 'lines.txt', '9', 'alone'], 'mine\\n'; "
        "changed ['person/docs', 'person/docs/alone.txt', 'person/lines.txt']"
    )


@needs("strace")
def test_a_directory_that_becomes_a_link_while_files_are_replaced_is_not_followed(
    home: TempHome, tmp_path: Path
) -> None:
    assert told(home, tmp_path, "a link") == "conflicts; elsewhere as before: True"


@needs("strace")
def test_of_two_applies_at_once_one_waits_for_the_other(home: TempHome, tmp_path: Path) -> None:
    assert told(home, tmp_path, "two at once") == "applied, unchanged; applied 1 time"


@needs("strace")
def test_a_change_of_two_directories_that_is_killed_is_taken_back_in_both(home: TempHome, tmp_path: Path) -> None:
    as_before = "new, then all as before: True"
    assert told(home, tmp_path, "two directories") == f"['one'] {as_before}; [] {as_before}"


def test_a_full_disk_is_met_before_anything_is_changed(tmp_path: Path) -> None:
    assert on_a_small_disk(tmp_path) == "disk_full; byte-identical: True"


@pytest.mark.skipif(not can_mount(), reason="no file system can be mounted here")
def test_directories_of_a_containers_image_are_removed_where_nothing_is_left_in_them(tmp_path: Path) -> None:
    assert in_a_container(tmp_path).splitlines() == [
        "applied; byte-identical: False; left []",
        "nothing was changed: person/docs: Invalid cross-device link; byte-identical: True; left ['src/deep', 'docs']",
        (
            "conflicts ['person/lines.txt: is a mount point of another file system', 'person/src/a.txt: src is a "
            "mount point of another file system']"
        ),
    ]


@needs("strace")
@pytest.mark.parametrize(("kind", "every"), [("saves", EVERY), ("saves while it is taken back", LOOKED_AT)])
def test_what_an_editor_saves_at_any_moment_stays(home: TempHome, tmp_path: Path, kind: str, every: str) -> None:
    found = told(home, tmp_path, kind, every, program="apply_races")
    assert found.endswith("0 bad []"), found
    assert int(re.findall(r"\d+", found)[0]) > 4, found


@needs("strace")
def test_files_that_were_laid_aside_and_are_gone_are_named_until_all_is_as_before(
    home: TempHome, tmp_path: Path
) -> None:
    lost = "lost ['docs/alone.txt', 'lines.txt', 'new']"
    settled = "settled, as before: True"
    assert told(home, tmp_path, "gone", program="apply_races") == "; ".join((lost, lost, settled, settled))


@needs("strace")
def test_where_another_directory_or_none_is_in_the_place_of_the_persons_nothing_is_given_up(
    home: TempHome, tmp_path: Path
) -> None:
    found = told(home, tmp_path, "another", program="apply_races")
    assert found == "lost ['.']; lost ['docs/alone.txt', 'lines.txt', 'src/a.txt']; settled, as before: True"


if os.geteuid() == 0:

    def test_files_that_would_change_hands_are_refused_by_name(home: TempHome, tmp_path: Path) -> None:
        assert told(home, tmp_path, "others", program="apply_races") == (
            "[('person/lines.txt', 'belongs to another user, but a changed file would belong to you'), "
            "('person/src/a.txt', \"belongs to a group that you aren't in, so a changed file would lose the "
            'group")]; applied [4242, 65534]'
        )

    def test_a_superuser_who_may_give_no_file_away_adds_own_ones_and_changes_none_of_others(
        home: TempHome, tmp_path: Path
    ) -> None:
        assert told(home, tmp_path, "no right to give", program="apply_races") == (
            "[('person/src/a.txt', 'belongs to another user, but a changed file would belong to you')]; applied [0, 0]"
        )
