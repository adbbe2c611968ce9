"""The pages that a provider's own search found, as they stand below an answer. Pure.

Addresses and titles come from the web: what could be mistaken for more than one line of a list is left out.
"""

import re
from collections.abc import Iterator, Sequence

from massgen_mcp.coordination.visible import is_visible
from massgen_mcp.events.parts import CitationRecord

MAX_SOURCES = 10
"""Of one answer. Everybody who reads it pays for them."""
MAX_TITLE = 120
"""Characters."""

_ADDRESS = re.compile(r"https?://[!-~]{1,2000}", re.IGNORECASE)


def with_sources(answer: str, citations: Sequence[CitationRecord]) -> str:
    """The answer with the sources below it that it does not name itself."""
    lines = [*_lines(answer, citations)][:MAX_SOURCES] if is_visible(answer) else []
    return "\n".join([f"{answer.rstrip()}\n\nSources:", *lines]) if lines else answer


def _lines(answer: str, citations: Sequence[CitationRecord]) -> Iterator[str]:
    seen: set[str] = set()
    for cited in citations:
        if cited.url in seen or cited.url in answer or not _ADDRESS.fullmatch(cited.url):
            continue
        seen.add(cited.url)
        title = " ".join("".join(c if c.isprintable() else " " for c in cited.title).split())[:MAX_TITLE].strip()
        yield f"- {title}: {cited.url}" if title else f"- {cited.url}"
