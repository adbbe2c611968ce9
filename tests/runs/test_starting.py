"""A start is exactly once, takes its turn, and knows the conversation that it belongs to."""

import signal
from datetime import datetime
from typing import Any

import anyio
from hypothesis import given
from hypothesis import strategies as st

from massgen_mcp.runs.engine import RunFiles
from massgen_mcp.runs.engine.claiming import QueueDepth, allocate
from massgen_mcp.runs.engine.journal import JournalReader
from massgen_mcp.runs.sessions.turns import MAX_HISTORY_CHARACTERS
from tests.harness import RUNNER_MODULE, TempHome, agent, call, end, events_of, expect_error, happened, wait_until

STUCK = {"hang": True}


async def at_work(home: TempHome, run_id: str) -> None:
    await wait_until(lambda: happened(home.run_directory(run_id), "model_call_started"))


async def answered(client: Any, question: str, answer: str, home: TempHome, **arguments: Any) -> dict[str, Any]:
    """A run that has ended with this answer."""
    config = home.config("answers", agent("solo", {"answer": answer}))
    started = await call(client, "start_run", question=question, config=config, wait_seconds=30, **arguments)
    assert started["status"] == "completed"
    return started


# -- one key, one run -------------------------------------------------------------------------------------------------


async def test_a_taken_key_gives_the_same_run_or_an_error_whichever_was_asked_for(home: TempHome) -> None:
    key = {"idempotency_key": "k", "models": ["scripted/x"]}
    async with home.client() as client:
        first = await call(client, "start_run", question="q", wait_seconds=30, **key)
        again = await call(client, "start_run", question="q", **key)
        assert (again["run_id"], again["reused"], first.get("reused")) == (first["run_id"], True, None)
        for on_conflict, question in (("use_existing", "other"), ("fail", "q"), ("fail", "other")):
            code, told = await expect_error(client, "start_run", question=question, on_conflict=on_conflict, **key)
            assert code == "idempotency_conflict"
            assert first["run_id"] in told
        assert len((await call(client, "list_runs"))["runs"]) == 1
    assert len(home.runs) == 1, "a refused start leaves nothing behind"


async def test_cancel_existing_ends_the_run_of_the_key_and_gives_the_key_to_the_new_one(home: TempHome) -> None:
    stuck = home.config("stuck", agent("one", STUCK))
    async with home.client() as client:
        first = (await call(client, "start_run", question="q", config=stuck, idempotency_key="k"))["run_id"]
        await at_work(home, first)
        key = {"idempotency_key": "k", "models": ["scripted/x"]}
        second = await call(client, "start_run", question="q2", on_conflict="cancel_existing", wait_seconds=30, **key)
        assert (second["status"], second.get("reused")) == ("completed", None)
        assert (await call(client, "wait_run", run_id=first))["status"] == "cancelled"
        again = await call(client, "start_run", question="q2", **key)
        assert (again["run_id"], again["reused"]) == (second["run_id"], True)


# -- a place in the queue ---------------------------------------------------------------------------------------------


async def test_runs_wait_for_a_place_in_order_and_a_full_queue_says_so(home: TempHome) -> None:
    narrow = home.with_variables(MASSGEN_MCP_MAX_RUNNING="1", MASSGEN_MCP_MAX_QUEUED="2")
    stuck = home.config("stuck", agent("one", STUCK))
    async with narrow.client() as client, narrow.client() as other:
        first = (await call(client, "start_run", question="1", config=stuck))["run_id"]
        await at_work(home, first)
        waiting = [
            await call(server, "start_run", question="2", models=["scripted/x"], idempotency_key=key)
            for server, key in ((client, "a"), (other, "b"))
        ]
        assert [run["status"] for run in waiting] == ["queued", "queued"]
        assert waiting[1]["next_step"].startswith("One run is ahead of this one in the queue.")
        assert (await call(other, "get_status", run_id=waiting[0]["run_id"]))["max_usd"] == 10
        lower = {"run_id": waiting[0]["run_id"], "action": "raise_budget", "value": 5}
        assert "above the current 10 US dollars" in (await expect_error(other, "control_run", **lower))[1]
        code, told = await expect_error(other, "start_run", question="q", models=["scripted/x"])
        assert code == "queue_full"
        assert "the queue is full (2 runs)" in told
        reused = await call(other, "start_run", question="2", models=["scripted/x"], idempotency_key="a")
        assert reused["run_id"] == waiting[0]["run_id"], "a known key needs no place"
        assert len(home.runs) == 3
        await call(other, "control_run", run_id=first, action="cancel")
        started: list[float] = []
        for run in waiting:
            assert (await call(client, "wait_run", run_id=run["run_id"], timeout_seconds=20))["status"] == "completed"
            started.append(JournalReader(home.run_directory(run["run_id"]) / "events.jsonl").read()[0].time)
        assert started == sorted(started)


