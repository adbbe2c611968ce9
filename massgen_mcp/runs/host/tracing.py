"""Where a run's OpenTelemetry spans go: to the OTLP endpoint that the operator names, or nowhere.

Nothing of OpenTelemetry is imported unless there is one. It needs the extra `otel`; without it a run goes on, and the
log says so.
"""

import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING

import anyio

from massgen_mcp import __version__
from massgen_mcp.config.providers.addresses import is_this_machine
from massgen_mcp.events.parts import AgentInfo
from massgen_mcp.threads import abandonable, imported

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

    from massgen_mcp.views.spans import Spans

logger = logging.getLogger("massgen_mcp.tracing")

TRACES_ENDPOINT = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
IMPORT_SECONDS = 10.0
"""A run waits this long at most for OpenTelemetry, and goes on without spans."""
FLUSH_SECONDS = 2.0
"""The end of a run waits this long at most for its last spans to leave."""

_OTEL = ("opentelemetry.exporter.otlp.proto.http.trace_exporter", "opentelemetry.sdk.trace.export")


@dataclass(frozen=True, slots=True)
class Trace:
    """One run's spans on their way out."""

    spans: "Spans"
    _provider: "TracerProvider"

    async def flush(self) -> None:
        """Send what is pending, within bounds."""
        with anyio.move_on_after(FLUSH_SECONDS, shield=True):
            await abandonable(self._provider.force_flush)


async def trace_of(run_id: str, agents: tuple[AgentInfo, ...], environ: Mapping[str, str]) -> Trace | None:
    """A trace for one run; None where the operator has named no endpoint, by the variables that OpenTelemetry reads."""
    endpoint = _endpoint(environ)
    if endpoint is None:
        return None
    provider: TracerProvider | None = None
    with anyio.move_on_after(IMPORT_SECONDS) as waited, suppress(ImportError):
        await imported(*_OTEL)
        provider = await abandonable(partial(_provider, endpoint))
    if provider is None:
        why = "is still being imported" if waited.cancelled_caught else "is missing: pip install 'massgen-mcp[otel]'"
        logger.warning("an OTLP endpoint is set, but its exporter %s", why)
        return None
    from massgen_mcp.views.spans import Spans

    wanted = environ.get(CONTENT, "").lower() in ("true", "1", "span_only", "span_and_event")
    return Trace(Spans(provider.get_tracer("massgen_mcp", __version__), run_id, agents, with_content=wanted), provider)


def _endpoint(environ: Mapping[str, str]) -> str | None:
    if environ.get("OTEL_SDK_DISABLED", "").lower() == "true" or environ.get("OTEL_TRACES_EXPORTER") == "none":
        return None
    if exact := environ.get(TRACES_ENDPOINT):
        return exact
    base = environ.get(ENDPOINT)
    return f"{base.rstrip('/')}/v1/traces" if base else None


@cache
def _provider(endpoint: str) -> "TracerProvider":
    """One for all runs of this process; it sends in the background and once more when the process leaves."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    session = None
    if is_this_machine(endpoint):
        import requests  # the exporter's own client

        session = requests.Session()
        session.trust_env = False  # a collector of this machine is never asked through a proxy
    resource = Resource.create({"service.name": "massgen-mcp", "service.version": __version__})
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint, session=session)))
    return provider
