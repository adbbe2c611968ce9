"""Whoever started a run hears of its end, at the terminal or through a program, and before of how long it may take."""

import ast
import json
import os
import re
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.commands import run_command
from tests.harness import COMMAND_MODULE, SERVER_MODULE, TempHome, agent, call, poll_until
from tests.planted import PLANTED
from tests.terminal import terminal

pytestmark = pytest.mark.long

TEAM = ["--config", "@examples/scripted"]
BELL = b"\x07"
SPAN = r"(about \d+|\d+ to \d+) seconds?"
"""How long runs took, which a busy machine spreads."""
TELLS = 'import os, sys; open(sys.argv[1], "w").write(repr(dict(os.environ)))'
IMPATIENT = """
import massgen_mcp.runs.host.announcing as notifying
notifying.NOTIFY_SECONDS = 0.3
from massgen_mcp.cli.massgen.main import main
main()
"""


def teller(told: Path) -> list[str]:
    """A program that writes down what it was given."""
    return [sys.executable, "-c", TELLS, str(told)]


def at_work(*command: str) -> bool:
    """Whether any process runs this command."""
    wanted = b"".join(part.encode() + b"\0" for part in command)
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (entry / "cmdline").read_bytes() == wanted:
                return True
    return False


def own_config(home: TempHome, *notify: str) -> None:
    home.config("config", agent("ada", {"answer": "Forty-two."}), notify=[*notify])


@pytest.mark.parametrize(
    ("variables", "notice"),
    [
        ({}, None),
        ({"TERM": "xterm-kitty"}, b"\x1b]99;;massgen: completed: What; now? [31m\x1b\\"),
        ({"TERM": "rxvt-unicode-256color"}, b"\x1b]777;notify;massgen;massgen: completed: What, now? [31m\x1b\\"),
        ({"TERM_PROGRAM": "iTerm.app"}, b"\x1b]9;massgen: completed: What; now? [31m\x1b\\"),
        ({"TERM_PROGRAM": "iTerm.app", "TMUX": "none,1,0"}, None),
    ],
)
def test_bell_title_and_a_notice_that_the_terminal_knows_tell_of_the_end(
    home: TempHome, variables: dict[str, str], notice: bytes | None
) -> None:
    with terminal(home, *TEAM, "What; now?\x1b[31m", size=(100, 40), **variables) as window:
        assert window.leave() == 0
        assert window.screen.title == "massgen: completed: What; now? [31m"
        assert window.bytes.count(BELL) == 1
        assert (b"\x1b]9" in window.bytes or b"\x1b]7" in window.bytes) is (notice is not None)
        assert notice is None or notice in window.bytes


@pytest.mark.parametrize(
    ("options", "variables"),
    [(["--automation"], {}), (["--quiet"], {}), (["--plain"], {}), ([], {"TERM": "dumb"}), ([], {"CI": "1"})],
)
def test_programs_and_terminals_that_can_do_nothing_get_no_bell(
    home: TempHome, options: list[str], variables: dict[str, str]
) -> None:
    with terminal(home, *TEAM, *options, "What now?", size=(100, 40), **variables) as window:
        assert window.leave() == 0
        assert BELL not in window.bytes
        assert b"\x1b]" not in window.bytes


def test_watch_tells_of_the_end_that_it_has_seen_and_of_no_earlier_one(home: TempHome) -> None:
    config = home.config("goes-on", agent("ada", {"answer": "yes"}), agent("bo", {"hang": True}))
    run_id = run_command(home, COMMAND_MODULE, "--background", "--config", config, "Why?").stdout.strip()
    watch = f"import sys; sys.argv[1:] = ['watch', '{run_id}']; from massgen_mcp.__main__ import main; main()"
    for seen in (True, False):
        with terminal(home, python=watch, size=(100, 40)) as window:
            if seen:
                window.wait_for("1 of 2 have answered", "f finish")
                assert BELL not in window.bytes
                window.type("ff")
            assert window.leave() == 0
            assert (BELL in window.bytes) is seen


def test_a_program_named_on_the_command_line_hears_of_the_end_and_gets_no_key(home: TempHome) -> None:
    told = home.work / "told"
    command = f"'{sys.executable}' -c '{TELLS}' '{told}'"
    done = run_command(home, COMMAND_MODULE, *TEAM, "--notify", command, "What now?")
    assert done.returncode == 0, done.stderr
    environ = ast.literal_eval(told.read_text())
    (row,) = json.loads(run_command(home, SERVER_MODULE, "runs", "--json").stdout)["runs"]
    ours = {name: value for name, value in environ.items() if name.startswith("MASSGEN_")}
    assert ours == {
        "MASSGEN_RUN_ID": row["run_id"],
        "MASSGEN_STATE": "completed",
        "MASSGEN_OUTCOME": row["outcome"],
        "MASSGEN_COST": ours["MASSGEN_COST"],
    }
    assert ours["MASSGEN_COST"].startswith("$")
    assert not [name for name in environ if name.endswith(("_KEY", "_TOKEN", "_SECRET"))]


