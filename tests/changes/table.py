"""`python -m tests.changes.table [WORD]`: every case of an apply in its full size, and every step at which one is cut
off; or those rows whose name has the word in it.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tests.changes.apply_cases import CASES, Case
from tests.changes.apply_faults import (
    FAULTS,
    changed_after_a_kill,
    every_fault,
    in_a_container,
    meanwhile,
    on_a_small_disk,
    two_at_once,
)
from tests.changes.apply_play import Sizes, play, undone
from tests.changes.apply_races import (
    an_editor_saves,
    another_directory_is_in_its_place,
    files_of_others,
    laid_aside_files_are_gone,
)
from tests.changes.test_apply_cases import check

FULL = Sizes(huge=200_000_000, many=50_000, some=10_000)
WIDTH = 62


def rows() -> dict[str, Callable[[Path], str]]:
    """What each row tells, played in a directory of its own."""
    return {
        **{case.name: partial(told, case) for case in CASES},
        **{f"at every step: {kind}": partial(told_of_faults, kind) for kind in FAULTS},
        "a file is changed while it is being replaced": meanwhile,
        "files are changed after a kill in the middle": changed_after_a_kill,
        "an editor saves at every step": partial(an_editor_saves, taking_back=False),
        "an editor saves at every step of a taking back": partial(an_editor_saves, taking_back=True),
        "what was laid aside is moved away, or deleted": laid_aside_files_are_gone,
        "another directory is in its place, or none": another_directory_is_in_its_place,
        **({"files of others, by an ordinary user": files_of_others} if os.geteuid() == 0 else {}),
        "two applies at once": two_at_once,
        "directories of a container's image": in_a_container,
        "the disk is full: a tmpfs of 2 MB": on_a_small_disk,
    }


def told(case: Case, directory: Path) -> str:
    played = play(case, directory, FULL)
    check(case, played)
    came = played.application
    match came.state:
        case "conflicts":
            reasons = "; ".join(f"{one.path}: {one.reason}" for one in came.refused)
            return f"refused, byte-identical: {reasons}".replace(str(directory), "")
        case "unchanged":
            return "nothing to do, byte-identical"
        case _:
            assert undone(played) == played.before
            return f"applied in {played.seconds:.2f} s, {len(came.changes)} files; taken back byte-identical"


def told_of_faults(kind: str, directory: Path) -> str:
    return every_fault(kind, directory).told()


@contextmanager
def scratch() -> Generator[Path]:
    path = Path(tempfile.mkdtemp(prefix="massgen-table-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def main() -> None:
    word = " ".join(sys.argv[1:])
    for number, (name, row) in enumerate(rows().items(), start=1):
        if word in name:
            with scratch() as directory:
                print(f"{number:>3}  {name:<{WIDTH}} {row(directory)}", flush=True)


if __name__ == "__main__":
    main()
