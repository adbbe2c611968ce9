"""MassGen's keys for commands and Docker in a `backend` section, brought to the agent's `commands`. Pure."""

import math
import re
from collections.abc import Callable, Mapping

from massgen_mcp.config.massgen.remarks import Remarks
from massgen_mcp.config.yaml_reader import Place, Plain

SWITCH, MODE = "enable_mcp_command_line", "command_line_execution_mode"
MODES: Mapping[str, str] = {"local": "auto", "srt": "auto", "docker": "docker"}
"""The sandbox that stands for a mode: no command runs without one."""
DEFAULT_IMAGE = "ghcr.io/massgen/mcp-runtime:latest"
SUDO_IMAGE = "ghcr.io/massgen/mcp-runtime-sudo:latest"
"""MassGen's own images: of a config that names none, and of `use_docker`."""
_OF_DOCKER, _OF_SRT = "command_line_docker_", "command_line_srt_"
IGNORED: Mapping[str, str] = {
    f"{_OF_DOCKER}enable_sudo": "commands can't use sudo; put the programs that they need in the image",
    f"{_OF_SRT}read_mode": "commands can read only the workspace, context paths and programs",
    "enable_code_based_tools": "agents call tools by name, and use commands to run the code that they write",
}
"""Why a key means nothing where an agent has commands."""
REFUSED: Mapping[str, str] = {
    f"{_OF_DOCKER}packages": "massgen installs nothing for commands; build an image with these packages and name it "
    f"in {_OF_DOCKER}image",
    f"{_OF_DOCKER}credentials": "commands get no keys; remove this setting",
    f"{_OF_SRT}deny_read": "commands can read only the workspace, context paths and programs; remove this "
    "setting, and make sure that no context path contains files that they must not read",
    f"{_OF_SRT}allow_unix_sockets": "commands can't use this machine's sockets; remove this setting",
}
"""What cannot be had, and the way out."""
_NOT_SWITCHED_ON = "part of a feature that this config doesn't enable"
_OTHER_MODE = "of another command_line_execution_mode"
MAX_SIZE = 30
"""Characters of a size."""
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([bkmg]?)b?", re.IGNORECASE)
_UNITS = {"b": 2**20, "": 2**20, "k": 2**10, "m": 1, "g": 1 / 2**10}
"""So many of them are a mebibyte."""
_ARCHIVE = re.compile(r"(?:(?:oci|oci-archive|docker-archive):)(.+)|((?:/|\./|\.\./|~/).*)")


def take(backend: dict[str, Plain], place: Place, remarks: Remarks) -> dict[str, Plain] | None:
    """Take MassGen's keys out of `backend`, the caller's own copy at `place`. Returns what the agent's `commands` are
    in our spelling; None for an agent without any.
    """
    wanted, mode = backend.pop(SWITCH, None), backend.get(MODE)
    known = (*_SETTINGS, *IGNORED, *REFUSED, MODE)
    given = {key: backend[key] for key in known if key in backend}
    code = given.pop("enable_code_based_tools", None)
    for key in given:
        del backend[key]
    given = {key: value for key, value in given.items() if value not in (None, False, [], {}, "")}
    if not wanted and (mode != "docker" or wanted is False):
        for key in given:
            remarks.ignore(_NOT_SWITCHED_ON, (*place, key))
        return None
    if mode is not None and not (isinstance(mode, str) and mode in MODES):
        remarks.refuse((*place, MODE), f"expected {', '.join(MODES)}")
    if wanted not in (None, True):
        remarks.refuse((*place, SWITCH), "expected true or false")
    if mode == "docker" and code:
        del backend["enable_code_based_tools"]
        given["enable_code_based_tools"] = code
    return _sorted_out(given, str(mode), place, remarks)


