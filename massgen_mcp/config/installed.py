"""Whether the packages that this one needs are here in versions that it can work with, and who brought others.

Reads what the installer wrote down; imports none of the packages.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

OWN = "massgen-mcp"
OF_MODELS = ("openai", "anthropic", "httpx2")
"""What the wires stand on."""
_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9._-]+)\s*(?:\[[^\]]*\])?\s*\(?([^;)]*)\)?\s*(;.*)?")
_BOUND = re.compile(r"(===|==|!=|~=|>=|<=|<|>)\s*(\d+(?:\.\d+)*)(\.\*)?")


@dataclass(frozen=True, slots=True)
class WrongVersion:
    """A package that is missing, or here in a version that this one cannot work with."""

    package: str
    version: str | None
    wanted: str
    """As the installer writes it: `<4,>=3.52`."""
    brought_by: tuple[str, ...]
    """Packages here that forbid every version that is wanted, with what they ask for."""

    def __str__(self) -> str:
        here = f"{self.package} {self.version} is installed" if self.version else f"{self.package} is not installed"
        by = f"; {' and '.join(self.brought_by)}" if self.brought_by else ""
        return (
            f"{here}, but {OWN} needs {self.package}{self.wanted}{by}. Install {OWN} in a separate environment, "
            f"or run: pip install '{self.package}{self.wanted}'"
        )


def wrong_versions(*packages: str) -> tuple[WrongVersion, ...]:
    """What is wrong with these packages; without any named, with all that this one needs."""
    return tuple(wrong for package in packages or _needed() if (wrong := _wrong(package)) is not None)


@cache
def _needed() -> dict[str, str]:
    """Which versions this one needs of each package; nothing where it runs from a source that does not say so."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        return dict(_requirements(distribution(OWN).requires))
    except PackageNotFoundError:
        return {}


@cache
def _wrong(package: str) -> WrongVersion | None:
    from importlib.metadata import PackageNotFoundError, distribution

    if (wanted := _needed().get(package)) is None:
        return None
    try:
        version = distribution(package).version
    except PackageNotFoundError:
        version = None
    if version is not None and admits(wanted, version):
        return None
    return WrongVersion(package, version, wanted, tuple(_who_forbids(package, wanted)))


def _who_forbids(package: str, wanted: str) -> Iterator[str]:
    from importlib.metadata import distributions

    least = next((bound[2] for bound in _BOUND.finditer(wanted) if bound[1] == ">="), "0")
    for other in distributions():
        for name, asked in _requirements(other.requires):
            if name == package and not admits(asked, least) and other.name != OWN:
                yield f"{other.name} {other.version} asks for {package}{asked}"


def _requirements(lines: list[str] | None) -> Iterator[tuple[str, str]]:
    """Names and versions of what is needed without any extra."""
    for line in lines or ():
        found = _REQUIREMENT.match(line)
        if found and "extra" not in (found[3] or ""):
            yield re.sub(r"[-_.]+", "-", found[1]).lower(), found[2].strip()


def admits(wanted: str, version: str) -> bool:
    """Whether a version is among those that a requirement such as `<4,>=3.52` names; what stands behind the numbers, as
    in 3.52rc1, is passed over.
    """
    here = _numbers(version)
    return all(_holds(bound, here) for bound in _BOUND.finditer(wanted))


def _holds(bound: re.Match[str], here: tuple[int, ...]) -> bool:
    there, length = _numbers(bound[2]), bound[2].count(".") + 1
    same = here[:length] == there[:length] if bound[3] else here == there
    match bound[1]:
        case ">=":
            return here >= there
        case "<=":
            return here <= there
        case ">":
            return here > there
        case "<":
            return here < there
        case "!=":
            return not same
        case "~=":
            return here >= there and here[: length - 1] == there[: length - 1]
        case _:
            return same


def _numbers(version: str) -> tuple[int, ...]:
    """Its release, always of the same length."""
    release = re.match(r"\d+(?:\.\d+)*", version)
    numbers = tuple(map(int, release[0].split("."))) if release else ()
    return (*numbers[:6], *(0 for _ in range(6 - len(numbers))))
