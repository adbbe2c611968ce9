"""The list of runs, and two of them side by side, in a real browser."""

from typing import Any

from massgen_mcp.home import find_home
from massgen_mcp.runs.engine import NewRun, new_run_id
from massgen_mcp.runs.store.opening import local_engine
from tests.browser import Browser, Tab
from tests.harness import TempHome, agent
from tests.needs import needs
from tests.web.pages import pages
from tests.web.person import arrived, fine, press, rows

pytestmark = needs("chromium")

MANY = 500
PRICED = {"price": {"input_usd_per_million": 2, "output_usd_per_million": 10}}

SPLIT = ("Rewrite", "Rewrite", "Leave", "Sell", "Ask")


def team(home: TempHome, name: str, *votes: str) -> str:
    """A config of as many agents, who vote so."""
    answers = ("Rewrite it.", "Mend it.", "Leave it.", "Sell it.", "Ask him.")
    names = ("ada", "bo", "cleo", "dan", "eve")
    agents = [
        agent(who, {"answer": answer}, {"vote": vote}, **PRICED)
        for who, answer, vote in zip(names, answers, votes, strict=False)
    ]
    return home.config(name, *agents)


def row(tab: Tab, question: str) -> list[str]:
    """The figures in the line of a run, as they are read out, and the tone of its outcome."""
    found: Any = tab.js(
        f"""(() => {{
          const lines = [...document.querySelectorAll('.runs li')];
          const line = lines.find(one => one.querySelector('a').innerText === '{question}');
          const pill = line.querySelector('.pill');
          return [...[...line.querySelectorAll('.out, .n')].map(one => one.textContent), pill.className];
        }})()"""
    )
    return [str(one) for one in found]


def test_the_list_tells_what_a_run_cost_how_long_it_took_who_was_against_it_what_was_applied_and_all_together(
    browser: Browser, home: TempHome
) -> None:
    (home.work / "project").mkdir()
    (home.work / "project" / "code").write_text("one\n")
    write = {"call": "write_file", "arguments": {"path": "project/code", "content": "two\n"}}
    changing = home.config("changing", agent("solo", write, {"answer": "Done."}, **PRICED))
    paths = [{"path": str(home.work / "project"), "permission": "write"}]
    with pages(home) as served, browser.tab(served.address) as tab:
        served.tool("start_run", question="Agreed", config=team(home, "one", *["Mend"] * 3), wait_seconds=50)
        served.tool("start_run", question="Split", config=team(home, "two", *SPLIT), wait_seconds=50)
        done = served.tool("start_run", question="Change", config=changing, context_paths=paths, wait_seconds=50)
        served.tool("apply_result", run_id=done["run_id"], dry_run=False)
        tab.open(f"{served.base}/")
        rows(tab, "Change", "Split", "Agreed")
        fine(tab)
        agreed, split, change = row(tab, "Agreed"), row(tab, "Split"), row(tab, "Change")
        assert agreed[0] == "✓ all 3 agree"
        assert agreed[1] == ""
        assert agreed[2].startswith("Cost: $0.0")
        assert agreed[3].startswith("Time: ")
        assert agreed[4] == "pill good"
        assert (split[0], split[1], split[4]) == (
            "! 2 of 5 agree; no majority; cleo, dan and eve disagree: It answers the question best",
            "Against: 3 of 5",
            "pill busy",
        )
        assert change[4] == "pill good"
        assert "applied " in tab.js("document.querySelector('.runs .what .good').innerText")
        tab.js("[...document.querySelectorAll('nav a')].find(one => one.innerText === 'Statistics').click()")
        arrived(tab, "location.pathname === '/statistics'")
        tab.settled("document.querySelector('h1') !== null")
        assert tab.js("document.querySelector('h1').innerText") == "3 runs"
        fine(tab)


def test_runs_are_gone_through_by_the_arrow_keys_opened_by_enter_and_two_of_them_compared(
    browser: Browser, home: TempHome
) -> None:
    with pages(home) as served, browser.tab(served.address) as tab:
        one = served.tool("start_run", question="Which way?", config=team(home, "one", *["Mend"] * 3), wait_seconds=50)
        two = team(home, "two", "Rewrite", "Rewrite", "Leave")
        other = served.tool("start_run", question="Which way now?", config=two, wait_seconds=50)
        tab.open(f"{served.base}/")
        rows(tab, "Which way now?", "Which way?")
        tab.js("document.querySelector('.runs input').focus()")
        tab.press(" ", 32, text=" ")
        tab.settled("document.querySelector('.both').innerText.startsWith('Choose a second run')")
        tab.js("document.querySelector('.runs a').focus()")
        tab.press("ArrowDown", 40)
        assert tab.js("document.activeElement.innerText") == "Which way?"
        tab.js("document.activeElement.closest('li').querySelector('input').click()")
        tab.js("document.querySelector('.both a').focus()")
        fine(tab)
        tab.press("Enter", 13, text="\r")
        arrived(tab, "location.pathname === '/compare'")
        tab.settled("document.querySelector('.against') !== null")
        fine(tab)
        cells: Any = tab.js(
            "[...document.querySelectorAll('.against tbody tr')]"
            ".map(row => [...row.children].map(one => one.innerText))"
        )
        told = {name: both for name, *both in cells}
        assert told["Question"] == ["Which way now?", "Which way?"]
        assert "cleo → cleo (dissent)" in told["Votes"][0]
        assert "dissent" not in told["Votes"][1]
        assert "ada won 2 of 3 votes" in told["In figures"][0]
        assert tab.js("document.querySelector('.diff del').innerText") == "Rewrite"
        assert tab.js("document.querySelector('.diff ins').innerText") == "Mend"
        tab.js("document.querySelectorAll('.against a')[1].focus()")
        tab.press("Enter", 13, text="\r")
        arrived(tab, f"location.pathname === '/runs/{one['run_id']}'")
        tab.open(f"{served.base}/compare?run={other['run_id']}&run=run-x")
        tab.settled("document.querySelector('.told.bad') !== null")
        assert tab.violations_of_accessibility() == []


