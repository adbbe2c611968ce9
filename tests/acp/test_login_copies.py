"""The copy of a login: it is brought into a home as a CLI may have left it, and back where it was renewed."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from massgen_mcp.backends.acp.login import LoginCopy, write_home_file

OLD, NEW, OWN = (json.dumps({"tokens": name}) for name in ("old", "new", "own"))
NAME = ".codex/auth.json"


class Places:
    def __init__(self, directory: Path) -> None:
        self.home, self.victim, self.user = (directory / name for name in ("cli", "victim", "user"))
        for place in (self.home, self.victim, self.user):
            place.mkdir()
        (self.victim / "full").write_text("kept")
        self.own = self.user / "auth.json"
        self.own.write_text(OLD)
        self.copy = LoginCopy(self.own, self.home, NAME, directory / "known")
        self.inside = self.home / NAME

    def victim_is_untouched(self) -> bool:
        return [(one.name, one.read_text()) for one in self.victim.iterdir()] == [("full", "kept")]


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path)


LEFT: dict[str, Callable[[Places], object]] = {
    "nothing": lambda at: at.home,
    "a directory that is a link": lambda at: (at.home / ".codex").symlink_to(at.victim),
    "a directory that is a link to nothing": lambda at: (at.home / ".codex").symlink_to(at.victim / "new"),
    "a directory that is a link to itself": lambda at: (at.home / ".codex").symlink_to(".codex"),
    "a directory that is a file": lambda at: (at.home / ".codex").write_text("x"),
    "a directory that is a pipe": lambda at: os.mkfifo(at.home / ".codex"),
    "a file that is a link to nothing": lambda at: _linked(at, at.victim / "index.lock"),
    "a file that is a link to a file": lambda at: _linked(at, at.victim / "full"),
    "a file that is a link through dots": lambda at: _linked(at, Path("../../victim/full")),
    "a file that is the user's own": lambda at: _linked(at, at.own),
    "a file that is a pipe": lambda at: ((at.home / ".codex").mkdir(), os.mkfifo(at.inside)),
    "a file with another name": lambda at: ((at.home / ".codex").mkdir(), os.link(at.victim / "full", at.inside)),
    "a file that nobody may read": lambda at: ((at.home / ".codex").mkdir(), at.inside.touch(0)),
}  # fmt: skip


def _linked(at: Places, to: Path) -> None:
    (at.home / ".codex").mkdir()
    at.inside.symlink_to(to)


@pytest.mark.parametrize("left", LEFT)
def test_a_login_is_brought_into_a_home_and_through_no_link(places: Places, left: str) -> None:
    LEFT[left](places)
    places.copy.begin()
    assert (places.inside.read_text(), places.inside.is_symlink()) == (OLD, False)
    assert places.victim_is_untouched()
    assert places.own.read_text() == OLD


def test_what_is_in_the_way_of_settings_is_replaced(places: Places) -> None:
    (places.home / ".copilot").symlink_to(places.victim)
    write_home_file(places.home, ".copilot/mcp-config.json", b"{}")
    assert (places.home / ".copilot/mcp-config.json").read_bytes() == b"{}"
    assert places.victim_is_untouched()


WRITTEN: dict[str, Callable[[Places], object]] = {
    "a link to a secret": lambda at: (at.inside.unlink(), at.inside.symlink_to(at.victim / "full")),
    "a link to a login": lambda at: ((at.victim.parent / "x").write_text(NEW), at.inside.unlink(),
                                     at.inside.symlink_to(at.victim.parent / "x")),
    "a second name of a login": lambda at: ((at.victim.parent / "x").write_text(NEW), at.inside.unlink(),
                                            os.link(at.victim.parent / "x", at.inside)),
    "a directory that is a link": lambda at: ((at.victim.parent / "y").mkdir(),
                                              (at.victim.parent / "y/auth.json").write_text(NEW),
                                              (at.home / ".codex").rename(at.home / "z"),
                                              (at.home / ".codex").symlink_to(at.victim.parent / "y")),
    "a pipe": lambda at: (at.inside.unlink(), os.mkfifo(at.inside)),
    "a directory": lambda at: (at.inside.unlink(), at.inside.mkdir()),
    "nothing": lambda at: at.inside.unlink(),
    "an empty file": lambda at: at.inside.write_text(""),
    "half a login": lambda at: at.inside.write_text(NEW[:7]),
    "a list": lambda at: at.inside.write_text("[1]"),
    "settings of another kind": lambda at: at.inside.write_text('{"evil": 1}'),
    "a file that is too large": lambda at: at.inside.write_text(json.dumps({"tokens": "x" * (1 << 20)})),
    "brackets without an end": lambda at: at.inside.write_text("[" * 100_000),
}  # fmt: skip


@pytest.mark.parametrize("written", WRITTEN)
def test_what_is_no_renewed_login_does_not_become_the_users(places: Places, written: str) -> None:
    places.copy.begin()
    WRITTEN[written](places)
    places.copy.exchange()
    assert (places.own.read_text(), [*places.user.iterdir()]) == (OLD, [places.own])
    assert places.victim_is_untouched()


def test_a_renewed_login_becomes_the_users_with_its_rights_and_through_a_link_of_the_users(tmp_path: Path) -> None:
    places = Places(tmp_path)
    (tmp_path / "link").symlink_to(places.own)
    places.own.chmod(0o640)
    copy = LoginCopy(tmp_path / "link", places.home, NAME, tmp_path / "known")
    copy.begin()
    places.inside.write_text(NEW)
    copy.exchange()
    assert (places.own.read_text(), places.own.stat().st_mode & 0o777) == (NEW, 0o640)
    assert (tmp_path / "link").is_symlink()


def test_a_login_that_the_user_changed_meanwhile_stays(places: Places) -> None:
    places.copy.begin()
    places.own.write_text(OWN)
    places.inside.write_text(NEW)
    places.copy.exchange()
    assert places.own.read_text() == OWN
    places.copy.begin()
    assert places.inside.read_text() == OWN


def test_a_user_who_logged_out_stays_logged_out(places: Places) -> None:
    places.copy.begin()
    places.own.unlink()
    places.inside.write_text(NEW)
    places.copy.exchange()
    assert not places.own.exists()


def test_a_login_that_another_agent_renewed_reaches_the_copy(tmp_path: Path) -> None:
    places = Places(tmp_path)
    (tmp_path / "second").mkdir()
    second = LoginCopy(places.own, tmp_path / "second", NAME, tmp_path / "second-known")
    for copy in (places.copy, second):
        copy.begin()
    places.inside.write_text(NEW)
    for copy in (places.copy, second):
        copy.exchange()
    assert (tmp_path / "second" / NAME).read_text() == NEW


def test_a_login_that_was_renewed_before_its_process_was_lost_is_taken_up(places: Places) -> None:
    places.copy.begin()
    places.inside.write_text(NEW)
    places.copy.begin()
    assert (places.own.read_text(), places.inside.read_text()) == (NEW, NEW)
