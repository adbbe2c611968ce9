"""The journal of a run: whole lines or nothing, one order, and nothing acted upon before it is on disk."""

from pathlib import Path

import anyio
import pytest

from massgen_mcp.errors import MassgenError
from massgen_mcp.events import FinishRequested, TextDelta
from massgen_mcp.runs.journal import JournalReader, JournalWriter


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


async def test_a_reader_gives_what_is_new_also_while_a_line_is_being_written(
    tmp_path: Path,
) -> None:
    path = tmp_path / "e.jsonl"
    reader = JournalReader(path)
    assert reader.read() == []
    await write(path, "one")
    line = path.read_bytes()
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
    assert caught.value.code == "store_unavailable"


async def test_listeners_hear_every_event_when_it_is_recorded(tmp_path: Path) -> None:
    journal = JournalWriter(tmp_path / "e.jsonl")
    heard: list[int] = []
    journal.listen(lambda record: heard.append(record.seq))
    journal.record(FinishRequested())
    assert heard == [1]
    journal.close()
