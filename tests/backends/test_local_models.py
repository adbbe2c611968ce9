"""Models of one's own servers: how Ollama is asked, which model a name means, and how many calls go at once."""

import json
from typing import Any

import pytest

from massgen_mcp.backends import http
from massgen_mcp.backends.base import StopPart, window
from massgen_mcp.config.loader import config_from_data
from massgen_mcp.errors import BackendError
from massgen_mcp.events.agent_work import ModelCallStarted, ModelReplied
from massgen_mcp.events.coordination import VoteCast
from massgen_mcp.events.run import RunCompleted, RunFailed
from tests.backends.test_providers_on_the_wire import backend
from tests.backends.wires import ask, parts_of, stop_of, text_in
from tests.harness import TempHome, home
from tests.model_servers import LISTS, acting, acting_server, llama_cpp
from tests.ollama_double import GB, OllamaModel, about_models, json_reply, serving_ollama
from tests.raw_double import Seen, answering, in_chunks, raw_server, reply
from tests.teams import run_team
from tests.wires.dialects import Chat, Ollama

__all__ = ["home"]

PARIS = reply(Ollama().text("Pa", "ris").stop("end").body())
QWEN = OllamaModel("qwen3:8b")


async def asked(*models: OllamaModel, model: str = "qwen3:8b", **settings: Any) -> dict[str, Any]:
    """The body of a request to Ollama with these models."""
    replies = dict.fromkeys([one.name for one in models], PARIS)
    async with serving_ollama(*models, replies=replies) as server:
        parts = await parts_of(backend("ollama", {}, model=model, base_url=server.url, **settings), ask("capital?"))
        told = await window(backend("ollama", {}, model=model, base_url=server.url, **settings))
    assert text_in(parts) == "Paris"
    assert told == server.requests[-1].body["options"]["num_ctx"]
    return server.requests[-1].body


async def test_ollama_is_told_the_context_and_never_to_cut_a_prompt() -> None:
    body = await asked(QWEN)
    assert body["options"] == {"num_ctx": 16_384}
    assert (body["truncate"], body["shift"]) == (False, False)
    assert "keep_alive" not in body


@pytest.mark.parametrize(
    ("model", "settings", "context"),
    [
        (OllamaModel("qwen3:8b", context=8192), {}, 8192),
        (OllamaModel("qwen3:8b", loaded_with=32_768), {}, 32_768),
        (OllamaModel("qwen3:8b", loaded_with=4096), {}, 16_384),
        (QWEN, {"context_length": 40_000}, 40_000),
        (QWEN, {"context_length": 2048}, 2048),
        (QWEN, {"context_length": 200_000}, 40_960),
        (QWEN, {"extra_body": {"options": {"num_ctx": 1024}}}, 1024),
    ],
)
async def test_the_context_is_the_configs_or_what_the_model_is_loaded_with_and_never_more_than_it_has(
    model: OllamaModel, settings: dict[str, Any], context: int
) -> None:
    assert (await asked(model, **settings))["options"]["num_ctx"] == context


async def test_settings_reach_ollama_under_its_own_names() -> None:
    body = await asked(
        QWEN, temperature=0.5, top_p=0.9, max_output_tokens=99, reasoning_effort="xhigh", keep_alive="30m"
    )
    assert body["options"] == {"num_ctx": 16_384, "num_predict": 99, "temperature": 0.5, "top_p": 0.9}
    assert (body["think"], body["keep_alive"]) == ("high", "30m")
    assert (await asked(QWEN, reasoning_effort="none", keep_alive="-1"))["think"] is False


async def test_an_address_with_the_path_of_the_compatible_api_is_the_same_server() -> None:
    async with serving_ollama(QWEN, replies={"qwen3:8b": PARIS}) as server:
        given = {"model": "qwen3:8b", "base_url": f"{server.url}/v1/"}
        assert text_in(await parts_of(backend("ollama", {}, **given), ask("capital?"))) == "Paris"
        here = {"OLLAMA_HOST": server.url.removeprefix("http://")}
        assert text_in(await parts_of(backend("ollama", here, model="qwen3:8b"), ask("capital?"))) == "Paris"


