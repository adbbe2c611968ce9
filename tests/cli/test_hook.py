"""`massgen-mcp hook`, as the hooks of the Claude Code plugin call it: an idle session hears how its runs ended."""

import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.commands import run_command
from tests.harness import SERVER_MODULE, TempHome, agent, call, expect_error, poll_until, text_of

SLEEPS_ON, REFUSED, WAKES = 0, 1, 2
SESSION = "0ce98a5c-57e2-4948-99fc-22eb1c2d6893"
STUCK = agent("stuck", {"hang": True})


class Session:
    """A session of Claude Code with the plugin; `idle` and the like are moments in which it calls the hook."""

    def __init__(self, home: TempHome, session_id: str = SESSION) -> None:
        self.home = home
        self.id = session_id

    @property
    def command(self) -> list[str]:
        return [self.home.python, "-m", SERVER_MODULE, "hook", str(self.home.work / "plugin data")]

    def hook(self, event: str, **more: Any) -> "subprocess.CompletedProcess[str]":
        told = json.dumps({"session_id": self.id, "hook_event_name": event, **more})
        environ, work = self.home.environ, self.home.work
        done = subprocess.run(
            self.command, input=told, cwd=work, env=environ, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.stdout == "", "what stands there would be added to the conversation"
        return done

    def saw(self, tool: str, reply: Any) -> None:
        """A tool of ours has replied, as Claude Code passes it on."""
        told = reply if isinstance(reply, str) else json.dumps(reply)
        done = self.hook("PostToolUse", tool_name=f"mcp__plugin_massgen_massgen__{tool}", tool_response=told)
        assert (done.returncode, done.stderr) == (SLEEPS_ON, "")

    def idle(self) -> "subprocess.CompletedProcess[str]":
        return self.hook("Stop", stop_hook_active=False)

    async def delegates(self, config: str) -> str:
        async with self.home.client() as client:
            reply = await call(client, "start_run", question="What is it?", config=config)
        self.saw("start_run", reply)
        return str(reply["run_id"])

    @contextmanager
    def waiting(self, *before: str) -> Generator["subprocess.Popen[str]"]:
        """A hook that waits while the block goes on, called by `before`."""
        stdin = self.home.work / "event.json"
        stdin.write_text(json.dumps({"session_id": self.id, "hook_event_name": "Stop"}))
        with (
            stdin.open() as event,
            subprocess.Popen(
                [*before, *self.command],
                cwd=self.home.work,
                env=self.home.environ,
                stdin=event,
                stderr=subprocess.PIPE,
                text=True,
            ) as process,
        ):
            poll_until(lambda: self.watcher is not None)
            yield process
            process.kill()

    @property
    def watcher(self) -> int | None:
        """The process that waits for this session."""
        path = Path(self.command[-1]) / "awaited" / self.id / "watcher"
        return int(path.read_text() or 0) or None if path.exists() else None


async def test_an_idle_session_hears_the_result_of_its_run_once(home: TempHome) -> None:
    session = Session(home)
    run_id = await session.delegates("scripted")
    told = session.idle()
    assert told.returncode == WAKES, told.stderr
    first, document = told.stderr.split("\n", 1)
    assert first == f"massgen run {run_id} has ended. Its result, from get_result:"
    result = json.loads(document)
    assert result["answer"].startswith("Neither: replace it piece by piece.")
    assert result["status"] == "completed"
    async with home.client() as client:
        assert result.keys() == (await call(client, "get_result", run_id=run_id)).keys(), "no member is null"
    again = session.idle()
    assert (again.returncode, again.stderr) == (SLEEPS_ON, "")


async def test_a_session_that_was_killed_and_continued_hears_it_too(home: TempHome) -> None:
    session = Session(home)
    await session.delegates("scripted")
    assert session.hook("SessionStart", source="resume").returncode == WAKES


async def test_a_start_with_a_prompt_does_not_wait_for_runs(home: TempHome) -> None:
    session = Session(home)
    await session.delegates(home.config("stuck", STUCK))
    headless = Session(home.with_variables(CLAUDE_CODE_SESSION_ATTENDED="0"))
    assert headless.hook("SessionStart", source="resume").returncode == SLEEPS_ON


async def test_what_the_model_has_seen_itself_is_not_told_again(home: TempHome) -> None:
    session = Session(home)
    run_id = await session.delegates("scripted")
    async with home.client() as client:
        session.saw("wait_run", await call(client, "wait_run", run_id=run_id))
    told = session.idle()
    assert (told.returncode, told.stderr) == (SLEEPS_ON, "")


async def test_another_session_is_left_alone(home: TempHome) -> None:
    await Session(home).delegates("scripted")
    assert Session(home, "another-session").idle().returncode == SLEEPS_ON


async def test_a_task_is_left_to_the_client_that_waits_for_it_itself(home: TempHome) -> None:
    session = Session(home)
    session.saw("start_run", "started server-side task run-abc, moved to the background as task k1")
    assert session.idle().returncode == SLEEPS_ON
    assert not Path(session.command[-1]).exists()


async def test_a_run_without_an_answer_tells_its_cause(home: TempHome) -> None:
    session = Session(home)
    run_id = await session.delegates(home.config("refused", agent("a", {"fail": "auth"})))
    told = session.idle()
    assert told.returncode == WAKES
    result = json.loads(told.stderr.split("\n", 1)[1])
    assert (result["run_id"], result["status"]) == (run_id, "failed")
    assert result["reason"].startswith("auth")


async def test_a_run_whose_record_is_damaged_tells_that(home: TempHome) -> None:
    session = Session(home)
    run_id = await session.delegates("scripted")
    assert run_command(home, SERVER_MODULE, "wait", run_id).returncode == 0
    events = home.run_directory(run_id) / "events.jsonl"
    lines = events.read_bytes().splitlines(keepends=True)
    events.write_bytes(b"".join([lines[0], b"x" * 40 + b"\n", *lines[2:]]))
    told = session.idle()
    assert told.returncode == WAKES, told.stderr
    assert "run_damaged" in told.stderr


async def test_only_a_run_that_the_session_started_or_waited_for_wakes_it(home: TempHome) -> None:
    session = Session(home)
    session.saw("get_status", {"run_id": "run-aaaaaaaaaaaaaaaaaaaaaaaaaa", "status": "running"})
    assert not Path(session.command[-1]).exists()
    session.saw("wait_run", {"run_id": "run-aaaaaaaaaaaaaaaaaaaaaaaaaa", "status": "running"})
    assert Path(session.command[-1]).exists()


async def test_a_run_that_asks_wakes_the_session_once_and_again_with_its_result(home: TempHome) -> None:
    ask: dict[str, Any] = {"call": "ask_the_asker", "arguments": {"question": "Metres or feet?"}}
    asking = agent("solo", ask, {"answer": "in metres"})
    session = Session(home)
    run_id = await session.delegates(home.config("asking", asking, orchestrator={"allow_questions": True}))
    told = session.idle()
    assert told.returncode == WAKES
    assert told.stderr.startswith(f"massgen run {run_id} needs you.")
    assert "Metres or feet?" in told.stderr
    assert session.idle().returncode == SLEEPS_ON, "the model has been told"
    assert run_command(home, SERVER_MODULE, "answer", run_id, "Metres.").returncode == 0
    told = session.idle()
    assert told.returncode == WAKES
    assert "in metres" in told.stderr


async def test_only_the_hook_that_came_last_waits(home: TempHome) -> None:
    session = Session(home)
    run_id = await session.delegates(home.config("stuck", agent("quick", {"answer": "quick"}), STUCK))
    with session.waiting() as first:
        before = session.watcher
        with session.waiting() as second:
            poll_until(lambda: session.watcher != before)
            assert first.wait(60) == SLEEPS_ON
            assert run_command(home, SERVER_MODULE, "cancel", run_id).stderr == ""
            assert second.wait(60) == WAKES


async def test_a_hook_whose_client_was_killed_leaves_the_result_to_the_next_one(home: TempHome) -> None:
    home = TempHome(home.path, home.work, home.extra, starts_anew=True)
    session = Session(home)
    run_id = await session.delegates(home.config("stuck", STUCK))
    client = "import subprocess, sys; subprocess.run(sys.argv[1:])"
    with session.waiting(sys.executable, "-c", client) as process:
        watcher = session.watcher
        assert watcher is not None
        process.kill()
        poll_until(lambda: not Path(f"/proc/{watcher}").exists())
    run_command(home, SERVER_MODULE, "cancel", run_id)
    told = session.hook("SessionStart", source="resume")
    assert told.returncode == WAKES
    assert run_id in told.stderr


async def test_a_run_that_is_gone_is_waited_for_no_longer(home: TempHome) -> None:
    session = Session(home)
    run_id = await session.delegates("scripted")
    assert run_command(home, SERVER_MODULE, "wait", run_id).returncode == 0
    assert run_command(home, SERVER_MODULE, "prune", run_id).returncode == 0
    told = session.idle()
    assert (told.returncode, told.stderr) == (SLEEPS_ON, "")


def test_what_is_no_event_disturbs_nobody(home: TempHome) -> None:
    for session in (Session(home, "../../etc"), Session(home, "")):
        done = session.hook("Stop")
        assert done.returncode == REFUSED
        assert done.stderr.startswith("massgen-mcp hook: ")
    quiet = Session(home)
    assert quiet.hook("Stop").returncode == SLEEPS_ON
    assert quiet.hook("PostToolUse", tool_response={"run_id": "../x", "status": "queued"}).returncode == SLEEPS_ON
    broken = subprocess.run(
        quiet.command, input="{", cwd=home.work, env=home.environ, capture_output=True, text=True, check=False
    )
    assert broken.returncode == REFUSED
    assert list(home.work.iterdir()) == []


async def test_codex_passes_a_reply_on_inside_the_whole_result_of_the_call(home: TempHome) -> None:
    session = Session(home)
    async with home.client(called="codex-mcp-client") as client:
        reply = await client.call_tool("start_run", {"question": "What is it?", "team": "scripted"})
    assert "You won't be woken here" in (reply.structured_content or {})["next_step"]
    passed_on = {"content": [{"type": "text", "text": text_of(reply)}], "structuredContent": reply.structured_content}
    done = session.hook("PostToolUse", tool_name="mcp__massgen__start_run", tool_response=passed_on)
    assert (done.returncode, done.stderr) == (SLEEPS_ON, "")
    told = session.idle()
    assert told.returncode == WAKES
    assert "Neither: replace it piece by piece." in told.stderr


async def test_replies_promise_to_wake_once_the_hook_has_run_in_this_session(home: TempHome) -> None:
    session, config = Session(home), home.config("stuck", STUCK)
    async with home.client(called="codex-mcp-client") as client:
        first = await call(client, "start_run", question="q", config=config)
        assert "before your turn ends, call wait_run" in first["next_step"], "the hook may not be trusted"
        session.saw("start_run", first)
        for tool, woken in (("get_status", "you will be woken"), ("wait_run", "Still running. Do other work or end")):
            more: dict[str, Any] = {"timeout_seconds": 0} if tool == "wait_run" else {}
            assert woken in (await call(client, tool, run_id=first["run_id"], **more))["next_step"]
        second = await call(client, "start_run", question="q2", config=config)
        assert "you will be woken" in second["next_step"]
        code, early = await expect_error(client, "get_result", run_id=second["run_id"])
        assert (code, "you will be woken" in early) == ("not_finished", True)
        async with home.client() as other:
            status = await call(other, "get_status", run_id=first["run_id"])
            assert "You won't be woken here" in status["next_step"], "the hook of another session wakes that one alone"
        for run in (first, second):
            await call(client, "control_run", run_id=run["run_id"], action="cancel")
