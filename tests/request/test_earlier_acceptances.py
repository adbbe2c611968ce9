"""What was accepted with a version that kept the words of the question still holds, as far as it is known to mean the
same; where it isn't, the person is asked once more, and told why.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.harness import call, expect_error
from tests.request.scene import Scene, needs_consent, tools
from tests.request.test_consent import OPENAI, project, team

__all__ = ["project"]
EARLIER: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("earlier_acceptances.json").read_text())
"""By name: configs that need a yes, and the lines that the earlier version stored of them."""


def accept(place: Scene, *lines: str) -> Path:
    """Keep a yes to the config that lies there, as the earlier version did."""
    digest = f"sha256:{hashlib.sha256(place.found.read_bytes()).hexdigest()}"
    kept: dict[str, Any] = {
        "path": str(place.found),
        "digest": digest,
        "demands": lines,
        "pairs": [],
        "accepted": 1_700_000_000.5,
    }
    name = hashlib.sha256(os.fsencode(place.found)).hexdigest()[:32]
    file = place.state / "trust" / f"{name}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(kept))
    return file


async def test_a_yes_to_the_same_text_holds_for_every_kind_of_permission(project: Scene) -> None:
    async with tools() as client:
        for name, one in EARLIER.items():
            project.write(project.found, one["config"])
            kept = accept(project, *(line.replace("{repository}", str(project.repository)) for line in one["demands"]))
            assert not await needs_consent(client), name
            kept.unlink()
            assert await needs_consent(client), name


async def test_what_depends_on_the_machine_needs_its_line(project: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = {"type": "openai", "model": "gpt-5", "api_key_env": "MY_TEAM_KEY"}
    project.write(project.found, team({"id": "a", "backend": backend}))
    accept(project, "host: api.openai.com", "key: MY_TEAM_KEY to api.openai.com")
    async with tools() as client:
        assert (await call(client, "start_run", question="q", dry_run=True))["status"] == "planned"
        monkeypatch.setenv("OPENAI_BASE_URL", "https://gateway.example/v1")
        code, message = await expect_error(client, "start_run", question="q", dry_run=True)
    assert code == "config_untrusted"
    assert "  + host: gateway.example\n  + key: MY_TEAM_KEY to gateway.example\n" in message


async def test_where_the_words_fit_more_than_one_path_the_person_is_asked_once_more_and_told_why(
    project: Scene,
) -> None:
    folder = project.repository / "src\u2028a"
    folder.mkdir()
    paths = {"context_paths": [{"path": folder.name, "permission": "write"}]}
    project.write(project.found, team(OPENAI, orchestrator=paths))
    shown = ascii(str(folder))
    kept = accept(project, "host: api.openai.com", f"reads: {shown}", f"writes: {shown}")
    why = f"Please confirm again for {shown}, {shown}: an earlier version of massgen stored"
    async with tools() as client:
        code, message = await expect_error(client, "start_run", question="q", dry_run=True)
        assert (code, why in message) == ("config_untrusted", True), message
        await project.verb_beside("trust", str(project.found))
        assert json.loads(kept.read_text())["permissions"], "from now on it is kept as values"
        assert (await call(client, "start_run", question="q", dry_run=True))["status"] == "planned"


@pytest.mark.parametrize("change", [{"kind": "later"}, {"further": 1}, {"host": 7}])
async def test_a_stored_permission_that_this_version_does_not_know_voids_the_yes(
    project: Scene, change: dict[str, Any]
) -> None:
    project.write(project.found, EARLIER["a foreign host"]["config"])
    await project.verb_beside("trust", str(project.found))
    (kept,) = (project.state / "trust").iterdir()
    async with tools() as client:
        assert (await call(client, "start_run", question="q", dry_run=True))["status"] == "planned"
        document = json.loads(kept.read_text())
        document["permissions"][0] |= change
        kept.write_text(json.dumps(document))
        assert (await expect_error(client, "start_run", question="q", dry_run=True))[0] == "config_untrusted"
