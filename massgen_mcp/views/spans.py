"""A run as OpenTelemetry spans, drawn from its events: the run, in it the agents' rounds, in those calls and tools.

Names follow the GenAI semantic conventions; what those have no word for is called `massgen.*`. What people and models
wrote stays out unless it is asked for. Must not know where spans go; importing this imports OpenTelemetry's API.
"""

import json
from collections.abc import Mapping

from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, set_span_in_context
from opentelemetry.util.types import AttributeValue

from massgen_mcp.events.agent_work import (
    ModelCallAborted,
    ModelCallFailed,
    ModelCallRetried,
    ModelCallStarted,
    ModelReplied,
    RoundStarted,
    ToolFinished,
)
from massgen_mcp.events.coordination import (
    AgentDropped,
    AnswerPresented,
    AnswerSubmitted,
    PresentationFailed,
    PresentationStarted,
    VoteCast,
)
from massgen_mcp.events.parts import AgentInfo, Cost, Usage
from massgen_mcp.events.record import LogRecord
from massgen_mcp.events.run import RunCancelled, RunCompleted, RunEnd, RunFailed, RunStarted, RunTimedOut

_PROVIDERS = {
    "claude": "anthropic",
    "gemini": "gcp.gemini",
    "grok": "x_ai",
    "mistral": "mistral_ai",
    "azure_openai": "azure.ai.openai",
}
"""The conventions' names for our backends; the others have the same."""

Attributes = dict[str, AttributeValue]


