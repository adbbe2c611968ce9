"""A command reaches the hosts that its policy names, and the ports of its own agent's commands, and nothing else."""

import ast
import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from tempfile import mkdtemp

import pytest

from massgen_mcp.events.agent_work import ToolFinished
from massgen_mcp.sandbox import LevelName, Policy, ResourceLimits, SandboxFailed, VisiblePath, spawn
from massgen_mcp.sandbox.levels import WITH_NETWORK, interpreter
from massgen_mcp.sandbox.network_layout import format_hosts, list_pairs
from tests.checks.project import environ, evidence, play, project, results, write
from tests.needs import needs
from tests.sandbox.at_work import hands, printed_by
from tests.sandbox.listed import answering, certificate_of, free_port, names
from tests.sandbox.table import LEVELS, USERS, User, as_ordinary

__all__ = ["environ", "names", "project"]

_ASKS = """
import json, socket, ssl, sys, urllib.request
wishes, told = json.loads(sys.argv[1]), {}
for name, (url, proxied) in wishes.items():
    try:
        trusted = ssl.create_default_context(cafile=sys.argv[2] if len(sys.argv) > 2 else None)
        handlers = [urllib.request.HTTPSHandler(context=trusted)]
        handlers += [] if proxied else [urllib.request.ProxyHandler({})]
        with urllib.request.build_opener(*handlers).open(url, timeout=5) as reply:
            told[name] = reply.read().decode()
    except OSError as error:
        told[name] = str(error)
print(json.dumps(told))
"""


def policy_in(path: Path, *network: str, shown: tuple[VisiblePath, ...] = ()) -> Policy:
    for name in ("workspace", "scratch"):
        (path / name).mkdir(exist_ok=True)
    return Policy(path / "workspace", path / "scratch", network=network, shown=shown)


async def asked(policy: Policy, level: LevelName, wishes: Mapping[str, tuple[str, bool]], *more: str) -> dict[str, str]:
    """What each address answers to a command; with True its proxy is asked for it."""
    argv = [interpreter(), "-I", "-S", "-c", _ASKS, json.dumps(wishes), *more]
    return dict(json.loads(await printed_by(argv, policy, level)))


@pytest.mark.usefixtures("names")
@pytest.mark.parametrize("level", [level for level in LEVELS if level in WITH_NETWORK])
async def test_the_listed_hosts_are_reached_by_their_names_over_tls_too_and_no_other(
    tmp_path: Path, level: LevelName
) -> None:
    trusted = certificate_of(tmp_path / "trusted.pem", "secure.test")
    with answering("secure", trusted) as secure, answering("plain") as plain, answering("secret") as secret:
        refuses = free_port()
        listed = (f"secure.test:{secure}", f"plain.test:{plain}", f"refuses.test:{refuses}")
        policy = policy_in(tmp_path, *listed, shown=(VisiblePath(trusted, "/context/trusted.pem"),))
        wishes: dict[str, tuple[str, bool]] = {}
        for way, proxied in (("", False), (", by the proxy", True)):
            wishes |= {
                f"secure{way}": (f"https://secure.test:{secure}/a?b", proxied),
                f"plain{way}": (f"http://plain.test:{plain}/a?b", proxied),
                f"refuses{way}": (f"http://refuses.test:{refuses}/", proxied),
                f"unlisted name{way}": (f"http://secret.test:{secret}/", proxied),
                f"unlisted port{way}": (f"http://plain.test:{secret}/", proxied),
                f"another certificate{way}": (f"https://plain.test:{secure}/", proxied),
            }
        wishes["the address of this machine"] = (f"http://127.0.0.1:{secret}/", False)
        wishes["the address of a listed server"] = (f"http://127.0.0.1:{plain}/", False)
        told = await asked(policy, level, wishes, "/context/trusted.pem")
    assert {name: text for name, text in told.items() if text.startswith(("secure", "plain", "secret"))} == {
        "secure": "secure at /a?b",
        "plain": "plain at /a?b",
        "secure, by the proxy": "secure at /a?b",
        "plain, by the proxy": "plain at /a?b",
    }
    assert "reset by peer" in told["refuses"]
    assert "502" in told["refuses, by the proxy"]
    assert "403" in told["unlisted name, by the proxy"]
    assert "403" in told["unlisted port, by the proxy"]
    assert "refused" in told["unlisted port"]


@needs("bwrap")
def test_each_listed_name_has_an_address_of_its_own_and_an_address_is_itself() -> None:
    listed = ("a.test:443", "a.test:80", "b.test:443", "10.1.2.3:5432", "localhost:6379")
    assert [(str(pair), pair.address) for pair in list_pairs(listed)] == [
        ("a.test:443", "127.66.0.2"),
        ("a.test:80", "127.66.0.2"),
        ("b.test:443", "127.66.0.3"),
        ("10.1.2.3:5432", "10.1.2.3"),
        ("localhost:6379", "127.0.0.1"),
    ]
    assert format_hosts(listed).splitlines() == [
        "127.0.0.1 localhost",
        "::1 localhost",
        "127.66.0.2 a.test",
        "127.66.0.3 b.test",
    ]
    assert len({pair.address for pair in list_pairs([f"h{number}.test:1" for number in range(600)])}) == 600


SERVE = "echo {said} > index.html; exec python3 -I -m http.server {port} --bind 127.0.0.1"
_CLIENT = """
import sys, time, urllib.request
while True:
    try:
        print(urllib.request.urlopen("http://localhost:{port}/", timeout=20).read().decode())
        break
    except OSError as error:
        if not {waits}:
            sys.exit(str(error))
        time.sleep(0.05)
"""


def ask_command(port: int, *, waits: bool = False) -> str:
    """A command that asks a server, or waits until there is one."""
    return f"python3 -I -S -c {shlex.quote(_CLIENT.format(port=port, waits=waits))}"


