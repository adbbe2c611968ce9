"""Lays the files of an answer out, with protected ones as they are in the base, and runs a check on them.

Every check begins on a fresh check-out with an empty scratch directory, in the sandbox, and nowhere else: what one
leaves behind is there for no other.
"""

import os
import secrets
import shlex
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import anyio.to_thread
from pydantic import BaseModel, ValidationError

from massgen_mcp.changes.base import Base, path_text
from massgen_mcp.changes.build_outputs import is_library
from massgen_mcp.changes.copies import copy_ignored, copy_installed, known_as, place_in
from massgen_mcp.changes.files import LINK, TreeFile, TreeFiles
from massgen_mcp.changes.repository import TreeId
from massgen_mcp.changes.run_changes import RunChanges
from massgen_mcp.checks.output import IGNORED_CURE, excerpt_of, hindrance_of, last_of, not_there, tests_in
from massgen_mcp.checks.protected import Protection
from massgen_mcp.events.parts import CheckOutcome
from massgen_mcp.home import write_durably
from massgen_mcp.redaction import Redactor
from massgen_mcp.sandbox import (
    WORKSPACE,
    Policy,
    SandboxFailed,
    SandboxRules,
    VisiblePath,
    build_shell_command,
    spawn,
)
from massgen_mcp.sandbox.process import Output, how_ended, take
from massgen_mcp.secret_files import is_secret
from massgen_mcp.threads import in_thread
from massgen_mcp.workspace.snapshot import remove_tree

# ---------------------------------------------------------------------------------------------------------------------
# What checks said of the unchanged files when they ran last, kept in the state directory for whoever asks next: a run
# after a dry run does not run them twice. One small file for the checks of a directory.


USED_SECONDS = 3_600.0
"""So long an outcome stands for the same files: what a check finds outside of them may have changed since."""
KEPT_SECONDS = 30 * 86_400.0
"""So long a file is kept that nobody has written since."""


class KeptOutcomes(BaseModel, frozen=True, defer_build=True, extra="forbid"):
    """Of one state of the files, in one environment; both are digests."""

    tree: str
    environment: str
    at: float
    """When the last of them ended, in seconds since the epoch."""
    outcomes: tuple[CheckOutcome, ...]


def kept_in(file: Path) -> KeptOutcomes | None:
    """What was kept last; None where nothing can be read. Blocks."""
    try:
        return KeptOutcomes.model_validate_json(file.read_bytes())
    except (OSError, ValidationError):
        return None


@dataclass(frozen=True, slots=True)
class BaseOutcomes:
    """Those of the base of a run or a trial. Blocks; a file that cannot be written is done without."""

    file: Path
    tree: str
    environment: str
    redactor: Redactor

    def known(self, command: str) -> CheckOutcome | None:
        """What need not be found out again. What failed for the environment is: a person may have mended that."""
        kept = kept_in(self.file)
        if kept is None or (kept.tree, kept.environment) != (self.tree, self.environment):
            return None
        if not 0 <= time.time() - kept.at < USED_SECONDS:
            return None
        found = (outcome for outcome in kept.outcomes if outcome.command == command)
        return next((one for one in found if one.result != "not_run" and one.obstacle is None), None)

    def note(self, outcome: CheckOutcome) -> None:
        """Keep one more, and drop those of another state of the files or the environment."""
        kept = kept_in(self.file)
        same = kept is not None and (kept.tree, kept.environment) == (self.tree, self.environment)
        others = [one for one in kept.outcomes if one.command != outcome.command] if kept is not None and same else []
        clean = CheckOutcome.model_validate(self.redactor.value(outcome.model_dump(mode="json")))
        made = KeptOutcomes(tree=self.tree, environment=self.environment, at=time.time(), outcomes=(*others, clean))
        with suppress(OSError):
            self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_durably(self.file, made.model_dump_json().encode())
            for other in self.file.parent.glob("*.json"):
                if other.stat().st_mtime < time.time() - KEPT_SECONDS:
                    other.unlink()