@pytest.mark.parametrize(
    ("command", "fault"),
    [("no-such-program", "no-such-program: No such file"), ("sh -c 'exit 3'", "sh ended with exit code 3")],
)
def test_a_program_that_fails_is_a_line_and_no_error_of_the_run(home: TempHome, command: str, fault: str) -> None:
    done = run_command(home, COMMAND_MODULE, *TEAM, "--notify", command, "What now?")
    assert (done.returncode, f"notify: {fault}" in done.stderr) == (0, True), done.stderr
    assert done.stdout.strip(), "the answer is there"


def test_a_program_that_does_not_end_is_ended_with_all_that_it_started(home: TempHome) -> None:
    seconds = f"600.{os.getpid()}"
    command = f"sh -c 'sleep {seconds} & wait'"
    with terminal(home, *TEAM, "--notify", command, "What?", python=IMPATIENT, size=(100, 40)) as window:
        assert window.leave() == 0
        assert "sh was stopped after 0.3 seconds" in window.everything
    poll_until(lambda: not at_work("sleep", seconds))


@pytest.mark.parametrize("background", [True, False])
def test_the_program_of_your_own_config_hears_of_every_run_whichever_team_it_has(
    home: TempHome, background: bool
) -> None:
    told = home.work / "told"
    own_config(home, *teller(told))
    how = ["--background"] if background else []
    assert run_command(home, COMMAND_MODULE, *how, *TEAM, "What now?").returncode == 0
    poll_until(lambda: told.exists() and told.read_text().endswith("}"))
    assert "'MASSGEN_STATE': 'completed'" in told.read_text()


def test_your_own_config_needs_no_team_to_name_the_program(home: TempHome) -> None:
    told = home.work / "told"
    own = home.own_configs / "config.yaml"
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_text(json.dumps({"notify": teller(told)}))
    assert run_command(home, COMMAND_MODULE, *TEAM, "What now?").returncode == 0
    assert "'MASSGEN_STATE': 'completed'" in told.read_text()
    keyless = home.with_variables(**dict.fromkeys(PLANTED, ""))
    assert "ERROR no_default_team" in run_command(keyless, COMMAND_MODULE, "What now?").stderr, "it is no team"
    own.write_text("notify: [3]\n")
    done = run_command(home, COMMAND_MODULE, *TEAM, "What now?")
    assert (done.returncode, f"notify: {own}:1: notify" in done.stderr) == (0, True), done.stderr


@pytest.mark.parametrize("found", [True, False])
def test_no_other_config_may_name_a_program(home: TempHome, found: bool) -> None:
    own_config(home)
    told = home.work / "told"
    place = home.work / (".massgen/config.yaml" if found else "team.yaml")
    place.parent.mkdir(exist_ok=True)
    place.write_text(json.dumps({"agents": [agent("ada", {"answer": "x"})], "notify": teller(told)}))
    refused = run_command(home, COMMAND_MODULE, "--trust", *([] if found else ["--config", "team.yaml"]), "What now?")
    assert refused.returncode == 1
    assert f"so only your own config ({home.own_configs / 'config.yaml'}) may set it" in refused.stderr
    assert not told.exists()


async def test_an_agent_cannot_name_a_program(home: TempHome) -> None:
    config = home.config("team", agent("ada", {"answer": "x"}), notify=teller(home.work / "told"))
    async with home.client() as client:
        reply = await client.call_tool("start_run", {"question": "q", "team": config})
    assert reply.is_error
    assert "outside the sandbox" in str(reply.content)


async def test_from_five_runs_on_the_same_team_is_said_to_take_as_long_as_it_took(home: TempHome) -> None:
    config = home.config("slow", agent("ada", {"answer": "yes"}), agent("bo", {"answer": "no"}))
    for known in (*[False] * 5, True):
        told = run_command(home, COMMAND_MODULE, "--config", config, "Why?").stderr
        assert (re.search(rf"This team usually takes {SPAN}\.", told) is not None) is known, told
    async with home.client() as client:
        started = await call(client, "start_run", question="q", team=config)
        assert "earlier runs" not in started["estimate"], "for money it takes ten"
    for _ in range(4):
        run_command(home, COMMAND_MODULE, "--config", config, "Why?")
    async with home.client() as client:
        planned = await call(client, "start_run", question="q", team=config, dry_run=True)
        basis = r"based on 1\d earlier runs of this team"
        assert re.search(rf"^usually \$0 to \$0 \(max_usd 10\), {SPAN}, {basis}$", planned["estimate"])
    slow = json.loads(Path(config).read_text())
    slow["agents"][0]["backend"]["script"] = [{"hang": True}]
    Path(config).write_text(json.dumps(slow))
    with terminal(home, "--config", config, "Why?", size=(120, 40)) as window:
        window.wait_for("tokens · usually ")
