"""What the SQL of runs needs of a database: SQLite's and PostgreSQL's are both spoken to in the words of SQLite."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol


class SqlCursor(Protocol):
    @property
    def rowcount(self) -> int: ...

    def fetchone(self) -> Any: ...  # noqa: ANN401 - a row, or None

    def fetchall(self) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...


class SqlConnection(Protocol):
    """Places for values are `?`, or `?1`, `?2`, ... where a value stands in several."""

    def execute(self, query: str, values: Sequence[object] = (), /) -> SqlCursor: ...

    def executemany(self, query: str, rows: Iterable[Sequence[object]], /) -> object: ...


class SqlDatabase(Protocol):
    """Used by the threads of a process. Every failure is a `MassgenError`: disk_full or store_unavailable; what failed
    has not happened.
    """

    def reading(self) -> AbstractContextManager[SqlConnection]: ...

    def transaction(self) -> AbstractContextManager[SqlConnection]:
        """All of it is on disk when the block has been left, or nothing of it has happened. One at a time, of all
        processes together.
        """
        ...

    def hasty_transaction(self) -> AbstractContextManager[SqlConnection]:
        """All of it or nothing, for every process; but a power cut soon after may undo it."""
        ...

    def close(self) -> None: ...

    def put_away_broken(self) -> Path | None:
        """Move a store away that is damaged; return where it is then. None, and nothing is done, for one that is whole,
        missing, locked or of a newer version. This and the methods below may be asked of a store that is damaged,
        locked or of another version. They take part in no migration.
        """
        ...

    def exists(self) -> bool: ...

    def described(self) -> str: ...

    def examine(self) -> str | None: ...

    def looking(self) -> AbstractContextManager[SqlConnection | None]:
        """For what may be asked of a store of another version; None where there are no runs."""
        ...
