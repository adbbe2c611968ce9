"""Somebody works in a directory that a stranger wrote. No key and no file leaves, and nothing is written."""

import logging
from typing import Any

import pytest

import massgen_mcp
from massgen_mcp.errors import MassgenError
from tests.harness import call, expect_error
from tests.request.scene import SECRETS, Scene, at_terminal, hostile, sly, tools
from tests.typist import Typist


def told(scene: Scene) -> list[str]:
    """What a person must read about the hostile config."""
    return [
        f"{scene.found} came with this directory and asks for access outside it, so nothing was started.",
        "! host: http://stranger.example",
        "! key: AWS_SECRET_ACCESS_KEY to http://stranger.example",
        f"! reads: {scene.person / '.ssh'}",
        f"! writes: {scene.person}",
    ]


@pytest.mark.parametrize("options", [[], ["--automation"], ["--trust"]], ids=["plain", "automation", "trust"])
def test_off_a_terminal_the_hostile_config_is_an_error_that_says_what_it_asks_for(
    place: Scene, options: list[str]
) -> None:
    place.write(place.found, hostile())
    code, out, err = place.run(*options, "What is it?")
    assert (code, out) == (1, "")
    assert err.startswith("ERROR config_untrusted: ")
    assert all(line in err for line in told(place)), err
    assert place.untouched


def test_on_a_terminal_the_hostile_config_is_refused_and_shown(place: Scene) -> None:
    place.write(place.found, hostile())
    with at_terminal(place, "What is it?") as person:
        assert person.leave(60) == 1
        assert all(line in person.seen for line in told(place)), person.seen
    assert place.untouched


def test_a_person_is_asked_once_sees_everything_and_is_asked_again_when_the_file_changes(place: Scene) -> None:
    place.write(place.found, sly())

    def asked(person: Typist, answer: str) -> None:
        shown = person.expect("Allow this (y/n) [n]: ")
        assert "! host: http://stranger.example\n" in shown
        assert "! key: AWS_SECRET_ACCESS_KEY to http://stranger.example\n" in shown
        person.type(f"{answer}\n")

    with at_terminal(place, "What is it?") as person:
        asked(person, "")
        assert person.leave(60) == 1
        assert "ERROR config_untrusted: " in person.seen
    assert place.untouched
    with at_terminal(place, "What is it?") as person:
        asked(person, "y")
        assert person.leave(60) == 0, person.seen
    assert SECRETS["AWS_SECRET_ACCESS_KEY"] in place.stranger.heard[0], "the stranger would have heard it before, too"
    code, out, err = place.run("--automation", "Again?")
    assert code == 0, err
    assert "\nTEAM: the project's config " in out
    assert "; hosts http://stranger.example; keys AWS_SECRET_ACCESS_KEY\n" in out
    place.found.write_text(place.found.read_text() + "\n")
    code, out, err = place.run("--automation", "And again?")
    assert (code, out) == (1, "")
    assert "! key: AWS_SECRET_ACCESS_KEY to http://stranger.example" in err


def test_a_key_that_is_allowed_does_not_leave_while_the_config_is_not_accepted(place: Scene) -> None:
    place.own.mkdir()
    (place.own / "keys.yaml").write_text("allow:\n  - {key: AWS_SECRET_ACCESS_KEY, host: 'http://stranger.example'}\n")
    place.write(place.found, sly())
    code, _, err = place.run("What is it?")
    assert code == 1
    assert "! host: http://stranger.example" in err
    assert place.untouched


async def test_every_door_refuses_it_with_the_same_words(place: Scene, litellm: Any) -> None:
    massgen_mcp.register_with_litellm()
    place.write(place.found, sly())
    ways = f"To accept its current version, run `massgen validate --trust {place.found}`"
    with pytest.raises(MassgenError) as refused:
        await massgen_mcp.run("What is it?")
    assert refused.value.code == "config_untrusted"
    messages = [str(refused.value)]
    with pytest.raises(litellm.BadRequestError) as by_litellm:
        await litellm.acompletion(model="massgen/default", messages=[{"role": "user", "content": "What is it?"}])
    messages.append(str(by_litellm.value))
    async with tools() as client:
        for arguments in ({}, {"dry_run": True}):
            code, message = await expect_error(client, "start_run", question="What is it?", **arguments)
            assert code == "config_untrusted"
            messages.append(message)
    assert all(messages[0] in message and ways in message for message in messages), messages
    assert place.untouched


async def test_the_same_directory_means_the_same_team_in_the_same_words_at_every_door(
    place: Scene, litellm: Any, caplog: pytest.LogCaptureFixture
) -> None:
    massgen_mcp.register_with_litellm()
    script = [{"answer": "Ours."}]
    place.write(place.found, {"agents": [{"id": "ada", "backend": {"type": "scripted", "script": script}}]})
    words = f"the project's config {place.found}; no hosts, no keys, no changes to your files"
    with caplog.at_level(logging.INFO, "massgen_mcp"):
        result = await massgen_mcp.run("What is it?")
        assert (result["final_answer"], result["config_used"]) == ("Ours.", str(place.found))
        messages = [{"role": "user", "content": "What is it?"}]
        response = await litellm.acompletion(model="massgen/default", messages=messages)
        assert response.choices[0].message.content == "Ours."
    assert [record.getMessage() for record in caplog.records if record.name == "massgen_mcp.api"] == [words, words]
    async with tools() as client:
        planned = await call(client, "start_run", question="What is it?", dry_run=True)
    assert f"{planned['source']}; {planned['reach']}" == words
    assert planned["team"] == {"ada": "scripted/scripted"}


def test_the_command_line_says_the_same_words(place: Scene) -> None:
    place.write(place.found, {"agents": [{"id": "ada", "backend": {"type": "scripted"}}]})
    words = f"the project's config {place.found}; no hosts, no keys, no changes to your files"
    code, out, _ = place.run("--automation", "What is it?")
    assert code == 0
    assert f"\nTEAM: {words}\n" in out
    code, out, _ = place.run()
    assert f"Team: {words}\n" in out, "the interactive mode"


async def test_an_agent_is_told_the_command_that_a_person_has_to_run(place: Scene) -> None:
    place.write(place.found, hostile())
    async with tools() as client:
        code, message = await expect_error(client, "start_run", question="What is it?")
        assert code == "config_untrusted"
        assert all(line in message for line in told(place)), message
        assert f"`massgen validate --trust {place.found}`" in message
    assert place.untouched
