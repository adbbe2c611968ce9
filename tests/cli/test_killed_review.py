"""A review whose process is killed: the same command continues it, and asks no model again what was answered."""

import json
import signal
import subprocess
from collections import Counter
from functools import partial
from typing import Any, Literal

import anyio
import anyio.to_thread

from massgen_mcp.runs.sessions.project import LOGS
from tests.cli.reviewers import Reviewer, finding, reviewing
from tests.commands import run_command
from tests.harness import COMMAND_MODULE, RUNNER_MODULE, TempHome, end, events_of, wait_until
from tests.interrupted import kill
from tests.raw_double import RawDouble, Seen

Phase = Literal["review", "merge", "refute"]
PHASES: tuple[Phase, ...] = ("review", "merge", "refute")
REFUTERS = 2
"""They are asked at the same time."""
FOUND = {"ada": [finding("Adds one", severity="blocker")], "bo": [finding("No name", 1, "cart.py")], "cy": []}


def phase_of(body: str) -> Phase:
    if "Try to refute" in body:
        return "refute"
    return "merge" if "submit_synthesis" in body else "review"


def request_of(model: str, body: str) -> tuple[str, Phase]:
    """Return a request's model and phase. Which model merges is decided at random."""
    phase = phase_of(body)
    return ("" if phase == "merge" else model), phase


def count_requests(requests: list[Seen]) -> Counter[tuple[str, Phase]]:
    return Counter(request_of(seen.body["model"], json.dumps(seen.body)) for seen in requests)


class Reviews:
    """The reviews of one home. `held`: the model and phase of which no reply comes."""

    def __init__(self, home: TempHome) -> None:
        self.home = home
        self.held: tuple[str, Phase] | None = None
        self.team = {name: Reviewer(found, holds=partial(self._holds, name)) for name, found in FOUND.items()}

    def _holds(self, name: str, asked: str) -> bool:
        return request_of(name, asked) == self.held

    def change(self, number: int) -> None:
        """Make a change that no review has seen."""
        files = ("shop.py", "cart.py")
        parts = [f"--- a/{name}\n+++ b/{name}\n@@ -1 +1,2 @@\n import re\n+total = {number}\n" for name in files]
        (self.home.work / "change.diff").write_text("".join(parts))

    async def review(self, config: str, *arguments: str) -> tuple[int, dict[str, Any], str]:
        """Return the exit code, the report, and what is said beside it."""
        done = await self.command("review", "--json", "--config", config, "--diff", "change.diff", *arguments)
        return done.returncode, json.loads(done.stdout or "{}"), done.stderr

    async def command(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return await anyio.to_thread.run_sync(partial(run_command, self.home, COMMAND_MODULE, *words))

    async def killed(self, config: str, double: RawDouble, held: tuple[str, Phase], *arguments: str) -> None:
        """Kill a review that waits for this reply alone, and has kept all others."""
        before, asked = self._count_replies(), len(double.requests)

        def waits() -> bool:
            counts = count_requests(double.requests[asked:])
            both = sum(times for (_, phase), times in counts.items() if phase == "refute") in (0, REFUTERS)
            return counts[held] == 1 and both and self._count_replies() - before == counts.total() - 1

        self.held = held
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.review, config, *arguments)
            await wait_until(waits)
            kill(self.home)
        self.held = None

    def _count_replies(self) -> int:
        runs = (self.home.work / LOGS).glob("*")
        return sum(event["type"] == "model_replied" for run in runs for event in events_of(run))


async def test_the_same_command_continues_a_killed_review_and_asks_nothing_twice(home: TempHome) -> None:
    """Killed in each phase: the model that was just asked has not replied, so it alone is asked again."""
    reviews = Reviews(home)
    async with reviewing(home, **reviews.team) as (config, double):
        reviews.change(0)
        code, report, said = await reviews.review(config)
        whole = count_requests(double.requests)
        assert code == 1
        assert "interrupted" not in said
        assert {phase for _, phase in whole} == {*PHASES}
        for number, held in enumerate(sorted(whole), start=1):
            reviews.change(number)
            double.requests.clear()
            await reviews.killed(config, double, held)
            code, again, said = await reviews.review(config)
            assert count_requests(double.requests) == whole + Counter([held])
            assert code == 1
            assert "This review was interrupted" in said
            assert [one["title"] for one in again["findings"]] == [one["title"] for one in report["findings"]]
            assert [one["tried_by"] for one in again["findings"]] == [one["tried_by"] for one in report["findings"]]


async def test_a_review_that_has_ended_is_asked_anew_and_so_is_one_of_another_change_or_team(home: TempHome) -> None:
    reviews = Reviews(home)
    async with reviewing(home, **reviews.team) as (config, double):
        reviews.change(0)
        await reviews.review(config)
        await reviews.review(config)
        whole = count_requests(double.requests)
        assert all(times == 2 for times in whole.values())
        await reviews.killed(config, double, ("cy", "review"))
        double.requests.clear()
        reviews.change(1)
        _, _, said = await reviews.review(config)
        assert "interrupted" not in said
        assert count_requests(double.requests)["bo", "review"] == 1
        reviews.change(0)
        _, _, said = await reviews.review(config, "--max-usd", "3")
        assert "interrupted" not in said
        assert count_requests(double.requests)["bo", "review"] == 2


async def test_a_run_of_a_killed_review_that_a_user_continued_is_used(home: TempHome) -> None:
    """Here, as `massgen` names the command; or in a runner, which is killed, too."""
    reviews = Reviews(home)
    held: tuple[str, Phase] = ("cy", "review")
    async with reviewing(home, **reviews.team) as (config, double):
        reviews.change(0)
        await reviews.killed(config, double, held)
        assert (await reviews.command("resume", "--here")).returncode == 0
        assert (await reviews.review(config))[0] == 1
        assert count_requests(double.requests)[held] == 2
        double.requests.clear()
        reviews.change(1)
        await reviews.killed(config, double, held)
        listed = await reviews.command("runs", "--json")
        reviews.held = held
        assert (await reviews.command("resume", json.loads(listed.stdout)["runs"][0]["run_id"])).returncode == 0
        await wait_until(lambda: count_requests(double.requests)[held] == 2)
        for runner in home.processes(RUNNER_MODULE):
            end(runner, signal.SIGKILL)
        reviews.held = None
        assert (await reviews.review(config))[0] == 1
    counts = count_requests(double.requests)
    assert (counts[held], counts["ada", "review"], counts["", "merge"]) == (3, 1, 1)


async def test_a_killed_review_that_leaves_no_logs_is_begun_anew(home: TempHome) -> None:
    reviews = Reviews(home)
    async with reviewing(home, **reviews.team) as (config, double):
        reviews.change(0)
        reviews.held = ("cy", "review")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(reviews.review, config, "--no-logs")
            await wait_until(lambda: len(double.requests) == len(FOUND))
            kill(home)
        reviews.held = None
        await reviews.review(config, "--no-logs")
    assert count_requests(double.requests)["ada", "review"] == 2
    assert not [*home.path.glob("reviews/*")]
