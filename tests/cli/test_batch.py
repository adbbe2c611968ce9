"""`massgen batch`: many questions, each paid for once, whatever happens on the way."""

import json
import re
import signal
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.busy_double import BusyDouble, busy_server
from tests.commands import run_command
from tests.harness import COMMAND_MODULE, SERVER_MODULE, TempHome, agent, poll_until, spawned, wait_until
from tests.raw_double import reply, sse
from tests.terminal import terminal

QUESTIONS = [f"How much is {number} and {number}?" for number in range(6)]


def answering() -> bytes:
    """A reply that gives an answer."""
    function = {"name": "new_answer", "arguments": '{"content": "42"}'}
    delta = {"role": "assistant", "tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": function}]}
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    end: dict[str, Any] = {"index": 0, "delta": {}, "finish_reason": "tool_calls"}
    return reply(sse({**chunk, "choices": [{"index": 0, "delta": delta}]}, {**chunk, "choices": [end]}))


def written(home: TempHome, *lines: dict[str, Any] | str, name: str = "questions.jsonl") -> Path:
    file = home.work / name
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    file.write_text("".join(f"{text}\n" for text in texts))
    return file


def asking(double: BusyDouble, home: TempHome) -> str:
    backend = {"type": "chatcompletion", "model": "m", "base_url": f"{double.url}/v1"}
    return home.config("asking", {"id": "ada", "backend": backend})


def results(home: TempHome, name: str = "questions.results.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (home.work / name).read_bytes().splitlines()]


def batch(home: TempHome, *arguments: str, code: int = 0) -> str:
    """What it told, the summary first."""
    done = run_command(home, COMMAND_MODULE, "batch", *arguments)
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def count_of_runs(home: TempHome) -> int:
    return len(json.loads(run_command(home, SERVER_MODULE, "runs", "--json", "--kind", "all").stdout)["runs"])


def test_each_question_becomes_a_line_and_a_second_call_asks_nothing(home: TempHome) -> None:
    other = home.config("other", agent("bo", {"answer": "from another team"}))
    written(
        home, {"question": "One?"}, {"question": "Two?", "id": "second", "config": other}, "", {"question": "Four?"}
    )
    told = batch(home, "questions.jsonl", "--config", "@examples/scripted")
    assert re.match(r"3 questions: 3 completed; \$\d\.\d{4}; questions.results.jsonl\n", told), told
    assert {one["id"]: one["question"] for one in results(home)} == {"1": "One?", "second": "Two?", "4": "Four?"}
    (second,) = [one for one in results(home) if one["id"] == "second"]
    assert (second["answer"], second["state"], second["error"]) == ("from another team", "completed", None)
    assert {"outcome", "weak", "usd", "seconds", "run_id"} < second.keys()
    before = results(home)
    assert "3 of 3 questions are already done" in batch(home, "questions.jsonl", "--config", "@examples/scripted")
    assert results(home) == before
    assert count_of_runs(home) == 3


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGINT])
async def test_who_is_killed_calls_again_and_each_question_is_paid_for_once(
    home: TempHome, sign: signal.Signals
) -> None:
    written(home, *({"question": question} for question in QUESTIONS))
    hold = anyio.Event()
    async with busy_server(answering(), hold=hold) as double:
        command = ["batch", "questions.jsonl", "--config", asking(double, home), "--concurrency", "2"]
        async with spawned(home, home.python, "-m", COMMAND_MODULE, *command, cwd=home.work) as process:
            await wait_until(lambda: len(double.heads) == 2)
            process.send_signal(sign)
            await process.wait()
        hold.set()
        done = await anyio.to_thread.run_sync(lambda: run_command(home, COMMAND_MODULE, *command))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("6 questions: 6 completed;")
    for question in QUESTIONS:
        assert sum(question.encode() in body for body in double.bodies) == 1, question
    assert len(double.heads) == len(results(home)) == count_of_runs(home) == len(QUESTIONS)
    assert double.most_at_once <= 2


async def test_a_result_that_was_not_written_to_its_end_is_taken_from_the_run_and_not_paid_for_again(
    home: TempHome,
) -> None:
    written(home, *({"question": question} for question in QUESTIONS[:2]))
    async with busy_server(answering()) as double:
        command = ["questions.jsonl", "--config", asking(double, home)]
        await anyio.to_thread.run_sync(lambda: batch(home, *command))
        file = home.work / "questions.results.jsonl"
        whole = file.read_bytes()
        file.write_bytes(whole[:-20])
        await anyio.to_thread.run_sync(lambda: batch(home, *command))
    assert file.read_bytes() == whole
    assert len(double.heads) == 2


def test_the_sum_of_a_batch_says_that_a_part_of_it_is_unknown(home: TempHome) -> None:
    config = home.config("ada", agent("ada", {"answer": "42"}))
    written(home, {"question": "One?"}, {"question": "Two?"})
    batch(home, "questions.jsonl", "--config", config)
    first, second = results(home)
    known, unknown = {**first, "usd": 0.5, "priced": True}, {**second, "usd": 0.25, "priced": False}
    for line, said in (
        (unknown, "$0.7500+"),
        ({**unknown, "usd": None}, "$0.5000+"),
        ({**known, "id": "2"}, "$1.0000;"),
    ):
        written(home, known, {**line, "question": "Two?", "id": "2"}, name="questions.results.jsonl")
        assert said in batch(home, "questions.jsonl", "--config", config)


