"""The team in an editor: prompts, what is told of a run, changes that the person allows, and what goes wrong."""

import json
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from acp import RequestError, image_block, text_block
from acp.schema import EmbeddedResourceContentBlock, ResourceContentBlock, TextResourceContents

from tests.changes.conftest import Repository, repository
from tests.changes.test_apply import write
from tests.commands import run_command
from tests.editors.editor import editor
from tests.harness import SERVER_MODULE, TempHome, after, agent, end, events_of, happened, home, spawned, wait_until
from tests.server.test_asking import asking, dear

__all__ = ["home", "repository"]

OTHER = agent("other")


def own_team(home: TempHome, *steps: dict[str, Any], **settings: Any) -> None:
    """What is asked where nobody chooses a team."""
    home.config("config", agent("solo", *steps), OTHER, **settings)


def changing(home: TempHome) -> None:
    own_team(home, write("project/code", "new\n"), write("project/more", "m\n"), {"answer": "I changed it."})


def verb(home: TempHome, *arguments: str) -> Any:
    done = run_command(home, SERVER_MODULE, *arguments, "--json")
    return json.loads(done.stdout)


def only_run(home: TempHome) -> Path:
    (run,) = home.runs
    return run


async def test_a_prompt_is_a_run_whose_story_stages_and_answer_are_told_and_whose_changes_are_applied_if_allowed(
    home: TempHome, repository: Repository
) -> None:
    repository.commit(code="old\n")
    changing(home)
    asked: list[dict[str, Any]] = []

    def allows(call: dict[str, Any]) -> str:
        asked.append(call)
        assert (repository.path / "code").read_text() == "old\n", "the person is asked first"
        return "apply"

    async with editor(home, allows) as person:
        session = await person.session(str(repository.path))
        assert await person.ask(session, "Change it") == "end_turn"
        await person.valid()
    (call,) = asked
    path = repository.path
    differences = [part for part in call["content"] if part["type"] == "diff"]
    assert differences == [
        {"type": "diff", "path": str(path / "code"), "oldText": "old\n", "newText": "new\n"},
        {"type": "diff", "path": str(path / "more"), "newText": "m\n"},
    ]
    assert (call["title"], call["options"]) == ("Apply 2 changed files", ["apply", "go_on", "leave"])
    assert person.told("tool_call_update")[-1]["status"] == "completed"
    assert ((path / "code").read_text(), (path / "more").read_text()) == ("new\n", "m\n")
    assert person.said().startswith("I changed it.\n\n---")
    story = person.said("agent_thought_chunk")
    assert "solo: 1st answer; 2 files changed" in story
    assert "solo: votes for solo's 1st answer" in story
    plans = [[entry["status"] for entry in told["entries"]] for told in person.told("plan")]
    assert plans[0] == ["in_progress", "pending", "pending"]
    assert plans[-1] == ["completed"] * 3
    (listed,) = verb(home, "runs", "--session", session)["runs"]
    assert listed["status"] == "completed"
    assert verb(home, "apply", "--undo", listed["run_id"])["status"] == "undone"
    assert (path / "code").read_text() == "old\n"


async def test_what_is_not_allowed_is_left_and_can_be_applied_elsewhere(home: TempHome, repository: Repository) -> None:
    repository.commit(code="old\n")
    changing(home)
    async with editor(home, lambda _: "leave") as person:
        await person.ask(await person.session(str(repository.path)), "Change it")
        update = person.told("tool_call_update")[-1]
    assert update["status"] == "failed"
    run_id = only_run(home).name
    assert f"To apply the changes later: `massgen apply {run_id}`" in json.dumps(update)
    assert (repository.path / "code").read_text() == "old\n"
    assert verb(home, "apply", run_id)["status"] == "applied"
    assert (repository.path / "code").read_text() == "new\n"


