"""What a run looks like at every moment, folded from its own journal."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from massgen_mcp.events.coordination import AnswerSubmitted, VoteCast, WinnerChosen
from massgen_mcp.events.run import RunCompleted
from massgen_mcp.run_state.state import RunState
from massgen_mcp.views.coordination_record import (
    agent_mapping,
    answers,
    coordination_events,
    coordination_table,
    vote_results,
)
from massgen_mcp.views.status_json import status_json
from tests.teams import Ended, Script, run_team, team, upon


def changed_mind(path: Path) -> tuple[Script, ...]:
    """agent_a votes for itself first; agent_b's improvement voids that, and agent_a then votes for agent_b."""
    return (
        [{"answer": "one"}, {"vote": "own"}, {"vote": "two, improved"}],
        [{"answer": "two"}, {"answer": "two, improved", **upon(path, "vote_cast")}, {"vote": "own"}],
    )


def moments(ended: Ended) -> Iterator[tuple[RunState, dict[str, Any]]]:
    """The snapshot after each event, and the status document then."""
    run = RunState()
    for record in ended.records:
        run.apply(record)
        yield run, status_json(run, log_dir="/log", session_id="s", now=record.time)


async def test_superseded_votes_are_counted_nowhere(tmp_path: Path) -> None:
    ended = await run_team(tmp_path, team(*changed_mind(tmp_path)))
    assert len(ended.of(VoteCast)) == 3
    results = vote_results(ended.snapshot)
    assert results["total_votes"] == 2
    assert results["vote_counts"] == {"agent_a": 0, "agent_b": 2}
    assert not results["is_tie"]
    final = json.loads((ended.directory.path / "status.json").read_text())
    assert final["results"]["votes"] == {"agent1.1": 0, "agent2.2": 2}


async def test_vote_cast_shows_the_standing_vote_and_none_while_it_is_void(tmp_path: Path) -> None:
    ended = await run_team(tmp_path, team(*changed_mind(tmp_path)))
    shown = [status["agents"]["agent_a"]["vote_cast"] for _, status in moments(ended) if "agent_a" in status["agents"]]
    labels = [vote and vote["voted_for_label"] for vote in shown]
    assert "agent1.1" in labels
    assert None in labels[labels.index("agent1.1") :]
    assert labels[-1] == "agent2.2"


async def test_nothing_says_completed_and_names_a_winner_before_the_final_answer_exists(tmp_path: Path) -> None:
    ended = await run_team(tmp_path, team(*changed_mind(tmp_path)))
    for run, status in moments(ended):
        over = isinstance(run.end, RunCompleted)
        assert (run.state == "completed") == over
        assert (status["results"]["winner"] is not None) == over
        assert (status["results"]["final_answer_preview"] is not None) == over


async def test_a_hundred_percent_means_that_the_run_has_ended(tmp_path: Path) -> None:
    ended = await run_team(tmp_path, team(*changed_mind(tmp_path)))
    shown = [(run.end is not None, status["coordination"]["completion_percentage"]) for run, status in moments(ended)]
    assert all((percent == 100) == is_over for is_over, percent in shown)
    assert max(percent for is_over, percent in shown if not is_over) > 50


async def test_the_status_document_has_exactly_the_keys_of_the_contract(tmp_path: Path) -> None:
    ended = await run_team(tmp_path, team(*changed_mind(tmp_path)))
    status = json.loads((ended.directory.path / "status.json").read_text())
    assert set(status) == {"meta", "coordination", "agents", "results", "telemetry"}
    assert set(status["meta"]) == {
        *("last_updated", "session_id", "log_dir", "question", "start_time", "elapsed_seconds")
    }
    assert set(status["coordination"]) == {*("phase", "active_agent", "completion_percentage", "is_final_presentation")}
    assert set(status["agents"]["agent_a"]) == {
        *("status", "answer_count", "latest_answer_label", "vote_cast", "times_restarted", "last_activity", "error")
    }
    assert set(status["agents"]["agent_a"]["vote_cast"]) == {"voted_for_agent", "voted_for_label", "reason_preview"}
    assert set(status["results"]) == {"votes", "winner", "final_answer_preview", "outcome", "weak", "failure"}
    assert set(status["telemetry"]) == {"total_calls", "by_model", "by_agent"}


async def test_the_active_agent_is_the_one_that_works_alone(tmp_path: Path) -> None:
    ended = await run_team(tmp_path, team(*changed_mind(tmp_path)))
    seen: set[tuple[int, str | None]] = set()
    for _, status in moments(ended):
        busy = [name for name, agent in status["agents"].items() if agent["status"] == "streaming"]
        active = status["coordination"]["active_agent"]
        assert active == (busy[0] if len(busy) == 1 else None)
        seen.add((len(busy), active))
    assert {(0, None), (1, "agent_b"), (2, None)} <= seen


