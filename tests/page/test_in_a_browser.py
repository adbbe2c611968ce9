"""The page of a run as a person meets it: in a real browser, from the file that a run leaves behind."""

import json
import re
from collections.abc import Awaitable, Callable
from importlib.resources import files
from pathlib import Path
from typing import Literal

import anyio
import pytest

from massgen_mcp.events.agent_work import RoundStarted
from massgen_mcp.events.coordination import AnswerSubmitted, VoteCast
from massgen_mcp.page.document import DRAWING
from massgen_mcp.runs.view.reporting import page_of
from massgen_mcp.views.names import name_answer
from tests.browser import Browser, Tab
from tests.harness import TempHome, agent, call, poll_until
from tests.needs import needs
from tests.page import samples
from tests.page.samples import PRICES, checked, disagreeing, failing, hostile, reported
from tests.teams import Act, Ended

Sample = Callable[[Path], Awaitable[Ended]]

pytestmark = [needs("chromium"), pytest.mark.long]


def drawing() -> str:
    """The script that draws pages, for a tab without one."""
    folder = files("massgen_mcp.page") / "template"
    return "\n".join((folder / name).read_text("utf-8") for name in DRAWING)


def sentence(tab: Tab) -> str:
    return str(tab.js("document.querySelector('.say').innerText"))


async def test_the_page_tells_the_answer_the_votes_the_dissent_and_the_cost(browser: Browser, tmp_path: Path) -> None:
    ended = await disagreeing(tmp_path)
    with browser.tab(ended.directory.report) as tab:
        assert tab.js("document.title") == f"{samples.QUESTION} · massgen"
        assert tab.js("document.querySelector('h2').innerText.toLowerCase()") == "final answer"
        assert tab.js("document.querySelector('section strong').innerText") == "Neither"
        text = tab.text()
    assert "bo won 2 of 3 votes" in text
    assert "Dissent: cleo for cleo's 1st answer" in text
    for answer in ended.of(AnswerSubmitted):
        assert name_answer(ended.snapshot, answer.label) in text
    for vote in ended.of(VoteCast):
        assert vote.reason in text
    assert "ada\n" in text
    assert f"{ended.snapshot.spent.usd:.4f}"[:6] in text


async def test_an_arrow_leads_to_the_very_answer_of_the_vote_and_is_dashed_when_that_became_void(
    browser: Browser, tmp_path: Path
) -> None:
    ended = await disagreeing(tmp_path)
    with browser.tab(ended.directory.report) as tab:
        circles = tab.js(
            "Object.fromEntries([...document.querySelectorAll('g.go')].map(one => "
            "[one.querySelector('title').textContent, +one.querySelector('circle').getAttribute('cx')]))"
        )
        arrows = tab.js(
            "[...document.querySelectorAll('path.arrow')].map(one => "
            "[+one.dataset.at, +one.getAttribute('d').split(/[ ,]/).at(-2), one.classList.contains('void')])"
        )
    began = ended.records[0].time
    expected = sorted(
        [
            round(record.time - began, 3),
            circles[name_answer(ended.snapshot, record.event.label)],
            record.event.label == "agent1.1",
        ]
        for record in ended.records
        if isinstance(record.event, VoteCast)
    )
    assert sorted(arrows) == expected
    assert [void for *_, void in arrows].count(True) == 1


async def test_who_changed_its_mind_is_named_with_both_answers(browser: Browser, tmp_path: Path) -> None:
    ended = await disagreeing(tmp_path)
    with browser.tab(ended.directory.report) as tab:
        told = tab.text()
        legend = str(tab.js("document.querySelector('.legend').innerText"))
    assert "Changed their minds: ada from ada's 1st answer to bo's 2nd answer" in told
    assert told.count("changed its mind") == 1, "nobody else did"
    assert "vote voided by a newer answer" in legend
    assert "tool or command" not in legend, "there was none"


async def test_every_moment_can_be_reached_by_keyboard_and_is_a_sentence(browser: Browser, tmp_path: Path) -> None:
    ended = await disagreeing(tmp_path)
    with browser.tab(ended.directory.report) as tab:
        last = int(tab.js("document.querySelector('input').max"))
        tab.press("Tab", 9)
        assert tab.js("document.activeElement.innerText") == "Replay"
        tab.press("Tab", 9)
        tab.press("Home", 36)
        assert "the run starts with" in sentence(tab)
        assert tab.js("document.querySelectorAll('.future').length") > 10
        told = [sentence(tab)]
        for _ in range(last):
            tab.press("ArrowRight", 39)
            assert tab.js("document.activeElement.getAttribute('aria-valuetext')")
            told.append(sentence(tab))
        assert any("ada votes for ada's 1st answer: Mine." in one for one in told)
        assert any("bo 2nd answer; voids the votes of ada" in one for one in told)
        assert any("bo wins with bo's 2nd answer" in one for one in told)
        assert tab.js("document.querySelectorAll('.future').length") == 0
        tab.press("ArrowLeft", 37)
        assert "completed with bo's answer" in sentence(tab)


