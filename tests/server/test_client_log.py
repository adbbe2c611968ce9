"""While a call waits, a client that wants to is sent the run's log and progress; another one is sent nothing."""

from typing import Any

import pytest
from mcp.types import LoggingMessageNotificationParams

from tests.harness import MODES, Mode, TempHome, agent, call

pytestmark = pytest.mark.filterwarnings("ignore:The logging capability is deprecated")  # what older clients use

ASK: dict[str, Any] = {"call": "ask_the_asker", "arguments": {"question": "Metres or feet?"}}


class Log:
    """What a client is sent; give `heard` to it as its logging callback."""

    def __init__(self) -> None:
        self.messages: list[LoggingMessageNotificationParams] = []

    async def heard(self, params: LoggingMessageNotificationParams) -> None:
        self.messages.append(params)


async def logged(home: TempHome, mode: Mode, level: Any) -> list[LoggingMessageNotificationParams]:
    """What is sent while a call waits for a run that goes on and completes."""
    log = Log()
    config = home.config("asking", agent("solo", ASK, {"answer": "in metres"}), orchestrator={"allow_questions": True})
    abilities: dict[str, Any] = {"logging_callback": log.heard}
    if level and mode == "2026-07-28":
        abilities["log_level"] = level
    async with home.client(mode, **abilities) as client:
        if level and mode == "legacy":
            await client.set_logging_level(level)  # pyright: ignore[reportDeprecated] - what older clients use
        run_id = (await call(client, "start_run", question="q", config=config))["run_id"]
        await call(client, "wait_run", run_id=run_id, timeout_seconds=45, cursor=0)
        await call(client, "control_run", run_id=run_id, action="answer", message="Metres.")
        done = await call(client, "wait_run", run_id=run_id, timeout_seconds=45)
        assert done["status"] == "completed"
    return [message for message in log.messages if message.logger == run_id]


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_a_client_that_asks_for_a_log_is_sent_what_happens_in_the_run(home: TempHome, mode: Mode) -> None:
    messages = await logged(home, mode, "info")
    assert any("Metres or feet?" in str(message.data) for message in messages)
    assert {message.level for message in messages} <= {"info", "warning", "error"}


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_a_client_is_sent_nothing_below_its_level(home: TempHome, mode: Mode) -> None:
    assert await logged(home, mode, "error") == []


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_that_asks_for_nothing_is_sent_no_log(home: TempHome, mode: Mode) -> None:
    assert await logged(home, mode, None) == []