async def test_a_question_whose_run_failed_is_asked_again_by_the_next_call_and_only_then(home: TempHome) -> None:
    written(home, {"question": QUESTIONS[0]})
    refused = reply(b'{"error": {"message": "no"}}', status="401 Unauthorized", media_type="application/json")
    async with busy_server(refused, answering()) as double:
        command = ["questions.jsonl", "--config", asking(double, home)]
        await anyio.to_thread.run_sync(lambda: batch(home, *command, code=2))
        assert len(double.heads) == 1
        for _ in range(2):
            await anyio.to_thread.run_sync(lambda: batch(home, *command))
            assert len(double.heads) == 2
    assert [one["state"] for one in results(home)] == ["failed", "completed"]
    assert len({one["run_id"] for one in results(home)}) == 2


def test_no_run_begins_that_could_pass_the_budget_of_all(home: TempHome) -> None:
    price = {"input_usd_per_million": 10, "output_usd_per_million": 10}
    config = home.config("priced", agent("ada", {"answer": "yes"}, price=price), budget={"max_usd": 0.5})
    written(home, {"question": QUESTIONS[0]}, name="one.jsonl")
    batch(home, "one.jsonl", "--config", config)
    each = results(home, "one.results.jsonl")[0]["usd"]
    assert 0 < each < 0.5
    written(home, *({"question": question} for question in QUESTIONS))
    command = ["questions.jsonl", "--config", config, "--concurrency", "3", "--max-usd"]
    told = batch(home, *command, str(0.5 + 1.5 * each), code=2)
    assert told.startswith("6 questions: 2 completed, 4 not asked, because any of them could exceed the budget; lower ")
    assert batch(home, *command, "20").startswith("6 questions: 6 completed;")
    assert count_of_runs(home) == 7
    written(home, {"question": "Why?"})
    assert batch(home, *command, "0.4", "--max-usd-each", "0.3").startswith("1 questions: 1 completed;")
    assert "1 not asked" in batch(home, *command, "0.2", "--output-file", "new.jsonl", code=2)


def test_what_failed_is_told_and_asked_again_by_the_next_call(home: TempHome) -> None:
    written(home, {"question": "One?"})
    config = home.config("failing", agent("ada", {"fail": "auth"}))
    assert "1/1 1: failed: " in batch(home, "questions.jsonl", "--config", config, code=2)
    home.config("failing", agent("ada", {"answer": "now"}))
    assert batch(home, "questions.jsonl", "--config", config).startswith("1 questions: 1 completed;")
    assert [one["state"] for one in results(home)] == ["failed", "completed"]


def test_wrong_lines_are_named_by_their_numbers_before_anything_is_asked(home: TempHome) -> None:
    lines = ["no JSON", {"question": ""}, {"question": "a", "ids": 1}, {"question": "b", "id": "x"}]
    written(home, *lines, {"question": "c", "id": "x"}, {"question": "d", "max_usd": -1})
    told = batch(home, "questions.jsonl", "--config", "@examples/scripted", code=1)
    for number, fault in (
        (1, 'write one JSON object per line, such as {"question"'),
        (2, "question: "),
        (3, "ids: "),
        (5, "the id 'x' is"),
        (6, "max_usd: "),
    ):
        assert f"questions.jsonl:{number}: {fault}" in told
    written(home, {"question": "a"}, {"question": "b", "config": "no-such.yaml"}, {"question": "c", "cwd": "nowhere"})
    told = batch(home, "questions.jsonl", "--config", "@examples/scripted", code=1)
    assert "2: Config file not found: no-such.yaml. " in told
    assert "3: cwd: directory not found: 'nowhere'" in told
    assert count_of_runs(home) == 0


def test_a_line_ends_with_a_line_feed_alone_and_an_editors_mark_before_the_first_is_none_of_it(home: TempHome) -> None:
    question = "One\u2028or\x85two?"
    file = written(home, f"\ufeff{json.dumps({'question': question}, ensure_ascii=False)}\r")
    assert file.read_bytes().startswith(b"\xef\xbb\xbf")
    batch(home, "questions.jsonl", "--config", "@examples/scripted")
    assert [one["question"] for one in results(home)] == [question]


def test_no_other_file_is_taken_for_results_or_changed(home: TempHome) -> None:
    file = written(home, {"question": "a"})
    notes = home.work / "notes.md"
    for other in (b"Some notes", b"Some\nnotes\n", b'{"id": "x", "question": "y"}\n'):
        notes.write_bytes(other)
        told = batch(home, file.name, "--config", "@examples/scripted", "--output-file", notes.name, code=1)
        assert "notes.md: not a results file" in told
        assert notes.read_bytes() == other
    told = batch(home, file.name, "--config", "@examples/scripted", "--output-file", file.name, code=1)
    assert "use different files for the questions and the results" in told


def test_two_processes_never_work_on_one_batch(home: TempHome) -> None:
    written(home, {"question": "One?"})
    config = home.config("hanging", agent("ada", {"hang": True}))
    with terminal(home, "batch", "questions.jsonl", "--config", config, size=(100, 30)) as window:
        poll_until(lambda: count_of_runs(home))
        assert "another process is working on this batch" in batch(home, "questions.jsonl", "--config", config, code=1)
        window.type("\x03")
        assert window.leave() == 4
        assert "To run the rest, repeat the command." in window.everything


@pytest.mark.parametrize("option", ["--json", "--automation", "--no-logs", "--dry-run"])
def test_options_of_one_answer_do_not_go_with_many_questions(home: TempHome, option: str) -> None:
    written(home, {"question": "One?"})
    assert "batch accepts only FILE" in batch(home, "questions.jsonl", option, code=1)
    refused = run_command(home, COMMAND_MODULE, "--max-usd-each", "1", "q")
    assert (refused.returncode, "work only with: massgen batch FILE" in refused.stderr) == (1, True)
