"""No login in a person's directories of tools reaches a command, and what tools need of their settings does."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from massgen_mcp.sandbox import tool_files, tool_settings
from massgen_mcp.sandbox.tool_files import ToolFiles, find_logins
from tests.commands import ROOT
from tests.needs import needs
from tests.sandbox.logins import ROWS

CORE = '[core]\n\tbare = true\n[remote "o"]\n'


def found_in(place: Path) -> ToolFiles:
    """Without what lies elsewhere on this machine."""
    found = find_logins([place])
    return ToolFiles(
        [path for path in found.hidden if path.is_relative_to(place)],
        {path: text for path, text in found.texts.items() if path.is_relative_to(place)},
    )


@pytest.fixture
def home() -> Iterator[Path]:
    """Not below /tmp, which commands have for themselves."""
    with TemporaryDirectory(dir="/var/tmp") as place:
        yield Path(place)


@needs("bwrap")
def test_of_all_places_where_logins_are_kept_a_command_reads_none(home: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.sandbox.logins"],
        env={**os.environ, "HOME": str(home)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert len(ROWS) > 220
    assert json.loads(done.stdout) == []


@pytest.mark.parametrize(
    ("name", "text", "shown"),
    [
        ("gradle.properties", "org.gradle.parallel=true\ngpr.key=ghp_x\n", "org.gradle.parallel=true\n"),
        ("gradle.properties", "org.gradle.jvmargs=-Xmx2g -Dpw=x\n", "org.gradle.jvmargs=-Xmx2g\n"),
        ("gradle.properties", "org.gradle.parallel=true \\\ngpr.key=x", ""),
        ("npmrc", "prefix=/opt\n//r/:_authToken=x\nregistry=https://u:p@h\n", "prefix=/opt\n"),
        ("pip.conf", "[global]\nno-index = true\nindex-url = https://u:p@h\n", "[global]\nno-index = true\n"),
        (".cargo/config.toml", '[http]\nproxy = "u:p@h"\n[net]\noffline = true\n', '"net"."offline" = true\n'),
        (".cargo/config.toml", '[build]\nrustflags = ["-C", "debuginfo=0"]\n', None),
        (".cargo/config.toml", "not = = toml", ""),
        ("mise/config.toml", '[tools]\nnode = "20"\n[env]\nX = "y"\n', '"tools"."node" = "20"\n'),
        ("x.git/config", '[core]\n\tbare = true\n[remote "o"]\n\turl = https://u:p@h\n', CORE),
        ("conf/settings.xml", "<settings><password>x</password></settings>", "<settings/>\n"),
        ("init.d/corp.gradle", "password 'x'", ""),
    ],
)  # fmt: skip
def test_settings_are_shown_by_the_keys_that_a_build_needs(home: Path, name: str, text: str, shown: str | None) -> None:
    file = home / "tool" / name
    file.parent.mkdir(parents=True)
    file.write_text(text)
    found = found_in(home / "tool")
    assert found.texts == ({} if shown is None else {file: shown})
    assert found.hidden == []


def test_a_named_file_is_shown_although_its_name_is_that_of_a_secret(home: Path) -> None:
    for name in (".env", "notes.key"):
        (home / name).write_text("x")
    assert found_in(home / ".env").hidden == []
    assert sorted(found_in(home).hidden) == [home / ".env", home / "notes.key"]


CONSOLE_SCRIPT = b"""#!/opt/x/bin/python
import sys
from ruff.cli import main
if __name__ == '__main__':
    sys.argv[0] = sys.argv[0].removesuffix('.exe')
    sys.exit(main())
"""
SHIM = b"""#!/usr/bin/env bash
set -e
[ -n "$PYENV_DEBUG" ] && set -x

program="${0##*/}"

