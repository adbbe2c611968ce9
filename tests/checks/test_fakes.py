"""Tests and answers that would win by deceit or luck, each in the real sandbox: void, outvoted, or told as a limit."""

import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

from massgen_mcp.events.agent_work import ModelReplied
from massgen_mcp.events.coordination import AgentDropped, CheckFinished, StageOpened, WrittenTestsSubmitted
from massgen_mcp.events.run import RunCompleted
from massgen_mcp.runs.engine import Action, RunFiles
from massgen_mcp.runs.host.execute import RunContext, execute_run
from tests.checks.project import environ, write
from tests.checks.tosses import Tosses
from tests.checks.writers import (
    ADDS_TWO,
    DOUBLE,
    SQUARES,
    TELLING,
    Step,
    agent,
    decided,
    doubling,
    stages,
    test_of,
    tests,
    voids,
    winner,
)
from tests.needs import found, needs
from tests.teams import Act, Ended, upon

__all__ = ["doubling", "environ"]

pytestmark = pytest.mark.long

VOTE: Step = {"vote": "doubles"}
HONEST = tests(test_of(3, 6))
LOOKS_INSIDE: Step = {
    "title": "it adds",
    "script": "grep -q '+' double.sh && echo right || echo wrong",
    "expected": "right",
}


@dataclass(frozen=True)
class Fake:
    """What the one writes that `adds`, and what becomes of it."""

    hostile: Step
    void: tuple[str, ...] = ()
    """Why each of its tests counts for nobody; none: they count."""
    others: Step | None = None
    """What two of them write; None: nothing, so that all vote."""
    won: tuple[str, str] = ("doubles", "plurality")


FAKES = {
    "passes for everybody": Fake(tests(test_of(2, 4)), ("passes_for_all",)),
    "fails for everybody": Fake(tests(test_of(2, 5)), ("fails_for_all",)),
    "passes for its author alone": Fake(tests(test_of(3, 5)), ("passes_for_its_author_alone",)),
    "ends with an error": Fake(tests({**test_of(3, 6), "script": "sh double.sh 3; exit 4"}), ("fails_for_all",)),
    "never ends": Fake(tests({**test_of(3, 6), "script": "kill -STOP $$"}), ("fails_for_all",)),
    "prints without end": Fake(tests({**test_of(3, 6), "script": "yes"}), ("fails_for_all",)),
    "leaves something for its next run": Fake(
        tests(
            {
                "title": "it was here",
                "script": "cat /tmp/mark mark 2>/dev/null; touch mark /tmp/mark; echo x > mark",
                "expected": "x",
            }
        ),
        ("fails_for_all",),
    ),
    "looks into the source": Fake(tests(LOOKS_INSIDE), ("passes_for_its_author_alone",)),
    "many by one": Fake(tests(test_of(3, 9), test_of(4, 16), test_of(5, 25)), others=HONEST, won=("doubles", "tested")),
    "looks into the source for a friend": Fake(
        tests({**LOOKS_INSIDE, "script": "grep -q '2 ))' double.sh && echo wrong || echo right"}),
        others=HONEST,
        won=("doubles", "tested"),
    ),
}


@pytest.mark.parametrize("fake", FAKES.values(), ids=FAKES)
async def test_a_fake_counts_for_nobody_or_is_outvoted(
    tmp_path: Path, doubling: Path, environ: dict[str, str], fake: Fake
) -> None:
    writes = fake.others or tests()
    ended = await decided(
        tmp_path, doubling, environ,
        agent(ADDS_TWO, "adds", fake.hostile, VOTE), agent(SQUARES, "squares", writes, VOTE),
        agent(DOUBLE, "doubles", tests(), VOTE), agent("echo 4\n", "four", writes, VOTE),
        checks_timeout_seconds=5,
    )  # fmt: skip
    assert tuple(one for one in voids(ended) if one) == fake.void
    assert winner(ended) == fake.won
    assert [because for _, because, _ in stages(ended)] == ["differ", *(["tests_tell_nothing"] if fake.void else [])]


@pytest.fixture(params=["01", "0001"], ids=["at its second run", "once it would decide"])
def tosses(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Tosses]:
    made = Tosses(tmp_path / "tosses", {"adds": request.param, "other": "1"})
    yield made
    made.close()


