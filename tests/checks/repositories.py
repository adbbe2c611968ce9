"""Real repositories, each with the check that its own CI uses: does what passes outside pass in the sandbox, unchanged?

    python -m tests.checks.repositories LIST [LEVEL ...] [--only NAME]

LIST is a file with a line for each row: a name, the directory of a prepared checkout (its dependencies are installed as
on an engineer's machine), the check, and for readers the place in its CI, with tabs between them. Each check runs in
the checkout itself without a network, then through `try_checks`, as before a run, at each LEVEL (all that this machine
has). Prints a row for each, with seconds, and the words that are read where a check does not pass. No part of CI; needs
no key.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio

from massgen_mcp.config.loader import config_from_data
from massgen_mcp.runs.host.setting_up import try_checks
from massgen_mcp.views.checks import TriedCheck
from tests.sandbox.table import LEVELS

SECONDS = 1800


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.checks.repositories")
    parser.add_argument("list", type=Path)
    parser.add_argument("levels", nargs="*", default=list(LEVELS))
    parser.add_argument("--only", action="append", default=[])
    said = parser.parse_args()
    rows = [line.split("\t") for line in said.list.read_text().splitlines() if line and not line.startswith("#")]
    with TemporaryDirectory(prefix="massgen-repositories-") as home:
        worse = [
            name
            for name, *row in rows
            if name in (said.only or [name]) and not _row(name, row[0], row[1], said.levels, home)
        ]
    print(f"pass outside and not inside: {', '.join(worse) or 'none'}")
    return 1 if worse else 0


def _row(name: str, directory: str, check: str, levels: list[str], home: str) -> bool:
    """Whether it passes at each level, or not even outside."""
    passes, outside = _outside(directory, check)
    print(f"{name}\t{check}\n  outside\t{'passes' if passes else 'fails'}, {outside}", flush=True)
    well = True
    for level in levels:
        began = time.monotonic()
        tried = _inside(directory, check, level, home)
        well &= tried.state == "passed"
        print(f"  {level}\t{_words(tried)}\t{time.monotonic() - began:.1f} s in all", flush=True)
    return well or not passes


def _outside(directory: str, check: str) -> tuple[bool, str]:
    """Whether it passes in the checkout, without a network where bubblewrap can take it away; and how."""
    found = shutil.which("bwrap")
    alone = [found, "--dev-bind", "/", "/", "--unshare-net", "--cap-drop", "ALL"] if found else []
    began = time.monotonic()
    done = subprocess.run(
        [*alone, "/bin/sh", "-c", check],
        cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip
    lines = done.stdout.decode(errors="replace").strip().splitlines()
    seconds = f"{time.monotonic() - began:.1f} s"
    return done.returncode == 0, seconds if done.returncode == 0 else "\n    ".join([seconds, *lines[-12:]])


def _inside(directory: str, check: str, level: str, home: str) -> TriedCheck:
    settings = {
        "context_paths": [{"path": directory}],
        "checks": [check],
        "checks_timeout_seconds": SECONDS,
        "commands": {"sandbox": level},
    }
    agents = [{"backend": {"type": "scripted", "script": [{"answer": "x"}]}}]
    config = config_from_data({"agents": agents, "orchestrator": settings}, directory, environ={})
    environ = {**os.environ, "MASSGEN_MCP_HOME": home}
    (tried,) = anyio.run(partial(try_checks, config, environ, seconds=SECONDS))
    return tried


def _words(tried: TriedCheck) -> str:
    if tried.state == "passed":
        return f"passes, {tried.how}"
    cure = [f"cure: {tried.cure}"] if tried.cure else []
    return "\n    ".join([f"{tried.state}, {tried.how}", *tried.excerpt.splitlines(), *cure])


if __name__ == "__main__":
    sys.exit(main())
