"""A yes holds for exactly what a person saw: what else there is asks again, and says what is new."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.harness import call, expect_error
from tests.request.scene import Scene, agent, tools

GATEWAY = "https://gateway.example/v1"
SKILL = "---\nname: look\ndescription: Looks.\n---\nLook."


def shared(place: Scene, **settings: Any) -> Path:
    """A team's config that needs a yes, for its host."""
    return place.write(place.found, {"agents": [agent(base_url=GATEWAY)], **settings})


def skills_of(place: Scene) -> Path:
    """A skill `look` in the project, which a config uses that needs a yes."""
    folder = place.repository / ".agent" / "skills" / "look"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(SKILL)
    (folder / "steps.txt").write_text("One.")
    shared(place, orchestrator={"coordination": {"use_skills": True}})
    return folder


async def test_a_yes_does_not_hold_for_what_the_same_file_asks_for_elsewhere(
    place: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TEAM_KEY", "sk-of-my-team")
    backend = {"type": "openai", "model": "gpt-5", "api_key_env": "MY_TEAM_KEY"}
    place.write(place.found, {"agents": [{"id": "a", "backend": backend}]})
    await place.verb_beside("trust", str(place.found))
    async with tools() as client:
        assert (await call(client, "start_run", question="q", dry_run=True))["status"] == "planned"
        monkeypatch.setenv("OPENAI_BASE_URL", GATEWAY)
        code, message = await expect_error(client, "start_run", question="q", dry_run=True)
        assert code == "config_untrusted"
        assert (
            f"{place.found} came with this directory, and has changed since you accepted it; nothing was started."
            in message
        )
        assert "  ! key: MY_TEAM_KEY to gateway.example\n" in message
        assert "  + host: gateway.example\n  + key: MY_TEAM_KEY to gateway.example\n" in message
        await place.verb_beside("trust", str(place.found))
        assert (await call(client, "start_run", question="q", dry_run=True))["status"] == "planned"


@pytest.mark.parametrize("file", ["SKILL.md", "steps.txt", "sub/new.py"])
async def test_a_yes_does_not_hold_for_other_skills_whatever_their_files_are_called(place: Scene, file: str) -> None:
    folder = skills_of(place)
    await place.verb_beside("trust", str(place.found))
    async with tools() as client:
        assert (await call(client, "start_run", question="q", dry_run=True))["status"] == "planned"
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_text(f"{SKILL} Then send it away.")
        code, message = await expect_error(client, "start_run", question="q", dry_run=True)
    assert code == "config_untrusted"
    assert "Its permissions haven't changed since it was accepted on " in message
    assert "only its text or skills have.\n" in message


def test_after_a_change_every_question_says_what_is_new(place: Scene) -> None:
    shared(place)
    assert place.verb("trust", str(place.repository))[0] == 0
    shared(place, budget={"max_usd": 25})
    code, _, err = place.run("--automation", "q")
    assert code == 1
    assert "nobody accepted" not in err
    lines = err.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("New since it was accepted on "))
    assert lines[at + 1] == "  + spends: up to 25 US dollars"
    assert lines[at + 2] == "  + spends: up to 25000000 tokens", "a million for each dollar"
    assert lines[at + 3].startswith("To accept its current version, run ")
    code, out, _ = place.verb("trust", str(place.repository))
    assert code == 0
    assert "  + spends: up to 25 US dollars\n" in out
    assert "New since" not in place.verb("trust", str(place.repository))[1], "nothing changed"


def test_a_config_that_asks_for_less_says_what_is_gone(place: Scene) -> None:
    shared(place, orchestrator={"context_paths": [{"path": str(place.repository.parent), "permission": "read"}]})
    assert place.verb("trust", str(place.repository))[0] == 0
    shared(place)
    code, _, err = place.run("--automation", "q")
    assert code == 1
    assert "haven't changed" not in err
    lines = err.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("It asks for nothing new since "))
    assert lines[at].endswith(", and no longer for:")
    assert lines[at + 1] == f"  - reads: {place.repository.parent}"
    assert place.verb("trust", str(place.repository))[0] == 0
    assert place.run("--automation", "--dry-run", "q")[0] == 0


async def test_a_yes_to_a_text_holds_where_this_version_counts_its_amounts_in_another_way(place: Scene) -> None:
    """An earlier version allowed ten million tokens beside any money, and stored that."""
    shared(place, budget={"max_usd": 25})
    await place.verb_beside("trust", str(place.found))
    (stored,) = (place.state / "trust").glob("*.json")
    stored.write_text(stored.read_text().replace("25000000", "10000000"))
    async with tools() as client:
        assert (await call(client, "start_run", question="q", dry_run=True))["status"] == "planned"
        shared(place, budget={"max_usd": 26})
        code, message = await expect_error(client, "start_run", question="q", dry_run=True)
    assert code == "config_untrusted"
    assert "  + spends: up to 26 US dollars\n" in message, "another text asks again"


def _sparse(folder: Path) -> None:
    with (folder / "SKILL.md").open("ab") as file:
        file.truncate(6 * 1024**3)


def _many(folder: Path) -> None:
    for number in range(10_001):
        (folder / str(number)).touch()


def _pipe(folder: Path) -> None:
    os.mkfifo(folder / "pipe.md")


def _large_together(folder: Path) -> None:
    for number in range(3):
        with (folder / f"{number}.bin").open("wb") as file:
            file.truncate(22 * 1024**2)


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (_sparse, "look/SKILL.md is too large: skills can total at most 64 MiB"),
        (_large_together, "is too large: skills can total at most 64 MiB"),
        (_many, ".agent/skills has more than 10,000 files and directories"),
        (_pipe, "look/pipe.md isn't a regular file"),
    ],
)
def test_skills_that_nobody_can_check_end_in_the_refusal_and_cannot_be_accepted(
    place: Scene, spoil: Any, why: str
) -> None:
    spoil(skills_of(place))
    for options in (["--automation"], ["--trust"], [f"--trust=sha256:{'0' * 64}"]):
        code, _, err = place.run(*options, "q")
        assert code == 1
        assert "  ! host: gateway.example\n" in err
        assert "You can't accept this config yet: cannot check the skills: " in err
        assert why in err
    code, _, err = place.verb("trust", str(place.found))
    assert (code, why in err) == (1, True)
    assert place.untouched
    shutil.rmtree(place.repository / ".agent")  # every file that a test leaves is searched for keys


def test_links_among_skills_are_not_followed(place: Scene) -> None:
    folder = skills_of(place)

    def digest() -> str:
        code, out, _ = place.verb("trust", str(place.found))
        assert code == 0
        return out.splitlines()[-1]

    before = digest()
    for name, target in (("loop", folder.parent), ("endless.md", Path("/dev/zero")), ("gone", Path("nowhere"))):
        (folder / name).symlink_to(target)
    (folder / "outside.md").symlink_to(place.person / ".bashrc")
    assert digest() == before
