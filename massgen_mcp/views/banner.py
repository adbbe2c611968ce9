"""What the interactive mode shows when it begins: the name, the team, the way to talk to it. Pure."""

from massgen_mcp.config.models.config import Config
from massgen_mcp.views.styled import Line, Span, box, width_of

_WIDTH = 80


def banner(config: Config, *, width: int) -> list[Line]:
    """Everything above the first prompt: two lines, then the team in a box of at most 80 columns."""
    title = (Span("massgen", "title"), Span(f" · {mode_of(config)}. Type a question; /help shows commands.", "dim"))
    return [title, (Span("Ctrl-C, /quit or quit leaves.", "dim"),), *team_box(config, width)]


def mode_of(config: Config) -> str:
    count = len(config.agents)
    return f"Multi-Agent ({count} agents)" if count > 1 else "Single Agent"


def team_box(config: Config, width: int) -> list[Line]:
    """The mode and every agent with its model."""
    labels = ["Mode:", *(_branch(place, config) + agent.id + ":" for place, agent in enumerate(config.agents))]
    values = [mode_of(config), *(f"{agent.backend.model} ({agent.kind})" for agent in config.agents)]
    column = max(width_of(label) for label in labels) + 3
    rows = [
        (Span("   "), Span(label + " " * (column - width_of(label)), "strong"), Span(value))
        for label, value in zip(labels, values, strict=True)
    ]
    return box((), rows, (), min(_WIDTH, width), corners="╭╮╰╯")


def _branch(place: int, config: Config) -> str:
    return "  └─ " if place == len(config.agents) - 1 else "  ├─ "
