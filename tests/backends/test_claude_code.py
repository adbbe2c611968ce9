"""Claude Code as a model: the real CLI on a double of the Messages API."""

import itertools
import json
import os
import resource
import signal
import sys
import time
from contextlib import aclosing
from pathlib import Path
from typing import Any

import anyio
import pytest

from massgen_mcp.backends.base import (
    AssistantMessage,
    Backend,
    ModelRequest,
    Part,
    ReasoningPart,
    StopPart,
    ToolCall,
    ToolCallPart,
    ToolResultMessage,
    UsagePart,
    UserMessage,
)
from massgen_mcp.backends.calling import CallHooks, RetryPolicy, call_model
from massgen_mcp.backends.frameworks.agent_process import render
from massgen_mcp.backends.frameworks.claude_code import ClaudeCodeAgent
from massgen_mcp.backends.own_loop import AgentBackend
from massgen_mcp.backends.registry import make_backend
from massgen_mcp.config.access import agent_clis
from massgen_mcp.config.access.permissions import StartClaudeCode
from massgen_mcp.config.default_team import config_from_models, default_team
from massgen_mcp.config.loader import config_from_data, missing_keys, require_keys
from massgen_mcp.config.models.backends import ClaudeCodeBackendConfig
from massgen_mcp.config.models.config import Config
from massgen_mcp.errors import BackendError, DropReason, MassgenError
from massgen_mcp.events.agent_work import ToolFinished
from massgen_mcp.events.record import LogRecord
from massgen_mcp.events.run import RunCancelled
from massgen_mcp.redaction import NO_KEYS
from massgen_mcp.request.reach import reach_of
from massgen_mcp.run_state.state import RunState
from massgen_mcp.runs.engine import FrozenRequest, RunFiles
from massgen_mcp.runs.host.execute import RunContext, RunHandle, execute_run
from massgen_mcp.sandbox.levels import interpreter
from tests.acp.acting import after
from tests.backends.wires import LOOK, VOTE, text_in
from tests.busy_double import BusyDouble, busy_server
from tests.harness import TempHome, call, home, wait_until
from tests.raw_double import reply, sse
from tests.teams import Observer

__all__ = ["home"]

NUMBERS = itertools.count(1)
KEY = "sk-ant-secret-0123456789"


