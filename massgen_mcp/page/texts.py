"""How much of what was written goes into the data of a page. What does not fit is left out, and said."""

from dataclasses import dataclass

from massgen_mcp.page.data import Text

BEGINNING = 1_000
"""So much is left of a text that there is no room for."""


@dataclass(frozen=True, slots=True)
class Most:
    """How much a page holds. `characters`: of all its texts together; `marks`: of calls, tools and moments each, of
    which a longer run shows the last ones.
    """

    characters: int = 2_000_000
    marks: int = 4_000


WHOLE = Most()
"""Of a page that stands alone in a file."""


class TextRoom:
    """Takes texts in, the important ones first. `redacted`: none of them, on purpose."""

    def __init__(self, *, redacted: bool, most: Most = WHOLE) -> None:
        self.most = most
        self.redacted = redacted
        self.shortened = 0
        self._left = most.characters

    def take(self, text: str) -> Text:
        if self.redacted:
            return Text(text="", left_out=len(text))
        if len(text) > self._left:
            kept = text[: min(BEGINNING, self._left)]
            self.shortened += 1
        else:
            kept = text
        self._left -= len(kept)
        return Text(text=kept, left_out=len(text) - len(kept))

    def beginning(self, text: str, most: int) -> str:
        """At most `most` characters of what is elsewhere in the page, or in the run's record, whole."""
        flat = " ".join(self.take(text[: 4 * most]).text.split())
        return flat if len(flat) <= most else f"{flat[: most - 1]}…"
