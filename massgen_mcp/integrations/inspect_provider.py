"""A team, or a team of one, as a model of Inspect: one run for each generation.

A run that fails is a wrong answer with its cost: Inspect itself would stop, or leave the item out, and print a share of
what was left. Only what keeps every run from beginning, such as a missing key, is an error.
"""

from collections.abc import Mapping
from typing import Any

from inspect_ai.model import ChatMessage, GenerateConfig, ModelAPI, ModelOutput, ModelUsage
from inspect_ai.tool import ToolChoice, ToolInfo

from massgen_mcp.api.performing import perform
from massgen_mcp.errors import MassgenError, RunNotCompleted
from massgen_mcp.evaluation.surroundings import surroundings, team_as_measured
from massgen_mcp.integrations.called_model import UnsupportedParameters, request_of
from massgen_mcp.run_state.state import RunState
from massgen_mcp.views.checks import written_tests
from massgen_mcp.views.coordination_record import coordination_events
from massgen_mcp.views.ending import RemainingFiles
from massgen_mcp.views.spent import spent_json

AT_ONCE = 4
"""Runs, unless Inspect is told another number."""
INSPECTS_OWN = {
    *("max_retries", "timeout", "attempt_timeout", "stream_idle_timeout", "max_connections", "adaptive_connections"),
    *("system_message", "max_tool_output", "cache", "batch"),
}
"""Of its settings, what it sees to itself."""


class TeamModel(ModelAPI):
    """`massgen/NAME`: as with LiteLLM, a shipped config, `path:FILE`, `model:MODEL`, `default` or `build`. What comes
    with `-M` are arguments of `run`.
    """

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008 - Inspect's signature
        **arguments: Any,  # noqa: ANN401 - of the command line
    ) -> None:
        if api_key is not None:
            raise MassgenError(
                "invalid_arguments", "api_key: massgen reads keys only from the environment; leave it out"
            )
        super().__init__(model_name, base_url, api_key, [], config)
        self._arguments = arguments

    def max_connections(self) -> int:
        return AT_ONCE

    async def generate(
        self,
        input: list[ChatMessage],  # noqa: A002 - Inspect's signature
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        del tool_choice
        if tools:
            raise UnsupportedParameters(["tools"])
        messages = [message.model_dump(include={"role", "content", "tool_calls"}) for message in input]
        sampling = config.model_dump(exclude_none=True, exclude=INSPECTS_OWN)
        run = await request_of(self.model_name, messages, {**self._arguments, **sampling}, api_base=self.base_url)
        about = {"team": team_as_measured(run.request.config), **surroundings()}
        try:
            result = await perform(run, drawn=_with_all_of_it)
        except RunNotCompleted as failed:
            metadata = {**about, "failure": {"state": failed.state, "reason": failed.reason, "message": str(failed)}}
            return self._output("", failed.result, metadata)
        return self._output(result["final_answer"], result, about)

    def _output(self, text: str, result: Mapping[str, Any], metadata: Mapping[str, Any]) -> ModelOutput:
        record = result["record"]
        spent = record["session_metadata"]["spent"]
        usage = ModelUsage(
            input_tokens=spent["input_tokens"],
            output_tokens=spent["output_tokens"],
            total_tokens=spent["tokens"],
            total_cost=None if spent["unpriced_calls"] else spent["cost"],
        )
        output = ModelOutput.from_content(self.model_name, text)
        ending = {name: result[name] for name in ("outcome", "decided_by", "weak", "failure", "degraded")}
        output.metadata = {"massgen": {**ending, **metadata, **record}}
        output.usage = usage
        return output


def _with_all_of_it(result: dict[str, Any], run: RunState, _: RemainingFiles) -> dict[str, Any]:
    """With the record: votes and their reasons, camps, every answer, tests, money."""
    members = {
        agent.info.id: spent_json(run.budget.spending.by_agent[name])
        for name, agent in run.agents.items()
        if name in run.budget.spending.by_agent
    }
    record = {**coordination_events(run, ()), "tests": written_tests(run), "spent_by": members}
    del record["events"]
    return {**result, "record": record}
