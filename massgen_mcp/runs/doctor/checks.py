"""Is everything there that runs need? Each check looks, changes nothing, and says what to do about what it found.

For a person whose run store misbehaves, so no check relies on another one having gone well.
"""

import os
import platform
import resource
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Mapping

from massgen_mcp import __version__
from massgen_mcp.config.environment import REMEDY, key_fault
from massgen_mcp.config.installed import wrong_versions
from massgen_mcp.config.providers.catalog import PROVIDERS, keys_of_default_teams
from massgen_mcp.errors import MassgenError
from massgen_mcp.file_systems import LOCAL_ADVICE, network_message, network_type
from massgen_mcp.home import HOME_VARIABLE, REBUILD, Home
from massgen_mcp.money.price_list import NEWEST_LIST, find_price_list
from massgen_mcp.name_lists import join_names
from massgen_mcp.runs.doctor.preflight import LEAST_FREE_BYTES
from massgen_mcp.runs.doctor.result import DoctorCheck
from massgen_mcp.runs.engine import Engine
from massgen_mcp.runs.store.opening import LocalEngine

LOW_BYTES = 1 << 30
LOW_INODES = 10_000
LOW_OPEN_FILES = 1_024
LONG_RUN_SECONDS = 24 * 3600


def check_all(engine: LocalEngine, environ: Mapping[str, str]) -> list[DoctorCheck]:
    """Every check, in the order in which a person would fix things. Never raises."""
    home = engine.home
    looks: dict[str, Callable[[], list[DoctorCheck]]] = {
        "version": lambda: _version(engine),
        "packages": _packages,
        "keys": lambda: _keys(environ),
        "price list": lambda: _check_price_list(home),
        "state directory": lambda: _state_directory(home),
        "file system": lambda: _file_system(home),
        "writable": lambda: _writable(home),
        "free space": lambda: _free_space(home),
        "open files": _open_files,
        "store": lambda: _store(engine),
        "runs": lambda: _runs(engine),
        "runners": lambda: _runners(engine),
    }
    return [check for name, look in looks.items() for check in _guarded(name, look, home)]


def _guarded(name: str, look: Callable[[], list[DoctorCheck]], home: Home) -> list[DoctorCheck]:
    try:
        return look()
    except OSError as error:
        return [DoctorCheck(name, "fail", f"cannot check: {error}", f"make {home.path} readable by your user")]
    except MassgenError as error:
        return [DoctorCheck(name, "fail", f"cannot check: {error}", "see the run store check above")]


def _version(engine: Engine) -> list[DoctorCheck]:
    message = f"massgen-mcp {__version__}, Python {platform.python_version()}, {engine.store.database.described()}"
    return [DoctorCheck("version", "ok", message)]


def _packages() -> list[DoctorCheck]:
    wrong = wrong_versions()
    if not wrong:
        return [DoctorCheck("packages", "ok", "all required packages are installed in supported versions")]
    return [DoctorCheck("packages", "fail", str(one), "") for one in wrong]


def _keys(environ: Mapping[str, str]) -> list[DoctorCheck]:
    """Names of variables only."""
    names = sorted({name for provider in PROVIDERS for name in provider.key_variables})
    present = [name for name in names if environ.get(name)]
    blank = [name for name in names if environ.get(name, "").strip() != environ.get(name, "")]
    checks = [DoctorCheck("keys", "ok", f"set: {', '.join(present)}")]
    if not present:
        first = join_names(keys_of_default_teams(), "or")
        advice = f"set {first}, or start a local model server, which needs no key; docs/backends.md lists other keys"
        checks = [DoctorCheck("keys", "warn", "no provider key is set", advice)]
    if blank:
        message = f"{', '.join(blank)}: the value has spaces around it"
        checks.append(DoctorCheck("keys", "warn", message, "remove the spaces; they aren't part of a key"))
    faults = {name: fault for name in present if (fault := key_fault(environ, name))}
    checks += [
        DoctorCheck("keys", "fail", f"{name} doesn't contain a usable key: {fault}", REMEDY)
        for name, fault in faults.items()
    ]
    return checks


