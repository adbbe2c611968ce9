"""Absurd ids, numbers, names and homes on the command line end with an exit code and one clear line, never a trace."""

from collections.abc import Callable
from pathlib import Path

import pytest

from massgen_mcp.cli.massgen.main import main as massgen
from massgen_mcp.cli.massgen_mcp.main import main as massgen_mcp

HALF = "a\udcff"
"""What the operating system makes of bytes that are no UTF-8."""
LONG = "x" * 5_000
HUGE = str(2**80)

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs `massgen-mcp` (without arguments the server), or `massgen` if it begins with an option."""
    monkeypatch.setenv("MASSGEN_MCP_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MASSGEN_CONFIG_HOME", str(tmp_path / "none"))
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, **environ: str) -> tuple[int, str]:
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        command = massgen if arguments[:1] and arguments[0].startswith("--") else massgen_mcp
        with pytest.raises(SystemExit) as left:
            command(list(arguments))
        told = capsys.readouterr()
        assert "Traceback" not in told.out + told.err
        assert isinstance(left.value.code, int)
        return left.value.code, told.err

    return run


@pytest.mark.parametrize("run_id", [HALF, LONG, HUGE, "", "..", "/etc/passwd", "run-", "\n", "\u0663"], ids=ascii)
def test_no_verb_knows_an_absurd_id(run: Run, run_id: str) -> None:
    verbs = ("status", "result", "watch", "cancel", "resume", "wait --timeout 0")
    told = {verb: run(*verb.split(), run_id) for verb in verbs}
    told["answer"] = run("answer", run_id, HALF)
    told["raise-budget"] = run("raise-budget", run_id, "1e308")
    for verb, (code, error) in told.items():
        assert (code, error.startswith("ERROR unknown_run: ")) == (3, True), (verb, error)


@pytest.mark.parametrize("option", ["--port=8765", "--host=127.0.0.1"])
def test_an_address_without_http_is_a_wrong_command_line(capsys: pytest.CaptureFixture[str], option: str) -> None:
    with pytest.raises(SystemExit) as left:
        massgen_mcp([option])
    assert left.value.code == 64
    assert "--transport http" in capsys.readouterr().err


@pytest.mark.parametrize("number", ["nan", "inf", "-1", "1e400", "x", ""], ids=ascii)
def test_absurd_numbers_are_a_wrong_command_line(run: Run, number: str) -> None:
    for arguments in (
        ("wait", "abc", f"--timeout={number}"),
        ("runs", f"--limit={number}"),
        ("runs", f"--since={number}"),
    ):
        code, error = run(*arguments)
        assert (code, "ERROR invalid_arguments: " in error) == (64, True), (arguments, error)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("runs", "--session", HALF), "invalid_arguments"),
        (("configs", HALF), "config_not_found"),
        (("--automation", "--config", HALF, "q"), "config_not_found"),
        (("--automation", "--config", LONG, "q"), "config_not_found"),
        (("--automation", "--config", "~nosuch/x", "q"), "config_not_found"),
        (("--automation", "--model", f"scripted/{HALF}", "q"), "config_invalid"),
        (("--automation", "--model", "scripted/a\nb", "q"), "config_invalid"),
        (("--automation", "--model", "claude_code/-x", "q"), "config_invalid"),
        (("--automation", "--model", "scripted/x", "--num-agents", HUGE, "q"), "config_invalid"),
        (("--automation", "--model", "scripted/x", "--system-message", "x" * 100_001, "q"), "config_invalid"),
        (("--automation", "--model", "scripted/x", "--output-file", LONG, "q"), "invalid_arguments"),
        (("--automation", "--model", "scripted/x", "--output-file", "a" * 251, "q"), "invalid_arguments"),
        (("--automation", "--model", "scripted/x", "--output-file", ".", "q"), "invalid_arguments"),
        (("--automation", "--model", "scripted/x", HALF), "invalid_arguments"),
        (("--validate", LONG), "config_not_found"),
    ],
)
def test_absurd_names_and_texts_are_refused_before_anything_is_asked(
    run: Run, tmp_path: Path, arguments: tuple[str, ...], code: str
) -> None:
    left, error = run(*arguments)
    assert (left, error.startswith(f"ERROR {code}: ")) == (1, True), error
    assert not (tmp_path / ".massgen").exists()


@pytest.mark.parametrize(
    "home", ["relative", "~/massgen", "/" + "a" * 256, "/" + "a/" * 2_500], ids=lambda home: home[:9]
)
@pytest.mark.parametrize("verb", ["runs", "status abc", "doctor", "prune"])
def test_a_home_that_cannot_be_one_is_named(run: Run, home: str, verb: str) -> None:
    code, error = run(*verb.split(), MASSGEN_MCP_HOME=home)
    assert (code, error.startswith("ERROR invalid_arguments: MASSGEN_MCP_HOME ")) == (1, True), error


def test_a_home_that_is_a_file_is_named(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for verb in ("runs", "status abc", "prune"):
        code, error = run(*verb.split(), MASSGEN_MCP_HOME=str(file))
        assert (code, error.startswith("ERROR store_unavailable: ")) == (5, True), error
        assert str(file) in error


@pytest.mark.parametrize("directory", ["/" + "a" * 256, "/" + "a/" * 2_500, HALF], ids=lambda name: ascii(name[:9]))
def test_a_directory_of_configs_that_cannot_be_has_none(run: Run, directory: str) -> None:
    code, error = run("--automation", "q", MASSGEN_CONFIG_HOME=directory)
    assert (code, error.startswith("ERROR no_default_team: ")) == (1, True), error
