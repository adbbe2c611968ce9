"""The long harnesses of commands in a short form, each with its known-bad twin, which must fail."""

import pytest

from massgen_mcp.sandbox import LevelName
from tests.harness import TempHome, home
from tests.sandbox.table import LEVELS
from tests.soak.commands import PATIENCE_SECONDS, by_killing_a_bare_shell, commands, swaps

__all__ = ["home"]

pytestmark = [pytest.mark.long, pytest.mark.uncounted]


@pytest.mark.parametrize("level", LEVELS)
async def test_nothing_of_a_hostile_command_is_left_however_it_ends(home: TempHome, level: LevelName) -> None:
    told = await commands(home, each=2, levels=(level,), most_seconds=PATIENCE_SECONDS)
    assert "12 hostile commands" in told
    assert "0 left" in told


async def test_a_shell_that_is_only_started_leaves_what_it_started_behind(home: TempHome) -> None:
    harmless = {"session leaver": "setsid sh -c 'sleep 20; : $0' $MARK & sleep 20; : $MARK"}
    ends = {"kill": by_killing_a_bare_shell}
    with pytest.raises(AssertionError, match="1 of 1 were slow"):
        await commands(home, each=1, levels=LEVELS[:1], most_seconds=5, hostile=harmless, ends=ends)


@pytest.mark.parametrize("level", LEVELS)
async def test_no_swap_of_a_directory_for_a_link_leads_a_command_out(home: TempHome, level: LevelName) -> None:
    assert "0 read or written outside" in await swaps(home, each=1_000, levels=(level,))
