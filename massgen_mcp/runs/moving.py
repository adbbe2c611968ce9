"""A run goes from one store to another, in a file (`store.run_file`): also one that goes on.

It is marked before it is written, so at no moment does it go on in two places: whoever executes it leaves it, and from
then on the file is the run. Where the file does not come to be the mark is taken back; where the process was lost, the
run waits for another export. An import makes the row last: as long as there is none it may be repeated.
"""

import platform
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from massgen_mcp.changes.git import GitFailed, is_address
from massgen_mcp.changes.run_changes import RunChanges
from massgen_mcp.config.access.held_keys import redactor_for
from massgen_mcp.config.adjusted import with_places, without_scripts
from massgen_mcp.config.loader import missing_keys, require_keys
from massgen_mcp.config.models.config import Config
from massgen_mcp.errors import MassgenError
from massgen_mcp.home import STORE_VARIABLE, write_durably
from massgen_mcp.run_state.state import folded
from massgen_mcp.run_state.status import TERMINAL_STATES, RunStatus
from massgen_mcp.runs.access import RunAccess
from massgen_mcp.runs.consent import WAITING, RunDemands, find_demands
from massgen_mcp.runs.engine import Engine, FrozenRequest, LostRun, NewRun, RunFiles, RunFilter, RunRow, Wish
from massgen_mcp.runs.engine.files import LEFT
from massgen_mcp.runs.patches.given import UPLOADED, named_contexts, upload_base
from massgen_mcp.runs.store.amounts import find_wrong_amounts
from massgen_mcp.runs.store.run_file import MovedRun, unpack, write_run_file
from massgen_mcp.runs.view.run_view import RunView, RunWatch
from massgen_mcp.workspace.snapshot import remove_tree

STOP_SECONDS = 20.0
LOOK_SECONDS = 0.05
TURNS = 1000
"""Of a session that are looked at."""
CLAIM_CHARACTERS = 1000

Watch = Callable[[str], RunWatch]


@dataclass(frozen=True, slots=True)
class MovedOut:
    """`moved`: the run goes on where the file is imported; else it has ended, and stays here as well. `notes`: what is
    needed there, in words.
    """

    run_id: str
    file: str
    moved: bool
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MovedIn:
    """`known`: the run was here already, and nothing was changed. `notes`: what is not as it was, in words. `asks_for`:
    what it asks for, if it waits for consent to that.
    """

    run_id: str
    state: RunStatus
    known: bool = False
    notes: tuple[str, ...] = ()
    asks_for: tuple[str, ...] = ()


# ---------------------------------------------------------------------------------------------------------------------
# Out


def move_out(engine: Engine, watch: Watch, run_id: str, target: Path, is_stopped: Callable[[], bool]) -> MovedOut:
    """Write a run, and all that are nested in it, to a new file. One that has not ended leaves the store with it.
    `is_stopped`: whether to give it up before the file is complete. Raises `MassgenError`.
    """
    with engine.files.moving():
        view = watch(run_id).look()
        if view.damage is not None:
            raise view.damage
        if view.row.parent is not None:
            raise MassgenError(
                "invalid_action", f"run {run_id} is nested in {view.row.parent}; export that run instead"
            )
        if target.exists():
            raise MassgenError("invalid_arguments", f"{target} is there already")
        begun = not view.ended and not view.row.moved
        try:
            if not view.ended:
                view = _left(engine, watch, run_id, _where(target), is_stopped)
            _imported_mark(target).unlink(missing_ok=True)  # of an earlier file of this name
            return _written(engine, watch, view, target)
        except BaseException:
            if begun and not target.exists():
                _take_back(engine, run_id)
            raise


def _take_back(engine: Engine, run_id: str) -> None:
    """Let a run go on here that was marked as moved, with those that are nested in it."""
    for row in engine.store.moves.take_back(run_id):
        files = engine.files.of(row)
        (files.path / LEFT).unlink(missing_ok=True)
        engine.liveness.announce(row, files)


def _where(target: Path) -> str:
    advice = (
        "the run continues where you import that file. To take the run back, import the file here with "
        "`massgen import --back --yes`. If you lost the file, export the run again"
    )
    return f"moved to {target} with `massgen export`; {advice}"


