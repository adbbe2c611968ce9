"""What Inspect finds by its entry point: models `massgen/...`, our tasks as `massgen_mcp/items`, a team as the agent
`massgen_mcp/team`, for tasks whose files are in a sandbox: our command line runs in there, beside them. Whatever that
team asks a model goes through Inspect's bridge, so Inspect counts it, and its limits hold.

Inspect (`inspect_ai`) is an extra, takes seconds to import, and loads this file itself: nothing else imports it.
"""

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

from inspect_ai import Task, task
from inspect_ai.agent import Agent, AgentState, agent, sandbox_agent_bridge
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import Model, ModelAPI, ModelOutput, modelapi
from inspect_ai.scorer import CORRECT, INCORRECT, Score, Scorer, Target, accuracy, scorer, stderr
from inspect_ai.solver import TaskState
from inspect_ai.util import sandbox

from massgen_mcp.config.loader import load_config
from massgen_mcp.config.models.config import Config
from massgen_mcp.errors import MassgenError
from massgen_mcp.evaluation.surroundings import surroundings, team_as_measured
from massgen_mcp.evaluation.tasks import Item, read_items
from massgen_mcp.integrations.called_model import conversation

PORT = 13131


@agent
def team(
    config: str,
    checks: str | Sequence[str] = (),
    models: Mapping[str, str | Model] | None = None,
    command: str = "massgen",
    port: int = PORT,
) -> Agent:
    """`checks`: commands as those of `massgen --check`. `models`: which model of Inspect answers for a model's name in
    the config; the evaluated one does for any other. `port`: of the bridge, in the sandbox.
    """
    checked = [checks] if isinstance(checks, str) else checks

    async def execute(state: AgentState) -> AgentState:
        messages = [message.model_dump(include={"role", "content", "tool_calls"}) for message in state.messages]
        question, earlier, system = conversation(messages)
        if earlier:
            raise MassgenError("invalid_arguments", "a task for a team in a sandbox must be a single user message")
        chosen, box = load_config(config, environ=os.environ), sandbox()
        place = (await box.exec(["pwd"])).stdout.strip()
        own = f"/tmp/massgen-{uuid4().hex}"  # noqa: S108 - of the sandbox, beside what is changed
        await box.write_file(f"{own}/team.json", json.dumps(_bridged(chosen, place, port)))
        instructions = ["--system-message", system] if system else []
        flags = [
            "--trust",
            "--apply",
            "--json",
            *instructions,
            *(part for check in checked for part in ("--check", check)),
        ]
        async with sandbox_agent_bridge(state, model_aliases=dict(models or {}), port=port) as bridge:
            done = await box.exec([command, "--config", "team.json", *flags, "-"], input=question, cwd=own)
            result = json.loads(done.stdout or "{}")
            if "run_id" not in result:  # it did not begin, so no other item's will
                raise MassgenError(
                    "invalid_arguments", f"{command} in the sandbox: {(done.stdout + done.stderr)[-2000:]}"
                )
            diff = [command, "result", result["run_id"], "--view", "diff"]
            patch = (await box.exec(diff, cwd=own)).stdout if result.get("files") else None
        found = {"team": team_as_measured(chosen), **surroundings(), "patch": patch, "run": result}
        bridge.state.output = ModelOutput.from_content("massgen", result.get("answer") or "")
        bridge.state.output.metadata = {"massgen": found}
        return bridge.state

    return execute


def _bridged(config: Config, place: str, port: int) -> dict[str, Any]:
    """The team as it is in the sandbox: every model is behind the bridge, and `place` may be changed."""
    data = config.model_dump(mode="json", exclude_defaults=True)
    for settings, section in zip(config.agents, data["agents"], strict=True):
        sampling = {name: section["backend"][name] for name in ("temperature", "top_p") if name in section["backend"]}
        bridge = {"type": "chatcompletion", "base_url": f"http://127.0.0.1:{port}/v1"}
        section["backend"] = {**bridge, "model": settings.backend.model or "inspect", **sampling}
    paths = {"context_paths": [{"path": place, "permission": "write"}]}
    return {**data, "orchestrator": {**data.get("orchestrator", {}), **paths}}


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
