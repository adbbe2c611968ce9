"""An answer as it is kept: with the sources that the provider names, or in the form that the config asks for. Pure."""

import re
from collections.abc import Iterator, Sequence

from massgen_mcp.config.findings import Findings, as_findings
from massgen_mcp.config.models.orchestrator import OrchestratorConfig
from massgen_mcp.coordination.answer_text import is_visible
from massgen_mcp.events.parts import CitationRecord, Claim
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


# -- the pages that a provider's own search found, as they stand below an answer. Pure --------------------------------
# Addresses and titles come from the web: what could be mistaken for more than one line of a list is left out.


MAX_SOURCES = 10
"""Of one answer. Everybody who reads it pays for them."""
MAX_TITLE = 120
"""Characters."""

_ADDRESS = re.compile(r"https?://[!-~]{1,2000}", re.IGNORECASE)


def with_sources(answer: str, citations: Sequence[CitationRecord]) -> str:
    """The answer with the sources below it that it does not name itself."""
    lines = [*_source_lines(answer, citations)][:MAX_SOURCES] if is_visible(answer) else []
    return "\n".join([f"{answer.rstrip()}\n\nSources:", *lines]) if lines else answer


def _source_lines(answer: str, citations: Sequence[CitationRecord]) -> Iterator[str]:
    seen: set[str] = set()
    for cited in citations:
        if cited.url in seen or cited.url in answer or not _ADDRESS.fullmatch(cited.url):
            continue
        seen.add(cited.url)
        title = " ".join("".join(c if c.isprintable() else " " for c in cited.title).split())[:MAX_TITLE].strip()
        yield f"- {title}: {cited.url}" if title else f"- {cited.url}"
