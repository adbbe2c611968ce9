"""The options of `massgen`: which team they mean, what they show and what they leave behind."""

import json
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from massgen_mcp.cli.massgen.main import main
from massgen_mcp.cli.massgen.options import Options
from massgen_mcp.cli.massgen.team import find_team
from massgen_mcp.config.providers.catalog import PROVIDERS, provider_names
from massgen_mcp.errors import MassgenError
from tests.commands import run_command
from tests.harness import (
    COMMAND_MODULE,
    PATIENCE_SECONDS,
    TempHome,
    agent,
    call,
    end,
    expect_error,
    happened,
    poll_until,
    without_escapes,
)
from tests.raw_double import Flow, answering, raw_server, reply

LOGS = Path(".massgen", "massgen_logs")


def massgen(home: TempHome, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return run_command(home, COMMAND_MODULE, *arguments)


def piped(home: TempHome, data: bytes, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
    command = [home.python, "-m", COMMAND_MODULE, *arguments]
    return subprocess.run(
        command, cwd=home.work, env=home.environ, input=data, capture_output=True, timeout=60, check=False
    )


def agents_line(done: "subprocess.CompletedProcess[str]") -> str:
    assert done.returncode == 0, done.stderr
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("AGENTS: "))
    return line.removeprefix("AGENTS: ")


def frozen(home: TempHome) -> dict[str, Any]:
    """The config of the only run."""
    (run,) = (home.work / LOGS).iterdir()
    return json.loads((run / "config.json").read_text())["config"]


# -- the team ---------------------------------------------------------------------------------------------------------


def test_models_are_dealt_out_to_as_many_agents_as_asked_for(home: TempHome) -> None:
    done = massgen(home, "--automation", "--models", "scripted/a,scripted/b", "--num-agents", "3", "q")
    assert agents_line(done) == "agent_a (scripted/a), agent_b (scripted/b), agent_c (scripted/a)"


def test_one_model_is_one_agent_with_the_system_message_given(home: TempHome) -> None:
    done = massgen(home, "--automation", "--backend", "scripted", "--model", "x", "--system-message", "Be brief.", "q")
    assert agents_line(done) == "agent_a (scripted/x)"
    assert [one["system_message"] for one in frozen(home)["agents"]] == ["Be brief."]


def test_a_backend_alone_is_its_strongest_model_and_needs_its_key(home: TempHome) -> None:
    done = massgen(home, "--automation", "--backend", "gemini", "q")
    assert done.returncode == 1
    assert "agent 'gemini-4-argon' needs GOOGLE_API_KEY or GEMINI_API_KEY" in done.stderr
    without = massgen(home, "--automation", "--backend", "groq", "q")
    assert "also name the model, with --model" in without.stderr


@pytest.mark.parametrize("backend", provider_names())
async def test_every_backend_has_a_model_of_its_own_or_asks_for_one(backend: str, tmp_path: Path) -> None:
    keys = {name: "k" for row in PROVIDERS for name in (*row.key_variables, "AZURE_OPENAI_ENDPOINT")}
    options = Options(question="q", backend=backend)
    try:
        team = await find_team(
            options, cwd=tmp_path, environ={**keys, "AZURE_OPENAI_ENDPOINT": "https://n.openai.azure.com"}
        )
    except MassgenError as error:
        assert "also name the model, with --model" in str(error)  # noqa: PT017 - either is right
    else:
        assert len(team.config.agents) == 1


def test_the_config_of_the_directory_goes_before_ones_own(home: TempHome) -> None:
    own = home.work / "config-home" / "config.yaml"
    own.parent.mkdir()
    own.write_text("agent: {id: a, backend: {type: scripted, model: own}}\n")
    person = home.with_variables(MASSGEN_CONFIG_HOME=str(own.parent))
    assert agents_line(massgen(person, "--automation", "q")) == "agent_a (scripted/own)"
    project = home.work / ".massgen" / "config.yaml"
    project.write_text("agent: {id: a, backend: {type: scripted, model: project}}\n")
    assert agents_line(massgen(person, "--automation", "q")) == "agent_a (scripted/project)"
    assert agents_line(massgen(person, "--automation", "--config", str(own), "q")) == "agent_a (scripted/own)"


CONTRADICTIONS: dict[str, Sequence[str]] = {
    "config and model": ["--config", "x", "--model", "y", "q"],
    "config and backend": ["--config", "x", "--backend", "y", "q"],
    "select and config": ["--select", "--config", "x", "q"],
    "size of a config": ["--num-agents", "3", "q"],
    "no model": ["--models", "a,,b", "q"],
    "session without logs": ["--no-logs", "--session-id", "x", "q"],
    "automation that asks": ["--automation", "--init"],
    "an option cut short": ["--auto", "q"],
    "two kinds of output": ["--automation", "--json", "q"],
    "files of a run without logs": ["--json", "--no-logs", "q"],
    "a result without a question": ["--json"],
}


@pytest.mark.parametrize("arguments", CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_options_that_contradict_each_other_are_refused(
    arguments: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 1
    printed = capsys.readouterr()
    assert "ERROR invalid_arguments: " in printed.err
    assert printed.out == ""


LEFT_OVER = {
    "verb in quotation marks": ("'watch run-7f3a'", "is a verb; leave out the quotation marks: massgen watch run-7f3a"),
    "run": ("run", 'run isn\'t a verb; to start a run: massgen "your question"'),
    "several words": ("what is x", "put the question in quotation marks: massgen 'what is x'"),
    "batch without a file": ("batch", "batch needs a file of questions"),
    "beginning": ("--out x q", "unknown option --out; did you mean '--output'?"),
    "dash": ("-x", "put -- before a question that starts with -: massgen -- "),
    "nothing": ("--model= q", "--model: the value is empty"),
    "no value": ("--models", "--model needs MODEL,..."),
    "value": ("--quiet=yes q", "--quiet doesn't take a value"),
    "number": ("--model a --num-agents x q", "--num-agents: expected a whole number"),
    "place": ("--json runs", "runs is a verb; put it first: massgen runs"),
    "missing": ("cancel", "needs a run's ID; `massgen runs` lists them\n"),
    "rest": (
        "runs all",
        "unexpected arguments: all; `massgen help runs` shows the valid ones\nto ask this as a question: massgen -- ",
    ),
    "config": (
        "--trust nothing.yaml 'Is it sound?'",
        "nothing.yaml is a config, not a question; use it with: massgen --config nothing.yaml --trust 'Is it sound?'",
    ),
    "config alone": ("@examples/scripted", 'massgen --config @examples/scripted "your question"'),
    "digest": ("--trust sha256:abc q", "--trust: expected sha256: followed by 64 hexadecimal digits, or no value"),
    "both": ("result x --view votes --agent a", "--agent shows one agent's answer"),
}


@pytest.mark.parametrize(("line", "told"), LEFT_OVER.values(), ids=LEFT_OVER)
def test_a_wrong_command_line_is_told_in_plain_words(line: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(shlex.split(line))
    printed = capsys.readouterr()
    assert told in printed.err
    assert "argument " not in printed.err
    assert printed.out == ""


@pytest.mark.parametrize("line", ["install claude", "mark right", "resume latest"])
def test_a_verb_that_was_meant_is_not_offered_as_a_question(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(shlex.split(line))
    printed = capsys.readouterr()
    assert "did you mean" in printed.err or "needs a run's ID" in printed.err
    assert "as a question" not in printed.err


MEANT: dict[str, tuple[Sequence[str], str]] = {
    "option": (["--confg", "x", "q"], "unknown option --confg; did you mean '--config'?"),
    "two words": (["two", "words"], "put the question in quotation marks: massgen 'two words'"),
    "config": (["--config", "three_agnts", "q"], "Did you mean @examples/three_agents?"),
    "model": (["--model", "gpt5", "q"], "did you mean gpt-5?"),
    "model of one's own": (["--model", "llama3", "q"], "did you mean ollama/llama3?"),
    "provider": (["--backend", "olama", "q"], "did you mean 'ollama'?"),
    "session": (["--session-id", "session_2026", "q"], "did you mean 'session_2025'?"),
}


@pytest.mark.parametrize(("arguments", "told"), MEANT.values(), ids=MEANT)
def test_what_was_most_likely_meant_is_told(home: TempHome, arguments: Sequence[str], told: str) -> None:
    session = home.work / ".massgen" / "sessions" / "session_2025"
    (session / "turn_1").mkdir(parents=True)
    done = massgen(home, *arguments)
    assert (done.returncode, done.stdout) == (1, "")
    assert told in done.stderr
    assert "usage: " not in done.stderr


def test_a_ready_config_is_found_by_its_name_alone_unless_there_is_such_a_file(home: TempHome) -> None:
    done = massgen(home, "--automation", "--config", "scripted", "q")
    assert agents_line(done).startswith("agent_a (scripted/scripted), agent_b")
    (home.work / "scripted").write_text("agent: {id: a, backend: {type: scripted, model: mine}}\n")
    assert agents_line(massgen(home, "--automation", "--config", "scripted", "q")) == "agent_a (scripted/mine)"


BROKEN: dict[str, tuple[str, str]] = {
    "tab": ("agents:\n\t- id: a\n", "config.yaml:2: not valid YAML: .*; indent with spaces, not tabs"),
    "indent": ("agents:\n  - id: a\n   x: 1\n", "config.yaml:3: not valid YAML: .*; .* in the same column"),
    "colon": ("agents:\n  - system_message: be: brief\n", "config.yaml:2: .*; quote text that contains a colon"),
    "bracket": ("agents: [{id: a}\n", "not valid YAML: .*; close each \\[ or {"),
    "list": (
        "agent:\n  - {backend: {type: scripted}}\n",
        "config.yaml:1: agent: this is a list; did you mean `agents`?",
    ),
}


@pytest.mark.parametrize(("text", "told"), BROKEN.values(), ids=BROKEN)
def test_a_config_that_is_no_config_is_answered_with_its_line_and_what_to_write(
    home: TempHome, text: str, told: str
) -> None:
    (home.work / "config.yaml").write_text(text)
    done = massgen(home, "--config", "config.yaml", "q")
    assert done.returncode == 1
    assert re.search(told.replace("'?", "'\\?"), done.stderr), done.stderr


@pytest.mark.parametrize("value", ['"sk-1234"', "sk-...", "<your key>", "your-key-here"])
def test_a_value_that_cannot_be_a_key_is_found_before_a_run_begins(home: TempHome, value: str) -> None:
    done = massgen(home.with_variables(OPENAI_API_KEY=value), "--model", "gpt-5", "q")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("ERROR config_invalid: OPENAI_API_KEY doesn't contain a usable key: ")
    assert value not in done.stderr
    assert not (home.work / ".massgen").exists(), "a run has begun"


async def test_a_gateway_is_asked_for_a_model_that_it_does_not_list(home: TempHome) -> None:
    listed = reply(b'{"models": ["x", 1, {"name": "models/gemini-a"}]}', media_type="application/json")
    async with raw_server(listed) as server:
        backend = {"type": "gemini", "base_url": f"{server.url}/v1beta", "model": "gemini-b"}
        config = home.config("gemini", {"id": "a", "backend": backend})
        home.environ["GEMINI_API_KEY"] = "none"
        done = await anyio.to_thread.run_sync(massgen, home, "--automation", "--config", config, "q")
        async with home.client() as client:
            started = await call(client, "start_run", question="q", config=config)
            await call(client, "wait_run", run_id=started["run_id"])
    (note,) = [line for line in done.stdout.splitlines() if line.startswith("NOTE: ")]
    assert "doesn't list the model 'gemini-b'" in note
    assert "did you mean gemini-a? It lists gemini-a." in note
    assert started["note"] in note
    assert len([asked for asked in server.requests if "gemini-b" in asked.head]) >= 2, "the model was never asked"


async def test_a_model_that_its_server_does_not_have_is_found_before_a_run_begins(home: TempHome) -> None:
    home.path.mkdir(mode=0o700)
    listed = reply(json.dumps({"data": [{"id": "big-2"}, {"id": "small-2"}]}).encode(), media_type="application/json")
    async with raw_server(listed) as server:
        backend = {"type": "vllm", "base_url": f"{server.url}/v1"}
        config = home.config("typo", {"id": "a", "backend": {**backend, "model": "bigg-2"}})
        kept = home.path / "model_lists.json"
        kept.write_text(json.dumps({"http://127.0.0.1:1/v1": [time.time() - 25 * 3600, ["x"]]}))
        for asked in (1, 2):
            done = await anyio.to_thread.run_sync(massgen, home, "--config", config, "q")
            assert (done.returncode, done.stdout) == (1, "")
            assert "has no model 'bigg-2'; did you mean big-2? It has big-2, small-2" in done.stderr
            assert (
                "If this is a gateway that serves more models than it lists, set `type: chatcompletion`" in done.stderr
            )
            assert len(server.requests) == asked, "an old list was believed"
        ((address, (_, names)),) = json.loads(kept.read_bytes()).items()
        assert (address, names) == (f"{server.url}/v1", ["big-2", "small-2"]), "what is older than a day has gone"
        async with home.client() as client:
            code, told = await expect_error(client, "start_run", question="q", config=config)
            assert (code, "has no model 'bigg-2'; did you mean big-2?" in told) == ("config_invalid", True)
            assert (await call(client, "list_runs"))["runs"] == []
    assert not (home.work / ".massgen").exists(), "a run has begun"


async def test_a_server_that_does_not_say_in_time_which_models_it_has_keeps_no_run_from_beginning(
    home: TempHome,
) -> None:
    silence = Flow(list[bytes], silence_seconds=3600)
    async with answering(lambda _seen, _number: silence) as server:
        backend = {"type": "chatcompletion", "base_url": f"{server.url}/v1", "model": "m"}
        config = home.config("silent", {"id": "a", "backend": backend})
        async with home.client() as client:
            for _ in range(2):
                started = await call(client, "start_run", question="q", config=config)
                await call(client, "control_run", run_id=started["run_id"], action="cancel")
        asked = [seen.path for seen in server.requests if seen.path.endswith("/models")]
        assert asked == ["/v1/models"], "it was asked again at once"


def test_what_one_run_may_cost_is_an_option(home: TempHome) -> None:
    done = massgen(home, "--automation", "--model", "scripted/x", "--max-usd", "0.50", "q")
    assert done.returncode == 0, done.stderr
    assert frozen(home)["budget"]["max_usd"] == 0.5


# -- the question -----------------------------------------------------------------------------------------------------


def test_a_file_that_no_agent_is_shown_is_told(home: TempHome) -> None:
    (home.work / "here.md").touch()
    asked = "Is @gone.txt as good as @here.md, @you.know?"
    done = massgen(home, "--automation", "--model", "scripted/x", asked)
    assert [line for line in done.stdout.splitlines() if line.startswith("NOTE: ")] == [
        "NOTE: @gone.txt: this file does not exist here",
        "NOTE: @here.md: agents see only this name; to let them read the file, add it under context_paths",
        "NOTE: @you.know: this file does not exist here",
    ]
    piped_in = piped(home, asked.encode(), "--automation", "--model", "scripted/x", "-")
    assert b"NOTE: " not in piped_in.stdout


def test_the_question_may_come_from_standard_input(home: TempHome) -> None:
    done = piped(home, "Wörld?\nIn two lines.\n".encode(), "--automation", "--model", "scripted/x", "-")
    assert done.returncode == 0
    assert "QUESTION: Wörld? In two lines." in done.stdout.decode()


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "standard input was empty"),
        (b"a\xff", "isn't valid UTF-8"),
        (b"\xc3\xb6" * 3_000_000, "the limit is 1000000"),
    ],
    ids=["nothing", "no text", "too much"],
)
def test_a_question_on_standard_input_that_cannot_be_asked_is_refused(home: TempHome, data: bytes, told: str) -> None:
    done = piped(home, data, "--automation", "--model", "scripted/x", "-")
    assert done.returncode == 1
    assert done.stderr.decode().startswith("ERROR invalid_arguments: ")
    assert told in done.stderr.decode()
    assert done.stdout == b""


def test_automation_needs_a_question(home: TempHome) -> None:
    done = massgen(home, "--automation", "--model", "scripted/x")
    assert done.returncode == 1
    assert "--automation needs a QUESTION" in done.stderr


# -- output -----------------------------------------------------------------------------------------------------------


def test_a_pipe_gets_the_answer_alone_and_what_people_read_is_on_standard_error(home: TempHome) -> None:
    followed = massgen(home, "--models", "scripted/x,scripted/x", "q")
    team = "Team: x (scripted/x), x-2 (scripted/x); models: scripted/x, scripted/x; no hosts, no keys"
    assert followed.stderr.startswith(team), followed.stderr
    assert "at most $10.00 and 30 minutes" in followed.stderr
    for told in (
        "x: 1st answer: x's answer",
        " votes for ",
        "Cost ",
        "Files ",
        "--view full` shows",
    ):
        assert told in followed.stderr, told
    silent = massgen(home, "--no-display", "--models", "scripted/x,scripted/x", "q")
    assert "new answer" not in silent.stderr
    quiet = massgen(home, "--quiet", "--models", "scripted/x,scripted/x", "q")
    assert quiet.stderr == ""
    for done in (followed, silent, quiet):
        assert done.stdout == "x's answer to: q\n"
        assert without_escapes(done.stderr)


def test_the_result_is_one_json_document_as_the_tools_give_it(home: TempHome) -> None:
    done = massgen(home, "--json", "--config", "@examples/scripted", "q")
    result = json.loads(done.stdout)
    assert (done.returncode, result["status"], result["winner"]) == (0, "completed", "bo")
    assert result["answer"].startswith("Neither: replace it")
    assert Path(result["paths"]["final_answer"]).read_text() == result["answer"]
    failed = massgen(home, "--json", "--quiet", "--config", home.config("bad", agent("a", {"fail": "auth"})), "q")
    assert failed.returncode == 2
    assert json.loads(failed.stdout)["reason"].startswith("auth: ")
    assert failed.stderr == ""


def test_a_run_that_failed_says_on_standard_error_why_and_what_helps(home: TempHome) -> None:
    config = home.config(
        "mixed", agent("a", {"answer": "the best so far"}), agent("b", {"fail": "auth"}, {"hang": True})
    )
    refused = massgen(home, "--config", home.config("bad", agent("a", {"fail": "auth"})), "q")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "Failed (auth)" in refused.stderr
    assert "`massgen doctor` shows which keys are set" in refused.stderr
    done = massgen(home, "--quiet", "--config", config, "q")
    assert done.stdout == "the best so far\n"


@pytest.mark.parametrize("ending", ["done", "interrupted"])
def test_no_logs_leaves_nothing_but_the_output_file(home: TempHome, ending: str) -> None:
    temporary = home.work / "tmp"
    temporary.mkdir()
    steps = (
        [agent("a", {"answer": "x"})] if ending == "done" else [agent("a", {"answer": "x"}), agent("b", {"hang": True})]
    )
    config = home.config("team", *steps)
    command = [home.python, "-m", COMMAND_MODULE, "--automation", "--no-logs", "--output-file", "out.txt"]
    environ = {**home.environ, "TMPDIR": str(temporary)}
    before = {*home.work.rglob("*")}
    with subprocess.Popen(
        [*command, "--config", config, "q"], cwd=home.work, env=environ, stdout=subprocess.PIPE, text=True
    ) as process:
        if ending == "interrupted":
            poll_until(lambda: any("answer_submitted" in one.read_text() for one in temporary.rglob("events.jsonl")))
            end(process.pid, signal.SIGINT)
        output, _ = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == (0 if ending == "done" else 4)
    assert output.startswith(f"LOG_DIR: {temporary}")
    assert {*home.work.rglob("*")} - before == {home.work / "out.txt"}
    assert (home.work / "out.txt").read_text() == "x"


def test_debug_tells_everything_and_leaves_standard_output_as_it_is(home: TempHome) -> None:
    done = massgen(home, "--automation", "--debug", "--model", "scripted/x", "What?")
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 14
    assert " | DEBUG | x: x replied" in done.stderr
    (run,) = (home.work / LOGS).iterdir()
    log = (run / "massgen_debug.log").read_text()
    for told in ("run_started", "question: What?", "model_replied", "new_answer", "run_completed"):
        assert told in log
    assert without_escapes(log)
    refused = massgen(home, "--debug", "--config", "nowhere.yaml", "q")
    assert "Traceback (most recent call last)" in refused.stderr
    assert refused.stderr.splitlines()[-1].startswith("ERROR config_not_found: ")


def test_a_reader_that_has_gone_does_not_end_a_run_that_is_paid_for(home: TempHome) -> None:
    line = f"{home.python} -m {COMMAND_MODULE} --automation --config @examples/scripted q | head -1"
    done = subprocess.run(
        ["bash", "-c", f"{line}; echo ${{PIPESTATUS[0]}}"],
        cwd=home.work,
        env=home.environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    first, code = done.stdout.splitlines()
    assert first.startswith("LOG_DIR: ")
    assert (code, done.stderr) == ("0", "")
    status = json.loads(Path(first.removeprefix("LOG_DIR: "), "status.json").read_text())
    assert status["coordination"]["completion_percentage"] == 100


def test_agents_do_not_ask_where_nobody_can_answer(home: TempHome) -> None:
    ask: dict[str, Any] = {"call": "ask_the_asker", "arguments": {"question": "Metres or feet?"}}
    config = home.config("asking", agent("solo", ask, {"answer": "x"}), orchestrator={"allow_questions": True})
    done = massgen(home, "--automation", "--config", config, "q")
    assert done.returncode == 0, done.stdout
    (run,) = (home.work / LOGS).iterdir()
    assert not happened(run, "input_required")
    assert happened(run, "rule_violated")


# -- --validate -------------------------------------------------------------------------------------------------------


def test_a_valid_config_is_confirmed_with_its_team_and_the_keys_it_lacks(home: TempHome) -> None:
    done = massgen(home, "--validate", "@examples/two_providers")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0].startswith("OK: @examples/two_providers: openai (openai/")
    assert done.stdout.splitlines()[1] == "Not set here: OPENAI_API_KEY, ANTHROPIC_API_KEY"


def test_a_config_of_notify_alone_is_valid_without_a_team(home: TempHome) -> None:
    own = home.work / "config-home" / "config.yaml"
    own.parent.mkdir()
    own.write_text("notify: [notify-send, it ended]\n")
    person = home.with_variables(MASSGEN_CONFIG_HOME=str(own.parent))
    done = massgen(person, "--validate", str(own))
    assert (done.returncode, done.stdout) == (
        0,
        f"OK: {own}: it sets notify (notify-send 'it ended') but defines no team\n",
    )
    other = own.rename(home.work / "other.yaml")
    assert "only your own config" in massgen(person, "--validate", str(other)).stderr


def test_everything_that_is_wrong_with_a_config_is_told_at_once_with_its_line(home: TempHome) -> None:
    (home.work / "bad.yaml").write_text(
        "agents:\n"
        "  - id: a\n"
        "    backend: {type: opneai, model: m}\n"
        "  - id: b c\n"
        "    backend: {type: openai}\n"
        "orchestrator:\n"
        "  voting_sensitivity: very\n"
        "  max_answers: 3\n"
    )
    done = massgen(home, "--validate", "bad.yaml")
    assert (done.returncode, done.stdout) == (1, "")
    lines = done.stderr.splitlines()
    assert lines[0].startswith("ERROR config_invalid: bad.yaml:3: agents[0].backend.type: ")
    places = [line.removeprefix("ERROR config_invalid: ").split(": ")[:2] for line in lines]
    assert places == [
        ["bad.yaml:3", "agents[0].backend.type"],
        ["bad.yaml:4", "agents[1].id"],
        ["bad.yaml:5", "agents[1].backend.model"],
        ["bad.yaml:7", "orchestrator.voting_sensitivity"],
        ["bad.yaml:8", "orchestrator.max_answers"],
    ]
    assert not (home.work / ".massgen").exists()
