"""Mistakes that people make in their first hour: one look at the answer says what is wrong and what to type."""

import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from massgen_mcp.cli.massgen.main import main as massgen
from massgen_mcp.cli.massgen_mcp.main import main as massgen_mcp
from tests.planted import PLANTED

TEAM = "agents: [{id: ada, backend: {type: scripted, model: x}}]\n"
ENTRY = "{id: ada, backend: {type: openai, model: NAME}}"
OBJECT = 'each line is one JSON object, such as {"question": '


class Mistake(NamedTuple):
    line: str
    """Typed in a fresh directory that holds `files`."""
    code: int
    told: str
    files: Mapping[str, str | bytes] = {}


def config(text: str | bytes, told: str) -> Mistake:
    return Mistake("massgen --config t.yaml q", 1, told, {"t.yaml": text})


MISTAKES = {
    # the question
    "no question in it": Mistake("massgen ''", 1, 'the question is empty: massgen "your question"'),
    "only blanks": Mistake("massgen --model scripted/x '  '", 1, 'massgen "your question"'),
    "a file as question": Mistake("massgen notes.md", 1, "massgen - < notes.md asks", {"notes.md": "hello"}),
    "not quoted": Mistake("massgen what is love", 1, "massgen 'what is love'"),
    # options
    "--verbose": Mistake("massgen --verbose q", 1, "did you mean '--debug'?"),
    "--agents": Mistake("massgen --agents 3 q", 1, "did you mean '--num-agents'?"),
    "--timeout": Mistake("massgen --timeout 60 q", 1, "timeout_settings: {orchestrator_timeout_seconds: 600}"),
    "--web": Mistake("massgen --web", 1, "`massgen web` shows runs in a browser"),
    "--api-key": Mistake("massgen --api-key sk-1 q", 1, "export OPENAI_API_KEY=..."),
    "one hyphen": Mistake("massgen -model gpt-5 q", 1, "did you mean '--model'?"),
    "a long dash": Mistake("massgen \N{EM DASH}model gpt-5 q", 1, "options with two hyphens: --model"),
    "a config of another name": Mistake("massgen --config t.yml q", 1, "did you mean t.yaml?", {"t.yaml": TEAM}),
    "its directory": Mistake("massgen --config c q", 1, "is a directory; did you mean c/t.yaml?", {"c/t.yaml": TEAM}),
    "models with blanks": Mistake(
        "massgen --models gpt-5 claude-x q", 1, "the models go together, with commas: --model gpt-5,claude-x"
    ),
    "a provider as model": Mistake("massgen --model openai q", 1, "it is a provider: --backend openai"),
    "a model as provider": Mistake("massgen --backend gpt-5 q", 1, "it is a model: openai/gpt-5"),
    "a model's last name": Mistake("massgen --model opus q", 1, "did you mean claude-opus-"),
    "too few agents": Mistake("massgen --model scripted/x --num-agents -1 q", 1, "expected a whole number, 0 or more"),
    "too many agents": Mistake("massgen --model scripted/x --num-agents 99 q", 1, "a team has 1 to 10 agents, not 99"),
    "dollars with their sign": Mistake("massgen --max-usd '$5' q", 1, "such as 2.50"),
    "no config": Mistake("massgen --validate", 1, "no config is used here, .*; `massgen init` makes one"),
    "no interrupted run": Mistake("massgen --resume", 1, "no run of this directory is interrupted"),
    # verbs
    "login": Mistake("massgen login", 1, "`massgen doctor` says which keys are set"),
    "list": Mistake("massgen list", 1, "`massgen runs` lists runs"),
    "ls": Mistake("massgen-mcp ls", 64, "`massgen runs` lists runs"),
    "logs": Mistake("massgen-mcp logs run-x", 64, "massgen result ID --view full"),
    "stop": Mistake("massgen-mcp stop run-x", 64, "`massgen cancel ID` stops a run"),
    "undo": Mistake("massgen-mcp undo run-x", 64, "massgen apply ID --undo"),
    "no client": Mistake("massgen-mcp install", 64, "CLIENT is missing; there are: claude-code, codex"),
    "half a client": Mistake("massgen-mcp install claude", 64, "did you mean 'claude-code'?"),
    "a state of others": Mistake("massgen-mcp runs --state done", 64, "there are: queued, running"),
    # configs
    "empty": config("", "expected a mapping with the key 'agents'; `massgen --init` writes one"),
    "TOML": config('[agents]\nid = "a"\n', "t.yaml:2: .*; a config is YAML: after each key a colon"),
    "UTF-16": config(TEAM.encode("utf-16"), "not UTF-8 text; save the file as UTF-8"),
    "no-break space": config("agents:\n\xa0 - id: a\n", "t.yaml:2: a no-break space; indent with plain spaces"),
    "agents by name": config("agents: {ada: {}}", f"agents: expected a list, such as [{ENTRY}]"),
    "names as agents": config("agents: [gpt-5]", f"agents[0]: expected a mapping, such as {ENTRY}"),
    "model of the agent": config("agents: [{model: x}]", "agents[0].model: unknown key; write model under backend"),
    "provider": config("agents: [{provider: x}]", "provider: unknown key; write type under backend"),
    "typo beside its place": config("agents: [{temprature: 1}]", "write temperature under backend of an agent"),
    "paths at the top": config(f"{TEAM}context_paths: []", "unknown key; write context_paths under orchestrator"),
    "timeout at the top": config(f"{TEAM}timeout: 9", "write orchestrator_timeout_seconds under timeout_settings"),
    "prompt at the top": config(f"{TEAM}system_message: x", "write system_message under an entry of agents"),
    "a lone sum": config(f"{TEAM}budget: 5", "budget: expected a mapping, such as {max_usd: 5}"),
    "old keys": config(f"{TEAM}max_rounds: 3", "leave it out .* orchestrator.max_new_answers_per_agent limits"),
    "personas": config(f"{TEAM}enable_personas: true", "enable_personas: no model .* invents personas"),
    "typographic quotes": config("agents: [{id: \N{LEFT DOUBLE QUOTATION MARK}a}]", "quotation marks are ' or \""),
    "no http": config("agents: [{backend: {type: vllm, model: x, base_url: 'h:1'}}]", ": http://localhost:8000/v1"),
    "a path that is not there": Mistake(
        "massgen --config t.yaml q",
        1,
        "it may not be read: ./srcc; did you mean 'src'?",
        {"t.yaml": f"{TEAM}orchestrator: {{context_paths: [{{path: ./srcc}}]}}", "src/a": ""},
    ),
    "notify as text": Mistake(
        "massgen --validate t.yaml", 1, "notify: expected a list, such as [PROGRAM, ARGUMENT]", {"t.yaml": "notify: x"}
    ),
    # places
    "no directory": Mistake("massgen --model scripted/x q", 2, "directory .*/.massgen/massgen_logs/", {".massgen": ""}),
    "a port that is none": Mistake("massgen-mcp web --port 99999", 1, "without --port a free one is taken"),
    # review and batch
    "--base": Mistake("massgen review --base main", 2, "did you mean '--branch'?"),
    "a branch of another name": Mistake("massgen review --branch mian", 2, "did you mean 'main'?", {".git": ""}),
    "a branch that is not there": Mistake("massgen review --branch x", 2, "branches here: main", {".git": ""}),
    "a diff without its option": Mistake("massgen review a.diff", 2, "--diff a.diff if it is a file"),
    "no JSON": Mistake("massgen batch q.txt", 1, f"q.txt:1: {OBJECT}", {"q.txt": "what is a\n"}),
    "a list of JSON": Mistake("massgen batch q.json", 1, f"q.json:1: {OBJECT}", {"q.json": '[{"question": "a"}]'}),
    "no questions": Mistake("massgen batch q", 1, f"there is no question in it; {OBJECT}", {"q": "\n"}),
    "none at once": Mistake("massgen batch --concurrency 0 q", 1, "expected a number from 1 to 1000"),
}


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_one_look_says_what_is_wrong_and_what_to_type(
    mistake: Mistake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in PLANTED:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MASSGEN_MCP_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MASSGEN_CONFIG_HOME", str(tmp_path / "none"))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    for name, content in mistake.files.items():
        if name == ".git":
            a_repository(work)
            continue
        (work / name).parent.mkdir(exist_ok=True)
        (work / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    program, *arguments = shlex.split(mistake.line)
    with pytest.raises(SystemExit) as left:
        (massgen if program == "massgen" else massgen_mcp)(arguments)
    printed = capsys.readouterr()
    assert left.value.code == mistake.code, printed.err
    assert printed.out == ""
    at = 0
    for part in mistake.told.split(".*"):
        at = printed.err.find(part, at)
        assert at >= 0, printed.err


def a_repository(place: Path) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    for arguments in (("init", "-q", "-b", "main"), (*who, "commit", "-q", "--allow-empty", "-m", "a")):
        subprocess.run(["git", *arguments], cwd=place, check=True)
