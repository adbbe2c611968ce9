"""The person's terminal: what it can show, and styled lines on it.

The one place that knows colours. Nothing here is imported before a person is there to see it.
"""

import sys
from collections.abc import Iterable, Mapping

from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.output import ColorDepth, Output
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.renderer import print_formatted_text
from prompt_toolkit.styles import Style as ToolkitStyle

from massgen_mcp.cli.output import break_ci_commands, print_text
from massgen_mcp.views.styled import Line, Style, as_written

_COLOURS: dict[Style, str] = {
    "strong": "bold",
    "dim": "ansibrightblack",
    "frame": "ansibrightblack",
    "title": "ansicyan bold",
    "busy": "ansiyellow",
    "good": "ansigreen",
    "bad": "ansired bold",
    "accent": "ansimagenta",
    "emphasis": "italic",
    "keyword": "ansimagenta",
    "name": "ansiblue",
    "number": "ansicyan",
}

_ASCII = str.maketrans("┌┐└┘─│├╭╮╰╯…·✓✗★☆◆↻→•≠▌▏", "++++-|+++++.-+x**o~>-!|_")


class Terminal:
    """Standard output as a terminal. Colours follow the person's own palette; `NO_COLOR` leaves text alone."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        stream = sys.stdout
        plain = bool(environ.get("NO_COLOR"))
        self.coloured = not plain
        self.unicode = stream.encoding.lower().replace("-", "").startswith("utf")
        self.depth = ColorDepth.DEPTH_1_BIT if plain else ColorDepth.DEPTH_4_BIT
        self.style = ToolkitStyle([] if plain else [(f"m-{style}", look) for style, look in _COLOURS.items()])
        self.in_tmux = bool(environ.get("TMUX"))
        self.output: Output = Vt100_Output.from_pty(stream, term=environ.get("TERM"), default_color_depth=self.depth)

    @property
    def width(self) -> int:
        return self.output.get_size().columns

    @property
    def height(self) -> int:
        return self.output.get_size().rows

    def formatted(self, lines: Iterable[Line]) -> FormattedText:
        """Lines as prompt_toolkit takes them, without an end after the last one."""
        text = FormattedText()
        for place, line in enumerate(lines):
            if place:
                text.append(("", "\n"))
            text += [
                (f"class:m-{span.style}" if span.style else "", span.text if self.unicode else _ascii(span.text))
                for span in line
            ]
        return text

    def text(self, markdown: str, width: int | None = None) -> list[Line]:
        """What a model wrote, rendered; without colours as it was written: marks then say what colours would."""
        if not self.coloured:
            return as_written(markdown, width or self.width)
        from massgen_mcp.views.markdown import rendered  # a library of its own, for terminals only

        return rendered(markdown, width or self.width)

    def print(self, lines: Iterable[Line]) -> None:
        """Lines into the scrollback."""
        text = self.formatted(lines)
        whole = "".join(part[1] for part in text)
        if break_ci_commands(sys.stdout, whole) != whole:
            print_text(whole)
        elif text:
            print_formatted_text(self.output, FormattedText([*text, ("", "\n")]), self.style, color_depth=self.depth)


def _ascii(text: str) -> str:
    return text.translate(_ASCII).encode("ascii", "replace").decode()
