"""What tools make is in no patch, also where no `.gitignore` says so; it is named, and the config can take it in."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from massgen_mcp.changes.apply import plan
from massgen_mcp.changes.base import Base, ContextDirectory
from massgen_mcp.changes.build_outputs import begins_like_output, is_output
from massgen_mcp.changes.choosing import Patch
from massgen_mcp.changes.run_changes import AnswerChanges, RunChanges
from tests.changes.conftest import Repository
from tests.changes.test_apply import changed_by_a_run, write
from tests.commands import run_command
from tests.harness import SERVER_MODULE, TempHome, call, home

__all__ = ["home"]

ELF = "\x7fELF\x02\x01\x01"
MADE = {
    **dict.fromkeys(
        ("calc/__pycache__/calc.cpython-312.pyc", "a.o", "lib/libx.a", "lib/libx.so.1.2", ".coverage"), "1"
    ),
    **dict.fromkeys(("CMakeCache.txt", "CMakeFiles/3.28/x.cmake", "cmake_install.cmake", "htmlcov/index.html"), "2"),
    **dict.fromkeys(("node_modules/x/index.js", ".pytest_cache/v/x", "x.egg-info/PKG-INFO", "coverage/lcov.info"), "3"),
    **dict.fromkeys(("out/CMakeCache.txt", "out/a.c", "target/CACHEDIR.TAG", "target/deep/er/x.rs"), "4"),
    **dict.fromkeys(("env/pyvenv.cfg", "env/bin/x.py", "build/lib/calc/a.py", ".DS_Store", "src/A.class"), "5"),
    "prog": ELF,
    "Makefile": "# CMAKE generated file: DO NOT EDIT!\nall:\n",
    "src/config.h": "/* from a template */\n",
}
"""By one kind of tool each; the last ones are known by what stands in them, or by a template beside them."""
WRITTEN = {
    **dict.fromkeys(
        ("src/coverage/report.py", "build/webpack.config.js", "targets/readme.md", "core.py", "out.o.md"), "1"
    ),
    **dict.fromkeys(("cache/lru.py", "dist/index.d.ts", "docs/Makefile", "requirements.txt", "lib/node/index.js"), "2"),
}


def begun(tmp_path: Path, place: Path, *kept: str) -> tuple[RunChanges, Base, Path]:
    changes, workspace = RunChanges(tmp_path / "changes"), tmp_path / "workspace"
    workspace.mkdir()
    base, refused = changes.begin([ContextDirectory("project", place, True, kept_outputs=kept)], [workspace])
    assert base is not None
    assert not refused
    return changes, base, workspace / "project"


def put(place: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)


def paths(outcome: AnswerChanges) -> set[str]:
    return {change.path.decode().removeprefix("project/") for change in outcome.files}


@pytest.mark.parametrize("tracked", [True, False])
def test_new_files_that_tools_make_are_left_out_and_named_and_what_is_written_is_taken(
    tmp_path: Path, repository: Repository, tracked: bool
) -> None:
    repository.commit(**{"src/config.h.in": "@X@\n", "requirements.in": "x\n", "calc/calc.py": "1\n"})
    if not tracked:
        shutil.rmtree(repository.path / ".git")
    changes, base, copy = begun(tmp_path, repository.path)
    put(copy, MADE | WRITTEN)
    outcome = changes.outcome(base, copy.parent)
    assert paths(outcome) == set(WRITTEN)
    (note,) = outcome.notes
    assert note.startswith("left out of project (build outputs and caches; set `keep_outputs` for the context path")
    assert ".DS_Store" in note


def test_what_is_tracked_or_kept_by_the_config_is_a_file_like_others(tmp_path: Path, repository: Repository) -> None:
    repository.commit(**{"a.o": "old", "vendor/__pycache__/x.pyc": "old", "prog": ELF})
    changes, base, copy = begun(tmp_path, repository.path, "*.so", "lib/made", "tool")
    put(copy, {"a.o": "new", "vendor/__pycache__/x.pyc": "new", "prog": f"{ELF}new", "vendor/__pycache__/y.pyc": "1"})
    put(copy, {"x.so": "1", "lib/made/b.o": "2", "lib/b.o": "3", "tool": ELF, "other": ELF})
    outcome = changes.outcome(base, copy.parent)
    assert paths(outcome) == {"a.o", "vendor/__pycache__/x.pyc", "prog", "x.so", "lib/made/b.o", "tool"}


def test_build_outputs_that_the_user_has_are_no_part_of_an_answer_and_stay_as_they_are(
    tmp_path: Path, repository: Repository
) -> None:
    repository.commit(**{"src/config.h.in": "@X@\n", "calc/calc.py": "1\n"})
    put(repository.path, MADE)
    before = repository.fingerprint()
    changes, base, copy = begun(tmp_path, repository.path)
    new = {path: text for path, text in MADE.items() if not path.startswith(("node_modules/", "env/"))}
    put(copy, new | {"Makefile": "# CMAKE generated file: DO NOT EDIT!\nother:\n", "calc/calc.py": "2\n"})
    shutil.rmtree(copy / "target")
    outcome = changes.outcome(base, copy.parent)
    assert paths(outcome) == {"calc/calc.py"}
    assert "build outputs and caches" in base.directories[0].notes[0]
    assert {"node_modules", "env"} <= set(base.directories[0].shared), "installed packages are found in their place"
    assert not {"CMakeFiles", "out", "target"} & set(base.directories[0].shared)
    found, _ = plan(changes.repository, Patch(base.directories, base.id, outcome.tree))
    assert [change.path for change in found.changes] == [b"project/calc/calc.py"]
    assert not found.refused
    assert repository.fingerprint() == before


@pytest.mark.parametrize(
    "path",
    [
        "src/core.c",
        "core/x",
        "target/main.rs",
        "build/x",
        "obj/model.obj",
        "a.out.md",
        "coverage.py",
        "lib/x.c",
        "bin/x",
    ],
)
def test_a_like_name_is_none(path: str) -> None:
    assert not is_output(path.encode(), directory=False)
    assert not is_output(path.encode(), directory=True)


@pytest.mark.parametrize(
    ("content", "made"),
    [
        (b"\x7fELF\x02", True),
        (b"\xcf\xfa\xed\xfe\x07", True),
        (b"!<arch>\n/ ", True),
        (b"MZ\x90" + bytes(125) + b"PE\0\0", True),
        (b"\0asm\1", True),
        (b"# Makefile.in generated by automake 1.16 from Makefile.am.\n", True),
        (b"/* config.h.  Generated from config.h.in by configure.  */\n", True),
        (b"MZ is how it begins\n", False),
        (b"# how a CMAKE generated file looks\n", False),
        (b"", False),
        ("PE\0\0 ä".encode(), False),
    ],
)
def test_compiled_and_generated_files_are_known_by_how_they_begin(content: bytes, made: bool) -> None:
    assert begins_like_output(content) is made


async def test_a_run_names_what_it_left_out_and_applies_the_rest(home: TempHome, repository: Repository) -> None:
    repository.commit(code="1\n")
    steps = [write(f"project/{path}", "x\n") for path in ("a.o", "__pycache__/m.pyc", "code")]
    async with home.client() as client:
        run_id = await changed_by_a_run(client, home, repository, *steps)
        files: dict[str, Any] = (await call(client, "get_result", run_id=run_id))["files"]
    assert [one["path"] for one in files["listed"]] == ["project/code"]
    assert "__pycache__, a.o" in files["notes"][0]
    applied = run_command(home, SERVER_MODULE, "apply", run_id, "--json")
    assert [one["path"] for one in json.loads(applied.stdout)["files"]] == ["project/code"]
    assert repository.git("status", "--short") == " M code\n"
