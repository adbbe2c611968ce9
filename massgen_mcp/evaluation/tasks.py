"""Task sets: items with an input and what is right, from a file with a JSON object on each line; those of HumanEval and
GSM8K are read as they are published, also as `.gz`.

Three sets ship, made by `benchmarks.task_sets` and under this package's licence, Apache-2.0: `@questions` (100 with one
answer), `@reviews` (40 changes, 30 of them with a bug in one line), `@coding` (60 functions to write, hidden tests).
"""

import gzip
import hashlib
import json
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from massgen_mcp.errors import MassgenError
from massgen_mcp.events.coordination import FilesChecked

SHIPPED = ("questions", "reviews", "coding")
COMPLETE = "Complete this function. Your answer holds the whole program in one block of code."
HOW_TO_ANSWER = """\


End with a line of its own that holds your answer and nothing else, as short as it can be, after `ANSWER: `."""


class TestCall(BaseModel, frozen=True, extra="forbid"):
    """`call`: an expression of Python; `prints`: the `repr` of its value."""

    __test__ = False

    call: str
    prints: str


class Item(BaseModel, frozen=True, extra="forbid", hide_input_in_errors=True):
    """`target`: the right answer, several if each of them is right, or a program that passes `tests`."""

    id: str = Field(default="", max_length=120)
    input: str = Field(min_length=1)
    target: str | tuple[str, ...]
    example: tuple[TestCall, ...] = ()
    """Tests that the input tells of: by these one of several attempts may be chosen."""
    tests: tuple[TestCall, ...] = ()
    """Hidden ones. With them the answer is a program."""
    metadata: dict[str, Any] = Field(default_factory=dict[str, Any])
    """Of others; not used."""

    @property
    def question(self) -> str:
        """What is asked."""
        return self.input if self.tests else self.input + HOW_TO_ANSWER

    @property
    def targets(self) -> tuple[str, ...]:
        return (self.target,) if isinstance(self.target, str) else self.target


class Replayed(Item, frozen=True):
    """A task of an earlier run: its files as they were, and checks that what proved right passes."""

    target: str | tuple[str, ...] = ""
    places: tuple[str, ...]
    checks: tuple[str, ...]

    @property
    def question(self) -> str:
        return self.input

    def is_passed_by(self, checked: FilesChecked | None) -> bool:
        """`checked`: what the checks said of an answer's files; None: nothing, as there are none."""
        passed = {one.command for one in checked.outcomes if one.result == "passed"} if checked else ()
        return all(check in passed for check in self.checks)


def read_items(name: str) -> list[Item]:
    """Of `@questions`, `@reviews`, `@coding`, or of a file. Raises `MassgenError` invalid_arguments, naming every wrong
    line.
    """
    if name.startswith("@"):
        if name[1:] not in SHIPPED:
            raise MassgenError(
                "invalid_arguments", f"there are no built-in tasks called {name}; available: @{', @'.join(SHIPPED)}"
            )
        text = (resources.files("massgen_mcp.evaluation") / "tasks" / f"{name[1:]}.jsonl").read_text(encoding="utf-8")
    else:
        try:
            data = Path(name).read_bytes()
            text = (gzip.decompress(data) if name.endswith(".gz") else data).decode("utf-8-sig")
        except (OSError, EOFError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else "it is neither UTF-8 nor gzip"
            raise MassgenError("invalid_arguments", f"{name}: cannot be read: {reason}") from error
    return _items(text.split("\n"), name)


def _of_public_set(line: str) -> str:
    """A line of ours from one of HumanEval or GSM8K; any other line as it is."""
    try:
        found = json.loads(line)
    except ValueError:
        return line
    match found:
        case {"task_id": str(name), "prompt": str(prompt), "test": str(test), "entry_point": str(function)}:
            passed = hashlib.sha256(test.encode()).hexdigest()  # no program says so by chance
            call = f"exec({test!r}) or check({function}) or {passed!r}"
            question = f"{COMPLETE}\n\n{prompt}"
            target = prompt + str(found.get("canonical_solution", ""))
            found = {"id": name, "input": question, "target": target, "tests": [{"call": call, "prints": repr(passed)}]}
        case {"question": str(question), "answer": str(answer)} if "####" in answer:
            found = {"input": question, "target": answer.rpartition("####")[2].strip()}
        case _:
            return line
    return json.dumps(found)


def _items(lines: Sequence[str], source: str) -> list[Item]:
    found: dict[str, Item] = {}
    faults: list[str] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            item = Item.model_validate_json(_of_public_set(line))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            faults.append(f"{source}:{number}: {'.'.join(map(str, first['loc'])) or 'the line'}: {first['msg']}")
            continue
        item = item.model_copy(update={"id": item.id or str(number)})
        if item.id in found:
            faults.append(f"{source}:{number}: the id {item.id!a} is used twice")
        found[item.id] = item
    if faults or not found:
        raise MassgenError("invalid_arguments", "\n".join(faults) or f"{source}: the file is empty")
    return [*found.values()]
