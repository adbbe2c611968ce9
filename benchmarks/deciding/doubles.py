"""Doubles of agents that write programs, tests and votes. Every probability is assumed; see research on deciding.

An agent is right with probability p, which differs from task to task. Wrong ones share the popular error in half of the
cases. Some wrong programs are misunderstandings: whoever has one expects everywhere what it returns. Others were slips,
and their authors expect what is right, but for a share of false expectations.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from benchmarks.deciding.variants import Task, Version

TESTS = 3
SPREAD = 0.3
POPULAR = 0.5
OWN_WEIGHT = 2
"""How often its own answer counts where a voter guesses."""


@dataclass(frozen=True, slots=True)
class World:
    """Probabilities: an agent is right; a voter knows what is right; a writer looks where answers differ; a wrong
    program is a misunderstanding; an expectation is false.
    """

    p: float = 0.55
    knows: float = 0.3
    looks: float = 0.8
    misread: float = 0.3
    false: float = 0.1
    hostile: bool = False
    """The first agent is wrong, and writes tests that fail all others."""


class Written(NamedTuple):
    """A test: the input's place among the open ones, and what is expected."""

    at: int
    expected: str


@dataclass(frozen=True, slots=True)
class Trial:
    """One question: the agents' programs, and where their luck comes from."""

    task: Task
    world: World
    programs: tuple[Version, ...]
    seed: str

    @classmethod
    def draw(cls, task: Task, world: World, agents: int, seed: str) -> "Trial":
        random = Random(seed)
        p = min(1.0, max(0.0, world.p + random_spread(task.name, seed)))
        popular = random.choice(task.wrong)

        def program() -> Version:
            if random.random() < p:
                return task.right
            return popular if random.random() < POPULAR else random.choice(task.wrong)

        programs = [program() for _ in range(agents)]
        if world.hostile:
            programs[0] = popular
        return cls(task, world, tuple(programs), seed)

    def right(self, agent: int) -> bool:
        return self.programs[agent] is self.task.right

    def passes(self, test: Written, agent: int) -> bool:
        """Whether the agent's program returned what the test expects."""
        return self.programs[agent].seen[test.at] == test.expected

    def luck(self, agent: int, of: str) -> Random:
        """The same for an agent in whatever order agents are listed."""
        return Random(f"{self.seed}/{agent}/{of}")

    def misreads(self, program: Version) -> bool:
        drawn = Random(f"{self.seed}/{program.source}/misread").random()
        return program is not self.task.right and drawn < self.world.misread

    def expectation(self, agent: int, at: int, random: Random) -> str:
        """What the agent says that must come out."""
        right, own = self.task.right.seen[at], self.programs[agent]
        if self.misreads(own):
            return own.seen[at]
        if random.random() < self.world.false:
            others = sorted({wrong.seen[at] for wrong in self.task.wrong} - {right})
            return random.choice(others) if others else f"not {right}"
        return right

    def tests(self, agent: int) -> list[Written]:
        random = self.luck(agent, "tests")
        own = self.programs[agent]
        if self.world.hostile and agent == 0:
            alone = [at for at, out in enumerate(own.seen) if all(one.seen[at] != out for one in self.programs[1:])]
            differ = [at for at, out in enumerate(own.seen) if out != self.task.right.seen[at]]
            places = alone or differ or [0]
            return [Written(at, own.seen[at]) for at in random.choices(places, k=TESTS)]
        return [
            Written(at, self.expectation(agent, at, random))
            for at in (self.place(self.programs, random) for _ in range(TESTS))
        ]

    def place(self, among: Sequence[Version], random: Random) -> int:
        """An input to try; with luck one on which these programs differ."""
        differ = [at for at in range(len(self.task.inputs)) if len({program.seen[at] for program in among}) > 1]
        return random.choice(differ) if differ and random.random() < self.world.looks else random.randrange(80)

    def choice(self, agent: int, ballot: Sequence[int], of: str) -> int:
        """The agent on the ballot for whose answer it votes."""
        random = self.luck(agent, of)
        ballot = sorted(ballot)
        right = [one for one in ballot if self.right(one)]
        if random.random() < self.world.knows and right:
            return random.choice(right)
        return random.choice([*ballot, *[agent] * (OWN_WEIGHT - 1 if agent in ballot else 0)])


def random_spread(task: str, seed: str) -> float:
    """How much easier a task is than others; it stays so for the seed."""
    return SPREAD * (2 * Random(f"{seed.partition('/')[0]}/{task}").random() - 1)
