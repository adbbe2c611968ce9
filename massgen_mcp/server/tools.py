"""START HERE. The tools that an MCP client sees, one function each, in the order a parent agent uses them.

Each parses nothing and decides nothing about runs: it asks the run service, and puts what it hears into a result whose
fields tell a model everything it needs, the next step included.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import anyio.to_thread
from mcp.server.mcpserver import Context
from mcp.server.subscriptions import ResourcesListChanged
from mcp.types import ToolAnnotations
from pydantic import Field

from massgen_mcp.checks.proposals import proposed_checks
from massgen_mcp.config.adjusted import RequestedLimits
from massgen_mcp.config.default_team import MAX_AGENTS
from massgen_mcp.config.given import GivenDecide
from massgen_mcp.config.models.config import Config
from massgen_mcp.config.providers.catalog import PROVIDERS
from massgen_mcp.money.estimate import Estimate, TeamPrices, estimate
from massgen_mcp.request.build import CallerRequest, OnConflict, RunRequest, build_request
from massgen_mcp.request.kind import ListedKind
from massgen_mcp.request.reach import reach_of
from massgen_mcp.request.team import Team
from massgen_mcp.request.trust import Consent
from massgen_mcp.run_state.status import RunStatus
from massgen_mcp.runs.checks import MAX_MESSAGE_CHARACTERS
from massgen_mcp.runs.doctor.command_sandbox import sandbox_note
from massgen_mcp.runs.engine import RunFilter
from massgen_mcp.runs.patches.applying import ApplyRequest
from massgen_mcp.runs.service import RunService
from massgen_mcp.runs.view.run_view import RunView
from massgen_mcp.server import results
from massgen_mcp.server.app import MassgenServer, keys_of_client
from massgen_mcp.server.arguments import BOUNDED, MAX_ANSWERS, Moment, PathGiven, context_path, named_team
from massgen_mcp.server.clients import is_over_http
from massgen_mcp.server.results.words import choose_waiting
from massgen_mcp.server.waiting import WaitRequest, is_raise_agreed, wait_with_progress
from massgen_mcp.views.checks import TriedCheck

READ_ONLY = ToolAnnotations(read_only_hint=True, open_world_hint=False)
CONTROLS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
STARTS_WORK = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=True)
DESTRUCTIVE = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)
SEARCH_HINT = "anthropic/searchHint"
"""Words by which Claude Code's search finds a tool that it has not loaded. No model reads them."""
FOUND = {
    "anthropic/alwaysLoad": True,
    SEARCH_HINT: "ask other models: GPT and Gemini, Claude, Grok; delegate, second opinion, review, debate, consensus, "
    "root cause, stuck, architecture decision",
}
"""Claude Code loads the first tool of a delegation without a search, unless a person switched that off."""
FINDS_RESULT = {SEARCH_HINT: "what did the team say"}
FINDS_CONTROL = {SEARCH_HINT: "cancel it, stop"}
DRY_RUN_SECONDS = 45.0
"""For all checks of a dry run together."""
LISTED = 20
"""Runs on a page, where the call does not say how many."""

LookBefore: TypeAlias = Callable[[Team], Awaitable[str | None]]
"""What is looked at before a run begins and a cent is spent. Raises `MassgenError` for what would fail then; returns
what the caller should know.
"""


async def nothing_to_look_at(_: Team) -> None:
    pass


