"""The levels of Docker and Podman: a container of an image that the config names, for one command.

Only describes how a command is started; must not start one.
"""

import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from massgen_mcp.sandbox.policy import OF_THE_MACHINE, SCRATCH, WORKSPACE, Policy

DEFAULT_IMAGE = "python:3.12-slim"
_VARIABLES = 20
_OF_CLIENT = ("HOME", "PATH", "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY")
_OF_CLIENT_TOO = ("XDG_RUNTIME_DIR", "CONTAINER_HOST")
"""What the client needs to find its daemon; nothing of it reaches the container."""


def program(name: Literal["docker", "podman"]) -> str | None:
    return shutil.which(name)


def launch(
    name: Literal["docker", "podman"], argv: list[str], policy: Policy, environ: dict[str, str]
) -> dict[str, object]:
    """What the supervisor needs to start `argv` under `policy`."""
    found = program(name)
    if found is None:
        raise FileNotFoundError(name)
    container = f"massgen-{secrets.token_hex(8)}"
    own = {key: os.environ[key] for key in (*_OF_CLIENT, *_OF_CLIENT_TOO) if key in os.environ}
    variables = "".join(f"{key}={value}\n" for key, value in environ.items() if key != "PATH")
    return {
        "argv": [found, *_options(container, policy), policy.image or DEFAULT_IMAGE, *argv],
        "environ": own,
        "files": {_VARIABLES: variables},
        "teardown": [found, "kill", container],
    }


def _options(container: str, policy: Policy) -> Iterator[str]:
    bounds = policy.bounds
    yield from ("run", "--rm", "--interactive", "--init", "--name", container, "--network", "none", "--pull", "missing")
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
                yield from _mask(str(Path(shown.place, hidden.relative_to(shown.host))), directory=hidden.is_dir())


def _mount(host: Path, place: str, *, writable: bool) -> tuple[str, str]:
    return ("--mount", ",".join(["type=bind", f"src={host}", f"dst={place}", *([] if writable else ["readonly"])]))


def _mask(place: str, *, directory: bool) -> tuple[str, str]:
    if directory:
        return ("--mount", f"type=tmpfs,dst={place},tmpfs-size=4096,tmpfs-mode=0000")
    return _mount(Path("/dev/null"), place, writable=False)