async def test_replay_is_started_by_a_key_plays_to_the_end_and_stops(browser: Browser, tmp_path: Path) -> None:
    ended = await disagreeing(tmp_path)
    with browser.tab(ended.directory.report) as tab:
        tab.js(
            "say = document.querySelector('.say'); seen = new Set(); "
            "new MutationObserver(() => seen.add(say.innerText)).observe(say, {childList: true})"
        )
        tab.press("Tab", 9)
        tab.press("Enter", 13, text="\r")
        assert tab.js("document.activeElement.innerText") == "Pause"
        tab.pass_time(30)
        assert tab.js("document.activeElement.innerText") == "Replay"
        assert tab.js("seen.size") >= int(tab.js("document.querySelector('input').max"))


async def test_two_answers_are_compared_word_by_word(browser: Browser, tmp_path: Path) -> None:
    ended = await disagreeing(tmp_path)
    with browser.tab(ended.directory.report) as tab:
        tab.open_all()
        for place, key in enumerate(("agent2.1", "agent2.2")):
            choice = f"document.querySelectorAll('select')[{place}]"
            tab.js(f"{choice}.value = '{key}'; {choice}.dispatchEvent(new Event('change'))")
        words = "(tag) => [...document.querySelectorAll(`.compare + div ${tag}`)].map(one => one.innerText).join(' ')"
        assert (tab.js(f"({words})('del')"), tab.js(f"({words})('ins')")) == ("nine", "six - with tests")
        assert "What changed against bo's 1st answer" in tab.text()


async def test_what_each_agent_was_shown_is_told_ballot_by_ballot(browser: Browser, tmp_path: Path) -> None:
    ended = await disagreeing(tmp_path)
    with browser.tab(ended.directory.report) as tab:
        text = tab.text()
    shown = text[text.lower().index("what each agent saw") :]
    assert "Round 1: the question, no answers" in shown
    (ballot, *_) = [sent.ballot for sent in ended.of(RoundStarted, "agent_c") if sent.ballot]
    for entry in ballot:
        number = entry.label.rpartition(".")[2]
        assert re.search(rf"{entry.name} was \w+'s {number}\w\w answer", shown)


async def test_a_word_of_the_caller_is_told_apart_and_marked(browser: Browser, tmp_path: Path) -> None:
    waits = {"answer": "two", "delay_seconds": 60}
    act = Act(AnswerSubmitted, "finish_now")
    ended = await reported(tmp_path, samples.agent("ada", {"answer": "one"}), samples.agent("bo", waits), act=act)
    with browser.tab(ended.directory.report) as tab:
        assert (
            tab.js(
                "[...document.querySelectorAll('.line svg text')].filter(one => one.textContent.startsWith('▾')).length"
            )
            == 1
        )
        text = tab.text()
    assert re.search(r"steering\s+[\d.]+\ss you asked to finish with the existing answers", text, re.IGNORECASE)


