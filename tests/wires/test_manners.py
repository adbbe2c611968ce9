"""Models that do not call tools as they are asked to take part all the same, and what is no action is taken for none."""

from pathlib import Path

import pytest

from tests.wires.manners import MANNERS, SCENES, Manner, check, play


@pytest.mark.parametrize("manner", MANNERS, ids=lambda manner: manner.title)
@pytest.mark.parametrize(("scene", "size", "files"), SCENES, ids=[scene for scene, *_ in SCENES])
async def test_a_model_that_acts_in_its_own_manner_completes_the_run(
    manner: Manner, scene: str, size: int, files: bool, tmp_path: Path
) -> None:
    check(manner, await play(tmp_path, manner.respond, size, files=files), getattr(manner, scene))
