"""Conversations of this process: which turns a session id stands for, and what begins a new one.

They live as long as the process and leave nothing on disk.
"""

import secrets
import threading
from collections import OrderedDict

from massgen_mcp.config.models import EarlierTurn
from massgen_mcp.errors import MassgenError
from massgen_mcp.runs.directory import timestamp

MAX_SESSIONS = 1000
"""The session that was used longest ago makes room for a new one."""


class RememberedSessions:
    """Safe to use from several threads."""

    def __init__(self) -> None:
        self._turns: OrderedDict[str, tuple[EarlierTurn, ...]] = OrderedDict()
        self._lock = threading.Lock()

    def history(self, session_id: str) -> tuple[EarlierTurn, ...]:
        """The turns so far, oldest first. Raises `MassgenError` invalid_arguments for an unknown session."""
        with self._lock:
            if session_id not in self._turns:
                raise MassgenError(
                    "invalid_arguments",
                    f"there is no session {session_id[:80]!a} in this process; leave session_id out to begin one, or "
                    "hand over what was said as conversation_history",
                )
            return self._turns[session_id]

    def add(self, session_id: str, turn: EarlierTurn, history: tuple[EarlierTurn, ...]) -> None:
        """Remember a turn that has ended; `history` is what a new session began with."""
        with self._lock:
            self._turns[session_id] = (*self._turns.get(session_id, history), turn)
            self._turns.move_to_end(session_id)
            while len(self._turns) > MAX_SESSIONS:
                self._turns.popitem(last=False)


def new_session_id() -> str:
    """Distinct, however many are asked for in one moment."""
    return f"session_{timestamp()[:15]}_{secrets.token_hex(4)}"


SESSIONS = RememberedSessions()
"""The one of this process: a session id is only good where the turns are."""
