"""How much of what was written goes into the data of a page. What does not fit is left out, and said."""

from massgen_mcp.page.data import Text

MOST_CHARACTERS = 2_000_000
"""Of all texts of a page together."""
BEGINNING = 1_000
"""So much is left of a text that there is no room for."""


class TextRoom:
    """Takes texts in, the important ones first. `redacted`: none of them, on purpose."""

    def __init__(self, *, redacted: bool, most: int = MOST_CHARACTERS) -> None:
        self.redacted = redacted
        self.shortened = 0
        self._left = most

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
