# ruff: noqa: E501 - a row a line
"""Models call tools as they learned it in other agents: by other names, with other arguments, in bash. None is lost."""

import subprocess
from pathlib import Path
from typing import Any, NamedTuple, cast

from massgen_mcp.config.loader import config_from_data
from massgen_mcp.events.agent_work import ToolFinished
from massgen_mcp.events.coordination import AnswerSubmitted
from massgen_mcp.tools.aliases import resolve_call
from massgen_mcp.tools.codex_patch import apply_hunks, parse_patch
from tests.needs import needs
from tests.teams import run_team

PATCH = """\
*** Begin Patch
*** Update File: project/src/a.py
@@ def insert(row):
-    return row
+    return [row]
*** Add File: project/src/b.py
+VALUE = 1
*** End Patch"""
SECOND = (
    PATCH.replace("    return row\n", "    return [row]\n")
    .replace("+    return [row]", "+    return (row,)")
    .replace("b.py", "c.py")
)


class Habit(NamedTuple):
    """A call, and what its result holds. `PROJECT` stands for where the caller's directory lies."""

    name: str
    arguments: dict[str, Any]
    result: str


HABITS = (
    Habit("shell", {"command": ["bash", "-lc", "ls project"]}, "README.md"),
    Habit("read_file", {"path": "PROJECT/README.md", "limit": 3}, "# project"),
    Habit("read_file", {"path": "project/README.md", "limit": 3}, "# project"),
    Habit("read_file", {"path": "project"}, "list_files"),
    Habit("edit_file", {"path": "project/README.md", "old_string": "# project", "new_string": "# x"}, "replaced 1"),
    Habit("write_file", {"path": "PROJECT/new.txt", "content": "x\n"}, "wrote 2 bytes"),
    Habit("read_file", {"path": "project/new.txt"}, "x"),
    Habit("run_command", {"command": "cd project; source ./env.sh && echo $FROM_ENV"}, "sourced"),
    Habit("run_command", {"command": "cat <<< hi"}, "hi"),
    Habit("run_command", {"command": "(sleep 1; echo LATE) &> out.log; cat out.log; echo end"}, "LATE\nend"),
    Habit("run_command", {"command": "pwd", "workdir": "/workspace/project"}, "/workspace/project"),
    Habit("run_command", {"command": "echo ok", "timeout": 120000}, "ok"),
    Habit("run_command", {"command": "echo ok", "timeout_seconds": "30"}, "ok"),
    Habit("run_command", {"cmd": "echo from cmd"}, "from cmd"),
    Habit("search_files", {"pattern": "def insert\\(", "path": "project", "glob": "*.py"}, "src/a.py:1"),
    Habit("list_files", {"path": "project", "recursive": True}, "src/a.py"),
    Habit("read_file", {"path": "project/src/a.py"}, "def insert"),
    Habit("Bash", {"command": "echo hello", "description": "Say hello"}, "hello"),
    Habit("Bash", {"command": "[[ abc == a* ]] && echo matches"}, "matches"),
    Habit("Bash", {"command": "set -o pipefail; false | true; echo ${PIPESTATUS[0]}", "timeout": 5000}, "1"),
    Habit("Bash", {"command": "diff <(echo a) <(echo a) && echo same", "run_in_background": False}, "same"),
    Habit("Read", {"file_path": "/workspace/project/src/a.py", "offset": 1, "limit": 1}, "def insert"),
    Habit("Read", {"file_path": "PROJECT/src/a.py"}, "def insert"),
    Habit("read_file", {"path": "/context/project/src/a.py", "start_line": 1, "end_line": 1}, "def insert"),
    Habit("Edit", {"file_path": "project/src/a.py", "old_string": "return row", "new_string": "return  row"}, "replaced"),
    Habit(
        "Edit",
        {"file_path": "/workspace/project/src/a.py", "old_string": "return  row", "new_string": "return row",
         "replace_all": False},
        "replaced",
    ),
    Habit("Write", {"file_path": "project/made.py", "content": "MADE = 1\n"}, "wrote 9 bytes"),
    Habit("Glob", {"pattern": "**/*.py", "path": "project"}, "src/a.py"),
    Habit("Glob", {"pattern": "project/**/*.md"}, "README.md"),
    Habit("Grep", {"pattern": "insert", "path": "project", "output_mode": "content", "-n": True}, "src/a.py:1"),
    Habit("Grep", {"pattern": "INSERT", "path": "/workspace/project", "-i": True, "type": "py"}, "src/a.py:1"),
    Habit("LS", {"path": "/workspace/project"}, "README.md"),
    Habit("ls", {"directory": "project"}, "README.md"),
    Habit("str_replace_editor", {"command": "view", "path": "/workspace/project/src/a.py", "view_range": [1, 1]}, "insert"),
    Habit(
        "str_replace_based_edit_tool",
        {"command": "str_replace", "path": "project/made.py", "old_str": "MADE", "new_str": "DONE"},
        "replaced 1",
    ),
    Habit("str_replace_editor", {"command": "create", "path": "project/two.py", "file_text": "TWO = 2\n"}, "wrote 8"),
    Habit("apply_patch", {"input": PATCH}, "update project/src/a.py\nadd project/src/b.py"),
    Habit("shell", {"command": ["apply_patch", SECOND]}, "update project/src/a.py"),
    Habit("run_shell_command", {"command": "cat project/src/a.py project/src/b.py", "directory": "."}, "return (row,)"),
    Habit("execute_command", {"command": "echo cline"}, "cline"),
    Habit("write_to_file", {"path": "project/three.py", "content": "3\n"}, "wrote 2"),
    Habit("replace", {"file_path": "project/three.py", "old_string": "3", "new_string": "33"}, "replaced 1"),
    Habit("search_file_content", {"pattern": "33", "include": "*.py", "path": "project"}, "three.py:1"),
    Habit("list_directory", {"path": "project"}, "three.py"),
    Habit("exec_command", {"cmd": "echo codex", "workdir": "project", "yield_time_ms": 1000}, "codex"),
    Habit("run_terminal_cmd", {"command": "echo cursor", "is_background": False, "explanation": "x"}, "cursor"),
    Habit("functions.run_command", {"command": "echo prefixed"}, "prefixed"),
    Habit("TodoWrite", {"todos": []}, "There is no tool named 'TodoWrite'"),
)  # fmt: skip
"""What Claude Code, Codex, Gemini CLI, Cline and Cursor have, and what their models write."""