async def test_a_run_on_code_shows_patches_checks_and_how_the_files_of_two_answers_differ(
    browser: Browser, tmp_path: Path
) -> None:
    ended = await checked(tmp_path, notes="told\n</script><script>alert(1)</script>\n")
    with browser.tab(ended.directory.report, width=390) as tab:
        tab.js(
            "document.querySelector('.compare').closest('details').open = true;"
            "const [from, to] = document.querySelectorAll('.compare select');"
            "[from.value, to.value] = ['agent1.1', 'agent2.1']; to.dispatchEvent(new Event('change'))"
        )
        compared = str(tab.js("document.querySelector('.compare').nextSibling.innerText"))
        text = tab.text()
        lanes = tab.js(
            "[...document.querySelectorAll('.line rect.pass, .line rect.bad')].map(one => [one.getAttribute('class'), "
            "one.textContent.split(':')[0], +one.getAttribute('y')])"
        )
        added = tab.js("[...document.querySelectorAll('.hunks ins')].map(one => one.textContent)")
        folded = tab.js("[...document.querySelectorAll('section summary')].map(one => one.innerText)")
        assert (tab.complaints(), tab.js("executed"), tab.violations_of_accessibility()) == ([], [], [])
        assert tab.js("document.documentElement.scrollWidth") == 390
    # What each answer changed, and what of that the run keeps.
    assert "modified project/prices +1 " in text
    assert {"told", "price_7 = 8"} <= set(added)
    assert "</script><script>alert(1)</script>" in text
    assert any("ada's 1st answer" in one and "✗ 2 of 2 checks failed" in one for one in folded)
    assert any("bo's 1st answer ★" in one and "2 files changed" in one and "✓ 2 checks passed" in one for one in folded)
    # Two answers, file by file: what both left as it was is not told.
    assert "project/check.sh\n\nChanged only by the first." in compared
    assert re.search(r"price_7 = \W*9\W*8", compared)
    assert "price_28" in compared
    assert "price_12" not in compared
    # Every check, on the unchanged files, of each answer, and of the final ones.
    told = text[text.index("an answer can't win if another answer passes the same checks and more") :]
    assert "ada's 1st answer couldn't win" in told
    assert "✗ failed sh check.sh · exit code 3" in told
    assert "with its own versions of protected files: ✓ passed" in told
    assert "looked at the prices\nFAILED: price_20 is wrong" in told
    assert "also failed before" in told
    # A pass stands beside that of the unchanged files: bo took a price out, and so a test.
    before = PRICES.count("price_")
    beside = f"· {before - 1} tests, according to the check; {before} on the unchanged files"
    warning = f"Warning: fewer tests ran than on the unchanged files: {before - 1} instead of {before}"
    looked = "looked at the prices\nRan {} tests in 0.1s"
    shown = [looked.format(before - 1), beside, warning, "On the unchanged files:", looked.format(before)]
    assert "\n".join(shown) in re.sub("\n+", "\n", told)
    assert "Final files, by bo" in told
    assert sorted({kind for kind, *_ in lanes}) == ["bad", "pass"]
    assert [what for _, what, _ in lanes].count("Unchanged files") == 2
    assert len({place for *_, place in lanes}) == 3, "the base, ada's and bo's"
    shared = page_of(ended.directory, ended.snapshot, None, {}, redacted=True).model_dump_json()
    for name in ("project", "prices", "price_20", "check.sh", "grep", "told", "script"):
        assert name not in shared
    assert "checks of the files of ada's 1st answer: check 1: failed, check 2: failed" in shared


INVISIBLE = (
    *range(0x80, 0xA0),
    *(0xAD, 0x61C, 0x115F, 0x180E, *range(0x200B, 0x2010), *range(0x2028, 0x202F), *range(0x2060, 0x2070)),
    *(0x2800, 0x3164, 0xFE0F, 0xFEFF, 0xFFA0, 0xFFF9, 0x1D173, 0xE0001, *range(0xE0020, 0xE0080), 0xE0100),
)
VISIBLE = "👩🏽‍💻 ⚠️ 1️⃣ می‌خواهم क्‍ष"
"""What joins emoji, and letters of scripts that are written joined."""


async def test_nothing_invisible_is_in_what_one_takes_over(browser: Browser, tmp_path: Path) -> None:
    hidden = "".join(f"a{chr(code)}b\n" for code in INVISIBLE) + f"{VISIBLE}\n"
    ended = await checked(tmp_path, notes=f"told\n{hidden}")
    with browser.tab(ended.directory.report) as tab:
        tab.open_all()
        added = tab.js("[...document.querySelectorAll('.hunks ins')].map(one => one.textContent)")
        page = str(tab.js("document.body.textContent.replace(document.getElementById('data').textContent, '')"))
    assert VISIBLE in added
    assert {f"a⟨U+{code:04X}⟩b" for code in INVISIBLE} <= set(added)
    assert not [hex(code) for code in INVISIBLE if f"a{chr(code)}b" in page]


