"""What agents started ends with the program that started it, even where nobody is left to end it."""

import secrets
import signal
from pathlib import Path

import pytest

from massgen_mcp.sandbox import LevelName
from tests.harness import COMMAND_MODULE, TempHome, agent, end, home, poll_until
from tests.interrupted import started
from tests.mcp_servers.test_hostile import call, server
from tests.mcp_servers.test_servers import accepted
from tests.sandbox.at_work import end_living, living
from tests.sandbox.table import LEVELS

__all__ = ["home"]


@pytest.mark.parametrize("level", LEVELS)
def test_a_run_that_is_killed_with_its_supervisors_leaves_no_command_and_no_server(
    home: TempHome, level: LevelName
) -> None:
    """As by whoever ends processes when memory is short: the kernel alone can end the rest."""
    of_command, of_server = f"mark-{secrets.token_hex(8)}", f"mark-{secrets.token_hex(8)}"
    odd = server("server", sandbox=True)
    odd["args"].append(of_server)
    waits = call("run_command", command=f"sh -c 'sleep 300; : {of_command}' & sleep 300; : {of_command}")
    worker = agent("ada", call("ping"), waits, {"answer": "42"}, mcp_servers={"odd": odd})
    commands = {"enabled": True, "sandbox": level, "timeout_seconds": 600, "max_seconds": 600}
    config = accepted(home, home.config("waiting", worker, orchestrator={"commands": commands}))
    with started(home, config) as massgen:
        try:
            poll_until(lambda: len(living(of_command)) > 1 and living(of_server))
            runners = home.processes(COMMAND_MODULE)
            supervisors = {supervisor_of(pid) for pid in (*living(of_command), *living(of_server))}
            assert len(supervisors) == 2
            for pid in supervisors:
                end(pid, signal.SIGSTOP)
            for pid in (*runners, *supervisors):
                end(pid, signal.SIGKILL)
            poll_until(lambda: not living(of_command) and not living(of_server))
        finally:
            massgen.kill()
            end_living(of_command)
            end_living(of_server)


def supervisor_of(pid: int) -> int:
    """The process that supervises this one."""
    while b"import supervisor" not in Path(f"/proc/{pid}/cmdline").read_bytes():
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return pid
