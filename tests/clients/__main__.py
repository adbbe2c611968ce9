"""`python -m tests.clients [NAME ...]`: what must hold with real clients, against local doubles of the model APIs.

Each script prints what it saw. One whose client cannot be had is skipped, in capitals. Exits with 1 when one failed,
and with 2 when all were skipped.
"""

import sys
import time
from importlib import import_module

from tests.clients.places import Broken, Missing, say

SCRIPTS = {
    "claude-search": "Claude Code finds start_run",
    "claude-wakes": "Claude Code, idle, is given the result of its run",
    "codex-wakes": "Codex, whose turn has ended, is given the result of its run by the trusted hook",
    "whole-delegation": "Claude Code and Codex go from a named team to files that are applied, or asked for",
    "claude-parts": "the plugin's subagent, its commands to apply and cancel, and the status bar work in Claude Code",
    "claude-plugin": "the plugin and the marketplace are valid",
    "install": "clients show the server that was installed into them",
    "codex-start": "Codex gets the tools of an optional server",
    "codex-answer": "Codex gets an answer of 30,000 characters whole",
    "members": "five agent CLIs are members of a team, enclosed, and present what won",
    "texts": "every client starts, waits, reads and cancels; the texts that its model reads are kept",
    "delegation": "Gemini CLI, opencode, Copilot CLI and Goose start a run and get its result",
    "inspector": "the Inspector finds the schemas portable",
}


def main() -> int:
    unknown = set(sys.argv[1:]) - set(SCRIPTS)
    if unknown:
        say(f"there is no {', '.join(sorted(unknown))}; there are: {', '.join(SCRIPTS)}")
        return 2
    ends = {name: _played(name) for name in SCRIPTS if not sys.argv[1:] or name in sys.argv[1:]}
    say()
    for name, end in ends.items():
        say(f"{end:8} {name}: {SCRIPTS[name]}")
    if "FAILED" in ends.values():
        return 1
    return 0 if "ok" in ends.values() else 2


def _played(name: str) -> str:
    say(f"\n== {name}: {SCRIPTS[name]}")
    begin = time.monotonic()
    try:
        import_module(f"tests.clients.{name.replace('-', '_')}").show()
    except Missing as error:
        say(f"  SKIPPED, NOTHING WAS SHOWN: {error}")
        return "SKIPPED"
    except Broken as error:
        say(f"  FAILED: {error}")
        return "FAILED"
    say(f"  {time.monotonic() - begin:.0f} s")
    return "ok"


if __name__ == "__main__":
    sys.exit(main())
