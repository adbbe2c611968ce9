"""An answer as it is kept: with the sources that the provider names, or in the form that the config asks for. Pure."""

from collections.abc import Sequence

from massgen_mcp.config.findings import as_findings
from massgen_mcp.config.models.orchestrator import OrchestratorConfig
from massgen_mcp.events.parts import CitationRecord
from massgen_mcp.orchestration.sources import with_sources
from massgen_mcp.tools.base import ToolRefused


def formed(text: str, citations: Sequence[CitationRecord], policy: OrchestratorConfig) -> str:
    """Raises `ToolRefused` with what is wrong, for whoever wrote it."""
    if policy.answer_format == "text":
        return with_sources(text, citations)
    try:
        return as_findings(text)
    except ValueError as error:
        raise ToolRefused(f"This is no document of findings: {error}") from None