async def test_places_are_counted_over_the_runners_of_all_credentials(home: TempHome) -> None:
    narrow = home.with_variables(MASSGEN_MCP_MAX_RUNNING="1")
    stuck = home.config("stuck", agent("one", STUCK))
    async with narrow.client() as one, narrow.with_variables(OPENAI_API_KEY="sk-other-0002").client() as other:
        first = (await call(one, "start_run", question="q", config=stuck))["run_id"]
        await at_work(home, first)
        second = (await call(other, "start_run", question="q", models=["scripted/x"]))["run_id"]
        await wait_until(lambda: len(home.processes(RUNNER_MODULE)) == 2)
        assert (await call(other, "wait_run", run_id=second, timeout_seconds=2))["status"] == "queued"
        await call(one, "control_run", run_id=first, action="cancel")
        assert (await call(other, "wait_run", run_id=second, timeout_seconds=20))["status"] == "completed"


async def test_the_place_of_a_lost_runner_is_free_for_other_credentials(home: TempHome) -> None:
    narrow = home.with_variables(MASSGEN_MCP_MAX_RUNNING="1")
    stuck = home.config("stuck", agent("one", STUCK))
    async with narrow.client() as one:
        first = (await call(one, "start_run", question="q", config=stuck))["run_id"]
        await at_work(home, first)
        (runner,) = home.processes(RUNNER_MODULE)
    end(runner, signal.SIGKILL)
    await wait_until(lambda: not home.processes(RUNNER_MODULE))
    async with narrow.with_variables(OPENAI_API_KEY="sk-other-0002").client() as other:
        second = await call(other, "start_run", question="q", models=["scripted/x"], wait_seconds=20)
        assert second["status"] == "completed"


def waiting(name: str, queued: int, *, head: int = 0, running: int = 0, served: float = 0.0) -> QueueDepth:
    return QueueDepth(name, queued, head, running, served)


def test_a_free_place_goes_to_those_with_the_fewest_running_then_longest_not_served_then_oldest() -> None:
    assert allocate(1, [waiting("a", 9, head=1, running=3), waiting("b", 1, head=99)]) == {"b": 1}
    assert allocate(1, [waiting("a", 9, head=1, served=20), waiting("b", 1, head=99, served=10)]) == {"b": 1}
    assert allocate(1, [waiting("a", 9, head=5), waiting("b", 1, head=4)]) == {"b": 1}
    assert allocate(4, [waiting("a", 9, head=1), waiting("b", 1, head=2)]) == {"a": 3, "b": 1}


queues = st.lists(
    st.builds(
        QueueDepth,
        fingerprint=st.sampled_from("abcdefgh"),
        queued=st.integers(0, 20),
        head=st.integers(0, 99),
        running=st.integers(0, 20),
        served=st.floats(0, 1e9),
    ),
    unique_by=lambda queue: queue.fingerprint,
)


@given(room=st.integers(-2, 60), line=queues)
def test_no_place_stays_free_while_a_run_waits_and_nobody_gets_ahead_of_the_poorer(
    room: int, line: list[QueueDepth]
) -> None:
    turns = allocate(room, line)
    assert sum(turns.values()) == max(0, min(room, sum(queue.queued for queue in line)))
    for rich in line:
        for poor in line:
            if turns.get(rich.fingerprint) and turns.get(poor.fingerprint, 0) < poor.queued:
                has = rich.running + turns[rich.fingerprint]
                assert has <= poor.running + turns.get(poor.fingerprint, 0) + 1


# -- sessions ---------------------------------------------------------------------------------------------------------


