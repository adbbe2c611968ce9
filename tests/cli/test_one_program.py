"""`massgen VERB` and `massgen-mcp VERB` are the same, old spellings keep working, and no id means the newest run of the
directory.
"""

import json
import shlex
from pathlib import Path

import pytest

from massgen_mcp.cli.commands import NAMES
from massgen_mcp.cli.massgen.main import main as massgen
from massgen_mcp.cli.massgen_mcp.main import main as massgen_mcp
from massgen_mcp.cli.program import read
from tests.commands import run_command
from tests.harness import COMMAND_MODULE, TempHome, agent
from tests.terminal import terminal

MISTAKEN = ("--nope", "a b c d", "--json=x")
MODEL = "--model scripted/x"


@pytest.mark.parametrize("verb", NAMES)
def test_a_verb_is_the_same_under_both_names(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    for words in ("--help", *MISTAKEN):
        told: list[tuple[object, str, str]] = []
        for main in (massgen, massgen_mcp):
            with pytest.raises(SystemExit) as left:
                main([verb, *words.split()])
            printed = capsys.readouterr()
            told.append((left.value.code, printed.out, printed.err))
        assert told[0] == told[1]
        assert told[0][1 if words == "--help" else 2]


OLD = {
    f"--background {MODEL} q": f"start {MODEL} q",
    "--batch q.jsonl": "batch q.jsonl",
    "--init": "init",
    "--list-sessions": "runs --sessions",
    "--validate t.yaml": "validate t.yaml",
    "--validate=t.yaml": "validate t.yaml",
    "--resume run-7f3a --automation --output-file a.md": "resume --here run-7f3a --automation -o a.md",
    "--automation --resume=run-7f3a": "resume --here --automation run-7f3a",
    "--models a,b --output-file a.md --session-id s q": "-m a,b -o a.md -s s q",
    "--output-file=a.md q": "ask --output a.md q",
    "--model a --no-display --debug q": "-m a --no-display -v q",
    "chat": "",
    "trust t.yaml": "validate t.yaml --trust",
    "trust --list": "validate --list --trust",
    "report run-7f3a --output a.html --open": "result run-7f3a --page -o a.html --open",
    "eval @questions --teams t.yaml --against m --budget 5 --results r --html h": (
        "eval @questions -c t.yaml --against m --max-usd 5 -o r --page h"
    ),
    "review --models a,b --output-file a.md": "review -m a,b -o a.md",
    "stats --team a,b --html a.html": "stats --models a,b -o a.html",
    "export run-7f3a --to a.tar.gz": "export run-7f3a -o a.tar.gz",
    "install codex --print": "install codex --dry-run",
    "start q --model a --model b --store postgresql://x": "start q -m a,b --store postgresql://x",
    "--store postgresql://x runs": "runs --store postgresql://x",
    "--log-format json worker": "worker --log-format json",
}


@pytest.mark.parametrize(("old", "new"), OLD.items(), ids=OLD)
def test_an_old_spelling_means_what_it_meant(old: str, new: str) -> None:
    """Both names take them; the options of `massgen-mcp` before a verb are of that name alone."""
    program = "massgen-mcp" if old.startswith(("--store", "--log-format")) else "massgen"
    parsed = [read(program, shlex.split(old)), read("massgen", shlex.split(new))]
    assert parsed[0][0].name == parsed[1][0].name
    assert parsed[0][1] == parsed[1][1]


def run(home: TempHome, *words: str) -> tuple[int, str]:
    done = run_command(home, COMMAND_MODULE, *words)
    return done.returncode, done.stdout if not done.returncode else done.stderr


def test_no_id_means_the_newest_run_of_this_directory(home: TempHome) -> None:
    (home.work / "other").mkdir()
    other = TempHome(home.path, home.work / "other", {"MASSGEN_CONFIG_HOME": str(home.own_configs)})
    for question in ("first", "second"):
        assert run(home, "-q", "-m", "scripted/x", "--", question)[0] == 0
    assert run(other, "result")[0] == 3
    assert run(other, "-q", "-m", "scripted/x", "third")[0] == 0
    assert run(home, "result")[1].startswith("x's answer to: second\n")
    assert run(home, "result", "latest")[1] == run(home, "result")[1]
    assert run(other, "result")[1].startswith("x's answer to: third\n")
    code, background = run(home, "start", "--json", "-m", "scripted/x", "fourth")
    run_id = json.loads(background)["run_id"]
    assert (code, run(home, "wait", "--json")[0]) == (0, 0)
    assert json.loads(run(home, "status", "--json")[1])["run_id"] == run_id
    assert Path(run(home, "result", "--page")[1].strip()).is_file()


def test_what_changes_a_run_asks_at_a_terminal_and_needs_an_id_elsewhere(home: TempHome) -> None:
    assert run(home, "-q", "-m", "scripted/x", "q")[0] == 0
    assert run(home, "mark", "right") == (
        64,
        "ERROR invalid_arguments: mark needs a run's ID; `massgen runs` lists them\n",
    )
    with terminal(home, "mark", "right") as window:
        window.wait_for(', completed: "q"', "Mark this run (y/n) [n]:")
        window.type("n\r")
        window.wait_for("Nothing changed. To choose another run, pass its ID")
        assert "ERROR" not in window.text
        assert window.leave() == 1
    with terminal(home, "mark", "right", "--yes") as window:
        window.wait_for("marked right")
        assert window.leave() == 0


def test_a_sentence_that_begins_with_a_verb_is_asked_after_a_yes(home: TempHome) -> None:
    with terminal(home, "mark", "my", "words", "they", "said") as window:
        window.wait_for("Ask a team: 'mark my words they said' (y/n) [n]:")
        window.type("n\r")
        window.wait_for("massgen -- 'mark my words they said'")
        assert window.leave() == 64
    assert not (home.work / ".massgen").exists(), "a run has begun"


def test_a_dry_run_shows_team_and_estimate_and_asks_no_model(home: TempHome) -> None:
    code, told = run(home, "--dry-run", "-m", "scripted/x", "q")
    assert code == 0
    for part in ("Team: x (scripted/x); ", "Estimate: ", "Limits: at most $10.00", "No model was called."):
        assert part in told
    assert run(home, "--dry-run", "-m", "openai/gpt-5", "q")[0] == 1, "what would stop the run is told"
    assert not (home.work / ".massgen").exists()


def test_agents_never_get_write_access_to_the_home_directory(home: TempHome) -> None:
    person = home.with_variables(HOME=str(home.work))
    paths = {"context_paths": [{"path": str(home.work), "permission": "write"}]}
    config = person.config("home", agent("a"), orchestrator=paths)
    code, told = run(person, "-c", config, "q")
    assert code == 1
    assert "is your home directory; run massgen in your project's directory" in told
    with terminal(person, "-m", "scripted/x", "q") as window:
        window.wait_for("massgen would save your runs there, in .massgen/.", "Continue here (y/n) [n]:")
        window.type("n\r")
        assert window.leave() == 4


@pytest.mark.parametrize("name", [".massgen/config.yml", ".massgen/config.json", "massgen.yaml", "config.yaml"])
def test_a_file_that_looks_like_a_team_and_is_not_read_is_named(home: TempHome, name: str) -> None:
    (home.work / ".massgen").mkdir()
    (home.work / name).write_text('{\n "agents": []}' if name.endswith("json") else "agents: []\n")
    own = home.own_configs / "config.yaml"
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_text("agent: {id: a, backend: {type: scripted}}\n")
    done = run_command(home, COMMAND_MODULE, "--dry-run", "q")
    assert (
        f"{name} looks like a team config, but massgen isn't using it. To use it, pass `--config {name}`" in done.stdout
    )
    (home.work / name).write_text("port: 80\n")
    assert "isn't using it" not in run_command(home, COMMAND_MODULE, "--dry-run", "q").stdout


def test_bare_words_leave_a_conversation(home: TempHome) -> None:
    with terminal(home, "--plain", "-m", "scripted/x") as window:
        window.wait_for("massgen")
        window.type("quit\r")
        window.wait_for("Left the conversation.")
        assert window.leave() == 0
    assert not (home.work / ".massgen" / "sessions").exists()
