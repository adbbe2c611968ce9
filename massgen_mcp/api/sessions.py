"""Sessions of Python callers: in the run store as those of every door, or in this process if nothing is to be kept."""

import os
import secrets
import threading
from collections import OrderedDict

from massgen_mcp.home import find_home
from massgen_mcp.request.question import EarlierTurn
from massgen_mcp.runs.service import RunService
from massgen_mcp.runs.sessions.session_records import is_session_id
from massgen_mcp.runs.store.directory import timestamp
from massgen_mcp.runs.store.local import local_engine

MAX_SESSIONS = 1000
"""The session that was used longest ago makes room for a new one."""


class RememberedSessions:
    """Sessions of which a turn was kept nowhere else, with all their turns since. Safe to use from several threads."""

    def __init__(self) -> None:
        self._turns: OrderedDict[str, tuple[EarlierTurn, ...]] = OrderedDict()
        self._lock = threading.Lock()

    def history(self, session_id: str) -> tuple[EarlierTurn, ...] | None:
        """The turns so far, oldest first; None for a session that is not remembered here."""
        with self._lock:
            return self._turns.get(session_id)

    def add(self, session_id: str, turn: EarlierTurn, history: tuple[EarlierTurn, ...], *, kept: bool) -> None:
        """A turn has ended that was told `history`. `kept`: the run store knows it, so it need not be remembered."""
        with self._lock:
            if kept and session_id not in self._turns:
                return
            self._turns[session_id] = (*self._turns.get(session_id, history), turn)
            self._turns.move_to_end(session_id)
            while len(self._turns) > MAX_SESSIONS:
                self._turns.popitem(last=False)


def kept_turns(session_id: str) -> tuple[EarlierTurn, ...] | None:
    """The turns that the run store knows; None for a session that it does not know. Raises `MassgenError`
    store_unavailable.
    """
    engine = local_engine(find_home(os.environ))
    if not is_session_id(session_id) or not engine.store.exists():
        return None
    try:
        sessions = RunService(engine, os.environ).sessions
        return sessions.history(session_id)[0].turns if sessions.runs(session_id) else None
    finally:
        engine.close()


def new_session_id() -> str:
    """Distinct, however many are asked for in one moment."""
    return f"session_{timestamp()[:15]}_{secrets.token_hex(4)}"


SESSIONS = RememberedSessions()
"""Those of this process."""
