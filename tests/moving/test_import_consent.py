"""A run from elsewhere that would start programs, read paths or ask hosts waits until a person has accepted that."""

import json
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from tests.harness import TempHome, after, agent, call, expect_error, home, poll_until
from tests.moving.stores import Stored, stored
from tests.moving.test_run_files import members, write
from tests.needs import needs

__all__ = ["home"]
GPT = {"type": "openai", "model": "gpt-5", "base_url": "http://127.0.0.1:1/v1"}


@pytest.fixture
def homes(home: TempHome) -> Iterator[tuple[Stored, Stored]]:
    with stored(home, "embedded", "here") as first, stored(home, "embedded", "there") as second:
        yield first, second


def left(here: Stored, file: Path, *, change: Callable[[dict[str, Any]], None] | None = None, **settings: Any) -> str:
    """A run that waits, and goes away in a file; `change` is made to the config in that file afterwards."""
    gate = here.home.work / "gate"
    waiting = agent("waits", {"answer": "1", **after(gate)}, **settings.pop("backend", {}))
    run_id = here.start(here.home.config("team", waiting, *settings.pop("agents", ()), **settings))
    poll_until(lambda: here.told("status", run_id)["status"] == "running")
    here.verb("export", run_id, "--to", file)
    if change is not None:
        tamper(file, run_id, change)
    return run_id


