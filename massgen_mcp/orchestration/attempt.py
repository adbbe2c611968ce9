"""What every phase of one attempt needs: the assignment, the floor, and how its conversations open."""

from dataclasses import dataclass

from massgen_mcp.backends.base import Message
from massgen_mcp.orchestration.floor import Floor
from massgen_mcp.orchestration.team import Assignment


@dataclass(frozen=True, slots=True)
class Attempt:
    """`number` counts from 1. `opening` is the question, and in a further attempt what the one before left."""

    assignment: Assignment
    floor: Floor
    number: int
    opening: tuple[Message, ...]
