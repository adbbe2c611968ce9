"""Team runs as tasks: the task of `start_run` is the run, under the run's own id.

Nothing is kept here: what a task is follows from the run, so every later server process gives the same answer.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, cast

import anyio.to_thread
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.types import CallToolRequestParams, CallToolResult, ClientCapabilities, ElicitResult

from massgen_mcp.errors import MassgenError
from massgen_mcp.money.estimate import estimate
from massgen_mcp.request.reach import reach_of
from massgen_mcp.request.team import Team
from massgen_mcp.run_state.status import RunStatus
from massgen_mcp.runs.engine import RUN_ID_PREFIX
from massgen_mcp.runs.service import RunService
from massgen_mcp.runs.view.run_view import RunView
from massgen_mcp.server import results
from massgen_mcp.server.app import MassgenServer
from massgen_mcp.server.decisions import can_be_asked, decision_in, form_of, question_key, undecided
from massgen_mcp.server.results.words import team_of_run, team_text
from massgen_mcp.server.tasks import Cancelled, Completed, McpTask, TaskInputRequired, TaskState, Working
from massgen_mcp.server.waiting import standing
from massgen_mcp.views.plain_text import preview

QUESTION_CHARACTERS = 1_000
POLL_MS, MAX_POLL_MS = 3_000, 15_000
GOES_ON: tuple[RunStatus, ...] = ("queued", "running", "interrupted")


class RunTasks:
    """See `TaskSource`. `server` makes the results; they are kept for `kept_seconds` after
    the end of a run.
    """

    tools: Mapping[str, Literal["optional", "required"]] = {"start_run": "optional"}

    def __init__(self, server: MassgenServer, service: RunService, kept_seconds: float) -> None:
        self._server, self._service, self._kept_seconds = server, service, kept_seconds

    def owns(self, task_id: str) -> bool:
        return task_id.startswith(RUN_ID_PREFIX)

    async def begin(
        self,
        params: CallToolRequestParams,  # noqa: ARG002 - there is one tool only
        ctx: ServerRequestContext[Any, Any],
        call_next: CallNext,
    ) -> McpTask | HandlerResult:
        """The tool does its work as ever; its reply becomes a task where it told of a run that goes on."""
        reply = await call_next(ctx)
        if not isinstance(reply, CallToolResult) or reply.is_error:
            return reply
        content: object = reply.structured_content
        facts = cast("dict[str, Any]", content) if isinstance(content, dict) else {}
        run_id = facts.get("run_id")
        if not isinstance(run_id, str) or facts.get("status") not in GOES_ON:
            return reply
        task = await self.get(run_id, ctx.session.client_capabilities)
        self._server.waking.note_task(ctx, run_id)
        return replace(task, message=_begun(facts))

    async def get(self, task_id: str, client: ClientCapabilities | None) -> McpTask:
        view = await self._service.watcher.get_run(task_id)
        state = await self._task_state(view, client)
        status = None if view.damage else results.status(view)
        return McpTask(
            task_id,
            state,
            created=view.row.created,
            updated=_ended(view) or view.snapshot.updated_at or view.row.created,
            message=_message(view, status.next_step if status else None),
            ttl_ms=self._ttl_ms(view),
            poll_ms=_poll_ms(view),
        )

    async def update(self, task_id: str, answers: Mapping[str, ElicitResult]) -> None:
        view = await self._service.watcher.get_run(task_id)
        answer = answers.get(question_key(view) or "")
        if answer is not None and (decision := decision_in(view, answer) or undecided(view)):
            await self._service.control(task_id, decision.action, decision.message, decision.value)

    async def cancel(self, task_id: str) -> None:
        view = await self._service.watcher.get_run(task_id)
        if not view.ended:
            await self._service.control(task_id, "cancel")

    async def _task_state(self, view: RunView, client: ClientCapabilities | None) -> TaskState:
        """A run that cannot go on before its caller does something, and whose person cannot be asked here, is over as a
        task: only so the caller hears of it.
        """
        match view.state:
            case "cancelled":
                return Cancelled()
            case "input_required" if (key := question_key(view)) and can_be_asked(client):
                return TaskInputRequired({key: form_of(view)})
            case _ if view.stands_still:
                return Completed(await self._reply(view))
            case _:
                return Working()

    async def _reply(self, view: RunView) -> dict[str, Any]:
        """What `start_run` would have returned if it had waited until now."""
        try:
            if view.damage is not None:
                raise view.damage
            config = view.directory.read_request().config
            expected = await anyio.to_thread.run_sync(
                estimate, config, view.snapshot.question, self._service.access.environ
            )
            reach = reach_of(config, self._service.access.environ, Path.cwd())
            note = f"{_asked(view)} " if view.state == "input_required" else ""
            team = Team(config, view.row.config, self._service.access.environ)
            started = results.started(view, results.StartFacts(team, reach, expected), reused=False, note=note)
            reply = self._server.reply_of("start_run", started)
        except MassgenError:  # get_result says what is wrong, and what can still be read
            reply = await self._server.call_tool("get_result", {"run_id": view.row.run_id})
        return reply.model_dump(by_alias=True, mode="json", exclude_none=True)

    def _ttl_ms(self, view: RunView) -> int | None:
        ended = _ended(view)
        return None if ended is None else max(1, int((ended + self._kept_seconds - view.row.created) * 1000))


def _poll_ms(view: RunView) -> int | None:
    """Longer pauses for longer runs; None where there is nothing to wait for."""
    return None if view.damage or view.stands_still else round(min(MAX_POLL_MS, max(POLL_MS, view.elapsed * 100)))


def _ended(view: RunView) -> float | None:
    """The store hears of the end after the journal."""
    return view.snapshot.ended_at or view.row.ended


def _begun(facts: dict[str, Any]) -> str:
    """Who is asked, what the run reaches and what it may cost: the client shows nothing else of the reply."""
    return f"Team: {team_text(facts['team'])}. Reach: {facts['reach']}. Estimate: {facts['estimate']}"


def _asked(view: RunView) -> str:
    asked = view.snapshot.input_required
    return f"The run asks: {preview(asked.text, QUESTION_CHARACTERS)}" if asked is not None else ""


def _asked_team(view: RunView) -> str:
    """Name the team and the cap on cost: a person sees them for as long as the task is shown."""
    team = team_text(team_of_run(view.snapshot))
    cap = f", at most ${view.max_usd:g}" if view.max_usd is not None else ""
    return f"{team}{cap}: " if team else ""


def _message(view: RunView, next_step: str | None) -> str:
    standing_text = f"{_asked_team(view)}{standing(view)}"
    return f"{standing_text}. {next_step}" if view.stands_still and next_step else standing_text
