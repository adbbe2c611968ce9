"""Images made out of this machine's own files: as OCI layouts, in tar files, and as `docker save` writes them."""

import gzip
import hashlib
import io
import json
import platform
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

Kind = Literal["oci", "oci-archive", "docker-archive"]
MACHINE = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]


def entry(name: str, content: str | bytes = b"", *, mode: int = 0o755, **said: Any) -> tuple[tarfile.TarInfo, bytes]:
    """One entry of a layer; `type` and `linkname` are told by name."""
    data = content.encode() if isinstance(content, str) else content
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(data), mode
    for key, value in said.items():
        setattr(info, key, value)
    return info, data


def link(name: str, target: str, *, hard: bool = False) -> tuple[tarfile.TarInfo, bytes]:
    return entry(name, type=tarfile.LNKTYPE if hard else tarfile.SYMTYPE, linkname=target)


def layer(entries: Iterable[tuple[tarfile.TarInfo, bytes]]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for info, data in entries:
            archive.addfile(info, io.BytesIO(data))
    return packed.getvalue()


def shell() -> list[tuple[tarfile.TarInfo, bytes]]:
    """A system of a shell and some programs, and the libraries that they need."""
    programs = [Path(found) for name in ("sh", "cat", "ls", "env", "touch") if (found := shutil.which(name))]
    listed = subprocess.run(["ldd", *map(str, programs)], capture_output=True, text=True, check=True).stdout
    libraries = sorted(set(re.findall(r"(/\S+\.so\S*)", listed)))
    made = [link("bin", "usr/bin"), entry("etc/os-release", "NAME=made\n", mode=0o644)]
    made += [entry(f"usr/bin/{program.name}", program.read_bytes()) for program in programs]
    return made + [entry(library.lstrip("/"), Path(library).read_bytes()) for library in libraries]


def image(path: Path, kind: Kind, *layers: bytes, packed: bool = True, **said: Any) -> Path:
    """The image of these layers, at `path`. `packed`: by gzip. `said`: changes of what it says of itself."""
    stored = [gzip.compress(one, 1) if packed else one for one in layers]
    config = {
        "architecture": MACHINE,
        "os": "linux",
        "config": {"Env": ["PATH=/usr/bin:/bin", "OF_IMAGE=yes", "HOME=/root"]},
        "rootfs": {"type": "layers", "diff_ids": [_digest(one) for one in layers]},
        **said,
    }
    parts = _saved(config, stored) if kind == "docker-archive" else _layout(config, stored)
    if kind == "oci":
        for name, data in parts.items():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_bytes(data)
        return path
    path.write_bytes(layer(entry(name, data) for name, data in parts.items()))
    return path


def _saved(config: dict[str, Any], layers: list[bytes]) -> dict[str, bytes]:
    names = [f"{number}/layer.tar" for number, _ in enumerate(layers)]
    manifest = [{"Config": "config.json", "RepoTags": ["made:latest"], "Layers": names}]
    parts = {"manifest.json": _text(manifest), "config.json": _text(config)}
    return parts | dict(zip(names, layers, strict=True))


def _layout(config: dict[str, Any], layers: list[bytes]) -> dict[str, bytes]:
    parts: dict[str, bytes] = {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}'}

    def blob(data: bytes, kind: str) -> dict[str, Any]:
        parts[f"blobs/sha256/{hashlib.sha256(data).hexdigest()}"] = data
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": _digest(data), "size": len(data)}

    of_layers = "layer.v1.tar+gzip" if all(one[:2] == b"\x1f\x8b" for one in layers) else "layer.v1.tar"
    manifest = {
        "schemaVersion": 2,
        "config": blob(_text(config), "config.v1+json"),
        "layers": [blob(one, of_layers) for one in layers],
    }
    named = blob(_text(manifest), "manifest.v1+json")
    return parts | {"index.json": _text({"schemaVersion": 2, "manifests": [named]})}


def _text(document: object) -> bytes:
    return json.dumps(document).encode()


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"