async def test_a_patch_says_in_words_what_its_lines_do_not_show(browser: Browser, tmp_path: Path) -> None:
    async def git(*arguments: str) -> str:
        user = ("-c", "user.name=t", "-c", "user.email=t@example.com")
        return (await anyio.run_process(["git", *user, *arguments], cwd=project)).stdout.decode()

    project = tmp_path / "project"
    project.mkdir()
    for name in ("gone", "was", "later.sh", "once.sh", "kind", "run.sh", "data"):
        (project / name).write_text(f"{name}\n" * 9)
    for name in ("once.sh", "run.sh", "gone"):
        (project / name).chmod(0o755)
    (project / "to").symlink_to("was")
    await git("init", "-q")
    await git("add", ".")
    await git("commit", "-qm", "base")
    (project / "gone").unlink()
    (project / "was").rename(project / "is")
    (project / "is").chmod(0o755)
    (project / "later.sh").chmod(0o755)
    (project / "once.sh").chmod(0o644)
    (project / "kind").unlink()
    (project / "kind").symlink_to("/etc/passwd")
    (project / "run.sh").write_text("rm -r /\n")
    (project / "data").write_bytes(b"\0\1\2")
    (project / "data").chmod(0o755)
    (project / "to").unlink()
    (project / "to").symlink_to("is")
    (project / "new.sh").write_text("true\n")
    (project / "new.sh").chmod(0o755)
    (project / "plain").write_text("")
    await git("add", "-A")
    changed = await git("diff", "--cached", "--binary", "--full-index", "-M")
    plain = changed.replace("new file mode 100755", "new file mode 100644")
    with browser.blank() as tab:
        tab.js(drawing())
        drawn = "append(...{}.flat(Infinity).filter(Boolean))"
        tab.js(f"void document.body.{drawn.format(f'patch({json.dumps(changed)})')}")
        told = tab.js("[...document.querySelectorAll('body > h3')].map(one => one.textContent)")
        compared = f"filesCompared({json.dumps(plain)}, {json.dumps(changed)})"
        apart = tab.js(f"void (two = document.createElement('div')); two.{drawn.format(compared)}; two.textContent")
    assert told == [
        "data, now executable, binary",
        "gone, deleted, executable",
        "was → is, renamed, now executable",
        "kind, deleted",
        "kind, new, a symbolic link",
        "later.sh, now executable",
        "new.sh, new, executable",
        "once.sh, no longer executable",
        "plain, new",
        "run.sh, executable",
        "to, a symbolic link",
    ]
    assert "Changed by both, differently: new.sh, new and new.sh, new, executable" in apart


async def test_a_patch_that_is_open_is_the_one_of_the_answer_above_it(browser: Browser, tmp_path: Path) -> None:
    ended = await disagreeing(tmp_path)
    with browser.blank() as tab:
        tab.js(drawing())
        tab.js(
            f"run = {page_of(ended.directory, ended.snapshot, None, {}).model_dump_json()};"
            "into = document.body.appendChild(document.createElement('div'));"
            "patchOf = name => ({text: `diff --git a/${name} b/${name}\\n@@ -0,0 +1 @@\\n+`"
            " + name.repeat(20000), left_out: 0});"
            "best = name => draw({...run, patches: {one: patchOf('one'), two: patchOf('two')},"
            " changes: {say: '', files: [{path: name, change: 'added', added: 1, removed: 0, was: null}], more: 0,"
            " notes: [], patch: name}}, into); best('one')"
        )
        for name in ("one", "two"):
            tab.js(f"best('{name}')")
            tab.drawn()
            tab.open_all()
            assert tab.js("[...into.querySelectorAll('.hunks ins')].map(one => one.textContent.slice(0, 3))") == [name]


async def test_a_failed_run_tells_why_and_what_happened_to_whom(browser: Browser, tmp_path: Path) -> None:
    ended = await failing(tmp_path)
    with browser.tab(ended.directory.report) as tab:
        assert tab.js("document.querySelector('.pill').innerText") == "✗ failed"
        assert tab.js("document.querySelector('h2').innerText.toLowerCase()") == "why it ended"
        assert tab.js("document.querySelectorAll('text.r').length") == 3
        text = tab.text()
    assert "There is no answer." in text
    assert text.count("dropped (auth): scripted failure: auth") >= 3


async def test_an_unknown_price_is_never_drawn_as_nothing(browser: Browser, tmp_path: Path) -> None:
    unknown = samples.agent("ada", {"answer": "one"}, price=None)
    ended = await reported(tmp_path, unknown, samples.agent("bo", {"answer": "two"}, **samples.price(3)))
    alone = await reported(tmp_path / "alone", unknown)
    with browser.tab(ended.directory.report) as tab:
        text = tab.text()
        assert re.search(r"ada\s+cost n/a", text)
        assert re.search(r"\$0\.0\d+\+", text)
        assert "no known price" in text
    with browser.tab(alone.directory.report) as tab:
        assert "$" not in tab.text()


