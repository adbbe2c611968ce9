"""What the output of a check tells: which lines say why it failed, how many tests ran, whether the environment made it
fail, and what helps then. Pure.

How many tests ran, by one row for each way in which test runners sum up: a pass that ran fewer tests than the base did
proves less. The environment, by exit code and the words of shells, package managers and runtimes: what they say of
files of the project itself is no obstacle, since a script that an answer is to write is missing for the code's sake.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from massgen_mcp.events.parts import CheckObstacle

MAX_CHARACTERS = 2_000
MAX_TELLING = 20
"""So many of the lines that look like a failure are shown, and at least `LAST_LINES` of the end."""
LAST_LINES = 10
LINE_CHARACTERS = 200
LAST_OF_PASS = 3
"""So many lines of the end are shown of a check that passes."""

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_TELLING = re.compile(
    r"\b(?:FAIL(?:ED|URE|URES|S)?|ERRORS?|Error|\w+Error|Exception|panic(?:ked)?|assert\w*|fatal|not ok|expected)\b"
    r"|^E\s|^\s*[✗✕✘\u00d7]|: error\b",
    re.IGNORECASE,
)


_ASSERTIONS = (
    re.compile(r"^E\s+\S|^\s*[\w.]*(?:Error|Exception)\s*:"),
    re.compile(r"assertion .*failed|panicked at|_test\.go:\d+:|\bexpect\(|: error\b|^\s*Error\b", re.IGNORECASE),
    _TELLING,
)
"""What says in one line why a test failed, in the tools of many languages; the surest first."""


def excerpt_of(output: str) -> str:
    """At most `MAX_CHARACTERS`, from the end where there is more; without colours and other control characters. First
    of all stands the line of the first failure that says what was not so, where one does.
    """
    lines = _output_lines(output)
    telling = [place for place, line in enumerate(lines) if _TELLING.search(line)][:MAX_TELLING]
    places = sorted({*telling, *range(max(0, len(lines) - LAST_LINES), len(lines))})
    shown = [lines[places[0]]] if places else []
    for before, place in pairwise(places):
        shown += ["…"] if place > before + 1 else []
        shown.append(lines[place])
    text = "\n".join(shown)
    first = next((line.strip() for one in _ASSERTIONS for line in lines if one.search(line)), "")
    head = f"{first}\n" if first and not text.startswith(first) else ""
    room = MAX_CHARACTERS - len(head)
    return head + (text if len(text) <= room else f"…{text[1 - room :]}")


def last_of(output: str) -> str:
    """The last `LAST_OF_PASS` lines, likewise: a test runner's sum of what it ran is there."""
    return "\n".join(_output_lines(output)[-LAST_OF_PASS:])


def _output_lines(output: str) -> list[str]:
    lines = [_plain(line) for line in _ESCAPES.sub("", output).splitlines()]
    return [line for line in lines if line.strip()]


def _plain(line: str) -> str:
    kept = "".join(one if one.isprintable() else " " for one in line).rstrip()
    return kept if len(kept) <= LINE_CHARACTERS else f"{kept[: LINE_CHARACTERS - 1]}…"


