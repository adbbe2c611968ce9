"""The faults of `false_green` that befall files: a directory without a copy, a check that cannot run, an apply."""

import json
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

    phase: Literal["run", "check", "apply"]
    fault: str
    befall: Callable[[Path], object] = lambda _: None
    check: str = ""
    policy: str = "required"
    permission: Literal["read", "write"] = "write"
    seconds: float | None = None

    def __str__(self) -> str:
        return f"{self.phase}: {self.fault} ({self.permission}, {self.check or 'no check'} {self.policy})"


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
APPLIES: dict[str, Callable[[Path], object]] = {
    "the same line was changed": _write("lines.txt", BEFORE.replace("line 20\n", "line 20, mine\n")),
    "the file was deleted": lambda place: (place / "lines.txt").unlink(),
    "the file became a directory": lambda place: ((place / "lines.txt").unlink(), (place / "lines.txt").mkdir()),
    "a new file is there already": _write("new/notes.txt", "mine\n"),
    "its directory is a file": _write("new", "mine\n"),
    "the project is gone": shutil.rmtree,
    "the project is a file": _replace_by_file,
}


def list_file_cases() -> list[FileCase]:
    cases = [FileCase("run", "the index is damaged", _damage_index, permission=how) for how in ("read", "write")]
    cases += [
        FileCase("check", fault, check=check, policy=policy)
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
        figures.injected += 1
        figures.struck += 1
        if found := [*_find_faults(own, place, case)]:
            figures.found[str(case)] = found
        own.close()


def _find_faults(home: TempHome, place: Path, case: FileCase) -> Iterator[str]:
    if case.phase == "run":
        case.befall(place)
    asking = _asking(home, place, case)
    if case.phase == "apply":  # a run in the background applies nothing
        run_id = run(home, "--background", *asking).out.strip()
        said = run(home, run_id, verb="wait")
    else:
        said = run(home, "--json", *asking)
    match case.phase:
        case "run":
            yield from _of_copy(said, case)
        case "check":
            yield from _of_check(home, said, case)
        case "apply":
            case.befall(place)
            yield from _of_apply(home, place, case)


def _asking(home: TempHome, place: Path, case: FileCase) -> list[str]:
    writes = [
        {"call": "write_file", "arguments": {"path": f"project/{path}", "content": text}} for path, text in MADE.items()
    ]
    steps: list[dict[str, Any]] = [*(writes if case.permission == "write" else []), {"answer": "Done."}]
    settings: dict[str, Any] = {"context_paths": [{"path": str(place), "permission": case.permission}]}
    if case.check:
        settings |= {"checks": [case.check], "checks_policy": case.policy}
    config = home.config("writer", agent("ada", *steps), orchestrator=settings)
    return ["--config", config, "Change it."]


def _of_copy(said: Said, case: FileCase) -> Iterator[str]:
    if case.permission == "write" and said.code == 0:
        yield f"exit code 0, and no copy could be made: {said.out}"
    if case.permission == "read" and "is read-only" not in said.out + said.err:
        yield f"nothing says that there was no copy: {said.out}"


def _of_check(home: TempHome, said: Said, case: FileCase) -> Iterator[str]:
    """No check here says that the files are right."""
    rows = run(home, "--json", verb="runs").document["runs"]
    if case.policy == "required" and said.code == 0:
        yield f"exit code 0, and a required check did not pass: {said.out}"
    if not rows:
        return
    result = run(home, rows[0]["run_id"], "--json", verb="result")
    if result.code == 0 and not result.document.get("weak"):
        yield f"no check has passed, and the result is not weak: {result.out}"


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