def _left(engine: Engine, watch: Watch, run_id: str, where: str, is_stopped: Callable[[], bool]) -> RunView:
    """The run when it is marked, and nobody executes it any more, nor what is nested in it. Looked at twice: something
    may have been started in it just before it was left.
    """
    deadline, quiet = time.monotonic() + STOP_SECONDS, 0
    while quiet < 2:
        if is_stopped():
            raise MassgenError("not_finished", f"the export of run {run_id} was interrupted")
        engine.store.moves.move_out(run_id, where)
        rows = [watch(row.run_id).row() for row in engine.store.index.get_family(run_id)]
        going_on = [row for row in rows if row.state == "running"]
        quiet = quiet + 1 if not going_on else 0
        for row in going_on:
            engine.liveness.announce(row, engine.files.of(row))
            if time.monotonic() > deadline:
                if engine.pool is None:
                    message = f"process {(row.runner or '').partition('-')[0]} is still executing run {row.run_id}"
                    raise MassgenError("not_finished", f"{message}; end that process, then export the run")
                engine.store.leases.release(row.run_id, row.runner or "")
        time.sleep(LOOK_SECONDS)
    for row in engine.store.index.get_family(run_id) if engine.pool is None else ():
        if row.moved:
            with suppress(OSError):  # known from the row, as long as that is not lost
                write_durably(engine.files.of(row).path / LEFT, where.encode())
    return watch(run_id).look()


def _written(engine: Engine, watch: Watch, view: RunView, target: Path) -> MovedOut:
    with ExitStack() as held:
        runs: list[tuple[MovedRun, RunFiles]] = []
        keys: list[str] = []
        for row in engine.store.index.get_family(view.row.run_id):
            if row.expired:
                continue
            one = watch(row.run_id).look()
            if one.damage is not None:
                raise one.damage
            files = held.enter_context(engine.files.whole(row))
            request = files.read_request()
            _make_whole(files, request, ended=one.ended)
            keys += [*missing_keys(request.config, {}), *request.config.server_variables]
            runs.append((_moved_run(engine, one, request), files))
        write_run_file(target, runs)
    needs = f", with {', '.join(dict.fromkeys(keys))} set" if keys else ""
    notes = () if view.ended else (f"Import that file only once, on the machine where the run should continue{needs}.",)
    return MovedOut(view.row.run_id, str(target), moved=not view.ended, notes=notes)


def _make_whole(files: RunFiles, request: FrozenRequest, *, ended: bool) -> None:
    """What the run borrows of this machine is a part of it from now on. Raises `MassgenError` for what cannot be."""
    changes, config = RunChanges(files.changes), request.config
    here = [(Path(one.path), name) for one, name in named_contexts(config) if not _is_elsewhere(one.path)]
    try:
        base = changes.base()
        if base is None and here and not ended and not files.event_log.begun():
            if request.begins_with is not None:
                raise MassgenError("invalid_action", "the run hasn't started, and needs changes that exist only here")
            upload_base(files, config)
            base = changes.base()
        if base is not None:
            changes.own(base)
    except GitFailed as error:
        if ended:  # its patch lacks nothing
            return
        raise MassgenError("run_damaged", f"cannot read the run's files: {error}") from error
    names = {one.name for one in base.directories} if base is not None else set[str]()
    if not ended and (left := [str(path) for path, name in here if name not in names]):
        raise MassgenError("invalid_action", f"the run reads {left[0]}, which exists only on this machine")


def _is_elsewhere(path: str) -> bool:
    return path.startswith(UPLOADED) or is_address(path)


def _find_usd(view: RunView) -> float | None:
    """Return what a run counts for quotas: its cost, or its cap while it goes on, or where its cost is unknown."""
    settled = view.snapshot.spent.settled_usd
    if view.ended and settled is not None:
        return settled
    return view.max_usd