async def test_a_follow_up_is_a_turn_of_the_session_and_goes_on_with_changes_if_the_person_says_so(
    home: TempHome, repository: Repository
) -> None:
    repository.commit(code="old\n")
    changing(home)
    async with editor(home, lambda _: "go_on") as person:
        session = await person.session(str(repository.path))
        await person.ask(session, "Change it")
        await person.ask(session, "And tidy up")
    (second,) = (run for run in home.runs if "And tidy up" in (run / "config.json").read_text())
    request = json.loads((second / "config.json").read_text())
    assert [turn["question"] for turn in request["history"]] == ["Change it"]
    taken = next(event for event in events_of(second) if event["type"] == "base_taken")
    assert taken["begins_with"]["files"] == 2
    assert (repository.path / "code").read_text() == "old\n"


async def test_in_the_mode_ask_nothing_may_be_changed(home: TempHome, repository: Repository) -> None:
    repository.commit(code="old\n")
    changing(home)
    async with editor(home, lambda _: pytest.fail("there is nothing to allow")) as person:
        session = await person.session(str(repository.path))
        await person.agent.set_session_mode(session_id=session, mode_id="ask")
        await person.ask(session, "Look at it")
        assert not person.told("tool_call")
        assert "pplied" not in person.said()
    assert (repository.path / "code").read_text() == "old\n"


async def test_a_session_can_ask_another_team(home: TempHome) -> None:
    own_team(home, {"answer": "default"})
    mine = home.config("mine", agent("mine", {"answer": "from my own team"}))
    home.config("without_key", {"id": "far", "backend": {"type": "openai", "model": "gpt-5"}})
    async with editor(home) as person:
        made = await person.agent.new_session(cwd=str(home.work), mcp_servers=[])
        options = {one.id: one for one in made.config_options or ()}
        offered = [choice["value"] for choice in options["team"].model_dump(by_alias=True)["options"]]
        assert {"default", mine, "@examples/scripted"} <= set(offered)
        assert not any("without_key" in one for one in offered), "its key is missing"
        told = await person.agent.set_config_option("team", made.session_id, mine)
        assert told is not None
        assert {one.id: one.current_value for one in told.config_options}["team"] == mine
        await person.ask(made.session_id, "q")
    assert person.said().startswith("from my own team")


async def test_cancelling_ends_the_run(home: TempHome) -> None:
    own_team(home, {"answer": "late", **after(home.work / "gate")})
    async with editor(home) as person:
        session = await person.session()
        ended: list[str] = []
        async with anyio.create_task_group() as tasks:

            async def asks() -> None:
                ended.append(await person.ask(session, "q"))

            tasks.start_soon(asks)
            await wait_until(lambda: home.runs and happened(home.runs[0], "answer_submitted"))
            await person.agent.cancel(session_id=session)
        assert ended == ["cancelled"]
    assert [one["status"] for one in verb(home, "runs")["runs"]] == ["cancelled"]