async def test_a_test_that_comes_out_differently_on_the_same_files_counts_for_nobody(
    tmp_path: Path, doubling: Path, environ: dict[str, str], tosses: Tosses
) -> None:
    which = "$(grep -q + double.sh && echo adds || echo other)"
    script = f'grep -q "2 \\|+" double.sh || {{ echo no; exit; }}; read toss < "{tosses.place}/{which}"; echo $toss'
    flaky = tests({"title": "once so, once so", "script": script, "expected": "1"})
    ended = await decided(
        tmp_path, doubling, environ,
        agent(ADDS_TWO, "adds", tests(), VOTE), agent(SQUARES, "squares", flaky, VOTE),
        agent(DOUBLE, "doubles", tests(), VOTE), commands={"readable": [str(tosses.place)]},
    )  # fmt: skip
    assert voids(ended) == ["flaky"]
    assert winner(ended) == ("doubles", "plurality")


async def test_a_script_finds_nothing_around_the_files_that_tells_whose_they_are(
    tmp_path: Path, doubling: Path, environ: dict[str, str]
) -> None:
    """Path, host, user, variables, and names, modes and times of files are alike everywhere, however late it runs."""
    around = "pwd; hostname; id; env | sort; ls -A / ..; find . -printf '%p %m %u %g %T+\\n' | sort"
    looks = tests({"title": "who is it", "script": f"({around}) | sha256sum", "expected": "?"})
    ended = await decided(
        tmp_path, doubling, environ,
        agent("echo 1234567\n", "adds", looks, VOTE), agent(SQUARES, "squares", tests(), VOTE),
        agent(DOUBLE, "doubles", tests(), VOTE),
    )  # fmt: skip
    seen = [event.outcome.excerpt for event in ended.of(CheckFinished)]
    assert len(seen) == 8
    assert len(set(seen)) == 1, seen
    assert len(seen[0].split()[0]) == 64


@pytest.mark.parametrize("script", ["set -- 3; . ./double.sh", "sh double.sh 3 || true"])
async def test_an_answer_cannot_pass_by_ending_the_script_with_success(
    tmp_path: Path, doubling: Path, environ: dict[str, str], script: str
) -> None:
    """`exit 0` of a sourced file ends the shell that would print; `kill` of its parent likewise."""
    told = tests({"title": "the double of 3", "script": script, "expected": "6"})
    ends = "exit 0\n" if script.startswith("set") else "kill $PPID\nexit 0\n"
    ended = await decided(
        tmp_path, doubling, environ,
        agent(ends, "ends", told), agent(SQUARES, "squares", told), agent(DOUBLE, "doubles", tests()),
    )  # fmt: skip
    assert winner(ended) == ("doubles", "tested")


async def test_who_knows_the_tests_cannot_change_its_answer_any_more(
    tmp_path: Path, doubling: Path, environ: dict[str, str]
) -> None:
    knows = [write("double.sh", DOUBLE), {"answer": "doubles after all"}]
    changes = write("double.sh", "echo 6 # for the test\n")
    ended = await decided(
        tmp_path, doubling, environ,
        agent(ADDS_TWO, "adds", *knows, TELLING), agent(SQUARES, "squares", TELLING),
        agent(DOUBLE, "doubles", changes, tests(), changes, {"say": "doubles, in other words"}),
    )  # fmt: skip
    assert [because for _, because, _ in stages(ended)] == ["differ"]
    (end,) = ended.of(RunCompleted)
    assert end.outcome == "tested"
    (answer,) = ended.snapshot.coordination.seats["agent_c"].answers
    assert answer.changes is not None
    assert end.changes is not None
    assert end.changes.tree == answer.changes.tree  # its files are those that were tested


async def test_a_misunderstanding_that_most_share_wins_and_nothing_finds_it(
    tmp_path: Path, doubling: Path, environ: dict[str, str]
) -> None:
    """The limit of this way to decide; a vote of the same agents goes the same way."""
    misread = tests(test_of(3, 9))
    ended = await decided(
        tmp_path, doubling, environ,
        agent(SQUARES, "squares", misread), agent(f"# also\n{SQUARES}", "too", misread, {"vote": "squares"}),
        agent(DOUBLE, "doubles", HONEST),
    )  # fmt: skip
    assert winner(ended)[0] in ("squares", "too")


# -- trouble ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("control", ["finish_now", "cancel"])
async def test_tests_that_are_complete_decide_when_the_run_is_cut_short(
    tmp_path: Path, doubling: Path, environ: dict[str, str], control: Action
) -> None:
    run = count(1)
    ended = await decided(
        tmp_path, doubling, environ,
        agent(ADDS_TWO, "adds", HONEST), agent(SQUARES, "squares", {"hang": True}),
        agent(DOUBLE, "doubles", {"hang": True}), act=Act(CheckFinished, control, lambda _: next(run) == 8),
    )  # fmt: skip
    assert ended.snapshot.best_answer == "doubles"
    assert ended.snapshot.state == ("completed" if control == "finish_now" else "cancelled")
    assert len(ended.of(StageOpened)) == 1


