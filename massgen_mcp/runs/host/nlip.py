"""`nlip.jsonl` in a run's directory: the messages of the agents whose config asks for NLIP, one on each line."""

from collections.abc import Callable
from contextlib import AsyncExitStack

from massgen_mcp.config.models.config import Config
from massgen_mcp.events.parts import public_agent_name
from massgen_mcp.events.record import LogRecord
from massgen_mcp.run_state.state import RunState
from massgen_mcp.runs.engine import RunFiles

FILE = "nlip.jsonl"


def nlip_writer(
    run: RunFiles, config: Config, state: RunState, cleanup: AsyncExitStack
) -> Callable[[LogRecord], None] | None:
    """Told of each event; None where nobody asks for it. What other agents say is not written."""
    others = {public_agent_name(place) for place, agent in enumerate(config.agents) if not config.with_nlip(agent)}
    if len(others) == len(config.agents):
        return None
    from massgen_mcp.views.nlip import nlip_line, nlip_messages  # with the standard's package

    file = cleanup.enter_context((run.path / FILE).open("a", buffering=1, encoding="utf-8", errors="replace"))

    def heard(record: LogRecord) -> None:
        for message in nlip_messages(record):
            if not others & {message.sender, message.to}:
                file.write(f"{nlip_line(message, record, state)}\n")

    return heard
