"""What an agent gets of the commands that it runs, in every level of the sandbox that this machine has."""

import json
import os
import re
import secrets
from pathlib import Path

import anyio
import pytest

from massgen_mcp.sandbox import LevelName
from tests.harness import poll_until
from tests.sandbox.at_work import hands, living
from tests.sandbox.table import LEVELS

pytestmark = pytest.mark.parametrize("level", LEVELS)


async def test_a_command_works_in_the_workspace_and_tells_its_output_and_exit_code(
    tmp_path: Path, level: LevelName
) -> None:
    async with hands(tmp_path, level) as agent:
        agent.workspace.root.write_bytes("in.txt", b"given\n")
        text = await agent.run("pwd; cat in.txt; echo made > out.txt; echo wrong >&2; exit 3")
        assert text.startswith("[exit code 3, ")
        assert text.endswith("\n/workspace\ngiven\nwrong")
        assert (agent.place / "out.txt").read_text() == "made\n"
        assert await agent.run("cat out.txt /tmp/no-such-file") != text
        assert "137" in await agent.run("kill -KILL $$")


async def test_a_command_has_the_programs_of_the_machine_and_no_key_of_ours(
    tmp_path: Path, level: LevelName, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-server")
    async with hands(tmp_path, level) as agent:
        told = await agent.run("env; python3 -c 'print(6*7)'; git init -q r && git -C r status --short && echo fine")
        assert "42" in told
        assert told.endswith("fine")
        assert "sk-of-the-server" not in told
        names = {line.partition("=")[0] for line in told.splitlines() if "=" in line}
        assert names >= {"PATH", "HOME", "LANG"}
        assert not [name for name in names if any(part in name for part in ("KEY", "TOKEN", "SECRET", "MASSGEN"))]


async def test_programs_that_start_others_without_a_copy_of_their_memory_work(tmp_path: Path, level: LevelName) -> None:
    """`make`, C's `system` and `posix_spawn`, one after the other: what one leaves behind would break the next."""
    spawned = (
        "import os; [os.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0) for _ in range(3)]; print('spawned')"
    )
    async with hands(tmp_path, level) as agent:
        agent.workspace.root.write_bytes("Makefile", b"all: one\n\t@echo two\none:\n\t@true && echo one\n")
        told = await agent.run(f'make && make all && python3 -c "{spawned}"')
        assert told.startswith("[exit code 0, ")
        assert told.endswith("\none\ntwo\none\ntwo\nspawned")


async def test_what_a_command_left_running_ends_with_it(tmp_path: Path, level: LevelName) -> None:
    mark = secrets.token_hex(8)
    async with hands(tmp_path, level) as agent:
        detached = f"(trap '' TERM HUP; setsid sh -c 'trap \"\" TERM; sleep 300; : {mark}') > /dev/null 2>&1 & echo on"
        assert (await agent.run(detached)).endswith("on")
        assert living(mark) == []
        told = await agent.run(f"{detached}; sleep 300", timeout_seconds=0.5)
        assert told.startswith("[timed out after 0.5 s")
        assert living(mark) == []


async def test_a_cancelled_command_is_gone_before_its_caller_goes_on(tmp_path: Path, level: LevelName) -> None:
    mark = secrets.token_hex(8)
    async with hands(tmp_path, level) as agent, anyio.create_task_group() as tasks:
        tasks.start_soon(agent.run, f"setsid sh -c 'sleep 300; : {mark}' & sleep 300; : {mark}")
        while len(living(mark)) < 2:
            await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()
    assert living(mark) == []


async def test_of_a_long_output_the_beginning_and_the_end_are_told(tmp_path: Path, level: LevelName) -> None:
    async with hands(tmp_path, level) as agent:
        told = await agent.run("echo first; head -c 3000000 /dev/zero | tr '\\0' x; echo; echo last")
        assert "\nfirst\n" in told
        assert told.endswith("\nlast")
        assert len(told) < 10_300
        (whole,) = re.findall(r"characters are left out here; read them by lines, .* (/tmp/output-\w+\.txt)\]", told)
        assert (await agent.run(f"wc -l < {whole}; tail -c 6 {whole}")).split("\n")[1:] == ["3", "", "last"]
        odd = await agent.run("printf 'a\\377b\\000c'")
        assert "a\ufffdb" in odd


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("dd if=/dev/zero of=large bs=1M count=100", "File too large"),
        ("for i in 1 2 3 4 5 6; do dd if=/dev/zero of=f$i bs=1M count=40; done; sleep 60", "take more space"),
        ("i=0; while [ $i -lt 9000 ]; do i=$((i+1)); : > n$i; done; sleep 60", "there are more files"),
        ("python3 -c 'x = bytearray(900 << 20)'", "[exit code"),
        ("yes", "printed more than"),
    ],
)
async def test_a_command_that_uses_more_than_it_may_is_ended_and_says_why(
    tmp_path: Path, level: LevelName, command: str, told: str
) -> None:
    async with hands(tmp_path, level) as agent:
        result = await agent.use("run_command", command=command)
        assert told in result.text
        assert not result.text.startswith("[exit code 0")


