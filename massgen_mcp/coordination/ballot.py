"""A ballot: what one agent was shown. It owns the meaning of the names on it."""

from dataclasses import dataclass

from massgen_mcp.events.parts import BallotEntry


@dataclass(frozen=True, slots=True)
class Ballot:
    """The answers shown to `viewer` at `revision`, under neutral names, the viewer's own among them."""

    viewer: str
    revision: int
    entries: tuple[BallotEntry, ...]

    def label_of(self, name: str) -> str | None:
        """The label of the answer that stands here under `name`; None if there is none."""
        return next((entry.label for entry in self.entries if entry.name == name), None)
