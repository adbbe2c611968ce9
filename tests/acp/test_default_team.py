"""A team of the agent CLIs that are installed here, for whoever names none and says that their logins may be used."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.acp.acting import FAKE
from tests.commands import run_command
from tests.harness import COMMAND_MODULE, SERVER_MODULE, TempHome, call, expect_error, home
from tests.needs import needs
from tests.planted import PLANTED
from tests.typist import typist

__all__ = ["home"]

ANSWER = "Forty-two."
PLAN: dict[str, Any] = {
    "mark": ANSWER,
    "answer": [{"call": "new_answer", "arguments": {"content": ANSWER}}],
    "vote": [{"call": "vote", "arguments": {"agent_id": "OWN", "reason": "It is right."}}],
    "present": [{"say": ANSWER}],
}
YES = {"MASSGEN_OWN_LOGINS": "yes"}


@pytest.fixture
def installed(home: TempHome) -> TempHome:
    """A machine with no key, but with a Codex over ACP that its user is logged in to, as npm installs one."""
    package = home.work / "node_modules" / "codex-acp"
    program, login = package / "codex-acp", home.work / ".codex" / "auth.json"
    package.mkdir(parents=True)
    (package / "package.json").write_text(json.dumps({"version": "2.6.0"}))
    planned = FAKE.read_text().replace('os.environ.get("FAKE_PLAN", "[]")', repr(json.dumps(PLAN)))
    program.write_text(planned)
    program.chmod(0o755)
    login.parent.mkdir()
    login.write_text(json.dumps({"tokens": {"access_token": "an-access-token-of-the-user"}}))
    others = dict.fromkeys(PLANTED, "")
    config = str(home.work / "config-home")
    places = {"PATH": f"{package}:/usr/bin:/bin", "HOME": str(home.work), "MASSGEN_CONFIG_HOME": config}
    return home.with_variables(**others, **places, TERM="dumb")


async def test_without_a_yes_no_login_is_used_and_the_reply_names_the_setting(installed: TempHome) -> None:
    async with installed.client() as client:
        code, message = await expect_error(client, "start_run", question="What is it?")
    assert code == "no_default_team"
    assert "set MASSGEN_OWN_LOGINS=yes to use your own login to codex; name models" in message


async def test_with_the_setting_they_are_the_team_and_the_plan_says_whose_login_it_is(installed: TempHome) -> None:
    async with installed.with_variables(**YES).client() as client:
        planned = await call(client, "start_run", question="What is it?", dry_run=True)
    whose = "the installed agent CLIs, with your own logins: codex, from 3 perspectives"
    assert planned["source"] == f"default team, paid for by your subscriptions: {whose}"
    assert planned["missing_keys"] == []
    assert "with your own login (paid for by your subscription)" in json.dumps(planned)


@needs("bwrap")
def test_a_question_alone_is_answered_by_the_cli_that_is_installed(installed: TempHome) -> None:
    done = run_command(installed.with_variables(**YES), COMMAND_MODULE, "--automation", "What is it?")
    assert f"ANSWER_PREVIEW: {ANSWER}" in done.stdout, done.stderr


@needs("bwrap")
def test_one_answer_at_a_terminal_makes_them_the_team_from_then_on(installed: TempHome) -> None:
    command = [sys.executable, "-m", COMMAND_MODULE, "--init"]
    with typist(command, cwd=installed.work, environ=installed.environ) as person:
        person.expect("codex 2.6.0 (you are logged in; ")
        person.expect("1. Agent CLIs with your own logins, covered by your subscriptions: codex")
        person.answer("Which [1]: ", "1")
        person.answer("Which [1]: ", "2")
        assert person.leave() == 0
    saved = yaml.safe_load((installed.work / "config-home" / "config.yaml").read_text())
    assert [agent["backend"] for agent in saved["agents"]] == [{"type": "acp", "preset": "codex", "login": "own"}] * 3
    done = run_command(installed, COMMAND_MODULE, "--automation", "What is it?")
    assert "starts the agent CLI codex-acp, with your own login (paid for by your subscription)" in done.stdout
    assert f"ANSWER_PREVIEW: {ANSWER}" in done.stdout, done.stderr


def test_the_doctor_tells_which_clis_are_there_logged_in_and_enclosed(installed: TempHome) -> None:
    told = run_command(installed, SERVER_MODULE, "doctor").stdout
    assert "Agent CLI codex" in told
    assert "codex 2.6.0 (you are logged in; " in told
    assert "set MASSGEN_OWN_LOGINS=yes to allow it in the default team, with your own login" in told


def test_a_cli_without_what_makes_it_speak_the_protocol_is_named_with_what_it_needs(installed: TempHome) -> None:
    package = Path(installed.environ["PATH"].partition(":")[0])
    (package / "codex-acp").rename(package / "codex")
    told = run_command(installed.with_variables(**YES), SERVER_MODULE, "doctor").stdout
    assert "to use it in a team, run `npm install -g @agentclientprotocol/codex-acp`" in " ".join(told.split())