def make_project(place: Path) -> Path:
    (place / "src").mkdir(parents=True)
    (place / "README.md").write_text("# project\n\nText.\n")
    (place / "env.sh").write_text("FROM_ENV=sourced\n")
    (place / "src/a.py").write_text("def insert(row):\n    return row\n")
    for words in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"]):
        subprocess.run(["git", *words], cwd=place, check=True)
    return place


@needs("bwrap")
async def test_calls_in_the_habit_of_other_agents_do_what_they_mean(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project")

    def placed(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: placed(item) for key, item in cast("dict[str, Any]", value).items()}
        return value.replace("PROJECT", str(project)) if isinstance(value, str) else value

    steps = [{"call": habit.name, "arguments": placed(habit.arguments)} for habit in HABITS]
    data = {
        "agents": [{"backend": {"type": "scripted", "script": [*steps, {"answer": "done"}]}}],
        "orchestrator": {
            "context_paths": [{"path": str(project), "permission": "write"}],
            "commands": {"enabled": True, "sandbox": "bubblewrap"},
            "max_steps_per_round": len(HABITS) + 5,
        },
    }
    ended = await run_team(
        tmp_path / "r", config_from_data(data, "test", environ={}), environ={"MASSGEN_MCP_HOME": str(tmp_path / "home")}
    )
    results = [event.result for event in ended.of(ToolFinished)]
    lost = [
        f"{habit.name} {habit.arguments}: {result[:300]}"
        for habit, result in zip(HABITS, results, strict=True)
        if habit.result not in result
    ]
    assert lost == []
    assert ended.of(AnswerSubmitted)
    assert (project / "src/a.py").read_text() == "def insert(row):\n    return row\n", "the caller's own file"


def test_a_call_that_is_ours_is_left_as_it_is() -> None:
    offered: dict[str, Any] = {"read_file": None, "run_command": None}
    for name, arguments in (
        ("read_file", {"path": "a", "offset": 3}),
        ("run_command", {"command": "ls", "background": True}),
        ("get_weather", {"file_path": "x"}),
        ("Write", {"file_path": "x", "content": "y"}),
    ):
        assert resolve_call(name, dict(arguments), offered) == (name, arguments)


def test_a_patch_changes_the_lines_that_it_names_in_their_order() -> None:
    patch = "*** Begin Patch\n*** Update File: a\n@@ two\n x\n-y\n+z\n*** End Patch"
    (change,) = parse_patch(patch)
    assert apply_hunks("one\nx\ny\ntwo\nx\ny\n", change) == "one\nx\ny\ntwo\nx\nz\n"
    assert apply_hunks("two\r\nx\r\ny\r\n", change) == "two\r\nx\r\nz\r\n"