def add_tools(server: MassgenServer, service: RunService, look_before: LookBefore = nothing_to_look_at) -> None:
    """Register every tool on `server`, answered by `service`."""

    @server.tool(title="Ask a team of other models", annotations=STARTS_WORK, meta=FOUND)
    async def start_run(
        context: Context,
        question: Annotated[str, Field(description="The whole task.", min_length=1)],
        team: Annotated[str | None, Field(description="A name from list_configs, or a YAML path.")] = None,
        models: Annotated[
            list[str] | None,
            Field(
                description='One agent per entry: a provider or model, such as ["gpt", "gemini", "openai/MODEL"]. '
                "Not with team."
            ),
        ] = None,
        num_agents: Annotated[int | None, Field(ge=0, le=MAX_AGENTS)] = None,
        context_paths: Annotated[
            list[PathGiven] | None,
            Field(
                description="Absolute paths to read; save diffs to files. With permission write, apply_result can "
                "merge changes.",
                max_length=20,
            ),
        ] = None,
        checks: Annotated[list[str] | None, Field(description="Test commands.", max_length=10)] = None,
        decide: Annotated[
            GivenDecide | None,
            Field(description="checks: agents write tests; synthesise: one agent merges all answers."),
        ] = None,
        max_usd: Annotated[float | None, Field(description="Budget; 0: the team's.", ge=0, le=100_000)] = None,
        max_seconds: Annotated[float | None, Field(ge=0, le=604_800)] = None,
        max_answers: Annotated[int | None, Field(ge=0, le=MAX_ANSWERS)] = None,
        idempotency_key: Annotated[
            str | None, Field(description="Same key and request, same run.", max_length=200)
        ] = None,
        on_conflict: OnConflict = "use_existing",
        session_id: Annotated[
            str | None, Field(description="The team reads this conversation's earlier turns.")
        ] = None,
        changes_of: Annotated[
            str | None, Field(description="Continue unapplied changes: `winner`, AGENT or RUN/AGENT.")
        ] = None,
        wait_seconds: Annotated[float, Field(description="Wait for the end.", ge=0, le=50)] = 0,
        dry_run: Annotated[bool, Field(description="Only show the plan.")] = False,
    ) -> results.Started:
        """Delegate to a team of other models (GPT, Gemini, Claude, local) for a second opinion. Costs money; sends the
        question and the named files to their providers. For a review, debate, consensus, root cause, risky change or
        architecture decision, or when you are stuck. The team knows only what you write here. Returns a run_id at once;
        the run takes minutes and survives this session."""
        guest = service.access.is_guest
        paths = [context_path(entry.path, entry.permission, guest=guest) for entry in context_paths or ()]
        request = await build_request(
            CallerRequest(
                question,
                named_team(team, models, num_agents or None, guest=guest),
                cwd=Path.cwd(),
                environ=service.access.environ,
                consent=Consent(grants_paths=True),
                context_paths=paths,
                checks=tuple(checks or ()),
                decide=decide,
                limits=RequestedLimits(
                    max_usd=max_usd or None, max_seconds=max_seconds or None, max_answers=max_answers or None
                ),
                caller_answers=True,
                session_id=session_id,
                changes_of=changes_of,
                idempotency_key=idempotency_key,
                on_conflict=on_conflict,
                only_plan=dry_run,
                elsewhere=service.access.engine.pool is not None,
            )
        )
        asked = request.team
        reach = reach_of(asked.config, service.access.environ, Path.cwd())
        commands = await sandbox_note(asked.config, service.access.environ)
        if dry_run:
            begins = await service.start_note(request)
            expected = await _estimate(service, request)
            aside = _sentences(begins, commands, _find_unlisted(asked, expected.prices), _proposal(asked.config))
            tried = await _tried(asked.config, service.access.environ, run_them=True)
            facts = results.StartFacts(asked, reach, expected, aside, tried)
            return results.planned(facts, service.access.environ, keys_of_client(context))
        noticed = await look_before(asked)
        view, reused = await service.start(await service.prepare(request))
        note = view.note
        if not reused:
            await server.changes.publish(ResourcesListChanged())
        if wait_seconds:
            view = await wait_with_progress(context, service, WaitRequest(view.row.run_id, wait_seconds))
        woken = _note_wait(server, context, view)
        expected = await _estimate(service, request)
        aside = _sentences(noticed, commands, _find_unlisted(asked, expected.prices))
        tried = await _tried(asked.config, service.access.environ, run_them=False)
        facts = results.StartFacts(asked, reach, expected, aside, tried)
        return results.started(view, facts, reused=reused, note=note, woken=woken)

    @server.tool(title="Wait for a run", annotations=READ_ONLY)
    async def wait_run(
        context: Context,
        run_id: str,
        until: Annotated[
            Literal["terminal", "phase", "change"],
            Field(description="End, next phase, or any event after `cursor`."),
        ] = "terminal",
        timeout_seconds: Annotated[float, Field(ge=0, le=50)] = 45,
        cursor: Annotated[int | None, Field(ge=0), BOUNDED] = None,
    ) -> results.Waited:
        """Wait until the run ends and return its result. If the wait times out, call again."""
        before = (await service.watcher.get_run(run_id)).snapshot.seq if cursor is None else cursor
        wait = WaitRequest(run_id, timeout_seconds, until, cursor)
        view = await wait_with_progress(context, service, wait, repeatable=True)
        return results.waited(view, before, woken=_note_wait(server, context, view))

    @server.tool(title="Run status", annotations=READ_ONLY)
    async def get_status(run_id: str) -> results.Status:
        """Return what the run is doing now: phase, agents, cost."""
        view = await service.watcher.get_run(run_id)
        return results.status(view, _describe_waiting(server, view))

    @server.tool(title="Run result", annotations=READ_ONLY, meta=FINDS_RESULT)
    async def get_result(
        run_id: str,
        view: Annotated[
            results.ResultView,
            Field(description="full: all answers and votes. diff: the patch."),
        ] = "summary",
        agent: Annotated[str | None, Field(description="For view=agent or diff.")] = None,
        offset: Annotated[int, Field(description="From next_offset.", ge=0), BOUNDED] = 0,
        limit: Annotated[int | None, Field(description="Maximum characters.", ge=0), BOUNDED] = None,
    ) -> results.Result:
        """Return the team's final answer, its votes, dissent, changed files and cost."""
        seen = await service.watcher.get_run(run_id)
        return results.result(seen, view, agent, offset, limit, _describe_waiting(server, seen))

    _add_controls(server, service)
    _add_lists(server, service)


