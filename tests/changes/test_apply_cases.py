"""A patch is applied to a person's directory as a whole, or nothing of it is: see `apply_cases`."""

import os
from pathlib import Path

import pytest

from massgen_mcp.changes.repository import FileChange
from tests.changes.apply_cases import CASES, Case
from tests.changes.apply_play import PERSON, Played, held, play, undone


def files_of_git(found: dict[str, str]) -> dict[str, str]:
    return {path: what for path, what in found.items() if ".git/" in path}


def changed_files(played: Played) -> set[str]:
    both = {**played.before, **played.after}
    changed = {path for path in both if played.before.get(path) != played.after.get(path)}
    return {path for path in changed if any(is_file(found.get(path)) for found in (played.before, played.after))}


def is_file(what: str | None) -> bool:
    return what is not None and not what.startswith("4")


def attributes_of(what: str | None) -> str:
    """Owner, group, access list and the like."""
    return (what or "").partition(" ")[2].rpartition(" ")[0]


def paths_of(change: FileChange) -> set[str]:
    root = PERSON if change.path.startswith(PERSON.encode()) else f"{PERSON}/src"  # what the run was given
    named = (os.fsdecode(path).partition("/")[2] for path in (change.path, change.earlier_path) if path is not None)
    return {f"{root}/{path}" for path in named}


def check(case: Case, played: Played) -> None:
    application = played.application
    if case.refused:
        assert application.state == "conflicts"
        told = {one.path.removeprefix("person/"): one.reason for one in application.refused}
        assert told.keys() == case.refused.keys()
        for path, reason in case.refused.items():
            assert reason in told[path]
        assert played.after == played.before, "not a byte is changed"
        return
    assert application.state == ("unchanged" if case.unchanged else "applied"), application.refused
    assert files_of_git(played.after) == files_of_git(played.before), "index, references and objects are as they were"
    assert changed_files(played) == {path for one in application.changes for path in paths_of(one)}
    for path, what in played.before.items():
        if is_file(what) and is_file(now := played.after.get(path)):
            assert attributes_of(now) == attributes_of(what), path
    for change in application.changes:
        if change.earlier_path is not None:
            earlier, now = sorted(paths_of(change), key=lambda path: path in played.after)
            assert attributes_of(played.after[now]) == attributes_of(played.before[earlier]), now
    assert case.changes in (-1, len(application.changes))
    assert bool(application.changes) != case.unchanged
    for path, content in case.holds.items():
        found = held(played.stage.root, path)
        permissions, _, text = (content or "").partition(" ") if (content or "").startswith("0") else ("", "", content)
        assert found == text or (text == "..." and found is not None), path
        if permissions:
            assert f"{(played.stage.root / path).stat().st_mode & 0o777:04o}" == permissions


TAKEN_BACK = [*CASES[::6], *(case for case in CASES if "renamed, with" in case.name)]
"""`python -m tests.changes.table` takes all of them back, and plays them in their full size."""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_patch_is_applied_as_a_whole_or_not_at_all(case: Case, tmp_path: Path) -> None:
    played = play(case, tmp_path)
    check(case, played)
    if case in TAKEN_BACK and played.application.state == "applied":
        assert undone(played) == played.before, "taken back, it is as it was"