def _moved_run(engine: Engine, view: RunView, request: FrozenRequest) -> MovedRun:
    row = view.row
    ended = engine.store.ended.list_ended(run_ids=[row.run_id])
    run = NewRun(
        row.run_id,
        request.question,
        row.config,
        "",
        row.request_hash,
        row.idempotency_key,
        row.session_id,
        parent=row.parent,
        admitted=bool(row.admitted),
        owner=row.owner,
        usd=_find_usd(view),
        kind=row.kind,
    )
    wanted: list[tuple[Wish, str]] = [
        (one.action, one.message) for one in engine.store.controls.list_open([row.run_id]) if one.action != "move"
    ]
    marks = ended[0].marks if ended else {}
    return MovedRun(run=run, state=view.state, created=row.created, marks=marks, controls=tuple(wanted))


# ---------------------------------------------------------------------------------------------------------------------
# In


@dataclass(frozen=True, slots=True)
class _Arriving:
    """`before`: what is known of the run here; `stood_still`: nothing has happened since it left; `is_own`: it left
    this store with the same request, which may be executed here.
    """

    lost: LostRun
    request: FrozenRequest
    before: RunRow | None
    stood_still: bool
    is_own: bool

    @property
    def ended(self) -> bool:
        return self.lost.state in TERMINAL_STATES

    @property
    def is_here(self) -> bool:
        """Of a run that was moved, or has expired, nothing is here any more that could be lost, or go on twice."""
        kept = self.before.kept if self.before else "moved"
        return kept != "moved" and not (kept == "nothing" and self.ended)


@dataclass(frozen=True, slots=True)
class ImportRequest:
    """A file with a run, and the conditions under which it is imported."""

    file: Path
    accepts: Callable[[RunDemands], bool]
    """Says whether the run may do what it asks for; else it waits."""
    owner: str | None = None
    """The owner of the run from now on; None: its owner in the file."""
    back: bool = False
    """Also import a run that left this store and has not gone on since."""
    is_only_import: bool = False
    """A person says that the run goes on nowhere else."""


def move_in(access: RunAccess, request: ImportRequest) -> MovedIn:
    """Import the run of a file; one that may go on here does so. Raises `MassgenError`; nothing is changed then."""
    moved = _take_file_in(access, request)
    if moved.state not in TERMINAL_STATES:
        access.dispatch.care_for(access.get_watch(moved.run_id).look())
    return moved


def _take_file_in(access: RunAccess, request: ImportRequest) -> MovedIn:
    engine, file = access.engine, request.file
    place = engine.home.ensure().path / "moving"
    with engine.files.moving(), engine.files.making():
        remove_tree(place)
        place.mkdir(mode=0o700)
        try:
            moved = unpack(file, place).runs
            arriving = [_arriving(access, one, request.owner, place / one.run.run_id) for one in moved]
            if not request.back and arriving[0].stood_still:
                advice = "if you imported it elsewhere, export the run there; if not, import it here with --back --yes"
                raise MassgenError(
                    "invalid_action", f"run {moved[0].run.run_id} was exported from this store to this file; {advice}"
                )
            store = _store_name(engine, access.environ)
            with _claim_file(file, arriving[0], store, back=request.back, sure=request.is_only_import):
                return _take_in(access, arriving, place, request.accepts)
        finally:
            remove_tree(place)


@contextmanager
def _claim_file(file: Path, outer: _Arriving, store: str, *, back: bool, sure: bool) -> Generator[None]:
    """Leave beside the file the name of the store that takes its run in, so that another store sees it. Raises
    `MassgenError` invalid_action for a run that may go on elsewhere, if nobody is `sure` that it does not.
    """
    if outer.ended or outer.is_here:
        yield
        return
    run_id, mark = outer.lost.run.run_id, _imported_mark(file)
    claim = f"{run_id} {store}"
    twice = "if both copies run, you pay twice"
    if not sure and back and outer.stood_still:
        message = f"run {run_id} may have continued in another store that imported {file}; {twice}"
        raise MassgenError(
            "invalid_action",
            f"{message}. If you haven't imported it anywhere else, repeat the command with --back --yes",
        )
    earlier = _read_claim(mark)
    if not sure and earlier.startswith(f"{run_id} ") and earlier != claim:
        message = f"run {run_id} was imported from {file} into {earlier.removeprefix(run_id).strip()}; {twice}"
        raise MassgenError(
            "invalid_action", f"{message}. Export it from there; if it is lost, repeat the command with --yes"
        )
    try:
        write_durably(mark, claim.encode())
    except OSError as error:
        if not sure:
            reason = error.strerror or type(error).__name__
            message = f"cannot record the import in {mark} ({reason}), so other stores could import it too; {twice}"
            raise MassgenError("invalid_action", f"{message}. To import it anyway, pass --yes") from error
    try:
        yield
    except BaseException:
        if not earlier:
            with suppress(OSError):
                mark.unlink(missing_ok=True)
        raise


