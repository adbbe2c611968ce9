"""What several reviewers find of seeded bugs, what is left when others have tried to refute it, and what that costs:
`python -m benchmarks.reviewing --seed 1`.

A change adds a function of an installed package to its file: as it is, or with one place of it changed. Reviewers are
doubles behind a real server, and `massgen review` runs as a user runs it; how often a double sees a bug, sees one that
is none, and refutes rightly or wrongly is assumed (`Skill`), so nothing here says anything of real models.
"""

import argparse
import ast
import copy
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import unified_diff
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

import anyio
import anyio.to_thread

from benchmarks.deciding.variants import versions_of
from tests.cli.reviewers import Reviewer, finding, reviewing
from tests.commands import run_command
from tests.harness import COMMAND_MODULE, TempHome

PACKAGES = ("anyio", "anthropic", "mcp", "openai", "pydantic", "yaml")
LINES = range(8, 41)
"""Of a function that is added."""


@dataclass(frozen=True, slots=True)
class Skill:
    """Probabilities of a double."""

    sees: float = 0.55
    """It sees a bug; `spread` more or less, as the bug is easy or hard for all."""
    spread: float = 0.3
    imagines: float = 0.5
    """It finds something in a change that is none, in half of the cases at the place where all would see one."""
    refutes: float = 0.75
    """It refutes what is none."""
    misjudges: float = 0.08
    """It refutes what is one."""


@dataclass(frozen=True, slots=True)
class Seeded:
    """A change. `bug`: the line that is wrong; None: none is. `added`: lines that are new."""

    name: str
    diff: str
    file: str
    added: range
    bug: int | None


@dataclass
class Told:
    """What reports came to, over all changes."""

    right: int = 0
    false: int = 0
    flagged_clean: int = 0
    """Clean changes of which something was said."""
    calls: int = 0

    def add(self, change: Seeded, findings: Sequence[dict[str, Any]], calls: int) -> None:
        hits = [one for one in findings if one["line"] == change.bug]
        self.right += bool(hits)
        self.false += len(findings) - len(hits)
        self.flagged_clean += change.bug is None and bool(findings)
        self.calls += calls


@dataclass
class Table:
    union: int = 0
    """Bugs that somebody of the team has found."""
    alone: Told = field(default_factory=Told)
    together: Told = field(default_factory=Told)
    refuted: Told = field(default_factory=Told)

    def lines(self, changes: int) -> Iterator[str]:
        yield f"{'':34}{'bugs found':>12}{'precision':>12}{'clean with findings':>21}{'calls':>8}"
        rows = {
            "one reviewer": self.alone,
            "three, put together": self.together,
            "three, and what is not refuted": self.refuted,
        }
        for what, told in rows.items():
            precision = f"{100 * told.right / max(1, told.right + told.false):.0f} %"
            found = f"{told.right} of {changes}"
            yield f"{what:34}{found:>12}{precision:>12}{f'{told.flagged_clean} of {changes}':>21}{told.calls:>8}"
        lost = self.together.right - self.refuted.right
        more = self.refuted.calls - self.together.calls
        dropped = self.together.false - self.refuted.false
        yield f"found by any of the three: {self.union}; put together: {self.together.right}"
        yield f"refuting took {more} calls, dropped {dropped} of {self.together.false} false findings and {lost} bugs"


# -- the changes ------------------------------------------------------------------------------------------------------


def changes(seed: int, count: int) -> Iterator[Seeded]:
    """So many with a bug, and so many without, of as many functions."""
    random = Random(f"{seed}/changes")
    functions = [*_functions()]
    random.shuffle(functions)
    made = 0
    for path, name in functions:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        place = next(at for at, node in enumerate(tree.body) if isinstance(node, ast.FunctionDef) and node.name == name)
        source = ast.unparse(tree.body[place])
        versions = (
            [source] if made >= count else [version for version in [*versions_of(source)][1:] if version != source]
        )
        if versions:
            yield _change(path, tree, place, random.choice(versions), with_bug=made < count)
            made += 1
        if made == 2 * count:
            return


def _functions() -> Iterator[tuple[Path, str]]:
    for package in PACKAGES:
        spec = find_spec(package)
        assert spec is not None
        assert spec.origin is not None
        for path in sorted(Path(spec.origin).parent.rglob("*.py")):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.FunctionDef) and (node.end_lineno or 0) - node.lineno in LINES:
                    yield path, node.name