async def test_a_prompt_that_does_not_fit_is_told_as_such() -> None:
    too_long = json_reply({"error": "the input length exceeds the context length"}, "400 Bad Request")
    async with serving_ollama(QWEN, replies={"qwen3:8b": too_long}) as server:
        with pytest.raises(BackendError, match="context_length with type ollama") as caught:
            await parts_of(backend("ollama", {}, model="qwen3:8b", base_url=server.url), ask("?"))
    assert caught.value.reason == "context_too_small"


async def test_a_reply_is_the_same_however_the_network_cuts_it() -> None:
    body = Ollama().text("P\u00e2", "ris \U0001f5fc").stop("end").body()
    for size in (1, 2, 3, 64):
        async with raw_server(in_chunks(body, size, "application/x-ndjson"), beside=about_models) as server:
            parts = await parts_of(backend("ollama", {}, base_url=server.url), ask("capital?"))
        assert text_in(parts) == "P\u00e2ris \U0001f5fc", size
        assert stop_of(parts) == StopPart("end", provider_word="stop")


@pytest.mark.parametrize("size", [100, 4096])
async def test_a_line_that_is_too_long_is_refused_also_where_its_end_comes_with_it(
    monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(http, "MAX_EVENT_BYTES", 1000)
    body = Ollama().text("x" * 2000).stop("end").body()
    async with raw_server(in_chunks(body, size, "application/x-ndjson"), beside=about_models) as server:
        with pytest.raises(BackendError, match="a line of the reply is larger than 1000 bytes"):
            await parts_of(backend("ollama", {}, base_url=server.url), ask("capital?"))


# -- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "models", "meant"),
    [
        ("qwen3:8b", ("qwen3:8b",), "qwen3:8b"),
        ("qwen3", ("qwen3:latest",), "qwen3"),
        ("qwen3", ("qwen3:1.7b", "qwen3:8b", "qwen2.5:32b"), "qwen3:8b"),
        ("QWEN3:8B", ("qwen3:8b",), "qwen3:8b"),
        ("auto", ("llama3.2:1b", "qwen3:8b", "nomic-embed-text:latest"), "qwen3:8b"),
        ("auto", ("llama3.2:1b", "smollm2:135m"), "llama3.2:1b"),
    ],
)
async def test_a_name_means_the_model_that_is_there(name: str, models: tuple[str, ...], meant: str) -> None:
    sizes = [OllamaModel(model, parameters=model.partition(":")[2].upper(), size=1 * GB) for model in models]
    assert (await asked(*sizes, model=name))["model"] == meant


async def test_a_server_of_the_compatible_wire_gets_the_full_name_of_what_it_has() -> None:
    def respond(seen: Seen, number: int) -> bytes:
        del number
        if seen.path == "/v1/models":
            return json_reply(LISTS["vllm"]["/v1/models"])
        if seen.body["model"] == "Qwen/Qwen3-32B-AWQ":
            return reply(Chat().text("Paris").stop("end").body())
        return json_reply({"error": {"message": f"The model `{seen.body['model']}` does not exist."}}, "404 Not Found")

    async with answering(respond) as server:
        url = f"{server.url}/v1"
        assert text_in(await parts_of(backend("vllm", {}, model="qwen3-32b-awq", base_url=url), ask("?"))) == "Paris"
        with pytest.raises(BackendError, match="did you mean 'Qwen/Qwen3-32B-AWQ'") as caught:
            await parts_of(backend("vllm", {}, model="Qwen/Qwen3-30B", base_url=url), ask("?"))
    assert caught.value.reason == "model_not_found"


async def test_an_unknown_model_gets_the_nearest_of_what_the_server_has() -> None:
    models = (QWEN, OllamaModel("mistral-nemo:latest"), OllamaModel("bge-m3:latest"), OllamaModel("GEMMA:LATEST"))
    async with serving_ollama(*models) as server:
        with pytest.raises(BackendError, match="did you mean 'GEMMA:LATEST'"):
            await parts_of(backend("ollama", {}, model="gema:latest", base_url=server.url), ask("?"))
        with pytest.raises(BackendError) as caught:
            await parts_of(backend("ollama", {}, model="mistral-neno", base_url=server.url), ask("?"))
    assert caught.value.reason == "model_not_found"
    assert "did you mean 'mistral-nemo:latest'? the server has qwen3:8b, mistral-nemo:latest" in str(caught.value)
    assert "bge" not in str(caught.value)