async def test_what_runs_in_the_background_is_listed_read_and_stopped_by_name(tmp_path: Path, level: LevelName) -> None:
    mark = secrets.token_hex(8)
    async with hands(tmp_path, level) as agent:
        assert (await agent.use("read_command")).text == "nothing runs in the background"
        script = f"echo ready; while [ ! -e go ]; do sleep 0.02; done; echo went; sleep 300; : {mark}"
        assert "in the background as web until your turn ends" in await agent.run(script, background=True, name="web")
        assert "web is running" in await agent.run("echo 2", background=True, name="web")
        assert "as c1 until" in await agent.run("echo 3", background=True)
        first = await agent.use("read_command", name="web", wait_seconds=60)
        assert first.text == "web is running\nready"
        await agent.run("touch go")
        second = await agent.use("read_command", name="web", wait_seconds=60)
        assert second.text == "web is running\nwent"
        listed = (await agent.use("read_command")).text.splitlines()
        assert [line.partition(": ")[0] for line in listed] == ["web", "c1"]
        assert listed[0].startswith("web: is running: echo ready;")
        stopped = await agent.use("stop_command", name="web")
        assert stopped.text.startswith("[stopped, ")
        assert living(mark) == []
        again = await agent.use("read_command", name="web")
        assert again.text.startswith("[stopped, ")
        unknown = await agent.use("read_command", name="other")
        assert unknown.is_error
        assert "there is: web, c1" in unknown.text
        assert "as web until" in await agent.run("echo 4", background=True, name="web")


@pytest.mark.parametrize(
    "program",
    [
        """printf 'Continue? [y/N] '; sleep 300""",
        """printf '\\033[2;1H~\\033[1;1H'; sleep 300""",
        """python3 -c 'import time; print(">>> ", end="", flush=True); time.sleep(300)'""",
    ],
    ids=["question", "screen", "prompt"],
)
async def test_a_program_that_waits_for_somebody_is_ended_and_it_is_said_why(
    tmp_path: Path, level: LevelName, program: str
) -> None:
    async with hands(tmp_path, level) as agent:
        told = await agent.run(program)
        assert told.startswith("[stopped, ")
        assert "[It waited for somebody. There is no terminal" in told


@pytest.mark.parametrize(
    ("program", "end"),
    [
        ("printf 'sum: '; python3 -c 'import time\nwhile time.process_time() < 5: pass'; echo 42", "sum: 42"),
        ("printf '1\\n2: '; sleep 1; echo ok; sleep 7; echo 3", "1\n2: ok\n3"),
    ],
    ids=["one that computes", "one that goes on"],
)
async def test_a_program_that_only_looks_like_waiting_ends_by_itself(
    tmp_path: Path, level: LevelName, program: str, end: str
) -> None:
    async with hands(tmp_path, level) as agent:
        told = await agent.run(program)
        assert told.startswith("[exit code 0, ")
        assert told.endswith(end)


async def test_a_program_that_ends_for_want_of_a_terminal_is_explained(tmp_path: Path, level: LevelName) -> None:
    async with hands(tmp_path, level) as agent:
        assert "[There is no terminal, and nothing on standard input." in await agent.run("python3 -c 'input()'")
        assert "no terminal" not in await agent.run("echo 'not a tty'")


async def test_nothing_in_the_background_outlives_the_run(tmp_path: Path, level: LevelName) -> None:
    mark = secrets.token_hex(8)
    async with hands(tmp_path, level) as agent:
        for _ in range(3):
            await agent.run(f"trap '' TERM; echo on; sleep 300; : {mark}", background=True)
        await anyio.to_thread.run_sync(lambda: poll_until(lambda: len(living(mark)) >= 3, 60))
    assert living(mark) == []


