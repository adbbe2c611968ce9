"""The task sets that ship: what each item calls right is right, and a wrong answer is wrong."""

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.task_sets.__main__ import PLACE, task_sets
from massgen_mcp.errors import MassgenError
from massgen_mcp.evaluation.scoring import RUNNER, Scorer
from massgen_mcp.evaluation.tasks import Item, read_items
from massgen_mcp.sandbox import SandboxChoice
from tests.evaluation.second_ways import SECOND_WAYS

QUESTIONS, REVIEWS, CODING = (read_items(f"@{name}") for name in ("questions", "reviews", "coding"))
BY_TEXT = Scorer(SandboxChoice(None))

ALL_AT_ONCE = """\
import contextlib, io, json, sys
runner, programs, calls = json.load(sys.stdin)
told = []
for program, asked in zip(programs, calls, strict=True):
    files = {"/workspace/solution.py": program, "/workspace/calls.txt": "\\n".join(asked)}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(runner, {"open": lambda name: io.StringIO(files[name])})
    told.append(printed.getvalue().splitlines())
print(json.dumps(told))
"""
"""What the sandbox runs, without it and for many programs in one process: these are our own."""


def printed(programs: list[str], calls: list[list[str]]) -> list[list[str]]:
    done = subprocess.run(
        [sys.executable, "-c", ALL_AT_ONCE],
        input=json.dumps([RUNNER, programs, calls]),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return json.loads(done.stdout)


def test_there_are_so_many_as_the_documents_say() -> None:
    assert (len(QUESTIONS), len(REVIEWS), len(CODING)) == (100, 40, 60)
    assert sum(item.target == "none" for item in REVIEWS) == 10


@pytest.mark.parametrize("kind", SECOND_WAYS)
async def test_each_question_has_the_answer_that_a_second_way_finds_too(kind: str) -> None:
    items = [item for item in QUESTIONS if item.id.startswith(f"{kind}-")]
    assert len(items) == 10
    for item in items:
        found = SECOND_WAYS[kind](item.input)
        assert await BY_TEXT.is_right(item, f"I thought about it.\n\n**ANSWER:** {found}."), item
        assert not await BY_TEXT.is_right(item, f"ANSWER: {found}1"), item
        assert not await BY_TEXT.is_right(item, f"It is {found}."), "without the line it is wrong"


def test_each_reference_passes_its_hidden_tests_and_a_wrong_program_fails_them() -> None:
    wrong = [re.sub(r"return (.+)", r"return (\1, None)", str(item.target)) for item in CODING]
    calls = [[test.call for test in item.tests] for item in CODING]
    for programs, passes in (([str(item.target) for item in CODING], True), (wrong, False)):
        for item, lines in zip(CODING, printed(programs, calls), strict=True):
            assert (lines == [f"> {test.prints}" for test in item.tests]) is passes, item.id


def test_hidden_tests_are_hidden_and_the_example_is_told() -> None:
    for item in CODING:
        assert len(item.tests) == 20
        assert all(test.call not in item.question for test in item.tests)
        assert all(f"`{test.call}` returns `{test.prints}`" in item.question for test in item.example)


def sides(item: Item) -> tuple[list[str], int, int]:
    """The lines of the new file that the diff shows with their number, and which of them are added."""
    first = int(re.findall(r"^@@ -\S+ \+(\d+)", item.input, re.MULTILINE)[0])
    lines = item.input.split("@@\n", 1)[1].splitlines()
    added = [at for at, line in enumerate(lines) if line.startswith("+")]
    return [line[1:] for line in lines], first, added[0]


def test_each_seeded_bug_is_in_the_line_that_is_called_wrong_and_changes_what_is_returned() -> None:
    references = {item.id: item for item in CODING}
    programs: list[str] = []
    calls: list[list[str]] = []
    for item in REVIEWS:
        reference = references[item.id.removeprefix("review-")]
        lines, first, begin = sides(item)
        program = [line[1:] for line in item.input.split("@@\n", 1)[1].splitlines() if line.startswith("+")]
        if item.target != "none":
            place = int(str(item.target)) - first - begin
            assert 0 < place < len(program), item.id
            assert lines[begin + place] == program[place]
        programs.append("\n".join(program))
        calls.append([test.call for test in (*reference.example, *reference.tests)])
    for item, lines in zip(REVIEWS, printed(programs, calls), strict=True):
        reference = references[item.id.removeprefix("review-")]
        right = [f"> {test.prints}" for test in (*reference.example, *reference.tests)]
        assert (lines == right) is (item.target == "none"), item.id


async def test_in_the_sandbox_a_program_that_ends_the_process_passes_nothing() -> None:
    scorer = await Scorer.ready(CODING)
    item = CODING[0]
    assert await scorer.is_right(item, f"So:\n\n```python\n{item.target}```\n")
    assert await scorer.passes(item.example, str(item.target))
    assert not await scorer.is_right(item, "import sys\nprint('> 1')\nsys.exit(0)")
    assert not await scorer.is_right(item, "this is no program")


@pytest.mark.parametrize(
    ("answer", "target", "right"),
    [
        ("ANSWER: 1,234", "1234", True),
        ("ANSWER: 12.50", "12.5", True),
        ("ANSWER: 2/4", "1/2", True),
        ("first\nANSWER: 3\nANSWER: 4", "4", True),
        ("`answer`: Paris", "paris", True),
        ("ANSWER: 1/0", "0", False),
        ("ANSWER: the answer is 4", "4", False),
        ("", "4", False),
    ],
)
async def test_what_counts_as_the_same_answer(answer: str, target: str, right: bool) -> None:
    assert await BY_TEXT.is_right(Item(input="?", target=target), answer) is right
    assert await BY_TEXT.is_right(Item(input="?", target=("nothing", target)), answer) is right


def test_what_the_generator_makes_is_what_ships() -> None:
    made = task_sets()
    for name in ("questions.jsonl", "coding.jsonl"):  # `ast.unparse`, which reviews are made of, differs by version
        assert made[name] == (PLACE / name).read_text(), "python -m benchmarks.task_sets"


def test_a_file_of_ones_own_is_read_and_every_wrong_line_of_it_named(tmp_path: Path) -> None:
    file = tmp_path / "mine.jsonl"
    file.write_text(
        '{"input": "1 + 1?", "target": "2", "metadata": {"from": "me"}}\n\n{"input": "?", "target": ["a"]}\n'
    )
    assert [(item.id, item.targets) for item in read_items(str(file))] == [("1", ("2",)), ("3", ("a",))]
    file.write_text('\ufeff{"input": "a\u2028b\x85c", "target": "a"}\n')
    assert [item.input for item in read_items(str(file))] == ["a\u2028b\x85c"]
    file.write_text('{"input": "?"}\n{"input": "?", "target": "2", "choices": []}\nnothing\n')
    with pytest.raises(MassgenError) as fault:
        read_items(str(file))
    assert [line.rpartition("mine.jsonl:")[2][:1] for line in str(fault.value).splitlines()] == ["1", "2", "3"]
    with pytest.raises(MassgenError, match="there are no built-in tasks called @nothing; available: @questions"):
        read_items("@nothing")


HUMAN_EVAL = {
    "task_id": "HumanEval/0",
    "prompt": 'def twice(n: int) -> int:\n    """Two times n."""\n',
    "entry_point": "twice",
    "canonical_solution": "    return 2 * n\n",
    "test": "\n\nM = {}\n\n\ndef check(candidate):\n    assert candidate(2) == 4\n    assert candidate(-1) == -2\n",
}
GSM8K = {"question": "6 * 7?", "answer": "It is <<6*7=42>>42.\n#### 42"}


async def test_public_sets_are_read_as_they_are_published(tmp_path: Path) -> None:
    file = tmp_path / "HumanEval.jsonl.gz"
    file.write_bytes(gzip.compress(json.dumps(HUMAN_EVAL).encode()))
    (item,) = read_items(str(file))
    assert item.id == "HumanEval/0"
    assert "def twice" in item.question
    scorer = await Scorer.ready([item])
    assert await scorer.is_right(item, f"```python\n{item.target}```")
    for program in ("def twice(n):\n    return n + 2", "def twice(n):\n    exit()", "def check(f): ..."):
        assert not await scorer.is_right(item, f"```python\n{program}\n```"), program
    (tmp_path / "gsm8k.jsonl").write_text(json.dumps(GSM8K))
    (item,) = read_items(str(tmp_path / "gsm8k.jsonl"))
    assert await BY_TEXT.is_right(item, "ANSWER: 42")
    (tmp_path / "cut.jsonl.gz").write_bytes(file.read_bytes()[:-9])
    with pytest.raises(MassgenError, match=r"cut.jsonl.gz: cannot be read: it is neither UTF-8 nor gzip"):
        read_items(str(tmp_path / "cut.jsonl.gz"))
