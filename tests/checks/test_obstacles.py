"""Checks that fail for the environment: known by what shells and tools print, and told with what helps."""

from pathlib import Path

import pytest

from massgen_mcp.checks.output import hindrance_of
from massgen_mcp.checks.output import tests_in as count_of
from massgen_mcp.events.run import RunCompleted
from massgen_mcp.views.checks import check_notes
from tests.checks.project import GOOD, environ, evidence, play, project, write

__all__ = ["environ", "project"]

OUTPUTS = [
    (127, "/bin/sh: 2: uv: not found", "program_missing", "uv is in /home/ada/.local/bin, where the sandbox can't"),
    (127, "bash: line 1: cargo: command not found", "program_missing", "install cargo"),
    (2, "make: cargo: No such file or directory\nmake: *** [Makefile:2: test] Error 127", "program_missing", "cargo"),
    (127, "> x@1.0.0 test\n> vitest run\n\nsh: 1: vitest: not found", "program_missing", "vitest"),
    (127, "/usr/bin/env: \u2018node\u2019: No such file or directory", "program_missing", "node"),
    (1, "/usr/bin/python3: No module named pytest", "program_missing", "install pytest"),
    (1, "error: rustup could not choose a version of cargo to run", "no_toolchain", "`commands.env`"),
    (1, "Error: NoSuchFileException: /usr/share/maven/bin/m2.conf", "no_toolchain", "`commands.readable`"),
    (1, 'Get "https://proxy.golang.org/x": dial tcp: lookup proxy.golang.org: no such host', "no_network", "network"),
    (1, "\u00d7 Failed to fetch: `https://pypi.org/simple/flit-core/`", "no_network", "offline"),
    (1, "npm error code EAI_AGAIN", "no_network", "offline"),
    (1, "npm error code ENOTCACHED", "no_network", "offline"),
    (1, " ERR_PNPM_NO_OFFLINE_META  Failed to resolve left-pad@1.3.0 in package mirror", "no_network", "offline"),
    (1, "hint: Packages were unavailable because the network was disabled.", "no_network", "offline"),
    (101, "As a reminder, you're using offline mode (--offline) which can", "no_network", "offline"),
    (1, "> No cached version of junit:junit:4.12 available for offline mode.", "no_network", "offline"),
    (1, "[ERROR] Cannot access central (https://repo) in offline mode and the artifact x:y", "no_network", "offline"),
    (2, "error: No interpreter found for Python 3.10 in managed installations", "no_toolchain", "`commands.readable`"),
    (1, "Error: EROFS: read-only file system, mkdir '/w/node_modules/.vite-temp'", "read_only", "add node_modules to"),
    (1, "ENOENT: no such file or directory, mkdir 'node_modules/.vite-temp'", "read_only", "`copy_ignored`"),
    (1, "touch: cannot touch 'gen/x': Read-only file system", "read_only", "add its output directory to"),
    (1, "PermissionError: [Errno 13] Permission denied: '/opt/tool/cache'", "not_permitted", "`commands.readable`"),
    (1, "unshare: unshare failed: Operation not permitted", "not_permitted", "`commands.sandbox`"),
]
OF_THE_CODE = [
    (1, "FAILED tests/test_cache.py::test_expires - AssertionError"),
    (127, "/bin/sh: 2: ./run_tests.sh: not found"),
    (126, "/bin/sh: 2: ./run_tests.sh: Permission denied"),
    (1, "ModuleNotFoundError: No module named 'shop.cache'"),
    (1, "E       AssertionError: assert 'item not found' == 'item'"),
    (1, "FileNotFoundError: [Errno 2] No such file or directory: 'data.json'"),
    (2, "make: *** No rule to make target 'test'.  Stop."),
]


def found_at(program: str) -> str | None:
    return "/home/ada/.local/bin" if program == "uv" else None


@pytest.mark.parametrize(("code", "output", "obstacle", "cure"), OUTPUTS, ids=[row[1][:40] for row in OUTPUTS])
def test_a_failure_for_the_environment_is_known_and_its_cure_names_a_key(
    code: int, output: str, obstacle: str, cure: str
) -> None:
    found = hindrance_of(code, output, found_at)
    assert found is not None
    assert found.obstacle == obstacle
    assert cure in found.cure


@pytest.mark.parametrize(("code", "output"), OF_THE_CODE, ids=[row[1][:40] for row in OF_THE_CODE])
def test_a_failure_of_the_code_is_not_taken_for_one_of_the_environment(code: int, output: str) -> None:
    assert hindrance_of(code, output, found_at) is None


@pytest.mark.parametrize(
    ("output", "tests"),
    [
        ("===== 1 failed, 11 passed, 1 skipped in 0.12s =====", 12),
        ("\x1b[32m28 passed\x1b[0m in 1.20s", 28),
        ("test result: ok. 12 passed; 0 failed; 0 ignored\ntest result: ok. 3 passed; 1 failed; 0 ignored", 16),
        ("[INFO] Tests run: 12, Failures: 0, Errors: 0, Skipped: 1", 12),
        ("Tests:       1 failed, 11 passed, 12 total", 12),
        ("      Tests  1 failed | 12 passed (13)", 13),
        ("Ran 12 tests in 0.1s\n\nOK", 12),
        ("100% tests passed, 0 tests failed out of 14", 14),
        ("12 examples, 0 failures", 12),
        ("OK (12 tests, 20 assertions)", 12),
        ("\u2139 tests 7\n\u2139 pass 7", 7),
        ("ok 1\n1..4", 4),
        ("--- PASS: TestA (0.0s)\n    --- PASS: TestA/b", 2),
        ("all is well", None),
    ],
)
def test_the_number_of_tests_is_read_from_what_runners_sum_up(output: str, tests: int | None) -> None:
    assert count_of(output) == tests


async def test_a_run_whose_every_check_fails_for_the_environment_says_that_nothing_was_checked(
    tmp_path: Path, project: Path, environ: dict[str, str]
) -> None:
    script = [write("notes", "told\n"), {"answer": "All green."}]
    checks = ["no-such-program --all", "sh -c 'echo getaddrinfo ENOTFOUND example.org; exit 1'"]
    ended = await play(tmp_path, project, environ, script, checks=checks, checks_policy="required")
    assert [one.obstacle for one in evidence(ended, "base").outcomes] == ["program_missing", "no_network"]
    assert ended.snapshot.work_done.checked == "nothing_checked"
    assert ended.of(RunCompleted)[0].failing_checks == ()
    first, *cures = check_notes(ended.snapshot)
    assert first.startswith("Nothing was checked")
    assert "install no-such-program" in cures[0]
    assert "`commands.network`" in cures[1]


async def test_what_is_missing_for_an_answer_alone_is_a_failure_of_that_answer(
    tmp_path: Path, project: Path, environ: dict[str, str]
) -> None:
    script = [write("value", "wrong\n"), {"answer": "It needs a new program."}]
    check = "grep -q right value || no-such-program"
    ended = await play(tmp_path, project, environ, script, checks=[check, GOOD], checks_policy="required")
    assert [one.obstacle for one in evidence(ended, "final").outcomes] == [None, None]
    assert ended.snapshot.work_done.checked == "failed"
    assert ended.of(RunCompleted)[0].failing_checks == (check, GOOD)