async def test_a_turn_is_told_question_and_answer_of_the_turns_before_it(home: TempHome) -> None:
    async with home.client() as client:
        await answered(client, "first?", "the first answer", home, session_id="talk")
        await answered(client, "elsewhere?", "not this", home, session_id="another")
        second = await answered(client, "second?", "the second answer", home, session_id="talk")
        third = await call(
            client, "start_run", question="third?", models=["scripted/x"], session_id="talk", wait_seconds=30
        )
        assert "2 earlier turns" in third["next_step"]
        listed = await call(client, "list_runs", session_id="talk")
    assert [row["run_id"] for row in listed["runs"]][:2] == [third["run_id"], second["run_id"]]
    assert len(listed["runs"]) == 3
    history = RunFiles(home.run_directory(third["run_id"])).read_request().history
    assert [(turn.question, turn.answer) for turn in history] == [
        ("first?", "the first answer"),
        ("second?", "the second answer"),
    ]


async def test_a_session_has_one_writer(home: TempHome) -> None:
    stuck = home.config("stuck", agent("one", STUCK))
    async with home.client() as client:
        first = (await call(client, "start_run", question="q", config=stuck, session_id="talk"))["run_id"]
        refused: list[str] = []

        async def start() -> None:
            code, told = await expect_error(
                client, "start_run", question="q2", models=["scripted/x"], session_id="talk"
            )
            refused.append(code)
            assert first in told

        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(start)
        assert refused == ["session_busy"] * 3
        await call(client, "control_run", run_id=first, action="cancel")
        await call(client, "wait_run", run_id=first)
        await answered(client, "q3", "a3", home, session_id="talk")
    assert len(home.runs) == 2


async def test_two_turns_started_at_the_same_moment_are_never_both_accepted(home: TempHome) -> None:
    stuck = home.config("stuck", agent("one", STUCK))
    codes: list[str] = []
    async with home.client() as one, home.client() as other:

        async def start(client: Any) -> None:
            reply = await client.call_tool("start_run", {"question": "q", "config": stuck, "session_id": "talk"})
            codes.append("refused" if reply.is_error else "accepted")

        async with anyio.create_task_group() as tasks:
            for client in (one, other) * 4:
                tasks.start_soon(start, client)
    assert sorted(codes) == ["accepted", *["refused"] * 7]


async def test_a_long_session_forgets_its_oldest_turns_and_says_so(home: TempHome) -> None:
    long = "x" * (MAX_HISTORY_CHARACTERS // 2)
    async with home.client() as client:
        for number in range(3):
            await answered(client, f"q{number}", f"a{number} {long}", home, session_id="talk")
        last = await call(client, "start_run", question="q", models=["scripted/x"], session_id="talk", wait_seconds=30)
    assert "1 earlier turn of this session; left out: 2 older or lost turns" in last["next_step"]
    (turn,) = RunFiles(home.run_directory(last["run_id"])).read_request().history
    assert turn.answer.startswith("a2")
    assert turn.question == "[2 turns are left out]\n\nq2"


async def test_a_turn_longer_than_all_the_room_is_cut_and_says_so(home: TempHome) -> None:
    async with home.client() as client:
        await answered(client, "y" * MAX_HISTORY_CHARACTERS, "z" * MAX_HISTORY_CHARACTERS, home, session_id="talk")
        last = await call(client, "start_run", question="q", models=["scripted/x"], session_id="talk", wait_seconds=30)
    (turn,) = RunFiles(home.run_directory(last["run_id"])).read_request().history
    assert len(turn.question) + len(turn.answer) <= MAX_HISTORY_CHARACTERS
    for text in (turn.question, turn.answer):
        assert text.endswith("characters left out]")


async def test_a_session_id_that_could_be_a_path_is_refused(home: TempHome) -> None:
    async with home.client() as client:
        for bad in ("../up", "a b", "x" * 200):
            code, _ = await expect_error(client, "start_run", question="q", models=["scripted/x"], session_id=bad)
            assert code in ("unsafe_path", "invalid_arguments")
    assert not home.runs


async def test_runs_are_listed_by_the_time_of_their_start(home: TempHome) -> None:
    async with home.client() as client:
        first = await answered(client, "one", "1", home)
        second = await answered(client, "two", "2", home)
        rows = {row["run_id"]: row for row in (await call(client, "list_runs"))["runs"]}
        since = rows[second["run_id"]]["started"]
        after = datetime.fromisoformat(since).timestamp() + 1000
        later = (await call(client, "list_runs", since=since))["runs"]
        assert [row["run_id"] for row in later] == [second["run_id"]]
        assert (await call(client, "list_runs", since=after))["runs"] == []
    assert rows[first["run_id"]]["winner"] == "solo"
    assert events_of(home.run_directory(first["run_id"]))