def said(*blocks: dict[str, Any], stop: str = "end_turn") -> bytes:
    """A streamed reply of the Messages API with these content blocks."""
    usage = {"input_tokens": 100, "cache_read_input_tokens": 7, "output_tokens": 1}
    message: dict[str, Any] = {
        "id": f"msg_{next(NUMBERS)}",
        "type": "message",
        "role": "assistant",
        "model": "claude-x",
        "content": [],
        "usage": usage,
    }
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {**message, "stop_reason": None}}]
    for index, block in enumerate(blocks):
        delta, empty = _streamed(block)
        events += [
            {"type": "content_block_start", "index": index, "content_block": empty},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    end = {"stop_reason": stop, "stop_sequence": None}
    events += [{"type": "message_delta", "delta": end, "usage": {"output_tokens": 20}}, {"type": "message_stop"}]
    return reply(sse(*events))


def _streamed(block: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    match block["type"]:
        case "text":
            return {"type": "text_delta", "text": block["text"]}, {"type": "text", "text": ""}
        case "thinking":
            empty = {"type": "thinking", "thinking": "", "signature": ""}
            return {"type": "thinking_delta", "thinking": block["thinking"]}, empty
        case _:
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            return delta, {**block, "input": {}}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def use(name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{next(NUMBERS)}", "name": name, "input": arguments}


def refused(status: str) -> bytes:
    body = json.dumps({"type": "error", "error": {"type": "some_error", "message": f"no, with {KEY}"}}).encode()
    return reply(body, status=status, media_type="application/json")


class Place:
    """A workspace, a secret beside it, and a home that must stay as it is."""

    def __init__(self, path: Path) -> None:
        self.workspace = path / "workspace"
        self.private = path / "private"
        self.home = path / "home"
        self.secret = path / "secret.txt"
        self.workspace.mkdir()
        (self.home / ".claude").mkdir(parents=True)
        hook = {"hooks": [{"type": "command", "command": f"touch {path}/hook-ran"}]}
        settings = {"hooks": {"PreToolUse": [hook], "SessionStart": [hook]}, "permissions": {"allow": ["Bash"]}}
        (self.home / ".claude" / "settings.json").write_text(json.dumps(settings))
        (self.workspace / ".claude").mkdir()
        (self.workspace / ".claude" / "settings.json").write_text(json.dumps(settings))
        (self.workspace / "CLAUDE.md").write_text("PROJECT MEMORY")
        (self.workspace / "notes.md").write_text("six times seven")
        (self.workspace / "way-out").symlink_to(path)
        self.secret.write_text("the secret")
        self.before = self.user_files()

    def user_files(self) -> dict[str, str]:
        return {str(file): file.read_text() for file in self.home.rglob("*") if file.is_file()}

    def environ(self, url: str, **more: str) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": KEY,
            "OPENAI_API_KEY": "sk-of-somebody-else",
            **more,
        }

    def backend(self, url: str, **settings: Any) -> Backend:
        config = ClaudeCodeBackendConfig(type="claude_code", model="claude-x", **settings)
        return make_backend(config, self.environ(url), self.private)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def step(*words: str) -> ModelRequest:
    return ModelRequest("You are the system.", tuple(map(UserMessage, words)), (VOTE, LOOK), ends_with_call=True)


async def parts_of(backend: Backend, request: ModelRequest) -> list[Part]:
    try:
        return [part async for part in backend.stream(request)]
    finally:
        await backend.aclose()


async def reply_of(backend: Backend, request: ModelRequest) -> list[Part]:
    async with aclosing(backend.stream(request)) as parts:
        return [part async for part in parts]


def blocks_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    """Without the marks that say up to where a provider is to cache."""
    content = message["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return [{name: value for name, value in block.items() if name != "cache_control"} for block in blocks]


def calls_in(parts: list[Part]) -> list[tuple[str, Any]]:
    return [(part.call.name, json.loads(part.call.arguments)) for part in parts if isinstance(part, ToolCallPart)]


def bodies(double: BusyDouble) -> list[dict[str, Any]]:
    return [json.loads(body) for body in double.bodies if body]


async def test_a_call_of_a_team_tool_ends_the_step_and_is_handed_over(place: Place) -> None:
    thinks = {"type": "thinking", "thinking": "hm"}
    voted = said(thinks, text("I vote."), use(f"mcp__team__{VOTE.name}", agent_id="agent1"), stop="tool_use")
    async with busy_server(voted) as double:
        parts = await parts_of(place.backend(double.url), step("What is six times seven?", "Ballot"))
        (body,) = bodies(double)
        (head,) = double.heads
    assert text_in(parts) == "I vote."
    assert ReasoningPart("hm") in parts
    assert calls_in(parts) == [("vote", {"agent_id": "agent1"})]
    assert parts[-1] == StopPart("tool_calls")
    (usage,) = [part for part in parts if isinstance(part, UsagePart)]
    assert (usage.input_tokens, usage.cached_input_tokens, usage.output_tokens) == (107, 7, 20)
    assert usage.model == "claude-x"
    offered = {tool["name"]: tool for tool in body["tools"]}
    assert set(offered) == {"mcp__team__vote", "mcp__team__look"}
    assert offered["mcp__team__vote"]["input_schema"]["required"] == ["agent_id"]
    assert "You are the system." in json.dumps(body["system"])
    assert "What is six times seven?\\n\\nBallot" in json.dumps(body["messages"])
    assert "PROJECT MEMORY" not in json.dumps(body)
    assert f"x-api-key: {KEY}" in head.lower()


async def test_the_steps_of_a_conversation_are_one_process_that_is_told_only_what_is_new(place: Place) -> None:
    looked = said(text("I look."), use("mcp__team__look", where="here"), use("mcp__team__look", where="there"))
    replies = (looked, said(use("mcp__team__vote", agent_id="nobody")), said(text("Well.")), said(text("Yes.")))
    async with busy_server(*replies) as double:
        backend = place.backend(double.url)
        first = step("What is six times seven?")
        parts = await reply_of(backend, first)
        (process,) = clis(place)
        second = after(first, parts, "seen here", "seen there", say="The ballot has changed.")
        parts += (voted := await reply_of(backend, second))
        third = after(second, voted, "refused", error=True)
        parts += (well := await reply_of(backend, third))
        parts += await reply_of(backend, after(third, well, say="Call a tool."))
        assert clis(place) == [process]
        await backend.aclose()
        asked = [[block for message in body["messages"] for block in blocks_of(message)] for body in bodies(double)]
    assert [name for name, _ in calls_in(parts)] == ["look", "look", "vote"]
    usages = [part for part in parts if isinstance(part, UsagePart)]
    assert [(one.input_tokens, one.output_tokens) for one in usages] == [(107, 20)] * 4, "each call is counted once"
    for earlier, later in itertools.pairwise(asked):
        assert later[: len(earlier)] == earlier, "what was sent before is sent again as it was, so it is cached"
    told = json.dumps([block["content"] for block in asked[3] if block["type"] == "tool_result"])
    for text_of_result in ("seen here", "seen there\\n\\nThe ballot has changed.", "refused"):
        assert told.count(text_of_result) == 1
    assert asked[3][-1]["text"] == "Call a tool."


async def test_a_cli_that_died_while_its_call_was_held_is_started_again_and_told_the_conversation(place: Place) -> None:
    async with busy_server(said(use("mcp__team__look", where="here")), said(text("Well."))) as double:
        backend = place.backend(double.url)
        first = step("What is six times seven?")
        looked = await reply_of(backend, first)
        (died,) = clis(place)
        os.kill(died, signal.SIGKILL)
        await wait_until(lambda: clis(place) == [])
        second, policy = after(first, looked, "seen"), RetryPolicy(first_wait=0)
        assert (await call_model(backend, second, CallHooks(), policy=policy, deadline_seconds=60)).text == "Well."
        assert clis(place) not in ([], [died])
        await backend.aclose()
        assert "Result of look:\\nseen" in json.dumps(bodies(double)[1]["messages"])


async def test_another_conversation_is_another_process(place: Place) -> None:
    async with busy_server(said(use("mcp__team__look", where="here")), said(text("Well."))) as double:
        backend = place.backend(double.url)
        await reply_of(backend, step("One ballot."))
        (first,) = clis(place)
        assert text_in(await reply_of(backend, step("Another ballot."))) == "Well."
        assert first not in clis(place)
        await backend.aclose()
        assert "One ballot." not in json.dumps(bodies(double)[1]["messages"])


async def test_none_of_its_own_tools_reads_writes_or_runs_anything(place: Place, tmp_path: Path) -> None:
    outside = tmp_path / "written.txt"
    attempts = said(
        use("Bash", command=f"touch {outside}"),
        use("Read", file_path=str(place.secret)),
        use("Read", file_path=str(place.workspace / "notes.md")),
        use("Read", file_path="../secret.txt", limit=1),
        use("Read", file_path="way-out/secret.txt", limit=1, offset=1),
        use("Write", file_path=str(outside), content="x"),
        use("Write", file_path="way-out/written.txt", content="x"),
        use("Glob", pattern=f"{tmp_path}/*"),
        use("Glob", pattern="*", path=str(tmp_path)),
        use("Grep", pattern="the", path="..", output_mode="content"),
        use("Grep", pattern="the", glob="../*", output_mode="content"),
        use("WebFetch", url="http://127.0.0.1:1/", prompt="x"),
        use("Task", description="x", prompt="y", subagent_type="general-purpose"),
        stop="tool_use",
    )
    async with busy_server(attempts, said(use("mcp__team__vote", agent_id="a"), stop="tool_use")) as double:
        parts = await parts_of(place.backend(double.url), step("?"))
        told = json.dumps(bodies(double)[1]["messages"][1:])
    assert calls_in(parts) == [("vote", {"agent_id": "a"})]
    assert not outside.exists()
    assert "the secret" not in told
    assert "six times seven" not in told
    assert told.count('"is_error": true') == 13
    assert parts[-1] == StopPart("tool_calls")


ODD_CLI = """\
import json, sys

def say(**message):
    print(json.dumps(message), flush=True)

def hear():
    return json.loads(sys.stdin.readline())

begin = hear()
say(type="control_response", response={"subtype": "success", "request_id": begin["request_id"], "response": {}})
hear()
asked = {"tool_name": "Bash", "tool_input": {"command": "ls"}}
say(type="control_request", request_id="1", request={"subtype": "hook_callback", "input": asked, "tool_use_id": "t"})
say(type="control_request", request_id="2", request={"subtype": "open_the_door"})
told = [hear()["response"], hear()["response"]]
with open(sys.argv[0] + ".told", "w") as file:
    json.dump(told, file)
say(type="result", subtype="success", is_error=False, result="", stop_reason="end_turn", usage={})
"""


async def test_a_cli_that_asks_to_run_what_it_was_not_given_is_told_no(place: Place, tmp_path: Path) -> None:
    """A later CLI may have tools that `--tools` does not take away."""
    odd = tmp_path / "claude"
    odd.write_text(f"#!{interpreter()}\n{ODD_CLI}")
    odd.chmod(0o755)
    environ = {**place.environ("http://127.0.0.1:1"), "PATH": str(tmp_path)}
    parts = await parts_of(make_backend(CONFIG, environ, place.private), step("?"))
    assert parts[-1] == StopPart("end", provider_word="end_turn")
    asked, unknown = json.loads((tmp_path / "claude.told").read_text())
    assert asked["response"]["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert unknown["subtype"] == "error"


FLOODING_CLI = """\
import json, sys

begin = json.loads(sys.stdin.readline())
did = {"subtype": "success", "request_id": begin["request_id"], "response": {}}
print(json.dumps({"type": "control_response", "response": did}), flush=True)
sys.stdin.readline()
kind, count = KIND
called = {"method": "tools/call", "id": 1, "params": {"name": "look"}}
used = [{"type": "tool_use", "id": f"t{n}", "name": "mcp__team__look", "input": {}} for n in range(100)]
try:
    for number in range(count):
        asked = {"subtype": "mcp_message", "message": called}
        lines = {
            "calls": {"type": "control_request", "request_id": str(number), "request": asked},
            "calls of one id": {"type": "control_request", "request_id": "1", "request": asked},
            "steps": {"type": "assistant", "message": {"content": used}},
        }
        if kind in lines:
            print(json.dumps(lines[kind]), flush=True)
        elif kind == "messages":
            print(json.dumps({"type": "assistant", "message": {"content": used[:1]}}))
            print(json.dumps({"type": "stream_event", "event": {"type": "message_stop"}}), flush=True)
        elif kind == "parts":
            print("{" + '"a":[' + "0," * 1_000_000 + "0]}", flush=True)
        else:
            sys.stdout.write("{" + "x" * 1_000_000)
except BrokenPipeError:
    pass
sys.stdin.read()
"""


def flooding(place: Place, directory: Path, kind: str) -> Backend:
    """A CLI that sends this two thousand times."""
    odd = directory / "claude"
    odd.write_text(f"#!{interpreter()}\n{FLOODING_CLI.replace('KIND', repr((kind, 2000)))}")
    odd.chmod(0o755)
    environ = {**place.environ("http://127.0.0.1:1"), "PATH": str(directory)}
    return make_backend(CONFIG, environ, place.private)


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("calls", "more than 256 parallel calls"),
        ("calls of one id", "reused an id"),
        ("steps", "called more than 256 tools at once"),
        ("parts", "aren't JSON"),
        ("a line without an end", "a message is larger than 16777216 bytes"),
    ],
)
async def test_a_cli_that_sends_more_than_a_turn_needs_is_ended(
    place: Place, tmp_path: Path, kind: str, why: str
) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(BackendError, match=why):
        await parts_of(flooding(place, tmp_path, kind), step("?"))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 150 * 1024


async def test_a_cli_that_calls_tools_without_an_end_while_it_is_not_heard_is_ended(
    place: Place, tmp_path: Path
) -> None:
    backend = flooding(place, tmp_path, "messages")
    try:
        parts = await reply_of(backend, step("?"))
        assert [name for name, _ in calls_in(parts)] == ["look"]
    except BackendError as error:  # a busy machine reads the second message before the first step is taken
        if "called more tools before" not in str(error):
            raise
    await wait_until(lambda: not clis(place))
    await backend.aclose()


async def test_where_the_text_is_the_reply_nothing_but_the_reply_is_in_it(place: Place) -> None:
    request = ModelRequest("Write the final answer.", (UserMessage("@/etc/hostname /help"),))
    async with busy_server(said(text("Forty-two."))) as double:
        parts = await parts_of(place.backend(double.url), request)
        (body,) = bodies(double)
    assert text_in(parts) == "Forty-two."
    assert parts[-1] == StopPart("end", provider_word="end_turn")
    assert body.get("tools", []) == []
    assert "@/etc/hostname /help" in json.dumps(body["messages"])


async def test_the_users_settings_and_home_are_neither_read_nor_written(place: Place, tmp_path: Path) -> None:
    async with busy_server(said(text("ok"))) as double:
        backend = place.backend(double.url)
        await parts_of(backend, step("?"))
    assert not (tmp_path / "hook-ran").exists()
    assert place.user_files() == place.before
    assert not place.private.exists()


async def test_the_cli_gets_its_login_and_no_other_key(place: Place) -> None:
    seen: dict[str, str] = {}
    async with busy_server(b"", latency=3600) as silent:
        backend = place.backend(silent.url)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(parts_of, backend, step("?"))
            (pid,) = await wait_until(lambda: clis(place))
            seen.update(environ_of(pid))
            tasks.cancel_scope.cancel()
    assert seen["ANTHROPIC_API_KEY"] == KEY
    assert seen["HOME"] == str(place.private)
    assert "OPENAI_API_KEY" not in seen
    assert "sk-of-somebody-else" not in seen.values()


async def test_a_cancelled_cli_is_gone_at_once_even_if_it_does_not_listen_any_more(place: Place) -> None:
    async with busy_server(b"", latency=3600) as silent:
        backend = place.backend(silent.url)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(parts_of, backend, step("?"))
            (pid,) = await wait_until(lambda: clis(place))
            os.kill(pid, signal.SIGSTOP)
            tasks.cancel_scope.cancel()
        assert clis(place) == []


@pytest.mark.parametrize(
    ("status", "reason", "retryable"),
    [
        ("401 Unauthorized", "auth", False),
        ("404 Not Found", "model_not_found", False),
        ("429 Too Many Requests", "rate_limited", True),
        ("529 Overloaded", "provider_error", True),
        ("400 Bad Request", "bad_request", False),
    ],
)
async def test_what_the_api_refuses_is_told_and_without_the_key(
    place: Place, status: str, reason: DropReason, retryable: bool
) -> None:
    async with busy_server(refused(status)) as double:
        with pytest.raises(BackendError, match="claude_code was answered") as caught:
            await parts_of(place.backend(double.url), step("?"))
        # Of a request that is refused for good the CLI may try plainer forms by itself; it retries nothing.
        assert len(bodies(double)) <= (1 if retryable or reason == "auth" else 3)
    assert (caught.value.reason, caught.value.retryable) == (reason, retryable)
    assert KEY not in str(caught.value)


async def test_a_reply_that_breaks_off_is_an_error_and_no_short_answer(place: Place) -> None:
    whole = said(text("Forty-"))
    cut = whole[: whole.index(b"event: content_block_stop")]
    async with busy_server(cut) as double:
        with pytest.raises(BackendError) as caught:
            await parts_of(place.backend(double.url), ModelRequest("s", (UserMessage("?"),)))
    assert caught.value.retryable


async def test_an_api_that_cannot_be_reached_is_an_error_that_may_pass(place: Place) -> None:
    async with busy_server(b"") as double:
        url = double.url
    with pytest.raises(BackendError) as caught:
        await parts_of(place.backend(url), step("?"))
    assert caught.value.retryable


@pytest.mark.parametrize(
    ("model", "asked"),
    [
        ("claude-sonnet-4-5", {"thinking": {"type": "enabled", "budget_tokens": 20_000}}),
        ("claude-opus-5-5", {"output_config": {"effort": "high"}}),
    ],
)
async def test_how_much_it_thinks_is_told_to_every_kind_of_model(
    place: Place, model: str, asked: dict[str, dict[str, Any]]
) -> None:
    config = team_of(model=model, max_thinking_tokens=20_000).agents[0].backend
    async with busy_server(said(text("ok"))) as double:
        backend = make_backend(config, place.environ(double.url), place.private)
        await parts_of(backend, ModelRequest("s", (UserMessage("?"),)))
        (body,) = bodies(double)
    for key, settings in asked.items():
        assert settings.items() <= body[key].items()


async def test_a_step_of_too_many_turns_is_ended(place: Place) -> None:
    async with busy_server(said(use("Bash", command="ls"), stop="tool_use")) as double:
        with pytest.raises(BackendError, match="max_turns") as caught:
            await parts_of(place.backend(double.url, max_turns=2), step("?"))
        assert len(bodies(double)) == 2
    assert (caught.value.reason, caught.value.retryable) == ("bad_reply", False)


@pytest.mark.parametrize(
    ("script", "told"), [("echo it is broken >&2; exit 3", "it is broken"), (None, "cannot be started")]
)
async def test_a_cli_that_does_not_work_is_told(place: Place, script: str | None, told: str) -> None:
    broken = place.workspace / "claude"
    if script:
        broken.write_text(f"#!/bin/sh\n{script}\n")
        broken.chmod(0o755)
    login = agent_clis.Login("ANTHROPIC_API_KEY", KEY)
    backend = AgentBackend(ClaudeCodeAgent(CONFIG, str(broken), login, {"PATH": os.environ["PATH"]}, None, NO_KEYS))
    with pytest.raises(BackendError, match=told) as caught:
        await parts_of(backend, step("?"))
    assert caught.value.reason == "provider_error"


def test_a_conversation_becomes_one_prompt() -> None:
    call = ToolCall("c", "look", '{"where": "here"}')
    told = render(
        (
            UserMessage("Question"),
            AssistantMessage("I look.", (call,)),
            ToolResultMessage("c", "look", "Nothing.", is_error=True),
            AssistantMessage(""),
            UserMessage("Go on"),
        )
    )
    assert told == (
        'Question\n\nYou said: I look.\nYou called look with {"where": "here"}\n\n'
        "Result of look (an error):\nNothing.\n\nGo on"
    )


# -- in a run ---------------------------------------------------------------------------------------------------------


def team_of(*others: dict[str, Any], **backend: Any) -> Config:
    claude = {"id": "claude", "backend": {"type": "claude_code", "model": "claude-x", **backend}}
    return config_from_data({"agents": [claude, *others]}, "test")


async def run_it(path: Path, config: Config, environ: dict[str, str]) -> tuple[RunState, RunFiles]:
    directory = RunFiles.create(path / "run", FrozenRequest("What is six times seven?", config))
    return await execute_run(directory, "run-1", RunContext(environ)), directory


async def test_it_writes_a_file_answers_votes_and_presents_in_a_team(place: Place, tmp_path: Path) -> None:
    replies = (
        said(use("mcp__team__write_file", path="work.md", content="6 * 7 = 42"), stop="tool_use"),
        said(use("mcp__team__new_answer", content="It is 42, by multiplication."), stop="tool_use"),
        said(use("mcp__team__vote", agent_id="agent1", reason="Mine shows why."), stop="tool_use"),
        said(text("Forty-two.")),
    )
    other = {"id": "other", "backend": {"type": "scripted", "script": [{"answer": "41"}, {"vote": "multiplication"}]}}
    async with busy_server(*replies) as double:
        run, directory = await run_it(tmp_path, team_of(other), place.environ(double.url))
    assert (run.state, run.degraded) == ("completed", [])
    assert run.final_answer == "Forty-two."
    assert {answer.content for answer in run.answers} == {"It is 42, by multiplication.", "41"}
    assert len(run.votes) == 2
    kept = list(directory.path.rglob("work.md"))
    assert any("workspaces" not in file.parts for file in kept), "the file belongs to the answer"
    assert not directory.private_of("agent_a").exists()
    assert place.user_files() == place.before


@pytest.mark.parametrize(
    "spelling",
    [
        {"allowed_tools": ["Read", "Write", "Edit", "Bash"]},
        {"allowed_tools": ["Bash"]},
        {"disallowed_tools": ["Bash(rm*)"]},
    ],
)
async def test_where_bash_is_allowed_it_runs_commands_in_the_sandbox(
    place: Place, tmp_path: Path, spelling: dict[str, Any]
) -> None:
    outside = tmp_path / "outside.txt"
    command = f"echo made > by-command.txt; cat by-command.txt; touch {outside}; env"
    replies = (
        said(use("mcp__team__run_command", command=command), stop="tool_use"),
        said(use("mcp__team__new_answer", content="42"), stop="tool_use"),
    )
    async with busy_server(*replies) as double:
        environ = {**place.environ(double.url), "MASSGEN_MCP_HOME": str(tmp_path / "home")}
        run, directory = await run_it(tmp_path, team_of(**spelling), environ)
        first, second = bodies(double)
    assert run.final_answer == "42"
    offered = [tool["name"] for tool in first["tools"]]
    assert "mcp__team__run_command" in offered
    assert all(name.startswith("mcp__team__") for name in offered), "no tool is there twice"
    (finished,) = [record.event for record in directory.event_log.read() if isinstance(record.event, ToolFinished)]
    assert finished.result.startswith("[exit code 0, ")
    assert "made\n" in finished.result
    assert "made" in json.dumps(second["messages"])
    assert KEY not in finished.result
    assert not outside.exists()
    assert (directory.path / "final" / "agent_a" / "workspace" / "by-command.txt").read_text() == "made\n"


@pytest.mark.parametrize(
    ("tools", "commands"),
    [
        ({}, False),
        ({"allowed_tools": ["Read", "Glob", "Grep", "Write", "Edit"]}, False),
        ({"allowed_tools": ["Bash(git *)"]}, True),
        ({"allowed_tools": ["Bash"], "disallowed_tools": ["Bash"]}, False),
        ({"disallowed_tools": ["Bash(rm*)", "WebSearch"]}, True),
        ({"disallowed_tools": ["WebSearch"]}, False),
        ({"disallowed_tools": ["WebSearch"], "commands": True}, True),
    ],
)
def test_who_allows_bash_wholly_or_in_part_gives_it_commands(tools: dict[str, Any], commands: bool) -> None:
    config = team_of(**tools)
    assert config.commands_of(config.agents[0]).enabled is commands


def test_a_directory_to_work_on_is_shown_to_it_and_its_other_settings_are_taken(tmp_path: Path) -> None:
    config = team_of(cwd=str(tmp_path), system_prompt="You fix bugs.", max_thinking_tokens=20_000)
    assert [(one.path, one.permission) for one in config.orchestrator.context_paths] == [(str(tmp_path), "write")]
    assert config.agents[0].system_message == "You fix bugs."
    assert config.agents[0].backend.model_dump()["max_thinking_tokens"] == 20_000
    assert reach_of(config, {}, tmp_path).writes == (tmp_path.resolve(),)
    assert team_of(cwd="workspace1").orchestrator.context_paths == ()
    with pytest.raises(MassgenError, match=r"backend\.cwd: directory not found"):
        team_of(cwd=str(tmp_path / "absent"))


async def test_an_agent_that_waits_for_the_others_needs_no_cli(place: Place, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    script = [{"answer": "41", "after_file": str(gate)}, {"vote": "multiplication"}]
    replies = (
        said(use("mcp__team__new_answer", content="It is 42, by multiplication."), stop="tool_use"),
        said(use("mcp__team__vote", agent_id="agent1", reason="Mine shows why.", same_as=[]), stop="tool_use"),
        said(text("Forty-two.")),
    )
    config = team_of({"id": "other", "backend": {"type": "scripted", "script": script}})
    directory = RunFiles.create(tmp_path / "run", FrozenRequest("?", config))
    seen: list[str] = []
    async with busy_server(*replies) as double, anyio.create_task_group() as tasks:
        environ = place.environ(double.url)
        observer = Observer(on_record=lambda record: seen.append(record.event.type))
        tasks.start_soon(execute_run, directory, "run-1", RunContext(environ, observer))
        await wait_until(lambda: "answer_submitted" in seen)
        await wait_until(lambda: not alive_in(directory.private_of("agent_a")))
        assert len(bodies(double)) == 1
        gate.touch()
    assert seen.count("vote_cast") == 2
    assert "run_completed" in seen


def alive_in(home: Path) -> bool:
    mine = f"HOME={home}".encode()
    return any(mine in raw_environ(int(entry.name)) for entry in Path("/proc").iterdir() if entry.name.isdigit())


async def test_cancelling_a_run_ends_its_cli(place: Place, tmp_path: Path) -> None:
    handles: list[RunHandle] = []
    alive_at_the_end: list[bool] = []
    directory = RunFiles.create(tmp_path / "run", FrozenRequest("?", team_of()))

    def alive() -> bool:
        return alive_in(directory.private_of("agent_a"))

    async with busy_server(b"", latency=3600) as silent, anyio.create_task_group() as tasks:
        environ = place.environ(silent.url)

        def note(record: LogRecord) -> None:
            if isinstance(record.event, RunCancelled):
                alive_at_the_end.append(alive())

        tasks.start_soon(
            execute_run, directory, "run-1", RunContext(environ, Observer(on_start=handles.append, on_record=note))
        )
        await wait_until(alive)
        await wait_until(lambda: silent.heads)
        handles[0].do("cancel")
        await wait_until(lambda: alive_at_the_end)
        assert alive_at_the_end == [False]
        await wait_until(lambda: not directory.private_of("agent_a").exists())
        tasks.cancel_scope.cancel()


async def test_the_default_team_falls_back_to_it_and_says_so(home: TempHome) -> None:
    own = {"CLAUDE_CODE_OAUTH_TOKEN": "a-token-of-the-cli"}
    config = (await default_team({"PATH": os.environ["PATH"], **own}, places=())).config
    assert [(agent.id, agent.backend.type) for agent in config.agents] == [("claude_code", "claude_code")]
    keyed = (await default_team({**own, "OPENAI_API_KEY": "k"}, places=())).config
    assert {agent.backend.type for agent in keyed.agents} == {"openai"}
    async with home.with_variables(**own).client() as client:
        planned = await call(client, "start_run", question="q", dry_run=True)
    assert "Claude Code" in planned["source"]
    assert planned["missing_keys"] == []


def test_its_login_counts_as_a_key_and_is_told_when_it_is_missing(tmp_path: Path) -> None:
    config = team_of()
    assert missing_keys(config, {}) == ["ANTHROPIC_API_KEY"]
    with pytest.raises(MassgenError, match="ANTHROPIC_API_KEY or CLAUDE_CODE_OAUTH_TOKEN"):
        require_keys(config, {})
    own = logged_in(tmp_path / "own", seconds=3600)
    for settings, environ in (({}, {"CLAUDE_CODE_OAUTH_TOKEN": "t"}), ({"use_login": True}, own)):
        assert missing_keys(team_of(**settings), environ) == []
        require_keys(team_of(**settings), environ)
    with pytest.raises(MassgenError, match="use_login: true"):
        require_keys(config, own)


def test_it_may_be_named_like_any_model() -> None:
    config = config_from_models(["claude_code/claude-x", "claude_code/default"], num_agents=None)
    assert [agent.backend.model for agent in config.agents] == ["claude-x", "default"]


# -- logins -----------------------------------------------------------------------------------------------------------

CONFIG = ClaudeCodeBackendConfig(type="claude_code")
OWN_LOGIN = ClaudeCodeBackendConfig(type="claude_code", use_login=True)


def logged_in(directory: Path, *, seconds: float) -> dict[str, str]:
    directory.mkdir(exist_ok=True)
    login = {"accessToken": "short-lived", "refreshToken": "never-used", "expiresAt": (time.time() + seconds) * 1000}
    (directory / ".credentials.json").write_text(json.dumps({"claudeAiOauth": login}))
    return {"CLAUDE_CONFIG_DIR": str(directory)}


def test_the_login_is_the_key_or_token_that_is_set_or_the_users_own_while_it_is_valid(tmp_path: Path) -> None:
    own = logged_in(tmp_path / "own", seconds=3600)
    found = [
        agent_clis.find_login(OWN_LOGIN, environ)
        for environ in (
            {"ANTHROPIC_API_KEY": "k", "CLAUDE_CODE_OAUTH_TOKEN": "t", **own},
            {"CLAUDE_CODE_OAUTH_TOKEN": "t", "ANTHROPIC_API_KEY": " ", **own},
            own,
            {"HOME": str(tmp_path)},
            logged_in(tmp_path / "late", seconds=10),
        )
    ]
    assert [login and (login.variable, login.value) for login in found] == [
        ("ANTHROPIC_API_KEY", "k"),
        ("CLAUDE_CODE_OAUTH_TOKEN", "t"),
        ("CLAUDE_CODE_OAUTH_TOKEN", "short-lived"),
        None,
        None,
    ]
    (tmp_path / "own" / ".credentials.json").write_text("[]")
    assert agent_clis.find_login(OWN_LOGIN, own) is None
    assert "short-lived" not in repr(found)


async def test_your_own_login_is_used_only_where_a_config_says_so(tmp_path: Path) -> None:
    own = {"PATH": os.environ["PATH"], **logged_in(tmp_path / "own", seconds=3600)}
    assert agent_clis.find_login(CONFIG, own) is None
    with pytest.raises(BackendError, match="use_login: true"):
        make_backend(CONFIG, own)
    with pytest.raises(MassgenError, match="massgen can't put a team together"):
        await default_team(own, places=())
    assert StartClaudeCode(own_login=False) in reach_of(team_of(), own, tmp_path).permissions
    assert StartClaudeCode(own_login=True) in reach_of(team_of(use_login=True), own, tmp_path).permissions


async def test_the_users_own_login_goes_out_as_a_token(place: Place, tmp_path: Path) -> None:
    own = logged_in(tmp_path / "own", seconds=3600)
    async with busy_server(said(text("hello"))) as double:
        environ = {**place.environ(double.url, **own), "ANTHROPIC_API_KEY": ""}
        backend = make_backend(OWN_LOGIN, environ, place.private)
        parts = await parts_of(backend, ModelRequest("s", (UserMessage("?"),)))
        (head,) = double.heads
    assert text_in(parts) == "hello"
    assert "authorization: bearer short-lived" in head.lower()


def test_who_is_not_logged_in_is_told_what_to_set() -> None:
    with pytest.raises(BackendError, match="ANTHROPIC_API_KEY or CLAUDE_CODE_OAUTH_TOKEN") as caught:
        make_backend(CONFIG, {"PATH": os.environ["PATH"]})
    assert caught.value.reason == "auth"


def test_your_own_cli_goes_before_the_one_of_the_extra_and_without_both_it_is_told_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "claude"
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)
    assert agent_clis.find_cli({"PATH": str(tmp_path)}) == str(own)
    assert (agent_clis.find_cli({"PATH": str(place_without(tmp_path))}) or "").endswith("_bundled/claude")
    monkeypatch.setitem(sys.modules, "claude_agent_sdk", None)
    assert agent_clis.find_cli({"PATH": str(tmp_path)}) == str(own), "no extra is needed beside it"
    nowhere = {"PATH": str(place_without(tmp_path)), "ANTHROPIC_API_KEY": "k"}
    told = r'npm install -g @anthropic-ai/claude-code, or pip install "massgen-mcp\[claude-code\]"'
    with pytest.raises(BackendError, match=told):
        make_backend(CONFIG, nowhere)
    with pytest.raises(MassgenError, match=told) as caught:
        require_keys(team_of(), nowhere)
    assert caught.value.code == "config_invalid"


def place_without(path: Path) -> Path:
    """A directory for programs with none in it."""
    empty = path / "no-programs"
    empty.mkdir(exist_ok=True)
    return empty


# -- processes --------------------------------------------------------------------------------------------------------


def clis(place: Place) -> list[int]:
    """Ids of the processes whose home is this place's."""
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [pid for pid in pids if mark(place) in raw_environ(pid)]


def mark(place: Place) -> bytes:
    return f"HOME={place.private}".encode()


def raw_environ(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def environ_of(pid: int) -> dict[str, str]:
    pairs = (entry.decode().partition("=") for entry in raw_environ(pid) if entry)
    return {name: value for name, _, value in pairs}