def test_the_list_is_sorted_by_a_column_with_the_mouse_and_by_keys_also_after_it_is_opened_again(
    browser: Browser, home: TempHome
) -> None:
    with pages(home) as served, browser.tab(served.address) as tab:
        for question, votes in (("Cheap", ["Rewrite"]), ("Split", [*SPLIT]), ("Agreed", ["Mend"] * 3)):
            served.tool("start_run", question=question, config=team(home, question, *votes), wait_seconds=50)
        tab.open(f"{served.base}/")
        rows(tab, "Agreed", "Split", "Cheap")
        press(tab, "Cost")
        rows(tab, "Split", "Agreed", "Cheap")
        fine(tab)
        tab.press("Enter", 13, text="\r")
        rows(tab, "Cheap", "Agreed", "Split")
        tab.press("Tab", 9)
        tab.press("Tab", 9)
        assert tab.js("document.activeElement.innerText") == "Started"
        assert tab.js("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        tab.press("Enter", 13, text="\r")
        tab.press("Enter", 13, text="\r")
        rows(tab, "Cheap", "Split", "Agreed")
        press(tab, "Against")
        tab.settled("document.querySelector('.runs a').innerText === 'Split'")
        tab.open(tab.js("location.href"))
        tab.settled("document.querySelector('.runs a')?.innerText === 'Split'")
        press(tab, "Time")
        tab.settled("document.querySelector('.heads [aria-pressed=true]').textContent === 'Time ▾, highest first'")
        taken: Any = tab.js(
            "[...document.querySelectorAll('.runs li')].map(one => parseFloat(one.children[5].lastChild.data))"
        )
        assert taken == sorted(taken, reverse=True)
        fine(tab)


def test_with_five_hundred_runs_a_page_shows_few_and_nothing_is_drawn_again_that_is_as_it_was(
    browser: Browser, home: TempHome
) -> None:
    place = find_home(home.environ)
    place.ensure()
    store = local_engine(place).store
    ids = [new_run_id() for _ in range(MANY)]
    for number, run_id in enumerate(ids):
        store.queue.add(NewRun(run_id, f"Question {number}", "team", "f", "h"))
        store.controls.request(run_id, "cancel")
    store.database.close()
    listed = "document.querySelectorAll('.runs li').length"
    more = "document.querySelector('.runs ~ button')"
    with pages(home) as served, browser.tab(served.address) as tab:
        tab.settled(f"{listed} > 0")
        assert tab.js(listed) == 30
        fine(tab)
        while not tab.js(f"{more}.hidden"):
            before = tab.js(listed)
            tab.js(f"{more}.click()")
            tab.settled(f"{listed} > {before} && !{more}.disabled")
        assert tab.js(listed) == MANY
        tab.open(f"{served.base}/?sort=-Started")
        first = "document.querySelector('.runs a').innerText"  # of all runs, not of those of one page
        tab.settled(f"{listed} === {MANY} && {first} === 'Question 0'")
        tab.js("document.querySelector('.heads [aria-pressed=true]').click()")
        tab.settled(f"{first} === 'Question {MANY - 1}'")
        tab.js(
            "window.drawn = 0;"
            "new MutationObserver(changes => drawn += changes.length)"
            ".observe(document.querySelector('.runs'), {childList: true, subtree: true, characterData: true});"
            "window.asked = performance.getEntriesByType('resource').length"
        )
        tab.settled("performance.getEntriesByType('resource').length > asked")
        tab.drawn()
        assert tab.js("drawn") == 0
        new = served.tool("start_run", question="New", config=team(home, "one", *["Mend"] * 3), wait_seconds=50)
        tab.settled(f"document.querySelector('.runs input').value === '{new['run_id']}'")
        tab.settled("document.querySelector('.runs .pill.good') !== null")
        assert tab.js(listed) == MANY + 1
        assert tab.js("drawn") < MANY // 10, "only what is new"