MAX_LACKING = 3
COMPILED = "it ran without compiled files that are in your directory: {}; build them in the check or in `setup`"
TEST_SECONDS = 60
"""The script of a test is ended after so long, or after the time of a check if that is less."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The files of an answer as they are judged. Trees are ids of files by their content."""

    tree: str
    """With protected files as they are in the base."""
    own_tree: str
    """With the answer's own versions of them."""
    restored: tuple[str, ...] = ()
    """Paths in which the two differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRules(SandboxRules):
    """What holds for every check alike. `bounds` holds its time, too."""

    protection: Protection


class FileJudge:
    """The checks of one run, and the files that they judge."""

    def __init__(
        self,
        changes: RunChanges,
        base: Base,
        place: Path,
        rules: CheckRules,
        *,
        shown: tuple[VisiblePath, ...] = (),
        kept: BaseOutcomes | None = None,
    ) -> None:
        """Checks begin in the first directory of the base. `place`: where check-outs lie while they are used. `shown`:
        what checks need and no tree holds. `kept`: what they said of the base before.
        """
        self._repository, self._made = changes.repository, changes.made
        self._base = base
        self._place = place
        self._rules = rules
        self._shown = shown
        self._kept = kept
        self._moment: int | None = None

    @property
    def commands(self) -> tuple[str, ...]:
        return self._rules.protection.commands

    @property
    def base(self) -> str:
        """The id of the untouched files."""
        return self._base.tree

    async def check_base(self, command: str) -> CheckOutcome:
        """Run one check on the untouched files, unless it is known what comes of that. One that fails for their sake
        runs once more: if it passes then, it is flaky, and no answer mends it.
        """
        known = None if self._kept is None else await anyio.to_thread.run_sync(self._kept.known, command)
        if known is not None:
            return known
        outcome = await self.check(self.base, command)
        if outcome.speaks_against:
            outcome = outcome.with_another_run(await self.check(self.base, command))
        if self._kept is not None:
            await anyio.to_thread.run_sync(self._kept.note, outcome)
        return outcome

    async def check(self, tree: str, command: str, expected: str | None = None) -> CheckOutcome:
        """Run one check on these files. `expected`: it is the script of a test, which passes if it prints this, spaces
        and lines around it left out, and ends with 0. What it prints is compared out here, where nothing that the files
        do can reach.
        """
        directory = self._place / secrets.token_hex(8)
        silent = ""
        if expected is not None:
            silent = "exec 2>/dev/null\n"
        script = f"cd -- {shlex.quote(self._base.directories[0].name)} || exit 125\n{silent}{command}"
        output = Output()
        try:
            self._moment = self._moment or int(time.time())
            policy = await anyio.to_thread.run_sync(self._lay_out, tree, directory)
            if expected is not None:
                await anyio.to_thread.run_sync(_no_later_than, self._moment, directory)
                seconds = min(policy.bounds.seconds, TEST_SECONDS)
                policy = replace(policy, bounds=policy.bounds.with_seconds(seconds))
            async with spawn(build_shell_command(script), policy, self._rules.level) as process:
                too_much = await take(process, output)
                ended = await process.wait()
            lacking = await anyio.to_thread.run_sync(self._find_lacking, directory / "files")
        except SandboxFailed as failed:
            how = f"did not run: {failed}"
            return CheckOutcome(command=command, expected=expected, result="not_run", how=how, seconds=0)
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(remove_tree, directory)
        text = output.text()
        as_expected = expected is None or text.strip() == expected.strip()
        passed = ended.reason == "exited" and ended.code == 0 and not too_much and as_expected
        never = ended.reason in ("failed", "lost", "stopped") and not too_much
        exited = ended.reason == "exited" and not passed
        hindrance = hindrance_of(ended.code, text, _find_directory) if exited else None
        missed = exited and tree == self.base
        outcome = CheckOutcome(
            command=command,
            expected=expected,
            result="passed" if passed else "not_run" if never else "failed",
            how=how_ended(ended, policy.bounds.seconds, too_much=too_much),
            code=ended.code,
            seconds=round(ended.seconds, 3),
            excerpt=last_of(text) if passed else excerpt_of(text),
            tests=tests_in(text),
            obstacle=hindrance and hindrance.obstacle,
            cure=hindrance.cure if hindrance else await self._left_out(text) if missed else "",
        )
        return outcome.add_warnings(COMPILED.format(", ".join(lacking))) if lacking and expected is None else outcome

    @in_thread
    def find_unfollowed(self) -> tuple[str, ...]:
        """Say what the scripts of the checks load that is not put back."""
        name = os.fsencode(self._base.directories[0].name)
        files = _group_by_top_directory(self._repository.files(self._base.id)).get(name, {})
        with self._repository.reading() as content:
            return self._rules.protection.find_unfollowed(files, content, lambda file: file.mode == LINK)

    def _find_lacking(self, files: Path) -> list[str]:
        """Name the compiled parts that the user's directory has and a check did not make."""
        return [
            below
            for one in self._base.directories
            for below in one.compiled
            if not any(is_library(os.fsencode(name)) for name in _list_like(files / one.name / below))
        ][:MAX_LACKING]

    @in_thread
    def _left_out(self, output: str) -> str:
        """What helps where the base lacks a file that a check misses and the user's directory has; mostly empty."""
        files = self._repository.files(self._base.id)
        for path in not_there(output):
            for one in self._base.directories:
                below = path.removeprefix(f"{WORKSPACE}/{one.name}/").removeprefix(f"{one.path}/")
                own = Path(one.path, below)
                there = os.fsencode(f"{one.name}/{below}") in files or self._is_shown(own)
                if not below.startswith("/") and not there and not is_secret(Path(below).parts) and own.is_file():
                    return IGNORED_CURE.format(below)
        return ""

    def _is_shown(self, own: Path) -> bool:
        return any(own.is_relative_to(one.host) for one in self._shown)

    @in_thread
    def subject(self, tree: str) -> Subject:
        """The files of an answer, whose own tree this is, as they are judged."""
        repository, own = self._repository, TreeId(tree)
        base, answer = (
            _group_by_top_directory(repository.files(self._base.id)),
            _group_by_top_directory(repository.files(own)),
        )
        judged, restored = dict[bytes, TreeFile](), list[bytes]()
        with repository.reading() as content:
            for name in {*base, *answer}:
                files, differing = self._rules.protection.judged(
                    base.get(name, {}),
                    answer.get(name, {}),
                    content,
                    lambda file: file.mode == LINK,
                    self._list_installed(),
                )
                judged |= {name + b"/" + path: file for path, file in files.items()}
                restored += differing if len(base) == 1 else [name + b"/" + path for path in differing]
        if not restored:
            return Subject(own, own)
        return Subject(repository.tree_of(judged), own, tuple(map(path_text, sorted(restored))))

    def _list_installed(self) -> frozenset[str]:
        """The Python modules in environments that git ignores."""
        copied = (Path(one.path, below) for one in self._base.directories for below in one.copied)
        places = (*(one.host for one in self._shown), *copied)
        found = (module for place in places for module in place.glob("lib*/python*/site-packages/*"))
        return frozenset(module.name.partition(".")[0] for module in found)

    def _lay_out(self, tree: str, directory: Path) -> Policy:
        """Make everything that a check finds in `directory`, and say what it may see and change of it."""
        rules, files, scratch = self._rules, directory / "files", directory / "scratch"
        scratch.mkdir(mode=0o700, parents=True)
        self._repository.check_out(TreeId(tree), files)
        for one in self._base.directories:
            (files / one.name).mkdir(parents=True, exist_ok=True)  # git knows no empty ones
            copy_ignored(one, files / one.name)
            copy_installed(one, files / one.name, self._made)
        shown = [one for one in self._shown if _make_room(files, one)]
        return rules.make_policy(files, scratch, tuple(shown), known_as(self._base))


