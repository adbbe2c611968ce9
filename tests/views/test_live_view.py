"""The live view as a pure function: what it shows of a run at every moment, in every size of window."""

import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, get_args

import pytest

from massgen_mcp.config.loader import config_from_data
from massgen_mcp.errors import DropReason, FailureReason
from massgen_mcp.events.agent_work import RuleViolated, TextDelta
from massgen_mcp.events.coordination import AnswerSubmitted
from massgen_mcp.events.parts import Spent
from massgen_mcp.events.record import LogRecord
from massgen_mcp.run_state.state import RunState
from massgen_mcp.views.activity import Activities, story
from massgen_mcp.views.difference import answers_to_compare, difference_lines
from massgen_mcp.views.ending import REMEDIES, RemainingFiles, ending_lines, outcome_line
from massgen_mcp.views.event_lines import event_line
from massgen_mcp.views.live_view import Controls, Screen, live_view
from massgen_mcp.views.spent import clock, cost_of, count
from massgen_mcp.views.styled import Line, Span, as_written, clip, fit, line, text_of, width_of, wrap
from massgen_mcp.views.votes_text import votes_lines
from tests.harness import without_escapes
from tests.teams import Ended, Script, run_team, team, upon

EVIL = "\x1b[31mred\x1b]0;title\x07\x9b1m\u202e\r\n wide: 漢字 🤖 e\u0301"
SIZES = [(10, 5), (24, 8), (40, 12), (79, 20), (80, 24), (120, 40), (300, 100)]


def changed_mind(path: Path) -> tuple[Script, ...]:
    """Of a run below `path`: agent_a's vote is void when agent_b improves its answer; agent_c falls out."""
    return (
        [{"answer": "one"}, {"vote": "own"}, {"vote": "two, improved"}],
        [{"answer": "two"}, {"answer": "two, improved", **upon(path, "vote_cast")}, {"vote": "own"}],
        [{"fail": "auth"}],
    )


def moments(ended: Ended) -> Iterator[tuple[RunState, Activities, LogRecord]]:
    run, doing = RunState(), Activities()
    for record in ended.records:
        run.apply(record)
        doing.apply(record)
        yield run, doing, record


def text(lines: list[Line]) -> str:
    return "\n".join(map(text_of, lines))


async def test_the_frame_never_outgrows_the_window_and_holds_no_escapes(tmp_path: Path) -> None:
    evil: tuple[Script, ...] = ([{"say": EVIL}, {"answer": EVIL}, {"vote": "own", "reason": EVIL}], [{"answer": "x"}])
    for scripts in (evil, changed_mind(tmp_path / "3")):
        for run, doing, record in moments(await run_team(tmp_path / str(len(scripts)), team(*scripts))):
            for (width, height), typed in product(SIZES, (None, EVIL)):
                controls = Controls(typed=typed, followed=typed and "agent_a")
                lines = live_view(run, doing, Screen(width, height), now=record.time, controls=controls)
                assert len(lines) < height
                assert max(width_of(text_of(shown)) for shown in lines) <= width
                assert without_escapes("".join(map(text_of, lines)))
            if told := event_line(record, run):
                assert without_escapes(text_of(told))


async def test_the_phases_and_states_follow_each_other(tmp_path: Path) -> None:
    seen = list[str]()
    for run, doing, record in moments(await run_team(tmp_path, team(*changed_mind(tmp_path)))):
        seen.append(text(live_view(run, doing, Screen(120, 30), now=record.time)))
    phases = ["Initial Answer Generation", "Coordination Round 2", "Final Presentation"]
    first = [next(at for at, shown in enumerate(seen) if phase in shown) for phase in phases]
    assert first == sorted(first)
    everything = "\n".join(seen)
    for state in ("Generating…", "Complete ✓", "Failed ✗", "Voting…", "Voted ✓", "Restarting ↻", "Presenting…"):
        assert state in everything, state
    assert "Converged ✓" in seen[-1]
    assert "Winner ★" in seen[-1]
    ada, bo = (next(row for row in seen[-1].splitlines() if f"{n} agent{n} " in row) for n in (1, 2))
    assert "Self" in bo
    assert "Self" not in ada


