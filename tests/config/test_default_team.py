"""The team for who names none: of keys, else of a model server, from what it says of its models."""

import pytest

from massgen_mcp.config.access.local_servers import LocalServer
from massgen_mcp.config.default_team import DefaultTeam, default_team
from massgen_mcp.errors import MassgenError
from tests.model_servers import (
    LM_STUDIO_EMBEDDING,
    MEMORY,
    PATIENT,
    all_servers,
    closed_port,
    lm_studio_model,
    serving,
    vllm,
)
from tests.ollama_double import GB, OllamaModel, serving_ollama


async def team_at(*places: LocalServer, memory: int = MEMORY, **environ: str) -> DefaultTeam:
    return await default_team(environ, places=places, seconds=PATIENT, memory_bytes=memory)


def agents(team: DefaultTeam) -> list[str]:
    return [f"{agent.backend.type}/{agent.backend.model}" for agent in team.config.agents]


async def ollamas_team(*models: OllamaModel, memory: int = MEMORY) -> list[str]:
    async with serving_ollama(*models) as server:
        return agents(await team_at(LocalServer("ollama", server.url), memory=memory))


async def test_it_has_one_strong_model_of_each_provider_with_a_key() -> None:
    both = await team_at(OPENAI_API_KEY="k", ANTHROPIC_API_KEY="k")
    assert [agent.backend.type for agent in both.config.agents] == ["openai", "claude", "openai"]
    models = "openai/gpt-6.2-sol, claude/claude-opus-5-5"
    assert both.description == f"default team, paid with your API keys: {models}, 3 agents from 2 vendors"
    four = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "XAI_API_KEY", "GROQ_API_KEY")
    all_four = await team_at(**dict.fromkeys(four, "k"))
    assert [agent.backend.type for agent in all_four.config.agents] == ["openai", "claude", "gemini", "grok"]


async def test_one_key_alone_is_one_model_from_three_views() -> None:
    one = await team_at(ANTHROPIC_API_KEY="k", OPENAI_API_KEY="")
    assert agents(one) == ["claude/claude-opus-5-5"] * 3
    assert one.description == "default team, paid with your API key: claude/claude-opus-5-5 from 3 perspectives"
    assert one.config.orchestrator.perspectives


async def test_with_a_key_no_server_is_asked() -> None:
    async with serving("vllm") as server:
        await team_at(LocalServer("vllm", server.url), OPENAI_API_KEY="k")
    assert server.requests == []


async def test_the_largest_chat_models_that_fit_are_taken_and_tiny_ones_and_embeddings_are_not() -> None:
    models = (
        OllamaModel("llama3.2:1b", "1.2B", 1 * GB),
        OllamaModel("nomic-embed-text:latest", "137M", GB // 4, ("embedding",)),
        OllamaModel("qwen3:8b", "8.2B", 5 * GB),
        OllamaModel("llama3.3:70b", "70.6B", 43 * GB),
        OllamaModel("mistral-nemo:latest", "12.2B", 7 * GB),
        OllamaModel("phi4:14b", "14.7B", 9 * GB),
    )
    assert await ollamas_team(*models) == ["ollama/phi4:14b", "ollama/mistral-nemo:latest", "ollama/qwen3:8b"]
    assert await ollamas_team(*models, memory=20 * GB) == ["ollama/phi4:14b", "ollama/qwen3:8b", "ollama/phi4:14b"]
    assert await ollamas_team(*models, memory=128 * GB) == ["ollama/llama3.3:70b"] * 3, "the others are much smaller"


async def test_models_that_call_tools_go_before_others_of_their_size() -> None:
    without = OllamaModel("gemma3:12b", "12.2B", 8 * GB, ("completion", "vision"))
    others = [OllamaModel(f"m{size}:{size}b", f"{size}B", 4 * GB) for size in (8, 9, 10)]
    assert await ollamas_team(without, *others) == ["ollama/m10:10b", "ollama/m9:9b", "ollama/m8:8b"]
    assert await ollamas_team(without, others[0]) == ["ollama/m8:8b", "ollama/gemma3:12b", "ollama/m8:8b"]


async def test_one_fit_model_is_asked_from_three_views_and_two_quantizations_are_one_model() -> None:
    models = (OllamaModel("qwen3:8b", "8.2B", 5 * GB), OllamaModel("qwen3:8b-q8_0", "8.2B", 9 * GB))
    async with serving_ollama(*models) as server:
        team = await team_at(LocalServer("ollama", server.url))
    assert agents(team) == ["ollama/qwen3:8b"] * 3
    assert [agent.id for agent in team.config.agents] == ["qwen3-8b", "qwen3-8b-2", "qwen3-8b-3"]
    assert team.description.endswith(" (qwen3:8b from 3 perspectives), since no provider key is set")


async def test_a_model_that_is_loaded_fits_whatever_this_machine_has() -> None:
    large = OllamaModel("llama3.3:70b", "70.6B", 43 * GB, loaded_with=8192)
    assert await ollamas_team(large, OllamaModel("qwen3:8b"), memory=16 * GB) == ["ollama/llama3.3:70b"] * 3


async def test_of_several_servers_the_one_with_the_largest_fit_model_is_taken() -> None:
    async with all_servers("ollama", "lmstudio", "vllm", "llamacpp") as places:
        team = await team_at(*places)
    assert agents(team) == ["vllm/Qwen/Qwen3-32B-AWQ"] * 3


async def test_a_server_that_tells_no_sizes_is_asked_for_what_it_has() -> None:
    async with serving("vllm", {"/v1/models": vllm("our-model")}) as server:
        assert agents(await team_at(LocalServer("vllm", server.url))) == ["vllm/our-model"] * 3


async def test_where_only_tiny_models_are_there_one_is_named_as_a_way_out() -> None:
    tiny = {"/api/v1/models": {"models": [lm_studio_model("tiny-1b", "1B", GB), LM_STUDIO_EMBEDDING]}}
    async with serving("lmstudio", tiny) as server:
        with pytest.raises(MassgenError, match="name a model, such as lmstudio/tiny-1b") as caught:
            await team_at(LocalServer("lmstudio", server.url))
    assert caught.value.code == "no_default_team"


async def test_without_keys_and_servers_the_ways_out_are_named() -> None:
    port = await closed_port()
    with pytest.raises(MassgenError) as caught:
        await team_at(LocalServer("vllm", f"http://127.0.0.1:{port}/v1"))
    assert caught.value.code == "no_default_team"
    places = f"no model server responds at 127.0.0.1:{port} (vllm)"
    for told in (places, "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "config", "@examples/scripted"):
        assert told in str(caught.value)
    with pytest.raises(MassgenError, match="no provider key is set, no model server was found, and"):
        await team_at()
