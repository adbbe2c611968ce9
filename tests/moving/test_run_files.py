"""A file that comes from another machine is taken as it was written, or refused in words, and then nothing is there."""

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from massgen_mcp.runs.engine.event_log import SEAL_BYTES, sealed
from tests.harness import TempHome, agent, home
from tests.moving.stores import Stored, stored

__all__ = ["home"]

Members = list[tuple[tarfile.TarInfo, bytes]]


@pytest.fixture
def exported(home: TempHome) -> Iterator[tuple[Path, Stored]]:
    """A file of a run that has ended, and a store that does not know it."""
    with stored(home, "embedded", "here") as here, stored(home, "embedded", "there") as there:
        run_id = here.start(home.config("plain", agent("ada", {"answer": "forty-two"})))
        here.verb("wait", run_id)
        file = home.work / "run.tar.gz"
        here.verb("export", run_id, "--to", file)
        yield file, there


def members(file: Path) -> Members:
    with tarfile.open(file) as archive:
        return [(one, content.read() if (content := archive.extractfile(one)) else b"") for one in archive]


def write(file: Path, found: Members, *, sums: bool = True) -> None:
    """`sums`: with the checksums of what is written."""
    with tarfile.open(file, "w:gz") as archive:
        lines = b""
        for info, content in found:
            if info.name == "SHA256SUMS" and sums:
                content = lines  # noqa: PLW2901
            if info.isreg() and info.name != "SHA256SUMS":
                lines += f"{hashlib.sha256(content).hexdigest()}  {info.name}\n".encode()
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))


def refused(there: Stored, file: Path, told: str, code: int = 1) -> None:
    assert told in (said := there.verb("import", file, code=code)), said
    assert there.told("runs")["runs"] == []
    assert there.home.runs == []
    assert not (there.home.path / "moving").exists()


def test_ordinary_programs_read_the_file(exported: tuple[Path, Stored]) -> None:
    file, _ = exported
    found = {info.name: content for info, content in members(file)}
    manifest = json.loads(found["manifest.json"])
    (told,) = manifest["runs"]
    assert (manifest["format"], manifest["v"], told["state"]) == ("massgen-mcp run", 1, "completed")
    lines = found[f"{told['run']['run_id']}/events.jsonl"].splitlines()
    assert [json.loads(line)["seq"] for line in lines] == list(range(1, len(lines) + 1))
    for line in found["SHA256SUMS"].decode().splitlines():
        digest, name = line.split("  ", 1)
        assert hashlib.sha256(found[name]).hexdigest() == digest


@pytest.mark.parametrize("part", [0.0, 0.01, 0.5, 0.9, 0.999])
def test_a_file_that_was_cut_short_is_refused(exported: tuple[Path, Stored], part: float) -> None:
    file, there = exported
    file.write_bytes(file.read_bytes()[: int(file.stat().st_size * part)])
    refused(there, file, "cannot import this file")


def test_a_file_without_its_end_is_refused(exported: tuple[Path, Stored]) -> None:
    file, there = exported
    write(file, members(file)[:-1])
    refused(there, file, "its end is missing")


@pytest.mark.parametrize("name", ["manifest.json", "config.json", "events.jsonl", "answer.txt"])
def test_a_file_in_which_something_was_changed_is_refused(exported: tuple[Path, Stored], name: str) -> None:
    """The twin has new checksums for what was changed, and is refused for nothing but what that says, if anything."""
    file, there = exported
    found = [
        (info, content.replace(b"forty-two", b"forty-one").replace(b'"v": 1', b'"v":  1'))
        if info.name.endswith(name)
        else (info, content)
        for info, content in members(file)
    ]
    write(file, found, sums=False)
    refused(there, file, "the checksums don't match")
    write(file, found)
    if name in ("config.json", "events.jsonl"):
        refused(there, file, "damaged" if name == "events.jsonl" else "was changed", code=5)
    else:
        assert "imported, completed" in there.verb("import", file), "nothing else knows of it"


def test_a_bit_that_fell_over_is_noticed(exported: tuple[Path, Stored]) -> None:
    file, there = exported
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(bytes(content))
    refused(there, file, "cannot import this file")


def changed_manifest(key: str, value: object) -> Callable[[Members, str], None]:
    def change(found: Members, run_id: str) -> None:
        del run_id
        manifest = json.loads(found[0][1])
        manifest[key] = value
        found[0] = (found[0][0], json.dumps(manifest).encode())

    return change


