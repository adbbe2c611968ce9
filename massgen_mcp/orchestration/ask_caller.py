"""Where an agent puts a question to the caller and waits for the decision, one question at a time.

Must not know how a caller is reached: a question is an event, and so is the decision.
"""

from typing import Annotated

import anyio
from pydantic import Field

from massgen_mcp.events.run import InputGiven, InputRequired
from massgen_mcp.orchestration.live_run import LiveRun
from massgen_mcp.orchestration.prompts import ASK_THE_ASKER
from massgen_mcp.tools.base import Arguments, CheckedTool, ToolRefused, ToolResult, WellFormedText, tool_spec

WAIT_SECONDS = 600.0
"""So long an agent waits for a decision before it goes on without one."""
NO_DECISION = "There was no decision in time. Continue with the most sensible assumption, and state it in your answer."


class Question(Arguments):
    question: Annotated[WellFormedText, Field(min_length=1)]


class CallerQuestions:
    """One per run. Agents may ask once the run is there."""

    def __init__(self) -> None:
        self._one_at_a_time = anyio.Lock()
        self._live_run: LiveRun | None = None

    def open(self, live_run: LiveRun) -> None:
        self._live_run = live_run

    async def ask(self, agent: str, question: str) -> str:
        """The decision; in a resumed run the one that is in the journal already."""
        live_run = self._live_run
        if live_run is None:
            raise ToolRefused("the run does not take questions yet; try again")
        async with self._one_at_a_time:
            if (decision := live_run.caller.decisions.get((agent, question))) is not None:
                return decision
            if live_run.caller.asked is None:
                live_run.record(InputRequired(kind="question", agent=agent, text=question))
                await live_run.settle()
            with anyio.move_on_after(WAIT_SECONDS):
                while live_run.caller.asked is not None:
                    await live_run.change()
            if live_run.caller.asked is not None:
                live_run.record(InputGiven(kind="question", text=NO_DECISION))
            return live_run.caller.decisions.get((agent, question)) or NO_DECISION


def question_tool(caller_questions: CallerQuestions, agent: str) -> CheckedTool[Question]:
    """`ask_the_asker` of one agent."""

    async def ask(wanted: Question) -> ToolResult:
        return ToolResult(await caller_questions.ask(agent, wanted.question), foreign=True)

    description = "Ask the caller, who gave the task. Only if you cannot continue without: others wait meanwhile."
    return CheckedTool(tool_spec(ASK_THE_ASKER, description, Question), Question, ask)
