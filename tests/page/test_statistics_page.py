"""The page of many runs, in a real browser, from the command that writes it."""

import os
from pathlib import Path
from typing import Any, Literal

import pytest

import massgen_mcp
from tests.api.blocks import restored_environment
from tests.browser import Browser
from tests.commands import run_command
from tests.harness import SERVER_MODULE, TempHome, poll_until
from tests.stats.played import HOSTILE, STRANGE, copied, played

__all__ = ["copied", "played"]


def page(home: TempHome, target: Path, *arguments: str) -> Path:
    done = run_command(home, SERVER_MODULE, "stats", "--html", str(target), *arguments)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, str(target), "")
    return target


@pytest.mark.parametrize(("scheme", "width"), [("light", 1200), ("dark", 390)])
async def test_every_figure_is_shown_with_what_it_stands_on_and_hostile_names_are_text(
    browser: Browser,
    copied: TempHome,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    scheme: Literal["light", "dark"],
    width: int,
) -> None:
    monkeypatch.chdir(tmp_path)
    with restored_environment():
        os.environ.update(copied.environ)
        await massgen_mcp.run("q", config_dict={"agents": STRANGE}, enable_logging=True)
    with browser.tab(page(copied, tmp_path / "stats.html"), width=width, scheme=scheme) as tab:
        text = tab.text()
        rows: list[Any] = tab.js(
            "[...document.querySelectorAll('.matrix tbody tr')].map(row => [...row.children].map(one => one.innerText))"
        )
        assert (tab.complaints(), tab.js("executed"), tab.network()) == ([], [], [])
        assert tab.violations_of_accessibility() == []
        assert tab.js("document.documentElement.scrollWidth") == width
        assert tab.js("document.querySelectorAll('img, iframe, form').length") == 0
        assert tab.js("document.querySelectorAll('svg:not([aria-hidden])').length") == 1, (
            "the others are in their tables"
        )
    assert "5 runs" in text
    assert "4 completed, 1 failed" in text
    assert "cost n/a" in text
    assert "A plus sign after a cost means that it excludes calls whose price is unknown (in " in text
    assert "No runs are marked yet" in text
    matrix = {row[0]: row[1:] for row in rows}
    names = list(matrix)
    assert matrix["alpha"][names.index("gamma")] == "1 of 2"
    assert matrix["gamma"][names.index("local")] == "never met"
    assert HOSTILE in text


def test_the_page_lies_in_the_state_directory_where_no_file_is_named_and_is_opened(copied: TempHome) -> None:
    opened, program = copied.path / "opened", copied.path / "browser"
    program.write_text(f'#!/bin/sh\nprintf %s "$1" > {opened}\n')
    program.chmod(0o700)
    done = run_command(copied.with_variables(BROWSER=str(program)), SERVER_MODULE, "stats", "--open", "--model", "none")
    target = copied.path / "stats.html"
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, str(target), "")
    poll_until(opened.exists)
    assert opened.read_text() == target.as_uri()
    refused = run_command(copied, SERVER_MODULE, "stats", "--html", "no/such/directory/x.html")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "--output" in refused.stderr
