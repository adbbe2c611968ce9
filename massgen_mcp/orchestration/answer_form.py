"""An answer as it is kept: with the sources that the provider names, or in the form that the config asks for. Pure."""

from collections.abc import Sequence

from massgen_mcp.config.findings import Findings, as_findings
from massgen_mcp.config.models.orchestrator import OrchestratorConfig
from massgen_mcp.events.parts import CitationRecord, Claim
from massgen_mcp.orchestration.sources import with_sources
from massgen_mcp.tools.base import ToolRefused


def formed(
    text: str,
    citations: Sequence[CitationRecord],
    policy: OrchestratorConfig,
    claims: Sequence[Claim] | None = None,
) -> str:
    """`claims`: of an answer that is written from all. Raises `ToolRefused` with what is wrong, for the writer."""
    if policy.answer_format == "text":
        if claims is not None and not claims:
            raise ToolRefused("`claims` is empty. List every claim, with the names of the answers that it stands in.")
        return with_sources(text, citations)
    try:
        document = as_findings(text)
    except ValueError as error:
        raise ToolRefused(f"This is no document of findings: {error}") from None
    if claims is not None and len(claims) != len(Findings.model_validate_json(document).findings):
        raise ToolRefused("`claims` has to have one entry for each finding, in their order.")
    return document