def _sorted_out(given: Mapping[str, Plain], mode: str, place: Place, remarks: Remarks) -> dict[str, Plain]:
    settings: dict[str, Plain] = {"enabled": True, "sandbox": MODES.get(mode, "auto")}
    keys = {"enabled": SWITCH, "sandbox": MODE}
    for key, value in given.items():
        if key.startswith(_OF_DOCKER) and mode != "docker":
            remarks.ignore(_OTHER_MODE, (*place, key))
        elif key in IGNORED:
            remarks.ignore(IGNORED[key], (*place, key))
        elif key in REFUSED:
            remarks.refuse((*place, key), REFUSED[key])
        elif key in _SETTINGS:
            try:
                made = _SETTINGS[key](value)
            except ValueError as error:
                remarks.refuse((*place, key), str(error))
                continue
            settings |= made
            keys |= dict.fromkeys(made, key)
    if mode == "docker" and "image_archive" not in settings:
        settings.setdefault("image", DEFAULT_IMAGE)
    ours = (*place[:-1], "commands")
    remarks.moved |= {(*ours, name): (*place, key) for name, key in keys.items()}
    remarks.moved[ours] = (*place, SWITCH)
    return settings


def _image(value: Plain) -> dict[str, Plain]:
    """A name, or where on this machine the image lies, also in Podman's spelling."""
    archive = _ARCHIVE.fullmatch(value) if isinstance(value, str) else None
    return {"image": value} if archive is None else {"image_archive": archive[1] or archive[2]}


def _memory(value: Plain) -> dict[str, Plain]:
    size = _SIZE.fullmatch(str(value)[:MAX_SIZE])
    if size is None or isinstance(value, bool):
        raise ValueError("expected a size such as 512m or 2g")
    return {"max_memory_mb": math.ceil(float(size[1]) / _UNITS[size[2].lower()])}


def _network(value: Plain) -> dict[str, Plain]:
    if value not in ("none", "bridge"):
        raise ValueError("expected none or bridge; commands never share this machine's network")
    return {"open_network": value == "bridge"}


def _domains(value: Plain) -> dict[str, Plain]:
    hosts = value if isinstance(value, list) else [value]
    if not all(isinstance(host, str) and "*" not in host for host in hosts):
        raise ValueError("expected host names without *; commands can reach each host on ports 80 and 443")
    return {"network": [f"{host}:{port}" for host in hosts for port in (443, 80)]}


def _as(name: str) -> Callable[[Plain], dict[str, Plain]]:
    return lambda value: {name: value}


_SETTINGS: Mapping[str, Callable[[Plain], dict[str, Plain]]] = {
    f"{_OF_DOCKER}image": _image,
    f"{_OF_DOCKER}memory_limit": _memory,
    f"{_OF_DOCKER}cpu_limit": _as("max_cpus"),
    f"{_OF_DOCKER}network_mode": _network,
    f"{_OF_SRT}network_allowed_domains": _domains,
    f"{_OF_SRT}allow_read": _as("readable"),
    "command_line_allowed_commands": _as("allowed"),
    "command_line_blocked_commands": _as("blocked"),
    "command_line_timeout": _as("timeout_seconds"),
}
"""What becomes of a key: settings of `commands`. Raises `ValueError` for a value that has no meaning."""
MEANINGS: tuple[tuple[str, str], ...] = (
    (f"`{SWITCH}: true`", "the agent's `commands: {enabled: true}`, in a [sandbox](commands.md)"),
    (f"`{MODE}: local`, `srt`", "`sandbox: auto`: every command runs in a sandbox, without a network by default"),
    (f"`{MODE}: docker`", f"`sandbox: docker`; the default image is `{DEFAULT_IMAGE}`"),
    (f"`{_OF_DOCKER}image`", "`image`; for a path (also `oci:PATH`, `docker-archive:PATH`), use `image_archive`"),
    (f"`{_OF_DOCKER}memory_limit: 2g`, `{_OF_DOCKER}cpu_limit: 2`", "`max_memory_mb: 2048`, `max_cpus: 2`"),
    (f"`{_OF_DOCKER}network_mode: bridge`", "`open_network: true`; `none` is the default, and massgen rejects `host`"),
    ("`command_line_allowed_commands`, `command_line_blocked_commands`", "`allowed`, `blocked`"),
    ("`command_line_timeout`", "`timeout_seconds`"),
    (f"`{_OF_SRT}network_allowed_domains: [HOST]`", "`network: [HOST:443, HOST:80]`; no patterns"),
    (f"`{_OF_SRT}allow_read`", "`readable`"),
)
"""For the page on MassGen's configs."""
