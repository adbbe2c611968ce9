"""However models behave, a run ends, and never costs more calls than docs/coordination.md states."""

from random import Random
from typing import Any

from massgen_mcp.coordination.state import Rules
from massgen_mcp.events.agent_work import ModelCallStarted
from massgen_mcp.events.run import TERMINAL
from massgen_mcp.orchestration.team import TeamLimits
from tests.stage import Performance, perform

RUNS = 300


def most_calls(agents: int, answers: int, retries: int) -> int:
    """Model calls of one attempt at most, for models that call no other tools: every accepted action may have been
    preceded by `retries` refused ones and, per change of the answers, by one on an outdated ballot; there may be one
    run-off, and verdicts on what is tied after it; an agent may fall out once; and the winner presents.
    """
    changes = agents * answers - agents + 1
    rounds = agents * answers + agents * changes + 3 * agents
    return rounds * (retries + 1) + agents * agents * answers + 1


def misbehaviour(random: Random) -> dict[str, Any]:
    return random.choice(
        [
            {"say": "I would rather talk."},
            {"call": "vote", "arguments": {"agent_id": "agent99", "reason": "x"}},
            {"call": "vote", "arguments": {"who": "agent1"}},
            {"call": "new_answer", "arguments": {"content": ""}},
            {"call": "no_such_tool"},
            {"fail": random.choice(["auth", "model_not_found"])},
        ]
    )


def script(random: Random, agent: int) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = []
    for number in range(random.randint(0, 25)):
        dice = random.random()
        if dice < 0.4:
            steps.append({"answer": f"answer {agent}.{number}"})
        elif dice < 0.8:
            steps.append({"vote": random.choice(["own", "first", "last"])})
        else:
            steps.append(misbehaviour(random))
    return steps


async def play(seed: int) -> tuple[Performance, int]:
    random = Random(seed)
    agents, answers = random.randint(1, 5), random.randint(1, 3)
    rules = Rules(max_answers=answers, early_decision=random.choice(("off", "proven", "majority")), seed=str(seed))
    performance = await perform(*[script(random, agent) for agent in range(agents)], rules=rules)
    return performance, most_calls(agents, answers, TeamLimits().enforcement_retries)


async def test_every_run_ends_once_and_within_the_stated_number_of_calls() -> None:
    for seed in range(RUNS):
        performance, bound = await play(seed)
        calls = sum(isinstance(event, ModelCallStarted) for event in performance.events)
        assert calls <= bound, f"seed {seed}: {calls} calls, at most {bound}"
        assert [isinstance(event, TERMINAL) for event in performance.events].count(True) == 1, f"seed {seed}"
        assert isinstance(performance.events[-1], TERMINAL), f"seed {seed}"
