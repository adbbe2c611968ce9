"""`python -m tests.sandbox.greed LEVEL DIRECTORY [NAME...]`: commands that take far more than they may, and what an
agent reads of each.

Each goes another way round what is easily counted, and prints `has it all` once it holds everything. So one that says
so in a level was not bounded.
"""

import json
import sys
from pathlib import Path
from typing import cast

import anyio

from massgen_mcp.sandbox import LevelName
from massgen_mcp.sandbox.specification import MIB
from tests.sandbox.at_work import hands

ALL = "has it all"
_BEGINNING = """
import ctypes, mmap, os, shutil, sys, time
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = libc.shmat.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
block, held = bytes(1 << 20), []
def fill(file, megabytes=20):
    for _ in range(megabytes):
        os.write(file, block)
    held.append(file)
def made(name):
    return os.open(name, os.O_CREAT | os.O_RDWR, 0o600)
def had(number):
    if number in (-1, None, 2**64 - 1):
        sys.exit("refused")
    return number
"""
_END = f"print({ALL!r}, flush=True); time.sleep({{}})\n"
MEMORY = {
    "files in memory": "for i in range(12): fill(os.memfd_create('x'))\n",
    "files in memory, of a process that hides": (
        "libc.prctl(4, 0, 0, 0, 0)\nfor i in range(12): fill(os.memfd_create('x'))\n"
    ),
    "files in memory, of a program that cannot be read": (
        "if sys.argv[-1] != 'again':\n"
        "    shutil.copy(sys.executable, 'copy'); os.chmod('copy', 0o111)\n"
        "    os.execv('./copy', ['python', '-I', '-S', 'greedy.py', 'again'])\n"
        "for i in range(12): fill(os.memfd_create('x'))\n"
    ),
    "shared pages": "for i in range(12):\n  m = mmap.mmap(-1, 20 << 20); held.append(m)\n  m[:] = bytes(20 << 20)\n",
    "System V memory": (
        "libc.shmdt.argtypes = [ctypes.c_void_p]\n"
        "for i in range(12):\n"
        "  at = libc.shmat(had(libc.shmget(0, 20 << 20, 0o1600)), None, 0)\n"
        "  ctypes.memset(at, 1, 20 << 20); libc.shmdt(at)\n"
    ),
    "System V semaphores": "for i in range(120): had(libc.semget(0, 32000, 0o1600))\n",
    "System V messages": (
        "message = bytes(8) + bytes(8192)\nmessage = b'\\1' + message[1:]\n"
        "for i in range(14000):\n"
        "  queue = had(libc.msgget(0, 0o1600))\n"
        "  for _ in range(2): libc.msgsnd(queue, message, 8192, 0o4000)\n"
    ),
    "tables of pages": (
        "for i in range(240):\n"
        "  at = had(libc.mmap(None, 1 << 29, 1, 0x4022, -1, 0))\n"
        "  libc.madvise(ctypes.c_void_p(at), ctypes.c_size_t(1 << 29), 15)\n"
        "  for page in range(at, at + (1 << 29), 1 << 21): ctypes.string_at(page, 1)\n"
    ),
    "files beside the devices": "for i in range(12): fill(made(f'/dev/{i}'))\n",
}
"""More memory than a command may have: 240 MB, or nearly so."""
DISK = {
    "files without a name": "for i in range(6): fill(made(f'{i}')); os.unlink(f'{i}')\n",
    "a deep tree": (
        "for i in range(30): os.mkdir('d' * 200); os.chdir('d' * 200)\nfor i in range(6): fill(made(f'{i}'))\n"
    ),
    "a directory that nobody lists": "os.mkdir('d', 0o300)\nfor i in range(6): fill(made(f'd/{i}'))\n",
    "the directory for temporary files": "for i in range(6): fill(made(f'/tmp/{i}'))\n",
    "one large file": "fill(made('large'), 120)\n",
}
"""More room than a command may take: 120 MB."""
NUMBERS = {
    "files": "for i in range(2200): os.close(made(f'{i}'))\n",
    "a tree too deep to be walked": "for i in range(2100): os.mkdir('d'); os.chdir('d')\n",
    "processes": "for i in range(260):\n  if not os.fork(): time.sleep(60); os._exit(0)\n",
    "processes that breed": "for i in range(8):\n  if not os.fork(): held.append(os.getppid())\ntime.sleep(9)\n"
    "if len([name for name in os.listdir('/proc') if name.isdigit()]) < 230: sys.exit('refused')\n",
    "threads": (
        "import threading\nfor i in range(260): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
    ),
}
"""More files or processes than there may be."""
ALL_BOMBS = {**MEMORY, **DISK, **NUMBERS}
MOST_MEMORY, MOST_DISK = 60 * MIB, 30 * MIB


async def greedy(
    directory: Path,
    level: LevelName,
    names: tuple[str, ...],
    *,
    memory: int = MOST_MEMORY,
    disk: int = MOST_DISK,
    processes: int = 200,
    hold: float = 30,
) -> dict[str, str]:
    """What an agent is told of each of these commands, by name. They mostly wait, so a few go at once. `hold`: so many
    seconds each keeps what it has, if it is not ended.
    """
    told: dict[str, str] = {}
    few = anyio.Semaphore(4)

    async def one(number: int, name: str) -> None:
        place = directory / str(number)
        async with few, hands(place, level, memory_bytes=memory, disk_bytes=disk, processes=processes) as agent:
            agent.workspace.root.write_bytes("greedy.py", (_BEGINNING + ALL_BOMBS[name] + _END.format(hold)).encode())
            told[name] = await agent.run("python3 -I -S greedy.py 2>&1")

    async with anyio.create_task_group() as tasks:
        for number, name in enumerate(names):
            tasks.start_soon(one, number, name)
    return told


if __name__ == "__main__":
    level, place, *chosen = sys.argv[1:]
    print(json.dumps(anyio.run(greedy, Path(place), cast("LevelName", level), tuple(chosen or ALL_BOMBS))))