export PYENV_ROOT="/home/ada/.pyenv"
exec "/home/ada/.pyenv/libexec/pyenv" exec "$program" "$@"
"""


@pytest.mark.parametrize(
    ("text", "made_by_a_tool"),
    [
        (b"\x7fELF\0\0", True),
        (CONSOLE_SCRIPT, True),
        (SHIM, True),
        (CONSOLE_SCRIPT + b"KEY = '123'\n", False),
        (SHIM + b"export KEY=123\n", False),
        (b"#!/bin/sh\ncurl -H 'X-Key: 123' https://h\n", False),
        (b"#!/usr/bin/env python3\nKEY = '123'\n", False),
        (b"a note\n", False),
    ],
)
def test_programs_that_tools_made_are_told_from_scripts_of_people(text: bytes, made_by_a_tool: bool) -> None:
    assert tool_settings.is_program(text) is made_by_a_tool


def test_a_login_that_appears_later_is_found(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("massgen_mcp.sandbox.tool_files.FRESH_SECONDS", 0)
    (home / "tool/etc").mkdir(parents=True)
    (home / "tool/etc/npmrc").write_text("prefix=/opt\n")
    assert found_in(home / "tool").texts == {}
    (home / "tool/etc/npmrc").write_text("prefix=/opt\n_authToken=x\n")
    (home / "tool/.env").write_text("x")
    found = found_in(home / "tool")
    assert (found.hidden, found.texts) == ([home / "tool/.env"], {home / "tool/etc/npmrc": "prefix=/opt\n"})


def test_parts_of_a_directory_that_is_too_large_to_be_looked_through_are_hidden(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("massgen_mcp.sandbox.tool_files.MAX_ENTRIES", 10)
    for number in range(4):
        (home / f"tool/{number}/below").mkdir(parents=True)
        for name in range(6):
            (home / f"tool/{number}/below/{name}.key").write_text("x")
    hidden = found_in(home / "tool").hidden
    keys = [*(home / "tool").rglob("*.key")]
    assert len(keys) == 24
    assert all(any(key.is_relative_to(one) for one in hidden) for key in keys)


@pytest.fixture
def next_process(home: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Forget what is known, but for the file in which looks are kept."""
    monkeypatch.setattr("massgen_mcp.sandbox.tool_files._SETTLED_SECONDS", -10)

    def begin() -> None:
        monkeypatch.setattr("massgen_mcp.sandbox.tool_files._looks", {})
        store = tool_files.LookStore()
        store.path = home / "tool-files.json"
        monkeypatch.setattr("massgen_mcp.sandbox.tool_files.STORE", store)

    return begin


def test_a_look_is_kept_for_the_next_process_until_something_changes(
    home: Path, next_process: Callable[[], None]
) -> None:
    tool, kept = home / "tool", home / "tool-files.json"
    (tool / "etc").mkdir(parents=True)
    (tool / "etc/npmrc").write_text("prefix=/opt\n_authToken=x\n")
    next_process()
    assert found_in(tool).texts == {tool / "etc/npmrc": "prefix=/opt\n"}
    assert kept.stat().st_mode & 0o777 == 0o600
    kept.write_text(kept.read_text().replace("prefix=/opt", "prefix=/was-read-from-the-file"))
    next_process()
    assert found_in(tool).texts == {tool / "etc/npmrc": "prefix=/was-read-from-the-file\n"}
    times = (tool / "etc").stat()
    (tool / "etc/.env").write_text("x")
    os.utime(tool / "etc", ns=(times.st_atime_ns, times.st_mtime_ns))
    next_process()
    assert found_in(tool) == ToolFiles([tool / "etc/.env"], {tool / "etc/npmrc": "prefix=/opt\n"})


@pytest.mark.parametrize("kept", ["", "[]", "{}", '{"rules": "others", "looks": {"PLACE": {}}}', '{"rules": 1'])
def test_a_file_of_looks_that_is_of_other_rules_or_broken_does_not_count(
    home: Path, next_process: Callable[[], None], kept: str
) -> None:
    tool = home / "tool"
    tool.mkdir()
    (tool / ".env").write_text("x")
    (home / "tool-files.json").write_text(kept.replace("PLACE", str(tool)))
    next_process()
    assert found_in(tool).hidden == [tool / ".env"]


def test_a_look_at_what_has_just_changed_is_not_kept(
    home: Path, next_process: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("massgen_mcp.sandbox.tool_files._SETTLED_SECONDS", 3600)
    (home / "tool").mkdir()
    next_process()
    found_in(home / "tool")
    assert str(home / "tool") not in json.loads((home / "tool-files.json").read_text())["looks"]
