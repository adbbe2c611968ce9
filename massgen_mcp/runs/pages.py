"""The page of a run: drawn once, or again whenever something happens in the run."""

from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from typing import TYPE_CHECKING, TypeVar

import anyio.to_thread

from massgen_mcp.runs.access import RunAccess
from massgen_mcp.runs.engine import DamagedJournal
from massgen_mcp.runs.view.run_view import RunView
from massgen_mcp.runs.watcher import RunWatcher
from massgen_mcp.threads import in_thread

if TYPE_CHECKING:
    from massgen_mcp.page.build import GrowingPage
    from massgen_mcp.page.data import RunPage
    from massgen_mcp.page.left_out import Most

T = TypeVar("T")


class RunPages:
    """The pages of the runs that the current user may see."""

    def __init__(self, access: RunAccess, watcher: RunWatcher) -> None:
        self._access, self._watcher = access, watcher

    @in_thread
    def draw(self, view: RunView, *, redacted: bool = False) -> "RunPage":
        """Return what the page of a run shows, as the run stands in `view`. `redacted`: nothing that anybody wrote is
        in it. Raises `MassgenError` store_unavailable.
        """
        from massgen_mcp.runs.view.reporting import page_of  # no server starts with it

        return page_of(view.directory, view.snapshot, self._access.get_files, self._access.environ, redacted=redacted)

    @in_thread
    def draw_fitting(self, view: RunView, sizes: Iterable["Most"], taken: Callable[["RunPage"], T | None]) -> T | None:
        """Return what `taken`, which is called in a thread, makes of the page in the first of these sizes of which it
        makes anything. Raises `MassgenError` store_unavailable.
        """
        from massgen_mcp.runs.view.reporting import smaller_pages_of  # no server starts with it

        pages = smaller_pages_of(view.directory, view.snapshot, self._access.get_files, self._access.environ, sizes)
        return next((found for page in pages if (found := taken(page)) is not None), None)

    async def stream(self, run_id: str) -> AsyncGenerator[tuple["RunPage", float]]:
        """Yield the page of the run as it is now, with what agents are writing, and again whenever there is something
        new, until the run has ended or waits for somebody other than its caller; with each the seconds of work that
        drawing it took. A damaged record is drawn as far as it is whole. What happens between two pages is read once,
        so whoever takes his time gets fewer pages. Raises as `RunWatcher.get_run`.
        """
        from massgen_mcp.runs.view.reporting import growing_page  # no server starts with it

        page: GrowingPage | None = None
        try:
            async with aclosing(self._watcher.follow(run_id, past_questions=True)) as news:
                async for view, records in news:
                    page = page or growing_page(
                        view.directory, view.snapshot, self._access.get_files, self._access.environ
                    )
                    drawn = await anyio.to_thread.run_sync(page.drawn, view.snapshot, records)
                    yield _add_trouble(drawn, view), page.seconds
        except DamagedJournal:
            view = await self._watcher.get_run(run_id)
            yield _add_trouble(await self.draw(view), view), 0.0


def _add_trouble(page: "RunPage", view: RunView) -> "RunPage":
    """Add a note that the run's record is damaged, or why the run doesn't continue, unless its story says so."""
    trouble = view.damage or (view.held_up_by if not view.row.moved else None)
    return page if trouble is None else page.model_copy(update={"notes": (*page.notes, str(trouble))})