async def test_the_story_is_told_in_plain_words(tmp_path: Path) -> None:
    told = list[str]()
    ended = await run_team(tmp_path, team(*changed_mind(tmp_path)))
    for run, doing, _ in moments(ended):
        sentence = re.sub(r"agent[12] is still writing", "one is still writing", story(run, doing))
        told += [sentence] if told[-1:] != [sentence] else []
    lost = "; agent3 failed (auth)."
    wanted = [
        "3 agents are writing their first answers.",
        f"1 of 2 have answered; one is still writing{lost}",
        f"All have answered; now they read each other's answers and vote{lost}",
        f"1 of 2 have voted; agent2 is still deciding{lost}",
        f"All have answered; now they read each other's answers and vote again, because there is a new answer{lost}",
        f"All have voted{lost}",
        f"agent2 won with 2 of 2 votes and writes the final answer{lost}",
        "The run is completed.",
    ]
    assert [sentence for sentence in wanted if sentence not in told] == [], told
    at = [told.index(sentence) for sentence in wanted]
    assert at == sorted(at)
    assert " · both agree · " in text_of(outcome_line(ended.snapshot)), "it counts as the story does"


async def test_a_row_has_the_end_of_what_is_written_tokens_cost_and_the_seconds_to_the_first_token(
    tmp_path: Path,
) -> None:
    writer: dict[str, Any] = {"type": "scripted", "chunk_delay_seconds": 0.001}
    answer = "# The same head\n\nThe **same** beginning, and then it goes on for a while.\n\n- but the `end` is {}"
    agents = [
        {"backend": {**writer, "script": [{"answer": answer.format(word)}, {"vote": "own"}]}}
        for word in ("red", "blue")
    ]
    ended = await run_team(tmp_path, config_from_data({"agents": agents}, "test", environ={}))
    writing, answered = False, list[str]()
    for run, doing, record in moments(ended):
        rows = text(live_view(run, doing, Screen(120, 30), now=record.time)).splitlines()
        if isinstance(record.event, TextDelta) and not run.answers and (words := doing.of("agent_a").writing.strip()):
            row = next(row for row in rows if "│ 1 agent1" in row)
            writing = True
            assert "**" not in row
            assert "#" not in row
            assert " ".join(words.split())[-3:].strip("*`#-") in row
        if isinstance(record.event, AnswerSubmitted):
            answered += [row for row in rows if "Complete ✓" in row]
    assert writing, "no words were seen before the answer was there"
    assert [row for row in answered if "• but the end is red" in row]
    assert [row for row in answered if "• but the end is blue" in row]
    assert [row for row in answered if re.search(r"\d+\.\d s +\d+", row)]


async def test_there_is_room_for_words_in_a_narrow_window(tmp_path: Path) -> None:
    *_, (run, doing, _) = moments(await run_team(tmp_path, team(*changed_mind(tmp_path))))
    assert "It answers" in text(live_view(run, doing, Screen(40, 30), now=0))


async def test_the_words_of_a_followed_agent_are_shown_at_length(tmp_path: Path) -> None:
    ended = await run_team(tmp_path, team([{"answer": "one\ntwo\nthree"}, {"vote": "own"}], [{"answer": "x"}]))
    *_, (run, doing, record) = moments(ended)
    rows = text(live_view(run, doing, Screen(80, 24), now=record.time, controls=Controls(followed="agent_a")))
    assert re.search(r"── agent1 ─+ │\n│ one +│\n│ two +│\n│ three +│\n└─ ", rows), rows


async def test_the_votes_are_told_in_sentences_with_dissent_first(tmp_path: Path) -> None:
    scripts: tuple[Script, ...] = (
        [{"answer": "one"}, {"vote": "two", "reason": "It is **right**."}],
        [{"answer": "two"}, {"vote": "own"}],
        [{"answer": "three"}, {"vote": "own", "reason": "It is mine."}],
    )
    run = (await run_team(tmp_path, team(*scripts))).snapshot
    told = [text_of(shown) for shown in votes_lines(run, 100)]
    assert told[0] == "≠ agent3 disagrees and votes for its own 1st answer: It is mine."
    assert "✓ agent1 votes for agent2's 1st answer: It is right." in told[1:]
    ending = text(ending_lines(run, RemainingFiles(tmp_path, tmp_path / "answer.txt", listed=True), 100))
    for part in (
        "Cost   ",
        f"Answer {tmp_path / 'answer.txt'}",
        f"Files  {tmp_path}",
        "Next   `massgen result run-",
    ):
        assert part in ending


async def test_who_stays_with_a_vote_in_a_run_off_is_named_once(tmp_path: Path) -> None:
    scripts: tuple[Script, ...] = (
        [{"answer": "one"}, {"vote": "own"}, {"vote": "two"}],
        [{"answer": "two"}, {"vote": "own"}, {"vote": "own", "reason": "Mine."}],
    )
    run = (await run_team(tmp_path, team(*scripts))).snapshot
    assert " · both agree · " in text_of(outcome_line(run))
    told = [text_of(shown) for shown in votes_lines(run, 100)]
    assert sorted(one.partition(":")[0] for one in told) == [
        "• Run-off",
        "≠ agent1 disagrees and votes for its own 1st answer",
        "✓ agent1 votes for agent2's 1st answer in the run-off",
        "✓ agent2 votes for its own 1st answer, as before the run-off",
    ]


