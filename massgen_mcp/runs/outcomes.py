"""Ended runs together: statistics, what runs of a team usually take, and what users said of answers."""

import time
from collections.abc import Sequence
from contextlib import suppress

from massgen_mcp.changes.apply_records import applied_at
from massgen_mcp.config.access.held_keys import redactor_for
from massgen_mcp.config.models.backends import BackendConfig
from massgen_mcp.config.models.config import Config
from massgen_mcp.errors import MassgenError
from massgen_mcp.money.estimate import Usual, classify_work
from massgen_mcp.runs.access import AccessPart
from massgen_mcp.runs.checks import check_mark
from massgen_mcp.runs.store.counting import counted_runs
from massgen_mcp.runs.view.run_view import RunView
from massgen_mcp.statistics.digest import Mark, RunDigest, Verdict, digest_of
from massgen_mcp.statistics.sums import NEWEST, Statistics, StatisticsFilter, statistics_of, usual_runs, usual_time
from massgen_mcp.threads import in_thread


class RunOutcomes(AccessPart):
    """Ended runs that the current user may see."""

    @in_thread
    def sum_up(self, wanted: StatisticsFilter) -> Statistics:
        """Return what the runs that have ended come to. Raises `MassgenError` disk_full, store_unavailable."""
        runs, unread = counted_runs(self._access.engine, since=wanted.since, config=wanted.config, kind=wanted.kind)
        return statistics_of([run for run in runs if wanted.fits(run)], filters=wanted.filters, unread=unread)

    @in_thread
    def read_digests(self, views: Sequence[RunView]) -> dict[str, RunDigest]:
        """Return what statistics know of each of these runs, by id, of one that goes on as it stands; of one that was
        never begun, or of which no record is left, there is nothing.
        """
        ended = [view.row.run_id for view in views if view.ended]
        found = {run.run_id: run.digest for run in counted_runs(self._access.engine, run_ids=ended)[0]}
        going = ((view.row.run_id, digest_of(view.snapshot)) for view in views if not view.ended)
        return found | {run_id: digest for run_id, digest in going if digest is not None}

    @in_thread
    def describe_usual_time(self, run_id: str, config: Config | None = None) -> str:
        """Return what runs of this one's team usually take, in words; empty where too few have ended, or none can be
        read. `config`: the run's, if the caller has it already.
        """
        with suppress(MassgenError):
            row = self._access.engine.store.index.get(run_id)
            agents = (config or self._access.engine.files.of(row).read_request().config).agents
            models = [agent.backend.model for agent in agents]
            return usual_time(counted_runs(self._access.engine, config=row.config, newest=NEWEST)[0], models)
        return ""

    @in_thread
    def find_usual_runs(self, source: str, config: Config) -> Usual | None:
        """Return what runs of this team, from the same source, usually come to; None where too few have ended, or none
        can be read.
        """
        models = [agent.backend.model for agent in config.agents]
        with suppress(MassgenError):
            return usual_runs(
                counted_runs(self._access.engine, config=source, newest=NEWEST)[0], models, classify_work(config)
            )
        return None

    @in_thread
    def mark(self, run_id: str, verdict: Verdict | None, *, agent: str | None = None, note: str = "") -> None:
        """Note that the answer of a run, or what one of its agents said, proved right or wrong; None: nothing any more.
        It is no event of the run, and stays, without the note, when the run's results are gone.

        Raises `MassgenError` unknown_run, not_finished, invalid_arguments, disk_full, store_unavailable.
        """
        row = self._access.get_watch(run_id).row()
        runs, _ = counted_runs(self._access.engine, run_ids=[row.run_id])
        check_mark(row, runs[0] if runs else None, agent, note)
        backends: list[BackendConfig] = []
        with suppress(MassgenError):  # it has expired
            backends = [one.backend for one in self._access.engine.files.of(row).read_request().config.agents]
        kept = redactor_for(self._access.environ, backends).text(note)
        mark = None if verdict is None else Mark(verdict=verdict, note=kept, at=time.time())
        self._access.engine.store.ended.mark(row.run_id, agent or "", mark)

    @in_thread
    def list_proved(self) -> list[tuple[RunView, str, str]]:
        """Return runs of which it is known what is right, each with whose answer that is (empty: its own) and what it
        says, as it is marked, or because its patch was applied and is not taken back. Raises `MassgenError` disk_full,
        store_unavailable.
        """
        found: list[tuple[RunView, str, str]] = []
        for run in counted_runs(self._access.engine)[0]:
            marked = [agent for agent, mark in run.marks.items() if mark.verdict == "right"]
            with suppress(MassgenError):  # its files are gone
                if "" not in run.marks and applied_at(self._access.get_files(run.run_id).changes) is not None:
                    marked.append("")
                if not marked:
                    continue
                view = self._access.get_watch(run.run_id).look()
                answers = {one.info.id: one.answers[-1].content for one in view.snapshot.agents.values() if one.answers}
                answers[""] = view.snapshot.best_answer or ""
                found += [(view, agent, answers[agent]) for agent in sorted(marked)[:1] if answers.get(agent)]
        return found
