"""Questions as whole runs: agents write their programs, and their tests run in the real sandbox."""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio

from benchmarks.deciding.doubles import Trial, Written
from massgen_mcp.coordination.testing import judged_tests
from massgen_mcp.events.coordination import WinnerChosen
from tests.checks.project import commit, play, write

AT_ONCE = 2


def agreeing(trials: Sequence[Trial]) -> list[bool]:
    """For each question whether every verdict of every test was the one that the programs returned before."""
    return anyio.run(_all, trials)


async def _all(trials: Sequence[Trial]) -> list[bool]:
    found = [False] * len(trials)
    room = anyio.Semaphore(AT_ONCE)
    with tempfile.TemporaryDirectory(prefix="deciding-") as place:

        async def one(at: int, trial: Trial) -> None:
            async with room:
                found[at] = await _agrees(Path(place) / str(at), Path(place) / "home", trial)

        async with anyio.create_task_group() as tasks:
            for at, trial in enumerate(trials):
                tasks.start_soon(one, at, trial)
    return found


async def _agrees(place: Path, home: Path, trial: Trial) -> bool:
    project = place / "project"
    project.mkdir(parents=True)
    (project / "solution.py").write_text("")
    commit(project)
    tests = {f"agent_{'abc'[agent]}": trial.tests(agent)[:1] for agent in range(len(trial.programs))}
    scripts = [_script(trial, agent, tests[f"agent_{'abc'[agent]}"]) for agent in range(len(trial.programs))]
    environ = {"MASSGEN_MCP_HOME": str(home), "PATH": os.environ.get("PATH", os.defpath)}
    ended = await play(place, project, environ, *scripts, checks=[], decide="checks")
    judged = judged_tests(ended.snapshot.coordination)
    cached = [
        [
            f"agent{agent + 1}.1"
            for agent, program in enumerate(trial.programs)
            if program.seen[test.at] == test.expected
        ]
        for author in tests
        for test in tests[author]
    ]
    return (
        bool(ended.of(WinnerChosen))
        and [list(one.passed) for one in judged] == cached
        and not any(one.void in ("not_run", "flaky") for one in judged)
    )


def _script(trial: Trial, agent: int, tests: Sequence[Written]) -> list[dict[str, Any]]:
    name = trial.task.name
    written = [
        {
            "title": f"{name}({trial.task.inputs[test.at]})",
            "script": f"python3 - <<'END'\n{_call(name, trial.task.inputs[test.at])}\nEND",
            "expected": test.expected,
        }
        for test in tests
    ]
    source = f"# by {agent}\n{trial.programs[agent].source}\n"
    return [
        write("solution.py", source),
        {"answer": f"answer {agent}"},
        {"call": "submit_tests", "arguments": {"tests": written}},
        {"vote": "own"},
    ]


def _call(name: str, arguments: str) -> str:
    """What prints what comes out, as the benchmark writes it."""
    return (
        f"import sys\nsys.path.insert(0, '.')\nfrom solution import {name}\n"
        f"try:\n    print(repr({name}({arguments})))\nexcept Exception as error:\n    print(type(error).__name__)"
    )
