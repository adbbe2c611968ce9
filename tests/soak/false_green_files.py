"""The faults of `false_green` that befall files: a directory without a copy, a check that cannot run, an apply."""

import json
import os
import re
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from tests.checks.project import commit
from tests.harness import SERVER_MODULE, TempHome, agent
from tests.soak.commands_here import Said, run
from tests.soak.figures import Figures

BEFORE = "".join(f"line {number}\n" for number in range(40))
AFTER = BEFORE.replace("line 20\n", "line 20, told\n")
MADE = {"lines.txt": AFTER, "new/notes.txt": "told\n" * 500}
LARGEST_FILE = 100
"""Bytes, on a disk that is full."""
KILLED_AFTER = (0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2)
"""Seconds; an apply takes about one."""


@dataclass(frozen=True)
class FileCase:
    """`undone`: what a result must not hide. `befall`: what happens to the project, before the run or the apply."""

    phase: Literal["copy", "check", "apply"]
    fault: str
    befall: Callable[[Path], object] = lambda _: None
    check: str = ""
    policy: str = "required"
    permission: Literal["read", "write"] = "write"
    seconds: float | None = None
    door: Literal["run", "review", "batch", "eval"] = "run"

    def __str__(self) -> str:
        return f"{self.door}, {self.phase}: {self.fault} ({self.permission}, {self.check or 'no check'} {self.policy})"


def _replace_by_file(place: Path) -> None:
    shutil.rmtree(place)
    place.write_text("mine\n")


def _damage_index(place: Path) -> None:
    (place / ".git" / "index").write_bytes(b"no index")


def _write(name: str, text: str) -> Callable[[Path], object]:
    def write(place: Path) -> None:
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text(text)

    return write


CHECKS = {
    "a program of it is missing": "sh -c 'no-such-program --all'",
    "it needs a file that is nowhere": "sh -c 'test -e /nowhere/data || exit 3'",
    "it dies": "sh -c 'kill -9 $$'",
    "it always fails": "sh -c 'exit 1'",
    "it fails on the answer alone": "sh -c '! grep -q told lines.txt'",
}
GIT_DIES = "git dies while it stores the files"
COPIES: dict[str, Callable[[Path], object]] = {"the index is damaged": _damage_index, GIT_DIES: lambda _: None}
FAILING_GIT = """\
#!/bin/sh
case " $* " in *" mktree "*|*" update-index "*) kill -9 $$;; esac
exec {git} "$@"
"""
APPLIES: dict[str, Callable[[Path], object]] = {
    "the same line was changed": _write("lines.txt", BEFORE.replace("line 20\n", "line 20, mine\n")),
    "the file was deleted": lambda place: (place / "lines.txt").unlink(),
    "the file became a directory": lambda place: ((place / "lines.txt").unlink(), (place / "lines.txt").mkdir()),
    "a new file is there already": _write("new/notes.txt", "mine\n"),
    "its directory is a file": _write("new", "mine\n"),
    "the project is gone": shutil.rmtree,
    "the project is a file": _replace_by_file,
}


NOT_INJECTED = {
    ("review", "check"): "a review runs no checks: those of its team's config are left out",
    ("apply", "check"): "an apply runs no checks: they ran on these files before the run ended",
    ("apply", "copy"): "an apply copies no directory: it changes the user's own, and `APPLIES` has its faults",
    ("apply", "text"): "an apply shows no text to a model",
    ("apply", "model"): "an apply asks no model",
}
"""The reasons for which a kind of fault can't come up in a command."""


def list_file_cases() -> list[FileCase]:
    doors = ("run", "batch", "eval")
    cases = [
        FileCase("copy", fault, befall, permission=how, door=door)
        for door in ("review", *doors)
        for fault, befall in COPIES.items()
        for how in ("read", "write")
        if door != "review" or how == "read"
    ]
    cases += [
        FileCase("check", fault, check=check, policy=policy, door=door)
        for door in doors
        for fault, check in CHECKS.items()
        for policy in ("required", "informative")
    ]
    cases += [FileCase("apply", fault, befall) for fault, befall in APPLIES.items()]
    cases.append(FileCase("apply", "full disk"))
    cases += [FileCase("apply", "kill", seconds=seconds) for seconds in KILLED_AFTER]
    return cases


def inject_file_faults(home: TempHome, cases: Sequence[FileCase], figures: Figures) -> None:
    for number, case in enumerate(cases):
        own = replace(home, path=home.path / f"files-{number}", work=home.work / f"files-{number}")
        place = own.work / "project"
        place.mkdir(parents=True)
        (place / "lines.txt").write_text(BEFORE)
        commit(place)
        if case.fault == GIT_DIES:
            own = own.with_variables(PATH=f"{_write_git(own)}:{os.environ['PATH']}")
        figures.injected += 1
        figures.struck += 1
        if found := [*_find_faults(own, place, case)]:
            figures.found[str(case)] = found
        own.close()


def _write_git(home: TempHome) -> Path:
    program = home.work / "bin" / "git"
    program.parent.mkdir()
    program.write_text(FAILING_GIT.format(git=shutil.which("git")))
    program.chmod(0o755)
    return program.parent