def added(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", size: int = 0) -> Callable[[Members, str], None]:
    def change(found: Members, run_id: str) -> None:
        info = tarfile.TarInfo(name.replace("RUN", run_id))
        info.type, info.linkname = kind, link
        found.insert(1, (info, bytes(size)))

    return change


def set_amount(value: object) -> Callable[[Members, str], None]:
    """Have the manifest say that the run has cost this."""

    def change(found: Members, run_id: str) -> None:
        del run_id
        manifest = json.loads(found[0][1])
        manifest["runs"][0]["run"]["usd"] = value
        found[0] = (found[0][0], json.dumps(manifest).encode())

    return change


def raise_budget(value: str) -> Callable[[Members, str], None]:
    def change(found: Members, run_id: str) -> None:
        del run_id
        manifest = json.loads(found[0][1])
        manifest["runs"][0]["controls"] = [["raise_budget", value]]
        found[0] = (found[0][0], json.dumps(manifest).encode())

    return change


def rewrite_replies(*parts: tuple[str, str]) -> Callable[[Members, str], None]:
    """Have the journal, with checksums that are right, tell other figures of each reply."""

    def change(found: Members, run_id: str) -> None:
        del run_id
        for place, (info, content) in enumerate(found):
            if info.name.endswith("events.jsonl"):
                lines = [line[:-SEAL_BYTES].decode() + "}" for line in content.splitlines()]
                for old, new in parts:
                    assert any(old in line for line in lines), lines
                    lines = [line.replace(old, new) for line in lines]
                found[place] = (info, b"".join(sealed(line) for line in lines))

    return change


HOSTILE = {
    "a negative cost": (set_amount(-5.0), "`usd` in manifest.json is negative"),
    "a cost that is no number": (set_amount(float("inf")), "`usd` in manifest.json is negative or not a number"),
    "a budget below nothing": (raise_budget("-1.0"), "a raised budget in manifest.json is negative"),
    "tokens below nothing": (
        rewrite_replies(('"output_tokens":', '"output_tokens":-1')),
        "`output_tokens` of event",
    ),
    "another version": (changed_manifest("v", 2), "upgrade"),
    "another format": (changed_manifest("format", "tar"), "its manifest isn't valid"),
    "no runs": (changed_manifest("runs", []), "its manifest isn't valid"),
    "above": (added("../escaped"), "which isn't part of a run"),
    "above the run": (added("RUN/../escaped"), "which isn't part of a run"),
    "absolute": (added("/escaped"), "which isn't part of a run"),
    "a link": (added("RUN/link", tarfile.SYMTYPE, "/etc"), "which isn't part of a run"),
    "a hard link": (added("RUN/workspaces/link", tarfile.LNKTYPE, "/etc/passwd"), "which isn't part of a run"),
    "a device": (added("RUN/workspaces/device", tarfile.CHRTYPE), "which isn't part of a run"),
    "what git obeys": (added("RUN/changes/objects.git/config"), "which isn't part of a run"),
    "other objects": (added("RUN/changes/objects.git/objects/info/alternates"), "which isn't part of a run"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_file_is_refused(exported: tuple[Path, Stored], kind: str) -> None:
    file, there = exported
    change, told = HOSTILE[kind]
    found = members(file)
    change(found, json.loads(found[0][1])["runs"][0]["run"]["run_id"])
    write(file, found)
    refused(there, file, told, code=5 if "negative" in told or "of event" in told else 1)
    assert not (there.home.path / "escaped").exists()


def test_nothing_is_written_through_a_link(exported: tuple[Path, Stored], tmp_path: Path) -> None:
    file, there = exported
    found = members(file)
    run_id = json.loads(found[0][1])["runs"][0]["run"]["run_id"]
    added(f"{run_id}/workspaces/link/escaped")(found, run_id)
    added(f"{run_id}/workspaces/link", tarfile.SYMTYPE, str(tmp_path))(found, run_id)
    write(file, found)
    refused(there, file, "which isn't part of a run")
    assert not (tmp_path / "escaped").exists()


def test_a_file_that_would_unpack_to_more_than_may_be_is_refused_before(exported: tuple[Path, Stored]) -> None:
    file, there = exported
    giant = tarfile.TarInfo("run-aaaaaaaaaaaaaaaaaaaaaaaaaa/workspaces/giant")
    giant.size = 2**50
    header = tarfile.TarInfo("header")
    header.type, header.size = tarfile.XHDTYPE, 2**40
    for info in (giant, header):
        file.write_bytes(gzip.compress(info.tobuf(tarfile.GNU_FORMAT) + bytes(1 << 20)))
        refused(
            there,
            file,
            "it exceeds 17179869184 bytes or 200000 files" if info is giant else "one of its headers is too long",
        )


def test_what_is_no_file_of_ours_is_refused(exported: tuple[Path, Stored]) -> None:
    file, there = exported
    for content in (b"", b"no archive", gzip.compress(b"no archive"), gzip.compress(bytes(10240))):
        file.write_bytes(content)
        refused(there, file, "cannot import this file")
    refused(there, file.parent, "cannot import")
    refused(there, file.with_name("none"), "No such file")
