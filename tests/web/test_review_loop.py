"""What a person does in a browser with the files that a team changed, before anything of it is in his directory."""

import json
from pathlib import Path

from tests.browser import Browser, Tab
from tests.changes.test_apply import CODE, write
from tests.harness import TempHome, agent, events_of
from tests.web.pages import Pages, pages
from tests.web.person import arrived, fine, press, told

FIRST = CODE.replace("line 2\n", "line two\n")
BOTH = FIRST.replace("line 18\n", "line eighteen\n")
LOOK = "Show the changed files"


def project(home: TempHome) -> Path:
    directory = home.work / "project"
    directory.mkdir()
    (directory / "code").write_text(CODE)
    return directory


def changed(home: TempHome, served: Pages, directory: Path) -> str:
    """The id of a run that bo won with two hunks of one file; ada was dropped after it made another file."""
    steps = write("project/new", "a\nb\n"), write("project/code", FIRST)
    config = home.config(
        "two",
        agent("ada", *steps, model="m-1"),
        agent("bo", write("project/code", BOTH), {"answer": "done"}, model="m-1"),
        orchestrator={"max_steps_per_round": 2},
    )
    paths = [{"path": str(directory), "permission": "write"}]
    return served.tool("start_run", question="Count", team=config, context_paths=paths, wait_seconds=50)["run_id"]


def boxes(tab: Tab, *names: str) -> None:
    """Wait until these files and hunks can be chosen, and no others."""
    values = "[...document.querySelectorAll('.one input[type=checkbox]')].map(one => one.value)"
    tab.settled(f"JSON.stringify({values}) === {json.dumps(json.dumps(names, separators=(',', ':')))}")


def choose(tab: Tab, whose: str) -> None:
    pick = "one.value = " + json.dumps(whose) + "; one.dispatchEvent(new Event('change'))"
    tab.js(f"(one => {{ {pick} }})(document.querySelector('.one select'))")


def test_any_agents_patch_is_looked_at_and_applied_whole_by_file_or_by_hunk(browser: Browser, home: TempHome) -> None:
    directory = project(home)
    with pages(home) as served, browser.tab(served.address) as tab:
        tab.open(f"{served.base}/runs/{changed(home, served, directory)}")
        press(tab, LOOK)
        boxes(tab, "project/code", "project/code#1", "project/code#2")
        fine(tab)
        tab.js("document.querySelector('[value=\"project/code#1\"]').click()")
        assert tab.js("document.querySelector('[value=\"project/code\"]').indeterminate")
        press(tab, "Apply to your files")
        told(tab, "applied")
        assert (directory / "code").read_text() == CODE.replace("line 18\n", "line eighteen\n")

        press(tab, LOOK)
        boxes(tab, "project/code", "project/code#1", "project/code#2")
        choose(tab, "ada")
        boxes(tab, "project/code", "project/new")
        assert "ada, dropped: 2 files changed" in tab.text()
        tab.js("document.querySelector('[value=\"project/code\"]').click()")
        press(tab, "Apply to your files")
        told(tab, "applied")
        assert (directory / "new").read_text() == "a\nb\n"
        assert "line two" not in (directory / "code").read_text(), "it was not chosen"


def test_a_change_of_an_agents_patch_is_asked_for_with_comments_on_its_lines(browser: Browser, home: TempHome) -> None:
    directory = project(home)
    with pages(home) as served, browser.tab(served.address) as tab:
        first = changed(home, served, directory)
        for whose, commented, line in (("", "project/code:17", "line 17"), ("ada", "project/new:2", "b")):
            tab.open(f"{served.base}/runs/{first}")
            press(tab, LOOK)
            boxes(tab, "project/code", "project/code#1", "project/code#2")
            if whose:
                choose(tab, whose)
                boxes(tab, "project/code", "project/new")
            found = f".find(one => one.innerText.endsWith({json.dumps(line)}))"
            tab.js(
                f"[...document.querySelectorAll('.diff .now')]{found}.click(); document.activeElement.value += 'why?'"
            )
            asked = f"{commented}: why?"
            assert tab.js("document.activeElement.value") == asked
            press(tab, "Request changes")
            arrived(tab, f"location.pathname.startsWith('/runs/') && !location.pathname.endsWith({json.dumps(first)})")
            second = str(tab.js("location.pathname")).rpartition("/")[2]
            served.tool("wait_run", run_id=second)
            events = events_of(home.run_directory(second))
            (taken,) = (one for one in events if one["type"] == "base_taken")
            begun = {"run_id": first, "agent": whose or "bo", "files": 2 if whose else 1}
            assert taken["begins_with"] == begun, "also where a later turn of the conversation changed files"
            assert events[0]["question"] == asked
    assert (directory / "code").read_text() == CODE
