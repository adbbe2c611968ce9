"""A repository that a run names by its address, cloned by the worker that executes the run."""

import base64
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from massgen_mcp.changes.git import MAX_SECONDS, GitFailed, last_line, program
from massgen_mcp.home import GIT_HOSTS_VARIABLE

_ADDRESS = re.compile(r"(https://([A-Za-z0-9.-]+)(?::\d+)?/[^\s#?@]+)(?:#([A-Za-z0-9_][A-Za-z0-9._/-]*))?")
_PASSED_ON = ("PATH", "GIT_SSL_CAINFO", "SSL_CERT_FILE", "https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY")


def is_address(path: str) -> bool:
    """`https://HOST/PATH`, and where another branch or tag is meant than the usual one `#NAME`."""
    return _ADDRESS.fullmatch(path) is not None


def clone(address: str, into: Path, environ: Mapping[str, str]) -> None:
    """The newest files, without their history. Only from hosts that the operator names, with the token that stands
    there. Raises `GitFailed`.
    """
    found = _ADDRESS.fullmatch(address)
    url, host, name = found.groups() if found else ("", "", None)
    named = (one.partition("=") for one in environ.get(GIT_HOSTS_VARIABLE, "").split())
    hosts = {name: token for name, _, token in named}
    if host not in hosts:
        raise GitFailed(f"{GIT_HOSTS_VARIABLE} of this worker does not name {host or address}")
    login = base64.b64encode(f"x-access-token:{hosts[host]}".encode()).decode()
    settings = {"http.followRedirects": "false", "core.hooksPath": "/dev/null"}
    if hosts[host]:
        settings["http.extraHeader"] = f"Authorization: Basic {login}"
    env = {name: environ[name] for name in _PASSED_ON if name in environ}
    env |= {"HOME": str(into.parent), "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0"}
    env |= {"GIT_ALLOW_PROTOCOL": "https", "GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings.items()):
        env |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    branch = ["--branch", name] if name else []
    command = [program(), "clone", "--quiet", "--depth", "1", "--no-tags", *branch, "--", url, str(into)]
    try:
        subprocess.run(command, env=env, capture_output=True, timeout=MAX_SECONDS, check=True)  # noqa: S603 - no shell
    except subprocess.TimeoutExpired as error:
        raise GitFailed(f"cloning {url} took longer than {MAX_SECONDS:g} s") from error
    except subprocess.CalledProcessError as error:
        raise GitFailed(f"{url} cannot be cloned: {last_line(error.stderr)}") from error
