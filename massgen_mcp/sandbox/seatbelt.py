"""The level of macOS: a profile for `sandbox-exec`. Paths are the host's own there, since nothing can be mounted.

Only describes how a command is started; must not start one.
"""

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from massgen_mcp.sandbox.policy import Policy, readable
from massgen_mcp.sandbox.specification import LaunchPlan

_SYSTEM = ("/System", "/Library/Developer", "/Library/Frameworks", "/Applications/Xcode.app", "/private/var/select")
_SETTINGS = ("/private/etc/ssl", "/private/etc/hosts", "/private/etc/passwd", "/private/var/db/timezone")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/dtracehelper")


def program() -> str | None:
    return shutil.which("sandbox-exec", path="/usr/bin") if sys.platform == "darwin" else None


def launch(argv: list[str], policy: Policy, environ: dict[str, str]) -> LaunchPlan:
    """Describe how to start `argv` under `policy`."""
    found = program()
    if found is None:
        raise FileNotFoundError("sandbox-exec")
    begin = ("/bin/sh", "-c", 'cd "$0" && exec "$@"', str(policy.workspace))
    scratch = str(policy.scratch)
    return LaunchPlan(
        argv=(found, "-p", "\n".join(profile(policy)), *begin, *argv),
        environ={**environ, "HOME": scratch, "TMPDIR": scratch},
        files={},
    )


def profile(policy: Policy) -> Iterator[str]:
    """Later rules win. Whatever is not allowed is denied, modes and times of files included."""
    writable = [policy.workspace, policy.scratch, *(shown.host for shown in policy.shown if shown.writable)]
    readable_too = [*map(Path, (*_SYSTEM, *_SETTINGS)), *readable(), *policy.toolchains]
    readable_too += [shown.host for shown in policy.shown if not shown.writable]
    yield "(version 1)"
    yield "(deny default)"
    yield "(allow process-fork process-exec)"
    yield "(allow signal (target same-sandbox))"
    yield "(allow sysctl-read)"
    yield '(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo"))'
    yield f"(allow file-read-metadata {_places('literal', _above([*writable, *readable_too]))})"
    yield f"(allow file-read* {_places('subpath', readable_too)} {_places('literal', map(Path, ['/', *_DEVICES]))})"
    yield f"(allow file-write-data {_places('literal', map(Path, _DEVICES))})"
    yield f"(allow file-read* file-write* {_places('subpath', writable)})"
    yield f"(deny file-write* {_places('subpath', [shown.host for shown in policy.shown if not shown.writable])})"
    if hidden := [*policy.hidden, *policy.texts]:  # no other text can stand in a file's place here
        yield f"(deny file-read* file-write* {_places('subpath', hidden)})"
    for endpoint in policy.network:
        yield f"(allow network-outbound (remote tcp {json.dumps(endpoint)}))"


def _places(kind: str, paths: object) -> str:
    return " ".join(f"({kind} {json.dumps(str(path))})" for path in paths)  # type: ignore[attr-defined]


def _above(paths: list[Path]) -> list[Path]:
    return sorted({parent for path in paths for parent in path.parents})