def _check_price_list(home: Home) -> list[DoctorCheck]:
    found = find_price_list(home.path)
    if found is None:
        return [DoctorCheck("price list", "fail", "genai-prices is not installed", "reinstall massgen-mcp")]
    origin = "the installed list"
    if found.taken_in:
        origin = "the list you loaded"
    message = f"{origin} is {found.days:.0f} days old"
    if not found.is_old:
        return [DoctorCheck("price list", "ok", message)]
    advice = f"run `massgen prices --from {NEWEST_LIST}`, or upgrade the genai-prices package"
    return [DoctorCheck("price list", "warn", f"{message}, so it has no prices for newer models", advice)]


def _state_directory(home: Home) -> list[DoctorCheck]:
    if not home.path.exists():
        return [DoctorCheck("state directory", "ok", f"{home.path} doesn't exist yet; the first run creates it")]
    checks: list[DoctorCheck] = []
    for directory in (home.path, home.runs, home.runners):
        try:
            found = directory.stat()
        except FileNotFoundError:
            continue
        if not stat.S_ISDIR(found.st_mode):
            advice = f"move it, or set {HOME_VARIABLE} to another directory"
            checks.append(DoctorCheck("state directory", "fail", f"{directory} is not a directory", advice))
        elif found.st_uid != os.geteuid():
            advice = f"run `chown -R {os.geteuid()} {home.path}`, or set {HOME_VARIABLE} to a directory that you own"
            checks.append(DoctorCheck("state directory", "fail", f"{directory} belongs to user {found.st_uid}", advice))
        elif found.st_mode & 0o077:
            checks.append(
                DoctorCheck("state directory", "warn", f"other users can access {directory}", f"chmod 700 {directory}")
            )
    return checks or [DoctorCheck("state directory", "ok", str(home.path))]


def _file_system(home: Home) -> list[DoctorCheck]:
    if kind := network_type(home.path):
        return [DoctorCheck("file system", "fail", network_message(home.path, kind), LOCAL_ADVICE)]
    return [DoctorCheck("file system", "ok", "the state directory isn't on a network file system")]


def _writable(home: Home) -> list[DoctorCheck]:
    checks: list[DoctorCheck] = []
    for directory in (home.path, home.runs, home.runners):
        nearest = next(path for path in (directory, *directory.parents) if path.exists())
        try:
            with tempfile.TemporaryFile(dir=nearest) as file:
                file.write(b"x" * 4096)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            advice = f"free some space, fix the permissions of {nearest}, or set {HOME_VARIABLE} to another directory"
            checks.append(DoctorCheck("writable", "fail", f"cannot write to {nearest}: {error.strerror}", advice))
    return checks or [DoctorCheck("writable", "ok", "massgen can write and sync files")]


def _free_space(home: Home) -> list[DoctorCheck]:
    nearest = next(path for path in (home.path, *home.path.parents) if path.exists())
    free = shutil.disk_usage(nearest).free
    inodes = os.statvfs(nearest)
    message = f"{free / 1e9:.1f} GB free at {nearest}"
    advice = "free some space; `massgen prune` removes old runs"
    if inodes.f_files and inodes.f_favail < LOW_INODES:
        return [
            DoctorCheck(
                "free space", "warn", f"{message}, but there is room for only {inodes.f_favail} more files", advice
            )
        ]
    if free < LOW_BYTES:
        return [DoctorCheck("free space", "fail" if free < LEAST_FREE_BYTES else "warn", message, advice)]
    return [DoctorCheck("free space", "ok", message)]