async def test_phases_follow_each_other_under_the_names_of_the_contract(tmp_path: Path) -> None:
    ended = await run_team(tmp_path, team(*changed_mind(tmp_path)))
    phases = [status["coordination"]["phase"] for _, status in moments(ended)]
    assert list(dict.fromkeys(phases)) == ["initial_answer", "enforcement", "presentation"]


async def test_an_agent_that_fell_out_is_shown_with_its_reason(tmp_path: Path) -> None:
    ended = await run_team(tmp_path, team([{"fail": "auth"}], [{"answer": "42"}]))
    shown = json.loads((ended.directory.path / "status.json").read_text())["agents"]["agent_a"]
    assert shown["status"] == "error"
    assert shown["error"]["reason"] == "auth"


async def test_times_restarted_counts_the_rounds_that_changed_answers_caused(tmp_path: Path) -> None:
    ended = await run_team(tmp_path, team(*changed_mind(tmp_path)))
    assert ended.snapshot.agents["agent_a"].restarts == 2


async def test_calls_and_tokens_add_up_over_agents_and_models(tmp_path: Path) -> None:
    run = (await run_team(tmp_path, team(*changed_mind(tmp_path)))).snapshot
    assert run.spent.calls == 7
    for parts in (run.budget.spending.by_agent, run.budget.spending.by_model):
        assert sum(part.calls for part in parts.values()) == run.spent.calls
        assert sum(part.input_tokens for part in parts.values()) == run.spent.input_tokens
        assert sum(part.output_tokens for part in parts.values()) == run.spent.output_tokens


async def test_the_vote_results_have_the_shape_of_the_programmatic_api(tmp_path: Path) -> None:
    split = team(
        [{"answer": "x"}, {"vote": "own", "reason": "mine"}], [{"answer": "y"}, {"vote": "own", "reason": "mine too"}]
    )
    ended = await run_team(tmp_path, split)
    assert vote_results(ended.snapshot) == {
        "vote_counts": {"agent_a": 1, "agent_b": 1},
        "voter_details": {
            "agent_a": [{"voter": "agent_a", "reason": "mine"}],
            "agent_b": [{"voter": "agent_b", "reason": "mine too"}],
        },
        "winner": "agent_a",
        "is_tie": True,
        "total_votes": 2,
        "agents_with_answers": 2,
        "agents_voted": 2,
    }
    assert agent_mapping(ended.snapshot) == {"agent_a": "agent1", "agent_b": "agent2"}
    first = answers(ended.snapshot, ended.directory.path)[0]
    assert (first["label"], first["agent_id"], first["content"]) == ("agent1.1", "agent_a", "x")
    assert (Path(first["answer_path"]) / "answer.txt").read_text() == "x"


async def test_the_coordination_table_fits_a_hundred_columns_whatever_is_said(tmp_path: Path) -> None:
    wild = "\x1b[31mred " + "long " * 60 + "x" * 300
    ended = await run_team(tmp_path, team([{"answer": wild}, {"vote": "own", "reason": wild}], []))
    table = (ended.directory.path / "coordination_table.txt").read_text()
    assert max(len(line) for line in table.splitlines()) <= 100
    assert "\x1b" not in table
    assert "wins with agent1.1" in table or "wins with agent2.1" in table
    assert table == coordination_table(ended.snapshot, ended.records)


async def test_the_coordination_events_tell_every_answer_and_vote_with_its_facts(tmp_path: Path) -> None:
    ended = await run_team(tmp_path, team(*changed_mind(tmp_path)))
    document = json.loads((ended.directory.path / "coordination_events.json").read_text())
    assert document == coordination_events(ended.snapshot, ended.records)
    assert document["session_metadata"]["final_winner"] == "agent_b"
    assert document["vote_results"] == vote_results(ended.snapshot)
    assert [answer["label"] for answer in document["answers"]] == ["agent1.1", "agent2.1", "agent2.2"]
    kinds = [event["event_type"] for event in document["events"]]
    assert kinds.count("new_answer") == len(ended.of(AnswerSubmitted))
    assert kinds.count("vote_cast") == 3
    assert kinds.index("final_agent_selected") < kinds.index("final_answer") < kinds.index("session_end")
    votes = [event["context"]["label"] for event in document["events"] if event["event_type"] == "vote_cast"]
    assert votes == [event.label for event in ended.of(VoteCast)]


async def test_the_log_has_one_plain_line_per_thing_that_happened(tmp_path: Path) -> None:
    ended = await run_team(tmp_path, team([{"answer": "a\nb\x1b[0m"}, {"vote": "own"}], []))
    for line in (ended.directory.path / "massgen.log").read_text().splitlines():
        assert re.fullmatch(
            r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} \| (DEBUG|INFO|WARNING|ERROR) \| [^\x00-\x1f]+", line
        )


async def test_the_winner_is_chosen_once(tmp_path: Path) -> None:
    assert len((await run_team(tmp_path, team(*changed_mind(tmp_path)))).of(WinnerChosen)) == 1
