"""A few scenarios of the conformance suite, those that our own code answers; `make conformance` runs all of them."""

import anyio.to_thread

from tests.conformance.suite import server_under_test
from tests.harness import TempHome, home

__all__ = ["home"]

SCENARIOS = {
    "2026-07-28": ("server-stateless", "tasks-lifecycle", "tasks-capability-negotiation", "tasks-mrtr-input"),
    "2025-11-25": ("server-initialize", "resources-subscribe", "tools-call-elicitation"),
}


async def test_the_conformance_suite_finds_nothing_wrong_with_what_our_own_code_answers(home: TempHome) -> None:
    async with server_under_test(home) as server:
        for revision, scenarios in SCENARIOS.items():
            for scenario in scenarios:
                options = ("--spec-version", revision, "--force", "--scenario", scenario)
                verdict = await anyio.to_thread.run_sync(lambda options=options: server.check(*options))
                assert verdict.failed == 0, (revision, scenario, verdict.found)
                assert verdict.passed > 0, verdict.told