def _open_files() -> list[DoctorCheck]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < LOW_OPEN_FILES:
        return [
            DoctorCheck(
                "open files",
                "warn",
                f"at most {hard} open files per process",
                f"run `ulimit -n {LOW_OPEN_FILES}` before you start the server",
            )
        ]
    raised = f"; massgen's background process raises this limit to {hard}" if soft < hard else ""
    return [DoctorCheck("open files", "ok", f"{soft} per process{raised}")]


def _store(engine: Engine) -> list[DoctorCheck]:
    if not engine.store.database.exists():
        kept = engine.files.with_events()
        if not kept:
            return [DoctorCheck("run store", "ok", "there are no runs yet")]
        return [DoctorCheck("run store", "fail", f"runs.sqlite3 is missing, but there are {len(kept)} runs", REBUILD)]
    problem = engine.store.database.examine()
    if problem is None:
        kept = engine.files.with_events()
        if kept and not engine.store.index.list_work():
            return [DoctorCheck("run store", "fail", f"the list of runs is empty, but {len(kept)} runs exist", REBUILD)]
        return [DoctorCheck("run store", "ok", "runs.sqlite3 is intact")]
    message, _, advice = problem.partition("; ")
    return [DoctorCheck("run store", "fail", message, advice)]


def _runs(engine: Engine) -> list[DoctorCheck]:
    """Runs that want attention: waiting for somebody, going on for long, without their files, or unknown."""
    rows = engine.store.index.list_work()
    checks: list[DoctorCheck] = []
    if interrupted := [row.run_id for row in rows if row.state == "interrupted" and row.kept != "moved"]:
        advice = (
            "continue it with `massgen resume ID` and the keys it was started with, or end it with `massgen cancel ID`"
        )
        checks.append(DoctorCheck("runs", "warn", f"interrupted: {_run_list(interrupted)}", advice))
    now = time.time()
    long = [row.run_id for row in rows if row.state == "running" and row.started < now - LONG_RUN_SECONDS]
    if long:
        checks.append(
            DoctorCheck(
                "runs",
                "warn",
                f"these runs have been running for more than a day: {_run_list(long)}",
                "check each with `massgen status ID`, or cancel it",
            )
        )
    missing = [row.run_id for row in rows if row.kept in ("all", "results") and not engine.files.of(row).path.is_dir()]
    if missing:
        advice = "their files are lost; massgen removes these runs when they expire"
        checks.append(DoctorCheck("runs", "warn", f"without a directory: {_run_list(missing)}", advice))
    known = {row.run_id for row in rows}
    if unknown := [run_id for run_id in engine.files.with_events() if run_id not in known]:
        checks.append(DoctorCheck("runs", "warn", f"missing from the list of runs: {_run_list(unknown)}", REBUILD))
    return checks or [DoctorCheck("runs", "ok", f"{len(rows)} known")]


def _runners(engine: LocalEngine) -> list[DoctorCheck]:
    """Per set of credentials: does somebody work, and is there work for nobody?"""
    rows = [row for row in engine.store.index.list_work() if not row.foreground]
    checks: list[DoctorCheck] = []
    for fingerprint in sorted({row.fingerprint for row in rows} | engine.liveness.runners()):
        states = [row.state for row in rows if row.fingerprint == fingerprint]
        running, queued = states.count("running"), states.count("queued")
        alive = engine.liveness.runner_alive(fingerprint)
        message = f"{'alive' if alive else 'none'}, {running} running, {queued} queued"
        name = f"runner {fingerprint[:8]}"
        if alive or not (running or queued):
            if alive:
                checks.append(DoctorCheck(name, "ok", message))
            continue
        advice = "to continue one of these runs, set the keys that it was started with and run `massgen wait ID`"
        checks.append(DoctorCheck(name, "warn", message, advice))
    return checks or [DoctorCheck("runner", "ok", "none needed")]


def _run_list(runs: list[str]) -> str:
    shown = ", ".join(runs[:5])
    return shown if len(runs) <= 5 else f"{shown} and {len(runs) - 5} more"
