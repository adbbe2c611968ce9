"""With an exporter a run leaves spans in the words of the GenAI conventions; without one, nothing happens at all."""

import importlib
import json
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from massgen_mcp.config.loader import config_from_data
from massgen_mcp.config.models.config import Config
from massgen_mcp.events.record import LogRecord
from massgen_mcp.events.run import RunStarted
from massgen_mcp.runs.engine import FrozenRequest, RunFiles
from massgen_mcp.runs.host.execute import RunContext, execute_run
from massgen_mcp.views.spans import Spans
from tests.teams import Observer

SECRET = "the tune of the question"
PRICE = {"input_usd_per_million": 3, "output_usd_per_million": 15}


def team(*scripts: list[dict[str, Any]]) -> Config:
    agents = [
        {"id": f"a{place}", "backend": {"type": "scripted", "script": script, "price": PRICE}}
        for place, script in enumerate(scripts, start=1)
    ]
    return config_from_data({"agents": agents}, "test", environ={})


async def spans_of(path: Path, config: Config, *, with_content: bool = False) -> list[ReadableSpan]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    spans: list[Spans] = []

    def on_record(record: LogRecord) -> None:
        if isinstance(record.event, RunStarted):
            agents = record.event.agents
            spans.append(Spans(provider.get_tracer("test"), "run-test", agents, with_content=with_content))
        spans[0].heard(record)

    run = RunFiles.create(path / "run", FrozenRequest(SECRET, config))
    await execute_run(run, "run-test", RunContext({}, Observer(on_record=on_record)))
    return list(exporter.get_finished_spans())


def named(spans: list[ReadableSpan], operation: str) -> list[ReadableSpan]:
    return [span for span in spans if (span.attributes or {})["gen_ai.operation.name"] == operation]


def value(span: ReadableSpan, key: str) -> Any:
    return (span.attributes or {})[key]


def parent(span: ReadableSpan) -> int:
    assert span.parent is not None
    return span.parent.span_id


async def test_a_run_is_a_tree_of_the_run_its_rounds_and_their_calls(tmp_path: Path) -> None:
    look = {"call": "list_files", "arguments": {"path": "."}}
    spans = await spans_of(tmp_path, team([look, {"answer": "42"}], [{"answer": "43"}]))
    (run,) = named(spans, "invoke_workflow")
    rounds, calls, tools = (named(spans, name) for name in ("invoke_agent", "chat", "execute_tool"))
    assert run.parent is None
    assert value(run, "massgen.state") == "completed"
    ids = {span.context.span_id: span for span in rounds if span.context}
    assert run.context is not None
    assert {parent(span) for span in rounds} == {run.context.span_id}
    assert len(rounds) == 5, "two answers, two votes, the presentation"
    assert len(calls) == 6
    for call in [*calls, *tools]:
        assert value(ids[parent(call)], "gen_ai.agent.name") == value(call, "gen_ai.agent.name")
    assert {value(span, "massgen.action") for span in rounds} == {"answer_submitted", "vote_cast", "answer_presented"}
    assert [span.name for span in tools] == ["execute_tool list_files"]
    for span in spans:
        assert span.start_time is not None
        assert span.end_time is not None
        assert span.start_time <= span.end_time


async def test_a_call_tells_model_tokens_and_cost_in_the_words_of_the_conventions(tmp_path: Path) -> None:
    spans = await spans_of(tmp_path, team([{"answer": "42"}]))
    (call,) = named(spans, "chat")
    assert (call.name, call.kind) == ("chat scripted", SpanKind.CLIENT)
    assert value(call, "gen_ai.provider.name") == "scripted"
    assert value(call, "gen_ai.response.finish_reasons") == ("tool_calls",)
    read, written = value(call, "gen_ai.usage.input_tokens"), value(call, "gen_ai.usage.output_tokens")
    assert read > 0
    assert value(call, "massgen.cost.usd") == pytest.approx((3 * read + 15 * written) / 1e6)
    assert value(call, "massgen.cost.source") == "config"
    conventions = importlib.import_module("opentelemetry.semconv._incubating.attributes.gen_ai_attributes")
    known = {name for name in vars(conventions).values() if isinstance(name, str)}
    used = {key for span in spans for key in span.attributes or {}}
    assert {key for key in used if key.startswith("gen_ai.")} <= known


async def test_nothing_that_people_or_models_wrote_is_told_unless_it_is_asked_for(tmp_path: Path) -> None:
    config = team([{"answer": "a very private answer"}])
    silent = "".join(span.to_json() for span in await spans_of(tmp_path / "silent", config))
    assert SECRET not in silent
    assert "private" not in silent
    spans = await spans_of(tmp_path / "told", config, with_content=True)
    (run,), (call,) = named(spans, "invoke_workflow"), named(spans, "chat")
    assert json.loads(value(run, "gen_ai.input.messages"))[0]["parts"] == [{"type": "text", "content": SECRET}]
    assert "private" in value(run, "gen_ai.output.messages")
    assert json.loads(value(call, "gen_ai.output.messages"))[0]["parts"][0]["name"] == "new_answer"


async def test_a_failure_is_marked_on_the_call_the_round_and_the_run(tmp_path: Path) -> None:
    spans = await spans_of(tmp_path, team([{"fail": "auth"}]))
    for operation in ("chat", "invoke_agent", "invoke_workflow"):
        (span,) = named(spans, operation)
        assert span.status.status_code is StatusCode.ERROR
        assert value(span, "error.type") == "auth"


@contextmanager
def receiver() -> Generator[tuple[str, list[ExportTraceServiceRequest]]]:
    """A collector that keeps what it is sent."""
    got: list[ExportTraceServiceRequest] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            assert self.path == "/v1/traces"
            got.append(ExportTraceServiceRequest.FromString(body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the standard library's name
            """Standard error is not ours."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", got
        finally:
            server.shutdown()
            thread.join()


async def test_spans_reach_a_collector_before_the_run_is_over(tmp_path: Path) -> None:
    with receiver() as (url, got):
        run = RunFiles.create(tmp_path / "run", FrozenRequest(SECRET, team([{"answer": "42"}])))
        await execute_run(run, "run-test", RunContext({"OTEL_EXPORTER_OTLP_ENDPOINT": url}))
        sent = list(got)
    spans = [span for request in sent for scope in request.resource_spans[0].scope_spans for span in scope.spans]
    assert [span.name for span in spans] == ["chat scripted", "invoke_agent agent_a", "invoke_workflow massgen"]
    assert SECRET not in str(sent)


SCRIPT = """
import anyio, sys, os
from pathlib import Path
from massgen_mcp.config.loader import config_from_data
from massgen_mcp.runs.engine import FrozenRequest
from massgen_mcp.runs.engine import RunFiles
from massgen_mcp.runs.host.execute import execute_run, RunContext
config = config_from_data({"agents": [{"backend": {"type": "scripted"}}]}, "test", environ={})
run = RunFiles.create(Path(sys.argv[1]), FrozenRequest("q", config))
anyio.run(lambda: execute_run(run, "run-test", RunContext(dict(item.split("=", 1) for item in sys.argv[2:]))))
print([name for name in sys.modules if name.startswith("opentelemetry")])
"""


@pytest.mark.parametrize(
    "variables",
    [[], ["OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1", "OTEL_SDK_DISABLED=true"], ["OTEL_TRACES_EXPORTER=none"]],
)
def test_without_an_endpoint_nothing_of_opentelemetry_is_imported(tmp_path: Path, variables: list[str]) -> None:
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "run"), *variables]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
