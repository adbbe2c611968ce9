"""The supervisor stands before every command, so it loads little, and what it has in place of that does the same."""

import json
import subprocess
from pathlib import Path

import pytest

from massgen_mcp.sandbox import quick_start
from massgen_mcp.sandbox.levels import interpreter

SANDBOX = Path(quick_start.__file__).parent
SLOW_TO_LOAD = {"json", "typing", "re", "enum", "signal", "subprocess", "dataclasses"}


def start_supervisor(code: str) -> str:
    """Run code in an interpreter that has loaded the supervisor as for a command."""
    loaded = f"import sys; sys.path.append({str(SANDBOX)!r}); import supervisor; {code}"
    done = subprocess.run([interpreter(), "-I", "-S", "-c", loaded], capture_output=True, text=True, check=True)
    return done.stdout


def test_the_supervisor_loads_nothing_that_takes_longer_than_the_command() -> None:
    loaded = start_supervisor("print(*sys.modules)").split()

    assert "specification" in loaded
    assert SLOW_TO_LOAD.isdisjoint(loaded)


def test_the_supervisor_has_the_same_types_as_the_program_that_starts_it() -> None:
    code = (
        "limits = supervisor.specification.ResourceLimits(seconds=3)._replace(files=5);"
        "print(limits.to_plain(), limits.with_seconds(4).seconds, limits == tuple(limits))"
    )
    from massgen_mcp.sandbox.specification import ResourceLimits

    limits = ResourceLimits(seconds=3)._replace(files=5)
    assert start_supervisor(code) == f"{limits.to_plain()} 4 True\n"


@pytest.mark.parametrize(
    "document",
    [
        '{ "child-pid": 12, "net-namespace": 4026531840 }\n',
        '[1, -2.5, 1e3, true, false, null, "\\u00fc\\ud800\\"\\n"]',
        '""',
    ],
)
def test_a_document_is_read_as_json_reads_it(document: str) -> None:
    assert quick_start.read_json(document) == json.loads(document)
    assert quick_start.read_json(document.encode()) == json.loads(document)


@pytest.mark.parametrize("document", ["", "{", '{"a": 1} {"b": 2}', "nothing", "[1,]", "{'a': 1}"])
def test_what_is_no_document_is_refused(document: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the error of `json` in C, or ours
        quick_start.read_json(document)


def test_facts_are_written_as_json_writes_them() -> None:
    facts: dict[str, str | float | bool | None] = {
        "reason": "failed",
        "message": 'line\n"\u00fc"\ud800',
        "code": -9,
        "seconds": 0.125,
        "own": True,
        "not": None,
    }

    assert quick_start.write_json(facts) == json.dumps(facts)
