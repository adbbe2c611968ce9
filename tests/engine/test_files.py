"""The files of runs: a request stays as it was frozen, and only what is nobody's is a leftover."""

import pytest

from massgen_mcp.errors import MassgenError
from massgen_mcp.events.agent_work import TextDelta
from massgen_mcp.redaction import NO_KEYS, Redactor
from massgen_mcp.request.question import EarlierTurn
from massgen_mcp.runs.engine import Engine, FrozenRequest, Nesting, NewRun, RunFiles, RunRow, new_run_id
from tests.engine.machine import Machine
from tests.teams import silent_team


def created(engine: Engine) -> RunFiles:
    return engine.files.create(new_run_id(), FrozenRequest("q", silent_team(1)), NO_KEYS)


def started(engine: Engine) -> tuple[RunRow, RunFiles]:
    run_id = new_run_id()
    files = engine.files.create(run_id, FrozenRequest("q", silent_team(1)), NO_KEYS)
    return engine.store.queue.add(NewRun(run_id, "q", "c", "f", "h")).row, files


def leftovers(engine: Engine, *, dry_run: bool = False) -> list[str]:
    return [run_id for run_id, _ in engine.files.remove_leftovers(engine.store.index.find_known, dry_run=dry_run)]


async def write_event(run: RunFiles) -> None:
    writer = run.event_log.append()
    writer.record(TextDelta(agent="agent_a", call_id="c", text="hello"))
    await writer.settle()
    writer.close()


def test_a_request_is_read_as_it_was_frozen_and_holds_no_key(machine: Machine, engine: Engine) -> None:
    run_id, config = new_run_id(), silent_team(2)
    history = (EarlierTurn(question="a-rather-secret-value?", answer="no"),)
    keys = Redactor({"SOME_API_KEY": "a-rather-secret-value"})
    assert not engine.files.created(run_id)
    engine.files.create(run_id, FrozenRequest("is it a-rather-secret-value?", config, history), keys)
    assert engine.files.created(run_id)
    elsewhere = machine.open()
    row = elsewhere.store.queue.add(NewRun(run_id, "q", "c", "f", "h")).row
    request = elsewhere.files.of(row).read_request()
    assert (request.question, request.config) == ("is it [key SOME_API_KEY]?", config)
    assert request.history == (EarlierTurn(question="[key SOME_API_KEY]?", answer="no"),)


def test_a_request_tells_in_which_run_it_was_started(machine: Machine, engine: Engine) -> None:
    run_id, nesting = new_run_id(), Nesting(new_run_id(), 2, 1)
    engine.files.create(run_id, FrozenRequest("q", silent_team(1), nesting=nesting), NO_KEYS)
    elsewhere = machine.open()
    row = elsewhere.store.queue.add(NewRun(run_id, "q", "c", "f", "h", parent=nesting.parent)).row
    assert elsewhere.files.of(row).read_request().nesting == nesting
    assert created(engine).read_request().nesting is None


def test_a_request_that_was_changed_is_damage(machine: Machine, engine: Engine) -> None:
    run = created(engine)
    machine.damage_request(run)
    with pytest.raises(MassgenError) as caught:
        run.read_request()
    assert caught.value.code == "run_damaged"


def test_a_start_that_came_to_nothing_is_forgotten(engine: Engine) -> None:
    run = created(engine)
    engine.files.discard(run.path.name)
    assert not engine.files.created(run.path.name)
    assert leftovers(engine) == []


def test_a_run_in_a_place_of_its_own_is_found_there(machine: Machine, engine: Engine) -> None:
    own, run_id = machine.own_files("own"), new_run_id()
    engine.store.queue.add_foreground(NewRun(run_id, "q", "c", "f", "h"), own.path)
    found = engine.files.of(engine.store.index.get(run_id))
    assert (found.path, found.read_request()) == (own.path, own.read_request())


async def test_leftovers_are_the_files_of_starts_that_were_never_acknowledged(engine: Engine) -> None:
    row, _ = started(engine)
    nobodys, of_a_lost_store = created(engine), created(engine)
    await write_event(of_a_lost_store)
    assert leftovers(engine, dry_run=True) == [nobodys.path.name]
    assert leftovers(engine) == [nobodys.path.name]
    assert leftovers(engine) == []
    assert not engine.files.created(nobodys.path.name)
    assert engine.files.created(row.run_id)
    assert engine.files.created(of_a_lost_store.path.name)
    assert engine.files.with_events() == [of_a_lost_store.path.name]


def test_nothing_is_a_leftover_while_somebody_makes_a_run(machine: Machine, engine: Engine) -> None:
    maker, another = machine.open(), machine.open()
    with maker.files.making(), another.files.making():
        run = created(maker)
        with pytest.raises(BlockingIOError):
            leftovers(engine)
    assert leftovers(engine) == [run.path.name]


def test_one_process_at_a_time_prunes(machine: Machine, engine: Engine) -> None:
    another = machine.open()
    with engine.files.pruning(), pytest.raises(BlockingIOError), another.files.pruning():
        pass
    with another.files.pruning():
        pass


def test_room_is_kept_for_pruning_a_full_disk(engine: Engine) -> None:
    assert not engine.files.free_reserve()
    with engine.files.pruning():
        pass
    assert engine.files.free_reserve()
    assert not engine.files.free_reserve()


def test_workspaces_can_go_before_the_results(engine: Engine) -> None:
    row, run = started(engine)
    run.workspace_of("agent_a").mkdir(parents=True)
    (run.workspace_of("agent_a") / "note.txt").write_bytes(b"x" * 100_000)
    answer = run.write_final("agent_a", "42")
    assert engine.files.size(row, "results") > engine.files.size(row, "workspaces") >= 100_000
    for _ in range(2):
        engine.files.remove(row, "workspaces")
        assert engine.files.size(row, "workspaces") == 0
        assert (answer.read_text(), engine.files.created(row.run_id)) == ("42", True)
    for _ in range(2):
        engine.files.remove(row, "results")
        assert engine.files.size(row, "results") == 0
        assert not engine.files.created(row.run_id)
