"""The number of vendors of the team that a user gets who names none: each place that shows the result says it."""

from collections.abc import Generator
from contextlib import contextmanager

import pytest

from benchmarks.local_model import LocalModel
from tests.commands import run_command
from tests.harness import COMMAND_MODULE, TempHome, call, home
from tests.planted import PLANTED

__all__ = ["home"]

TWO = "The team's 3 agents use models from 2 vendors: openai, claude."
ONE = "The team's 3 agents use models from 1 vendor: claude."


@contextmanager
def with_keys(home: TempHome, *names: str) -> Generator[TempHome]:
    """Yield a home whose only keys are these, beside a double of both vendors."""
    with LocalModel() as model:
        keys = {name: f"sk-{name.lower().replace('_', '-')}-0123456789" for name in names}
        addresses = {"OPENAI_BASE_URL": model.base_url, "ANTHROPIC_BASE_URL": model.root}
        yield home.with_variables(**{**dict.fromkeys(PLANTED, ""), **keys, **addresses})


@pytest.mark.parametrize(
    ("keys", "sentence"), [(("OPENAI_API_KEY", "ANTHROPIC_API_KEY"), TWO), (("ANTHROPIC_API_KEY",), ONE)]
)
async def test_a_result_says_how_many_vendors_took_part(home: TempHome, keys: tuple[str, ...], sentence: str) -> None:
    with with_keys(home, *keys) as here:
        shown = run_command(here, COMMAND_MODULE, "--no-display", "6 times 7?")
        async with here.client() as client:
            result = await call(client, "start_run", question="6 times 7?", wait_seconds=50)
            read = await call(client, "get_result", run_id=result["run_id"])
    assert shown.returncode == 0, shown.stderr
    assert sentence in " ".join((shown.stdout + shown.stderr).split())
    assert sentence in read["note"]
    assert len(read["votes"]) == 3
