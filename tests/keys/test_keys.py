"""Keys, through the front door: an unusable one stops everything, each goes out once, and none comes back out."""

import base64
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import massgen_mcp
from massgen_mcp.config.loader import config_from_data
from massgen_mcp.config.models.config import Config
from massgen_mcp.errors import MassgenError
from massgen_mcp.events.agent_work import ModelReplied, TextDelta
from massgen_mcp.events.run import TERMINAL, CallerMessage
from massgen_mcp.runs.engine import FrozenRequest, RunFiles
from massgen_mcp.runs.host.execute import RunContext, RunHandle, execute_run
from tests.backends.wires import WIRES, Wire
from tests.commands import run_command
from tests.harness import COMMAND_MODULE, TempHome, agent, call, expect_error
from tests.planted import HOLDS_KEYS, Search
from tests.raw_double import RawDouble, answering, raw_server, reply, sse
from tests.teams import Observer

KEY = "sk-proj-Zq8+Wv3/Xt7=Mb2nRk5Lc9"
BROKEN = "sk-broken-0123456789\nabcdefghijklmnop"
"""Two lines, as a key that was pasted with its line break in the middle."""
AS_BASE64 = base64.b64encode(f"key={KEY}!".encode()).decode()


def keys_below(directory: Path, key: str) -> list[str]:
    search = Search({"THE_KEY": key})
    search.look_below(directory)
    assert search.files
    return search.found


def lone(url: str, **settings: Any) -> dict[str, Any]:
    return {"id": "one", "backend": {"type": "chatcompletion", "model": "m", "base_url": url, **settings}}


