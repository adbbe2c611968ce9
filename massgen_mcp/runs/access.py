"""An engine as the current user may use it: with their runs, keys and workers."""

from collections.abc import Callable, Mapping
from contextlib import suppress

from massgen_mcp.errors import MassgenError
from massgen_mcp.home import enclosing_run
from massgen_mcp.people import User
from massgen_mcp.run_state.state import RunState
from massgen_mcp.run_state.status import TERMINAL_STATES
from massgen_mcp.runs.engine import Engine, RunFiles, RunRow
from massgen_mcp.runs.sessions.turns import SessionTurns
from massgen_mcp.runs.starting import Dispatch
from massgen_mcp.runs.view.run_view import KeptWatches, RunView, RunWatch

WATCHES = 128
"""How many active runs are kept in memory as far as they have been read."""


def find_no_user() -> User | None:
    """Return None: on a machine with a single user, no people are named."""
    return None


class RunAccess:
    """The runs, files and settings that the current user may reach. Each property looks up that user anew, since a
    server serves several users at once.

    A process that works inside a run acts as the owner of that run, with the keys that it has.
    """

    def __init__(self, engine: Engine, environ: Mapping[str, str], find_user: Callable[[], User | None]) -> None:
        self._engine, self._environ = engine, environ
        self._find_user = find_user
        self._inside: User | None = None
        self._watches = KeptWatches(WATCHES)
        with suppress(MassgenError):
            engine.home.ensure()
            if (inside := enclosing_run(environ)) and (owner := engine.store.index.get(inside).owner):
                self._inside = User(owner, environ=environ)

    @property
    def user(self) -> User | None:
        return self._inside or self._find_user()

    @property
    def is_guest(self) -> bool:
        """True if the current user may not use directories of this machine."""
        return (user := self.user) is not None and user.is_guest

    @property
    def environ(self) -> Mapping[str, str]:
        """The part of this process's environment that is for the current user."""
        user = self.user
        if user is None:
            return self._environ
        return user.environ

    @property
    def whole_engine(self) -> Engine:
        """The engine with everybody's runs."""
        return self._engine

    @property
    def engine(self) -> Engine:
        return self._engine.as_user(self.user)

    @property
    def dispatch(self) -> Dispatch:
        return Dispatch(self.engine, self.environ)

    def get_watch(self, run_id: str) -> RunWatch:
        """Raises `MassgenError` unknown_run for what cannot be an id."""
        engine, dispatch = self.engine, self.dispatch
        return self._watches.get((engine.owner, run_id), lambda: RunWatch(engine, run_id, dispatch.held_up))

    def get_files(self, run_id: str) -> RunFiles:
        """Raises `MassgenError` unknown_run."""
        engine = self.engine
        return engine.files.of(engine.store.index.get(run_id))

    def glance(self, row: RunRow) -> RunView:
        """Return a run as it is now; of one that has ended, or whose record can't be read, what the store knows."""
        if row.state not in TERMINAL_STATES:
            with suppress(MassgenError):
                return self.get_watch(row.run_id).look()
        snapshot = RunState(run_id=row.run_id, question=row.question, store_state=row.state)
        return RunView(row, snapshot, self._engine.files.of(row))

    @property
    def sessions(self) -> SessionTurns:
        return SessionTurns(self.engine.store.index, self.glance, lambda run_id: self.get_watch(run_id).look())


class AccessPart:
    """A part of the run service that needs the access of the current user alone."""

    def __init__(self, access: RunAccess) -> None:
        self._access = access
