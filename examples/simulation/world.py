"""The questions of the simulation and how agents err on them. Knows no agents, votes or orchestrator."""

from dataclasses import dataclass
from random import Random
from string import ascii_uppercase


@dataclass(frozen=True, slots=True)
class World:
    """`p`: an agent is right; `c`: a wrong one picks the common wrong option; `rho`: all agents share one draw."""

    p: float
    choices: int = 4
    c: float = 0.0
    rho: float = 0.0


@dataclass(frozen=True, slots=True)
class Question:
    """One question, and the option that each agent will answer, in the order of the team."""

    right: str
    answers: tuple[str, ...]


def draw(world: World, agents: int, random: Random) -> Question:
    """Which letter is right and which one is the common error is drawn, too, so that no letter means anything."""
    right, common, *others = random.sample(ascii_uppercase[: world.choices], world.choices)

    def answer() -> str:
        if random.random() < world.p:
            return right
        return common if random.random() < world.c else random.choice([common, *others])

    if random.random() < world.rho:
        return Question(right, (answer(),) * agents)
    return Question(right, tuple(answer() for _ in range(agents)))