# -- tools ------------------------------------------------------------------------------------------------------------


def props(*, tools: bool) -> bytes:
    return json_reply({"total_slots": 1, "chat_template_caps": {"supports_tools": tools, "supports_system_role": True}})


@pytest.mark.parametrize("kept", [True, False])
async def test_llama_cpp_that_would_drop_tools_is_told_of_them_in_text_and_held_to_a_call(
    home: TempHome, kept: bool
) -> None:
    """Its model votes in no form that we know until it is held to one."""

    def respond(seen: Seen, number: int) -> bytes:
        schema = seen.body.get("response_format", {}).get("json_schema", {}).get("schema")
        if seen.body.get("tools"):
            return acting(Chat)(seen, number)
        if schema is None:
            return reply(Chat().text(f"I think that it is Paris, the {number}th time.").stop("end").body())
        assert list(schema["properties"]) == ["agent_id", "reason"], "the choice comes first"
        chosen = schema["properties"]["agent_id"]["enum"][0]
        said = json.dumps({"agent_id": chosen, "reason": "It is right."})
        return reply(Chat().text(said).stop("end").body())

    def beside(seen: Seen) -> bytes | None:
        told = {"/props": props(tools=kept), "/v1/models": json_reply(llama_cpp("/m/q.gguf"))}
        return told.get(seen.path)

    async with answering(respond, beside) as server:
        team = config_from_data(
            {
                "agents": [{"backend": {"type": "llamacpp", "base_url": f"{server.url}/v1"}}] * 2,
                "orchestrator": {"enable_filesystem": False, "max_new_answers_per_agent": 1},
            },
            "test",
            environ={},
        )
        ended = await run_team(home.work / "run", team)
    assert isinstance(ended.snapshot.end, RunCompleted)
    assert {vote.form for vote in ended.of(VoteCast)} == {"tool_call" if kept else "json"}
    assert any("tools" in seen.body for seen in server.requests) == kept
    assert all(seen.body["model"] == "/m/q.gguf" for seen in server.requests)


# -- whole runs -------------------------------------------------------------------------------------------------------


def team_of(kind: str, url: str, size: int, **settings: Any) -> Any:
    backends = [{"backend": {"type": kind, "base_url": url, **settings}}] * size
    return {"agents": backends, "orchestrator": {"enable_filesystem": False}}


@pytest.mark.parametrize("kind", ["ollama", "lmstudio", "vllm", "sglang"])
async def test_a_team_of_a_local_server_answers_votes_and_presents(home: TempHome, kind: str) -> None:
    async with acting_server(kind) as server:
        ended = await run_team(home.work / "run", config_from_data(team_of(kind, server.url, 3), "t", environ={}))
    assert isinstance(ended.snapshot.end, RunCompleted)
    assert len(ended.of(ModelCallStarted)) == 7
    assert {replied.model for replied in ended.of(ModelReplied)} == {"told-model"}


@pytest.mark.parametrize(("limits", "at_once"), [({}, 1), ({"concurrency": 3}, 3), ({"requests_per_minute": 1000}, 1)])
async def test_one_call_at_a_time_goes_to_a_server_of_this_machine_unless_the_config_says_otherwise(
    home: TempHome, limits: dict[str, int], at_once: int
) -> None:
    async with acting_server("ollama") as server:
        data = {**team_of("ollama", server.url, 3), "limits": {"ollama": limits} if limits else {}}
        ended = await run_team(home.work / "run", config_from_data(data, "t", environ={}))
    waited = [record.event.type for record in ended.records if record.event.type == "model_call_waiting"]
    assert isinstance(ended.snapshot.end, RunCompleted)
    assert bool(waited) == (at_once == 1)


async def test_a_run_with_an_unknown_model_fails_with_what_the_server_has(home: TempHome) -> None:
    async with serving_ollama(QWEN) as server:
        data = team_of("ollama", server.url, 1, model="llama9")
        ended = await run_team(home.work / "run", config_from_data(data, "t", environ={}))
    end = ended.snapshot.end
    assert isinstance(end, RunFailed)
    assert (end.reason, "the server has qwen3:8b" in end.message) == ("model_not_found", True)
