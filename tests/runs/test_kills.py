"""The kill harness in its short form, and the twins that it must catch. `make soak` runs the long form."""

import anyio
import pytest

from massgen_mcp.runs.store.news import SocketFollower
from massgen_mcp.runs.view import run_view
from tests.harness import TempHome
from tests.soak.kills import kill_runners, kill_servers, twin_of

pytestmark = [pytest.mark.long, pytest.mark.uncounted]


async def test_runs_whose_runner_is_killed_at_any_moment_end_once_and_whole(home: TempHome) -> None:
    assert "lost 0, doubled 0, torn 0, orphans 0, unheard 0" in await kill_runners(home, kills=3, seed=1)


async def test_a_journal_that_is_written_later_does_not_survive_the_kills(home: TempHome) -> None:
    with pytest.raises(AssertionError, match=r"doubled [1-9]"):
        await kill_runners(twin_of(home, "late_journal"), kills=2, seed=1)


async def test_followers_that_do_not_notice_that_their_runner_is_gone_do_not_hear_the_end(
    home: TempHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = SocketFollower.changed

    async def never_ends(follower: SocketFollower) -> bool:
        if not await changed(follower):
            await anyio.sleep_forever()
        return True

    monkeypatch.setattr(SocketFollower, "changed", never_ends)
    monkeypatch.setattr(run_view, "SAFETY_SECONDS", 10_000.0)  # else they look all the same, if runs take so long
    with pytest.raises(AssertionError, match=r"unheard [1-9]"):
        await kill_runners(home, kills=1, seed=1, patience=1)


async def test_a_run_that_a_killed_server_acknowledged_is_there_once(home: TempHome) -> None:
    assert "lost 0, doubled 0, torn 0, orphans 0" in await kill_servers(home, kills=5, seed=1)


async def test_a_store_that_is_written_later_does_not_survive_the_kills(home: TempHome) -> None:
    with pytest.raises(AssertionError, match=r"lost [1-9]|doubled [1-9]"):
        await kill_servers(twin_of(home, "late_store"), kills=5, seed=1)
