"""A parent agent delegates a question and gets the team's answer. Everything here is real: a server process that a
client starts, a runner in the background, files on disk. Only the models are scripted.
"""

from pathlib import Path

from tests.harness import TempHome, agent, call, expect_error


def three_minds(home: TempHome) -> str:
    """Three agents that disagree at first; two come to agree."""
    return home.config(
        "three_minds",
        agent("ada", {"answer": "It is 41."}, {"vote": "42"}),
        agent("bo", {"answer": "It is 42, since 6 * 7 = 42."}, {"vote": "own", "reason": "I checked the product."}),
        agent("cleo", {"answer": "It is 43."}, {"vote": "own"}),
    )


async def test_a_parent_delegates_a_question_goes_on_and_takes_the_answer(home: TempHome) -> None:
    async with home.client() as client:
        started = await call(client, "start_run", question="What is six times seven?", config=three_minds(home))
        assert started["status"] in ("queued", "running")
        assert "wait_run" in started["next_step"]

        waited = await call(client, "wait_run", run_id=started["run_id"])
        assert waited["status"] == "completed"

        result = await call(client, "get_result", run_id=started["run_id"])
        assert result["answer"] == "It is 42, since 6 * 7 = 42."
        assert result["outcome"] == "majority"
        assert result["winner"] == "bo"
        assert result["vote_counts"] == {"agent1.1": 0, "agent2.1": 2, "agent3.1": 1}
        assert ("bo", "I checked the product.") in [(vote["voter"], vote["reason"]) for vote in result["votes"]]
        assert [dissent["label"] for dissent in result["dissent"]] == ["agent3.1"]
        assert Path(result["paths"]["final_answer"]).read_text() == result["answer"]


async def test_the_run_does_not_need_the_server_that_started_it(home: TempHome) -> None:
    async with home.client() as client:
        started = await call(client, "start_run", question="What is six times seven?", config=three_minds(home))
    async with home.client() as another:
        await call(another, "wait_run", run_id=started["run_id"])
        result = await call(another, "get_result", run_id=started["run_id"])
    assert result["status"] == "completed"


async def test_an_agent_that_falls_out_does_not_take_the_run_with_it(home: TempHome) -> None:
    config = home.config(
        "one_falls_out",
        agent("ada", {"fail": "auth"}),
        agent("bo", {"answer": "It is 42."}, {"vote": "own"}),
        agent("cleo", {"answer": "It is 43."}, {"vote": "42"}),
    )
    async with home.client() as client:
        started = await call(client, "start_run", question="Six times seven?", config=config)
        await call(client, "wait_run", run_id=started["run_id"])
        result = await call(client, "get_result", run_id=started["run_id"])
    assert result["answer"] == "It is 42."
    assert [fallen["agent"] for fallen in result["degraded"]] == ["ada"]


async def test_when_nobody_can_answer_the_run_says_why_instead_of_pretending(home: TempHome) -> None:
    config = home.config("no_keys", agent("ada", {"fail": "auth"}), agent("bo", {"fail": "auth"}))
    async with home.client() as client:
        started = await call(client, "start_run", question="Six times seven?", config=config)
        waited = await call(client, "wait_run", run_id=started["run_id"])
        result = await call(client, "get_result", run_id=started["run_id"])
    assert waited["status"] == "failed"
    assert "answer" not in result
    assert result["reason"].startswith("auth: ")


async def test_a_misspelt_argument_is_no_argument(home: TempHome) -> None:
    async with home.client() as client:
        code, message = await expect_error(client, "start_run", question="Anything?", max_secnds=5)
    assert code == "invalid_arguments"
    assert "did you mean 'max_seconds'" in message
