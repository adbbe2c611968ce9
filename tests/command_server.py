"""Runs our commands each in a process of its own that has imported them already: a fork costs a twentieth of a start.

`commands.run_command` talks to it. A line on standard input is one command as a JSON object; two lines come back: the
id of its process, then its exit code. Must not import a provider's SDK: what a command imports is measured elsewhere,
on processes of its own.
"""

import json
import os
import signal
import sys
import traceback
from importlib import import_module
from typing import Any

PRELOADED = (
    "anyio._backends._asyncio",
    "massgen_mcp.cli.boundary",
    "massgen_mcp.cli.massgen_mcp.main",
    "massgen_mcp.cli.massgen.main",
    "massgen_mcp.cli.massgen.one_run",
    "massgen_mcp.config.loader",
    "massgen_mcp.runs.execute",
    "massgen_mcp.runs.service",
    "massgen_mcp.server.results",
)


def serve() -> None:
    for name in PRELOADED:
        import_module(name)
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    for line in iter(sys.stdin.readline, ""):
        pid = os.fork()
        if pid == 0:
            _become(json.loads(line))
        print(pid, file=replies)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), file=replies)


def _become(command: dict[str, Any]) -> None:
    """Be that command, and never return."""
    code = 1
    try:
        for number, (path, flags) in enumerate(
            ((os.devnull, os.O_RDONLY), (command["stdout"], os.O_WRONLY), (command["stderr"], os.O_WRONLY))
        ):
            os.dup2(os.open(path, flags), number)
        os.chdir(command["cwd"])
        os.environ.clear()
        os.environ.update(command["environ"])
        signal.signal(signal.SIGINT, signal.default_int_handler)
        module = import_module(command["module"])
        sys.argv = [str(module.__file__), *command["arguments"]]
        module.main()
        code = 0
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except BaseException:  # noqa: BLE001 - as the interpreter does it at the end of a process
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    serve()
