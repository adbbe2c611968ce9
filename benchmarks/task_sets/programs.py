"""Sixty coding tasks with hidden tests, and forty reviews, out of small functions and changes of their code that were
really run.
"""

import ast
import inspect
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from difflib import unified_diff
from random import Random
from types import FunctionType
from typing import Any

from benchmarks.deciding import functions
from benchmarks.deciding.variants import calls_of, returned, set_limits, versions_of
from benchmarks.task_sets import more

SEED = 20261126
TESTS = 20
TASKS, REVIEWS, WITHOUT_BUG = 60, 40, 10
FILE = "tools.py"

CODING = """\
Write this function in Python, with its standard library only. What its docstring says is all that is asked.

{stub}

For example `{call}` returns `{prints}`. Your answer holds the whole function in one block of code."""
REVIEW = """\
This change adds a function to {file}. Its docstring says what it is to do. There is at most one wrong line in it. \
Which line of the new file is that, counted from 1? Where none is wrong, the answer is: none

{diff}"""


def made() -> dict[str, list[dict[str, Any]]]:
    """The lines of both sets. The changed programs run in a process of their own, which has limits."""
    command = [sys.executable, "-m", "benchmarks.task_sets.programs"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def _functions() -> Mapping[str, FunctionType]:
    found = [*inspect.getmembers(more, inspect.isfunction), *inspect.getmembers(functions, inspect.isfunction)]
    return dict(found[:TASKS])


def _sources() -> Mapping[str, str]:
    return {name: inspect.getsource(function) for name, function in _functions().items()}


def _calls(name: str) -> list[str]:
    """The example and the hidden tests; a bug has to show in one of them."""
    return list(dict.fromkeys(calls_of(_functions()[name], Random(f"{SEED}/{name}"))))[: TESTS + 1]


def _coding() -> Iterator[dict[str, Any]]:
    for name, source in _sources().items():
        calls = _calls(name)
        results = returned(source, name, calls)
        example, *tests = (
            {"call": f"{name}({call})", "prints": result} for call, result in zip(calls, results, strict=True)
        )
        yield {
            "id": name,
            "input": CODING.format(stub=_stub(source), call=example["call"], prints=example["prints"]),
            "target": source,
            "example": [example],
            "tests": tests,
        }


def _stub(source: str) -> str:
    tree = ast.parse(source)
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    function.body = function.body[:1]
    return ast.unparse(tree)


def _reviews() -> Iterator[dict[str, Any]]:
    random = Random(f"{SEED}/reviews")
    sources = {name: ast.unparse(ast.parse(source)) for name, source in _sources().items()}
    names = [name for name in sources if len(sources[name].splitlines()) > 2]
    random.shuffle(names)
    made = 0
    for name in names:
        around = [sources[other] for other in random.sample([one for one in sources if one != name], 2)]
        bugs = [] if made < WITHOUT_BUG else _bugs(name, sources[name])
        if made >= WITHOUT_BUG and not bugs:
            continue
        version = random.choice(bugs) if bugs else sources[name]
        yield _review(name, sources[name], version, around)
        made += 1
        if made == REVIEWS:
            return


def _bugs(name: str, source: str) -> list[str]:
    """Changes of one line that return something else, and do not show as one that nobody would write."""
    calls = _calls(name)
    right = returned(source, name, calls)
    return [
        version
        for version in [*versions_of(source)][1:]
        if version != source
        and len(version.splitlines()) == len(source.splitlines())
        and sum(a != b for a, b in zip(version.splitlines(), source.splitlines(), strict=True)) == 1
        and "if False" not in version
        and returned(version, name, calls) != right
    ]


def _review(name: str, right: str, version: str, around: list[str]) -> dict[str, Any]:
    before, after = "\n\n\n".join(around), "\n\n\n".join([around[0], version, around[1]])
    diff = "\n".join(unified_diff(before.splitlines(), after.splitlines(), f"a/{FILE}", f"b/{FILE}", lineterm=""))
    first = len(around[0].splitlines()) + 3
    lines = zip(version.splitlines(), right.splitlines(), strict=True)
    bug = next((str(first + at) for at, (one, other) in enumerate(lines) if one != other), "none")
    return {"id": f"review-{name}", "input": REVIEW.format(file=FILE, diff=diff), "target": bug}


if __name__ == "__main__":
    set_limits()
    print(json.dumps({"coding": [*_coding()], "reviews": [*_reviews()]}))
