"""Runs are started, controlled and resumed; the rest of what interfaces ask of runs is in the parts beside.

Holds no run state: everything is read from the store and the journals, so any process gives the same answers. Must not
know MCP, command lines or models.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import anyio.to_thread

from massgen_mcp.changes.git import is_address
from massgen_mcp.config.access import members
from massgen_mcp.config.access.held_keys import redactor_for
from massgen_mcp.errors import MassgenError
from massgen_mcp.people import User
from massgen_mcp.run_state.status import TERMINAL_STATES
from massgen_mcp.runs.access import RunAccess, find_no_user
from massgen_mcp.runs.applier import PatchApplier
from massgen_mcp.runs.checks import check_action, checked_raise
from massgen_mcp.runs.engine import Action, CallerAnswer, Engine
from massgen_mcp.runs.outcomes import RunOutcomes
from massgen_mcp.runs.pages import RunPages
from massgen_mcp.runs.patches.earlier_changes import find_earlier_changes
from massgen_mcp.runs.preparation import prepare
from massgen_mcp.runs.sessions.turns import start_note
from massgen_mcp.runs.starting import PreparedRun, ask_to_admit, enqueue
from massgen_mcp.runs.view.run_view import RunView
from massgen_mcp.runs.watcher import RunWatcher
from massgen_mcp.threads import in_thread
from massgen_mcp.workspace.guard import safe_id

if TYPE_CHECKING:  # what reads runs needs nothing of how one is built
    from massgen_mcp.request.build import RunRequest

ELSEWHERE = (
    "context_paths and checks need directories on this machine, but a worker on another machine executes the "
    "run: pass https://HOST/PATH of a git repository, or upload a directory with `massgen start --context DIR`"
)
CLONED_ELSEWHERE = "only a shared store's workers can clone git repositories; use a directory on this machine"
NO_PROGRAMS = (
    "an agent of this team is a program that runs under the server's account, so it could see all users' "
    "runs; use only models as agents"
)


class RunService:
    """The runs of one engine, seen from one environment. A store that cannot be used is an error of each call, not of
    this object: it works as soon as the store does.

    `watcher` shows runs, `applier` applies their changes, `pages` draws them, and `outcomes` sums up what has ended.
    """

    def __init__(
        self, engine: Engine, environ: Mapping[str, str], find_user: Callable[[], User | None] = find_no_user
    ) -> None:
        """`find_user` returns the user whose call it is; None: one that may see every run."""
        self.access = access = RunAccess(engine, environ, find_user)
        self.watcher = RunWatcher(access)
        self.applier = PatchApplier(access, self.watcher)
        self.pages = RunPages(access, self.watcher)
        self.outcomes = RunOutcomes(access)

    def close(self) -> None:
        """End every wait, and close the engine."""
        self.watcher.stop_waiting()
        self.access.whole_engine.close()

    @in_thread
    def prepare(self, request: "RunRequest") -> PreparedRun:
        """Return the run that `start` begins. A turn of a session may continue the changes of an earlier one. In a
        process that works inside a run the new run is nested in that one.

        Raises `MassgenError`: invalid_arguments, idempotency_conflict, nesting_refused, config_invalid, disk_full,
        store_unavailable.
        """
        access, pool = self.access, self.access.engine.pool
        places = [context.path for context in request.config.orchestrator.context_paths]
        if pool is None and any(map(is_address, places)):
            raise MassgenError("invalid_arguments", CLONED_ELSEWHERE)
        if pool is not None and not request.given.uploads and not all(map(is_address, places)):
            raise MassgenError("invalid_arguments", ELSEWHERE)
        if pool is not None and request.given.changes_of is not None:
            raise MassgenError("invalid_arguments", "changes_of works only on the machine that has the files")
        if access.is_guest and any(members.start_permissions(agent.backend) for agent in request.config.agents):
            raise MassgenError("invalid_arguments", NO_PROGRAMS)
        if request.given.session_id is not None:
            safe_id(request.given.session_id, "session id")
        return prepare(access, request)

    @in_thread
    def start(self, run: PreparedRun) -> tuple[RunView, bool]:
        """Start a run in the background; it is durable when this returns. True: it is an earlier run of the same key.

        `on_conflict` says what to do when the key is taken (see `RunQueue.add`). A turn of a session is told question
        and answer of the turns before it; only one turn of a session may be on its way. A nested run begins when the
        outer one admits it.

        Raises `MassgenError`: invalid_arguments, idempotency_conflict, session_busy, queue_full, disk_full,
        store_unavailable.
        """
        access, engine = self.access, self.access.engine
        added, history = enqueue(engine, access.sessions, run)
        if run.outer is not None and not added.row.admitted:
            ask_to_admit(engine, access.environ, run.outer, added.row.run_id)
        woken = engine.liveness.wake(added.row.fingerprint)  # at once: the run waits for it
        view = access.get_watch(added.row.run_id).look()
        if not woken:
            access.dispatch.see_to(view)
        if added.replaced is not None:
            engine.liveness.wake(added.replaced.fingerprint)
            engine.liveness.announce(added.replaced, engine.files.of(added.replaced))
        return replace(view, note=history.note), added.reused

    @in_thread
    def start_note(self, request: "RunRequest") -> str:
        """Return whose changes the run would begin with, in words. Raises as `find_earlier_changes`."""
        if (whose := request.given.changes_of) is None:
            return ""
        ended = self.access.sessions.ended(request.given.session_id)
        return start_note(find_earlier_changes(whose, request, request.config, ended))

    async def control(
        self, run_id: str, action: Action | Literal["resume"], message: str = "", value: float | None = None
    ) -> RunView:
        """Ask for something to be done with the run: `steer` shows `message` to all agents, `answer` is what the caller
        decided where input is required, `raise_budget` makes `value` the new `max_usd`, `resume` lets an interrupted
        run go on with the keys of this process. Asking an ended run to end changes nothing.

        Raises `MassgenError` unknown_run, invalid_arguments, invalid_action, missing_key, journal_newer.
        """
        if action == "resume":
            return await self.resume(run_id)
        view = await self.watcher.get_run(run_id)
        if action == "raise_budget":
            message = checked_raise(view, value)
        check_action(view, action, message)
        if message:
            backends = [agent.backend for agent in view.directory.read_request().config.agents]
            message = redactor_for(self.access.environ, backends).text(message)
        if action == "answer":
            message = CallerAnswer(question=view.snapshot.caller.questions, text=message).model_dump_json()
        await anyio.to_thread.run_sync(self.access.engine.store.controls.request, run_id, action, message)
        view = await self.watcher.get_run(run_id)
        await anyio.to_thread.run_sync(self.access.dispatch.see_to, view)
        await anyio.to_thread.run_sync(self.access.engine.liveness.announce, view.row, view.directory)
        return view

    async def resume(self, run_id: str, accepted: str | None = None) -> RunView:
        """Let an interrupted run go on with the keys of this process. `accepted`: the digest of what a person accepted,
        of a run that waits for consent. Raises as `control`, and `MassgenError` config_untrusted.
        """
        view = await self.watcher.get_run(run_id)
        if view.state == "interrupted":
            if view.newer is not None:
                raise view.newer
            await anyio.to_thread.run_sync(self.access.dispatch.adopt, view, accepted)
            view = await self.watcher.get_run(run_id)
        elif view.state in TERMINAL_STATES:
            raise MassgenError(
                "invalid_action", f"run {run_id} is {view.state}; you can resume only an interrupted run"
            )
        return view