@needs("bwrap")
@pytest.mark.parametrize("user", USERS)
async def test_a_server_in_the_background_answers_the_commands_of_its_own_agent_until_the_round_ends(
    tmp_path: Path, user: User
) -> None:
    told = await servers_of_two(tmp_path) if user == "root" else ast.literal_eval(as_ordinary(__name__))
    assert [text.splitlines()[1:] for text in told["one"]] == [["of-one"], ["of-one"]]
    assert [text.splitlines()[1:] for text in told["two"]] == [["of-two"]]
    assert "[Your other commands reach its ports at localhost.]" in told["started"][0]
    assert told["a check"] == ["closed"]
    assert "Connection refused" in told["after the round"][0]


async def servers_of_two(path: Path) -> dict[str, list[str]]:
    """Two agents serve on one port, and each asks its own; so does a command of none, and one in the next round."""
    port = free_port()
    ask, wait = ask_command(port), ask_command(port, waits=True)
    async with hands(path / "1", "bubblewrap") as one, hands(path / "2", "bubblewrap") as two:
        begun = [
            (await agent.use("run_command", command=SERVE.format(said=said, port=port), background=True)).text
            for agent, said in ((one, "of-one"), (two, "of-two"))
        ]
        answers = {"one": [await one.run(wait), await one.run(ask)], "two": [await two.run(wait)]}
        check = ["/bin/sh", "-c", f"{ask} 2>/dev/null || echo closed"]
        by_none = (await printed_by(check, policy_in(path), "bubblewrap")).strip()
        await one.commands.end_all()
        late = await one.run(ask)
    return {**answers, "started": begun, "a check": [by_none], "after the round": [late]}


@needs("bwrap")
async def test_a_check_reaches_no_server_of_an_agent_and_serves_on_the_same_port_itself(
    tmp_path: Path, project: Path, environ: dict[str, str]
) -> None:
    port = free_port()
    ask, wait = ask_command(port), ask_command(port, waits=True)
    serve = {
        "call": "run_command",
        "arguments": {"command": SERVE.format(said="of-one", port=port), "background": True},
    }
    look = {"call": "run_command", "arguments": {"command": wait}}
    own = f"(cd /tmp && {SERVE.format(said='of-the-check', port=port)}) 2>/dev/null & {wait}"
    deeds = [serve, look, write("notes", "told\n"), {"answer": "told"}]
    ended = await play(
        tmp_path, project, environ, deeds, checks=[f"! {ask} 2>/dev/null", own], commands={"enabled": True}
    )
    assert "of-one" in ended.of(ToolFinished)[1].result
    assert results(evidence(ended, "final").outcomes) == ["passed", "passed"]
    assert "of-the-check" in evidence(ended, "final").outcomes[1].excerpt


@needs("bwrap")
async def test_where_no_namespace_can_be_shared_commands_have_a_network_each_and_a_listed_host_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a machine may limit them: the program that makes namespaces fails for those alone."""
    real, fake = Path("/usr/bin/bwrap"), tmp_path / "bwrap"
    fake.write_text(f'#!/bin/sh\n[ "$1" = --args ] || {{ echo no more of them >&2; exit 1; }}\nexec {real} "$@"\n')
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    async with hands(tmp_path / "alone", "bubblewrap") as alone:
        begun = await alone.use("run_command", command="sleep 60", background=True)
        assert (
            "[Your other commands cannot reach its ports: cannot create a network namespace: no more of them"
            in begun.text
        )
        assert (await alone.run("echo fine")).endswith("fine")
    async with hands(tmp_path / "listed", "bubblewrap", network=("pypi.org:443",)) as listed:
        refused = await listed.use("run_command", command="echo ran > made")
        assert refused.is_error
        assert "the command did not run: bubblewrap: cannot create a network namespace" in refused.text
        assert not (listed.place / "made").exists()


_HOLDS = """
import select, socket, sys
held = []
refused = 0
for _ in range(200):
    try:
        held.append(socket.create_connection(("127.0.0.1", int(sys.argv[1]))))
    except ConnectionResetError:
        refused += 1  # on a busy machine the reset is here before the call returns
poll = select.poll()
for one in held:
    poll.register(one, 0)
while refused + len(ended := poll.poll(0)) < 72:
    pass
first = next(one for one in held if one.fileno() not in dict(ended))
first.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n")
print(len(held) - len(ended), first.makefile("rb").readline().decode())
with socket.create_connection(("192.0.2.7", 443)):
    print("reached")
"""


@needs("bwrap")
async def test_a_network_carries_128_connections_at_once_and_leads_to_addresses_as_to_names(tmp_path: Path) -> None:
    with answering("far") as port:
        policy = policy_in(tmp_path, f"127.0.0.1:{port}", "192.0.2.7:443")
        argv = [interpreter(), "-I", "-S", "-c", _HOLDS, str(port)]
        printed = await printed_by(argv, policy, "bubblewrap")
    assert printed.split() == ["128", "HTTP/1.0", "200", "OK", "reached"]


@needs("bwrap")
async def test_a_model_reads_what_of_the_network_its_commands_reach(tmp_path: Path) -> None:
    async with hands(tmp_path / "alone", "bubblewrap") as alone:
        assert "No network." in alone.tools[0].spec.description
    async with hands(tmp_path / "connected", "bubblewrap", network=("pypi.org:443", "npmjs.org:443")) as connected:
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
        with pytest.raises(SandboxFailed, match="only a container can have unrestricted network access"):
            async with spawn(["true"], Policy(tmp_path, tmp_path, open_network=True), level):
                pass


if __name__ == "__main__":
    import anyio

    print(anyio.run(servers_of_two, Path(mkdtemp())))