@pytest.mark.parametrize("sample", [disagreeing, failing, hostile])
async def test_nothing_is_executed_asked_for_or_complained_about(
    browser: Browser, tmp_path: Path, sample: Sample
) -> None:
    ended = await sample(tmp_path)
    with browser.tab(ended.directory.report) as tab:
        tab.open_all()
        for text in ("javascript", "data"):
            assert tab.js(f"document.querySelectorAll('[href^=\"{text}:\"]').length") == 0
        assert tab.js("document.querySelectorAll('iframe, img, base, object, embed, link, form').length") == 0
        assert tab.js("[...document.scripts].length") == 2
        for width in (1200, 390):
            tab.resize(width, 900)
            tab.drawn()
            assert tab.js("document.documentElement.scrollWidth") <= width
        assert (tab.complaints(), tab.js("executed"), tab.network()) == ([], [], [])


async def test_what_wants_to_be_markup_is_shown_as_it_was_written(browser: Browser, tmp_path: Path) -> None:
    ended = await hostile(tmp_path)
    with browser.tab(ended.directory.report) as tab:
        text = tab.text()
    for line in ("<script>alert(1)</script>", "<img src=x onerror=alert(2)>", "[press me](javascript:alert(4))"):
        assert line in text
    assert "abc⟨U+202E⟩gnp.exe" in text
    assert "␛[31mred" in text
    assert "\u202e" not in text


@pytest.mark.parametrize(("scheme", "width"), [("light", 1200), ("dark", 390)])
@pytest.mark.parametrize("sample", [disagreeing, failing])
async def test_axe_finds_nothing_closed_or_open(
    browser: Browser, tmp_path: Path, sample: Sample, scheme: Literal["light", "dark"], width: int
) -> None:
    ended = await sample(tmp_path)
    with browser.tab(ended.directory.report, width=width, scheme=scheme) as tab:
        assert tab.violations_of_accessibility() == []
        tab.open_all()
        assert tab.violations_of_accessibility() == []


async def test_the_lanes_of_a_nested_run_open_and_close(browser: Browser, home: TempHome) -> None:
    inner = {"call": "delegate", "arguments": {"question": "Is it so?"}}
    wait = {"call": "get_status", "arguments": {"wait_seconds": 40}}
    config = home.config("outer", agent("solo", inner, wait, {"answer": "They say: so."}), nested={"max_depth": 1})
    async with home.client() as client:
        run_id = (await call(client, "start_run", question="q", config=config))["run_id"]
        assert (await call(client, "wait_run", run_id=run_id))["status"] == "completed"
        result = await call(client, "get_result", run_id=run_id)
    file = Path(result["paths"]["report"])
    poll_until(file.exists)
    with browser.tab(file) as tab:
        lanes = "document.querySelectorAll('.line svg text.t').length"
        assert tab.js(lanes) == 1
        for opened, count in ((True, 2), (False, 1)):
            tab.js("document.querySelector('.nested button').focus()")
            tab.press("Enter", 13, text="\r")
            assert tab.js("document.activeElement.getAttribute('aria-expanded')") == str(opened).lower()
            assert tab.js(lanes) == count


async def test_a_printed_page_has_everything_open(browser: Browser, tmp_path: Path) -> None:
    ended = await disagreeing(tmp_path)
    with browser.tab(ended.directory.report) as tab:
        closed = "document.querySelectorAll('details:not([open])').length"
        tab.js(f"addEventListener('beforeprint', () => window.closed_ones = {closed})")
        tab.call("Page.printToPDF")
        assert tab.js("closed_ones") == 0
        assert tab.js("document.querySelectorAll('details[open]').length") == 0


async def test_a_report_shows_everything_where_there_is_no_network(tmp_path: Path) -> None:
    ended = await disagreeing(tmp_path)
    cut_off = ("unshare", "--map-root-user", "--net")
    routes = await anyio.run_process([*cut_off, "cat", "/proc/net/route"])
    assert len(routes.stdout.splitlines()) <= 1, "there is at most the head of the table"
    with Browser.start(*cut_off) as alone, alone.tab(ended.directory.report) as tab:
        text = tab.text()
        assert "Neither: replace it piece by piece." in text
        assert "Dissent: cleo for cleo's 1st answer" in text
        assert tab.js("document.querySelectorAll('g.go').length") == len(ended.of(AnswerSubmitted))
        assert tab.complaints() == []
