"""The wheel contains only what the program needs: each file that isn't Python has a reason in release/contents.py.

`make release-check` looks at a wheel that was really built; here the files that it would be built from are compared.
"""

import zipfile
from pathlib import Path

import pytest

from release import check
from release.contents import NEEDED, find_faults
from tests.harness import ROOT

METADATA = [name.replace("*", "1") for name in NEEDED["metadata of every wheel"]]
STRAYS = {
    "massgen_mcp/integrations/inspect.py.orig": "isn't listed",
    "massgen_mcp/page/template/draft.js": "isn't listed",
    "massgen_mcp/configs/three_agents.yaml.bak": "isn't listed",
    "massgen_mcp/money/.budget.py.swp": "isn't listed",
    "massgen_mcp/money/test_budget.py": "move it to tests/",
    "massgen_mcp/runs/tests/double.py": "move it to tests/",
    "tests/harness.py": "move it to tests/",
}
"""Names that a wheel must not have, and what is said of them."""


def list_files() -> list[str]:
    """List the files of a wheel of this checkout by their names in it."""
    below = [path for folder in ("massgen_mcp", "configs") for path in (ROOT / folder).rglob("*") if path.is_file()]
    names = [path.relative_to(ROOT).as_posix() for path in below if "__pycache__" not in path.parts]
    return [f"massgen_mcp/{name}" if name.startswith("configs/") else name for name in names] + METADATA


def test_every_shipped_file_has_a_reason_and_every_listed_one_exists() -> None:
    assert list(find_faults(list_files())) == []


@pytest.mark.parametrize("stray", [*STRAYS])
def test_a_file_that_does_not_belong_in_the_wheel_is_named(stray: str) -> None:
    (fault,) = find_faults([*list_files(), stray])
    assert fault.startswith(f"{stray} ")
    assert STRAYS[stray] in fault


def test_a_listed_file_that_is_missing_is_named() -> None:
    (fault,) = find_faults([name for name in list_files() if name != "massgen_mcp/py.typed"])
    assert fault.startswith("massgen_mcp/py.typed is listed")


@pytest.mark.parametrize("stray", [None, "massgen_mcp/integrations/inspect.py.orig"])
def test_the_release_check_reads_the_built_wheel(
    stray: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(tmp_path / "massgen_mcp-1-py3-none-any.whl", "w") as wheel:
        for name in [*list_files(), *filter(None, [stray])]:
            wheel.writestr(name, "")
    monkeypatch.setattr(check, "DIST", tmp_path)
    if stray is None:
        assert "not Python" in check.check_the_contents_of_the_wheel()
    else:
        with pytest.raises(check.Failed, match=r"inspect\.py\.orig isn't listed"):
            check.check_the_contents_of_the_wheel()
