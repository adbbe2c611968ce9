"""Makes a plain fork of every call that starts a program in borrowed memory, for sandlock 0.9, which cannot bear them.

The child of `vfork`, and of `clone` as `posix_spawn` makes it, has its parent's memory until it becomes a program, and
sandlock writes into the memory of whoever becomes one. `make`, C's `system` and shells start programs in that way.

Loaded by `supervisor` into the process that is sandlock's, which is why it knows no other module of ours.
"""

import ctypes
import importlib
import os
import platform
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

_SEIZE, _INTERRUPT, _DETACH, _PEEK_USER, _POKE_USER = 0x4206, 0x4207, 17, 3, 6
_CALL, _RESULT, _FIRST_ARGUMENT = 15 * 8, 10 * 8, 14 * 8
"""Where the registers lie on x86_64: orig_rax, rax, rdi."""
_CLONE, _FORK, _VFORK = 56, 57, 58
_SHARES_MEMORY, _BORROWS, _THREAD = 0x100, 0x4000, 0x10000
_RESTARTED = 513
"""ERESTARTNOINTR, which the kernel never shows to a program: the call is made again."""
_ALL_THREADS = 0x40000000


def run(library: Any, options: Mapping[str, Any], argv: list[str]) -> Any:
    """Run the command in a sandbox with these options, on this process's own input and output; sandlock's result."""
    native = importlib.import_module("sandlock._sdk")._lib  # noqa: SLF001 - only here can a command have both
    native.sandlock_run_with_handlers = native.sandlock_run_interactive_with_handlers
    handler = importlib.import_module("sandlock.handler")
    return library.Sandbox(**options).run_with_handlers(argv, [*_forks(handler)])


def _forks(sandlock: Any) -> Iterator[tuple[str, Any]]:
    """What answers the calls, by their names. On aarch64 they stay as they are, and the level's report says so."""
    if platform.machine() != "x86_64":
        return

    class Forks(sandlock.Handler):
        on_exception = sandlock.ExceptionPolicy.CONTINUE

        def handle(self, ctx: Any) -> Any:
            if ctx.syscall_nr == _CLONE and not _borrows(ctx.args[0]):
                return sandlock.NotifAction.continue_()
            if not _begun_anew(ctx.pid):
                return sandlock.NotifAction.continue_()
            return sandlock.NotifAction.errno(_RESTARTED)

    yield "vfork", Forks()
    yield "clone", Forks()


def _borrows(flags: int) -> bool:
    return flags & (_SHARES_MEMORY | _BORROWS | _THREAD) == _SHARES_MEMORY | _BORROWS


def _begun_anew(pid: int) -> bool:
    """Whether the thread will stop when its call ends, which happens next, and then make it again as a plain fork."""
    seized, interrupted = threading.Event(), False

    def attend() -> None:
        nonlocal interrupted
        try:
            interrupted = _trace(_SEIZE, pid) == 0 and _trace(_INTERRUPT, pid) == 0
        finally:
            seized.set()
        if interrupted:
            with suppress(ChildProcessError):  # it may be killed before it stops; its parent is told when we are gone
                found = os.waitid(os.P_PID, pid, os.WEXITED | os.WSTOPPED | os.WNOWAIT | _ALL_THREADS)
                if found is not None and found.si_code == os.CLD_TRAPPED:
                    _without_borrowing(pid)
            _trace(_DETACH, pid)

    threading.Thread(target=attend, daemon=True).start()  # only the thread that traces may ask and change
    seized.wait()
    return interrupted


def _without_borrowing(pid: int) -> None:
    call, result = _trace(_PEEK_USER, pid, _CALL), _trace(_PEEK_USER, pid, _RESULT)
    if result != -_RESTARTED:
        return
    if call == _VFORK:
        _trace(_POKE_USER, pid, _CALL, _FORK)
    elif call == _CLONE:
        flags = _trace(_PEEK_USER, pid, _FIRST_ARGUMENT)
        if _borrows(flags):
            _trace(_POKE_USER, pid, _FIRST_ARGUMENT, flags & ~(_SHARES_MEMORY | _BORROWS))


def _trace(request: int, pid: int, address: int = 0, value: int = 0) -> int:
    call = ctypes.CDLL(None, use_errno=True).ptrace
    call.restype = ctypes.c_long
    call.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
    return int(call(request, pid, address, value))