def said(*pieces: str) -> bytes:
    """A whole reply of Chat Completions, in these pieces."""
    chunks = [{"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
               "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
              for delta, finish in (*(({"content": piece}, None) for piece in pieces), ({}, "stop"))]  # fmt: skip
    return reply(sse(*chunks, "[DONE]"))


# -- a key that cannot be one -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        (BROKEN, "line break"),
        ("sk-two words-0123456789", "white space"),
        ("sk-kéy-0123456789abcdef", "printable ASCII"),
        ("sk-\x1b[31m-0123456789abcdef", "printable ASCII"),
    ],
)
async def test_a_key_that_cannot_be_one_is_an_error_before_anything_starts(
    value: str, fault: str, home: TempHome
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MY_KEY", value)
        config = {"agents": [lone("http://127.0.0.1:9/v1", api_key_env="MY_KEY")]}
        with pytest.raises(MassgenError) as caught:
            await massgen_mcp.run("What is it?", config_dict=config)
    assert caught.value.code == "config_invalid"
    assert "MY_KEY" in str(caught.value)
    assert fault in str(caught.value)
    assert value[:9] not in str(caught.value)
    assert not home.path.exists()


async def test_over_mcp_an_unusable_key_is_an_error_also_where_nothing_is_to_be_started(home: TempHome) -> None:
    config = home.config("team", lone("http://127.0.0.1:9/v1", api_key_env="MY_KEY"))
    async with home.with_variables(MY_KEY=BROKEN).client() as client:
        for dry_run in (False, True):
            code, told = await expect_error(client, "start_run", question="q", config=config, dry_run=dry_run)
            assert code == "config_invalid"
            assert told.startswith("MY_KEY doesn't contain a usable key: it contains a line break")
        assert (await call(client, "list_runs"))["runs"] == []
        listed = await call(client, "list_configs")
    assert listed["configs"]
    assert keys_below(home.path.parent, BROKEN.split("\n")[0]) == []


def test_the_command_line_and_validate_refuse_an_unusable_key_with_exit_code_1(home: TempHome) -> None:
    config = home.config("team", lone("http://127.0.0.1:9/v1", api_key_env="MY_KEY"))
    with_key = home.with_variables(MY_KEY=BROKEN)
    for arguments in (("--automation", "--config", config, "q"), ("--validate", config)):
        ended = run_command(with_key, COMMAND_MODULE, *arguments)
        assert ended.returncode == 1
        assert ended.stderr.startswith("ERROR config_invalid: MY_KEY doesn't contain a usable key")
        assert ended.stdout == ""
        assert "sk-broken" not in ended.stderr
    assert not (home.work / ".massgen").exists()


async def test_white_space_around_a_key_as_at_the_end_of_a_file_is_no_part_of_it(tmp_path: Path) -> None:
    async with raw_server(said("42")) as server:
        config = config_from_data({"agents": [lone(f"{server.url}/v1", api_key_env="MY_KEY")]}, "test")
        await finished(tmp_path, config, {"MY_KEY": f" {KEY}\r\n"})
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


# -- credentials in addresses -----------------------------------------------------------------------------------------

ADDRESSES = (
    f"http://me:{KEY}@127.0.0.1:9/v1",
    "http://me@127.0.0.1:9/v1",
    f"http://127.0.0.1:9/v1?key={KEY}",
    f"http://127.0.0.1:9/v1?a=b&api_key={KEY}",
    f"http://127.0.0.1:9/v1?access_token={KEY}",
    f"http://127.0.0.1:9/v1#token={KEY}",
)


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_config_with_credentials_in_an_address_is_refused_without_them(address: str) -> None:
    with pytest.raises(
        MassgenError, match=r"agents\[0\]\.backend\.base_url: expected .* without .*credentials"
    ) as caught:
        config_from_data({"agents": [lone(address)]}, "test")
    assert KEY not in str(caught.value)
    assert "me@" not in str(caught.value)


@pytest.mark.parametrize("address", ADDRESSES)
async def test_an_operators_address_with_credentials_is_refused_by_the_variables_name(
    address: str, home: TempHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", address)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with pytest.raises(MassgenError, match=r"OPENAI_BASE_URL: an address must not contain") as caught:
        await massgen_mcp.run("q", model="openai/some-model")
    assert caught.value.code == "config_invalid"
    assert KEY not in str(caught.value)
    assert not home.path.exists()


@pytest.mark.parametrize(
    "address", ["localhost:9", "ftp://host/v1", "sk-a-key-in-the-wrong-variable", "http://host/v1?a=", "http://host/#"]
)
async def test_what_is_no_address_is_refused_by_the_variables_name_before_anything_starts(
    address: str, home: TempHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", address)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with pytest.raises(MassgenError, match=r"OPENAI_BASE_URL isn't a valid address; .* such as https://") as caught:
        await massgen_mcp.run("q", model="openai/some-model")
    assert address not in str(caught.value)
    assert not home.path.exists()


def test_an_mcp_servers_address_with_other_parameters_is_no_credential() -> None:
    address = "https://host.example/mcp?api-version=2024-10-21&region=eu"
    backend = {**lone("https://host.example/v1")["backend"], "mcp_servers": {"x": {"url": address}}}
    config = config_from_data({"agents": [{"id": "one", "backend": backend}]}, "test")
    assert address in config.model_dump_json()


# -- a key on the wire ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
async def test_each_wire_sends_its_key_once_in_a_header_and_nowhere_else(wire: Wire, tmp_path: Path) -> None:
    async with raw_server(reply(sse(*wire.whole))) as server:
        backend = {"type": wire.name, "model": "m", "base_url": server.url + wire.suffix, "api_key_env": "MY_KEY"}
        config = config_from_data({"agents": [{"id": "one", "backend": backend}]}, "test")
        await finished(tmp_path, config, {"MY_KEY": KEY})
    for request in server.requests:
        header = {"claude": "x-api-key", "gemini": "x-goog-api-key"}.get(wire.name, "authorization")
        assert [name for name, value in request.headers.items() if KEY in value] == [header]
        assert request.head.count(KEY) == 1
        assert KEY not in json.dumps(request.body)


# -- a key that comes back --------------------------------------------------------------------------------------------

SPLIT = tuple(KEY[start : start + 3] for start in range(0, len(KEY), 3))
ECHOES: dict[str, tuple[str, ...]] = {
    "whole": (f"Your key is {KEY}, keep it.",),
    "split": ("Your key is ", *SPLIT, ", keep it."),
    "split between events": (f"{'So far. ' * 60}{KEY[:12]}", KEY[12:], ", keep it."),
    "at the end": ("Your key is ", *SPLIT),
    "url": ("Ask http://x/?k=", quote(KEY, safe=""), " for more."),
    "base64": ("In base64: ", AS_BASE64[:20], AS_BASE64[20:], "."),
    "quoted": (json.dumps({"key": KEY}),),
}


@pytest.mark.parametrize("pieces", ECHOES.values(), ids=ECHOES)
async def test_a_key_that_a_model_says_is_in_no_event_no_file_and_no_answer(
    pieces: tuple[str, ...], tmp_path: Path
) -> None:
    async with answering(voting("new_answer", json.dumps({"content": "It is."}), *pieces)) as server:
        config = config_from_data({"agents": two(server.url, "MY_KEY", "MY_KEY")}, "test")
        ended = await finished(tmp_path, config, {"MY_KEY": KEY})
    assert ended.answer.count("[key MY_KEY]") == 1
    presented = [event for event in ended.events if isinstance(event, ModelReplied) and event.purpose == "present"]
    last = presented[0].call_id
    streamed = [event.text for event in ended.events if isinstance(event, TextDelta) and event.call_id == last]
    assert "".join(streamed) == presented[0].text == ended.answer
    assert keys_below(tmp_path, KEY) == []


def _error(text: str) -> bytes:
    return reply(
        json.dumps({"error": {"message": text}}).encode(), status="400 Bad Request", media_type="application/json"
    )


@pytest.mark.parametrize("before", [0, 430, 440, 450, 460, 470, 480])
async def test_a_key_in_a_providers_error_is_taken_out_before_the_error_is_cut(before: int, tmp_path: Path) -> None:
    async with raw_server(_error(f"{'x' * before} wrong key {KEY} {'y' * 900}")) as server:
        config = config_from_data({"agents": [lone(f"{server.url}/v1", api_key_env="MY_KEY")]}, "test")
        ended = await finished(tmp_path, config, {"MY_KEY": KEY})
    assert ended.state == "failed"
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and KEY[:12].encode() in path.read_bytes()]


async def test_nobody_is_shown_a_key_that_another_agent_was_told_nor_after_a_resume(tmp_path: Path) -> None:
    """Two agents; the first one's answer holds the second one's key, hidden by an escape in the call's arguments."""
    hidden = json.dumps({"content": f"It is {KEY}."}).replace("sk-proj", "\\u0073k-proj")

    async with answering(voting("new_answer", hidden, f"It is {KEY}.")) as server:
        config = config_from_data({"agents": two(server.url, "A_KEY", "B_KEY")}, "test")
        environ = {"A_KEY": "sk-another-key-0123456789", "B_KEY": KEY}
        ended = await finished(tmp_path, config, environ)
        shown = bodies(server)
        assert "[key B_KEY]" in ended.answer
        assert any("It is [key B_KEY]." in body for body in shown)
        records = ended.directory.event_log.read()
        cut = next(place for place, record in enumerate(records) if record.event.type == "vote_cast")
        journal = ended.directory.path / "events.jsonl"
        lines = journal.read_bytes().splitlines(keepends=True)
        journal.write_bytes(b"".join(lines[:cut]))
        resumed = await execute_run(ended.directory, "run-test", RunContext(environ))
        assert resumed.best_answer == ended.answer
        assert not [body for body in bodies(server) if KEY in body]
    assert keys_below(tmp_path, KEY) == []


def bodies(server: RawDouble) -> list[str]:
    return [json.dumps(request.body) for request in server.requests]


def two(root: str, *variables: str) -> list[dict[str, Any]]:
    return [{**lone(f"{root}/v1", api_key_env=name), "id": f"agent-{place}"} for place, name in enumerate(variables)]


def voting(tool: str, arguments: str, *pieces: str) -> Callable[[Any, int], bytes]:
    """A model that answers with this call where it can, then votes, then presents its answer in these pieces."""

    def respond(seen: Any, number: int) -> bytes:
        del number
        tools = [one["function"]["name"] for one in seen.body.get("tools", ())]
        asked = json.dumps(seen.body["messages"])
        if "agent1" in asked and "vote" in tools:
            name, given = "vote", json.dumps({"agent_id": "agent1", "reason": f"It names {KEY}."})
        elif tool in tools:
            name, given = tool, arguments
        else:
            return said(*pieces)
        made = {"index": 0, "id": "c1", "type": "function", "function": {"name": name, "arguments": given}}
        chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        return reply(
            sse(
                {**chunk, "choices": [{"index": 0, "delta": {"tool_calls": [made]}, "finish_reason": None}]},
                {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
                "[DONE]",
            )
        )

    return respond


async def test_a_key_in_a_question_a_message_or_a_file_is_neither_kept_nor_sent(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / HOLDS_KEYS).touch()
    (notes / "env.txt").write_text(f"MY_KEY={KEY}\n")
    script = [{"call": "read_file", "arguments": {"path": "context/notes/env.txt"}}, {"answer": f"Use {KEY}."}]
    config = config_from_data(
        {
            "agents": [{**agent("one", *script), "system_message": f"You have {KEY}."}],
            "orchestrator": {"context_paths": [{"path": str(notes), "permission": "read"}]},
        },
        "test",
    )
    environ = {"OPENAI_API_KEY": KEY}
    ended = await finished(tmp_path / "runs", config, environ, question=f"Is {KEY} mine?", steer=f"It is {KEY}.")
    assert ended.answer == "Use [key OPENAI_API_KEY]."
    assert [event.message for event in ended.events if isinstance(event, CallerMessage)] == [
        "It is [key OPENAI_API_KEY]."
    ]
    assert any(getattr(event, "result", "").count("MY_KEY=[key OPENAI_API_KEY]") for event in ended.events)
    assert keys_below(tmp_path, KEY) == []


async def test_what_is_asked_over_mcp_is_stored_and_told_without_keys(home: TempHome) -> None:
    config = config_that_says(home, f"It is {KEY}.")
    async with home.with_variables(OPENAI_API_KEY=KEY).client() as client:
        started = await call(client, "start_run", question=f"Is {KEY} mine?", config=config, wait_seconds=50)
        result = await call(client, "get_result", run_id=started["run_id"])
        code, told = await expect_error(client, "get_status", run_id=f"run-{KEY}")
    assert result["answer"] == "It is [key OPENAI_API_KEY]."
    assert code == "unknown_run"
    assert "[key OPENAI_API_KEY]" in told
    assert keys_below(home.path, KEY) == []


def test_a_command_prints_and_keeps_no_key(home: TempHome) -> None:
    config = config_that_says(home, f"It is {KEY}.")
    with_key = home.with_variables(OPENAI_API_KEY=KEY)
    ended = run_command(with_key, COMMAND_MODULE, "--config", config, f"Is {KEY} mine?")
    assert ended.returncode == 0
    assert ended.stdout == "It is [key OPENAI_API_KEY].\n"
    assert "[key OPENAI_API_KEY]" in ended.stderr
    assert KEY not in ended.stdout + ended.stderr
    assert keys_below(home.work / ".massgen", KEY) == []
    failed = run_command(with_key, COMMAND_MODULE, "--debug", "--config", f"/no/such/{KEY}", "q")
    assert failed.returncode == 1
    assert "[key OPENAI_API_KEY]" in failed.stderr
    assert KEY not in failed.stderr


def config_that_says(home: TempHome, answer: str) -> str:
    """A config in a directory of inputs: it holds the key itself."""
    inputs = home.work / "inputs"
    inputs.mkdir()
    (inputs / HOLDS_KEYS).touch()
    return TempHome(home.path, inputs).config("team", agent("one", {"answer": answer}))


# -- a run in this process --------------------------------------------------------------------------------------------


class Finished:
    def __init__(self, directory: RunFiles, answer: str, state: str) -> None:
        self.directory = directory
        self.answer = answer
        self.state = state
        self.events = [record.event for record in directory.event_log.read()]
        assert isinstance(self.events[-1], TERMINAL)


async def finished(
    path: Path, config: Config, environ: Mapping[str, str], *, question: str = "What is it?", steer: str = ""
) -> Finished:
    """Execute a run as the command line does, and read it back."""
    from massgen_mcp.config.access.held_keys import redactor_for

    redactor = redactor_for(environ, [one.backend for one in config.agents])
    directory = RunFiles.create(path / "run", FrozenRequest(question, config), redactor)

    def started(handle: RunHandle) -> None:
        if steer:
            handle.do("steer", steer, 1)

    snapshot = await execute_run(directory, "run-test", RunContext(environ, Observer(on_start=started)))
    return Finished(directory, snapshot.best_answer or "", snapshot.state)
