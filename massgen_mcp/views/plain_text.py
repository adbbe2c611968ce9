"""Text of models, tools and people made safe for one line of a log, a table or a terminal."""

from collections.abc import Iterable, Iterator

PREVIEW = 200


def plain(text: str) -> str:
    """One line without control characters: what a model or a tool wrote can do nothing to a terminal."""
    return "".join(character if character.isprintable() else " " for character in text)


def plain_lines(texts: Iterable[str]) -> Iterator[str]:
    """Texts of several lines as plain lines with their ends."""
    return (f"{plain(line)}\n" for text in texts for line in text.splitlines())


def counted(number: int, what: str) -> str:
    """`1 call`, `2 calls`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def preview(text: str, limit: int = PREVIEW) -> str:
    """The beginning of `text` as one line of at most `limit` characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else f"{flat[: limit - 1]}…"
