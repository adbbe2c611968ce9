"""A bubblewrap with one wall taken out, as a program that stands in its place: the attempts at that wall succeed."""

from pathlib import Path

from massgen_mcp.sandbox.levels import interpreter

_SCRIPT = """#!{python} -IS
import os, sys
WALL, VARIABLE = {wall!r}, {variable!r}
OPTIONS = {{
    "--ro-bind": 2, "--bind": 2, "--ro-bind-data": 2, "--symlink": 2, "--setenv": 2, "--tmpfs": 1, "--seccomp": 1,
    "--json-status-fd": 1, "--proc": 1, "--dev": 1, "--dir": 1, "--hostname": 1, "--chdir": 1, "--remount-ro": 1,
    "--block-fd": 1, "--cap-drop": 1,
}}


def options(words):
    before = []
    while words:
        if words[0] in ("--perms", "--size"):
            before += words[:2]
            words = words[2:]
            continue
        count = 1 + OPTIONS.get(words[0], 0)
        yield before, words[:count]
        before, words = [], words[count:]


def changed(before, given):
    name, *rest = given
    masks = given[:2] == ["--ro-bind", "/dev/null"] or name == "--tmpfs" and "hidden" in rest[0]
    if WALL == "only shown to be read" and name == "--ro-bind" and rest[1].startswith("/context") and not masks:
        return ["--bind", *rest]
    if WALL == "hidden files" and masks:
        return []
    if WALL == "the rest of the machine" and name == "--proc":
        return ["--bind", "/var/tmp", "/var/tmp", name, *rest]
    if name == {{"system calls": "--seccomp", "processes": "--unshare-pid", "network": "--unshare-net"}}.get(WALL):
        return []
    if WALL == "shared memory" and given[-1] == "/dev/shm":
        return ["--bind", "/dev/shm", "/dev/shm"]
    return [*before, *given]


if sys.argv[1] == "--args":
    number = int(sys.argv[2])
    with open(number, "rb", closefd=False) as file:
        words = [word.decode() for word in file.read().rstrip(b"\\0").split(b"\\0")]
    text = b"".join(word.encode() + b"\\0" for one in options(words) for word in changed(*one))
    os.ftruncate(number, 0)
    os.pwrite(number, text, 0)
    os.lseek(number, 0, 0)
os.execve({real!r}, ["bwrap", *sys.argv[1:]], dict([VARIABLE]) if WALL == "environment" else {{}})
"""

WALLS: dict[str, set[str]] = {
    "only shown to be read": {"write_shown", "truncate_shown", "host_files_changed", "host_files_appeared"},
    "hidden files": {"read_hidden", "read_hidden_below_layer"},
    "the rest of the machine": {
        *("write_outside", "read_outside", "host_files_appeared", "unix_socket", "host_sockets_reached"),
    },
    "processes": {"kill_victim", "host_victim_ended"},
    "network": {"tcp_loopback", "abstract_socket", "host_sockets_reached"},
    "shared memory": {"read_shared_memory"},
    "system calls": {"user_namespace"},
    "environment": {"our_variables"},
}
"""What each wall keeps closed, by the names of attempts and of what the host sees."""


def put_in_place(directory: Path, wall: str, real: str, variable: tuple[str, str] = ("", "")) -> None:
    """Make `bwrap` in this directory. `variable`: one of ours that comes in where there is no wall around them."""
    program = directory / "bwrap"
    program.write_text(_SCRIPT.format(python=interpreter(), wall=wall, variable=variable, real=real))
    program.chmod(0o755)
