"""What the interactive mode shows when it begins: the name, the team, the way to talk to it. Pure."""

from massgen_mcp.config.models.config import Config
from massgen_mcp.views.styled import Line, Span, box, text_of, width_of

_ART = """\
███╗   ███╗ █████╗ ███████╗███████╗ ██████╗ ███████╗███╗   ██╗
████╗ ████║██╔══██╗██╔════╝██╔════╝██╔════╝ ██╔════╝████╗  ██║
██╔████╔██║███████║███████╗███████╗██║  ███╗█████╗  ██╔██╗ ██║
██║╚██╔╝██║██╔══██║╚════██║╚════██║██║   ██║██╔══╝  ██║╚██╗██║
██║ ╚═╝ ██║██║  ██║███████║███████║╚██████╔╝███████╗██║ ╚████║
╚═╝     ╚═╝╚═╝  ╚═╝╚══════╝╚══════╝ ╚═════╝ ╚══════╝╚═╝  ╚═══╝"""
_WAY = "🤖 🤖 🤖  →  💬 collaborate  →  🎯 winner  →  📢 final"
_WIDTH = 80
_PROMPT_ROWS = 3


def banner(config: Config, *, width: int, height: int, unicode: bool = True) -> list[Line]:
    """Everything above the first prompt, in boxes of at most 80 columns. The big name is left out where it does not fit
    into the window with the rest.
    """
    width = min(_WIDTH, width)
    name = _box(["", *(Span(row, "title") for row in _ART.splitlines()), "", _WAY, ""], width, centred=True)
    rest = [*team_box(config, width), (), *_hints(width)]
    if not unicode or width < _WIDTH or height < len(name) + 1 + len(rest) + _PROMPT_ROWS:
        return [(Span("MassGen", "title"), Span(" · collaborate → winner → final", "dim")), *rest]
    return [*name, (), *rest]


def mode_of(config: Config) -> str:
    count = len(config.agents)
    return f"Multi-Agent ({count} agents)" if count > 1 else "Single Agent"


def team_box(config: Config, width: int) -> list[Line]:
    """The mode and every agent with its model."""
    labels = ["🤝 Mode:", *(_branch(place, config) + agent.id + ":" for place, agent in enumerate(config.agents))]
    values = [mode_of(config), *(f"{agent.backend.model} ({agent.kind})" for agent in config.agents)]
    column = max(width_of(label) for label in labels) + 4
    rows = [
        (Span("   "), Span(label + " " * (column - width_of(label)), "strong"), Span(value))
        for label, value in zip(labels, values, strict=True)
    ]
    return _box(rows, min(_WIDTH, width))


def _branch(place: int, config: Config) -> str:
    return "  └─ " if place == len(config.agents) - 1 else "  ├─ "


def _hints(width: int) -> list[Line]:
    return _box(
        [
            " 💬  Type your questions below",
            " 💡  Use slash commands: /help, /quit, /reset, /status, /config",
            " 👋  Press Ctrl+C to exit",
        ],
        width,
    )


def _box(rows: list[str | Span] | list[Line] | list[str], width: int, *, centred: bool = False) -> list[Line]:
    lines = [(row if isinstance(row, Span) else Span(row),) if isinstance(row, str | Span) else row for row in rows]
    inner = width - 4
    if centred:
        lines = [(Span(" " * ((inner - width_of(text_of(row))) // 2)), *row) for row in lines]
    return box((), lines, (), width, corners="╭╮╰╯")
