"""`massgen eval --from runs` with runs whose patch was applied: the same task on the same files, by the same checks."""

import json
from typing import Any

from tests.commands import run_command
from tests.harness import COMMAND_MODULE, SERVER_MODULE, TempHome, agent

WRONG, RIGHT = "def add(a, b):\n    return a - b\n", "def add(a, b):\n    return a + b\n"
CHECK = "python3 -c 'import add; assert add.add(1, 2) == 3'"


def member(name: str, content: str) -> dict[str, Any]:
    write = {"call": "write_file", "arguments": {"path": "project/add.py", "content": content}}
    return agent(name, write, {"answer": "done"})


def team(home: TempHome, name: str, *members: dict[str, Any], **orchestrator: Any) -> str:
    return home.config(name, *members, orchestrator={"max_new_answers_per_agent": 1, **orchestrator})


def told(home: TempHome, module: str, *arguments: str) -> dict[str, Any]:
    done = run_command(home, module, *arguments, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_a_patch_that_was_applied_and_stayed_is_asked_for_again_and_judged_by_its_checks(home: TempHome) -> None:
    project = home.work / "project"
    project.mkdir()
    work = {"context_paths": [{"path": str(project), "permission": "write"}], "checks": [CHECK]}
    fixed = team(home, "fixed", member("a", RIGHT), **work)
    for question, undo in (("Fix add, and take it back.", True), ("Fix add.", False)):
        (project / "add.py").write_text(WRONG)
        run_id = told(home, COMMAND_MODULE, "--config", fixed, "--apply", question)["run_id"]
        assert (project / "add.py").read_text() == RIGHT
        if undo:
            told(home, SERVER_MODULE, "apply", run_id, "--undo")
    one, worse = team(home, "one", member("a", RIGHT)), team(home, "worse", member("a", WRONG + "#\n"), agent("b"))
    found = told(home, COMMAND_MODULE, "eval", "--from", "runs", "--teams", worse, "--against", one)
    assert found["items"] == 1, "what was taken back proved nothing"
    rows = {row["name"]: row["right"] for row in found["rows"]}
    assert (rows["one model"], rows["same money as worse"], rows["worse"]) == (1, 1, 0)
    assert (project / "add.py").read_text() == RIGHT, "nothing is applied"
    lines = [json.loads(line) for line in (home.work / "runs.eval.jsonl").read_text().splitlines()]
    assert {line["question"] for line in lines} == {"Fix add."}
    assert next(line["members"] for line in lines if line["id"].startswith("worse/")) == {"a": False, "b": False}
    assert not [*(home.path / "checks" / "replayed").glob("*")], "the copies are gone"


def test_a_patch_without_a_check_is_not_asked_for_again(home: TempHome) -> None:
    project = home.work / "project"
    project.mkdir()
    (project / "add.py").write_text(WRONG)
    work = {"context_paths": [{"path": str(project), "permission": "write"}]}
    config = team(home, "fixed", member("a", RIGHT), **work)
    told(home, COMMAND_MODULE, "--config", config, "--apply", "Fix add.")
    one = team(home, "one", member("a", RIGHT))
    done = run_command(home, COMMAND_MODULE, "eval", "--from", "runs", "--teams", config, "--against", one)
    assert done.returncode == 1
    assert "1 run marked right, 0 of them usable (they have a short answer, or checks that pass on the" in done.stderr
