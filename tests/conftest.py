"""Fixtures that every test may use, and the search for planted keys in what the session leaves behind."""

import fcntl
import gc
import os
import signal
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from coverage import Coverage
from hypothesis import HealthCheck, settings

from tests.commands import COUNTED
from tests.planted import PLANTED, SEARCH, searched_outputs
from tests.wire_double import aimock, aimock_server

__all__ = ["aimock", "aimock_server"]


settings.register_profile(
    "repeatable", derandomize=True, deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("repeatable")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """One of several processes reads the tests first: to compile them is half of the work, and is done for the others
    then. Nothing of what is read is garbage.
    """
    with Path(__file__).open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(file, fcntl.LOCK_SH)
        gc.disable()
        try:
            return (yield)
        finally:
            gc.enable()
            gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where several processes take the files in this order, those that take long come first, then those of most tests:
    a long one that began last would be waited for alone.
    """
    if not config.getoption("loadscopereorder", default=True):
        tests = Counter(item.path for item in items)
        items.sort(key=lambda item: (item.get_closest_marker("long") is None, -tests[item.path]))


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def not_counted(request: pytest.FixtureRequest) -> Iterator[None]:
    """Coverage costs more than the test itself where one goes through the same lines thousands of times. Such tests
    are marked `uncounted`, and so is what they start; others go through their lines, too.
    """
    counting = Coverage.current() if request.node.get_closest_marker("uncounted") else None
    if counting is None:
        yield
        return
    counting.stop()
    of_children = os.environ.pop(COUNTED)
    yield
    counting.start()  # which sets the variable to what counts this process
    os.environ[COUNTED] = of_children


@pytest.fixture(autouse=True)
def modes_of_new_files_as_before() -> Iterator[None]:
    """A command that a test runs in this process keeps its files to its user; the next test starts as this one did."""
    before = os.umask(0o022)
    os.umask(before)
    yield
    os.umask(before)


@pytest.fixture(scope="session", autouse=True)
def interrupts_are_heard() -> None:
    """What a shell starts in the background is deaf to Ctrl-C, and all that our tests start would be deaf, too."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def no_planted_key_is_left_behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Every process that a test starts holds planted keys; in the end none of them may be in a file or an output."""
    os.environ.update(PLANTED)
    with searched_outputs(SEARCH):
        yield
    SEARCH.look_below(tmp_path_factory.getbasetemp())
    assert not SEARCH.found, "keys were left behind:\n" + "\n".join(SEARCH.found)


_OF_WORKERS: list[tuple[int, int, int]] = []


def pytest_sessionfinish(session: pytest.Session) -> None:
    if (output := getattr(session.config, "workeroutput", None)) is not None:
        output["planted"] = SEARCH.figures


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    if figures := getattr(node, "workeroutput", {}).get("planted"):
        _OF_WORKERS.append(figures)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    left_out = Counter(_reason(report) for report in terminalreporter.getreports("skipped"))
    for reason, count in left_out.items():
        terminalreporter.write_line(f"TESTS LEFT OUT: {count}, because {reason}", red=True, bold=True)
    files, size, hits = map(sum, zip(SEARCH.figures, *_OF_WORKERS, strict=True))
    terminalreporter.write_line(f"searched for planted keys: {files} files, {size} bytes, {hits} hits")


def _reason(report: pytest.TestReport) -> str:
    """Why a test was left out."""
    _file, _line, told = cast("tuple[str, int, str]", report.longrepr)
    return told.removeprefix("Skipped: ")