async def test_the_difference_between_two_answers_is_told_line_by_line(tmp_path: Path) -> None:
    run = (await run_team(tmp_path, team([{"answer": "same\nold"}], [{"answer": "same\nnew"}]))).snapshot
    compared = answers_to_compare(run, "agent_a", "agent_b")
    assert compared is not None
    told = text(difference_lines(run, *compared, 80)).splitlines()
    assert told[0] == "Difference: agent1's 1st answer → agent2's 1st answer"
    assert told[-3:] == [" same", "-old", "+new"]
    assert answers_to_compare(run, "agent_a", "agent_a") is None, "it has answered only once"


@pytest.mark.parametrize("reason", [*get_args(DropReason), *get_args(FailureReason)])
def test_every_reason_of_a_failure_says_which_setting_or_command_changes_it(reason: Any) -> None:
    assert re.search(r"`[a-z-]+|--model\b|--num-agents|key", REMEDIES[reason]), REMEDIES[reason]
    assert "resume" not in REMEDIES[reason], "what has failed has ended"


async def test_what_is_being_written_is_shown_and_void_text_is_not(tmp_path: Path) -> None:
    script: Script = [{"fail": "broken_stream"}, {"answer": "one"}]
    ended = await run_team(tmp_path, team(script, [{"answer": "two"}]))
    shown = [text(live_view(run, doing, Screen(200, 30), now=0)) for run, doing, _ in moments(ended)]
    retried = next(at for at, record in enumerate(ended.records) if record.event.type == "model_call_retried")
    assert "next attempt in" in shown[retried]
    assert "breaks off" not in "".join(shown[retried:])
    deltas = [record for record in ended.records if isinstance(record.event, TextDelta)]
    assert all(event_line(record, ended.snapshot) is None for record in deltas)


async def test_only_violations_that_count_are_told_to_who_follows_a_run(tmp_path: Path) -> None:
    voter: Script = [
        {"say": "hm"},
        {"answer": "one"},
        {"vote": "two", **upon(tmp_path, "answer_submitted", 3)},
        {"vote": "improved"},
    ]
    reviser: Script = [{"answer": "two"}, {"answer": "two, improved"}, {"vote": "own"}]
    ended = await run_team(tmp_path, team(voter, reviser))
    assert {(event.code, event.counts) for event in ended.of(RuleViolated)} >= {
        ("no_action", True),
        ("stale_ballot", False),
    }
    told = [text_of(shown) for run, _, record in moments(ended) if (shown := event_line(record, run))]
    assert any("! action rejected (no_action)" in shown for shown in told)
    assert not any("stale_ballot" in shown for shown in told)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ([{"answer": "one"}], "★ "),
        ([{"fail": "auth"}], "✗ Failed (auth)"),
    ],
    ids=["completed", "failed"],
)
async def test_the_outcome_is_told_in_one_line(tmp_path: Path, script: Script, said: str) -> None:
    ended = await run_team(tmp_path, team(script))
    assert text_of(outcome_line(ended.snapshot)).startswith(said)


ANSWER = "# Head\n\n- an item that is **long** and goes on and `on`\n\n```py\nx = 1  # as long as it is, it stays\n```"


def test_without_colours_an_answer_is_broken_at_words_and_stays_as_it_was_written() -> None:
    shown = [text_of(one) for one in as_written(ANSWER, 24)]
    assert shown[2:5] == ["- an item that is", "  **long** and goes on", "  and `on`"]
    assert "x = 1  # as long as it is, it stays" in shown
    assert "".join("".join(shown).split()) == "".join(ANSWER.split())


def test_text_is_measured_in_columns() -> None:
    assert width_of("漢字e\u0301") == 5
    assert clip("漢字漢字", 5) == "漢字…"
    assert width_of(fit("漢字", 9)) == 9
    assert wrap("漢字漢字漢字", 4) == ["漢字"] * 3
    assert wrap("", 10) == [""]
    assert text_of(line("a\x1b[1mb\n", Span("\u202ec", "bad"))) == "a [1mb  c"


def test_figures_are_short() -> None:
    assert [clock(seconds) for seconds in (0, 75, 3723)] == ["00:00", "01:15", "1:02:03"]
    assert [cost_of(Spent(calls=2, usd=usd, unpriced_calls=n)) for usd, n in ((0.0412, 0), (0.5, 1), (0.0, 2))] == [
        "$0.0412",
        "$0.5000+",
        "cost n/a",
    ]
    assert [count(n) for n in (850, 3_140, 37_200, 1_240_000)] == ["850", "3.1k", "37k", "1.2M"]
