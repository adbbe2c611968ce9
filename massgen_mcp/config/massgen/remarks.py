"""What is to be said of a file in MassGen's spelling, beside what becomes of it. Pure."""

from dataclasses import dataclass, field

from massgen_mcp.config.diagnostics import Problem
from massgen_mcp.config.yaml_reader import Place


@dataclass(slots=True)
class Remarks:
    """Places are those of the data as it was given."""

    ignored: list[tuple[str, Place]] = field(default_factory=list[tuple[str, Place]])
    """Why, and which key."""
    problems: list[Problem] = field(default_factory=list[Problem])
    moved: dict[Place, Place] = field(default_factory=dict[Place, Place])
    """Where the user wrote what now has another name."""

    def ignore(self, why: str, place: Place) -> None:
        self.ignored.append((why, place))

    def refuse(self, place: Place, why: str) -> None:
        self.problems.append(Problem(place, why))
