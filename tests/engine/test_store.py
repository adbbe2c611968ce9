"""The run store: a run is started once, worked on by one, and forgotten only when that was said."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest

from massgen_mcp.errors import MassgenError
from massgen_mcp.events.coordination import WinnerChosen
from massgen_mcp.events.parts import AgentInfo
from massgen_mcp.events.record import LogRecord
from massgen_mcp.events.run import RunCompleted, RunStarted
from massgen_mcp.run_state.state import RunState, folded
from massgen_mcp.runs.engine import Engine, NewRun, RunFilter, RunRow, RunStore, SessionMoved, new_run_id
from massgen_mcp.statistics.digest import Mark
from tests.engine.machine import LocalMachine, Machine

ResultT = TypeVar("ResultT")

OURS, THEIRS = "fingerprint-ours", "fingerprint-theirs"


def new(key: str | None = None, *, request: str = "hash", of: str = OURS, session: str | None = None) -> NewRun:
    return NewRun(new_run_id(), "question", "config", of, request, key, session)


def added(store: RunStore, count: int = 1, *, of: str = OURS) -> list[str]:
    return [store.queue.add(new(of=of)).row.run_id for _ in range(count)]


def claimed(store: RunStore, of: str = OURS, *, room: int = 100, absent: Sequence[str] = ()) -> list[str]:
    return [row.run_id for row in store.queue.claim(of, f"runner of {of}", max_running=room, absent=absent)]


def completed(seq: int = 7) -> RunState:
    winner = WinnerChosen(agent="agent_a", outcome="consensus", label="agent_a.1", votes={})
    end = RunCompleted(winner="agent_a", outcome="consensus", answer="42")
    return folded(LogRecord(seq=seq, time=1.0, event=event) for event in (winner, end))


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(MassgenError) as caught:
        call()
    return caught.value.code


def at_once(calls: Sequence[Callable[[], ResultT]]) -> list[ResultT]:
    with ThreadPoolExecutor(len(calls)) as threads:
        return [future.result() for future in [threads.submit(call) for call in calls]]


# -- starting ---------------------------------------------------------------------------------------------------------


def test_a_key_starts_one_run_however_many_processes_start_it_at_once(machine: Machine) -> None:
    stores = [machine.open().store for _ in range(4)]
    starts = at_once([lambda store=store: store.queue.add(new("k")) for store in stores * 5])
    assert len({start.row.run_id for start in starts}) == 1
    assert sorted(start.reused for start in starts) == [False, *[True] * 19]
    assert len(stores[0].index.list_recent(limit=100)) == 1


def test_a_run_is_as_it_was_started_for_every_process(machine: Machine) -> None:
    run = replace(new("k", session="s"), question="q" * 1000)
    row = machine.open().store.queue.add(run).row
    found = machine.open().store.index.get(run.run_id)
    assert found == row
    assert (row.state, row.config, row.fingerprint, row.session_id) == ("queued", "config", OURS, "s")
    assert 0 < len(row.question) < 1000
    assert (row.kept, row.resumes, row.directory, bool(row.foreground)) == ("all", 0, None, False)


def test_a_taken_key_conflicts_with_another_request_and_with_whoever_wants_none_of_it(engine: Engine) -> None:
    store = engine.store
    first = store.queue.add(new("k")).row
    same, other = new("k"), new("k", request="another")
    assert store.queue.add(same).row == first
    assert refusal(lambda: store.queue.add(other)) == "idempotency_conflict"
    assert refusal(lambda: store.queue.add(same, on_conflict="fail")) == "idempotency_conflict"
    assert len(store.index.list_recent(limit=10)) == 1


def test_what_a_start_would_reuse_can_be_asked_without_starting(engine: Engine) -> None:
    store = engine.store
    assert store.queue.find_reusable(new("k"), "use_existing") is None
    first = store.queue.add(new("k")).row
    found = store.queue.find_reusable(new("k"), "use_existing")
    assert found is not None
    assert (found.row, found.reused) == (first, True)
    assert (
        refusal(lambda: store.queue.find_reusable(new("k", request="another"), "use_existing"))
        == "idempotency_conflict"
    )
    assert store.queue.find_reusable(new("k"), "cancel_existing") is None
    assert store.queue.find_reusable(new(), "use_existing") is None
    assert len(store.index.list_recent(limit=10)) == 1


def test_cancel_existing_gives_the_key_to_the_new_run_and_cancels_the_earlier_one(engine: Engine) -> None:
    store = engine.store
    queued = store.queue.add(new("k")).row
    start = store.queue.add(new("k", request="another"), on_conflict="cancel_existing")
    assert (start.reused, start.replaced) == (False, store.index.get(queued.run_id))
    assert store.index.get(queued.run_id).state == "cancelled"
    (running,) = claimed(store)
    store.queue.add(new("k"), on_conflict="cancel_existing")
    assert store.index.get(running).state == "running"
    assert [control.action for control in store.controls.list_open([running])] == ["cancel"]


def test_one_turn_of_a_session_at_a_time(engine: Engine) -> None:
    store = engine.store
    turn = store.queue.add(new(session="s")).row
    store.queue.add(new(session="another"))
    assert refusal(lambda: store.queue.add(new(session="s"))) == "session_busy"
    claimed(store)
    assert refusal(lambda: store.queue.add(new(session="s"))) == "session_busy"
    store.leases.interrupt(OURS)
    assert refusal(lambda: store.queue.add(new(session="s"))) == "session_busy"
    store.leases.end(turn.run_id, completed())
    with pytest.raises(SessionMoved):
        store.queue.add(new(session="s"))
    assert store.queue.add(replace(new(session="s"), turns_over=frozenset({turn.number}))).row.state == "queued"


def test_a_turn_that_is_over_but_not_yet_ended_in_the_store_is_over(engine: Engine) -> None:
    turn = engine.store.queue.add(new(session="s")).row
    claimed(engine.store)
    assert engine.store.queue.add(replace(new(session="s"), turns_over=frozenset({turn.number}))).row.state == "queued"


def test_of_many_turns_at_once_one_is_started(machine: Machine) -> None:
    def start(store: RunStore) -> str:
        try:
            return store.queue.add(new(session="s")).row.state
        except MassgenError as error:
            return error.code

    starts = at_once([lambda store=store: start(store) for store in [machine.open().store for _ in range(4)] * 3])
    assert sorted(starts) == ["queued", *["session_busy"] * 11]


def test_a_full_queue_takes_nobody_and_running_runs_are_not_in_it(engine: Engine) -> None:
    store = engine.store
    store.queue.add(new("k"), max_queued=2)
    store.queue.add(new(), max_queued=2)
    assert refusal(lambda: store.queue.add(new(), max_queued=2)) == "queue_full"
    assert store.queue.add(new("k"), max_queued=2).reused, "what is there already needs no place"
    assert len(claimed(store, room=1)) == 1
    assert store.queue.add(new(), max_queued=2).row.state == "queued"


# -- looking ----------------------------------------------------------------------------------------------------------


def test_an_unknown_run_is_told_as_such(engine: Engine) -> None:
    assert refusal(lambda: engine.store.index.get("run-none")) == "unknown_run"
    assert refusal(lambda: engine.store.controls.request("run-none", "cancel")) == "unknown_run"


def test_lists_are_newest_first_and_can_be_paged_and_filtered(engine: Engine) -> None:
    store = engine.store
    one, two, three = (store.queue.add(new(session=session)).row for session in ("a", "b", None))
    claimed(store, room=1)

    def listed(rows: list[RunRow]) -> list[str]:
        return [row.run_id for row in rows]

    assert listed(store.index.list_recent(limit=10)) == [three.run_id, two.run_id, one.run_id]
    assert listed(store.index.list_recent(limit=1)) == [three.run_id]
    assert listed(store.index.list_recent(before=three.number, limit=1)) == [two.run_id]
    assert listed(store.index.list_recent(RunFilter("running"), limit=10)) == [one.run_id]
    assert listed(store.index.list_recent(RunFilter(session_id="b"), limit=10)) == [two.run_id]
    assert listed(store.index.list_recent(RunFilter(since=two.created), limit=10)) == [three.run_id, two.run_id]
    assert listed(store.index.list_recent(RunFilter(since=three.created + 1), limit=10)) == []


def test_runs_are_known_by_their_ids_and_by_how_those_begin(engine: Engine) -> None:
    store = engine.store
    for run_id in ("run-aab", "run-aac", "run-b_c"):
        store.queue.add(replace(new(), run_id=run_id))
    assert store.index.find_known(["run-aab", "run-none"]) == {"run-aab"}
    assert store.index.find_known([]) == set()
    assert sorted(store.index.find_by_prefix("run-a", 10)) == ["run-aab", "run-aac"]
    assert len(store.index.find_by_prefix("run-a", 1)) == 1
    assert store.index.find_by_prefix("run-b%", 10) == []
    assert store.index.find_by_prefix("run-bxc", 10) == []


def test_a_queued_run_knows_how_many_are_before_it(engine: Engine) -> None:
    store = engine.store
    runs = [store.index.get(run_id) for run_id in (*added(store), *added(store, of=THEIRS), *added(store))]
    assert [store.index.count_ahead(row) for row in runs] == [0, 1, 2]
    claimed(store, room=1)
    assert store.index.count_ahead(runs[2]) == 1


# -- turns ------------------------------------------------------------------------------------------------------------


def test_a_runner_takes_what_its_credentials_fit_oldest_first(engine: Engine) -> None:
    store = engine.store
    ours, theirs = added(store, 2), added(store, 1, of=THEIRS)
    assert [len(store.queue.list_waiting(who)) for who in (OURS, THEIRS, "nobody's")] == [2, 1, 0]
    assert claimed(store) == ours
    assert claimed(store) == []
    assert claimed(store, THEIRS) == theirs
    row = store.index.get(ours[0])
    assert (row.state, row.runner, row.started is not None) == ("running", f"runner of {OURS}", True)


def test_of_many_claims_at_once_each_run_has_one_runner_and_no_place_is_given_twice(machine: Machine) -> None:
    first = machine.open().store
    runs = added(first, 20)
    stores = [machine.open().store for _ in range(4)]
    taken = at_once([lambda store=store: claimed(store, room=12) for store in stores * 3])
    flat = [run_id for each in taken for run_id in each]
    assert sorted(flat) == sorted(runs[:12])


def test_places_are_counted_over_all_runners_and_shared_out_fairly(engine: Engine) -> None:
    store = engine.store
    many, few = added(store, 5), added(store, 1, of=THEIRS)
    assert claimed(store, room=2) == many[:1], "the other place is theirs, though they came last"
    assert claimed(store, room=2) == []
    assert claimed(store, THEIRS, room=2) == few
    assert claimed(store, room=2) == []
    store.leases.end(few[0], completed())
    assert claimed(store, room=2) == many[1:2]


def test_nothing_is_held_free_for_those_who_have_no_runner(engine: Engine) -> None:
    store = engine.store
    ours = added(store, 5)
    added(store, 1, of=THEIRS)
    assert claimed(store, room=2, absent=[THEIRS]) == ours[:2]


def test_everybody_sees_who_waits_and_who_works(engine: Engine) -> None:
    store = engine.store
    assert store.queue.list_at_work() == []
    added(store, 3)
    added(store, 2, of=THEIRS)
    claimed(store, room=2, absent=[THEIRS])
    at_work = {(OURS, "running", f"runner of {OURS}"), (OURS, "queued", None), (THEIRS, "queued", None)}
    assert set(store.queue.list_at_work()) == at_work
    assert len(store.queue.list_at_work()) == 3


def test_an_end_is_in_the_list_and_frees_the_place(engine: Engine) -> None:
    store = engine.store
    one, two = added(store, 2)
    assert claimed(store, room=1) == [one]
    store.leases.end(one, completed(seq=7))
    row = store.index.get(one)
    assert (row.state, row.outcome, row.winner, row.events) == ("completed", "consensus", "agent_a", 7)
    assert row.ended is not None
    assert claimed(store, room=1) == [two]
    assert store.queue.list_waiting(OURS) == []


# -- lost runners -----------------------------------------------------------------------------------------------------


def test_a_runner_may_take_some_of_its_queue_and_leave_the_rest_in_order(engine: Engine) -> None:
    store = engine.store
    first, second, third = added(store, 3)
    theirs = added(store, of=THEIRS)
    assert [row.run_id for row in store.queue.list_waiting(OURS)] == [first, second, third]
    only = [third, second, *theirs]
    taken = store.queue.claim(OURS, "runner", max_running=1, among=only)
    assert [row.run_id for row in taken] == [second]
    assert [row.run_id for row in store.queue.list_waiting(OURS)] == [first, third]
    assert store.queue.claim(OURS, "runner", max_running=9, among=[]) == []
    assert claimed(store) == [first, third]


def test_no_place_is_held_free_for_runs_that_their_runner_holds_back(machine: Machine) -> None:
    store, elsewhere = machine.open().store, machine.open().store
    ours, theirs = added(store, 3), added(store, 4, of=THEIRS)

    def taken(of: str, among: Sequence[str], held_back: dict[str, str]) -> list[str]:
        rows = store.queue.claim(of, f"runner of {of}", max_running=2, among=among, held_back=held_back)
        return [row.run_id for row in rows]

    assert claimed(elsewhere, THEIRS, room=2) == theirs[:1], "the other place is ours, who came first"
    assert taken(OURS, [], dict.fromkeys(ours, "their provider")) == []
    assert claimed(elsewhere, THEIRS, room=2) == theirs[1:2]
    store.leases.end(theirs[0], completed())
    assert taken(OURS, ours[2:], dict.fromkeys(ours[:2], "their provider")) == ours[2:], "who asks knows best"
    assert elsewhere.index.get(ours[2]).held_back_by is None


def test_everybody_sees_what_a_run_is_held_back_by_until_its_turn_comes(machine: Machine) -> None:
    store, elsewhere = machine.open().store, machine.open().store
    first, second, third = added(store, 3)

    def told() -> list[str | None]:
        return [elsewhere.index.get(run_id).held_back_by for run_id in (first, second, third)]

    store.queue.claim(OURS, "runner", max_running=9, among=[], held_back={first: "one", second: "two"})
    assert told() == ["one", "two", None]
    index = elsewhere.index
    ahead = [index.count_ahead(index.get(run_id)) for run_id in (second, third)]
    assert ahead == [1, 0], "those are in nobody's way"
    before = machine.contents()
    store.queue.claim(OURS, "runner", max_running=9, among=[], held_back={first: "one", second: "two"})
    assert machine.contents() == before, "what has not changed is not written"
    store.queue.claim(OURS, "runner", max_running=9, among=[first], held_back={second: "two again"})
    assert told() == [None, "two again", None]
    store.leases.interrupt(OURS)
    assert told() == [None, "two again", None]


def test_a_nested_run_works_in_the_place_of_the_run_that_it_is_nested_in(engine: Engine) -> None:
    store = engine.store
    (outer, other) = added(store, 2)
    assert claimed(store, room=1) == [outer]
    nested = [store.queue.add(replace(new(of=of), parent=outer), max_queued=0).row for of in (OURS, THEIRS)]
    assert [(row.parent, store.index.count_ahead(row)) for row in nested] == [(outer, 0)] * 2
    assert claimed(store, room=1) == [nested[0].run_id]
    assert claimed(store, THEIRS, room=1) == [nested[1].run_id]
    assert claimed(store, room=1) == [], "the place is still taken"
    assert claimed(store, room=2) == [other], "and no more than one"
    store.leases.interrupt(OURS)
    assert claimed(store, room=2) == [outer, other, nested[0].run_id]


def test_a_nested_run_waits_until_it_is_admitted(engine: Engine) -> None:
    store = engine.store
    (outer,) = added(store)
    run = replace(new("outer/call"), parent=outer, admitted=False)
    inner = store.queue.add(run).row.run_id
    again = store.queue.find_reusable(replace(run, run_id=new_run_id()), "use_existing")
    assert again is not None
    assert again.row.run_id == inner
    assert claimed(store) == [outer]
    assert [row.run_id for row in store.queue.list_waiting(OURS)] == []
    for _ in range(2):
        store.queue.admit(inner)
    assert claimed(store) == [inner]


def test_the_end_of_a_run_cancels_what_is_nested_in_it(engine: Engine) -> None:
    store = engine.store
    (outer,) = added(store)
    waiting, working = (store.queue.add(replace(new(), parent=outer)).row.run_id for _ in range(2))
    store.leases.park_until_upgrade(waiting)
    assert set(claimed(store)) == {outer, working}
    below = store.queue.add(replace(new(), parent=waiting)).row.run_id
    store.leases.end(outer, completed())
    assert [store.index.get(run_id).state for run_id in (waiting, below, working)] == [
        "cancelled",
        "cancelled",
        "running",
    ]
    assert [(control.run_id, control.action) for control in store.controls.list_open([working])] == [
        (working, "cancel")
    ]


def test_who_cancels_a_run_that_nobody_works_on_cancels_what_is_nested_in_it(engine: Engine) -> None:
    store = engine.store
    (outer,) = added(store)
    inner = store.queue.add(replace(new(), parent=outer)).row.run_id
    store.controls.request(outer, "cancel")
    assert [store.index.get(run_id).state for run_id in (outer, inner)] == ["cancelled", "cancelled"]


def test_runs_of_a_lost_runner_wait_for_the_next_one_which_counts_as_a_resume(engine: Engine) -> None:
    store = engine.store
    run_id, *_ = added(store, 2)
    store.queue.claim(OURS, "first", max_running=1)
    assert store.leases.interrupt(OURS, of_runner="another") == []
    assert store.leases.interrupt(THEIRS) == []
    assert store.leases.interrupt(OURS, of_runner="first") == [run_id]
    assert store.index.get(run_id).state == "interrupted"
    assert store.leases.interrupt(OURS) == []
    (row,) = store.queue.claim(OURS, "second", max_running=1)
    assert (row.run_id, row.state, row.runner, row.resumes, row.ended) == (run_id, "running", "second", 1, None)


def test_a_runner_can_only_hand_back_what_it_has(engine: Engine) -> None:
    store = engine.store
    (run_id,) = added(store)
    store.queue.claim(OURS, "first", max_running=1)
    store.leases.release(run_id, "another")
    assert store.index.get(run_id).state == "running"
    store.leases.release(run_id, "first")
    assert store.index.get(run_id).state == "interrupted"
    assert claimed(store) == [run_id]


def test_an_interrupted_run_can_be_adopted_by_other_credentials_and_a_running_one_cannot(engine: Engine) -> None:
    store = engine.store
    (run_id,) = added(store)
    claimed(store)
    store.queue.adopt(run_id, THEIRS)
    assert store.index.get(run_id).fingerprint == OURS
    store.leases.interrupt(OURS)
    store.queue.adopt(run_id, THEIRS)
    assert (claimed(store), claimed(store, THEIRS)) == ([], [run_id])


def test_a_run_that_a_newer_version_worked_on_is_left_alone_by_this_one(engine: Engine) -> None:
    store = engine.store
    (run_id,) = added(store)
    claimed(store)
    store.leases.park_until_upgrade(run_id)
    assert store.index.get(run_id).state == "interrupted"
    assert (claimed(store), store.queue.list_waiting(OURS), store.queue.list_at_work()) == ([], [], [])
    store.leases.end(run_id, completed())
    store.leases.park_until_upgrade(run_id)
    assert store.index.get(run_id).state == "completed", "what has ended stays so"


# -- foreground -------------------------------------------------------------------------------------------------------


def test_a_foreground_run_is_in_the_list_takes_no_place_and_no_runner_takes_it(machine: Machine) -> None:
    store = machine.open().store
    foreground, directory = new(), machine.own_files("own").path
    store.queue.add_foreground(foreground, directory)
    row = store.index.get(foreground.run_id)
    assert (row.state, row.directory, bool(row.foreground)) == ("running", str(directory), True)
    assert store.queue.list_at_work() == []
    runs = added(store)
    assert claimed(store, room=1) == runs
    assert store.leases.interrupt(OURS) == runs
    store.leases.mark_lost(foreground.run_id)
    assert store.index.get(foreground.run_id).state == "interrupted"
    assert claimed(store) == runs


def test_a_lost_foreground_run_goes_on_with_a_runner_once_it_is_adopted(machine: Machine) -> None:
    store, foreground = machine.open().store, new()
    store.queue.add_foreground(foreground, machine.own_files("own").path)
    store.queue.adopt(foreground.run_id, THEIRS)
    assert claimed(store, THEIRS) == [], "it is not lost yet"
    store.leases.mark_lost(foreground.run_id)
    store.queue.adopt(foreground.run_id, THEIRS)
    assert claimed(store, THEIRS) == [foreground.run_id]
    store.leases.mark_lost(foreground.run_id)
    assert store.index.get(foreground.run_id).state == "running", "it is a runner's now"


def test_a_turn_in_the_foreground_lets_no_other_in_until_it_is_lost_and_none_goes_on_beside_another(
    machine: Machine,
) -> None:
    store, lost, later = machine.open().store, new(session="s"), new(session="s")
    store.queue.add_foreground(lost, machine.own_files("lost").path)
    for start in (
        lambda: store.queue.add(new(session="s")),
        lambda: store.queue.add_foreground(new(session="s"), Path("/no")),
    ):
        assert refusal(start) == "session_busy"
    store.leases.mark_lost(lost.run_id)
    store.queue.add_foreground(later, machine.own_files("later").path)
    for go_on in (lambda: store.queue.take_foreground(lost.run_id, OURS), lambda: store.queue.adopt(lost.run_id, OURS)):
        assert refusal(go_on) == "session_busy"
    store.leases.end(later.run_id, completed())
    with pytest.raises(SessionMoved):
        store.queue.add_foreground(new(session="s"), Path("/no"))
    store.queue.adopt(lost.run_id, OURS)
    over = frozenset({store.index.get(later.run_id).number})
    assert refusal(lambda: store.queue.add(replace(new(session="s"), turns_over=over))) == "session_busy", (
        "a runner takes it"
    )


def test_a_lost_run_is_taken_into_the_foreground_by_one_of_many(machine: Machine) -> None:
    stores, foreground = [machine.open().store for _ in range(4)], new()
    stores[0].queue.add_foreground(foreground, machine.own_files("own").path)
    assert not stores[0].queue.take_foreground(foreground.run_id, THEIRS)
    stores[0].leases.mark_lost(foreground.run_id)
    taken = at_once([lambda store=store: store.queue.take_foreground(foreground.run_id, THEIRS) for store in stores])
    assert sorted(taken) == [False, False, False, True]
    row = stores[1].index.get(foreground.run_id)
    assert (row.state, row.fingerprint, row.resumes, row.ended) == ("running", THEIRS, 1, None)


# -- controls ---------------------------------------------------------------------------------------------------------


def test_what_is_wanted_of_a_run_stays_wanted_in_order_until_it_is_done(machine: Machine) -> None:
    store, runner = machine.open().store, machine.open().store
    one, two = added(store, 2)
    claimed(store)
    for message in ("first", "second", "third"):
        store.controls.request(one, "steer", message)
    store.controls.request(two, "finish_now")
    wanted = runner.controls.list_open([one])
    assert [(each.run_id, each.action, each.message) for each in wanted] == [
        (one, "steer", message) for message in ("first", "second", "third")
    ]
    assert runner.controls.list_open([one]) == wanted
    runner.controls.complete([wanted[0].number, wanted[2].number])
    assert [each.message for each in store.controls.list_open([one])] == ["second"]
    assert [each.run_id for each in store.controls.list_open([one, two])] == [one, two]
    assert store.controls.list_open([]) == []


def test_what_is_wanted_waits_for_a_successor_and_goes_with_the_end(engine: Engine) -> None:
    store = engine.store
    (run_id,) = added(store)
    claimed(store)
    store.controls.request(run_id, "steer", "be brief")
    store.leases.interrupt(OURS)
    store.controls.request(run_id, "finish_now")
    assert claimed(store) == [run_id]
    assert [each.action for each in store.controls.list_open([run_id])] == ["steer", "finish_now"]
    store.leases.end(run_id, completed())
    assert store.controls.list_open([run_id]) == []
    assert store.controls.request(run_id, "steer", "too late").state == "completed"
    assert store.controls.list_open([run_id]) == []


def test_a_run_that_nobody_works_on_is_cancelled_at_once_and_a_running_one_is_told(engine: Engine) -> None:
    store = engine.store
    running, interrupted, queued = added(store, 3)
    store.queue.claim(OURS, "first", max_running=1)
    store.queue.claim(OURS, "second", max_running=2)
    store.leases.interrupt(OURS, of_runner="second")
    assert store.controls.request(queued, "cancel").state == "cancelled"
    assert store.controls.request(interrupted, "cancel").state == "cancelled"
    assert store.controls.request(running, "cancel").state == "running"
    assert [each.run_id for each in store.controls.list_open([running, interrupted, queued])] == [running]
    assert claimed(store) == []


# -- retention --------------------------------------------------------------------------------------------------------


def ended(store: RunStore, key: str | None = None) -> RunRow:
    run_id = store.queue.add(new(key)).row.run_id
    claimed(store)
    store.leases.end(run_id, completed())
    return store.index.get(run_id)


def test_runs_age_from_the_first_look_after_their_end(engine: Engine) -> None:
    store = engine.store
    row = ended(store)
    assert store.retention.list_expired(1e9, ["all"], interrupted=True) == [], "it has not begun to age"
    store.retention.start_ageing(100.0)
    (going_on,) = added(store)
    store.retention.start_ageing(500.0)
    assert store.retention.list_expired(99.0, ["all"], interrupted=True) == []
    assert store.retention.list_expired(100.0, ["all"], interrupted=True) == [row]
    assert store.retention.list_expired(100.0, ["results"], interrupted=True) == []
    assert going_on not in [each.run_id for each in store.retention.list_expired(1e9, ["all"], interrupted=True)]


def test_an_interrupted_run_is_only_old_where_that_was_asked_and_young_again_when_it_goes_on(engine: Engine) -> None:
    store = engine.store
    (run_id,) = added(store)
    claimed(store)
    store.leases.interrupt(OURS)
    store.retention.start_ageing(1.0)
    assert store.retention.list_expired(1.0, ["all"], interrupted=False) == []
    assert [row.run_id for row in store.retention.list_expired(1.0, ["all"], interrupted=True)] == [run_id]
    claimed(store)
    store.leases.interrupt(OURS)
    assert store.retention.list_expired(1.0, ["all"], interrupted=True) == []


def test_what_is_kept_is_marked_by_one_and_never_of_a_run_that_goes_on(machine: Machine) -> None:
    stores = [machine.open().store for _ in range(4)]
    row = ended(stores[0])
    marked = at_once([lambda store=store: store.retention.set_kept(row, "losing_workspaces") for store in stores])
    assert sorted(marked) == [False, False, False, True]
    assert stores[0].index.get(row.run_id).kept == "losing_workspaces"
    (run_id,) = added(stores[0])
    assert not stores[0].retention.set_kept(stores[0].index.get(run_id), "losing_results")
    claimed(stores[0])
    assert not stores[0].retention.set_kept(stores[0].index.get(run_id), "losing_results")


def test_an_expired_run_leaves_a_row_without_words_and_its_key_is_free(engine: Engine) -> None:
    store = engine.store
    row = ended(store, "k")
    assert store.retention.set_kept(row, "losing_results")
    expired = store.index.get(row.run_id)
    assert (expired.expired, expired.question, expired.config, expired.idempotency_key) == (True, "", "", None)
    assert (expired.state, expired.outcome) == ("completed", "consensus")
    assert store.retention.set_kept(expired, "nothing")
    assert not store.queue.add(new("k")).reused


def test_an_interrupted_run_that_loses_its_files_is_no_longer_taken(engine: Engine) -> None:
    store = engine.store
    (run_id,) = added(store)
    claimed(store)
    store.leases.interrupt(OURS)
    assert store.retention.set_kept(store.index.get(run_id), "losing_results")
    assert claimed(store) == []


def test_runs_in_directories_of_their_own_never_become_too_old(machine: Machine) -> None:
    store, foreground = machine.open().store, new()
    store.queue.add_foreground(foreground, machine.own_files("own").path)
    store.leases.end(foreground.run_id, completed())
    store.retention.start_ageing(1.0)
    assert store.retention.list_expired(1e9, ["all"], interrupted=True) == []
    assert store.retention.set_kept(store.index.get(foreground.run_id), "losing_results"), (
        "unless somebody asks for it by name"
    )


def test_the_retention_clock_is_as_it_was_left(machine: Machine) -> None:
    store = machine.open().store
    assert store.retention.get_clock() is None
    store.retention.set_clock(1.5, 2.5, "boot", 3.5)
    store.retention.set_clock(4.5, 5.5, "another", 6.5)
    assert machine.open().store.retention.get_clock() == (4.5, 5.5, "another", 6.5)


# -- for the doctor ---------------------------------------------------------------------------------------------------


def test_a_store_that_is_not_there_is_not_made_by_looking(tmp_path: Path) -> None:
    machine = LocalMachine(tmp_path)
    store, before = machine.open().store, machine.contents()
    assert (store.database.exists(), store.index.list_work()) == (False, [])
    assert store.database.described()
    assert machine.contents() == before


def test_an_overview_tells_who_should_work_on_what_and_changes_nothing(machine: Machine) -> None:
    store, foreground = machine.open().store, new(of=THEIRS)
    one, two = added(store, 2)
    claimed(store, room=1)
    files = machine.own_files("own")
    store.queue.add_foreground(foreground, files.path)
    before = machine.contents()
    looking = machine.open().store
    assert (looking.database.exists(), looking.database.examine()) == (True, None)
    seen = {
        row.run_id: (row.state, row.fingerprint, row.directory, bool(row.foreground))
        for row in looking.index.list_work()
    }
    assert seen == {
        one: ("running", OURS, None, False),
        two: ("queued", OURS, None, False),
        foreground.run_id: ("running", THEIRS, str(files.path), True),
    }
    assert machine.contents() == before


def test_a_store_that_cannot_be_used_says_what_to_do_and_stays_as_it_is(machine: Machine) -> None:
    first = machine.open()
    added(first.store)
    first.close()
    for harm in (machine.outdate_store, machine.damage_store):
        harm()
        before = machine.contents()
        looking = machine.open().store
        assert looking.database.exists()
        assert "; " in (looking.database.examine() or "")
        assert refusal(lambda store=looking: store.index.list_recent(limit=1)) == "store_unavailable"
        assert machine.contents() == before
    assert refusal(machine.open().store.index.list_work) == "store_unavailable"


def test_a_look_leaves_a_store_as_a_killed_process_left_it(tmp_path: Path) -> None:
    machine = LocalMachine(tmp_path)
    run_id = new_run_id()
    with machine.process(OURS, run_id) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.kill()
    before, looking = machine.contents(), machine.open().store
    assert ([row.run_id for row in looking.index.list_work()], looking.database.examine()) == ([run_id], None)
    assert machine.contents() == before


# -- statistics -------------------------------------------------------------------------------------------------------


def test_what_statistics_need_of_a_run_is_there_when_it_ends_and_stays_when_its_results_go(engine: Engine) -> None:
    store = engine.store
    outer, going, unread = added(store, 3)
    inner = store.queue.add(replace(new(), parent=outer)).row.run_id
    start = RunStarted(run_id=outer, question="q", agents=(AgentInfo(name="agent_a", id="a", backend="b", model="m"),))
    end = RunCompleted(winner="agent_a", outcome="single", answer="42")
    claimed(store)
    for run_id in (inner, outer):
        store.leases.end(
            run_id, folded(LogRecord(seq=seq, time=1.0, event=event) for seq, event in enumerate((start, end), 1))
        )
    store.leases.end(unread, completed())
    found = {ended.row.run_id: ended for ended in store.ended.list_ended()}
    assert found.keys() == {outer, unread}, "neither what goes on nor what is nested"
    assert [ended.row.run_id for ended in store.ended.list_ended(run_ids=[inner])] == [inner]
    assert [ended.row.run_id for ended in store.ended.list_ended(newest=1)] == [unread], "the last that was started"
    assert (
        store.ended.list_ended(since=time.time() + 60)
        == store.ended.list_ended(config="another")
        == store.ended.list_ended(run_ids=[going])
        == []
    )
    digest = found[outer].digest
    assert digest is not None
    assert [agent.model for agent in digest.agents] == ["m"]
    assert (found[unread].digested, found[unread].digest) == (True, None)
    store.ended.mark(outer, "", Mark(verdict="wrong", note="first", at=1.0))
    store.ended.mark(outer, "", Mark(verdict="right", note="a name", at=2.0))
    store.ended.mark(outer, "a", Mark(verdict="right", note="", at=3.0))
    store.ended.mark(outer, "a", None)
    assert store.retention.set_kept(store.index.get(outer), "losing_results")
    (left,) = store.ended.list_ended(run_ids=[outer])
    assert (left.digest, left.row.config) == (digest, "")
    assert left.marks == {"": Mark(verdict="right", note="", at=2.0)}
    store.ended.keep_digests({left.row.number: None})
    assert store.ended.list_ended(run_ids=[outer])[0].digest is None
