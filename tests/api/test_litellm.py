"""The LiteLLM provider as its callers see it: models, messages, parameters, streams, errors."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import massgen_mcp as massgen
from tests.api.blocks import Place
from tests.api.double import FINAL
from tests.wire_double import Aimock

QUESTION = [{"role": "user", "content": "What is it?"}]
TEAM = {"agents": [{"backend": {"type": "scripted", "script": [{"answer": "Forty-two."}]}}]}


@pytest.fixture
def llm(place: Place, litellm: Any) -> Any:
    """LiteLLM with our models, in a fresh working directory."""
    del place
    massgen.register_with_litellm()
    return litellm


def config(place: Place, team: dict[str, Any]) -> str:
    """The model string of a team of one's own."""
    file = place.path / "team.yaml"
    file.write_text(json.dumps(team))
    return f"massgen/path:{file}"


def text_of(response: Any) -> str:
    return response.choices[0].message.content


def hidden(response: Any) -> dict[str, Any]:
    return response._hidden_params


# -- answers ----------------------------------------------------------------------------------------------------------


def test_a_response_has_the_answer_real_usage_and_every_key(llm: Any, models: Aimock) -> None:
    response = llm.completion(model="massgen/basic_multi", messages=QUESTION)
    assert (text_of(response), response.choices[0].finish_reason) == (FINAL, "stop")
    assert response.model == "massgen/basic_multi"
    calls = len(models.requests)
    assert calls == 5
    usage = response.usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (50 * calls, 9 * calls, 59 * calls)
    keys = {key for key in hidden(response) if key.startswith("massgen_")}
    assert keys == {
        *("massgen_config_used", "massgen_session_id", "massgen_log_directory", "massgen_final_answer_path"),
        *("massgen_selected_agent", "massgen_vote_results", "massgen_answers", "massgen_agent_mapping"),
        *("massgen_outcome", "massgen_voted", "massgen_degraded", "massgen_cost", "massgen_applied"),
        *("massgen_decided_by", "massgen_weak", "massgen_failure"),
    }
    assert hidden(response)["massgen_cost"]["unpriced_calls"] + (hidden(response)["massgen_cost"]["usd"] or 0) > 0
    assert hidden(response)["massgen_agent_mapping"] == {"agent_a": "openai", "agent_b": "gemini"}


def test_a_single_agent_has_no_votes_to_tell_of(llm: Any) -> None:
    told = hidden(llm.completion(model="massgen/model:scripted/x", messages=QUESTION))
    assert told["massgen_config_used"] == "single-agent:scripted/x"
    for key in ("selected_agent", "vote_results", "answers", "agent_mapping", "log_directory", "final_answer_path"):
        assert told[f"massgen_{key}"] is None


def test_the_next_call_of_a_session_may_go_on_with_what_the_first_one_changed(llm: Any) -> None:
    options = {"models": ["scripted/x"], "enable_logging": True}
    session = hidden(llm.completion(model="massgen/build", messages=QUESTION, **options))["massgen_session_id"]
    with pytest.raises(Exception, match="no finished turn of this session has changed your files"):
        llm.completion(model="massgen/build", messages=QUESTION, **options, session_id=session, changes_of="winner")


@pytest.mark.parametrize("nested", [True, False], ids=["in optional_params", "by name"])
def test_options_may_be_nested_or_given_by_name(llm: Any, place: Place, nested: bool) -> None:
    options = {"models": ["scripted/x", "scripted/y"], "enable_logging": True, "output_file": "a.txt"}
    response = llm.completion(
        model="massgen/build", messages=QUESTION, **({"optional_params": options} if nested else options)
    )
    assert (place.path / "a.txt").read_text() == text_of(response)
    assert Path(hidden(response)["massgen_log_directory"]).is_dir()
    assert hidden(response)["massgen_config_used"] == "build:x,y"


def test_the_built_team_is_that_of_build_config(llm: Any, models: Aimock) -> None:
    llm.completion(model="massgen/build", messages=QUESTION, optional_params={"model": "groq/m", "num_agents": 3})
    offered = [tool["function"]["name"] for tool in models.requests[0].body["tools"]]
    assert {"write_file", "save_memory", "create_task_plan"} <= set(offered)
    judged = [request for request in models.requests if "submit" in json.dumps(request.body["tools"])]
    assert len(models.requests) == 8, "three answers, three votes, the final answer and its judgement"
    assert len(judged) == 1


