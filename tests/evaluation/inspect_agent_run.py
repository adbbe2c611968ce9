"""A program that has Inspect evaluate a team as an agent on two coding tasks, with a model of its own, and prints what
tests ask for. The model writes the function, answers, votes and presents; of the second task it never says a word.

python -m tests.evaluation.inspect_agent_run CONFIG COMMAND
"""

import json
import re
import sys
from typing import Any

import inspect_ai
from inspect_ai import Task
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalSample
from inspect_ai.model import ChatMessage, GenerateConfig, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import CORRECT, INCORRECT, Score, Scorer, Target, accuracy, scorer
from inspect_ai.solver import TaskState
from inspect_ai.tool import ToolChoice, ToolInfo
from inspect_ai.util import sandbox

from massgen_mcp.integrations.inspect import team
from tests.evaluation.coding_tasks import CHECK, TASKS

WRONG, RIGHT = "def add(a, b):\n    return a - b\n", "def add(a, b):\n    return a + b\n"
NAME = "mockllm/model"


def reply(said: list[ChatMessage], tools: list[ToolInfo], choice: ToolChoice, config: GenerateConfig) -> ModelOutput:
    del choice, config
    output = _reply("\n".join(message.text for message in said), {tool.name: tool for tool in tools}, said)
    output.usage = ModelUsage(input_tokens=900, output_tokens=100, total_tokens=1000)
    return output


def _reply(text: str, tools: dict[str, ToolInfo], said: list[ChatMessage]) -> ModelOutput:
    if TASKS[1] in text:
        return ModelOutput.from_content(NAME, "")
    if "vote" in tools:
        names = tools["vote"].parameters.properties["agent_id"].enum or []
        return ModelOutput.for_tool_call(NAME, "vote", {"agent_id": names[0], "reason": "It adds."})
    if "new_answer" not in tools:
        return ModelOutput.from_content(NAME, "add adds now.")
    if not any(message.role == "tool" for message in said):
        (copy,) = re.findall(r"(\S+)/: work there", text)
        return ModelOutput.for_tool_call(NAME, "write_file", {"path": f"{copy}/add.py", "content": RIGHT})
    return ModelOutput.for_tool_call(NAME, "new_answer", {"content": "add adds now."})


@scorer(metrics=[accuracy()])
def hidden_test() -> Scorer:
    """Looks at the files in the sandbox, as scorers of coding tasks do."""

    async def score(state: TaskState, target: Target) -> Score:
        del state, target
        done = await sandbox().exec(["python3", "-c", "import add; assert add.add(-2, 3) == 1"])
        return Score(value=CORRECT if done.success else INCORRECT)

    return score


def main(config: str, command: str) -> None:
    samples = [Sample(text, id=text, files={"add.py": WRONG}) for text in TASKS]
    solver = team(config, checks=CHECK, command=command)
    task = Task(dataset=samples, solver=solver, scorer=hidden_test(), sandbox="local")
    model = get_model(NAME, custom_outputs=reply)
    logs = inspect_ai.eval(task, model, display="none", max_samples=1)  # pyright: ignore[reportUnknownMemberType]
    assert logs[0].status == "success", logs[0].error and logs[0].error.message
    print(json.dumps([_told(sample) for sample in logs[0].samples or ()]))


def _told(sample: EvalSample) -> dict[str, Any]:
    (score,) = (sample.scores or {}).values()
    return {
        "id": sample.id,
        "right": score.value == CORRECT,
        "answer": sample.output.completion,
        "usage": {name: usage.model_dump() for name, usage in sample.model_usage.items()},
        "model_calls": sum(event.event == "model" for event in sample.events),
        "massgen": (sample.output.metadata or {})["massgen"],
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