def tamper(file: Path, run_id: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Write another config into the file, with all its checksums."""
    found = members(file)
    for place, (info, content) in enumerate(found):
        if info.name == f"{run_id}/config.json":
            document = json.loads(content)
            del document["crc"]
            change(document["config"])
            document["crc"] = f"{zlib.crc32(json.dumps(document, sort_keys=True).encode()):08x}"
            found[place] = info, json.dumps(document).encode()
    file.unlink()
    write(file, found)


def server(canary: Path) -> dict[str, Any]:
    """An MCP server that leaves a file behind, with all the rights of the person."""
    command = {"command": "/bin/sh", "args": ["-c", f"touch {canary}; sleep 5"], "sandbox": False}
    return {"mcp_servers": {"x": command}}


def with_server(canary: Path) -> Callable[[dict[str, Any]], None]:
    def change(config: dict[str, Any]) -> None:
        one = {"type": "stdio", **server(canary)["mcp_servers"]["x"]}
        config["agents"][0]["mcp_servers"] = {"x": one}

    return change


ASKING: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "a host": (
        lambda config: config["agents"].append({"id": "far", "backend": {**GPT, "base_url": "http://far.example/v1"}}),
        "! host: http://far.example",
    ),
    "a port of this machine": (
        lambda config: config["agents"].append({"id": "far", "backend": GPT}),
        "! host: http://127.0.0.1:1",
    ),
    "commands": (
        lambda config: config["orchestrator"].update(commands={"enabled": True}),
        "! starts: agents' commands in a sandbox",
    ),
    "a path": (
        lambda config: config["orchestrator"].update(commands={"enabled": False, "readable": ["/srv/others"]}),
        "! reads: /srv/others",
    ),
    "a check": (lambda config: config["orchestrator"].update(checks=["make test"]), "! starts: the check make test"),
    "a setup": (lambda config: config["orchestrator"].update(setup="make"), "! starts: the setup make in a sandbox"),
    "a program": (
        lambda config: config["agents"].append(
            {"id": "far", "backend": {"type": "acp", "command": ["/bin/evil"], "enclosure": "off"}}
        ),
        "! starts: the agent CLI /bin/evil, outside the sandbox, with your full permissions",
    ),
    "the Claude Code CLI": (
        lambda config: config["agents"].append({"id": "far", "backend": {"type": "claude_code"}}),
        "! starts: the Claude Code CLI",
    ),
    "money": (lambda config: config["budget"].update(max_usd=5000), "! spends: up to 5000 US dollars"),
    "a price": (
        lambda config: config["agents"].append(
            {"id": "far", "backend": {**GPT, "price": {"input_usd_per_million": 0, "output_usd_per_million": 0}}}
        ),
        "! sets: far: its own price",
    ),
}


def test_what_could_harm_is_shown_and_waits_and_what_could_not_goes_on(homes: tuple[Stored, Stored]) -> None:
    here, there = homes
    work = here.home.work
    run_id = left(here, work / "honest.tar.gz")
    honest = (work / "honest.tar.gz").read_bytes()
    for number, (name, (change, line)) in enumerate(ASKING.items()):
        file = work / f"{number}.tar.gz"
        file.write_bytes(honest)
        tamper(file, run_id, change)
        with stored(here.home, "embedded", f"there-{number}") as fresh:
            told = fresh.told("import", file)
            assert told["state"] == "interrupted", name
            assert any(line in one for one in told["asks_for"]), (name, told)
            assert line in fresh.verb("resume", run_id, code=1), name
            assert fresh.told("status", run_id)["status"] == "interrupted"
    assert there.told("import", work / "honest.tar.gz").get("asks_for") is None
    poll_until(lambda: there.told("status", run_id)["status"] == "running")


async def test_no_program_starts_before_the_yes_and_an_agent_cannot_give_it(homes: tuple[Stored, Stored]) -> None:
    here, there = homes
    file, canary = here.home.work / "run.tar.gz", here.home.work / "ran"
    run_id = await anyio.to_thread.run_sync(lambda: left(here, file, change=with_server(canary)))

    def imported() -> str:
        told = there.verb("import", file)
        assert "The run is waiting for your consent to the permissions marked `!`:" in told
        assert "! MCP server: x for waits: /bin/sh -c" in told
        assert f"To continue the run: massgen resume {run_id} --trust" in told
        assert there.told("import", file)["known"]
        assert "config_untrusted" in there.verb("resume", run_id, code=1)
        assert "digest of the run's permissions: sha256:" in there.verb(
            "resume", run_id, f"--trust=sha256:{'0' * 64}", code=1
        )
        there.verb("doctor", "--rebuild")
        standing = there.told("status", run_id)
        assert ", and you haven't accepted its permissions" in standing["reason"]
        return there.verb("resume", run_id, code=1)

    refusal = await anyio.to_thread.run_sync(imported)
    async with there.home.client() as client:
        code, message = await expect_error(client, "control_run", run_id=run_id, action="resume")
        assert (code, "! MCP server: x for waits" in message) == ("config_untrusted", True)
        assert (await call(client, "get_status", run_id=run_id))["status"] == "interrupted"
    assert not canary.exists()

    def accepted() -> None:
        digest = refusal.partition("--trust`; in CI, pass --trust=")[2].split()[0]
        there.verb("resume", run_id, f"--trust={digest}")
        poll_until(canary.exists)
        (here.home.work / "gate").touch()
        there.verb("wait", run_id)
        assert there.told("status", run_id)["status"] == "completed"

    await anyio.to_thread.run_sync(accepted)


def test_a_run_that_comes_back_goes_on_as_it_was_accepted_here_and_waits_if_it_was_changed(
    homes: tuple[Stored, Stored],
) -> None:
    here, _ = homes
    work, canary = here.home.work, here.home.work / "ran"
    run_id = left(here, work / "own.tar.gz", backend=server(canary))
    assert canary.exists(), "the person named this config"
    canary.unlink()
    assert here.told("import", work / "own.tar.gz", "--back", "--yes").get("asks_for") is None
    poll_until(canary.exists)
    poll_until(lambda: here.told("status", run_id)["status"] == "running")
    here.verb("export", run_id, "--to", work / "again.tar.gz")
    other = work / "other"
    tamper(work / "again.tar.gz", run_id, with_server(other))
    assert here.told("import", work / "again.tar.gz", "--back", "--yes")["asks_for"]
    assert here.told("status", run_id)["status"] == "interrupted"
    assert not other.exists()


@needs("postgres")
def test_workers_of_a_shared_store_leave_alone_what_nobody_accepted_there(home: TempHome) -> None:
    with stored(home, "embedded", "here") as here, stored(home, "cluster", "there") as there:
        file, canary = home.work / "run.tar.gz", home.work / "ran"
        run_id = left(here, file, change=with_server(canary))
        there.work()
        assert there.told("import", file)["asks_for"]
        assert ", and you haven't accepted its permissions" in there.told("status", run_id)["reason"]
        assert not canary.exists()
        there.verb("resume", run_id, "--trust")
        poll_until(canary.exists)
