"""What a model at one address was found not to take: learned from the refusal, and not asked for again."""

from massgen_mcp.backends.base import ModelRequest
from massgen_mcp.errors import BackendError


class Abilities:
    """Of one model at one address. Everything is taken to be possible until it is refused."""

    def __init__(self) -> None:
        self.takes_tools = True
        self.can_be_forced = True
        """Whether a request may say that a tool must be called."""

    def learn(self, error: BackendError, request: ModelRequest) -> bool:
        """Remember what `error` says is not taken of `request`. Whether there is something to ask without."""
        if error.refused is None or not request.tools:
            return False
        if error.refused == "tool_choice" and request.must_call_tool:
            self.can_be_forced = False
        else:
            self.takes_tools = False
        return True
