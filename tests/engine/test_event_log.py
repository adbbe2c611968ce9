"""The event log of a run: one order, durable when it was settled, and nothing taken for whole that is not."""

from collections.abc import Sequence

import anyio
import pytest

from massgen_mcp.errors import JournalNewer, MassgenError
from massgen_mcp.events.agent_work import TextDelta
from massgen_mcp.events.record import LogRecord
from massgen_mcp.events.run import FinishRequested
from massgen_mcp.redaction import NO_KEYS, Redactor
from massgen_mcp.runs.engine import DamagedJournal, Engine, FrozenRequest, NewRun, RunFiles, new_run_id
from tests.engine.machine import Machine
from tests.teams import silent_team


def delta(text: str) -> TextDelta:
    return TextDelta(agent="agent_a", call_id="c", text=text)


def said(records: Sequence[LogRecord]) -> list[tuple[int, str]]:
    return [(record.seq, getattr(record.event, "text", "")) for record in records]


def created(engine: Engine) -> RunFiles:
    return engine.files.create(new_run_id(), FrozenRequest("q", silent_team(1)), NO_KEYS)


def seen_from_elsewhere(machine: Machine, run: RunFiles) -> RunFiles:
    """The same run as another process finds it."""
    engine, run_id = machine.open(), run.path.name
    row = engine.store.index.get(run_id) if engine.store.index.find_known([run_id]) else None
    return engine.files.of(row or engine.store.queue.add(NewRun(run_id, "q", "c", "f", "h")).row)


def can_go_on(run: RunFiles) -> bool:
    try:
        run.probe()
    except OSError:
        return False
    return True


async def write(run: RunFiles, *texts: str) -> None:
    writer = run.event_log.append()
    for text in texts:
        writer.record(delta(text))
    await writer.settle()
    writer.close()


async def test_a_long_log_is_read_in_parts_and_its_streamed_text_may_be_left_out(engine: Engine) -> None:
    run = created(engine)
    await write(run, *(f"{n}" for n in range(5000)))
    writer = run.event_log.append()
    writer.record(FinishRequested())
    writer.record(delta("more"))
    writer.record(delta("last"))
    await writer.settle()
    writer.close()
    reader = run.event_log.follow()
    parts = [reader.read(2000) for _ in range(4)]
    assert [len(part) for part in parts] == [2000, 2000, 1003, 0]
    assert [record.seq for part in parts for record in part] == list(range(1, 5004))
    for part in (run.event_log.read(text=False), run.event_log.read_to_continue()):
        assert said(part) == [(5001, ""), (5003, "last")], "how far the log goes is known all the same"
    following, late = run.event_log.follow(text=False), run.event_log.follow(5002, text=False)
    assert [said(following.read(1)) for _ in range(3)] == [[(5001, "")], [(5003, "last")], []]
    assert [said(late.read()) for _ in range(2)] == [[(5003, "last")], []]
    await write(run, "one", "two")
    assert said(following.read()) == said(late.read()) == [(5005, "two")]


async def test_what_was_settled_is_there_for_others_in_the_order_of_recording(machine: Machine, engine: Engine) -> None:
    run = created(engine)
    elsewhere = seen_from_elsewhere(machine, run)
    assert elsewhere.event_log.read() == []
    writer = run.event_log.append()
    writer.record(delta("one"))
    writer.record(delta("two"))
    await writer.settle()
    assert said(elsewhere.event_log.read()) == [(1, "one"), (2, "two")]
    writer.record(delta("three"))
    await writer.drain()
    assert said(elsewhere.event_log.read()) == [(1, "one"), (2, "two"), (3, "three")]
    assert said(elsewhere.event_log.read_to_continue()) == [(3, "three")]
    writer.close()


async def test_settling_at_once_from_many_sides_loses_and_doubles_nothing(engine: Engine) -> None:
    run = created(engine)
    writer = run.event_log.append()

    async def say(text: str) -> None:
        writer.record(delta(text))
        await writer.settle()

    async with anyio.create_task_group() as tasks:
        for number in range(100):
            tasks.start_soon(say, str(number))
    writer.close()
    assert said(run.event_log.read()) == [(number + 1, str(number)) for number in range(100)]


