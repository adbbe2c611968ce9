"""A run that came in a file from elsewhere may ask for no more than a config that was found in a directory. If it does,
it waits until a person has accepted that.

It waits under credentials that no runner has, so no executor of any store takes it. The mark is in the run's row, which
all machines of a store share.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from massgen_mcp.config.access.permissions import Permission, RunScripts, describe
from massgen_mcp.config.models.config import Config
from massgen_mcp.errors import MassgenError
from massgen_mcp.request.harm import Granted, harmful
from massgen_mcp.request.reach import reach_of
from massgen_mcp.run_state.state import RunState
from massgen_mcp.run_state.status import TERMINAL_STATES
from massgen_mcp.runs.engine import Engine
from massgen_mcp.runs.patches.given import UPLOADED
from massgen_mcp.runs.view.run_view import RunWatch

WAITING = "unaccepted"
"""The fingerprint of a run that waits for consent, and of those that are nested in it."""


@dataclass(frozen=True, slots=True)
class RunDemands:
    """Everything that a run and those nested in it ask for. `harmful`: the part that needs a yes."""

    permissions: tuple[Permission, ...]
    harmful: tuple[Permission, ...]
    digest: str

    @property
    def needed(self) -> tuple[Permission, ...]:
        """The part without which the run cannot go on."""
        return tuple(one for one in self.harmful if not (isinstance(one, RunScripts) and one.optional))

    def describe_lines(self) -> list[str]:
        return [f"  {'!' if one in self.harmful else ' '} {describe(one)}" for one in self.permissions]


def find_demands(parts: Sequence[tuple[Config, RunState]], environ: Mapping[str, str]) -> RunDemands:
    """Collect what runs ask for that have not ended: by their configs, and by the budgets that they have by now."""
    permissions: dict[Permission, None] = {}
    needing: dict[Permission, None] = {}
    digest = hashlib.sha256()
    for config, record in parts:
        foreign = _drop_own_files(_with_present_budget(config, record))
        reach = reach_of(foreign, environ, Path("/"))
        permissions.update(dict.fromkeys(reach.permissions))
        needing.update(dict.fromkeys(harmful(foreign, reach, environ, Path.cwd(), Granted())))
        digest.update(json.dumps(foreign.model_dump(mode="json"), sort_keys=True).encode())
    return RunDemands(tuple(permissions), tuple(needing), f"sha256:{digest.hexdigest()}")


def _with_present_budget(config: Config, record: RunState) -> Config:
    raised = record.max_usd if record.started_at is not None else None
    if raised is None or raised <= config.budget.max_usd:
        return config
    return config.model_copy(update={"budget": config.budget.model_copy(update={"max_usd": raised})})


def _drop_own_files(config: Config) -> Config:
    """Its directories came along in the file. Nothing of them is read on this machine but git repositories."""
    paths = [one for one in config.orchestrator.context_paths if not one.path.startswith(UPLOADED)]
    orchestrator = config.orchestrator.model_copy(update={"context_paths": tuple(paths)})
    return config.model_copy(update={"orchestrator": orchestrator})


def read_demands(engine: Engine, run_id: str, environ: Mapping[str, str]) -> RunDemands | None:
    """Return what a run asks for that waits for consent; None for any other one. Raises `MassgenError`."""
    row = engine.store.index.get(run_id)
    if row.fingerprint != WAITING:
        return None
    parts: list[tuple[Config, RunState]] = []
    for one in engine.store.index.get_family(row.run_id):
        view = RunWatch(engine, one.run_id, lambda _: None).look()
        if view.state not in TERMINAL_STATES:
            parts.append((view.directory.read_request().config, view.snapshot))
    return find_demands(parts, environ)


def require_consent(run_id: str, demands: RunDemands, accepted: str | None) -> None:
    """Raises `MassgenError` config_untrusted unless `accepted` is the digest of what the run asks for."""
    if accepted == demands.digest:
        return
    ways = f"run `massgen resume {run_id} --trust`; in CI, pass --trust={demands.digest}"
    if accepted is not None:
        ways = f"the digest in --trust doesn't match; the current one is {demands.digest}"
    listed = "\n".join(demands.describe_lines())
    raise MassgenError(
        "config_untrusted",
        f"run {run_id} was imported, and you haven't accepted its permissions (! needs consent):\n{listed}\nIt "
        f"can't continue until you accept them: {ways}",
    )
