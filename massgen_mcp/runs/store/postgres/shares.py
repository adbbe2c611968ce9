"""The limits of providers, divided among the workers that ask them: each has a share on a lease that it renews.

A share that is to become smaller stays with its worker until that one has said that it keeps to the smaller one; so all
of them together never have more than there is. One that has ended calls within the last minute has not given them back.
"""

import hashlib
import platform
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from functools import cache

from massgen_mcp.backends.leases import LEASE_SECONDS, Asked, GrantedShares, LimitName, Need
from massgen_mcp.backends.limiter import Destination, LimiterPolicy
from massgen_mcp.config.providers.addresses import is_loopback
from massgen_mcp.runs.engine.connection import SqlConnection
from massgen_mcp.runs.store.postgres.database import LazyConnection, PostgresConnection, translated
from massgen_mcp.runs.store.postgres.schema import SHARES_LOCK
from massgen_mcp.threads import in_thread

FROZEN_SECONDS = 2
"""A worker that stands still for so long in the middle of a renewal keeps nobody waiting any more."""
TURN_SECONDS = 5.0
"""Where there is less than one for each, whoever has one keeps it for so long while others wait."""
MINUTE = LimiterPolicy().minute


@dataclass(frozen=True, slots=True)
class ShareRow:
    """A row."""

    place: str
    name: LimitName
    worker: str
    address: str
    most: int | None
    need: int
    share: int | None
    held: int | None
    since: float
    ends: float
    paused_until: float


_NAMES = [field.name for field in fields(ShareRow)]
_COLUMNS = ", ".join(_NAMES)
_PUT = f"""
INSERT INTO shares ({_COLUMNS}) VALUES ({", ".join(["%s"] * len(_NAMES))})
    ON CONFLICT (place, name, worker) DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in _NAMES)}
"""


class SharedLimits:
    """One worker's way to them."""

    def __init__(self, url: str, worker: str) -> None:
        self._line = LazyConnection(url)
        self._worker = worker

    @in_thread
    def renew(self, asked: Mapping[Destination, Asked]) -> Mapping[Destination, GrantedShares]:
        """Its shares from now on. It has none at whom it does not name. Raises `MassgenError`."""
        places = {_key_digest(to.address, to.key): to for to in asked}
        with translated():
            connection = self._line.ready(patience=0.0)
            with connection.transaction():
                connection.execute(f"SET LOCAL idle_in_transaction_session_timeout = '{FROZEN_SECONDS}s'".encode())
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (SHARES_LOCK,))
                return self._granted(connection, places, asked)

    def _granted(
        self, connection: PostgresConnection, places: Mapping[str, Destination], asked: Mapping[Destination, Asked]
    ) -> Mapping[Destination, GrantedShares]:
        (now,) = connection.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchone() or (0.0,)
        connection.execute(
            "DELETE FROM shares WHERE ends < %s OR (worker = %s AND NOT place = ANY(%s))",
            (now - MINUTE, self._worker, list(places)),
        )
        query = f"SELECT {_COLUMNS} FROM shares WHERE place = ANY(%s)"
        rows = [ShareRow(*row) for row in connection.execute(query.encode(), (list(places),))]
        granted = dict[Destination, GrantedShares]()
        for place, to in places.items():
            here = [row for row in rows if row.place == place]
            paused_until = max((row.paused_until for row in here if row.worker != self._worker), default=now)
            shares = dict[LimitName, int | None]()
            for name, need in asked[to].needs.items():
                before = ShareRow(place, name, self._worker, to.address, None, 0, 0, 0, now, 0.0, now + asked[to].pause)
                row = _renewed(before, need, [row for row in here if row.name == name], now)
                connection.execute(_PUT.encode(), astuple(row))
                shares[name] = row.share
            granted[to] = GrantedShares(shares, max(0.0, paused_until - now))
        return granted

    def leave(self) -> None:
        """It asks nobody any more; what it has asked within the last minute counts still. Raises `MassgenError`."""
        with translated():
            self._line.ready(patience=0.0).execute(
                "UPDATE shares SET held = need, ends = extract(epoch FROM clock_timestamp()) WHERE worker = %s",
                (self._worker,),
            )

    def close(self) -> None:
        self._line.close()


@cache
def _key_digest(address: str, key: str) -> str:
    """Dear to compute, so that no key is guessed from it. What is on a machine is another one on each of them."""
    salt = f"{address} {platform.node() if is_loopback(address) else ''}".encode()
    return hashlib.scrypt(key.encode("utf-8", "surrogateescape"), salt=salt, n=2**14, r=8, p=1, dklen=16).hex()


def in_use(db: SqlConnection) -> list[tuple[str, str, int, int, int]]:
    """See `Engine.limits_in_use`."""
    query = (
        "SELECT address, name, sum(coalesce(held, most)), min(most), count(*) FROM shares"
        " WHERE ends > extract(epoch FROM clock_timestamp()) AND most IS NOT NULL"
        " GROUP BY place, address, name ORDER BY address, name"
    )
    return db.execute(query).fetchall()


def _renewed(blank: ShareRow, need: Need, rows: Sequence[ShareRow], now: float) -> ShareRow:
    """The worker's row from now on. `rows`: all of this limit; `blank`: its own, as if it were new."""
    own = next((row for row in rows if row.worker == blank.worker and row.ends > now), None)
    others = [row for row in rows if row.worker != blank.worker]
    was = own or blank
    mine = replace(was, most=need.limit, need=need.in_use + need.waiting)
    live = [mine, *(row for row in others if row.ends > now)]
    limit = min((row.most for row in live if row.most is not None), default=None)
    if limit is None:
        share = held = None
    else:
        counting = (row for row in others if row.ends > now or row.name == "requests_per_minute")
        free = limit - sum(limit if row.held is None else row.held for row in counting)
        # A worker that is lost has used its share up, for all that is known: for the next minute if it is one of that.
        spare = limit if mine.name == "concurrency" else max(1, int(limit * LEASE_SECONDS / MINUTE))
        share = max(0, min(_divided(limit, live, now, spare)[mine.worker], free))
        held = None if need.share is None else max(share, need.share, need.in_use)
    since = was.since if (share == 0) == (was.share == 0) else now
    return replace(mine, share=share, held=held, since=since, ends=now + LEASE_SECONDS, paused_until=blank.paused_until)


def _divided(limit: int, rows: Sequence[ShareRow], now: float, spare: int) -> dict[str, int]:
    """How much each worker should have: what it needs, or as much as everybody who needs more. Where there is not one
    more for all of those, they get it in turn. What nobody needs is for those whose configs know of the limit, up
    to `spare` for each.
    """
    needs = {row.worker: min(row.need, limit) for row in rows}
    level = bisect_right(range(limit + 1), limit, key=lambda most: sum(min(need, most) for need in needs.values())) - 1
    shares = {worker: min(need, level) for worker, need in needs.items()}
    left = limit - sum(shares.values())
    if short := sorted((row for row in rows if needs[row.worker] > level), key=lambda row: _turn(row, now)):
        for row in short[:left]:
            shares[row.worker] += 1
    else:
        users = [row for row in rows if row.most is not None]
        for row in users:
            shares[row.worker] += min(left // len(users), spare)
    return shares


def _turn(row: ShareRow, now: float) -> tuple[int, float]:
    """Its place in the line: who has had one for less than a turn, who waits, and who has had one for longest."""
    if row.share == 0:
        return 1, row.since
    return (0, row.since) if now < row.since + TURN_SECONDS else (2, -row.since)
