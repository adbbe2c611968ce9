"""Blocking work beside an event loop: in a worker thread, to its end; or on a thread of its own, where nobody has to
wait for longer than they want, as for imports that take their time and files that never come.

A caller of the second kind whose time is up, or that is cancelled, goes on at once. The work is left to its thread,
which holds up neither the process when it leaves nor the worker threads that write journals. Not for work that must not
be repeated or lost.
"""

import asyncio
import gc
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextvars import copy_context
from functools import cache, partial, wraps
from importlib import import_module
from threading import Event, Thread
from types import CoroutineType
from typing import Any, ClassVar, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def in_thread(work: Callable[P, T]) -> "Callable[P, CoroutineType[Any, Any, T]]":
    """Makes a function that blocks one to be awaited: its whole body runs in a worker thread."""

    @wraps(work)
    async def run_in_thread(*args: P.args, **kwargs: P.kwargs) -> T:
        import anyio.to_thread  # whoever only names `run` needs none of it

        return await anyio.to_thread.run_sync(partial(work, *args, **kwargs))

    return run_in_thread


async def abandonable(work: Callable[[], T]) -> T:
    """What `work` returns or raises, done on a thread of its own; dropped if nobody waits any more."""
    return await asyncio.wrap_future(_begin(work))


async def run_in_stoppable_thread(work: Callable[[Callable[[], bool]], T]) -> T:
    """Return what `work` returns or raises, done on a thread of its own. It is handed a function that says whether its
    caller was cancelled; a cancelled caller waits until the work has ended, so that it can clean up.
    """
    stop = Event()
    context = copy_context()
    begun = _begin(lambda: context.run(work, stop.is_set))
    try:
        return await asyncio.wrap_future(begun)
    except BaseException:
        stop.set()
        wait([begun])
        raise


async def imported(*modules: str) -> None:
    """Have these modules imported, in this order. All callers in the process share one import, also one that an earlier
    caller gave up; a failed one is tried again by the next. Raises whatever the import raises.

    A slow module must not be imported on an event loop: the loop would stand still, also behind the thread's import.
    """
    begun = _import_of(modules)
    if begun.done() and begun.exception() is None:
        return
    try:
        await asyncio.wrap_future(begun)
    except Exception:
        _import_of.cache_clear()
        raise


class Late(Generic[T]):
    """What `make` makes when it is first needed, after `modules` are imported; once, whoever needs it meanwhile.

    All that making it would import belongs into `modules`. The import, and the first making after these modules in the
    process, are slow: both happen on threads, and whoever waits can be cancelled.
    """

    _quick: ClassVar[set[tuple[str, ...]]] = set()
    """Modules after which this process has made something before."""

    def __init__(self, make: Callable[[], T], *modules: str) -> None:
        import anyio  # as in `in_thread`

        self._make = make
        self._modules = modules
        self._lock = anyio.Lock(fast_acquire=True)  # asyncio's would belong to the loop in which somebody waited first
        self.made: T | None = None

    async def get(self) -> T:
        """Raises whatever the import or `make` raises; the next call tries again."""
        async with self._lock:
            if self.made is None:
                await imported(*self._modules)
                self.made = self._make() if self._modules in self._quick else await abandonable(self._make)
                self._quick.add(self._modules)
            return self.made


@cache
def _import_of(modules: tuple[str, ...]) -> "Future[None]":
    def work() -> None:
        collects = gc.isenabled()
        gc.disable()  # it would look through modules of which nothing ever goes
        try:
            for module in modules:
                import_module(module)
            gc.freeze()  # else the next collection holds up the loop for a tenth of a second
        finally:
            if collects:
                gc.enable()

    return _begin(work)


def _begin(work: Callable[[], T]) -> "Future[T]":
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()  # from here on who waits can be cancelled, and this cannot

    def fulfil() -> None:
        try:
            result = work()
        except Exception as error:  # noqa: BLE001 - whoever waits raises it
            done.set_exception(error)
        except BaseException as error:  # noqa: BLE001 - an exit is the whole process's to decide, not this thread's
            done.set_exception(RuntimeError(f"{type(error).__name__}: {error}"))
        else:
            done.set_result(result)

    Thread(target=fulfil, name="massgen abandonable", daemon=True).start()
    return done
