"""`python -m tests.soak [NAME ...]`: the harnesses in full, one line of figures each. Exit code 1 if one failed.

Needs no network and no key, but for `llama-cpp` and `llama-speaks`, which install a model server and run only when they
are named. Figures depend on the machine; what must hold does not.
"""

import sys
import tempfile
import time
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio

from tests.harness import TempHome
from tests.soak.charges import kill_charges
from tests.soak.commands import commands, swaps
from tests.soak.damage import damage
from tests.soak.false_green import false_greens
from tests.soak.fuzz import fuzz
from tests.soak.host_faults import compare_hosts
from tests.soak.http_crowd import http_crowd
from tests.soak.kills import kill_runners, kill_servers
from tests.soak.leaks import leaks
from tests.soak.llama_cpp import llama_cpp, llama_speaks
from tests.soak.long_work import long_work
from tests.soak.many_runs import many_runs
from tests.soak.one_key import one_key
from tests.soak.power import power_cuts
from tests.soak.slow_first_word import slow_first_word
from tests.soak.storage_faults import storage_faults
from tests.soak.worker_kills import kill_workers

HARNESSES: dict[str, Callable[[TempHome], Awaitable[str]]] = {
    "one-key": lambda home: one_key(home, clients=50, starts=20),
    "damage": lambda home: damage(home, truncations=4_096, flips=1_000),
    "many-runs": lambda home: many_runs(home, runs=1_000),
    "kill-runners": lambda home: kill_runners(home, kills=200, seed=1),
    "kill-servers": lambda home: kill_servers(home, kills=200, seed=1),
    "kill-workers": lambda home: kill_workers(home, kills=100, workers=4, seed=1, freezes=6, restarts=3),
    "kill-charges": lambda home: kill_charges(home, kills=100, seed=1),
    "storage-faults": storage_faults,
    "fuzz": lambda home: fuzz(home, calls=20_000, seed=1),
    "fuzz-http": lambda home: fuzz(home, calls=2_000, seed=2, over_http=True),
    "power-cuts": lambda home: power_cuts(home, cuts=100),
    "slow-first-word": lambda home: slow_first_word(home, seconds=150, limit=300),
    "http-crowd": lambda home: http_crowd(home, clients=200, seconds=60),
    "long-work": lambda home: long_work(home, windows=(32_000, 128_000, 1_000_000), steps=300, kills=3),
    "leaks": lambda home: leaks(home, runs=4_000, batch=50),
    "false-greens": lambda home: false_greens(home, faults=500),
    "hosts": compare_hosts,
    "commands": lambda home: commands(home, each=100),
    "symlink-swaps": lambda home: swaps(home, each=20_000),
}


NAMED_ONLY: dict[str, Callable[[TempHome], Awaitable[str]]] = {
    "llama-cpp": lambda home: llama_cpp(home, runs=20),
    "llama-speaks": lambda home: llama_speaks(home, runs=3),
}
"""These need a package index, so they run only when they are named."""


def main(names: list[str]) -> int:
    every = HARNESSES | NAMED_ONLY
    if unknown := set(names) - set(every):
        print(f"unknown: {', '.join(unknown)}; there are: {', '.join(every)}", file=sys.stderr)
        return 2
    failed = 0
    for name in names or HARNESSES:
        with tempfile.TemporaryDirectory(prefix="massgen-soak-") as directory:
            work = Path(directory) / "work"
            work.mkdir()
            home = TempHome(Path(directory) / "home", work, starts_anew=True)
            began = time.monotonic()
            try:
                told = anyio.run(every[name], home)
            except Exception:  # noqa: BLE001 - the others still run
                told = f"FAILED\n{traceback.format_exc()}"
                failed += 1
            finally:
                home.close()
        print(f"{name} ({time.monotonic() - began:.0f} s): {told}", flush=True)
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
