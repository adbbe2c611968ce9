"""The levels of Docker and Podman: a container of an image that the config names, for one command.

Describes how a command is started, and sees that its image is there; must not start one.
"""

import json
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import anyio

from massgen_mcp.sandbox import filters
from massgen_mcp.sandbox.policy import OF_THE_MACHINE, SCRATCH, WORKSPACE, ImageRefused, Policy
from massgen_mcp.sandbox.specification import LaunchPlan

DEFAULT_IMAGE = "python:3.12-slim"
PULL_SECONDS = 1800.0
_VARIABLES, _FILTER = 20, 21
_OF_CLIENT = ("HOME", "PATH", "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY")
_OF_CLIENT_TOO = ("XDG_RUNTIME_DIR", "CONTAINER_HOST")
"""What the client needs to find its daemon; nothing of it reaches the container."""
_DENIED = (
    *("io_uring_setup", "io_uring_enter", "io_uring_register", "unshare", "setns", "bpf", "perf_event_open"),
    *("userfaultfd", "add_key", "request_key", "keyctl", "mount", "umount2", "pivot_root", "open_tree", "move_mount"),
    *("fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr", "kexec_load", "kexec_file_load", "init_module"),
    *("finit_module", "delete_module", "open_by_handle_at", "quotactl", "swapon", "swapoff", "reboot", "acct"),
)
_PODMANS_FILTER = {
    "defaultAction": "SCMP_ACT_ALLOW",
    "syscalls": [
        {"names": [*_DENIED], "action": "SCMP_ACT_ERRNO", "errnoRet": 1},
        {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38},
        *(
            {
                "names": ["clone"],
                "action": "SCMP_ACT_ERRNO",
                "errnoRet": 1,
                "args": [{"index": 0, "value": flag, "valueTwo": flag, "op": "SCMP_CMP_MASKED_EQ"}],
            }
            for flag in filters.NAMESPACES
        ),
    ],
}
"""System calls as `filters.without_escapes` refuses them, by name: Podman's own list lets namespaces be made."""


def program(name: Literal["docker", "podman"]) -> str | None:
    return shutil.which(name)


async def image_id(name: Literal["docker", "podman"], image: str | None) -> str:
    """What tells the image from every other one; it is fetched if it is not there. Raises `ImageRefused`."""
    wanted = image or DEFAULT_IMAGE
    found = program(name)
    if found is None:
        raise ImageRefused(f"{name} is not installed")
    inspect = [found, "image", "inspect", "--format", "{{.Id}}", wanted]
    with anyio.move_on_after(PULL_SECONDS):
        there = await anyio.run_process(inspect, check=False, env=_of_client())
        if there.returncode:
            pulled = await anyio.run_process([found, "pull", "--quiet", wanted], check=False, env=_of_client())
            if pulled.returncode:
                printed = pulled.stderr.decode(errors="replace").strip()[-500:]
                raise ImageRefused(f"cannot get the image {wanted}: {printed}")
            there = await anyio.run_process(inspect, check=False, env=_of_client())
        return there.stdout.decode(errors="replace").strip()
    raise ImageRefused(f"the download of image {wanted} took longer than {PULL_SECONDS:g} s")


def _of_client() -> dict[str, str]:
    return {key: os.environ[key] for key in (*_OF_CLIENT, *_OF_CLIENT_TOO) if key in os.environ}


def launch(name: Literal["docker", "podman"], argv: list[str], policy: Policy, environ: dict[str, str]) -> LaunchPlan:
    """Describe how to start `argv` under `policy`."""
    found = program(name)
    if found is None:
        raise FileNotFoundError(name)
    container = f"massgen-{secrets.token_hex(8)}"
    variables = "".join(f"{key}={value}\n" for key, value in environ.items() if key != "PATH")
    return LaunchPlan(
        argv=(found, *_options(name, container, policy), policy.image or DEFAULT_IMAGE, *argv),
        environ=_of_client(),
        files={_VARIABLES: os.fsencode(variables).decode("latin-1"), _FILTER: json.dumps(_PODMANS_FILTER)},
        teardown=(found, "kill", container),
    )


def _options(name: Literal["docker", "podman"], container: str, policy: Policy) -> Iterator[str]:
    bounds = policy.bounds
    yield from ("run", "--rm", "--interactive", "--init", "--name", container, "--pull", "missing")
    if not policy.open_network:
        yield from ("--network", "none")
    if bounds.processors is not None:
        yield from ("--cpus", f"{bounds.processors:g}")
    if name == "podman":
        yield from ("--security-opt", f"seccomp=/proc/self/fd/{_FILTER}")
    yield from ("--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--read-only", "--ipc", "private")
    yield from ("--user", f"{os.geteuid()}:{os.getegid()}", "--pids-limit", str(bounds.processes))
    yield from ("--memory", str(bounds.memory_bytes), "--memory-swap", str(bounds.memory_bytes))
    yield from (
        "--ulimit",
        f"nofile={bounds.open_files}",
        "--ulimit",
        f"fsize={bounds.disk_bytes}",
        "--ulimit",
        "core=0",
    )
    yield from ("--env-file", f"/proc/self/fd/{_VARIABLES}", "--workdir", WORKSPACE)
    yield from _mount(policy.workspace, WORKSPACE, writable=True)
    yield from _mount(policy.scratch, SCRATCH, writable=True)
    for shown in policy.shown:
        yield from _mount(shown.host, shown.place, writable=shown.writable)
        for hidden in (*policy.hidden, *OF_THE_MACHINE):
            if hidden.is_relative_to(shown.host) and os.path.lexists(hidden):
                yield from _mask(name, str(Path(shown.place, hidden.relative_to(shown.host))), hidden.is_dir())


def _mount(host: Path, place: str, *, writable: bool) -> tuple[str, str]:
    return ("--mount", ",".join(["type=bind", f"src={host}", f"dst={place}", *([] if writable else ["readonly"])]))


def _mask(name: Literal["docker", "podman"], place: str, is_directory: bool) -> tuple[str, str]:
    if is_directory:
        empty = ",notmpcopyup" if name == "podman" else ""  # it would fill it with what is to be hidden
        return ("--mount", f"type=tmpfs,dst={place},tmpfs-size=4096,tmpfs-mode=0000{empty}")
    return _mount(Path("/dev/null"), place, writable=False)