def test_called_inside_a_running_event_loop_it_answers_all_the_same(llm: Any) -> None:
    async def main() -> tuple[str, str]:
        streamed = "".join(
            chunk.choices[0].delta.content or ""
            for chunk in llm.completion(model="massgen/scripted", messages=QUESTION, stream=True)
        )
        return text_of(llm.completion(model="massgen/scripted", messages=QUESTION)), streamed

    whole, streamed = asyncio.run(asyncio.wait_for(main(), 60))
    assert whole == streamed
    assert whole.startswith("Neither: replace it piece by piece.")


def test_async_calls_run_side_by_side(llm: Any) -> None:
    async def main() -> list[Any]:
        calls = [llm.acompletion(model="massgen/model:scripted/x", messages=QUESTION) for _ in range(5)]
        return await asyncio.gather(*calls)

    responses = asyncio.run(main())
    assert {text_of(response) for response in responses} == {"x's answer to: What is it?"}
    assert len({hidden(response)["massgen_session_id"] for response in responses}) == 5


# -- messages ---------------------------------------------------------------------------------------------------------


def test_the_conversation_reaches_the_agents(llm: Any, models: Aimock) -> None:
    messages = [
        {"role": "system", "content": "Answer in French."},
        {"role": "user", "content": "My name is Ada."},
        {"role": "assistant", "content": "Bonjour, Ada."},
        {"role": "user", "content": [{"type": "text", "text": "What is"}, {"type": "text", "text": "my name?"}]},
    ]
    llm.completion(model="massgen/model:grok-4", messages=messages)
    body = models.requests[0].body
    said = body["input"]
    assert "Answer in French." in body["instructions"]
    assert "My name is Ada." in json.dumps(said)
    assert "What is\\nmy name?" in json.dumps(said)


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [{"role": "system", "content": "Only this."}],
        [*QUESTION, {"role": "assistant", "content": "And?"}],
        [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]}],
        [{"role": "user", "content": "  "}],
        [*QUESTION, {"role": "tool", "tool_call_id": "1", "content": "x"}, *QUESTION],
    ],
)
def test_messages_that_hold_no_question_are_refused(llm: Any, messages: list[dict[str, Any]]) -> None:
    with pytest.raises(llm.BadRequestError):
        llm.completion(model="massgen/model:scripted/x", messages=messages)


# -- parameters -------------------------------------------------------------------------------------------------------


def test_sampling_parameters_reach_every_model(llm: Any, models: Aimock) -> None:
    optional = {"models": ["groq/m", "grok/n"], "enable_filesystem": False}
    llm.completion(
        model="massgen/build",
        messages=QUESTION,
        temperature=0.2,
        top_p=0.5,
        max_tokens=77,
        n=1,
        optional_params=optional,
    )
    for request in models.requests:
        assert (request.body["temperature"], request.body["top_p"]) == (0.2, 0.5)
        assert 77 in (request.body.get("max_tokens"), request.body.get("max_output_tokens"))


def test_what_a_team_cannot_do_is_refused_or_dropped_on_demand(llm: Any) -> None:
    tools: list[dict[str, Any]] = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
    with pytest.raises(llm.UnsupportedParamsError, match="massgen doesn't support tools"):
        llm.completion(model="massgen/model:scripted/x", messages=QUESTION, tools=tools)
    assert text_of(llm.completion(model="massgen/model:scripted/x", messages=QUESTION, tools=tools, drop_params=True))


def test_a_timeout_limits_the_run(llm: Any, place: Place) -> None:
    team = {"agents": [{"backend": {"type": "scripted", "script": [{"hang": True}]}}]}
    with pytest.raises(llm.Timeout, match=r"longer than 0\.2 s"):
        llm.completion(model=config(place, team), messages=QUESTION, timeout=0.2)


def test_api_base_is_where_a_named_model_is_asked(llm: Any, models: Aimock) -> None:
    response = llm.completion(model="massgen/model:chatcompletion/m", messages=QUESTION, api_base=f"{models.url}/v1")
    assert text_of(response) == "An answer."
    with pytest.raises(llm.BadRequestError, match="api_base: only with"):
        llm.completion(model="massgen/scripted", messages=QUESTION, api_base=f"{models.url}/v1")


