"""Answers in the form that the config asks for: whatever is no such document goes back to the model."""

import json
from pathlib import Path
from typing import Any

from massgen_mcp.events.agent_work import RuleViolated
from massgen_mcp.events.coordination import PresentationFailed
from massgen_mcp.events.run import RunCompleted
from tests.teams import Ended, Script, run_team, team

FINDING: dict[str, Any] = {"file": "a.py", "line": 3, "severity": "major", "title": "Off by one", "detail": "n + 1"}


def document(*findings: dict[str, Any]) -> str:
    return json.dumps({"summary": "What we found.", "findings": findings})


async def play(path: Path, *scripts: Script) -> Ended:
    return await run_team(path, team(*scripts, orchestrator={"answer_format": "findings", "decide": "vote"}))


async def test_an_answer_is_a_document_of_findings_or_goes_back_with_what_is_wrong(tmp_path: Path) -> None:
    ended = await play(
        tmp_path,
        [
            {"answer": "Looks good to me."},
            {"answer": document({**FINDING, "line": 0, "severity": "bad"})},
            {"answer": f"```json\n{document(FINDING)}\n```"},
        ],
    )
    prose, wrong = ended.of(RuleViolated)
    assert prose.message.startswith("This is no document of findings: the document: Invalid JSON")
    assert "findings.0.line: Input should be greater than or equal to 1" in wrong.message
    assert "findings.0.severity: Input should be 'blocker', 'major' or 'minor'" in wrong.message
    final = json.loads(ended.of(RunCompleted)[0].answer)
    assert final == {"summary": "What we found.", "findings": [{**FINDING, "fix": ""}]}


async def test_a_final_answer_that_is_none_gives_way_to_the_winners_answer(tmp_path: Path) -> None:
    winner: Script = [{"answer": document(FINDING)}, {"vote": "Off by one"}, {"say": "In short: an error by one."}]
    ended = await play(tmp_path, winner, [{"answer": document()}, {"vote": "Off by one"}])
    (failed,) = ended.of(PresentationFailed)
    assert "This is no document of findings" in failed.message
    assert json.loads(ended.of(RunCompleted)[0].answer)["findings"][0]["title"] == "Off by one"
