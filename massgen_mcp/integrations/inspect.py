"""What Inspect finds by its entry point: models `massgen/...`, our tasks as `massgen_mcp/items`, a team as the agent
`massgen_mcp/team`.

Inspect (`inspect_ai`) is an extra, takes seconds to import, and loads this file itself: nothing else imports it.
"""

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ModelAPI, modelapi
from inspect_ai.scorer import CORRECT, INCORRECT, Score, Scorer, Target, accuracy, scorer, stderr
from inspect_ai.solver import TaskState

from massgen_mcp.evaluation.tasks import Item, read_items
from massgen_mcp.integrations.inspect_agent import team

__all__ = ["as_massgen_eval", "items", "massgen", "team"]


@modelapi(name="massgen")
def massgen() -> type[ModelAPI]:
    from massgen_mcp.integrations.inspect_provider import TeamModel  # not before a team is asked

    return TeamModel


@task
def items(name: str = "@questions") -> Task:
    """A task set of ours, or a file as `massgen eval` takes it: `-T name=@coding`."""
    samples = [
        Sample(item.question, id=item.id, target=[*item.targets], metadata={"item": item.model_dump(mode="json")})
        for item in read_items(name)
    ]
    return Task(dataset=MemoryDataset(samples, name=name), scorer=as_massgen_eval())


@scorer(metrics=[accuracy(), stderr()])
def as_massgen_eval() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        from massgen_mcp.evaluation import scoring  # not before something is scored

        del target
        item = Item.model_validate(state.metadata["item"])
        ready = await scoring.Scorer.ready([item])
        right = await ready.is_right(item, state.output.completion)
        return Score(value=CORRECT if right else INCORRECT, answer=scoring.short_answer(state.output.completion))

    return score
