"""The tables of the store: procrastinate's and ours, made and brought up to date in steps, each of which is noted.

Ours are plain files in `steps/`, in the order of their numbers. Never change one that was released. Programs of one
version and of the next work side by side: a step may only add, and take away what the version before used no more.
"""

from collections.abc import Iterator
from importlib import resources
from typing import Any

import psycopg

from massgen_mcp.errors import MassgenError

SCHEMA = "massgen"
"""Everything of ours is in this schema of the database."""
STORE_LOCK, UPGRADE_LOCK, SHARES_LOCK, MOVING_LOCK = range(7_103_001, 7_103_005)
"""The advisory locks of the store. In this order they are held while rows of runs change, while the tables are
upgraded, while a worker renews its shares, and while a run moves out or in.
"""
OURS, THEIRS = "massgen", "procrastinate"
_STEPS = sorted(
    file.name for file in (resources.files(f"{__package__}") / "steps").iterdir() if file.name.endswith(".sql")
)
SCHEMA_VERSION = len(_STEPS)


def check_schema(connection: psycopg.Connection[Any]) -> None:
    """Raises `MassgenError` store_unavailable for a store that is not of this version or the next one."""
    done = _done(connection)
    version = sum(step.startswith(f"{OURS}/") for step in done)
    if version > SCHEMA_VERSION + 1:
        raise MassgenError(
            "store_unavailable",
            f"a newer massgen-mcp version upgraded the run store (schema {version}, this version supports "
            f"{SCHEMA_VERSION}); upgrade massgen-mcp",
        )
    if version < SCHEMA_VERSION:
        what = "has no tables yet" if not done else f"has an older schema ({version})"
        raise MassgenError("store_unavailable", f"the run store {what}; update it with `massgen store upgrade`")


def upgrade(url: str) -> list[str]:
    """Take the steps that are missing, while nobody else does. Returns their names. Raises `psycopg.Error`,
    `MassgenError` for a store of a newer version.
    """
    taken: list[str] = []
    with psycopg.connect(url, autocommit=True, connect_timeout=10) as connection:
        connection.execute("SELECT pg_advisory_lock(%s)", (UPGRADE_LOCK,))
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}".encode())
        connection.execute(f"SET search_path TO {SCHEMA}".encode())
        connection.execute(
            b"CREATE TABLE IF NOT EXISTS schema_steps (step TEXT PRIMARY KEY, at TIMESTAMPTZ DEFAULT now())"
        )
        done = _done(connection)
        if sum(step.startswith(f"{OURS}/") for step in done) > SCHEMA_VERSION + 1:
            check_schema(connection)
        for step, statements in _missing(done):
            with connection.transaction():
                if statements:
                    connection.execute(statements.encode())
                connection.execute("INSERT INTO schema_steps (step) VALUES (%s)", (step,))
            taken.append(step)
    return taken


def _done(connection: psycopg.Connection[Any]) -> set[str]:
    (table,) = connection.execute("SELECT to_regclass(%s)", (f"{SCHEMA}.schema_steps",)).fetchone() or (None,)
    if table is None:
        return set()
    return {step for (step,) in connection.execute(f"SELECT step FROM {SCHEMA}.schema_steps".encode())}


def _missing(done: set[str]) -> Iterator[tuple[str, str]]:
    """Steps and their statements. A new store gets procrastinate's tables as they are now, and is past its steps."""
    theirs = resources.files("procrastinate.sql")
    migrations = sorted(file.name for file in (theirs / "migrations").iterdir() if file.name.endswith(".sql"))
    first = not any(step.startswith(f"{THEIRS}/") for step in done)
    if first:
        yield f"{THEIRS}/schema.sql", (theirs / "schema.sql").read_text("utf-8")
    for name in migrations:
        if f"{THEIRS}/{name}" not in done:
            yield f"{THEIRS}/{name}", "" if first else (theirs / "migrations" / name).read_text("utf-8")
    for name in _STEPS:
        if f"{OURS}/{name}" not in done:
            yield f"{OURS}/{name}", (resources.files(f"{__package__}") / "steps" / name).read_text("utf-8")