def _list_like(library: Path) -> Iterator[str]:
    """Yield the names beside this one that differ from it in no more than what follows the first dot."""
    with suppress(OSError):
        yield from (
            one.name for one in library.parent.iterdir() if one.name.split(".")[0] == library.name.split(".")[0]
        )


def _find_directory(program: str) -> str | None:
    """Return the directory of a program on our own search path."""
    found = shutil.which(program)
    return None if found is None else str(Path(found).parent)


def _no_later_than(moment: int, directory: Path) -> None:
    """Give what was laid out since then this time: no script is to tell answers apart by the times of their files."""
    for above, directories, files in os.walk(directory):
        for name in (".", *directories, *files):
            place = Path(above, name)
            if place.lstat().st_mtime > moment:
                os.utime(place, (moment, moment), follow_symlinks=False)


def _make_room(files: Path, shown: VisiblePath) -> bool:
    """Whether there is an empty directory now at the place of what is to be shown."""
    place = place_in(files, shown.place.removeprefix(f"{WORKSPACE}/"))
    if place is not None:
        place.mkdir()
    return place is not None


def _group_by_top_directory(files: TreeFiles) -> dict[bytes, dict[bytes, TreeFile]]:
    """The files of each directory at the top, by their paths in it."""
    parts: dict[bytes, dict[bytes, TreeFile]] = {}
    for path, file in files.items():
        name, _, rest = path.partition(b"/")
        parts.setdefault(name, {})[rest] = file
    return parts