async def test_listeners_hear_every_event_when_it_is_recorded_and_no_key_passes(engine: Engine) -> None:
    run = created(engine)
    writer = run.event_log.append(redactor=Redactor({"SOME_API_KEY": "a-rather-secret-value"}))
    heard: list[LogRecord] = []
    writer.listen(heard.append)
    event = writer.record(delta("it is a-rather-secret-value"))
    assert said(heard) == [(1, "it is [key SOME_API_KEY]")]
    assert event.text == "it is [key SOME_API_KEY]"
    await writer.settle()
    writer.close()
    assert said(run.event_log.read()) == said(heard)


async def test_another_reader_follows_from_where_it_was(machine: Machine, engine: Engine) -> None:
    run = created(engine)
    log = seen_from_elsewhere(machine, run).event_log
    early, late = log.follow(), log.follow(after=2)
    assert early.read() == []
    await write(run, "one", "two", "three")
    assert said(early.read()) == [(1, "one"), (2, "two"), (3, "three")]
    assert said(late.read()) == [(3, "three")]
    assert (early.read(), late.read(), log.follow(after=3).read()) == ([], [], [])
    await write(run, "four")
    assert said(early.read()) == said(late.read()) == [(4, "four")]


async def test_an_event_that_was_not_wholly_written_never_happened(machine: Machine, engine: Engine) -> None:
    run = created(engine)
    reader = run.event_log.follow()
    await write(run, "one")
    machine.tear(run)
    assert said(reader.read()) == [(1, "one")]
    assert reader.read() == []
    assert said(run.event_log.read_to_continue()) == [(1, "one")]
    await write(run, "two")
    assert said(reader.read()) == [(2, "two")]
    assert said(run.event_log.read()) == [(1, "one"), (2, "two")]


@pytest.mark.parametrize("harm", ["damage", "lose"])
async def test_an_event_that_was_changed_or_is_missing_is_damage_and_stays_so(
    machine: Machine, engine: Engine, harm: str
) -> None:
    run = created(engine)
    await write(run, "one", "two", "three")
    (machine.damage if harm == "damage" else machine.lose)(run, 2)
    for reading in (run.event_log.read, run.event_log.read_to_continue):
        with pytest.raises(DamagedJournal) as caught:
            reading()
        assert (caught.value.code, said(caught.value.intact)) == ("run_damaged", [(1, "one")])
    reader = run.event_log.follow()
    with pytest.raises(DamagedJournal):
        reader.read()
    with pytest.raises(DamagedJournal) as caught:
        reader.read()
    assert caught.value.intact == []
    with pytest.raises(DamagedJournal):
        run.event_log.follow(after=3).read()


async def test_what_a_newer_version_wrote_can_be_read_and_not_be_gone_on_from(machine: Machine, engine: Engine) -> None:
    run = created(engine)
    await write(run, "one")
    reader = run.event_log.follow(after=1)
    assert (reader.read(), reader.newer) == ([], None)
    machine.write_newer(run, 2)
    (record,) = reader.read()
    assert (record.seq, record.newer) == (2, True)
    assert reader.newer is not None
    with pytest.raises(JournalNewer):
        run.event_log.read_to_continue()
    assert [record.seq for record in run.event_log.read()] == [1, 2]


async def test_what_the_storage_refused_is_told_and_written_when_there_is_room(
    machine: Machine, engine: Engine
) -> None:
    run = created(engine)
    writer = run.event_log.append()
    with machine.no_room():
        writer.record(delta("one"))
        for _ in range(2):
            with pytest.raises(MassgenError) as caught:
                await writer.settle()
            assert caught.value.code in ("disk_full", "store_unavailable")
        assert run.event_log.read() == []
        assert not can_go_on(run)
    assert can_go_on(run)
    writer.record(delta("two"))
    await writer.settle()
    writer.close()
    assert said(run.event_log.read()) == [(1, "one"), (2, "two")]
