"""A run that fails by a fault of ours, late: what it had by then is not lost to whoever asked."""

import os

import pytest

from massgen_mcp.cli.massgen.main import main
from massgen_mcp.orchestration import final_answer
from tests.harness import TempHome, agent, call


def breaks(**_: object) -> None:
    raise RuntimeError("it broke")


@pytest.fixture
def failed(
    home: TempHome, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[int, list[str]]:
    """Exit code and output of a `massgen` that breaks when it has voted and is about to end."""
    monkeypatch.setattr(final_answer, "AnswerPresented", breaks)
    monkeypatch.setattr(os, "environ", home.environ)
    monkeypatch.chdir(home.work)
    votes = agent("one", {"answer": "It is 42."}, {"vote": "42"}), agent("two", {"answer": "It is 43."}, {"vote": "42"})
    config = home.config("team", *votes, orchestrator={"final_answer_strategy": "winner_reuse"})
    with pytest.raises(SystemExit) as end:
        main(["--automation", "--output-file", "answer.txt", "--config", config, "What is it?"])
    assert isinstance(end.value.code, int)
    return end.value.code, capsys.readouterr().out.splitlines()


async def test_its_best_answer_is_in_the_output_and_in_the_result(
    home: TempHome, failed: tuple[int, list[str]]
) -> None:
    code, lines = failed
    assert code == 2
    assert lines[-1].startswith("FAILED: internal: RuntimeError: it broke")
    assert "ANSWER_PREVIEW: It is 42." in lines
    assert not [line for line in lines if line.startswith("WINNER")], "it was not presented"
    assert (home.work / "answer.txt").read_text() == "It is 42."
    async with home.client() as client:
        (row,) = (await call(client, "list_runs", state="failed"))["runs"]
        result = await call(client, "get_result", run_id=row["run_id"])
    assert (result["status"], result["outcome"], result["answer"]) == ("failed", "best_so_far", "It is 42.")
    assert result["reason"].startswith("internal: ")
