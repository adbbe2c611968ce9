"""The page of a run that is looked at while it goes on: what is new is added to what was read before."""

import time
from collections.abc import Iterable
from dataclasses import replace

from massgen_mcp.events.agent_work import TextDelta
from massgen_mcp.events.record import LogRecord
from massgen_mcp.page.build import NestedRuns, ReportedRun, page_with
from massgen_mcp.page.data import Doing, RunPage
from massgen_mcp.page.history import RunHistory
from massgen_mcp.page.texts import TextRoom
from massgen_mcp.run_state.state import RunState
from massgen_mcp.views.activity import Activities
from massgen_mcp.views.live_view import newest_words, status_of
from massgen_mcp.views.story import story

GROWS_SECONDS = 1.0
"""So often the bars of calls grow while agents only go on writing."""
NEWEST = 160
"""Characters of what an agent is writing."""


class GrowingPage:
    """One run, seen again and again. From one thread at a time."""

    def __init__(self, reported: ReportedRun, nested: NestedRuns) -> None:
        self._reported = reported
        self._nested = nested
        self._history = RunHistory()
        self._doing = Activities()
        self._coming: list[LogRecord] = []
        """Records that the state does not hold yet."""
        self._page: RunPage | None = None
        self._drawn_to = 0.0
        self.seconds = 0.0
        """Of work that the newest page took."""

    def drawn(self, run: RunState, records: Iterable[LogRecord]) -> RunPage:
        """The page as the run stands in `run`. `records`: what is new. Where agents only went on writing, and not for
        long, it is the page of before with the same parts, but for `doing`.
        """
        began = time.thread_time()
        coming, self._coming = [*self._coming, *records], []
        page = self._page if self._page is not None and self._page.state == run.state else None
        for record in coming:
            if record.seq > run.seq:
                self._coming.append(record)
                continue
            self._history.add(record)
            self._doing.apply(record)
            if not isinstance(record.event, TextDelta) or record.time >= self._drawn_to + GROWS_SECONDS:
                page = None
        if page is None:
            self._drawn_to = self._history.last
            page = page_with(replace(self._reported, state=run), self._history, self._nested, TextRoom(redacted=False))
        text = "" if page.ended else story(run, self._doing)
        self._page = page.model_copy(update={"doing": self._what_they_do(run), "story": text})
        self.seconds = time.thread_time() - began
        return self._page

    def _what_they_do(self, run: RunState) -> tuple[Doing, ...]:
        if run.state not in ("running", "input_required"):
            return ()
        return tuple(
            Doing(agent=name, what=status_of(run, agent)[0], line=newest_words(run, agent, self._doing, NEWEST))
            for name, agent in run.agents.items()
        )
