"""How many tests did a check run, by what it printed? Pure.

One row for each way in which test runners sum up. A pass that ran fewer tests than the base did proves less.
"""

import re

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
_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


def tests_in(output: str) -> int | None:
    """So many that ran, passed or not; None where nothing tells."""
    text = _ESCAPES.sub("", output)
    if found := [int(part) for match in _PYTEST.finditer(text) for part in _PYTEST_PART.findall(match["all"])]:
        return sum(found)
    for way in _WAYS:
        if matches := [*way.finditer(text)]:
            return sum(int(number) for match in matches for number in match.groups() if number is not None)
    return len(_GO.findall(text)) or None