# -- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        ({"model": "massgen/basic_mutli"}, "NotFoundError", "Did you mean @examples/basic_multi?"),
        ({"model": "massgen/path:nowhere.yaml"}, "NotFoundError", "Config file not found: nowhere.yaml"),
        ({"model": "massgen/model:gpt-5"}, "AuthenticationError", "needs OPENAI_API_KEY"),
        ({"model": "massgen/build"}, "BadRequestError", "set model or models"),
        ({"model": "massgen/build", "models": ["what"]}, "BadRequestError", "write provider/model"),
        (
            {"model": "massgen/build", "models": ["x"], "num_agents": "3"},
            "BadRequestError",
            "num_agents is of the wrong type",
        ),
        ({"model": "massgen/build", "backend": 5}, "BadRequestError", "backend is of the wrong type"),
        ({"model": "massgen/build", "model_": "x"}, "UnsupportedParamsError", "model_"),
        (
            {"model": "massgen/scripted", "models": ["gpt-5"]},
            "BadRequestError",
            "works only with the model massgen/build",
        ),
        (
            {"model": "massgen/scripted", "api_key": "k"},
            "BadRequestError",
            "massgen reads keys only from the environment",
        ),
        (
            {"model": "massgen/model:scripted/x", "use_docker": True},
            "BadRequestError",
            "no container is available for agents' commands",
        ),
        ({"model": "massgen/model:grok/x", "temperature": 9, "k": "XAI"}, "BadRequestError", "temperature"),
    ],
)
def test_errors_are_litellms_own(
    llm: Any, monkeypatch: pytest.MonkeyPatch, call: dict[str, Any], kind: str, message: str
) -> None:
    if key := call.pop("k", None):
        monkeypatch.setenv(f"{key}_API_KEY", "k")
    with pytest.raises(getattr(llm, kind), match=message) as raised:
        llm.completion(messages=QUESTION, **call)
    assert type(raised.value).__name__ == kind


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("auth", "AuthenticationError"),
        ("quota_exhausted", "RateLimitError"),
        ("model_not_found", "NotFoundError"),
        (None, "InternalServerError"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_a_failed_run_raises_what_its_cause_would(
    llm: Any, place: Place, fault: str | None, kind: str, stream: bool
) -> None:
    """In a stream LiteLLM itself wraps what may be tried again into its MidStreamFallbackError."""
    step = {"fail": fault} if fault else {"say": ""}
    model = config(place, {"agents": [{"backend": {"type": "scripted", "script": [step] * 5}}]})

    async def main() -> None:
        response = await llm.acompletion(model=model, messages=QUESTION, stream=stream)
        async for _ in response:
            pass

    def check(error: Exception) -> None:
        assert type(getattr(error, "original_exception", None) or error).__name__ == kind

    # Of which class it is, `check` says.
    with pytest.raises(Exception) as caught:  # noqa: PT011
        asyncio.run(main())
    check(caught.value)
    with pytest.raises(Exception) as caught:  # noqa: PT011
        list(llm.completion(model=model, messages=QUESTION, stream=stream))
    check(caught.value)


# -- streams ----------------------------------------------------------------------------------------------------------

WINNER = [{"answer": "Mine."}, {"vote": "own"}]
OTHER = [{"answer": "Yours."}, {"vote": "Mine."}]


def pair() -> dict[str, Any]:
    """Two agents; the first one wins."""
    return {"agents": [{"backend": {"type": "scripted", "script": script}} for script in (WINNER, OTHER)]}


def streamed(llm: Any, model: str) -> tuple[list[str], Any, Any]:
    """The pieces of text of a stream, what it told of the run, and its usage."""
    pieces: list[str] = []
    told = usage = None
    for chunk in llm.completion(model=model, messages=QUESTION, stream=True, stream_options={"include_usage": True}):
        usage = getattr(chunk, "usage", None) or usage
        if chunk.choices:
            delta = chunk.choices[0].delta
            told = getattr(delta, "provider_specific_fields", None) or told
            if delta.content:
                pieces.append(delta.content)
    return pieces, told, usage


def test_a_stream_ends_with_usage_and_what_there_is_to_tell(llm: Any, models: Aimock) -> None:
    pieces, told, usage = streamed(llm, "massgen/basic_multi")
    assert "".join(pieces) == FINAL
    assert told["massgen_selected_agent"] in told["massgen_agent_mapping"]
    assert usage.total_tokens == 59 * len(models.requests)


def test_the_final_answer_comes_while_it_is_written(llm: Any, place: Place) -> None:
    text = "word " * 400
    slow = pair()
    slow["agents"][0]["backend"] |= {"presentation": text, "chunk_delay_seconds": 0.01}
    pieces, _, _ = streamed(llm, config(place, slow))
    assert "".join(pieces) == text
    assert len(pieces) > 2, "in one piece it would not have been a stream"


def test_a_reader_who_leaves_cancels_the_run(llm: Any, place: Place) -> None:
    slow = pair()
    slow["agents"][0]["backend"] |= {"presentation": "word " * 5000, "chunk_delay_seconds": 0.05}
    slow["timeout_settings"] = {"orchestrator_timeout_seconds": 20}
    stream = llm.completion(
        model=config(place, slow), messages=QUESTION, stream=True, optional_params={"enable_logging": True}
    )
    assert next(iter(stream)).choices[0].delta.content
    stream.completion_stream.close()
    (journal,) = place.path.glob(".massgen/massgen_logs/*/events.jsonl")
    assert "run_cancelled" in journal.read_text()


def test_text_of_an_attempt_that_is_not_the_last_is_held_back(llm: Any, place: Place) -> None:
    retry = {"call": "restart_orchestration", "arguments": {"reason": "thin", "instructions": "more"}}
    winner = [*WINNER, {"say": "First draft."}, retry, {"answer": "Mine, again."}, {"vote": "own"}, {"say": FINAL}]
    other = [*OTHER, {"answer": "Yours, again."}, {"vote": "Mine, again."}]
    team: dict[str, Any] = {
        "agents": [{"backend": {"type": "scripted", "script": script}} for script in (winner, other)],
        "orchestrator": {"coordination": {"max_orchestration_restarts": 1}},
    }
    pieces, _, _ = streamed(llm, config(place, team))
    assert "".join(pieces) == FINAL


def test_an_answer_that_was_begun_again_is_told_as_such_and_whole() -> None:
    sent, rest = _final_text(["A first ", "try", None, "Another", " answer."])
    assert (sent, rest) == ("A first try", "\n\n[the answer was begun again]\n\nAnother answer.")


def test_a_second_try_that_begins_the_same_goes_on_where_the_first_one_ended() -> None:
    assert _final_text(["An", None, "Ano", "ther answer."]) == ("Another answer.", "")


def _final_text(deltas: list[str | None], answer: str = "Another answer.") -> tuple[str, str]:
    """What is sent of these pieces (None: the call failed and is tried again), and what at the end."""
    from massgen_mcp.events.agent_work import ModelCallRetried, ModelCallStarted, TextDelta
    from massgen_mcp.events.run import AttemptStarted
    from massgen_mcp.integrations.litellm_run import FinalText

    text = FinalText(attempts=1)
    sent = text.take(AttemptStarted(attempt=1))
    sent += text.take(ModelCallStarted(agent="agent_a", call_id="c", purpose="present"))
    for delta in deltas:
        if delta is None:
            sent += text.take(
                ModelCallRetried(
                    agent="agent_a", call_id="c", attempt=1, reason="unreachable", message="gone", wait_seconds=0
                )
            )
        else:
            sent += text.take(TextDelta(agent="agent_a", call_id="c", text=delta))
    return sent, text.rest(answer)


# -- LangChain --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["invoke", "stream"])
def test_langchain_asks_a_team(llm: Any, models: Aimock, how: str) -> None:
    del llm, models
    from langchain_litellm import ChatLiteLLM

    chat = ChatLiteLLM(model="massgen/basic_multi")
    ask: dict[str, Callable[[], str]] = {
        "invoke": lambda: str(chat.invoke("Compare them").content),
        "stream": lambda: "".join(str(chunk.content) for chunk in chat.stream("Compare them")),
    }
    assert ask[how]() == FINAL
