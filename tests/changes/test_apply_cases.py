"""A patch is applied to a person's directory as a whole, or nothing of it is: see `apply_cases`."""

from pathlib import Path

import pytest

from massgen_mcp.errors import MassgenError
from massgen_mcp.runs.applying import Application
from tests.changes.apply_cases import CASES, Case
from tests.changes.apply_play import Played, held, play, undone


def files_of_git(found: dict[str, str]) -> dict[str, str]:
    return {path: what for path, what in found.items() if ".git/" in path}


def check(case: Case, played: Played) -> None:
    application = played.application
    if isinstance(application, MassgenError):
        assert case.error, application
        assert case.error in str(application)
        assert played.after == played.before, "not a byte is changed"
        return
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
    changed = {path for path in {**played.before, **played.after} if played.before.get(path) != played.after.get(path)}
    assert case.changes in (-1, len(application.changes))
    assert bool(changed) != case.unchanged
    for path, content in case.holds.items():
        found = held(played.stage.root, path)
        permissions, _, text = (content or "").partition(" ") if (content or "").startswith("0") else ("", "", content)
        assert found == text or text == "...", path
        if permissions:
            assert f"{(played.stage.root / path).stat().st_mode & 0o777:04o}" == permissions


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_patch_is_applied_as_a_whole_or_not_at_all(case: Case, tmp_path: Path) -> None:
    played = play(case, tmp_path)
    check(case, played)
    if isinstance(played.application, Application) and played.application.state == "applied":
        assert undone(played) == played.before, "taken back, it is as it was"
