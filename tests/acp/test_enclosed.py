"""An agent CLI in its enclosure: what it reaches, what it does not, and what is left of it. The CLI is a fake one."""

import json
import subprocess
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from massgen_mcp.errors import BackendError
from massgen_mcp.sandbox import SCRATCH
from tests.acp.acting import Acting, after, is_alive, question, reply, text_of
from tests.harness import wait_until
from tests.needs import needs
from tests.planted import HOLDS_KEYS

KEY = "sk-secret-0123456789abcdef"


class _Api(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"the model's API")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the library's
        """It says nothing."""


@contextmanager
def served() -> Generator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Api) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def enclosed(directory: Path, *turns: list[dict[str, Any]], **fields: Any) -> Acting:
    """Its own home is the one place where it can write its log."""
    return Acting(directory, *turns, enclosure="required", log=f"{SCRATCH}/log", **fields)


def commanded(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def found(parts: list[Any]) -> list[str]:
    return json.loads(text_of(parts))


@needs("bwrap")
async def test_an_enclosed_cli_reaches_the_team_its_hosts_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("a secret")
    other = tmp_path / "workspaces" / "agent_b"
    other.mkdir(parents=True)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "notes.txt").write_text("mine")
    victim = subprocess.Popen(["/bin/sleep", "300"], env={"VICTIM": "here"})  # noqa: ASYNC220 - it lives on
    with served() as port, served() as closed:
        probes = [
            *(["read", str(tmp_path / "secret.txt")], ["write", str(tmp_path / "new.txt")]),
            *(["list", str(tmp_path / "home")], ["list", str(other)]),
            *(["variable", "OTHER_API_KEY"], ["port", str(port)], ["port", str(closed)]),
            *(["fetch", f"http://127.0.0.1:{closed}/"], ["fetch", f"http://127.0.0.1:{port}/"]),
            *(["read", f"/proc/{victim.pid}/environ"], ["processes", ""], ["list", "."]),
        ]
        acting = enclosed(
            tmp_path,
            [{"probe": probes}],
            hosts=[f"127.0.0.1:{port}"],
            environ={"OTHER_API_KEY": KEY},
        )
        seen = dict(zip(map(" ".join, probes), found(await reply(acting.backend, question())), strict=True))
    await acting.backend.aclose()
    victim.kill()
    victim.wait()
    reached = {probe for probe, outcome in seen.items() if outcome.startswith("open")}
    in_its_own = f"write {tmp_path / 'new.txt'}"  # in a /tmp of its own
    assert reached == {f"port {port}", f"fetch http://127.0.0.1:{port}/", "processes ", "list .", in_its_own}
    assert seen[f"fetch http://127.0.0.1:{port}/"] == "open: the model's API"
    assert "sleep" not in seen["processes "]
    assert seen["list ."] == "open: []"
    assert not (tmp_path / "new.txt").exists()


@needs("bwrap")
async def test_an_enclosed_cli_calls_the_tools_of_the_team(tmp_path: Path) -> None:
    acting = enclosed(tmp_path, [{"call": "look", "arguments": {"at": "it"}}, {"say": "Done."}])
    first = question()
    second = after(first, await reply(acting.backend, first), "seen")
    assert text_of(await reply(acting.backend, second)) == "Done."
    await acting.backend.aclose()


@needs("bwrap")
async def test_what_it_started_ends_with_it(tmp_path: Path) -> None:
    acting = enclosed(tmp_path, [{"probe": [["leave", "86399"]]}])
    assert found(await reply(acting.backend, question()))[0].startswith("open")

    def left() -> list[int]:
        pids = (int(path.name) for path in Path("/proc").glob("[0-9]*"))
        return [pid for pid in pids if is_alive(pid) and b"86399" in commanded(pid).split(b"\0")]

    assert left()
    await acting.backend.aclose()
    await wait_until(lambda: not left())


RENEWED = json.dumps({"tokens": {"access": "renewed"}})


def with_login(directory: Path) -> Path:
    login = directory / "home" / ".codex" / "auth.json"
    login.parent.mkdir(parents=True)
    (login.parents[1] / HOLDS_KEYS).touch()
    login.write_text(json.dumps({"tokens": {"access": KEY}}))
    (login.parent / "config.toml").write_text("[mcp_servers.evil]")
    return login


def codex(directory: Path, *turns: list[dict[str, Any]]) -> Acting:
    key = {"OPENAI_API_KEY": "sk-other-012345"}
    return enclosed(directory, *turns, preset="codex", program="codex-acp", login="own", environ=key)


@needs("bwrap")
async def test_a_login_that_the_cli_renewed_is_the_users_before_its_turn_is_over_and_all_of_the_home_that_is_there(
    tmp_path: Path,
) -> None:
    login = with_login(tmp_path)
    renew = f"import os\nopen(os.path.expanduser('~/.codex/auth.json'), 'w').write({RENEWED!r})"
    turn = [{"probe": [["list", "~/.codex"], ["run", renew], ["variable", "OPENAI_API_KEY"]]}]
    acting = codex(tmp_path, turn)
    assert found(await reply(acting.backend, question())) == ["open: ['auth.json']", "open: None", "closed: KeyError"]
    assert login.read_text() == RENEWED
    assert login.stat().st_mode & 0o777 == 0o644
    await acting.backend.aclose()


@needs("bwrap")
async def test_what_a_cli_leaves_in_its_home_makes_no_file_elsewhere_when_it_is_started_again(tmp_path: Path) -> None:
    login, victim = with_login(tmp_path), tmp_path / "victim"
    victim.mkdir()
    link = f"""
import os
os.chdir(os.path.expanduser("~"))
os.rename(".codex", "old")
os.symlink({f"/oldroot{victim}"!r}, ".codex")
os.symlink({str(victim)!r}, "/tmp/link")
os.symlink({f"/oldroot{victim}/x"!r}, "/workspace/link")
"""
    acting = codex(tmp_path, [{"probe": [["run", link]]}, {"crash": "over"}])
    try:
        with pytest.raises(BackendError):
            await reply(acting.backend, question())
        assert (acting.private / "home/.codex").is_symlink()
        acting.environ["FAKE_PLAN"] = json.dumps([[{"probe": [["list", "~/.codex"]]}]])
        assert found(await reply(acting.backend, question())) == ["open: ['auth.json']"]
    finally:
        await acting.backend.aclose()
    assert [*victim.iterdir()] == []
    assert KEY in login.read_text()


@needs("bwrap")
async def test_of_the_directory_of_a_program_nothing_but_the_program_is_there(tmp_path: Path) -> None:
    beside = tmp_path / "program"
    for name in (".env", "notes.key", ".git/config", "plain.txt", "bin/tool", "lib/x.py"):
        (beside / name).parent.mkdir(parents=True, exist_ok=True)
        (beside / name).write_text("a secret")
    acting = enclosed(tmp_path, [{"probe": [["list", str(beside)], ["read", f"{beside}/plain.txt"]]}])
    assert found(await reply(acting.backend, question())) == ["open: ['fake_agent.py']", "closed: FileNotFoundError"]
    await acting.backend.aclose()


async def test_a_cli_that_does_not_ask_is_refused_where_there_is_no_enclosure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # no bwrap
    acting = Acting(tmp_path, enclosure="required")
    with pytest.raises(
        BackendError, match="runs only inside a sandbox, since it reads files and runs commands without asking"
    ) as caught:
        await reply(acting.backend, question())
    assert caught.value.reason == "bad_request"
    await acting.backend.aclose()