_WAYS = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        r"^test result: .*?(?P<a>\d+) passed; (?P<b>\d+) failed",  # cargo, one line for each crate
        r"^(?:\[\w+\] )?Tests run: (?P<a>\d+), Failures: \d+, Errors: \d+, Skipped: \d+\s*$",  # Maven
        r"^\s*Tests:?\s+(?:.*[ (])?(?P<a>\d+)(?: total|\))\s*$",  # Jest, Vitest
        r"^Ran (?P<a>\d+) tests? in ",  # unittest
        r"tests? failed out of (?P<a>\d+)",  # ctest
        r"^(?P<a>\d+) examples?, \d+ failures?",  # RSpec
        r"^OK \((?P<a>\d+) tests?,|^Tests: (?P<b>\d+), Assertions:",  # PHPUnit
        r"^(?:# |\u2139 )tests (?P<a>\d+)\s*$",  # node --test
        r"^(?P<a>\d+) runs, \d+ assertions",  # minitest
        r"Total tests: (?P<a>\d+)|^Passed!.*Total:\s*(?P<b>\d+)",  # dotnet
        r"^1\.\.(?P<a>\d+)\s*$",  # TAP
    )
)
_PYTEST = re.compile(r"^=*\s?(?=.*\bin [\d.]+s)(?P<all>(?:\d+ \w+(?:, )?)+) in [\d.]+s", re.MULTILINE)
_PYTEST_PART = re.compile(r"(\d+) (?:passed|failed|xfailed|xpassed|errors?)\b")
_GO = re.compile(r"^\s*--- (?:PASS|FAIL): ", re.MULTILINE)


def tests_in(output: str) -> int | None:
    """So many that ran, passed or not; None where nothing tells."""
    text = _ESCAPES.sub("", output)
    if found := [int(part) for match in _PYTEST.finditer(text) for part in _PYTEST_PART.findall(match["all"])]:
        return sum(found)
    for way in _WAYS:
        if matches := [*way.finditer(text)]:
            return sum(int(number) for match in matches for number in match.groups() if number is not None)
    return len(_GO.findall(text)) or None


_LINE = re.MULTILINE | re.IGNORECASE
_RUNNERS = "pytest|tox|nox|mypy|ruff|black|flake8|pylint|coverage|pyright|build|pip|uv|poetry"
_MISSING = re.compile(
    rf"^(?:.*?(?:sh|bash|zsh|env|make|npm|line \d+|\d+): ['\u2018\"]?(?P<a>[\w.+-]+)['\u2019\"]?:"
    rf" (?:command )?not found"
    rf"|(?:.*: )?command not found: (?P<b>[\w.+-]+)"
    rf"|(?:.*/)?env: ['\u2018](?P<c>[\w.+-]+)['\u2019]: No such file or directory"
    rf"|make(?:\[\d+\])?: (?P<d>[\w.+-]+): No such file or directory"
    rf"|\S*python\S*: No module named (?P<e>{_RUNNERS})\b)",
    _LINE,
)
_TOOLCHAIN = re.compile(
    r"rustup could not choose a version|toolchain '[^']+' is not installed|no default (?:toolchain )?(?:is )?configured"
    r"|No version is set for command|JAVA_HOME\b.*\b(?:not (?:set|defined)|invalid)|Unable to locate a Java Runtime"
    r"|pyenv: version `[^']+' is not installed|NoSuchFileException: \S*m2\.conf|No \.NET SDKs? (?:were|was) found"
    r"|Could not determine java version|go: download go[\d.]+ for \S+: toolchain not available"
    r"|No interpreter found for Python",
    _LINE,
)
_NETWORK = re.compile(
    r"Could ?n[o']t resolve (?:host|proxy)|Temporary failure in name resolution|Name or service not known|getaddrinfo"
    r"|dial tcp(?:4|6)?[: ]|(?-i:\b(?:ENOTFOUND|EAI_AGAIN|ENETUNREACH)\b)|Network is unreachable|dns error"
    r"|failed to lookup address"
    r"|UnknownHostException|Failed to fetch: `https?:|No address associated with hostname|No such host is known"
    r"|module lookup disabled by GOPROXY=off|can't find crate .* offline|download .* --offline was specified"
    r"|using offline mode \(--offline\)|network was disabled|\bENOTCACHED\b|ERR_PNPM_NO_OFFLINE"
    r"|available for offline mode|in offline mode and the artifact",
    _LINE,
)
_READ_ONLY = re.compile(
    r"Read-only file system|\bEROFS\b|os error 30\b|ReadOnlyFileSystemException|ENOENT\b.* mkdir 'node_modules/",
    re.IGNORECASE,
)
_NOT_PERMITTED = re.compile(
    r"Operation not permitted|\bEPERM\b|(?:Permission denied|EACCES)[^\n]{0,40}['\"` :]/(?!tmp\b)"
    r"|cannot open /\S+: Permission"
    r"|(?:^|[\s'\"`])/\S+['\"`]?: Permission denied",
    _LINE,
)
MAX_PATH = 4096
_PATH = re.compile(r"['\"`](?P<path>[^'\"`\n]{1,200})['\"`]")

