"""The case study of AG2's integration, on doubles of OpenAI and Google: AG2 is real, and so is the sandbox."""

import json
from pathlib import Path
from typing import Any

import anyio.to_thread

from massgen_mcp.markers import materials
from tests.backends.ag2 import said, used
from tests.commands import run_command
from tests.harness import COMMAND_MODULE, TempHome, home
from tests.raw_double import Seen, answering, reply, sse

__all__ = ["home"]

ANSWER = "AG2 builds workflows; MassGen lets models vote."
CODE = """\
I look at the names first.

```python
# filename: compare.py
names = ["AG2", "MassGen"]
print(len(names), "frameworks:", ", ".join(names))
```
"""


def of_ag2(seen: Seen) -> bytes:
    """The replies of gpt-5 to the AG2 agent: code first, then what it came to."""
    messages, offered = json.dumps(seen.body["messages"]), [tool["function"]["name"] for tool in seen.body["tools"]]
    if "vote" in offered:
        return used("vote", agent_id=named(seen.body["messages"][-1]["content"]), reason="Short and exact.")
    if "new_answer" not in offered:
        return said({"content": f"{ANSWER} Two frameworks were counted."})
    return used("new_answer", content=ANSWER) if "What came of your code:" in messages else said({"content": CODE})


def of_gemini(seen: Seen) -> bytes:
    text = "\n".join(part.get("text", "") for turn in seen.body.get("contents", []) for part in turn["parts"])
    if "`vote` for the answer" not in text:  # the tools do not tell: all of a run are listed in every request
        part = function_call("new_answer", content="They differ in many ways.")
    else:
        part = function_call("vote", agent_id=named(text), reason="It names the difference.")
    return reply(
        sse(
            {
                "candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}],
                "usageMetadata": {"promptTokenCount": 50, "candidatesTokenCount": 5, "totalTokenCount": 55},
                "modelVersion": "gemini-2.5-pro",
            }
        )
    )


def function_call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": arguments}}


def named(text: str) -> str:
    """The name under which AG2's answer stands on the last ballot in a text."""
    return [shown.name for shown in materials(text) if ANSWER in shown.text][-1]


def journal(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line)["event"] for line in (run / "events.jsonl").read_text().splitlines()]


async def test_the_code_of_an_ag2_agent_runs_in_the_sandbox_and_it_wins_the_votes_of_both_frameworks(
    home: TempHome,
) -> None:
    def respond(seen: Seen, number: int) -> bytes:
        del number
        return of_ag2(seen) if seen.path.endswith("/chat/completions") else of_gemini(seen)

    async with answering(respond) as double:
        keyed = home.with_variables(
            OPENAI_API_KEY="sk-of-openai-0123456789",
            OPENAI_BASE_URL=f"{double.url}/v1",
            GOOGLE_API_KEY="AIza-of-google-0123456789",
            MASSGEN_GEMINI_BASE_URL=f"{double.url}/v1beta",
        )
        question = "Output a summary comparing the differences between AG2 and MassGen for LLM agents."
        arguments = ("--automation", "--config", "ag2/ag2_coder_case_study.yaml", question)
        done = await anyio.to_thread.run_sync(lambda: run_command(keyed, COMMAND_MODULE, *arguments, seconds=90))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WINNER: agent_a" in done.stdout
    (run,) = (home.work / ".massgen" / "massgen_logs").iterdir()
    events = journal(run)
    (executed,) = [event for event in events if event["type"] == "tool_finished" and event["name"] == "run_command"]
    assert executed["agent"] == "agent_a"
    assert executed["result"].startswith("[exit code 0,")
    assert executed["result"].endswith("2 frameworks: AG2, MassGen")
    votes = [(event["agent"], event["label"]) for event in events if event["type"] == "vote_cast"]
    assert sorted(votes) == [("agent_a", "agent1.1"), ("agent_b", "agent1.1")]
    assert (run / "final" / "agent_a" / "answer.txt").read_text().strip() == f"{ANSWER} Two frameworks were counted."
    kept = run / "final" / "agent_a" / "workspace" / "code_execution_workspace" / "compare.py"
    assert "print(len(names)" in kept.read_text()
