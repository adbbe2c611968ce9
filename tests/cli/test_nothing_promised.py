"""What cannot be done is refused before a model is paid, and what was not done is no success, at the command line."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from massgen_mcp.cli.massgen.main import main
from massgen_mcp.cli.massgen_mcp.main import main as server_main
from tests.checks.project import FILES, commit
from tests.harness import TempHome, agent, events_of

SCRIPT: list[dict[str, Any]] = [
    {"call": "write_file", "arguments": {"path": "project/notes", "content": "told\n"}},
    {"answer": "Done."},
]
MODES: list[list[str]] = [["--automation"], ["--quiet"], ["--json"], ["--no-display"]]


@dataclass
class Said:
    code: int
    out: str
    err: str

    @property
    def all(self) -> str:
        return f"{self.out}\n{self.err}"


Massgen = Callable[..., Said]


@pytest.fixture
def massgen(home: TempHome, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Massgen:
    """`massgen` in this process; with `verb` the other program."""
    monkeypatch.setattr(os, "environ", {**home.environ, "HOME": str(home.work)})
    monkeypatch.chdir(home.work)

    def run(*arguments: str, verb: str = "") -> Said:
        start, given = (server_main, [verb, *arguments]) if verb else (main, [*arguments])
        with pytest.raises(SystemExit) as end:
            start(given)
        said = capsys.readouterr()
        return Said(int(str(end.value.code)), said.out, said.err)

    return run


@pytest.fixture
def project(home: TempHome) -> Path:
    place = home.work / "project"
    for name, text in FILES.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    commit(place)
    return place


def writing(home: TempHome, place: Path | str, *scripts: list[dict[str, Any]], **orchestrator: Any) -> str:
    settings = {"context_paths": [{"path": str(place), "permission": "write"}], **orchestrator}
    agents = [agent(name, *script) for name, script in zip("abc", scripts or (SCRIPT,), strict=False)]
    return home.config("writer", *agents, orchestrator=settings)


def calls(home: TempHome) -> int:
    """How many models were called in this home."""
    logs = [path.parent for path in home.work.rglob("events.jsonl")]
    return sum(event["type"] == "model_call_started" for log in logs for event in events_of(log))


# -- no copy, no promise ----------


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode[0])
@pytest.mark.parametrize("cause", ["no git", "damaged index", "the whole file system", "home"])
def test_a_path_to_be_written_that_cannot_be_copied_is_refused_before_a_model_is_paid(
    home: TempHome,
    project: Path,
    massgen: Massgen,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    cause: str,
    mode: list[str],
) -> None:
    place: Path = project
    match cause:
        case "no git":
            programs = tmp_path / "programs"
            programs.mkdir()
            for name in ("sh", "env"):
                (programs / name).symlink_to(shutil.which(name) or "")
            monkeypatch.setitem(os.environ, "PATH", str(programs))
        case "damaged index":
            (project / ".git" / "index").write_bytes(b"no index")
        case "the whole file system":
            place = Path("/")
        case _:
            place = home.work
    said = massgen(*mode, "--config", writing(home, place), "Change it.")
    assert said.code in (1, 2)
    assert str(place) in said.all
    assert "permission: read" in said.all
    assert calls(home) == 0
    assert "APPLIED" not in said.out


@pytest.mark.parametrize("name", ["shot.png", "paper.PDF", "talk.mp3", "film.mp4"])
def test_a_context_path_that_no_model_can_look_at_is_named(home: TempHome, massgen: Massgen, name: str) -> None:
    (home.work / name).write_bytes(b"\x89PNG")
    settings = {"context_paths": [{"path": str(home.work / name)}]}
    config = home.config("looker", agent("a", {"answer": "A cat."}), orchestrator=settings)
    said = massgen("--automation", "--config", config, "What is it?")
    assert said.code == 0
    assert ", but massgen sends only text to models" in said.out


def test_a_check_whose_program_is_nowhere_is_refused_before_a_model_is_paid(
    home: TempHome, project: Path, massgen: Massgen
) -> None:
    config = writing(home, project)
    for check in ("no-such-program --all", "/nowhere/check", "CI=1 no-such-program"):
        said = massgen("--automation", "--config", config, "--check", check, "Change it.")
        assert said.code == 1, said.all
        assert "program not found" in said.err
    assert calls(home) == 0


@pytest.mark.parametrize("check", ["./made.sh", "test -e notes", "true", "FOO=1 sh check.sh", "(exit 0)"])
def test_a_check_that_agents_may_write_or_a_shell_knows_is_run(
    home: TempHome, project: Path, massgen: Massgen, check: str
) -> None:
    made = {"call": "write_file", "arguments": {"path": "project/made.sh", "content": "#!/bin/sh\n"}}
    said = massgen(
        "--automation", "--config", writing(home, project, [made, {"answer": "Done."}]), "--check", check, "Change it."
    )
    assert said.code == 0, said.all


# -- required checks ----------


@pytest.mark.parametrize("policy", ["required", "goal"])
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode[0])
def test_what_required_checks_do_not_prove_is_not_applied_and_ends_with_2(
    home: TempHome, project: Path, massgen: Massgen, policy: str, mode: list[str]
) -> None:
    config = writing(home, project, checks=["sh check.sh", "test -e there"], checks_policy=policy)
    said = massgen(*mode, "--config", config, "Change it.")
    assert said.code == 2
    assert re.search("NOT_APPLIED: (1 file; )?the final files fail test -e there", said.all)
    assert (project / "notes").read_text() == "nothing\n"
    (run,) = [path.parent for path in home.work.rglob("status.json")]
    status = json.loads((run / "status.json").read_text())
    assert status["applied"]["status"] == "clean"
    assert "the final files fail" in status["applied"]["note"]
    assert status["results"]["failure"] == "unproven"
    if mode == ["--json"]:
        assert json.loads(said.out)["applied"] == status["applied"]
    looked = massgen(verb="result")
    assert looked.code in (1, 64)


def test_status_json_says_what_was_applied_and_what_was_taken_back(
    home: TempHome, project: Path, massgen: Massgen
) -> None:
    said = massgen("--automation", "--config", writing(home, project), "Change it.")
    assert said.code == 0
    (file,) = home.work.rglob("status.json")
    applied = json.loads(file.read_text())["applied"]
    assert (applied["status"], applied["files"], applied["conflicts"]) == ("applied", ["project/notes"], [])
    run_id = said.out.split("apply --undo ")[1].split("`")[0]
    assert massgen("--undo", run_id, verb="apply").code == 0
    assert json.loads(file.read_text())["applied"]["status"] == "undone"
    again = massgen("--undo", run_id, verb="apply")
    assert again.code == 0, "a second undo finds it done"
    assert "unchanged" in again.out


def test_an_undo_of_what_was_never_applied_is_refused(home: TempHome, project: Path, massgen: Massgen) -> None:
    config = writing(home, project, checks=["test -e there"], checks_policy="goal")
    said = massgen("--automation", "--config", config, "Change it.")
    run_id = said.out.split("massgen apply ")[1].split("`")[0]
    assert massgen("--undo", run_id, verb="apply").code == 1


# -- many questions ----------

DEAD = {"fail": "auth"}


def test_a_batch_asks_again_for_an_answer_that_no_agent_was_left_to_judge(home: TempHome, massgen: Massgen) -> None:
    config = home.config("team", agent("a", {"answer": "42"}), agent("b", DEAD), agent("c", DEAD))
    (home.work / "many.jsonl").write_text('{"question": "What is six times seven?"}\n')
    for time in (1, 2):
        said = massgen("batch", "many.jsonl", "--config", config)
        assert said.code == 2
        assert "1 without a vote because no agent was left" in said.out
        lines = [json.loads(line) for line in (home.work / "many.results.jsonl").read_text().splitlines()]
        assert [line["failure"] for line in lines] == ["nobody_left"] * time


def test_a_team_that_never_answered_is_not_measured(home: TempHome, massgen: Massgen) -> None:
    dead = home.config("dead", *(agent(name, DEAD) for name in "abc"))
    one = home.config("one", agent("a", {"answer": "ANSWER: 42"}))
    (home.work / "tasks.jsonl").write_text('{"id": "six", "input": "What is six times seven?", "target": "42"}\n')
    for time in (1, 2):
        said = massgen("eval", "tasks.jsonl", "--teams", dead, "--against", one)
        assert said.code == 2, said.all
        assert "dead has no successful run" in said.err
        lines = [json.loads(line) for line in (home.work / "tasks.eval.jsonl").read_text().splitlines()]
        assert sum(line["id"] == "dead/six" for line in lines) == time, "it is asked again"


# -- a path that is only read ----------


@pytest.mark.parametrize("mode", ["--automation", "--no-display", "--json"])
def test_a_directory_to_be_read_that_cannot_be_copied_is_named(
    home: TempHome, project: Path, massgen: Massgen, mode: str
) -> None:
    (project / ".git" / "index").write_bytes(b"no index")
    settings = {"context_paths": [{"path": str(project)}]}
    said = massgen(mode, "--config", home.config("r", agent("a", {"answer": "42"}), orchestrator=settings), "What?")
    assert said.code == 0
    assert "context/project is read-only" in said.all


# -- what is left of a run ----------


def test_a_run_whose_directory_was_deleted_says_so_and_how_to_forget_it(home: TempHome, massgen: Massgen) -> None:
    said = massgen("--automation", "--config", home.config("one", agent("a", {"answer": "42"})), "What is it?")
    directory = Path(said.out.splitlines()[0].removeprefix("LOG_DIR: "))
    row = json.loads(massgen("--json", verb="runs").out)["runs"][0]
    shutil.rmtree(directory)
    for verb in ("status", "result"):
        told = massgen(row["run_id"], verb=verb)
        assert "is missing" in told.all, verb
        assert f"massgen prune {row['run_id']}" in told.all, verb


def test_a_report_that_cannot_be_written_is_told(home: TempHome, massgen: Massgen, monkeypatch: Any) -> None:
    from massgen_mcp.runs.engine import files

    whole = files.RunFiles.write_report

    def refuse(self: files.RunFiles, html: bytes) -> None:
        self.report.mkdir()
        whole(self, html)

    monkeypatch.setattr(files.RunFiles, "write_report", refuse)
    said = massgen("--no-display", "--config", home.config("one", agent("a", {"answer": "42"})), "What is it?")
    assert said.code == 0
    assert re.search(r"cannot write \S+/report\.html: IsADirectoryError", said.err)


@pytest.mark.parametrize(("config", "code"), [("good", 2), ("absent", 1)])
def test_a_full_output_is_a_failure_without_a_trace(home: TempHome, config: str, code: int) -> None:
    good = home.config("good", agent("a", {"answer": "42"}))
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [
                home.python,
                "-m",
                "massgen_mcp.cli.massgen.main",
                "--quiet",
                "--config",
                {"good": good}.get(config, config),
                "What is it?",
            ],
            cwd=home.work,
            env=home.environ,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