_NOT_THERE = re.compile(
    r"No such file|\bENOENT\b|Cannot find|Could ?n[o']t (?:find|open)|can(?:no|')t open|not found|not exist",
    re.IGNORECASE,
)
_WHOLE_PATH = re.compile(r"(?<![\w.])/[^\s'\"`:,;()\[\]]+")


@dataclass(frozen=True, slots=True)
class Hindrance:
    """What was in the way, and how that is changed."""

    obstacle: CheckObstacle
    cure: str


def hindrance_of(code: int | None, output: str, found_at: Callable[[str], str | None]) -> Hindrance | None:
    """Of a check that failed. `found_at`: the directory in which this machine has a program; None: it has none."""
    if _TOOLCHAIN.search(output):
        return Hindrance("no_toolchain", TOOLCHAIN_CURE)
    if code != 0 and (match := _MISSING.search(output)) is not None:
        program = next(filter(None, match.groups()))
        return Hindrance("program_missing", _program_cure(program, None if match["e"] else found_at(program)))
    if _NETWORK.search(output):
        return Hindrance("no_network", NETWORK_CURE)
    if (match := _READ_ONLY.search(output)) is not None:
        return Hindrance("read_only", _writable_cure(output, match.start()))
    if (match := _NOT_PERMITTED.search(output)) is not None:
        if "node_modules/." in output[match.start() : match.end() + MAX_PATH].partition("\n")[0]:
            return Hindrance("read_only", _writable_cure(output, match.end()))
        return Hindrance("not_permitted", PERMISSION_CURE)
    return None


def not_there(output: str) -> Iterator[str]:
    """The whole paths in lines that say that something is not there."""
    for line in filter(_NOT_THERE.search, output.splitlines()):
        yield from _WHOLE_PATH.findall(line)


TOOLCHAIN_CURE = (
    "make the toolchain visible with `commands.readable`, and set its location with `commands.env` (such as "
    "RUSTUP_HOME or JAVA_HOME)"
)
NETWORK_CURE = (
    "let the tool work offline (`commands.readable` for its cache, `commands.env` for its offline setting), or "
    "allow host:port in `commands.network`"
)
PERMISSION_CURE = (
    "the sandbox denied access: make the path visible with `commands.readable`, or choose another `commands.sandbox`"
)
IGNORED_CURE = (
    "{} is missing from the copies because git ignores it: create it in the check (such as `npm run build && npm "
    "test`), or name its directory in the context path's `copy_ignored`"
)


def _program_cure(program: str, directory: str | None) -> str:
    if directory is not None:
        return f"{program} is in {directory}, where the sandbox can't see it: add that directory to `commands.readable`"
    return f"install {program} where the sandbox can see it, or add its directory to `commands.readable`"


def _writable_cure(output: str, place: int) -> str:
    """With the directory, where the line names one of the project."""
    begin = output.rfind("\n", 0, place) + 1
    line = output[begin : (output.find("\n", place) + 1 or len(output) + 1) - 1]
    named = [match["path"] for match in _PATH.finditer(line)]
    ignored = next((part for path in named for part in path.split("/") if part in _IGNORED), None)
    return f"add {ignored or 'its output directory'} to the context path's `copy_ignored`"


_IGNORED = frozenset({"node_modules", ".venv", "venv", "target", "build", "dist", "vendor", ".gradle", ".tox", ".nox"})
