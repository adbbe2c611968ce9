"""The runs that have ended, for statistics. A record is read once: what statistics need of it is in the store then."""

from collections.abc import Collection
from contextlib import suppress

from massgen_mcp.config.models.config import Config
from massgen_mcp.errors import MassgenError
from massgen_mcp.money.estimate import classify_work
from massgen_mcp.request.kind import ListedKind
from massgen_mcp.run_state.state import folded
from massgen_mcp.runs.engine import EndedRow, Engine
from massgen_mcp.statistics.digest import RunDigest, digest_of
from massgen_mcp.statistics.sums import NEWEST, CountedRun, compute_first_answer_medians

BATCH = 200
"""So many runs are read before what is known of them is written down."""


def counted_runs(
    engine: Engine,
    *,
    since: float | None = None,
    config: str | None = None,
    run_ids: Collection[str] | None = None,
    newest: int | None = None,
    kind: ListedKind = "all",
) -> tuple[list[CountedRun], int]:
    """Also how many further runs there were of which no record can be read. Runs that were never begun are not counted,
    nor are nested ones: what they cost is a part of the run that started them. `run_ids`: these alone, nested or not;
    `newest`: so many at most, the last ones. Raises `MassgenError`.
    """
    found = engine.store.ended.list_ended(since=since, config=config, run_ids=run_ids, newest=newest, kind=kind)
    digests = {ended.row.number: ended.digest for ended in found}
    missing = [ended for ended in found if not ended.digested and not ended.row.expired]
    for first in range(0, len(missing), BATCH):
        read: dict[int, RunDigest | None] = {}
        for ended in missing[first : first + BATCH]:
            with suppress(MassgenError, LookupError):  # it cannot be read now
                read[ended.row.number] = digest_of(folded(engine.files.of(ended.row).event_log.read_intact()))
        engine.store.ended.keep_digests(read)
        digests |= read
    runs = [_counted(ended, digest) for ended in found if (digest := digests[ended.row.number]) is not None]
    begun = sum(ended.row.started is not None for ended in found)
    return runs, max(0, begun - len(runs))


def find_usual_seconds(engine: Engine, config: Config) -> dict[str, float]:
    """Return how long the config's models usually take for a first answer; none where the config sets the wait."""
    if config.orchestrator.first_answer_wait_seconds is not None or len(config.agents) == 1:
        return {}
    with suppress(MassgenError):
        models = {agent.backend.model for agent in config.agents}
        usual = compute_first_answer_medians(counted_runs(engine, newest=NEWEST)[0], classify_work(config))
        return {model: usual[model] for model in usual.keys() & models}
    return {}


def _counted(ended: EndedRow, digest: RunDigest) -> CountedRun:
    row = ended.row
    return CountedRun(
        run_id=row.run_id,
        state=row.state,
        config=row.config,
        created=row.created,
        digest=digest,
        marks=ended.marks,
    )
