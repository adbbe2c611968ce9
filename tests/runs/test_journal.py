"""The journal of a run: whole lines or nothing, one order, and nothing acted upon before it is on disk."""

from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from massgen_mcp.errors import MassgenError
from massgen_mcp.events.agent_work import TextDelta
from massgen_mcp.events.run import FinishRequested
from massgen_mcp.runs.engine import DamagedJournal
from massgen_mcp.runs.engine.journal import JournalReader, JournalWriter
from massgen_mcp.runs.host.execute import RunContext, execute_run
from tests.faults import no_larger_files_than
from tests.teams import run_team, team


def delta(text: str) -> TextDelta:
    return TextDelta(agent="agent_a", call_id="c", text=text)


async def write(path: Path, *texts: str) -> None:
    journal = JournalWriter(path)
    for text in texts:
        journal.record(delta(text))
    await journal.settle()
    journal.close()


async def test_what_was_settled_is_in_the_file_in_the_order_of_recording(tmp_path: Path) -> None:
    await write(tmp_path / "e.jsonl", "one", "two")
    records = JournalReader(tmp_path / "e.jsonl").read()
    assert [(record.seq, getattr(record.event, "text", "")) for record in records] == [(1, "one"), (2, "two")]


async def test_settling_at_once_from_many_sides_loses_and_doubles_nothing(tmp_path: Path) -> None:
    journal = JournalWriter(tmp_path / "e.jsonl")

    async def say(text: str) -> None:
        journal.record(delta(text))
        await journal.settle()

    async with anyio.create_task_group() as tasks:
        for number in range(200):
            tasks.start_soon(say, str(number))
    journal.close()
    records = JournalReader(tmp_path / "e.jsonl").read()
    assert [record.seq for record in records] == list(range(1, 201))
    assert sorted(int(getattr(record.event, "text", "")) for record in records) == list(range(200))


@pytest.mark.parametrize("keep", [1, 20, -1])
async def test_a_torn_last_line_never_happened_and_the_next_writer_goes_on(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "e.jsonl"
    await write(path, "one", "two")
    first, second, _ = path.read_bytes().split(b"\n")
    path.write_bytes(first + b"\n" + second[:keep])
    assert len(JournalReader(path).read()) == 1
    await write(path, "three")
    records = JournalReader(path).read()
    assert [(record.seq, getattr(record.event, "text", "")) for record in records] == [(1, "one"), (2, "three")]


async def test_a_torn_last_line_of_a_long_journal_costs_nothing_but_that_line(tmp_path: Path) -> None:
    long = "x" * 200_000
    ended = await run_team(
        tmp_path,
        team([{"answer": long}, {"vote": "own"}], [{"answer": "short"}, {"vote": "xxx"}]),
        question="q" * 1_200_000,
    )
    journal = ended.directory.path / "events.jsonl"
    whole = journal.read_bytes()
    assert len(whole) > 1.5 * 2**20, "more than is read at a time"
    journal.write_bytes(whole[:-10])
    again = await execute_run(ended.directory, "run-test", RunContext({}))
    assert (again.state, again.resumed, again.final_answer) == ("completed", 1, long)
    assert again.spent.calls == ended.snapshot.spent.calls
    kept = whole[: whole.rindex(b"\n", 0, -1) + 1]
    assert journal.read_bytes().startswith(kept), "the journal lost more than its torn line"


async def test_events_are_numbered_on_after_a_torn_line_of_a_journal_of_many_megabytes(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    await write(path, *("x" * 1_000 for _ in range(3_000)), "torn")
    path.write_bytes(path.read_bytes()[:-10])
    await write(path, "next")
    records = JournalReader(path).read()
    assert [record.seq for record in records] == [*range(1, 3_002)]
    assert getattr(records[-1].event, "text", "") == "next"


async def test_a_reader_gives_what_is_new_also_while_a_line_is_being_written(
    tmp_path: Path,
) -> None:
    path = tmp_path / "e.jsonl"
    reader = JournalReader(path)
    assert reader.read() == []
    await write(path, "one", "two")
    first, line = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first)
    assert len(reader.read()) == 1
    with path.open("ab") as file:
        file.write(line[:10])
        file.flush()
        assert reader.read() == []
        file.write(line[10:])
    assert len(reader.read()) == 1


@pytest.mark.parametrize("damage", [b"{}\n", b"\xff\xfe\n", b'{"seq":1,"time":0,"event":{"type":"unheard_of"}}\n'])
def test_a_damaged_journal_is_a_typed_error(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "e.jsonl").write_bytes(damage)
    with pytest.raises(MassgenError) as caught:
        JournalReader(tmp_path / "e.jsonl").read()
    assert caught.value.code == "run_damaged"


async def test_no_flipped_bit_goes_unnoticed(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    await write(path, "one", "two", "three")
    whole = path.read_bytes()
    texts = [getattr(record.event, "text", "") for record in JournalReader(path).read()]
    for place in range(len(whole) - 1):  # without the last newline the last line never happened
        for bit in range(8):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :])
            with pytest.raises(DamagedJournal) as caught:
                JournalReader(path).read()
            intact = [getattr(record.event, "text", "") for record in caught.value.intact]
            assert intact == texts[: len(intact)]