async def test_tests_that_are_complete_decide_when_the_budget_is_reached_while_others_are_written(
    tmp_path: Path, doubling: Path, environ: dict[str, str]
) -> None:
    dear = {"say": "x" * 100_000, **upon(tmp_path / "play", "written_tests_submitted")}
    ended = await decided(
        tmp_path / "play", doubling, environ,
        agent(ADDS_TWO, "adds", HONEST), agent(SQUARES, "squares", dear), agent(DOUBLE, "doubles", dear),
        budget={"max_usd": 1.14}, price={"input_usd_per_million": 0, "output_usd_per_million": 20},
    )  # fmt: skip
    assert Counter(drop.reason for drop in ended.of(AgentDropped)) == {"budget": 2}
    assert [event.agent for event in ended.of(WrittenTestsSubmitted)] == ["agent_a"]
    assert winner(ended) == ("doubles", "tested")


@needs("bwrap")
async def test_agents_vote_when_the_sandbox_is_lost_before_tests_have_run(
    tmp_path: Path, doubling: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    lost = 'case "$*" in *"sh double.sh"*) echo "no namespace" >&2; exit 1;; esac'
    (programs / "bwrap").write_text(f'#!/bin/sh\n{lost}\nexec {found("bwrap")} "$@"\n')
    (programs / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=os.pathsep)
    ended = await decided(
        tmp_path, doubling, {"MASSGEN_MCP_HOME": str(tmp_path / "home")},
        agent(ADDS_TWO, "adds", HONEST, VOTE), agent(SQUARES, "squares", HONEST, VOTE),
        agent(DOUBLE, "doubles", HONEST, VOTE),
    )  # fmt: skip
    assert {event.outcome.result for event in ended.of(CheckFinished)} == {"not_run"}
    assert [because for _, because, _ in stages(ended)] == ["differ", "tests_tell_nothing"]
    assert winner(ended) == ("doubles", "plurality")


CUTS = ("stage_opened", "written_tests_submitted", "check_finished", "vote_cast", "winner_chosen")


def came_out(ended: Ended) -> list[tuple[str | None, str, str]]:
    """Of each run of a test: what it expected, and how it came out, as whoever reads of a failure wants to know."""
    return [(one.expected, one.result, one.how) for one in (event.outcome for event in ended.of(CheckFinished))]


async def test_a_run_that_is_killed_in_a_stage_goes_on_with_what_was_written_and_run(
    tmp_path: Path, doubling: Path, environ: dict[str, str]
) -> None:
    """At the first and at the last event of each kind."""
    either = tests(test_of(3, 6))
    whole = await decided(
        tmp_path, doubling, environ,
        agent(ADDS_TWO, "adds", either, VOTE), agent(DOUBLE, "doubles", either, VOTE),
        agent(f"# also\n{DOUBLE}", "also", tests(), VOTE),
    )  # fmt: skip
    assert [because for _, because, _ in stages(whole)] == ["differ", "tests_tied"], came_out(whole)
    kept, run = tmp_path / "kept", whole.directory.path
    shutil.copytree(run, kept, symlinks=True)
    lines = (run / "events.jsonl").read_bytes().splitlines(keepends=True)
    kinds = [json.loads(line.split(b"\t")[-1])["event"]["type"] for line in lines]
    firsts, lasts = [kinds.index(cut) for cut in CUTS], [len(kinds) - 1 - kinds[::-1].index(cut) for cut in CUTS]
    for cut in sorted({*firsts, *lasts}):
        shutil.rmtree(run)
        shutil.copytree(kept, run, symlinks=True)
        (run / "events.jsonl").write_bytes(b"".join(lines[: cut + 1]))
        directory = RunFiles(run)

        state = await execute_run(directory, "run-test", RunContext(environ))

        again = Ended(state, directory.event_log.read(), directory)
        assert winner(again) == winner(whole), (kinds[cut], came_out(again))
        assert stages(again) == stages(whole), (kinds[cut], came_out(again))
        assert len(again.of(WrittenTestsSubmitted)) == len(whole.of(WrittenTestsSubmitted)), kinds[cut]
        runs = Counter((event.tree, event.outcome.command, event.outcome.runs) for event in again.of(CheckFinished))
        assert set(runs.values()) == {1}, f"{kinds[cut]}: no run of a test is made again"
        assert max(Counter(event.call_id for event in again.of(ModelReplied)).values()) == 1, kinds[cut]
