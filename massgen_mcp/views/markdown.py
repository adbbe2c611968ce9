"""Markdown rendered for a terminal, code with colours. Pure; it imports rich, so import it only where a person looks.

Nothing of a text is lost: HTML, images and link definitions stay as they were written, ends of lines stay, an address
stands behind its link, and long lines of code are left to the terminal, so that they can be copied.
"""

from collections.abc import Iterable, Iterator
from io import StringIO
from typing import ClassVar

from markdown_it import MarkdownIt
from markdown_it.token import Token as MarkdownToken
from pygments import token as pygments
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, ListItem, Markdown, MarkdownElement
from rich.segment import Segment
from rich.style import Style as Look
from rich.syntax import ANSISyntaxTheme, Syntax
from rich.theme import Theme

from massgen_mcp.views.plain_text import plain
from massgen_mcp.views.styled import READABLE_WIDTH, Line, Span, Style

_MEANINGS: dict[str, Style] = {
    "cyan": "title",
    "magenta": "accent",
    "bright_black": "dim",
    "blue": "name",
    "green": "good",
    "yellow": "number",
    "red": "keyword",
}
"""The colours that are used here between rich and our styles, each for one of them."""
_THEME = Theme(
    {
        **{f"markdown.h{level}": "cyan" for level in range(1, 7)},
        "markdown.code": "magenta",
        "markdown.code_block": "none",
        "markdown.block_quote": "bright_black",
        "markdown.item.bullet": "none",
        "markdown.item.number": "none",
        "markdown.hr": "bright_black",
        "markdown.link": "blue",
        "markdown.link_url": "blue",
        "markdown.table.border": "bright_black",
        "markdown.table.header": "bold",
    },
    inherit=True,
)
_CODE = ANSISyntaxTheme(
    {
        pygments.Token: Look(),
        pygments.Comment: Look(color="bright_black"),
        pygments.Keyword: Look(color="red"),
        pygments.Operator.Word: Look(color="red"),
        pygments.Name.Function: Look(color="blue"),
        pygments.Name.Class: Look(color="blue"),
        pygments.Name.Tag: Look(color="blue"),
        pygments.Name.Builtin: Look(color="blue"),
        pygments.String: Look(color="green"),
        pygments.Number: Look(color="yellow"),
        pygments.Generic.Deleted: Look(color="red"),
        pygments.Generic.Inserted: Look(color="green"),
    }
)


def parser() -> MarkdownIt:
    """Of what a model writes: HTML and images are text like any other."""
    return MarkdownIt().enable("table").disable(["html_block", "html_inline", "image", "reference"])


def rendered(text: str, width: int) -> list[Line]:
    """`text` in lines of at most `width` columns; only code may be wider."""
    room = max(10, min(width, READABLE_WIDTH))
    safe = "\n".join(plain(row.expandtabs(4)) for row in text.splitlines())
    console = Console(file=StringIO(), width=room, theme=_THEME, color_system="standard", force_terminal=True)
    segments = console.render(_Answer(safe), console.options)
    rows = [list(row) for row in Segment.split_lines(segments)]
    lines = [
        _stripped(row) for row in rows if not row or "".join(part.text for part in row).strip()
    ]  # no edges of tables
    while lines and not lines[-1]:
        lines.pop()
    return lines


class _Heading(Heading):
    LEVEL_ALIGN: ClassVar = {}  # all of them at the left


class _Code(CodeBlock):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = Syntax("", self.lexer_name, theme=_CODE).highlight(str(self.text).rstrip("\n"))
        code.rstrip()
        if options.max_width == console.width:  # within a list there is no way to be wider
            code.no_wrap, code.overflow = True, "ignore"
        else:
            code.no_wrap, code.overflow = False, "fold"
        yield code


class _Item(ListItem):
    def render_number(self, console: Console, options: ConsoleOptions, number: int, last_number: int) -> RenderResult:
        width = len(str(last_number)) + 3
        lines = console.render_lines(self.elements, options.update(width=options.max_width - width), style=self.style)
        for place, line in enumerate(lines):
            yield Segment(f"{number}. ".rjust(width) if place == 0 else " " * width)
            yield from line
            yield Segment.line()


class _Answer(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _Heading,
        "list_item_open": _Item,
        "fence": _Code,
        "code_block": _Code,
    }

    def __init__(self, text: str) -> None:
        super().__init__("", hyperlinks=False)
        self.parsed = list(_with_line_ends(parser().parse(text)))


def _with_line_ends(tokens: Iterable[MarkdownToken]) -> Iterator[MarkdownToken]:
    for token in tokens:
        for part in token.children or ():
            if part.type == "softbreak":
                part.type = "hardbreak"
        yield token


def _stripped(segments: Iterable[Segment]) -> Line:
    """Without the spaces at its end."""
    spans = [Span(segment.text, _meaning(segment.style)) for segment in segments if segment.text]
    while spans and not spans[-1].text.rstrip():
        spans.pop()
    return (*spans[:-1], Span(spans[-1].text.rstrip(), spans[-1].style)) if spans else ()


def _meaning(look: Look | None) -> Style:
    if look is None:
        return ""
    if look.color is not None and look.color.name in _MEANINGS:
        return _MEANINGS[look.color.name]
    return "strong" if look.bold else "emphasis" if look.italic else "dim" if look.dim else ""