class Spans:
    """Hears a run's records in order. A run that goes on in another process gets a trace of its own there."""

    def __init__(self, tracer: Tracer, run_id: str, agents: tuple[AgentInfo, ...], *, with_content: bool) -> None:
        self._tracer = tracer
        self._run_id = run_id
        self._agents = {agent.name: agent for agent in agents}
        self._with_content = with_content
        self._run: Span | None = None
        self._rounds: dict[str, Span] = {}
        self._calls: dict[str, Span] = {}

    def heard(self, record: LogRecord) -> None:
        now = int(record.time * 1e9)
        run = self._run
        if run is None:
            run = self._run = self._open_run(now)
        event = record.event
        match event:
            case RunStarted():
                self._content(run, "gen_ai.input.messages", "user", event.question)
            case RoundStarted() | PresentationStarted():
                self._open_round(event, run, now)
            case ModelCallStarted():
                self._open_call(event, run, now)
            case ModelReplied() | ModelCallFailed() | ModelCallAborted():
                self._close_call(event, now)
            case ModelCallRetried():
                self._note_retry(event, now)
            case ToolFinished():
                self._tool_span(event, run, now)
            case AnswerSubmitted() | VoteCast() | AgentDropped() | AnswerPresented() | PresentationFailed():
                self._close_round(event, now)
            case RunCompleted() | RunFailed() | RunCancelled() | RunTimedOut():
                self._close_run(event, run, now)
            case _:
                pass  # it takes no time

    # -- the run ----------------------------------------------------------------------------------------------------

    def _open_run(self, now: int) -> Span:
        attributes: Attributes = {
            "gen_ai.operation.name": "invoke_workflow",
            "gen_ai.workflow.name": "massgen",
            "gen_ai.conversation.id": self._run_id,
            "massgen.agents": len(self._agents),
        }
        return self._tracer.start_span("invoke_workflow massgen", start_time=now, attributes=attributes)

    def _close_run(self, event: RunEnd, run: Span, now: int) -> None:
        for span in [*self._calls.values(), *self._rounds.values()]:
            span.end(now)
        run.set_attribute("massgen.state", event.type.removeprefix("run_"))
        match event:
            case RunCompleted():
                run.set_attributes({"massgen.outcome": event.outcome, "massgen.winner": event.winner})
                self._content(run, "gen_ai.output.messages", "assistant", event.answer)
            case RunFailed():
                _failed(run, event.reason, event.message)
            case RunTimedOut():
                _failed(run, "timeout", event.message)
            case RunCancelled():
                pass
        run.end(now)

    # -- rounds -----------------------------------------------------------------------------------------------------

    def _open_round(self, event: RoundStarted | PresentationStarted, run: Span, now: int) -> None:
        agent = self._agents[event.agent]
        attributes: Attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": agent.name,
            "gen_ai.agent.id": agent.id,
            "gen_ai.conversation.id": self._run_id,
            **_model(agent),
        }
        if isinstance(event, RoundStarted):
            attributes |= {"massgen.round": event.round, "massgen.revision": event.revision}
        if earlier := self._rounds.pop(event.agent, None):
            earlier.end(now)
        name = f"invoke_agent {agent.name}"
        self._rounds[event.agent] = self._start(name, SpanKind.INTERNAL, run, now, attributes)

    def _close_round(
        self, event: AnswerSubmitted | VoteCast | AgentDropped | AnswerPresented | PresentationFailed, now: int
    ) -> None:
        span = self._rounds.pop(event.agent, None)
        if span is None:
            return
        span.set_attribute("massgen.action", event.type)
        if isinstance(event, AgentDropped | PresentationFailed):
            _failed(span, event.reason, event.message)
        span.end(now)

    # -- model calls ------------------------------------------------------------------------------------------------

    def _open_call(self, event: ModelCallStarted, run: Span, now: int) -> None:
        agent = self._agents[event.agent]
        attributes: Attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.agent.name": agent.name,
            "gen_ai.request.stream": True,
            "gen_ai.conversation.id": self._run_id,
            "massgen.call_id": event.call_id,
            "massgen.purpose": event.purpose,
            **_model(agent),
        }
        parent = self._rounds.get(event.agent, run)
        self._calls[event.call_id] = self._start(f"chat {agent.model}", SpanKind.CLIENT, parent, now, attributes)

    def _close_call(self, event: ModelReplied | ModelCallFailed | ModelCallAborted, now: int) -> None:
        span = self._calls.pop(event.call_id, None)
        if span is None:
            return
        span.set_attributes(_bill(event.usage, event.cost))
        match event:
            case ModelReplied():
                span.set_attribute("gen_ai.response.model", event.model)
                span.set_attribute("gen_ai.response.finish_reasons", (event.stop,))
                self._content(span, "gen_ai.output.messages", "assistant", event.text, event)
            case ModelCallFailed():
                _failed(span, event.reason, event.message)
            case ModelCallAborted():
                span.set_attribute("massgen.aborted", value=True)
        span.end(now)

    def _note_retry(self, event: ModelCallRetried, now: int) -> None:
        if span := self._calls.get(event.call_id):
            attributes: Attributes = {"error.type": event.reason, "massgen.attempt": event.attempt}
            span.add_event("massgen.retry", {**attributes, **_bill(event.usage, event.cost)}, now)

    def _tool_span(self, event: ToolFinished, run: Span, now: int) -> None:
        attributes: Attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": event.name,
            "gen_ai.tool.call.id": event.call_id,
            "gen_ai.agent.name": event.agent,
        }
        if self._with_content:
            attributes["gen_ai.tool.call.result"] = event.result
        parent, began = self._rounds.get(event.agent, run), now - int(event.seconds * 1e9)
        span = self._start(f"execute_tool {event.name}", SpanKind.INTERNAL, parent, began, attributes)
        if event.is_error:
            _failed(span, "tool_error", "")
        span.end(now)

    # -- plumbing -----------------------------------------------------------------------------------------------------

    def _start(self, name: str, kind: SpanKind, parent: Span, start: int, attributes: Attributes) -> Span:
        context = set_span_in_context(parent)
        return self._tracer.start_span(name, context, kind=kind, start_time=start, attributes=attributes)

    def _content(self, span: Span, key: str, role: str, text: str, reply: ModelReplied | None = None) -> None:
        """What somebody wrote, in the conventions' shape of a message."""
        if not self._with_content:
            return
        parts: list[dict[str, str]] = [{"type": "text", "content": text}] if text else []
        if reply is not None:
            parts += [
                {"type": "tool_call", "id": call.id, "name": call.name, "arguments": call.arguments}
                for call in reply.tool_calls
            ]
        span.set_attribute(key, json.dumps([{"role": role, "parts": parts}], ensure_ascii=False))


def _model(agent: AgentInfo) -> Mapping[str, str]:
    return {
        "gen_ai.provider.name": _PROVIDERS.get(agent.backend, agent.backend),
        "gen_ai.request.model": agent.model,
    }


def _bill(usage: Usage | None, cost: Cost | None) -> Attributes:
    attributes: Attributes = {}
    if usage is not None:
        attributes = {
            "gen_ai.usage.input_tokens": usage.input_tokens,
            "gen_ai.usage.output_tokens": usage.output_tokens,
            "gen_ai.usage.cache_read.input_tokens": usage.cached_input_tokens,
            "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
            "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
            "massgen.usage.estimated": usage.estimated,
        }
    if cost is not None and cost.usd is not None and cost.source is not None:
        attributes |= {"massgen.cost.usd": cost.usd, "massgen.cost.source": cost.source}
    return attributes


def _failed(span: Span, reason: str, message: str) -> None:
    span.set_attribute("error.type", reason)
    span.set_status(Status(StatusCode.ERROR, message))