def _imported_mark(file: Path) -> Path:
    return file.with_name(f"{file.name}.imported")


def _read_claim(mark: Path) -> str:
    """Return which run was imported into which store from the file of this mark. Empty: none, as far as is known."""
    with suppress(OSError):
        if mark.is_file():
            with mark.open(encoding="utf-8", errors="replace") as file:
                return " ".join(file.read(CLAIM_CHARACTERS).split())
    return ""


def _store_name(engine: Engine, environ: Mapping[str, str]) -> str:
    if engine.pool is None:
        return f"{engine.home.path} on {platform.node()}"
    address = urlsplit(environ.get(STORE_VARIABLE, ""))
    return f"PostgreSQL at {address.hostname or 'localhost'}:{address.port or 5432}{address.path}"


def _take_in(
    access: RunAccess, arriving: Sequence[_Arriving], place: Path, accepts: Callable[[RunDemands], bool]
) -> MovedIn:
    engine, environ = access.engine, access.environ
    outer = arriving[0].lost.run
    if arriving[0].is_here:
        return MovedIn(outer.run_id, engine.store.index.get(outer.run_id).state, known=True)
    notes: list[str] = []
    if not arriving[0].ended:
        _require_free_session(engine, outer)
    arriving, demands = _check_demands(arriving, environ, accepts)
    if demands is not None and not demands.needed:
        notes.append(
            "massgen won't run agent-written scripts in this run, because you haven't allowed that; to allow it, "
            "import the run with --trust."
        )
    waits = demands is not None and bool(demands.needed)
    keyless = (
        [] if arriving[0].ended or waits else _without_keys(engine, arriving[0].request.config, environ, outer.run_id)
    )
    notes += keyless
    entered: list[LostRun] = []
    for one in arriving:
        if one.is_here:
            continue
        if one.before is not None:
            engine.files.remove(one.before, "results")
        lost = _place_files(access, one, place, waits=waits, keyless=bool(keyless))
        entered.append(replace(lost, alone=(waits or bool(keyless)) and one is arriving[0]))
    engine.store.moves.restore(entered)
    row = engine.store.index.get(outer.run_id)
    if row.idempotency_key != outer.idempotency_key:
        notes.append("The run lost its idempotency key, since another run here has the same key.")
    asks_for = demands.describe_lines() if demands is not None and waits else ()
    return MovedIn(row.run_id, row.state, notes=tuple(notes), asks_for=tuple(asks_for))


def _check_demands(
    arriving: Sequence[_Arriving], environ: Mapping[str, str], accepts: Callable[[RunDemands], bool]
) -> tuple[Sequence[_Arriving], RunDemands | None]:
    """The runs as they may come in, and what they ask for that nobody accepted. None: nothing."""
    foreign = [one for one in arriving if not (one.ended or one.is_own or one.is_here)]
    demands = find_demands([(one.request.config, one.lost.record) for one in foreign], environ)
    if not demands.harmful or accepts(demands):
        return arriving, None
    if demands.needed:
        return arriving, demands
    return [_drop_scripts(one) if one in foreign else one for one in arriving], demands


def _drop_scripts(one: _Arriving) -> _Arriving:
    return replace(one, request=replace(one.request, config=without_scripts(one.request.config)))


