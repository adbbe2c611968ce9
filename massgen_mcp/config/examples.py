"""The configs that ship with the package: `@examples/NAME`.

A name only ever selects from what is there; no path is built from it.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from massgen_mcp.errors import MassgenError
from massgen_mcp.nearest import nearest

_NAME = re.compile(r"[a-z0-9][a-z0-9_./-]{0,63}")
_SUFFIX = ".yaml"


@dataclass(frozen=True, slots=True)
class Example:
    name: str
    """What follows `@examples/`; with slashes when the file is in a folder."""
    description: str
    """First line of the file's header comment."""
    path: Path


def list_examples() -> list[Example]:
    """All packaged configs, by name. Empty when they are not installed."""
    directory = _examples_directory()
    if directory is None:
        return []
    files = sorted(directory.rglob(f"*{_SUFFIX}"))
    found = [(path.relative_to(directory).as_posix().removesuffix(_SUFFIX), path) for path in files]
    return [Example(name, _description(path), path) for name, path in found if _NAME.fullmatch(name)]


def example_path(name: str) -> Path:
    """The file of an example; `.yaml` after the name and `configs/` before it are allowed, and where no other example
    ends so, the name without its folders.

    Raises `MassgenError("config_not_found")` with the nearest name.
    """
    wanted = name.removesuffix(_SUFFIX).removeprefix("configs/")
    known = {example.name: example.path for example in list_examples()}
    if wanted in known:
        return known[wanted]
    ending_so = [path for known_name, path in known.items() if known_name.endswith(f"/{wanted}")]
    if len(ending_so) == 1:
        return ending_so[0]
    shown = f"@examples/{wanted}" if _NAME.fullmatch(wanted) else "with that name"
    near = nearest_example(wanted)
    hint = f"Did you mean @examples/{near}?" if near else f"Available examples: {', '.join(known) or 'none'}."
    raise MassgenError("config_not_found", f"There is no example {shown}. {hint}")


def example_of(name: str) -> Path | None:
    """The example of this name, or the one that `FOLDER/NAME.yaml` names, as MassGen's first versions did."""
    wanted = name.removesuffix(_SUFFIX)
    if (wanted == name) == ("/" in name):
        return None
    return next((example.path for example in list_examples() if example.name == wanted), None)


def nearest_example(name: str) -> str | None:
    """The name of the example that most likely was meant."""
    return nearest(name.removesuffix(_SUFFIX), [one.name for one in list_examples()])


def example_name(path: Path) -> str | None:
    """The name of the packaged config at `path`; None if it is somebody's own file."""
    return next((example.name for example in list_examples() if example.path == path), None)


def _examples_directory() -> Path | None:
    """Beside the package's modules in a wheel, at the root of the repository in a checkout."""
    package = Path(__file__).parent.parent
    candidates = (package / "configs", package.parent / "configs")
    return next((path for path in candidates if path.is_dir()), None)


def _description(path: Path) -> str:
    with path.open(encoding="utf-8") as file:
        first = file.readline(1000).strip()
    return first.lstrip("# ") if first.startswith("#") else ""
