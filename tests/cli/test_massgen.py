"""`massgen` as programs use it: stable lines, exit codes that mean something, files in known places."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from massgen_mcp.cli.manual import OF_ASK
from tests.commands import run_command
from tests.harness import (
    COMMAND_MODULE,
    PATIENCE_SECONDS,
    SERVER_MODULE,
    TempHome,
    agent,
    end,
    happened,
    poll_until,
    without_escapes,
)
from tests.wire_double import Aimock

CONFIG_ERROR, EXECUTION_ERROR, TIMEOUT, INTERRUPTED = 1, 2, 3, 4
IN_PROGRESS = "[Coordination in progress - monitor status.json for real-time updates]"
HANG = {"hang": True}


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", COMMAND_MODULE, *arguments]


def massgen(home: TempHome, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return run_command(home, COMMAND_MODULE, *arguments, seconds=90)


def automated(home: TempHome, config: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return massgen(home, "--automation", "--config", config, *arguments, "What is it?")


def value_of(output: str, name: str) -> str:
    """What stands behind `NAME: ` in the one line that begins so."""
    (found,) = re.findall(rf"^{name}: (.*)$", output, re.MULTILINE)
    return found


def log_dir(output: str) -> Path:
    return Path(value_of(output, "LOG_DIR"))


def status_of(output: str) -> dict[str, Any]:
    return json.loads((log_dir(output) / "status.json").read_text())


# -- lines ------------------------------------------------------------------------------------------------------------


def test_automation_prints_the_lines_of_the_contract_in_their_order(home: TempHome) -> None:
    done = automated(home, "@examples/scripted")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    directory = log_dir(done.stdout)
    assert re.fullmatch(r"log_\d{8}_\d{6}_\d{6}", directory.name)
    assert directory.parent == home.work / ".massgen" / "massgen_logs"
    assert "You can commit config.yaml, this project's team" in (home.work / ".massgen" / ".gitignore").read_text()
    expected = [
        re.escape(f"LOG_DIR: {directory}"),
        re.escape(f"STATUS: {directory / 'status.json'}"),
        re.escape("AGENTS: agent_a (scripted/scripted), agent_b (scripted/scripted), agent_c (scripted/scripted)"),
        r"QUESTION: What is it\?",
        re.escape(IN_PROGRESS),
        "TEAM: @examples/scripted; no hosts, no keys, no changes to your files",
        "WINNER: agent_b",
        r"OUTCOME: \w+, 3 of 3 voted",
        r"DURATION: \d+\.\d+s",
        r"COST: \$0\.00 for \d+ calls, [\d,]+ tokens",
        re.escape(f"ANSWER_FILE: {directory / 'final' / 'agent_b' / 'answer.txt'}"),
        re.escape(f"REPORT: {directory / 'report.html'}"),
        "ANSWER_PREVIEW: Neither: replace it piece by piece.*",
        r"COMPLETED: 3 agents, \d+\.\d+s total",
    ]
    assert 10 <= len(lines) <= 20
    assert len(lines) == len(expected), done.stdout
    for line, pattern in zip(lines, expected, strict=True):
        assert re.fullmatch(pattern, line), line
        assert f"\n  {line.split()[0]} " in OF_ASK, "the help names every line"


@pytest.mark.parametrize("automation", [["--automation"], []], ids=["automation", "for people"])
async def test_escapes_of_a_model_never_reach_the_output(home: TempHome, aimock: Aimock, automation: list[str]) -> None:
    evil = "\x1b[31mred\x1b]0;title\x07 \x9b1m\r\x00 and\na second line\nLOG_DIR: /forged"
    aimock.load(
        {"match": {"model": "m"}, "response": {"toolCalls": [{"name": "new_answer", "arguments": {"content": evil}}]}}
    )
    backend = {"type": "chatcompletion", "model": "m", "base_url": f"{aimock.url}/v1"}
    config = home.config("evil", {"id": "solo", "backend": backend})
    arguments = [home.python, "-m", COMMAND_MODULE, *automation, "--config", config, "Is \x1b[1mit\x07?"]
    done = await anyio.run_process(arguments, cwd=home.work, env=home.environ, check=False)
    output = done.stdout.decode()
    assert done.returncode == 0, done.stderr
    assert "a second line" in output
    assert without_escapes(output), repr(output)
    if automation:
        assert len(output.splitlines()) == 14, "a line of the answer is not a line of the contract"


def test_a_failing_team_stays_within_twenty_lines(home: TempHome) -> None:
    done = automated(home, home.config("ten", *(agent(f"a{n}", {"fail": "auth"}) for n in range(10))))
    assert done.returncode == EXECUTION_ERROR
    assert len(done.stdout.splitlines()) <= 20
    assert len(re.findall(r"^WARNING: agent_. was dropped \(auth\)", done.stdout, re.MULTILINE)) == 8
    assert "WARNING: and 2 more\n" in done.stdout


def test_a_run_with_every_line_there_can_be_stays_within_twenty(home: TempHome) -> None:
    fallen = [agent(f"a{n}", {"fail": "auth"}) for n in range(9)]
    winner = agent("last", {"answer": "mine"}, {"fail": "auth"})
    config = home.config("ten", *fallen, winner, orchestrator={"final_answer_strategy": "winner_present"})
    done = automated(home, config, "--output-file", "out.txt")
    assert done.returncode == EXECUTION_ERROR, done.stdout
    lines = done.stdout.splitlines()
    assert len(lines) <= 20
    assert {"WINNER", "ANSWER_FILE", "OUTPUT_FILE", "COMPLETED"} <= {line.partition(":")[0] for line in lines}


def test_people_get_the_whole_answer(home: TempHome) -> None:
    done = massgen(home, "--config", "@examples/scripted", "What is it?")
    assert done.returncode == 0
    assert "4. Set an end date for the old code, and hold it." in done.stdout


# -- exit codes -------------------------------------------------------------------------------------------------------


USAGE: dict[str, tuple[Sequence[str], str]] = {
    "missing config": (["--config", "nowhere.yaml", "q"], "config_not_found: Config file not found: nowhere.yaml"),
    "unknown example": (["--config", "@examples/scriptd", "q"], "Did you mean @examples/scripted?"),
    "no config at all": (["q"], "no_default_team"),
    "missing key": (["--config", "@examples/two_providers", "q"], "ANTHROPIC_API_KEY"),
    "unknown flag": (["--configg", "x", "q"], "--configg"),
    "empty question": (["--config", "@examples/scripted", "  "], "empty"),
    "question that is no text": (["--config", "@examples/scripted", "a\udcff"], "Unicode"),
    "output file nowhere": (["--config", "@examples/scripted", "--output-file", "no/where.txt", "q"], "--output"),
}


@pytest.mark.parametrize(("arguments", "hint"), USAGE.values(), ids=USAGE)
def test_what_keeps_a_run_from_beginning_exits_as_a_config_error(
    home: TempHome, arguments: list[str], hint: str
) -> None:
    done = massgen(home, "--automation", *arguments)
    assert done.returncode == CONFIG_ERROR, done.stdout + done.stderr
    assert "ERROR " in done.stderr
    assert hint in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert not (home.work / ".massgen").exists(), "nothing has begun"


def test_a_bad_yaml_file_exits_as_a_config_error_with_every_line_at_fault(home: TempHome) -> None:
    bad = home.work / "bad.yaml"
    bad.write_text(
        "agents:\n  - id: a\n    backend:\n      type: scriptd\n  - id: a b\n    backend: {type: scripted}\n"
    )
    done = automated(home, "bad.yaml")
    assert done.returncode == CONFIG_ERROR
    assert "bad.yaml:4: " in done.stderr
    assert "scripted" in done.stderr
    assert "bad.yaml:5: " in done.stderr


def test_a_team_whose_every_agent_fails_exits_as_an_execution_error(home: TempHome) -> None:
    done = automated(home, home.config("refused", agent("a", {"fail": "auth"}), agent("b", {"fail": "auth"})))
    assert done.returncode == EXECUTION_ERROR
    assert value_of(done.stdout, "FAILED").startswith("auth: ")
    assert "WINNER" not in done.stdout
    status = status_of(done.stdout)
    assert {view["status"] for view in status["agents"].values()} == {"error"}
    assert {view["error"]["reason"] for view in status["agents"].values()} == {"auth"}
    assert status["results"]["winner"] is None


def test_an_unreachable_address_exits_as_an_execution_error_that_names_it(home: TempHome) -> None:
    with closing(socket.socket()) as listener:
        listener.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        backend = {"type": "chatcompletion", "model": "m", "base_url": url}
        done = automated(home, home.config("nobody-there", {"id": "a", "backend": backend}))
    assert done.returncode == EXECUTION_ERROR
    assert url.removesuffix("/v1") in value_of(done.stdout, "FAILED")


def test_the_first_answer_wins_when_a_second_attempt_comes_to_nothing(home: TempHome) -> None:
    restart = {"call": "restart_orchestration", "arguments": {"reason": "too short", "instructions": "explain it"}}
    winner = agent("ada", {"answer": "42"}, {"vote": "own"}, {"say": "Forty-two."}, restart, {"fail": "auth"})
    other = agent("bo", {"answer": "41"}, {"vote": "42"}, {"fail": "auth"})
    settings = {"coordination": {"max_orchestration_restarts": 1}}
    done = automated(home, home.config("again", winner, other, orchestrator=settings))
    assert done.returncode == 0, done.stdout
    assert value_of(done.stdout, "WINNER") == "agent_a"
    assert Path(value_of(done.stdout, "ANSWER_FILE")).read_text() == "Forty-two."
    assert status_of(done.stdout)["results"]["winner"] == "agent_a"


def test_a_run_beyond_its_time_exits_as_a_timeout_and_shows_the_best_answer(home: TempHome) -> None:
    config = home.config(
        "late",
        agent("quick", {"answer": "the quick answer"}),
        agent("stuck", HANG),
        timeout_settings={"orchestrator_timeout_seconds": 3},
    )
    done = automated(home, config)
    assert done.returncode == TIMEOUT
    assert value_of(done.stdout, "TIMED_OUT") == "the run took longer than 3 s"
    assert value_of(done.stdout, "ANSWER_PREVIEW") == "the quick answer"


INTERRUPTED_IMPORT = """
import os, signal, sys

