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
OBJECT = 'write one JSON object per line, such as {"question": '


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
    "no question in it": Mistake("massgen ''", 1, 'the question is empty; ask one: massgen "your question"'),
    "only blanks": Mistake("massgen --model scripted/x '  '", 1, 'massgen "your question"'),
    "a file as question": Mistake("massgen notes.md", 1, "massgen - < notes.md", {"notes.md": "hello"}),
    "not quoted": Mistake("massgen what is love", 1, "massgen 'what is love'"),
    # options
    "--verbose": Mistake("massgen --verbose q", 1, "did you mean '--debug'?"),
    "--agents": Mistake("massgen --agents 3 q", 1, "did you mean '--num-agents'?"),
    "--timeout": Mistake("massgen --timeout 60 q", 1, "timeout_settings: {orchestrator_timeout_seconds: 600}"),
    "--web": Mistake("massgen --web", 1, "`massgen web` shows runs in a browser"),
    "--api-key": Mistake("massgen --api-key sk-1 q", 1, "export OPENAI_API_KEY=..."),
    "one hyphen": Mistake("massgen -model gpt-5 q", 1, "did you mean '--model'?"),
    "a long dash": Mistake("massgen \N{EM DASH}model gpt-5 q", 1, "options start with two hyphens: --model"),
    "a config of another name": Mistake("massgen --config t.yml q", 1, "Did you mean t.yaml?", {"t.yaml": TEAM}),
    "its directory": Mistake(
        "massgen --config c q", 1, "not a directory: c. Did you mean c/t.yaml?", {"c/t.yaml": TEAM}
    ),
    "models with blanks": Mistake(
        "massgen --models gpt-5 claude-x q", 1, "separate models with commas: --model gpt-5,claude-x"
    ),
    "a provider as model": Mistake("massgen --model openai q", 1, "it is a provider: use --backend openai"),
    "a model as provider": Mistake("massgen --backend gpt-5 q", 1, "this is a model: write openai/gpt-5"),
    "a model's last name": Mistake("massgen --model opus q", 1, "did you mean claude-opus-"),
    "too few agents": Mistake(
        "massgen --model scripted/x --num-agents -1 q", 1, "expected a whole number, 0 or greater"
    ),
    "too many agents": Mistake(
        "massgen --model scripted/x --num-agents 99 q", 1, "a team needs 1 to 10 agents, not 99"
    ),
    "dollars with their sign": Mistake("massgen --max-usd '$5' q", 1, "such as 2.50"),
    "no config": Mistake("massgen --validate", 1, "no config found at .*; create one with `massgen init`"),
    "no interrupted run": Mistake(
        "massgen --resume", 1, "no interrupted run; `massgen runs --state interrupted` lists"
    ),
    # verbs
    "login": Mistake("massgen login", 1, "`massgen doctor` shows which keys are set"),
    "list": Mistake("massgen list", 1, "`massgen runs` lists runs"),
    "ls": Mistake("massgen-mcp ls", 64, "`massgen runs` lists runs"),
    "logs": Mistake("massgen-mcp logs run-x", 64, "massgen result ID --view full"),
    "stop": Mistake("massgen-mcp stop run-x", 64, "`massgen cancel ID` stops a run"),
    "undo": Mistake("massgen-mcp undo run-x", 64, "massgen apply ID --undo"),
    "no client": Mistake("massgen install", 64, "CLIENT is missing; valid values: claude-code, codex"),
    "half a client": Mistake("massgen install claude", 64, "did you mean 'claude-code'?"),
    "a state of others": Mistake("massgen runs --state done", 64, "valid values: queued, running"),
    # one word near a verb, or a file that is not there: no one is to pay for that
    "docter": Mistake("massgen docter", 1, "did you mean: massgen doctor; to ask that as a question: massgen"),
    "statu": Mistake("massgen statu", 1, "did you mean: massgen status"),
    "reslt": Mistake("massgen reslt", 1, "did you mean: massgen result"),
    "aply": Mistake("massgen aply", 1, "did you mean: massgen apply"),
    "instal": Mistake("massgen instal", 1, "did you mean: massgen install"),
    "hlep": Mistake("massgen hlep", 1, "did you mean: massgen help"),
    "a word before an id": Mistake("massgen stauts run-7f3a", 1, "did you mean: massgen status run-7f3a"),
    "a word before a file": Mistake("massgen valdate t.yaml", 1, "did you mean: massgen validate t.yaml"),
    "a verb in quotation marks": Mistake("massgen 'status run-7f3a'", 1, "massgen status run-7f3a"),
    "an id alone": Mistake("massgen run-7f3a", 1, "is the ID of a run; show it with: massgen result run-7f3a"),
    "a verb after an option": Mistake("massgen --json runs", 1, "put it first: massgen runs"),
    "config alone": Mistake("massgen config", 1, "`massgen init` creates a config"),
    "update": Mistake("massgen update", 1, "`uv tool upgrade massgen-mcp`"),
    "quit": Mistake("massgen quit", 1, "no conversation to leave"),
    "mcp": Mistake("massgen-mcp mcp", 64, "`massgen install CLIENT` adds it to a client"),
    "cost": Mistake("massgen costs", 1, "`massgen stats` shows what runs have cost"),
    "a file that is not there": Mistake(
        "massgen question.md", 1, "To ask the question in a file: massgen - < question.md"
    ),
    "a place that is not there": Mistake("massgen docs/plan", 1, "massgen -- docs/plan"),
    "an example of another name": Mistake("massgen @exampels/x", 1, "massgen --config @examples/NAME"),
    "an example and a question": Mistake("massgen @exampels/x 'is it?'", 1, "massgen --config @examples/NAME 'is it?'"),
    # a sentence that begins with a verb
    "review our plan": Mistake(
        "massgen review our plan for the move",
        2,
        "to ask this as a question: massgen -- 'review our plan for the move'",
    ),
    "watch the paint": Mistake("massgen watch the paint dry", 64, "massgen -- 'watch the paint dry'"),
    "start a company": Mistake("massgen start a new company", 1, "massgen start 'a new company'"),
    "mark my words": Mistake("massgen mark my words", 64, "valid values: right, wrong.*massgen -- 'mark my words'"),
    "help me": Mistake("massgen help me", 64, "massgen -- 'help me'"),
    "runs all": Mistake("massgen runs all", 64, "unexpected arguments: all.*massgen help runs"),
    "a question for massgen-mcp": Mistake("massgen-mcp hello there", 64, "to ask a team: massgen 'hello there'"),
    # options of other names
    "--budget": Mistake("massgen --budget 1 q", 1, "did you mean '--max-usd'?"),
    "--context": Mistake("massgen --context . q", 1, "massgen start QUESTION"),
    "--write": Mistake("massgen --write . q", 1, "context_paths: [{path: ., permission: write}]"),
    "--format": Mistake("massgen --format json q", 1, "--json prints JSON"),
    "--temperature": Mistake("massgen --temperature 1 q", 1, "set it in a config, under an agent's `backend`"),
    "--max-tokens": Mistake("massgen --max-tokens 9 q", 1, "set it in a config, under an agent's `backend`"),
    "--team": Mistake("massgen --team t.yaml q", 1, "did you mean '--config'?"),
    "--force": Mistake("massgen --force q", 1, "did you mean '--yes'?"),
    "--transport": Mistake("massgen --transport http q", 1, "use it with `massgen serve`"),
    "a team twice": Mistake("massgen -c t.yaml -m gpt-5 q", 1, "--config already names the team"),
    "no value for -o": Mistake("massgen -o", 1, "--output needs FILE"),
    "no dollars": Mistake("massgen --max-usd 0 q", 1, "expected an amount in US dollars, such as 2.50"),
    "no question for --quiet": Mistake("massgen -q", 1, 'the question is missing: massgen "your question"'),
    "no session": Mistake("massgen --session nosuch q", 1, "`massgen runs --sessions` lists the sessions"),
    "no question to start": Mistake("massgen start", 1, 'the question is missing: massgen start "your question"'),
    # verbs
    "no run here": Mistake("massgen result", 3, "no run was started in .*`massgen runs` lists all runs"),
    "latest of none": Mistake("massgen status latest", 3, "no run was started in .*`massgen runs` lists all runs"),
    "no such run": Mistake("massgen watch nosuch", 3, "there is no run 'nosuch'.* lists all runs"),
    "apply what": Mistake("massgen apply", 64, "apply needs a run's ID; `massgen runs` lists"),
    "cancel what": Mistake("massgen cancel", 64, "cancel needs a run's ID; `massgen runs` lists"),
    "resume what": Mistake("massgen resume", 64, "resume needs a run's ID; `massgen runs` lists"),
    "too short to apply": Mistake("massgen apply x", 3, "at least 4 characters of the id"),
    "answer nothing": Mistake("massgen answer", 64, "TEXT is missing: massgen answer TEXT"),
    "no verdict": Mistake("massgen mark run-7f3a", 64, "add `right` or `wrong`"),
    "no number of dollars": Mistake(
        "massgen raise-budget run-abcd lots", 64, "USD: expected a number that is 0 or greater"
    ),
    "--vew": Mistake("massgen result --vew votes", 64, "did you mean '--view'?"),
    "an option of no verb": Mistake("massgen runs --nope", 64, "`massgen help runs` lists its options"),
    "page and view": Mistake("massgen result --page --view votes", 64, "leave out --view and --agent"),
    "a time that is none": Mistake("massgen wait --timeout soon", 64, "--timeout: expected a number"),
    "a day that is none": Mistake(
        "massgen stats --since yesterday", 64, "such as 2026-11-21, or a duration such as 36h"
    ),
    "an age that is none": Mistake("massgen prune --older-than -1", 64, "--older-than: expected a number"),
    "a client of another name": Mistake("massgen install cursr", 64, "did you mean 'cursor'?"),
    "no file to import": Mistake("massgen import", 64, "FILE is missing: massgen import FILE"),
    "a page of no verb": Mistake("massgen help reslt", 64, "did you mean 'result'?"),
    "a port over stdio": Mistake("massgen serve --port 80", 64, "--port needs --transport http"),
    "a store without a URL": Mistake("massgen worker", 1, "set it to postgresql://USER@HOST/DATABASE, or pass --store"),
    "a team to compare": Mistake(
        "massgen eval @questions -c t.yaml", 1, "--against is missing: massgen eval --configs"
    ),
    "trust what": Mistake("massgen validate --trust", 64, "--trust needs FILE"),
    "no config here": Mistake("massgen validate", 1, "no config found at .*; create one with `massgen init`"),
    "a config that is not there": Mistake("massgen validate gone.yaml", 1, "Name a YAML file or @examples/NAME"),
    "a variable as model": config(
        "agents: [{backend: {type: openai, model: '${MODEL}'}}]",
        "t.yaml:1: .*massgen doesn't replace variables here; write",
    ),
    "a variable of a shell as model": config(
        "agents: [{backend: {type: openai, model: $MODEL}}]",
        "t.yaml:1: .*massgen doesn't replace variables here; write",
    ),
    "a variable without quotation marks": config(
        "agents: [{backend: {type: openai, model: ${MODEL}}}]",
        "t.yaml:1: .*massgen doesn't replace variables such as .*; write the value itself",
    ),
    "what agents may read": Mistake("massgen --read src q", 1, "write @path in the question, or set `context_paths:"),
    "no commit": Mistake("massgen review", 2, "this repository has no commit", {".git/": ""}),
    "no remote": Mistake(
        "massgen review --pr 7", 2, "no remote `origin`; add one with `git remote add origin URL`", {".git": ""}
    ),
    "no batch": Mistake("massgen batch", 1, "batch needs a file of questions: massgen batch QUESTIONS.jsonl"),
    # configs
    "empty": config("", "expected a mapping with the key `agents`; create a config with `massgen init`"),
    "TOML": config('[agents]\nid = "a"\n', "t.yaml:2: .*; a config is YAML: put a colon"),
    "UTF-16": config(TEAM.encode("utf-16"), "not UTF-8 text; save the file as UTF-8"),
    "a non-breaking space": config(
        "agents:\n\xa0 - id: a\n", "t.yaml:2: indented with a non-breaking space; use plain spaces"
    ),
    "agents by name": config("agents: {ada: {}}", f"agents: expected a list, such as [{ENTRY}]"),
    "names as agents": config("agents: [gpt-5]", f"agents[0]: expected a mapping, such as {ENTRY}"),
    "model of the agent": config(
        "agents: [{model: x}]", "agents[0].model: unknown key; write model under an agent's backend"
    ),
    "provider": config("agents: [{provider: x}]", "provider: unknown key; write type under an agent's backend"),
    "typo beside its place": config("agents: [{temprature: 1}]", "write temperature under an agent's backend"),
    "paths at the top": config(f"{TEAM}context_paths: []", "unknown key; write context_paths under orchestrator"),
    "timeout at the top": config(f"{TEAM}timeout: 9", "write orchestrator_timeout_seconds under timeout_settings"),
    "prompt at the top": config(f"{TEAM}system_message: x", "write system_message under an entry of agents"),
    "a lone sum": config(f"{TEAM}budget: 5", "budget: expected a mapping, such as {max_usd: 5}"),
    "old keys": config(
        f"{TEAM}max_rounds: 3", "use an `agents` list instead.* set orchestrator.max_new_answers_per_agent"
    ),
    "personas": config(
        f"{TEAM}enable_personas: true", "enable_personas: massgen has no model that .* invents personas"
    ),
    "typographic quotes": config("agents: [{id: \N{LEFT DOUBLE QUOTATION MARK}a}]", "quotation marks, use ' or \""),
    "no http": config(
        "agents: [{backend: {type: vllm, model: x, base_url: 'h:1'}}]", "such as http://localhost:8000/v1"
    ),
    "a path that is not there": Mistake(
        "massgen --config t.yaml q",
        1,
        "not found or not readable: ./srcc; did you mean 'src'?",
        {"t.yaml": f"{TEAM}orchestrator: {{context_paths: [{{path: ./srcc}}]}}", "src/a": ""},
    ),
    "notify as text": Mistake(
        "massgen --validate t.yaml", 1, "notify: expected a list, such as [PROGRAM, ARGUMENT]", {"t.yaml": "notify: x"}
    ),
    # places
    "no directory": Mistake("massgen --model scripted/x q", 2, "directory .*/.massgen/massgen_logs/", {".massgen": ""}),
    "a port that is none": Mistake("massgen web --port 99999", 1, "omit --port to use a free port"),
    # review and batch
    "--base": Mistake("massgen review --base main", 2, "did you mean '--branch'?"),
    "a branch of another name": Mistake("massgen review --branch mian", 2, "did you mean 'main'?", {".git": ""}),
    "a branch that is not there": Mistake("massgen review --branch x", 2, "branches here: main", {".git": ""}),
    "a diff without its option": Mistake("massgen review a.diff", 2, "--diff a.diff for a file"),
    "no JSON": Mistake("massgen batch q.txt", 1, f"q.txt:1: {OBJECT}", {"q.txt": "what is a\n"}),
    "a list of JSON": Mistake("massgen batch q.json", 1, f"q.json:1: {OBJECT}", {"q.json": '[{"question": "a"}]'}),
    "no questions": Mistake("massgen batch q", 1, f"the file contains no questions; {OBJECT}", {"q": "\n"}),
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
        if name in (".git", ".git/"):
            a_repository(work, commits=name == ".git")
            continue
        (work / name).parent.mkdir(exist_ok=True)
        (work / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    program, *arguments = shlex.split(mistake.line)
    with pytest.raises(SystemExit) as left:
        (massgen if program == "massgen" else massgen_mcp)(arguments)
    printed = capsys.readouterr()
    assert left.value.code == mistake.code, printed.err
    assert printed.out == ""
    assert [*tmp_path.rglob("events.jsonl")] == [], "no run was started"
    at = 0
    for part in mistake.told.split(".*"):
        at = printed.err.find(part, at)
        assert at >= 0, printed.err


def a_repository(place: Path, *, commits: bool = True) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    commands = (("init", "-q", "-b", "main"), (*who, "commit", "-q", "--allow-empty", "-m", "a"))
    for arguments in commands if commits else commands[:1]:
        subprocess.run(["git", *arguments], cwd=place, check=True)
