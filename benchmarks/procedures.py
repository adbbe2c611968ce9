"""The same question about code by each way to decide, over a real MCP client: `python -m benchmarks.procedures`.

Scripted agents mend a bug: some rightly, some change the test instead, some break something else. All of them vote for
the answer that says "trust me", where they may; a judge does as well. Who writes from all answers changes no files. So
this shows who wins and why, and what it costs: calls, tokens in and out as the run counts them, seconds, and bytes of
the journal. It shows nothing of models.
"""

import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from tests.checks.project import commit
from tests.checks.test_code_question import BREAKS, BUG, RIGHT, SHOP, WHOLE, edit
from tests.harness import TempHome, agent, call

SIZES = (3, 5, 7)
Step = dict[str, Any]


def written(call_of: str, expected: str) -> Step:
    script = f"python3 -c 'from shop.prices import total, with_discount; print({call_of})'"
    return {"title": call_of, "script": script, "expected": expected}


TESTS: Step = {
    "call": "submit_tests",
    "arguments": {"tests": [written("with_discount([10, 30], 25)", "30.0"), written("total([])", "0")]},
}
LOUD: Sequence[Step] = ({"answer": "Fixed. Every test passes, trust me."},)
MISLED: Sequence[Step] = (
    edit("[10, 30], 25), 30)", "[10, 30], 25), 10)", "tests/test_prices.py"),
    {"answer": "The test expected too much."},
)
SOUND: Sequence[Step] = (RIGHT, {"answer": "It took the percentage, not what it took the rest from."})
KINDS = ((*BREAKS, *LOUD), MISLED, SOUND)


CLAIM: Step = {"claim": "It took the percentage.", "answers": ["agent1"]}
SYNTHESIS: Step = {
    "call": "submit_synthesis",
    "arguments": {"content": "It took the percentage, not what it took the rest from.", "claims": [CLAIM]},
}
VOTES: Sequence[Step] = ({"vote": "trust me"}, {"vote": "took the rest"})


@dataclass(frozen=True)
class Way:
    """A way to decide, and what a config says for it."""

    name: str
    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    checks: Sequence[str] = ()
    middle: Sequence[Step] = ()
    """What every agent does between its answer and its votes."""
    judge: bool = False


WAYS = (
    Way("vote", {"decide": "vote"}),
    Way("checks", {"decide": "checks"}, middle=(TESTS,)),
    Way("auto", middle=(TESTS,)),
    Way("synthesise", {"decide": "synthesise"}, middle=(SYNTHESIS,)),
    Way("judge", {"decide": "judge", "judge": "judge"}, judge=True),
    Way("vote, with checks that have to pass", {"decide": "vote", "checks_policy": "goal"}, (WHOLE, BUG)),
    Way(
        "one after the other, by a check that fails",
        {"decide": "vote", "checks_policy": "goal", "effort": "auto"},
        (WHOLE, BUG),
    ),
)


def team(size: int, way: Way) -> list[dict[str, Any]]:
    """So many agents, the kinds in turn, and the judge. Only the second agent is of another vendor than the first."""
    models = ["two" if place == 1 else "one" for place in range(size)]
    made = [
        agent(f"a{place}", *KINDS[place % 3], *way.middle, *VOTES, model=model) for place, model in enumerate(models)
    ]
    return [*made, agent("judge", *[VOTES[0]] * 4 * size, model="three")] if way.judge else made


HEAD = "team  decided by                                    calls      in    out  seconds  journal  winner, and why"


async def measured(home: TempHome, size: int, way: Way, place: Path) -> str:
    """One run, as a line of the table."""
    repository = place / "shop-repo"
    for name, text in SHOP.items():
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / name).write_text(text)
    commit(repository)
    config = home.config(place.name, *team(size, way), orchestrator=way.settings)
    async with home.client() as client:
        began = time.monotonic()
        asked = {"checks": list(way.checks)} if way.checks else {}
        paths = [{"path": str(repository), "permission": "write"}]
        started = await call(
            client, "start_run", config=config, question="test_discount fails. Mend it.", context_paths=paths, **asked
        )
        status = "running"
        while status not in ("completed", "failed"):
            status = (await call(client, "wait_run", run_id=started["run_id"]))["status"]
        seconds = time.monotonic() - began
        result = await call(client, "get_result", run_id=started["run_id"])
    used = result["usage"]
    journal = (Path(result["paths"]["run_directory"]) / "events.jsonl").stat().st_size
    won = {"a0": "breaks", "a1": "misled", "a2": "sound"}[f"a{int(result['winner'][1:]) % 3}"]
    challenge = f", {result['challenge']}" if "challenge" in result else ""
    cost = f"{used['model_calls']:>5} {used['input_tokens']:>7,} {used['output_tokens']:>6,}"
    return f"{size:>4}  {way.name:<44} {cost} {seconds:>8.1f} {journal:>8,}  {won}: {result['outcome']}{challenge}"


async def main(sizes: Sequence[int]) -> None:
    with tempfile.TemporaryDirectory(prefix="procedures-") as directory:
        home = TempHome(Path(directory) / "home", Path(directory) / "work")
        home.work.mkdir()
        print(HEAD)
        try:
            for size in sizes:
                for number, way in enumerate(WAYS):
                    print(await measured(home, size, way, Path(directory) / f"{size}-{number}"), flush=True)
        finally:
            home.close()


if __name__ == "__main__":
    anyio.run(main, [int(one) for one in sys.argv[1:]] or SIZES)
