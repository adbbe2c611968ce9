"""The set-up dialogue and the choice of a config, as a person at a terminal goes through them."""

import signal
import stat
import sys
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
import yaml

from massgen_mcp.config.loader import load_config
from tests.commands import run_command
from tests.harness import COMMAND_MODULE, TempHome, end, poll_until
from tests.planted import PLANTED
from tests.typist import Typist, typist

KEY = "sk-never-to-be-seen"
OWN = "config-home/config.yaml"


@pytest.fixture
def keyed(home: TempHome) -> TempHome:
    """Somebody with one key, and a config home of their own."""
    others = dict.fromkeys(PLANTED, "")
    own = str(home.work / "config-home")
    return home.with_variables(**others, OPENAI_API_KEY=KEY, MASSGEN_CONFIG_HOME=own, TERM="dumb")


def at_terminal(home: TempHome, *arguments: str) -> AbstractContextManager[Typist]:
    return typist([sys.executable, "-m", COMMAND_MODULE, *arguments], cwd=home.work, environ=home.environ)


def project_config(home: TempHome) -> Path:
    return home.work / ".massgen" / "config.yaml"


def test_the_strongest_models_of_the_keys_are_two_enters_away(keyed: TempHome) -> None:
    with at_terminal(keyed, "--init") as person:
        person.expect("Keys in the environment: OPENAI_API_KEY\n")
        person.expect("1. The strongest model for each key: openai/")
        person.answer("Which [1]: ", "")
        person.answer("Which [1]: ", "")
        person.expect("Saved ")
        assert person.leave() == 0
        assert KEY not in person.seen
    saved = project_config(keyed)
    config = load_config(saved, environ={})
    assert [agent.backend.type for agent in config.agents] == ["openai"] * 3, "one model, three views"
    assert KEY not in saved.read_text()
    assert stat.S_IMODE(saved.stat().st_mode) == 0o644
    assert [path.name for path in saved.parent.iterdir()] == ["config.yaml"], "nothing half-written beside it"


def test_three_questions_make_a_team_that_may_read_the_directory(keyed: TempHome) -> None:
    with at_terminal(keyed, "--init") as person:
        person.answer("Which [1]: ", "three")
        person.expect("   Press Enter for openai/")
        person.answer("Models: ", "openai/m,nonsense")
        person.answer("Agents [2]: ", "")
        person.expect("That doesn't work: model 'nonsense'")
        person.answer("Models: ", "openai/m,scripted/s")
        person.answer("Agents [2]: ", "3")
        person.answer("(y/n) [n]: ", "perhaps")
        person.answer("(y/n) [n]: ", "y")
        person.answer("Which [1]: ", "2")
        assert person.leave() == 0
    config = load_config(keyed.work / OWN, environ={}, base_dir=keyed.work)
    assert [agent.backend.model for agent in config.agents] == ["m", "s", "m"]
    assert [context.path for context in config.orchestrator.context_paths] == [str(keyed.work)]


def test_a_ready_config_is_copied_and_names_the_keys_that_it_lacks(keyed: TempHome) -> None:
    with at_terminal(keyed, "--init") as person:
        person.answer("Which [1]: ", "ready")
        person.answer("Which config [1]: ", "@examples/two_providers")
        person.answer("Which [1]: ", "")
        person.expect("Set ANTHROPIC_API_KEY in the environment")
        assert person.leave() == 0
    assert len(yaml.safe_load(project_config(keyed).read_text())["agents"]) == 2


def test_an_existing_config_is_only_replaced_when_the_person_says_so(keyed: TempHome) -> None:
    saved = project_config(keyed)
    saved.parent.mkdir()
    saved.write_text("mine")
    with at_terminal(keyed, "--init") as person:
        person.answer("Which [1]: ", "")
        person.answer("Which [1]: ", "1")
        person.answer("Replace it? (y/n) [n]: ", "")
        person.answer("Which [1]: ", "2")
        assert person.leave() == 0
    assert saved.read_text() == "mine"
    assert (keyed.work / OWN).is_file()


def asleep(pid: int) -> bool:
    """Whether the process waits for something, such as a key."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith("S")


@pytest.mark.parametrize("how", ["end of input", "interrupt"])
def test_leaving_the_dialogue_saves_nothing(keyed: TempHome, how: str) -> None:
    with at_terminal(keyed, "--init") as person:
        person.expect("Which [1]: ")
        if how == "interrupt":
            poll_until(lambda: asleep(person.process.pid))  # Python loses a signal between the prompt and the reading
            end(person.process.pid, signal.SIGINT)
        else:
            person.type("\x04")
        assert person.leave() == 4
        assert "Traceback" not in person.seen
    assert list(keyed.work.iterdir()) == []


def test_the_first_question_at_a_terminal_sets_up_and_is_then_asked(home: TempHome) -> None:
    with at_terminal(home.with_variables(TERM="dumb", **dict.fromkeys(PLANTED, "")), "What is it?") as person:
        person.expect("Keys in the environment: none\n")
        person.expect("If one of OPENAI_API_KEY, ANTHROPIC_API_KEY, ")
        person.expect("set a key or start a server, and ask again.")
        person.answer("Which [1]: ", "ready")
        person.expect("1. @examples/local_server: ")
        person.answer("Which config [1]: ", "@examples/scripted")
        person.answer("Which [1]: ", "")
        person.expect("Team: ada (scripted/scripted), ")
        person.expect("Neither: replace it piece by piece.")
        assert person.leave() == 0
    assert project_config(home).is_file()


def test_a_conversation_without_a_config_begins_with_what_is_here_or_sets_up_another_team(keyed: TempHome) -> None:
    with at_terminal(keyed) as person:
        person.expect("You have no config yet, and you don't need one.\n")
        person.expect("Available models: openai/")
        person.expect("1. Start now with the default team, paid with your API key: openai/")
        person.answer("Which [1]: ", "")
        person.expect("Team: default team, paid with your API key")
        person.type("\x04")
        assert person.leave() == 0
    assert not project_config(keyed).exists()
    with at_terminal(keyed) as person:
        person.answer("Which [1]: ", "another")
        person.expect("Set up a team for massgen.")
        person.answer("Which [1]: ", "")
        person.answer("Which [1]: ", "")
        person.expect("Saved ")
        person.type("\x04")
        assert person.leave() == 0
    assert project_config(keyed).exists()


def test_without_a_terminal_the_error_names_the_ways_out(home: TempHome) -> None:
    for arguments, hint in ((["q"], "`massgen init`"), (["--init"], "terminal"), (["--select", "q"], "--config")):
        done = run_command(home, COMMAND_MODULE, *arguments)
        assert done.returncode == 1
        assert hint in done.stderr
    assert list(home.work.iterdir()) == []


def test_a_config_is_selected_from_a_list_by_a_part_of_its_name(home: TempHome) -> None:
    own = home.work / ".massgen" / "config.yaml"
    own.parent.mkdir()
    own.write_text("agents: nonsense\n")
    with at_terminal(home.with_variables(TERM="dumb"), "--select", "What is it?") as person:
        listed = person.expect("Which one [1]: ")
        assert f"1. {own}: your own [cannot be loaded]" in listed
        assert "@examples/two_providers: " in listed
        assert "[set OPENAI_API_KEY, ANTHROPIC_API_KEY]" in listed
        person.type("agents\n")
        person.expect("Type a number from 1 to ")
        person.answer("Which one [1]: ", "@examples/scripted")
        person.expect("Neither: replace it piece by piece.")
        assert person.leave() == 0
