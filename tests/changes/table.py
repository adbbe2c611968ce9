"""`python -m tests.changes.table`: every case of an apply in its full size, and every step at which one is cut off."""

import shutil
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.changes.apply_cases import CASES
from tests.changes.apply_faults import (
    FAULTS,
    changed_after_a_kill,
    every_fault,
    meanwhile,
    on_a_small_disk,
    two_at_once,
)
from tests.changes.apply_play import Sizes, play, undone
from tests.changes.test_apply_cases import check

FULL = Sizes(huge=200_000_000, many=50_000, some=10_000)
WIDTH = 58


def rows() -> Iterator[tuple[str, str]]:
    for case in CASES:
        with scratch() as directory:
            played = play(case, directory, FULL)
            check(case, played)
            came = played.application
            if came.state == "conflicts":
                told = f"refused: {'; '.join(f'{one.path}: {one.reason}' for one in came.refused)}; byte-identical"
            elif came.state == "unchanged":
                told = "nothing to do; byte-identical"
            else:
                assert undone(played) == played.before
                told = f"applied in {played.seconds:.2f} s, {len(came.changes)} files; taken back byte-identical"
            yield case.name, told.replace(str(directory), "")
    for kind in FAULTS:
        with scratch() as directory:
            yield f"at every step: {kind}", every_fault(kind, directory).told()
    with scratch() as directory:
        yield "a file is changed while it is being replaced", meanwhile(directory)
    with scratch() as directory:
        yield "files are changed after a kill in the middle", changed_after_a_kill(directory)
    with scratch() as directory:
        yield "two applies at once", two_at_once(directory)
    with scratch() as directory:
        yield "the disk is full: a tmpfs of 2 MB", on_a_small_disk(directory)


@contextmanager
def scratch() -> Generator[Path]:
    path = Path(tempfile.mkdtemp(prefix="massgen-table-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def main() -> None:
    for number, (name, told) in enumerate(rows(), start=1):
        print(f"{number:>3}  {name:<{WIDTH}} {told}", flush=True)


if __name__ == "__main__":
    main()
