"""`massgen_mcp.batch`: the same batch as on the command line, from a program."""

import json
import subprocess
import sys
from typing import Any

from tests.harness import TempHome, agent, home

__all__ = ["home"]

PROGRAM = """
import asyncio, json, sys
import massgen_mcp
given = json.loads(sys.argv[1])
try:
    print(json.dumps(asyncio.run(massgen_mcp.batch(given.pop("questions"), "answers.jsonl", **given))))
except massgen_mcp.MassgenError as error:
    print(json.dumps(str(error)))
"""


def asked(home: TempHome, questions: Any, **given: Any) -> Any:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps({"questions": questions, **given})],
        cwd=home.work,
        env=home.environ,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return json.loads(done.stdout)


def test_results_come_in_the_order_of_the_questions_and_stay_in_the_file(home: TempHome) -> None:
    config = home.config("team", agent("ada", {"answer": "yes"}))
    other = home.config("other", agent("bo", {"answer": "no"}))
    questions = ["One?", {"question": "Two?", "id": "second", "config": other}]
    results = asked(home, questions, config=config, concurrency=2, max_usd=20)
    assert [(one["id"], one["answer"], one["state"]) for one in results] == [
        ("1", "yes", "completed"),
        ("second", "no", "completed"),
    ]
    again = asked(home, [*questions, "Three?"], config=config)
    assert again[:2] == results, "they are the same runs"
    assert len((home.work / "answers.jsonl").read_text().splitlines()) == 3


def test_wrong_questions_and_arguments_are_told_before_anything_is_asked(home: TempHome) -> None:
    assert "questions:2: question: " in asked(home, ["a", {"id": "b"}], config="@examples/scripted")
    assert "1: There is no example @examples/scriptd." in asked(home, ["a"], config="@examples/scriptd")
    assert "unknown argument 'modell'; did you mean model?" in asked(home, ["a"], modell="scripted/x")
    assert (home.work / "answers.jsonl").read_text() == ""