@pytest.mark.parametrize("lines", [(0, 2), (1, 2), (0, 1, 1, 2), (1, 0, 2)])
async def test_a_line_that_is_missing_doubled_or_in_the_wrong_place_is_noticed(
    tmp_path: Path, lines: tuple[int, ...]
) -> None:
    path = tmp_path / "e.jsonl"
    await write(path, "one", "two", "three")
    whole = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(whole[line] for line in lines))
    reader = JournalReader(path)
    for _ in range(2):
        with pytest.raises(DamagedJournal):
            reader.read()


async def test_what_could_not_be_written_is_written_when_there_is_room_again(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    journal = JournalWriter(path)
    journal.record(delta("first"))
    await journal.settle()
    with no_larger_files_than(path.stat().st_size + 50):
        journal.record(delta("second"))
        for _ in range(2):
            with pytest.raises(MassgenError) as caught:
                await journal.settle()
            assert caught.value.code == "disk_full"
        reader = JournalReader(path)
        assert [record.seq for record in reader.read()] == [1]
    journal.record(delta("third"))
    await journal.settle()
    journal.close()
    assert [record.seq for record in reader.read()] == [2, 3]
    assert [getattr(record.event, "text", "") for record in JournalReader(path).read()] == ["first", "second", "third"]


async def test_events_recorded_during_a_write_that_fails_stay_behind_those_of_that_write(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    journal = JournalWriter(path)
    failed: list[str] = []

    async def say(number: int) -> None:
        for _ in range(number):
            await anyio.lowlevel.checkpoint()
        journal.record(delta(str(number)))
        try:
            await journal.settle()
        except MassgenError as error:
            failed.append(error.code)

    with no_larger_files_than(50):
        async with anyio.create_task_group() as tasks:
            for number in range(100):
                tasks.start_soon(say, number)
    assert failed == ["disk_full"] * 100
    await journal.settle()
    journal.close()
    texts = [getattr(record.event, "text", "") for record in JournalReader(path).read()]
    assert texts == [str(number) for number in range(100)]


async def test_a_journal_closed_after_a_failed_write_ends_with_what_was_settled(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    await write(path, "first")
    settled = path.read_bytes()
    journal = JournalWriter(path)
    with no_larger_files_than(len(settled) + 50):
        journal.record(delta("second"))
        with pytest.raises(MassgenError):
            await journal.settle()
        assert len(path.read_bytes()) > len(settled), "the kernel wrote a part of it"
        journal.close()
    assert path.read_bytes() == settled


async def test_listeners_hear_every_event_when_it_is_recorded(tmp_path: Path) -> None:
    journal = JournalWriter(tmp_path / "e.jsonl")
    heard: list[int] = []
    journal.listen(lambda record: heard.append(record.seq))
    journal.record(FinishRequested())
    assert heard == [1]
    journal.close()