def _find_faults(home: TempHome, place: Path, case: FileCase) -> Iterator[str]:
    if case.phase == "copy":
        case.befall(place)
    match case.phase, case.door:
        case "apply", _:  # a run in the background applies nothing
            run_id = run(home, "--background", "--config", _write_team(home, place, case), "Change it.").out.strip()
            run(home, run_id, verb="wait")
            case.befall(place)
            yield from _of_apply(home, place, case)
        case "copy", door:
            said, told = DOORS[door](home, place, case)
            if case.permission == "write" and said.code == 0:
                yield f"exit code 0, and no copy could be made: {told}"
            if (
                case.permission == "read"
                and said.code in (0, 1)
                and not re.search("is read-only|couldn't be copied", told)
            ):
                yield f"nothing says that there was no copy: {told}"
        case "check", door:
            said, told = DOORS[door](home, place, case)
            yield from _of_check(home, said, told, case)


def _of_check(home: TempHome, said: Said, told: str, case: FileCase) -> Iterator[str]:
    """No check here says that the files are right."""
    if case.policy == "required" and said.code == 0:
        yield f"exit code 0, and a required check did not pass: {told}"
    if case.door == "eval":
        (team,) = (row for row in json.loads(said.out)["rows"] if row["name"] == "writer")
        if not (team["failed"] or "weak" in team["note"]):
            yield f"no check has passed, and the row names none: {team}"
    rows = run(home, "--json", "--kind", "all", verb="runs").document["runs"]
    for row in rows:
        result = run(home, row["run_id"], "--json", verb="result")
        if result.code == 0 and row["winner"] == "ada" and not result.document.get("weak"):
            yield f"no check has passed, and the result is not weak: {result.out}"
    if case.door == "batch":
        for line in _read_lines(home):
            if not (line["weak"] or line["failure"] or line["error"]):
                yield f"no check has passed, and the line names none: {line}"


# -- commands ---------------------------------------------------------------------------------------------------------


def _ask_once(home: TempHome, place: Path, case: FileCase) -> tuple[Said, str]:
    """Return what a command said, and all that its caller can read of the result."""
    said = run(home, "--json", "--config", _write_team(home, place, case), "Change it.")
    return said, said.out + said.err


def _ask_batch(home: TempHome, place: Path, case: FileCase) -> tuple[Said, str]:
    (home.work / "questions.jsonl").write_text(json.dumps({"question": "Change it."}))
    said = run(home, "batch", "questions.jsonl", "--config", _write_team(home, place, case))
    return said, f"{said.out} {_read_lines(home)}"


def _compare(home: TempHome, place: Path, case: FileCase) -> tuple[Said, str]:
    (home.work / "tasks.jsonl").write_text(json.dumps({"id": "done", "input": "Change it.", "target": "42"}))
    one = home.config("one", agent("dee", {"answer": "ANSWER: 42"}))
    team = _write_team(home, place, case)
    said = run(home, "eval", "tasks.jsonl", "--teams", team, "--against", one, "--json", "--samples", "1")
    return said, said.out + said.err


def _review(home: TempHome, place: Path, case: FileCase) -> tuple[Said, str]:
    (place / "lines.txt").write_text(AFTER)
    said = run(replace(home, work=place), "review", "--config", _write_team(home, place, case), "--format", "json")
    return said, said.out + said.err


def _read_lines(home: TempHome) -> list[dict[str, Any]]:
    file = home.work / "questions.results.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


DOORS: dict[str, Callable[[TempHome, Path, FileCase], tuple[Said, str]]] = {
    "run": _ask_once,
    "review": _review,
    "batch": _ask_batch,
    "eval": _compare,
}


def _write_team(home: TempHome, place: Path, case: FileCase) -> str:
    writes = [
        {"call": "write_file", "arguments": {"path": f"project/{path}", "content": text}} for path, text in MADE.items()
    ]
    steps: list[dict[str, Any]] = [*(writes if case.permission == "write" else []), {"answer": "ANSWER: 42"}]
    settings: dict[str, Any] = {"context_paths": [{"path": str(place), "permission": case.permission}]}
    if case.check:
        settings |= {"checks": [case.check], "checks_policy": case.policy}
    if case.door == "review":
        steps = [{"answer": json.dumps({"summary": "Read.", "findings": []})}, {"vote": "own"}]
        return home.config("writer", agent("ada", *steps), agent("bo", *steps))
    return home.config("writer", agent("ada", *steps), orchestrator=settings)


def _of_apply(home: TempHome, place: Path, case: FileCase) -> Iterator[str]:
    run_id = run(home, "--json", verb="runs").document["runs"][0]["run_id"]
    command = [sys.executable, "-m", SERVER_MODULE, "apply", run_id, "--json"]
    mine = {path: (place / path).read_text() for path in MADE if (place / path).is_file()}
    if case.seconds is not None:
        with subprocess.Popen(command, cwd=home.work, env=home.environ, stdout=subprocess.DEVNULL) as process:
            time.sleep(case.seconds)
            process.kill()
    limited = (
        (lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_FILE, LARGEST_FILE)))
        if case.fault == "full disk"
        else None
    )
    done = subprocess.run(
        command,
        cwd=home.work,
        env=home.environ,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limited,
        timeout=60,
    )
    holds = {path: (place / path).read_text() if (place / path).is_file() else None for path in MADE}
    if done.returncode == 0 and holds != MADE:
        yield f"exit code 0, and the files are not as the run made them: {done.stdout}"
    if done.returncode != 0 and case.seconds is not None:
        yield f"a killed apply is not completed by the next: {done.stdout} {done.stderr}"
    if done.returncode != 0 and any(holds[path] != text for path, text in mine.items()):
        yield f"what the person had is not there any more: {holds}"
    status = json.loads(done.stdout).get("status") if done.stdout else "error"
    if status == "applied" and holds != MADE:
        yield "the JSON says that it is applied"
