"""A run that needs a decision asks the person at the client while `wait_run` waits, in the way of each era."""

from typing import Any

import pytest
from mcp import Client
from mcp.types import ElicitRequestFormParams, ElicitRequestParams, ElicitResult, InputRequiredResult, InputResponses

from tests.harness import MODES, Mode, TempHome, agent, call, expect_error, http_server

ASK: dict[str, Any] = {"call": "ask_the_asker", "arguments": {"question": "Metres or feet?"}}
DEAR = {"input_usd_per_million": 1_000, "output_usd_per_million": 1_000}


def asking(home: TempHome) -> str:
    return home.config("asking", agent("solo", ASK, {"answer": "in metres"}), orchestrator={"allow_questions": True})


def dear(home: TempHome) -> str:
    agents = (agent("one", price=DEAR), agent("two", price=DEAR))
    return home.config("dear", *agents, budget={"max_usd": 0.5, "at_cap": "ask"})


class Person:
    """At a client that shows forms; give `asked` to it as its elicitation callback."""

    def __init__(self, action: str, **content: Any) -> None:
        self._answer = ElicitResult.model_validate({"action": action, "content": content or None})
        self.forms: list[ElicitRequestFormParams] = []

    async def asked(self, context: object, params: ElicitRequestParams) -> ElicitResult:
        del context
        assert isinstance(params, ElicitRequestFormParams)
        self.forms.append(params)
        return self._answer


async def waited(client: Client, config: str) -> dict[str, Any]:
    run_id = (await call(client, "start_run", question="q", config=config))["run_id"]
    return await call(client, "wait_run", run_id=run_id, timeout_seconds=45)


@pytest.mark.parametrize("mode", MODES)
async def test_an_agents_question_is_shown_to_the_person_and_the_answer_goes_to_the_agent(
    home: TempHome, mode: Mode
) -> None:
    person = Person("accept", answer="Metres.")
    async with home.client(mode, elicitation_callback=person.asked) as client:
        done = await waited(client, asking(home))
    assert done["status"] == "completed"
    (form,) = person.forms
    assert "Metres or feet?" in form.message
    assert "Metres." in (home.run_directory(done["run_id"]) / "events.jsonl").read_text()


@pytest.mark.parametrize("mode", MODES)
async def test_at_the_cap_the_person_can_raise_the_budget(home: TempHome, mode: Mode) -> None:
    person = Person("accept", decision="raise_budget", max_usd=500)
    async with home.client(mode, elicitation_callback=person.asked) as client:
        done = await waited(client, dear(home))
        assert (await call(client, "get_status", run_id=done["run_id"]))["max_usd"] == 500
    assert done["status"] == "completed"
    (form,) = person.forms
    assert "0.5 US dollars" in form.message
    assert form.requested_schema["properties"].keys() == {"decision", "max_usd"}


async def test_the_person_can_cancel_a_run_at_its_cap(home: TempHome) -> None:
    person = Person("accept", decision="cancel")
    async with home.client("2026-07-28", elicitation_callback=person.asked) as client:
        assert (await waited(client, dear(home)))["status"] == "cancelled"


@pytest.mark.parametrize("mode", MODES)
async def test_a_person_who_decides_nothing_is_asked_once_and_leaves_it_to_the_parent(
    home: TempHome, mode: Mode
) -> None:
    person = Person("decline")
    async with home.client(mode, elicitation_callback=person.asked) as client:
        told = await waited(client, asking(home))
    assert told["status"] == "input_required"
    assert "control_run" in told["next_step"]
    assert len(person.forms) == 1


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_that_shows_no_forms_hears_from_the_reply_what_is_asked(home: TempHome, mode: Mode) -> None:
    async with home.client(mode) as client:
        told = await waited(client, asking(home))
    assert (told["status"], told["reason"]) == ("input_required", "question: Metres or feet?")


@pytest.mark.parametrize("mode", MODES)
async def test_a_form_that_was_filled_in_wrongly_is_refused_and_the_run_still_asks(home: TempHome, mode: Mode) -> None:
    person = Person("accept", decision="raise_budget", max_usd=0.1)
    async with home.client(mode, elicitation_callback=person.asked) as client:
        run_id = (await call(client, "start_run", question="q", config=dear(home)))["run_id"]
        code, message = await expect_error(client, "wait_run", run_id=run_id, timeout_seconds=45)
        assert (code, "raise_budget needs a `value` above the current" in message) == ("invalid_arguments", True)
        assert (await call(client, "get_status", run_id=run_id))["status"] == "input_required"


async def test_a_question_that_is_a_result_can_be_answered_through_another_server_process(home: TempHome) -> None:
    person = Person("accept", answer="Metres.")
    async with home.client("2026-07-28", elicitation_callback=person.asked) as first:
        run_id = (await call(first, "start_run", question="q", config=asking(home)))["run_id"]
        arguments = {"run_id": run_id, "timeout_seconds": 45}
        asked = await first.session.call_tool("wait_run", arguments, allow_input_required=True)
        assert isinstance(asked, InputRequiredResult)
        assert asked.request_state is None, "nothing that one process alone could read"
    async with home.client("2026-07-28", elicitation_callback=person.asked) as second:
        answers: InputResponses = {
            key: ElicitResult(action="accept", content={"answer": "Metres."}) for key in asked.input_requests or ()
        }
        done = await second.session.call_tool("wait_run", arguments, input_responses=answers, allow_input_required=True)
    assert not isinstance(done, InputRequiredResult)
    assert "completed" in str(done.structured_content)
    assert person.forms == []


async def test_over_http_the_person_is_asked_as_well(home: TempHome) -> None:
    for mode in ("legacy", "2026-07-28"):
        person = Person("accept", answer="Metres.")
        async with http_server(home) as server, server.client(mode, elicitation_callback=person.asked) as client:
            assert (await waited(client, asking(home)))["status"] == "completed"
        assert len(person.forms) == 1
        (home.work / "http.log").unlink()


async def test_start_run_itself_asks_nothing_where_asking_would_start_it_again(home: TempHome) -> None:
    person = Person("accept", answer="Metres.")
    async with home.client("2026-07-28", elicitation_callback=person.asked) as client:
        started = await call(client, "start_run", question="q", config=asking(home), wait_seconds=45)
        assert started["status"] == "input_required"
        assert len((await call(client, "list_runs"))["runs"]) == 1
    assert person.forms == []


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("decided", "cap"), [("accept", 500), ("decline", 0.5), ("cancel", 0.5)])
async def test_a_parent_that_wants_a_larger_budget_has_the_person_asked(
    home: TempHome, mode: Mode, decided: str, cap: float
) -> None:
    person = Person(decided)
    async with home.client(mode) as starts:
        told = await waited(starts, dear(home))
        run_id = told["run_id"]
    async with home.client(mode, elicitation_callback=person.asked) as client:
        reply = await call(client, "control_run", run_id=run_id, action="raise_budget", value=500)
        status = await call(client, "get_status", run_id=run_id)
    (form,) = person.forms
    assert f"Team run {run_id}" in form.message
    assert "raise its budget to $500? Current budget: $0.5." in form.message
    assert (status["max_usd"], "raise-budget" in reply["next_step"]) == (cap, cap != 500)
