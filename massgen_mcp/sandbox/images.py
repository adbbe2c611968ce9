"""Unpacks an image that lies on this machine, so that its programs can be used without Docker or Podman.

An image is a directory in OCI layout, a tar file of one, or a file as `docker save` writes it. It is not trusted:
skopeo and umoci read it in the sandbox, with one new directory to write to, and bounds on its bytes and files.
"""

import hashlib
import json
import secrets
import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio.to_thread

from massgen_mcp.sandbox.policy import Image, ImageRefused, Policy, VisiblePath
from massgen_mcp.sandbox.process import spawn
from massgen_mcp.sandbox.specification import GIB, ResourceLimits

PROGRAMS = ("skopeo", "umoci")
BOUNDS = ResourceLimits(seconds=1800, disk_bytes=32 * GIB, files=1_000_000)
"""Of unpacking, while which an image is there twice: packed, and its files."""
MAX_OUTPUT_BYTES = 4 * 1024**2
DAY = 86_400.0
USUAL_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_NOT_TAKEN_OVER = frozenset({"HOME", "TMPDIR", "USER"})
_SOURCE = "/context/image"
_FIND = f"""
set -e
skopeo() {{ command skopeo --insecure-policy --tmpdir /tmp "$@"; }}
image=oci:{_SOURCE}
if test -f {_SOURCE} && tar -tf {_SOURCE} manifest.json >/tmp/list 2>&1; then image=docker-archive:{_SOURCE}
elif test -f {_SOURCE}; then
    image=oci:/tmp/archive
    mkdir /tmp/archive
    tar --no-same-owner -C /tmp/archive -xf {_SOURCE}
fi
"""
"""skopeo unpacks an OCI archive only for users who may map ids of other users, which no user may in the sandbox."""
_ASK = f"{_FIND} skopeo inspect --config $image"
_UNPACK = f"""{_FIND}
skopeo copy --quiet $image oci:/tmp/layout:it
umoci --log=error raw unpack --rootless --image /tmp/layout:it root
chmod -R u+rwX,a-s,go-w root
"""
"""Rights of others and set-user-id go."""


async def unpacked(source: Path, kept_in: Path) -> Image:
    """The image at `source`, from `kept_in` if it was unpacked there before. Raises `ImageRefused`, `SandboxFailed`."""
    if missing := [name for name in PROGRAMS if shutil.which(name) is None]:
        names = " and ".join(missing)
        raise ImageRefused(f"{names} must be installed to unpack the image (apt install {' '.join(missing)})")
    with TemporaryDirectory(prefix="massgen-image-") as place:
        printed = await _run(_ASK, source, Path(place))
    try:
        config = json.loads(printed)
        layers, environ = config["rootfs"]["diff_ids"], _environ(config.get("config") or {})
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise ImageRefused("cannot read the image's metadata") from error
    whole = kept_in / hashlib.sha256("\0".join(map(str, layers)).encode()).hexdigest()[:32]
    if not whole.is_dir():
        await _unpack(source, whole)
    return Image(whole, environ)


async def _unpack(source: Path, whole: Path) -> None:
    whole.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    for left in whole.parent.glob(".*"):  # by a process that was killed
        if left.stat().st_mtime < time.time() - DAY:
            shutil.rmtree(left, ignore_errors=True)
    fresh = whole.parent / f".{secrets.token_hex(8)}"
    fresh.mkdir(mode=0o700)
    try:
        await _run(_UNPACK, source, fresh)
        with suppress(OSError):  # another one was quicker
            (fresh / "workspace/root").rename(whole)
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(shutil.rmtree, fresh, True)


async def _run(script: str, source: Path, place: Path) -> bytes:
    """What the script prints. It writes only below `place`. Raises `ImageRefused` with its error."""
    workspace, scratch = place / "workspace", place / "scratch"
    for directory in (workspace, scratch):
        directory.mkdir(mode=0o700)
    policy = Policy(workspace, scratch, shown=(VisiblePath(source, _SOURCE),), bounds=BOUNDS)
    output = b""
    async with spawn(["/bin/sh", "-c", script], policy, "bubblewrap") as process:
        async for chunk in process.stdout:
            output = (output + chunk)[:MAX_OUTPUT_BYTES]
        ended = await process.wait()
    if ended.reason != "exited" or ended.code != 0:
        why = output.decode(errors="replace").strip()[-300:] or ended.message or f"limit of {ended.reason}"
        raise ImageRefused(f"cannot unpack it: {why}")
    return output


def _environ(config: Mapping[str, Any]) -> dict[str, str]:
    given = [str(entry).partition("=") for entry in config.get("Env") or ()]
    named = {name: value for name, sign, value in given if sign and name not in _NOT_TAKEN_OVER and "\0" not in value}
    return {"PATH": USUAL_PATH, **named}