def _add_controls(server: MassgenServer, service: RunService) -> None:
    @server.tool(title="Control a run", annotations=CONTROLS, meta=FINDS_CONTROL)
    async def control_run(
        context: Context,
        run_id: str,
        action: Annotated[
            Literal["cancel", "finish_now", "steer", "answer", "raise_budget", "resume"],
            Field(
                description="cancel: keep the best answer. finish_now: decide with the existing answers. steer: "
                "show `message` to all. answer: `message` answers the run's question. raise_budget: ask the user to "
                "raise max_usd to `value`. resume: continue an interrupted run."
            ),
        ],
        message: Annotated[str, Field(max_length=MAX_MESSAGE_CHARACTERS)] = "",
        value: float | None = None,
    ) -> results.Controlled:
        """Cancel, finish, steer, answer or resume a run, or raise its budget."""
        if action == "raise_budget" and not await is_raise_agreed(context, service, run_id, value):
            view = await service.watcher.get_run(run_id)
            return results.kept_budget(view, value or 0.0, over_http=is_over_http(context.request_context))
        view = await service.control(run_id, action, message, value)
        return results.controlled(view, action, _describe_waiting(server, view))

    @server.tool(title="Apply a run's changes", annotations=DESTRUCTIVE)
    async def apply_result(
        run_id: str,
        dry_run: Annotated[bool, Field(description="false applies it.")] = True,
        paths: Annotated[list[str] | None, Field(description="Only these files, or hunks such as FILE#2.")] = None,
        agent: Annotated[str | None, Field(description="This agent's changes, not the winner's.")] = None,
        undo: bool = False,
    ) -> results.Applied:
        """Merge the team's changes into the user's files, all or nothing, or undo the merge. Needs permission write."""
        request = ApplyRequest(dry_run=dry_run, agent=agent or None, paths=paths or (), undo=undo)
        application = await service.applier.apply(run_id, request)
        return await anyio.to_thread.run_sync(results.applied, run_id, application)


def _add_lists(server: MassgenServer, service: RunService) -> None:
    @server.tool(title="List runs", annotations=READ_ONLY)
    async def list_runs(
        state: RunStatus | None = None,
        session_id: str | None = None,
        since: Annotated[Moment | None, Field(description="Earliest start.")] = None,
        kind: ListedKind = "single",
        cursor: Annotated[int | None, Field(description="From next_cursor.", ge=0), BOUNDED] = None,
        limit: Annotated[int, Field(ge=0, le=100)] = LISTED,
    ) -> results.RunList:
        """Find earlier runs, newest first."""
        most = limit or LISTED
        views = await service.watcher.list_runs(
            RunFilter(state, session_id, since, kind), before=cursor or None, limit=most
        )
        digests = await service.outcomes.read_digests(views)
        unapplied = await service.applier.find_unapplied(views)
        listed = partial(results.run_list, views, most, digests=digests, unapplied=unapplied)
        return await anyio.to_thread.run_sync(listed)

    @server.tool(title="List team configs", annotations=READ_ONLY)
    async def list_configs(
        name: Annotated[str | None, Field(description="Show this config's YAML.")] = None,
    ) -> results.ConfigList:
        """List ready-made teams and their purposes."""
        return await results.config_list(name, service.access.environ)


def _find_unlisted(team: Team, prices: TeamPrices) -> str | None:
    """Name the models of a caller's `models` that no list of prices knows: the name may be wrong."""
    if not team.source.startswith("models: "):
        return None
    strong = {row.strong_model for row in PROVIDERS}
    names = [name for name in (*prices.bounded, *prices.by_tokens) if name.partition("/")[2] not in strong]
    if not names:
        return None
    return f"These models aren't in the price lists, so check their names: {', '.join(names)}."


def _describe_waiting(server: MassgenServer, view: RunView) -> str:
    """Say what the caller should do while the run works."""
    return choose_waiting(woken=server.waking.includes(view))


def _note_wait(server: MassgenServer, context: Context, view: RunView) -> bool:
    """Note that this call's client waits for the run. Return whether its model is woken at the end."""
    server.waking.note_call(context.request_context, view)
    return server.waking.includes(view)


def _sentences(*sentences: str | None) -> str:
    return " ".join(filter(None, sentences))


async def _estimate(service: RunService, request: RunRequest) -> Estimate:
    """By the user's own runs of such a team, where there are enough."""
    expected = await anyio.to_thread.run_sync(estimate, request.config, request.question, service.access.environ)
    return replace(expected, usual=await service.outcomes.find_usual_runs(request.source, request.config))


async def _tried(config: Config, environ: Mapping[str, str], *, run_them: bool) -> tuple[TriedCheck, ...]:
    """How the checks stand on the unchanged files; as they stood when they ran last, unless they are to run now."""
    if not config.orchestrator.checks:
        return ()
    from massgen_mcp.runs.host.setting_up import last_tried, try_checks  # a server starts without it

    if run_them:
        return await try_checks(config, environ, seconds=DRY_RUN_SECONDS)
    return await last_tried(config, environ)


def _proposal(config: Config) -> str:
    """For a run without checks: those that its directories seem to have. They are not run."""
    if config.orchestrator.checks:
        return ""
    found = proposed_checks(Path(context.path) for context in config.orchestrator.context_paths)
    return f"Possible checks (not run yet): {', '.join(f'`{one}`' for one in found)}." if found else ""