def _place_files(access: RunAccess, one: _Arriving, place: Path, *, waits: bool, keyless: bool) -> LostRun:
    """Put the files of a run in their place. Returns what the store is told of it."""
    run, lost = one.lost.run, one.lost
    if waits and not one.ended:
        wanted = [(action, message) for action, message in lost.controls if action != "raise_budget"]
        lost = replace(lost, state="interrupted", controls=tuple(wanted))
        run = replace(run, fingerprint=WAITING)
    elif keyless:
        run = replace(run, fingerprint="")
    redactor = redactor_for(access.environ, [agent.backend for agent in one.request.config.agents])
    access.engine.files.take_in(place / run.run_id, one.request, redactor, run, ended=one.ended)
    return replace(lost, run=run)


def _arriving(access: RunAccess, moved: MovedRun, owner: str | None, place: Path) -> _Arriving:
    """What the files of a run tell. Raises `MassgenError` run_damaged, journal_newer, invalid_action."""
    engine = access.engine
    unpacked, run = RunFiles(place), moved.run
    request = unpacked.read_request()
    try:
        records = unpacked.event_log.read_to_continue()
        if wrong := next(find_wrong_amounts(moved, records), None):
            raise MassgenError("run_damaged", f"{wrong} is negative or not a number, so nothing was imported")
        record = folded(records)
    except LookupError as error:
        raise MassgenError("run_damaged", "the run's events contradict each other") from error
    parent = request.nesting and request.nesting.parent
    if parent != run.parent or (record.seq and record.run_id != run.run_id):
        raise MassgenError("run_damaged", "the files belong to a different run than the manifest says")
    state = record.state if record.end is not None else moved.state
    if state not in TERMINAL_STATES:
        state = "interrupted" if record.seq else "queued"
        request = replace(request, config=_move_places(request.config))
    if owner is not None and parent is None and run.idempotency_key is not None:  # a person's begin with his name
        key = run.idempotency_key.removeprefix(f"{run.owner}\n")
        run = replace(run, idempotency_key=f"{owner}\n{key}" if owner else key)
    run = replace(
        run, fingerprint=access.dispatch.identity(request.config), owner=run.owner if owner is None else owner
    )
    before = engine.store.index.get(run.run_id) if engine.store.index.find_known([run.run_id]) else None
    left = before if before is not None and before.moved else None
    still = left is not None and not _gone_on(engine.files.of(left), unpacked, left)
    lost = LostRun(run, state, moved.created, record, controls=moved.controls, marks=moved.marks)
    own = left is not None and left.fingerprint != WAITING and _is_same_request(engine.files.of(left), request)
    return _Arriving(lost, request, before, still, own)


def _move_places(config: Config) -> Config:
    """The config as it is where the directories of this machine are not."""
    return with_places(config, lambda path: path if _is_elsewhere(path) else f"{UPLOADED}{path}")


def _is_same_request(here: RunFiles, request: FrozenRequest) -> bool:
    with suppress(MassgenError):
        return _move_places(here.read_request().config) == _move_places(request.config)
    return False


def _gone_on(here: RunFiles, unpacked: RunFiles, row: RunRow) -> bool:
    """Whether anything has happened since the run left. Raises `MassgenError` where less is known than then."""
    lines = unpacked.event_log.follow().lines()
    if any(line != next(lines, None) for line in here.event_log.follow().lines()):
        message = f"the file is older than run {row.run_id} here, which was {row.moved}"
        raise MassgenError("invalid_action", message)
    return next(lines, None) is not None


def _require_free_session(engine: Engine, run: NewRun) -> None:
    turns = (
        engine.store.index.list_recent(RunFilter(session_id=run.session_id), limit=TURNS)
        if run.session_id is not None
        else []
    )
    if busy := [row.run_id for row in turns if row.busy and row.run_id != run.run_id]:
        raise MassgenError(
            "session_busy", f"run {busy[0]} of the same session is active here; import this run after that one ends"
        )


def _without_keys(engine: Engine, config: Config, environ: Mapping[str, str], run_id: str) -> list[str]:
    """Why the run waits until somebody resumes it, if this process has to have it executed."""
    try:
        if engine.pool is None:
            require_keys(config, environ)
    except MassgenError as error:
        return [f"The run can't continue yet: {error} Then run: massgen resume {run_id}"]
    return []
