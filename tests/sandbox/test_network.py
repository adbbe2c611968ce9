"""A command reaches what its policy names, and nothing else."""

import json
import socket
from pathlib import Path

import anyio
import pytest

from massgen_mcp.sandbox import LevelName, Policy, ResourceLimits, SandboxFailed, Wishes, choose, spawn
from massgen_mcp.sandbox.levels import WITH_NETWORK, interpreter
from tests.sandbox.at_work import hands
from tests.sandbox.table import LEVELS

_TRIES = """
import json, socket, sys
told = {}
for name, host, port in json.loads(sys.argv[1]):
    try:
        socket.create_connection((host, port), timeout=5).close()
        told[name] = True
    except OSError:
        told[name] = False
host, other = "127.0.0.1", int(sys.argv[3])
new = socket.socket


def by_message(how):
    with new(2, 1) as sock:
        getattr(sock, how)(*(([b"x"], [], 1 << 29) if how == "sendmsg" else (b"x", 1 << 29)), (host, other))


def other_protocol(number):
    with new(2, 1, number) as sock:
        sock.connect((host, other))


ways = {
    "UDP": lambda: new(2, 2).sendto(b"x", (host, int(sys.argv[2]))),
    "MPTCP": lambda: other_protocol(262),
    "MPTCP, mapped": lambda: new(10, 1, 262).connect(("::ffff:127.0.0.1", other)),
    "SCTP": lambda: other_protocol(132),
    "TCP fast open": lambda: by_message("sendto"),
    "TCP fast open by sendmsg": lambda: by_message("sendmsg"),
    "SMC": lambda: new(43, 1, 0).connect((host, other)),
    "another protocol over TCP": lambda: new(2, 1).setsockopt(6, 31, b"smc"),
    "a port for others": lambda: new(2, 1).listen(),
    "a raw socket": lambda: new(2, 3, 1),
    "a socket of another kind": lambda: new(2, 5),
    "packets": lambda: new(17, 3),
    "another machine": lambda: new(40, 1),
    "the kernel's ciphers": lambda: new(38, 5),
    "a pair of another family": lambda: socket.socketpair(30, 1),
    "a file outside": lambda: new(1, 1).bind(sys.argv[4]),
    "a file outside, datagrams": lambda: new(1, 2).bind(sys.argv[4]),
}
for name, way in ways.items():
    try:
        way()
        told[name] = True
    except OSError:
        told[name] = False
print(json.dumps(told))
"""


@pytest.mark.parametrize("level", [level for level in LEVELS if level in WITH_NETWORK])
async def test_only_the_named_host_and_port_can_be_connected_to(tmp_path: Path, level: LevelName) -> None:
    workspace, scratch = tmp_path / "workspace", tmp_path / "scratch"
    workspace.mkdir()
    scratch.mkdir()
    with (
        socket.create_server(("127.0.0.1", 0)) as named,
        socket.create_server(("127.0.0.1", 0)) as other,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams,
    ):
        datagrams.bind(("127.0.0.1", 0))
        datagrams.setblocking(False)
        port, another = named.getsockname()[1], other.getsockname()[1]
        tries = [
            ("named", "127.0.0.1", port),
            ("by its name", "localhost", port),
            ("another port", "127.0.0.1", another),
            ("another port, mapped", "::ffff:127.0.0.1", another),
            ("another host", "127.0.0.2", port),
        ]
        policy = Policy(workspace, scratch, network=(f"localhost:{port}",))
        argv = [interpreter(), "-I", "-S", "-c", _TRIES, json.dumps(tries), str(datagrams.getsockname()[1])]
        argv += [str(another), str(tmp_path / "made")]
        output = b""
        async with spawn(argv, policy, level) as process:
            try:
                while True:
                    output += await process.stdout.receive()
            except anyio.EndOfStream:
                pass
        told = json.loads(output)
        assert {name for name, reached in told.items() if reached} == {"named", "by its name"}
        assert len(told) == 22
        assert not (tmp_path / "made").exists()
        other.setblocking(False)
        with pytest.raises(BlockingIOError):
            other.accept()
        with pytest.raises(BlockingIOError):
            datagrams.recv(10)


async def test_a_level_that_cannot_hold_to_a_list_of_hosts_is_not_used_for_one(tmp_path: Path) -> None:
    choice = await choose(Wishes("bubblewrap", ("pypi.org:443",)), None)
    assert choice.level is None
    assert "bubblewrap: it has no network to offer" in choice.why
    with pytest.raises(SandboxFailed, match="no network"):
        async with spawn(["true"], Policy(tmp_path, tmp_path, network=("pypi.org:443",)), "bubblewrap"):
            pass


async def test_a_model_reads_what_of_the_network_its_commands_reach(tmp_path: Path) -> None:
    async with hands(tmp_path / "alone", "sandlock") as alone:
        assert "No network." in alone.tools[0].spec.description
    async with hands(tmp_path / "connected", "sandlock", network=("pypi.org:443", "npmjs.org:443")) as connected:
        assert "Of the network only pypi.org:443, npmjs.org:443." in connected.tools[0].spec.description


async def test_a_container_has_no_network_unless_the_config_opens_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What Docker is asked for, by a program that stands in its place and writes it down."""
    asked = tmp_path / "asked"
    docker = tmp_path / "docker"
    docker.write_text(f'#!/bin/sh\n[ "$1" = run ] && echo "$*" > {asked}\nexit 0\n')
    docker.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    async def options(policy: Policy) -> str:
        async with spawn(["true"], policy, "docker") as process:
            await process.wait()
        return asked.read_text()

    closed = await options(
        Policy(tmp_path, tmp_path, image="made", bounds=ResourceLimits(processors=1.5, memory_bytes=1 << 29))
    )
    assert "--network none" in closed
    assert "--cpus 1.5" in closed
    assert "--memory 536870912" in closed
    assert closed.endswith(" made true\n")
    assert "--network" not in await options(Policy(tmp_path, tmp_path, open_network=True))
    for level in LEVELS:
        with pytest.raises(SandboxFailed, match="only a container has an open network"):
            async with spawn(["true"], Policy(tmp_path, tmp_path, open_network=True), level):
                pass