async def test_a_callers_files_are_readable_and_nothing_of_them_can_be_changed(
    tmp_path: Path, level: LevelName
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "code.py").write_text("x = 1\n")
    (project / ".env").write_text("TOKEN=1\n")
    (project / ".ssh").mkdir()
    (project / ".ssh" / "id_rsa").write_text("private\n")
    os.link(project / ".env", project / "harmless.txt")
    before = {path: (path.stat().st_mode, path.stat().st_mtime_ns, path.read_bytes()) for path in files_in(project)}
    async with hands(tmp_path, level, context=(project,)) as agent:
        told = await agent.run("cat context/project/code.py; cat context/project/.env context/project/.ssh/id_rsa")
        assert "x = 1" in told
        assert "TOKEN" not in told
        assert "private" not in told
        assert "TOKEN" not in await agent.run("cat context/project/harmless.txt; cp context/project/.e* .; cat .env")
        deeds = ("echo 2 > %", "chmod 777 %", "touch -d @1 %", "rm -f %", "mv % taken", "ln % hard", "truncate -s 0 %")
        for deed in deeds:
            await agent.run(deed.replace("%", "context/project/code.py"))
        await agent.run("touch context/project/new; mkdir context/project/d; ln -s /etc context/project/l")
    after = {path: (path.stat().st_mode, path.stat().st_mtime_ns, path.read_bytes()) for path in files_in(project)}
    assert after == before


async def test_answers_of_others_are_readable_and_cannot_be_changed(tmp_path: Path, level: LevelName) -> None:
    snapshot = tmp_path / "snapshot"
    snapshot.mkdir()
    (snapshot / "idea.md").write_text("theirs\n")
    async with hands(tmp_path, level) as agent:
        agent.workspace.set_peers({"agent1": snapshot})
        assert (await agent.run("cat peers/agent1/idea.md")).endswith("theirs")
        await agent.run("echo mine > peers/agent1/idea.md; chmod 777 peers/agent1/idea.md; rm -rf peers/agent1/idea.md")
    assert (snapshot / "idea.md").read_text() == "theirs\n"


async def test_links_and_devices_that_a_command_makes_lead_nobody_out(tmp_path: Path, level: LevelName) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("closed\n")
    async with hands(tmp_path, level) as agent:
        told = await agent.run(f"ln -s {secret} door; ln -s {tmp_path} way; cat door way/secret.txt; mkfifo pipe; ls")
        assert "closed" not in told
        for path in ("door", "way/secret.txt", "pipe"):
            with pytest.raises(Exception, match=r"link|regular file|no such file"):
                agent.workspace.root.read_bytes(path, 100)


async def test_a_command_cannot_be_started_by_what_it_left_behind(tmp_path: Path, level: LevelName) -> None:
    """Programs, settings and start-up files in the workspace are nobody's but the commands'."""
    async with hands(tmp_path, level) as agent:
        await agent.run(
            "mkdir -p bin .git/hooks; for n in sh bwrap python3 sitecustomize.py usercustomize.py json.py x.pth; do "
            "printf '#!/bin/sh\\ntouch /workspace/ran\\n' > $n; chmod +x $n; done; cp sh .git/hooks/post-checkout"
        )
        await agent.run("true")
        assert not (agent.place / "ran").exists()


async def test_the_schema_of_a_command_is_one_that_every_provider_takes(tmp_path: Path, level: LevelName) -> None:
    """A number is a number: some refuse alternatives with null. A model that sends null all the same leaves it out."""
    async with hands(tmp_path, level) as agent:
        assert "anyOf" not in json.dumps([tool.spec.parameters for tool in agent.tools])
        result = await agent.use("run_command", command="echo fine", timeout_seconds=None)
        assert result.text.endswith("\nfine")


async def test_wrong_arguments_are_told_as_such(tmp_path: Path, level: LevelName) -> None:
    async with hands(tmp_path, level) as agent:
        for arguments, told in (
            ({}, "'command' is missing"),
            ({"command": ""}, "'command'"),
            ({"command": "a\0b"}, "NUL"),
            ({"command": "true", "timeout_seconds": 0}, "'timeout_seconds'"),
            ({"command": "true", "cwd": "/"}, "unknown 'cwd'"),
        ):
            result = await agent.use("run_command", **json.loads(json.dumps(arguments)))
            assert result.is_error
            assert told in result.text


def files_in(directory: Path) -> list[Path]:
    return sorted(path for path in directory.rglob("*") if path.is_file())