class Finder:
    def find_spec(self, name, *_):
        if name == sys.argv[2]:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder())
from importlib import import_module
import_module(sys.argv[1]).main(["q"] if ".massgen." in sys.argv[1] else ["runs"])
"""


@pytest.mark.parametrize(
    ("program", "module", "code"),
    [
        (COMMAND_MODULE, "massgen_mcp.cli.massgen.options", INTERRUPTED),
        (COMMAND_MODULE, "massgen_mcp.cli.boundary", INTERRUPTED),
        (COMMAND_MODULE, "massgen_mcp.runs.host.foreground", INTERRUPTED),
        (SERVER_MODULE, "massgen_mcp.cli.boundary", 130),
    ],
)
def test_an_interrupt_while_a_command_is_loaded_is_clean(home: TempHome, program: str, module: str, code: int) -> None:
    command = [sys.executable, "-c", INTERRUPTED_IMPORT, program, module]
    done = subprocess.run(command, cwd=home.work, env=home.environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM], ids=lambda sign: sign.name)
def test_a_signal_interrupts_the_run_in_good_order(home: TempHome, sign: signal.Signals) -> None:
    config = home.config("stuck", agent("quick", {"answer": "the quick answer"}), agent("stuck", HANG))
    arguments = command("--automation", "--config", config, "q")
    with subprocess.Popen(arguments, cwd=home.work, env=home.environ, stdout=subprocess.PIPE, text=True) as process:
        run = poll_until(lambda: [*(home.work / ".massgen" / "massgen_logs").glob("log_*")])[0]
        poll_until(lambda: happened(run, "answer_submitted"))
        end(process.pid, sign)
        output, _ = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == INTERRUPTED
    assert "CANCELLED" in output
    assert value_of(output, "ANSWER_PREVIEW") == "the quick answer"
    assert happened(run, "run_cancelled")


# -- files ------------------------------------------------------------------------------------------------------------


def test_the_output_file_gets_the_final_answer(home: TempHome) -> None:
    done = automated(home, "@examples/scripted", "--output-file", "answer.md")
    assert done.returncode == 0
    target = home.work / "answer.md"
    assert value_of(done.stdout, "OUTPUT_FILE") == str(target)
    assert target.read_text() == Path(value_of(done.stdout, "ANSWER_FILE")).read_text()
    assert len(done.stdout.splitlines()) == 15


def in_shell(home: TempHome, line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-c", line], cwd=home.work, env=home.environ, capture_output=True, text=True, check=False
    )


def test_an_output_file_may_be_a_link_or_a_pipe_and_stays_one(home: TempHome) -> None:
    (home.work / "link.md").symlink_to("real.md")
    assert automated(home, "@examples/scripted", "--output-file", "link.md").returncode == 0
    assert (home.work / "link.md").is_symlink()
    answer = (home.work / "real.md").read_bytes()
    pipe = home.work / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    assert automated(home, "@examples/scripted", "--output-file", "pipe").returncode == 0
    assert os.read(reader, 10_000) == answer
    os.close(reader)


def test_an_answer_that_cannot_be_printed_is_an_error_that_says_where_it_is(home: TempHome) -> None:
    line = f"{home.python} -m {COMMAND_MODULE} --config @examples/scripted q > /dev/full"
    done = in_shell(home, line)
    assert done.returncode == EXECUTION_ERROR
    *_, error = done.stderr.splitlines()
    assert error.startswith("ERROR disk_full: cannot write to standard output: No space left on device; ")
    (answer,) = [line.removeprefix("Answer ") for line in done.stderr.splitlines() if line.startswith("Answer ")]
    assert Path(answer).read_text().startswith("Neither")


def test_closed_standard_streams_harm_nothing(home: TempHome) -> None:
    line = f"{sys.executable} -m {COMMAND_MODULE} --automation --model scripted/x --output-file out.md q <&- >&-"
    done = in_shell(home, line)
    assert (done.returncode, done.stderr) == (0, "")
    assert (home.work / "out.md").exists()


def test_three_runs_of_one_config_at_once_do_not_collide(home: TempHome) -> None:
    arguments = command("--automation", "--config", "@examples/scripted", "q")
    runs = [
        subprocess.Popen(arguments, cwd=home.work, env=home.environ, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    outputs = [run.communicate(timeout=60)[0] for run in runs]
    assert [run.returncode for run in runs] == [0, 0, 0]
    directories = {log_dir(output) for output in outputs}
    assert len(directories) == 3
    assert {*(home.work / ".massgen" / "massgen_logs").iterdir()} == directories
    for directory in directories:
        assert (directory / "final" / "agent_b" / "answer.txt").read_text().startswith("Neither")
        others = [str(other).encode() for other in directories - {directory}]
        texts = [path.read_bytes() for path in directory.rglob("*") if path.is_file()]
        assert not any(other in text for other in others for text in texts)


def test_a_run_leaves_its_record_where_tools_look_for_it(home: TempHome) -> None:
    done = automated(home, "@examples/scripted")
    directory = log_dir(done.stdout)
    for name in ("events.jsonl", "status.json", "massgen.log", "execution_metadata.yaml"):
        assert (directory / name).stat().st_size > 0, name
    attempt = directory / "turn_1" / "attempt_1"
    answers = {name: sorted(attempt.glob(f"{name}/*/answer.txt")) for name in ("agent_a", "agent_b", "agent_c")}
    assert {name: len(paths) for name, paths in answers.items()} == {"agent_a": 1, "agent_b": 2, "agent_c": 1}
    assert all(re.fullmatch(r"\d{8}_\d{6}_\d{6}", path.parent.name) for paths in answers.values() for path in paths)
    assert answers["agent_c"][0].read_text().startswith("Mend it.")
    assert [path.name for path in (directory / "final").iterdir()] == ["agent_b"]


META = {"last_updated", "session_id", "log_dir", "question", "start_time", "elapsed_seconds"}
COORDINATION = {"phase", "active_agent", "completion_percentage", "is_final_presentation"}
AGENT = {
    "status", "answer_count", "latest_answer_label", "vote_cast", "times_restarted", "last_activity", "error",
}  # fmt: skip
VOTE = {"voted_for_agent", "voted_for_label", "reason_preview"}
RESULTS = {"votes", "winner", "final_answer_preview", "outcome", "weak", "failure"}


def test_status_json_has_the_keys_that_automation_reads(home: TempHome) -> None:
    done = automated(home, "@examples/scripted")
    status = status_of(done.stdout)
    assert set(status["meta"]) == META
    assert set(status["coordination"]) == COORDINATION
    assert list(status["agents"]) == ["agent_a", "agent_b", "agent_c"]
    assert all(set(view) == AGENT for view in status["agents"].values())
    assert all(set(view["vote_cast"]) == VOTE for view in status["agents"].values())
    assert set(status["results"]) == RESULTS
    assert set(status["telemetry"]) == {"total_calls", "by_model", "by_agent"}
    assert all(
        {"calls", "tokens", "cost", "latency"} <= set(spent)
        for group in ("by_model", "by_agent")
        for spent in status["telemetry"][group].values()
    )


def test_status_json_has_no_part_beyond_the_contract(home: TempHome) -> None:
    done = automated(home, "@examples/scripted")
    assert set(status_of(done.stdout)) == {"meta", "coordination", "agents", "results", "telemetry"}


def test_status_json_tells_the_end_as_it_was(home: TempHome) -> None:
    done = automated(home, "@examples/scripted")
    status = status_of(done.stdout)
    directory = log_dir(done.stdout)
    meta = status["meta"]
    assert (meta["session_id"], meta["log_dir"], meta["question"]) == (directory.name, str(directory), "What is it?")
    assert meta["start_time"] < meta["last_updated"]
    assert status["coordination"]["completion_percentage"] == 100
    assert status["coordination"]["phase"] == "presentation"
    assert status["coordination"]["is_final_presentation"] is True
    assert {view["status"] for view in status["agents"].values()} == {"voted"}
    bo = status["agents"]["agent_b"]
    assert (bo["answer_count"], bo["latest_answer_label"], bo["error"]) == (2, "agent2.2", None)
    assert bo["vote_cast"]["voted_for_agent"] == "agent_b"
    assert status["results"]["winner"] == "agent_b"
    assert status["results"]["votes"] == {"agent1.1": 0, "agent2.2": 2, "agent3.1": 1}
    assert status["results"]["final_answer_preview"].startswith("Neither")
    calls = status["telemetry"]["total_calls"]
    assert sum(spent["calls"] for spent in status["telemetry"]["by_agent"].values()) == calls


def test_status_json_moves_while_the_run_goes_on(home: TempHome) -> None:
    config = home.config("stuck", agent("quick", {"answer": "x"}), agent("stuck", HANG))
    arguments = command("--automation", "--config", config, "q")
    with subprocess.Popen(arguments, cwd=home.work, env=home.environ, stdout=subprocess.PIPE) as process:
        run = poll_until(lambda: [*(home.work / ".massgen" / "massgen_logs").glob("log_*")])[0]

        def status() -> dict[str, Any]:
            path = run / "status.json"
            return json.loads(path.read_text()) if path.exists() else {}

        poll_until(lambda: status().get("agents", {}).get("agent_a", {}).get("answer_count") == 1)
        first = status()["meta"]["last_updated"]
        assert status()["coordination"]["completion_percentage"] < 100
        poll_until(lambda: status()["meta"]["last_updated"] > first)
        end(process.pid, signal.SIGTERM)
        process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == INTERRUPTED


def test_who_has_nothing_to_vote_for_still_answers_when_the_budget_is_reached(home: TempHome) -> None:
    price = {"input_usd_per_million": 200, "output_usd_per_million": 1000}
    dear = agent("ada", {"answer": "A."}, price=price)
    config = home.config("tight", dear, agent("bo", {"answer": "B."}), budget={"max_usd": 0.002})
    done = run_command(home, COMMAND_MODULE, "--automation", "--config", config, "q")
    assert (done.returncode, "ANSWER_PREVIEW: B." in done.stdout.splitlines()) == (2, True), done.stdout
    assert "No agent voted for or reviewed bo's answer." in done.stdout