async def test_a_run_goes_on_without_its_editor_and_is_found_again_with_the_whole_conversation(
    home: TempHome, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    own_team(home, {"answer": "In the end.", **after(gate)})
    async with editor(home) as first:
        session = await first.session()
        async with anyio.create_task_group() as tasks:

            async def asks() -> None:
                with pytest.raises((ConnectionError, RequestError)):
                    await first.ask(session, "A long one")

            tasks.start_soon(asks)
            await wait_until(lambda: home.runs and happened(home.runs[0], "answer_submitted"))
            end(first.pid, signal.SIGKILL)
    assert [one["status"] for one in verb(home, "runs")["runs"]] == ["running"]

    async with editor(home) as second:
        await second.agent.load_session(cwd=str(home.work), session_id=session, mcp_servers=[])
        assert second.said("user_message_chunk") == "A long one"
        with pytest.raises(RequestError, match="session_busy"):
            await second.ask(session, "Another one")
        gate.touch()
        await wait_until(lambda: "In the end." in second.said())

    async with editor(home) as third:
        loaded = await third.agent.load_session(cwd=str(home.work), session_id=session, mcp_servers=[])
        assert loaded is not None
        assert loaded.config_options
        assert third.said("user_message_chunk") == "A long one"
        assert third.said().startswith("In the end.")
        assert await third.ask(session, "Go on") == "end_turn"
        await third.valid()
    newest = next(run for run in home.runs if "Go on" in (run / "config.json").read_text())
    history = json.loads((newest / "config.json").read_text())["history"]
    assert [(turn["question"], turn["answer"]) for turn in history] == [("A long one", "In the end.")]


async def test_of_a_run_that_moved_away_the_editor_says_where_it_is_and_not_to_resume_it_here(
    home: TempHome, tmp_path: Path
) -> None:
    file = tmp_path / "run.tar.gz"
    own_team(home, {"answer": "never here", **after(tmp_path / "gate")})
    async with editor(home) as person:
        session = await person.session()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(person.ask, session, "q")
            await wait_until(lambda: home.runs and happened(home.runs[0], "answer_submitted"))
            run_id = only_run(home).name
            assert run_command(home, SERVER_MODULE, "export", run_id, "--to", str(file)).returncode == 0
        assert f"The run is waiting: moved to {file}" in person.said()
        assert "massgen resume" not in person.said(), "that would be refused"
        await person.valid()


async def test_sessions_are_listed_by_their_directory_taken_up_without_their_story_and_closed_with_their_work(
    home: TempHome, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    own_team(home, {"answer": "In the end.", **after(gate)})
    other = tmp_path / "other"
    other.mkdir()
    async with editor(home) as first:
        session = await first.session()
        elsewhere = await first.session(str(other))
        async with anyio.create_task_group() as tasks:

            async def asks(where: str) -> None:
                with suppress(ConnectionError, RequestError):
                    await first.ask(where, f"A long one of {where}")

            tasks.start_soon(asks, session)
            tasks.start_soon(asks, elsewhere)
            await wait_until(
                lambda: len(home.runs) == 2 and all(happened(run, "answer_submitted") for run in home.runs)
            )
            await first.agent.close_session(session_id=elsewhere)
            await wait_until(
                lambda: sorted(each["status"] for each in verb(home, "runs")["runs"]) == ["cancelled", "running"]
            )
            with pytest.raises(RequestError, match="isn't open"):
                await first.ask(elsewhere, "Another one")
            end(first.pid, signal.SIGKILL)

    async with editor(home) as second:
        known = await second.agent.list_sessions()
        assert {one.session_id for one in known.sessions} == {session, elsewhere}
        (listed,) = (await second.agent.list_sessions(cwd=str(home.work))).sessions
        assert (listed.session_id, listed.cwd, listed.title) == (session, str(home.work), f"A long one of {session}")
        assert listed.updated_at
        resumed = await second.agent.resume_session(cwd=str(home.work), session_id=session)
        assert resumed.config_options
        assert second.said("user_message_chunk") == ""
        gate.touch()
        await wait_until(lambda: "In the end." in second.said())
        await second.valid()


async def test_a_turn_that_was_deleted_is_told_as_such(home: TempHome) -> None:
    own_team(home, {"answer": "It was said."})
    async with editor(home) as person:
        session = await person.session()
        await person.ask(session, "Say it")
    verb(home, "prune", "--older-than", "0")
    async with editor(home) as again:
        await again.agent.load_session(cwd=str(home.work), session_id=session, mcp_servers=[])
        assert "massgen has since removed its results" in again.said()
        assert not again.told("user_message_chunk")


async def test_a_question_of_an_agent_is_answered_by_the_next_prompt(home: TempHome) -> None:
    asking(home)
    (home.own_configs / "asking.yaml").rename(home.own_configs / "config.yaml")
    async with editor(home) as person:
        session = await person.session()
        assert await person.ask(session, "How long is it?") == "end_turn"
        assert "Metres or feet?" in person.said()
        await person.ask(session, "Metres.")
        assert "in metres" in person.said()
    assert "Metres." in (only_run(home) / "events.jsonl").read_text()


async def test_at_the_cap_the_person_is_asked_for_a_larger_budget(home: TempHome) -> None:
    dear(home)
    (home.own_configs / "dear.yaml").rename(home.own_configs / "config.yaml")
    asked: list[list[str]] = []

    def more(call: dict[str, Any]) -> str:
        asked.append(call["options"])
        return "raise"

    async with editor(home, more) as person:
        await person.ask(await person.session(), "q")
        await person.valid()
    assert asked
    assert asked[0] == ["raise", "finish", "stop"]
    assert happened(only_run(home), "budget_raised")


async def test_files_that_the_editor_names_or_sends_are_called_as_agents_find_them(home: TempHome) -> None:
    own_team(home, {"answer": "read"})
    note = home.work / "sub dir" / "note.txt"
    uri = note.as_uri()
    async with editor(home) as person:
        blocks: list[Any] = [
            text_block("Compare "),
            ResourceContentBlock(type="resource_link", name="note", uri=uri),
            text_block(" with"),
            EmbeddedResourceContentBlock(type="resource", resource=TextResourceContents(uri=uri, text="unsaved words")),
        ]
        await person.agent.prompt(session_id=await person.session(), prompt=blocks)
    question = json.loads((only_run(home) / "config.json").read_text())["question"]
    assert question.startswith('Compare `work/sub dir/note.txt` with\n\n<file name="work/sub dir/note.txt" ')
    assert "\nunsaved words\n</file " in question


async def test_a_config_that_came_with_the_project_waits_for_consent(home: TempHome) -> None:
    found = home.work / ".massgen" / "config.yaml"
    found.parent.mkdir()
    command = {"command": "sh", "args": ["-c", "true"]}
    found.write_text(json.dumps({"agents": [agent("solo", mcp_servers={"own": command})]}))
    async with editor(home) as person:
        with pytest.raises(RequestError, match="config_untrusted") as refused:
            await person.ask(await person.session(), "q")
    assert "massgen validate --trust" in str(refused.value)
    assert not home.runs


async def test_what_cannot_be_done_is_refused_and_the_session_goes_on(home: TempHome, tmp_path: Path) -> None:
    own_team(home, {"answer": "in the end", **after(tmp_path / "gate")})
    async with editor(home) as person:
        session = await person.session()

        async def refused(words: str, work: Any) -> None:
            with pytest.raises(RequestError, match=words):
                await work

        await refused("session 'none' isn't open; load it first", person.ask("none", "q"))
        await refused("there is no session 'none'", person.agent.load_session(cwd=str(home.work), session_id="none"))
        await refused("isn't a directory, or isn't an absolute path", person.agent.new_session(cwd="."))
        await refused(
            "massgen sends only text to models",
            person.agent.prompt(session_id=session, prompt=[image_block("AA==", "image/png")]),
        )
        await refused("mode cannot be 'yolo'", person.agent.set_session_mode(session_id=session, mode_id="yolo"))
        await refused("not supported", person.agent.authenticate(method_id="x"))
        await refused("invalid_arguments", person.ask(session, "  "))
        assert not home.runs
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(person.ask, session, "A long one")
            await wait_until(lambda: home.runs)
            await refused("session_busy", person.ask(session, "Another one"))
            (tmp_path / "gate").touch()
        assert "in the end" in person.said()
    assert len(home.runs) == 1


async def test_a_line_that_is_no_message_is_answered_and_the_next_one_is_heard(home: TempHome) -> None:
    lines = b'{"broken\n{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":9}}\n'
    async with spawned(home, home.python, "-m", SERVER_MODULE, "acp") as process:
        assert process.stdin
        assert process.stdout
        await process.stdin.send(lines)
        await process.stdin.aclose()
        told = b"".join([piece async for piece in process.stdout])
        assert await process.wait() == 0
    wrong, right = map(json.loads, told.splitlines())
    assert (wrong["id"], wrong["error"]["code"]) == (None, -32700)
    assert (right["id"], right["result"]["protocolVersion"]) == (7, 1)
