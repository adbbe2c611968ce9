"""Whether an answer is right: by what it says after `ANSWER:`, or by what its program returns in the sandbox.

Strict on purpose: an answer that keeps to no form is wrong, whoever gave it.
"""

import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from massgen_mcp.errors import MassgenError
from massgen_mcp.evaluation.tasks import Item, TestCall
from massgen_mcp.home import known_levels
from massgen_mcp.sandbox import Policy, ResourceLimits, SandboxChoice, SandboxFailed, Wishes, choose, spawn
from massgen_mcp.sandbox.process import Output, take

_ANSWER_LINE = re.compile(r"^\W*answer\W*:(.*)$", re.IGNORECASE | re.MULTILINE)
_THOUSANDS = re.compile(r"-?\d{1,3}(,\d{3})+(\.\d+)?")
_NUMBER = re.compile(r"-?\d{1,40}(\.\d{1,40}|/\d{1,40})?")
_BLOCK = re.compile(r"^```[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
_SECONDS = 20
_SHORT = 80
RUNNER = """\
import sys
sys.path.insert(0, "/workspace")
names = {}
exec(compile(open("/workspace/solution.py").read(), "solution.py", "exec"), names)
for call in open("/workspace/calls.txt").read().splitlines():
    try:
        print(">", repr(eval(call, names)), flush=True)
    except Exception as error:
        print(">", type(error).__name__, flush=True)
"""
"""Prints what each call returns. What is expected is not there: it is compared outside."""


def short_answer(answer: str | None) -> str | None:
    """What the last line with `ANSWER:` says, in one form for all that are the same; None without such a line."""
    found = _ANSWER_LINE.findall(answer or "")
    return _plain(found[-1]) if found else None


def _plain(text: str) -> str:
    words = " ".join(text.strip(" \t*_`\"'.$").casefold().split())
    number = words.replace(",", "") if _THOUSANDS.fullmatch(words) else words
    try:
        return str(Fraction(number)) if _NUMBER.fullmatch(number) else words
    except ZeroDivisionError:
        return words


def item_of_run(run_id: str, question: str, right: str) -> Item | None:
    """A question that was asked before, with what proved right; None where that is no short answer, so that another one
    could not be compared with it.
    """
    short = short_answer(right) or right.strip()
    target = short if len(short) <= _SHORT and "\n" not in short else None
    return None if target is None else Item(id=run_id, input=question, target=target)


def program_in(answer: str) -> str:
    """The last block of code, or all of it where there is none."""
    blocks = _BLOCK.findall(answer)
    return blocks[-1] if blocks else answer


@dataclass(frozen=True, slots=True)
class Scorer:
    sandbox: SandboxChoice

    @classmethod
    async def ready(cls, items: Sequence[Item], environ: Mapping[str, str] = os.environ) -> "Scorer":
        """Raises `MassgenError` where programs are to run and nothing holds them."""
        if not any(item.tests for item in items):
            return cls(SandboxChoice(None))
        choice = await choose(Wishes(), known_levels(environ))
        if choice.level is None:
            raise MassgenError(
                "invalid_arguments", f"these tasks need a sandbox to run model-written programs: {choice.why}"
            )
        return cls(choice)

    async def is_right(self, item: Item, answer: str | None) -> bool:
        if answer is None:
            return False
        if item.tests:
            return await self.passes(item.tests, answer)
        return short_answer(answer) in {_plain(target) for target in item.targets}

    async def passes(self, tests: Sequence[TestCall], answer: str) -> bool:
        """Whether the program in the answer returns what they expect. Raises `MassgenError` internal without a
        sandbox.
        """
        with tempfile.TemporaryDirectory(prefix="massgen-eval-") as place:
            workspace, scratch = Path(place) / "workspace", Path(place) / "scratch"
            workspace.mkdir()
            scratch.mkdir()
            (workspace / "solution.py").write_text(program_in(answer), errors="replace")
            (workspace / "calls.txt").write_text("\n".join(test.call for test in tests))
            (workspace / "runner.py").write_text(RUNNER)
            return await self._printed(workspace, scratch) == [f"> {test.prints}" for test in tests]

    async def _printed(self, workspace: Path, scratch: Path) -> list[str]:
        level, output = self.sandbox.level, Output()
        if level is None:
            raise MassgenError("internal", "the task needs to run a program, but no sandbox is available")
        policy = Policy(workspace=workspace, scratch=scratch, bounds=ResourceLimits(seconds=_SECONDS))
        try:
            async with spawn(["python3", "/workspace/runner.py"], policy, level) as process:
                await take(process, output)
                await process.wait()
        except SandboxFailed as failed:
            raise MassgenError("internal", f"cannot run a program: {failed}") from failed
        return output.text().splitlines()