def _change(path: Path, tree: ast.Module, place: int, version: str, *, with_bug: bool) -> Seeded:
    before, right, after = copy.copy(tree), tree, copy.copy(tree)
    before.body = tree.body[:place] + tree.body[place + 1 :]
    after.body = [*tree.body[:place], *ast.parse(version).body, *tree.body[place + 1 :]]
    old, clean, new = (ast.unparse(one).splitlines() for one in (before, right, after))
    file = "/".join(path.parts[-2:])
    diff = "\n".join(unified_diff(old, new, f"a/{file}", f"b/{file}", lineterm=""))
    first = len(ast.unparse(ast.Module(tree.body[:place], [])).splitlines()) + 1
    bug = next(at for at, (a, b) in enumerate(zip(clean, new, strict=False), start=1) if a != b) if with_bug else None
    added = range(first, first + len(version.splitlines()))
    return Seeded(f"{file}:{first}", f"{diff}\n", file, added, bug)


# -- the doubles ------------------------------------------------------------------------------------------------------


def finds(name: str, change: Seeded, seed: int, skill: Skill) -> list[dict[str, Any]]:
    shared, own = Random(f"{seed}/{change.name}"), Random(f"{seed}/{change.name}/{name}")
    ease = skill.spread * (2 * shared.random() - 1)
    popular = shared.choice([line for line in change.added if line != change.bug])
    lines = [change.bug] if change.bug is not None and own.random() < skill.sees + ease else []
    if own.random() < skill.imagines:
        alone = own.choice([line for line in change.added if line != change.bug])
        lines.append(popular if own.random() < 0.5 else alone)
    return [finding(f"Line {line} is wrong", line, change.file) for line in dict.fromkeys(lines)]


def verdict(name: str, change: Seeded, seed: int, skill: Skill, title: str) -> tuple[str, str]:
    real = title == f"Line {change.bug} is wrong"
    drawn = Random(f"{seed}/{change.name}/{name}/{title}").random()
    refuted = drawn < (skill.misjudges if real else skill.refutes)
    return ("refuted", "It is as it should be.") if refuted else ("stands", "I see no way around it.")


async def measured(seed: int, count: int, skill: Skill) -> Table:
    table = Table()
    with tempfile.TemporaryDirectory(prefix="massgen-reviewing-") as directory:
        home = TempHome(Path(directory) / "home", Path(directory) / "work")
        home.work.mkdir()
        team = {name: Reviewer() for name in ("ada", "bo", "cy")}
        async with reviewing(home, **team) as (config, _):
            single = home.config("single", *json.loads(await anyio.Path(config).read_text())["agents"][:1])
            for change in changes(seed, count):
                for name, reviewer in team.items():
                    reviewer.finds = finds(name, change, seed, skill)
                    reviewer.verdict = partial(verdict, name, change, seed, skill)
                (home.work / "change.diff").write_text(change.diff)
                found = [one["line"] for reviewer in team.values() for one in reviewer.finds]
                table.union += change.bug in found
                report = await _report(home, single)
                table.alone.add(change, report["findings"], report["calls"])
                report = await _report(home, config)
                left = [one for one in report["findings"] if one["status"] != "refuted"]
                table.together.add(change, report["findings"], len(team) + 1)
                table.refuted.add(change, left, report["calls"])
        home.close()
    return table


async def _report(home: TempHome, config: str) -> dict[str, Any]:
    words = ("review", "--diff", "change.diff", "--config", config, "--format", "json", "--no-logs")
    done = await anyio.to_thread.run_sync(partial(run_command, home, COMMAND_MODULE, *words))
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.reviewing", description="What a team of reviewers finds."
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--changes", type=int, default=40, help="with a bug, and as many without (default: %(default)s)"
    )
    options = parser.parse_args()
    began, skill = time.monotonic(), Skill()
    print(f"{options.changes} changes with a bug, {options.changes} without; seed {options.seed}; {skill}\n")
    for line in anyio.run(measured, options.seed, options.changes, skill).lines(options.changes):
        print(line)
    print(f"\n{time.monotonic() - began:.0f} s.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
